"""The files beside the weights of a language model on the Hub: its tokenizer, and what begins and ends a text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.exchange.hf.folder import CONFIG
from heedful.exchange.hub import (
    GENERATION,
    Files,
    HubTokens,
    around,
    framed,
    generation_config,
    hub_tokenizer,
    read_chat,
    read_tokenizer,
)
from heedful.models.lm import LMConfig
from heedful.run.task import Hub, HubFiles
from heedful.run.tokenizers import tokenizer_files
from heedful.tasks.generate.use import LanguageModel


def read_language_model(folder: Path, said: Mapping[str, Any], config: LMConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out."""
    inner = read_tokenizer(folder, framed=False)
    tokens = HubTokens(folder, said, inner.get_vocab(), size=config.embed.vocab_size)
    ends = tokens.ends()
    bos, eos = tokens.token("bos"), ends[0] if ends else None
    bos, eos = eos if bos is None else bos, bos if eos is None else eos
    if bos is None or eos is None:
        raise InputError("neither a bos_token_id nor an eos_token_id of its tokens", where=str(folder / CONFIG))
    tokenizer = Tokenizer(inner, tokens.special(bos=bos, eos=eos))
    about = {"task": "generate", "before": around(inner)[0], "end": eos, "forbidden": tokens.forbidden()}
    about |= {"chat": True} if read_chat(folder) else {}
    about |= {"ends": ends} if len(ends) > 1 else {}
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": about}


def write_language_model(run: Path, model: LanguageModel) -> HubFiles:
    tokenizer = model.tokenizer
    inner = framed(tokenizer, model.before, [])
    special = tokenizer.special
    first = model.about.get("end", model.end)  # a conversation's turns may end by another
    ends = [first, *(index for index in model.ends if index != first)]
    end = first if len(ends) == 1 else ends
    search = {"bos_token_id": special.bos, "eos_token_id": end, "pad_token_id": special.pad}
    roles = {"bos": special.bos, "eos": first, "pad": special.pad, "unk": special.unk}
    made = hub_tokenizer(tokenizer, inner, roles, longest=model.context, turns=True)
    return HubFiles(
        made | {GENERATION: generation_config(search, model.forbidden)}, {"start": tokenizer.bos, "end": end}
    )


HUB = Hub(read_language_model, write_language_model)
