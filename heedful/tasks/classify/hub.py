"""The files beside the weights of a classifier of texts on the Hub: its tokenizer, and what it calls its answers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.core.config import to_json
from heedful.data.frame import Frame
from heedful.data.text.labelled import AnswerKind
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.exchange.hf.folder import CONFIG
from heedful.exchange.hf.rules import Recast
from heedful.exchange.hub import (
    Files,
    HubTokens,
    around,
    between,
    framed,
    hub_tokenizer,
    read_framed,
    read_tokenizer,
    space_before,
    write_framed,
)
from heedful.exchange.lists import set_around
from heedful.models.classifier import ClassifierConfig
from heedful.run.task import Hub, HubFiles
from heedful.run.tokenizers import tokenizer_files
from heedful.tasks.classify.layout import ClassifySpec
from heedful.tasks.classify.use import TextClassifier

ADDED = ("<|delimiter|>", "<|extract|>")
PROBLEMS: dict[AnswerKind, str] = {
    "label": "single_label_classification",
    "labels": "multi_label_classification",
    "score": "regression",
}


def read_classifier(folder: Path, said: Mapping[str, Any], config: ClassifierConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out. Raises InputError for a problem that is none of
    theirs, and as `read_framed`."""
    frame: tuple[tuple[int, ...], ...] = ()
    if config.lm is None:
        tokenizer = read_framed(folder, said, size=config.embed.vocab_size)
    else:
        tokenizer, frame = _read_causal(folder, said, size=config.embed.vocab_size)
    names = said.get("id2label") or {str(i): f"LABEL_{i}" for i in range(config.answers or 1)}
    problem = said.get("problem_type") or ("regression" if config.answers == 1 else PROBLEMS["label"])
    answer = next((answer for answer, name in PROBLEMS.items() if name == problem), None)
    if answer is None or (answer == "score" and config.answers != 1):
        raise InputError(f"problem_type is {problem!r} of {config.answers} answers", where=str(folder / CONFIG))
    labels = () if answer == "score" else tuple(str(names[key]) for key in sorted(names, key=int))
    about = {"task": "classify", **to_json(ClassifySpec(answer=answer, labels=labels, frame=frame))}
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": about}


def write_classifier(run: Path, served: TextClassifier) -> HubFiles:
    """A choice is told there as a score of each text with one choice. Raises InputError for answers that they cannot
    hold."""
    spec = served.spec
    if spec.symmetric:
        what = f"BERT, RoBERTa and GPT-2 cannot hold answers ({spec.answer}) of pairs in both orders"
        raise InputError(what, where=str(run))
    embed = served.model.config.embed
    if served.model.config.lm is None:
        made = write_framed(served.tokenizer, embed, "spaced")
    else:
        made = _write_causal(served.tokenizer, served.layout.frame, longest=embed.context_length)
    labels = spec.labels or ("LABEL_0",)
    problem = PROBLEMS.get(spec.answer, PROBLEMS["score"])
    notes = ["there a text and one choice are given, and their score is told"] if spec.answer == "choice" else []
    return HubFiles(made.files, made.ids | {"labels": labels, "problem": problem}, notes=notes)


def _read_causal(folder: Path, said: Mapping[str, Any], *, size: int) -> tuple[Tokenizer, tuple[tuple[int, ...], ...]]:
    """The tokenizer of a language model, and what it puts before, between and behind texts."""
    inner = read_tokenizer(folder, framed=False)
    tokens = HubTokens(folder, said, inner.get_vocab(), size=size)
    (before, after), end = around(inner), tokens.token("eos")
    if end is None:
        raise InputError("no eos_token_id of its tokens", where=str(folder / CONFIG))
    frame = tuple(map(tuple, (before, between(inner), after)))
    return Tokenizer(inner, tokens.special(bos=[*before, end][0], eos=end)), frame


def _write_causal(tokenizer: Tokenizer, frame: Frame, *, longest: int) -> HubFiles:
    """What was trained here parts and ends texts with two tokens more than the vocabulary has: they get names."""
    inner = framed(tokenizer, frame.begin, [])
    if tokenizer.ours:
        inner.normalizer = space_before(tokenizer)
    if frame.end == [tokenizer.size + 1]:
        inner.add_special_tokens(list(ADDED))
    set_around(inner, frame.begin, frame.end, frame.between)
    roles = {"bos": tokenizer.bos, "eos": tokenizer.eos, "pad": tokenizer.pad, "unk": tokenizer.unk}
    made = hub_tokenizer(tokenizer, inner, roles, longest=longest)
    return HubFiles(made, {"start": tokenizer.bos, "end": tokenizer.eos, "pad": tokenizer.pad})


def in_own_scale(served: TextClassifier) -> Recast[ClassifierConfig]:
    """An equal model that says one score of each text, or text with a choice; and, of one that was trained on standard
    scores, as they were given."""
    spec = served.spec
    config = replace(served.model.config, answers=served.model.config.answers or 1)
    if (spec.mean, spec.deviation) == (0.0, 1.0):
        return Recast(config, dict)

    def tensors(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        weight = ours["out.weight"]
        bias = ours.get("out.bias", weight.new_zeros(len(weight)))
        scaled = {"out.weight": weight * spec.deviation, "out.bias": bias * spec.deviation + spec.mean}
        return {**ours, **scaled}

    return Recast(replace(config, bias=True), tensors)


HUB = Hub(read_classifier, write_classifier, in_own_scale)
