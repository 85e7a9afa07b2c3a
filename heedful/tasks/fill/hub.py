"""The files beside the weights of an encoder on the Hub: its tokenizer. Without the head that names words it is a
bare encoder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hub import Files, read_framed, write_framed
from heedful.models.encoder import EncoderConfig
from heedful.run.task import Hub, HubFiles
from heedful.run.tokenizers import tokenizer_files
from heedful.tasks.fill.use import Filler
from heedful.tasks.shared.embed import TextEncoder


def read_encoder(folder: Path, said: Mapping[str, Any], config: EncoderConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out. Raises InputError for a head over the vocabulary
    without a mask, and as `read_framed`."""
    tokenizer = read_framed(folder, said, size=config.embed.vocab_size)
    if config.mlm_head and tokenizer.mask is None:
        raise InputError("no mask in its vocabulary", where=str(folder), fix="get the tokenizer of the model")
    about: dict[str, Any] = {"task": "fill" if config.mlm_head else "encode"}
    about |= {"pairs": "next"} if config.mlm_head and config.nsp_head else {}
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": about}


def write_encoder(run: Path, served: Filler | TextEncoder) -> HubFiles:
    return write_framed(served.tokenizer, served.reads.body.config.embed)


HUB = Hub(read_encoder, write_encoder)
