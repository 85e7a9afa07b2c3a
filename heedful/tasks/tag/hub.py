"""The files beside the weights of a tagger on the Hub: its tokenizer, and what it calls its labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.exchange.hub import Files, read_framed, write_framed
from heedful.exchange.preprocessor import hub_labels
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.run.task import Hub, HubFiles
from heedful.run.tokenizers import tokenizer_files
from heedful.tasks.tag.layout import TagSpec
from heedful.tasks.tag.use import Tagger


def read_tagger(folder: Path, said: Mapping[str, Any], config: TokenClassifierConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out. Raises InputError as `read_framed`."""
    tokenizer = read_framed(folder, said, size=config.embed.vocab_size)
    labels = tuple(hub_labels(said, config.answers))
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": {"task": "tag", **to_json(TagSpec(labels=labels))}}


def write_tagger(run: Path, tagger: Tagger) -> HubFiles:
    made = write_framed(tagger.tokenizer, tagger.model.config.embed, "one space")
    return HubFiles(made.files, made.ids | {"labels": tagger.labels})


HUB = Hub(read_tagger, write_tagger)
