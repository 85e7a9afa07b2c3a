"""RoBERTa (Liu et al. 2019), as the Hub holds it: BERT without the head for pairs, and with other names.

A position is counted from their padding's number, 1, on: theirs begin in row 2 of the table, and ours in row 0. Nothing
looks up the two rows before but padding, which nothing looks at. They are left out on the way here, and zeros on the
way back.
"""

from collections.abc import Collection
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import bert, keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import EVERYWHERE, How, Key, KeyTable
from heedful.exchange.hf.rules import Rule
from heedful.models.encoder import EncoderConfig

UNUSED = 2  # rows of the table of positions


def _used(key: str, positions: Any, where: str) -> int:
    if not isinstance(positions, int) or positions <= UNUSED:
        raise InputError(f"{key} is {positions!r}: the first {UNUSED} are not used", where=where)
    return positions - UNUSED


TABLE = KeyTable(
    # With what each is where a file leaves it out (their RobertaConfig).
    keys=bert.TABLE.keys
    | {
        "max_position_embeddings": Key(512, "embed.context_length", How(_used, lambda length: length + UNUSED)),
        "vocab_size": Key(50265, "embed.vocab_size"),
    },
    always=bert.TABLE.always,
    fixed=bert.TABLE.fixed
    | {
        "hidden_act": "gelu",  # their head over the vocabulary uses no other
        "model_type": "roberta",
        "pad_token_id": UNUSED - 1,
    },
    irrelevant=EVERYWHERE | {"classifier_dropout"},
)

_WORDS = {"lm_head.dense": "transform.dense", "lm_head.layer_norm": "transform.norm"}


def rules(config: EncoderConfig) -> tuple[Rule, ...]:
    """The table for a model with these heads. Where there is none, their names lack the first "roberta."."""
    found = [*bert.trunk(config, "roberta.", written=config.mlm_head, unused=UNUSED)]
    found += bert.trunk(config, "", written=not config.mlm_head, unused=UNUSED)
    if config.mlm_head:
        output = "embed.tokens.weight" if config.tied else "head.weight"
        found += [*bert.modules(_WORDS), Rule("lm_head.decoder.weight", output)]
        found += bert.output_bias(config, "lm_head")
    return tuple(found)


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> EncoderConfig:
    """What their configuration means here, with the heads that their tensors' `names` tell of."""
    got = TABLE.understood(theirs, where)
    heads = {
        "mlm_head": any(name.startswith("lm_head.") for name in names),
        "pooler": any(name.endswith("pooler.dense.weight") for name in names),
    }
    return keys.built(EncoderConfig, TABLE.in_ours(got, where) | heads, where)


def config_to_hf(config: EncoderConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    """Raises InputError for another number of the padding than 1 too."""
    kind = {"architectures": ["RobertaForMaskedLM" if config.mlm_head else "RobertaModel"]}
    theirs = TABLE.in_theirs(config) | kind | {"bos_token_id": start, "eos_token_id": end}
    keys.nothing_lost(theirs, config, config_from_hf(theirs, [rule.theirs for rule in rules(config)]), "RoBERTa")
    if pad != UNUSED - 1:
        raise InputError(f"RoBERTa's padding has the id {UNUSED - 1}, and this model's {pad}")
    return theirs


FAMILY = Family(
    "RoBERTa", EncoderConfig, bert.loads, config_from_hf, config_to_hf, rules, tokens={"pad_token_id": UNUSED - 1}
)
