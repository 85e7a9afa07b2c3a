"""The files beside the weights of an extractive question answerer on the Hub: its tokenizer, and how it looks for
answers, under the names of their library."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import from_json, to_json
from heedful.exchange.hf.folder import CONFIG
from heedful.exchange.hf.keys import params_of
from heedful.exchange.hub import Files, read_framed, write_framed
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.run.task import Hub, HubFiles
from heedful.run.tokenizers import tokenizer_files
from heedful.tasks.answer.layout import AnswerSpec
from heedful.tasks.answer.use import Answerer

OWN = "question-answering"
NAMES = {"max_answer_len": "longest", "handle_impossible_answer": "unanswerable"}


def read_answerer(folder: Path, said: Mapping[str, Any], config: TokenClassifierConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out. Raises InputError as `read_framed`."""
    tokenizer = read_framed(folder, said, size=config.embed.vocab_size)
    given = {NAMES[key]: value for key, value in params_of(said, OWN).items() if key in NAMES}
    spec = from_json(AnswerSpec, given, where=str(folder / CONFIG))
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": {"task": "answer", **to_json(spec)}}


def write_answerer(run: Path, answerer: Answerer) -> HubFiles:
    made = write_framed(answerer.tokenizer, answerer.model.config.embed, "spaced")
    given = {key: getattr(answerer.spec, ours) for key, ours in NAMES.items()}
    return HubFiles(made.files, made.ids | {"asked": {OWN: given}})


HUB = Hub(read_answerer, write_answerer)
