"""Encoders that say something of each token, on BERT (Devlin et al. 2019, figure 4 c and d), RoBERTa (Liu et al. 2019)
and XLM-R (Conneau et al. 2020), as the Hub holds them: the labels of words by a `classifier`, or where an answer begins
and ends by `qa_outputs`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from heedful.errors import InputError
from heedful.exchange.hf import bert, keys
from heedful.exchange.hf.rules import Rule
from heedful.exchange.hf.sequence_classifier import FAMILIES, NAMES, TRUNKS, Body, below_head, trunk
from heedful.models.token_classifier import TokenClassifierConfig

Head = Literal["classifier", "qa_outputs"]
KINDS: dict[Head, str] = {"classifier": "ForTokenClassification", "qa_outputs": "ForQuestionAnswering"}
ASKED = "task_specific_params"  # where a file may say how answers are looked for


def rules(config: TokenClassifierConfig, body: Body, head: Head) -> tuple[Rule, ...]:
    """The table for a model on an encoder of this family."""
    return (*_trunk(config, body), *bert.modules({head: "out"}))


def _trunk(config: TokenClassifierConfig, body: Body) -> Iterator[Rule]:
    yield from trunk(config.encoder, body)
    for kind in ("weight", "bias"):  # which old files hold, and nothing reads
        yield Rule(f"{TRUNKS[body][0]}pooler.dense.{kind}", None)


def config_from_hf(
    theirs: dict[str, Any], body: Body, head: Head, *, where: str = "config.json"
) -> TokenClassifierConfig:
    """What their configuration means here.

    Raises InputError for a key that is not known, a value that we cannot build, or a head that is for something else.
    """
    own = {key: value for key, value in theirs.items() if key != ASKED}
    encoder, answers, dropout = below_head(own, body, head, KINDS[head], where)
    if head == "qa_outputs" and answers != 2:
        raise InputError(f"{answers} answers, where a begin and an end are", where=where)
    return TokenClassifierConfig(encoder=encoder, answers=answers, dropout=0.0 if head == "qa_outputs" else dropout)


def config_to_hf(
    config: TokenClassifierConfig,
    body: Body,
    head: Head,
    *,
    pad: int,
    start: int,
    end: int,
    labels: Sequence[str] = (),
    asked: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what they cannot hold."""
    theirs = FAMILIES[body].config_to_hf(config.encoder, pad=pad, start=start, end=end)
    theirs["architectures"] = [f"{NAMES[body]}{KINDS[head]}"]
    theirs |= {ASKED: asked} if asked else {}
    if head == "classifier":
        theirs |= {"classifier_dropout": config.dropout} | keys.labels_to_hf(labels)
    return keys.nothing_lost(theirs, config, config_from_hf(theirs, body, head), NAMES[body])


def asked(said: Mapping[str, Any]) -> dict[str, Any]:
    """How their config.json wants answers to be looked for."""
    found = said.get(ASKED) or {}
    return found.get("question-answering", {}) if isinstance(found, dict) else {}
