"""Encoders that say something of each token, on BERT (Devlin et al. 2019, figure 4 c and d), RoBERTa (Liu et al. 2019),
XLM-R (Conneau et al. 2020) and DistilBERT (Sanh et al. 2019), as the Hub holds them: the labels of words by a
`classifier`, or where an answer begins and ends by `qa_outputs`."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from heedful.errors import InputError
from heedful.exchange.hf import bert, keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.rules import Rule, always
from heedful.exchange.hf.sequence_classifier import FAMILIES, NAMES, TRUNKS, Body, below_head, dropout_key, trunk
from heedful.models.token_classifier import TokenClassifierConfig

Head = Literal["classifier", "qa_outputs"]
KINDS: dict[Head, str] = {"classifier": "ForTokenClassification", "qa_outputs": "ForQuestionAnswering"}


def family(body: Body, head: Head) -> Family[TokenClassifierConfig]:
    """Those with this head on encoders of this family."""
    own, kind = FAMILIES[body], KINDS[head]

    def config_from_hf(
        theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json"
    ) -> TokenClassifierConfig:
        encoder, answers, dropout = below_head(theirs, body, head, kind, where)
        if head == "qa_outputs" and answers != 2:
            raise InputError(f"{answers} answers, where a begin and an end are", where=where)
        dropout = 0.0 if head == "qa_outputs" and body != "distilbert" else dropout
        return TokenClassifierConfig(encoder=encoder, answers=answers, dropout=dropout)

    def config_to_hf(
        config: TokenClassifierConfig,
        *,
        pad: int,
        start: int,
        end: int,
        labels: Sequence[str] = (),
        asked: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        theirs = own.config_to_hf(config.encoder, pad=pad, start=start, end=end)
        theirs["architectures"] = [f"{NAMES[body]}{kind}"]
        theirs |= {keys.PARAMS: asked} if asked else {}
        if head == "classifier":
            theirs |= keys.labels_to_hf(labels)
        if head == "classifier" or body == "distilbert":
            theirs |= {dropout_key(body, kind): config.dropout}
        return keys.nothing_lost(theirs, config, config_from_hf(theirs), NAMES[body])

    return Family(
        own.name,
        TokenClassifierConfig,
        always(f"AutoModel{kind}"),
        config_from_hf,
        config_to_hf,
        lambda config: (*_trunk(config, body), *bert.modules({head: "out"})),
        head=head,
        kind=kind,
        tokens=own.tokens,
        alias=own.alias,
    )


def _trunk(config: TokenClassifierConfig, body: Body) -> Iterator[Rule]:
    yield from trunk(config.encoder, body)
    for kind in ("weight", "bias"):  # which old files hold, and nothing reads
        yield Rule(f"{TRUNKS[body][0]}pooler.dense.{kind}", None)
