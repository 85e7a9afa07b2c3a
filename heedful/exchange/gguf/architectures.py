"""What llama.cpp calls an architecture, for each family of the Hub that it has: their keys of config.json in a file's
metadata, and the names and the form of their tensors.

The names are made of the family's own table by the library's map of names.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy
import torch
from torch import Tensor

from heedful.core.config import LARGEST, unknown_key
from heedful.core.position import PositionConfig
from heedful.core.rotary import frequencies
from heedful.errors import InputError
from heedful.exchange.gguf.file import ARCHITECTURE, Packed, library
from heedful.exchange.hf.causal import FULL, SLIDING, rope_from_hf
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.rules import Rule
from heedful.models.lm import LMConfig

OTHER = "take a model of another family"
MOST_LAYERS = 1 << 16  # for each of which a list may have a number
FREQUENCIES = "rope_freqs.weight"  # by what LLaMA 3 divides each frequency, where a file has it
OUTPUT, EMBEDDING = "output.weight", "token_embd.weight"
_BIASES = {"attention_bias": "blk.0.attn_q.bias", "mlp_bias": "blk.0.ffn_up.bias"}
_EXPERT = re.compile(r"\.experts\.(\d+)\.")

# Keys without the name of the architecture, and those of config.json.
_SIZES = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
_HEADS = dict.fromkeys(("attention.key_length", "attention.value_length", "rope.dimension_count"), "head_dim")
_WIDTHS = dict.fromkeys(_HEADS, "")  # of families whose config.json does not say it
_EXPERTS = {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}
_WINDOWS = {"attention.sliding_window": "sliding_window", "attention.sliding_window_pattern": "layer_types"}
_CAPS = {"attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping"}
# How rotary positions are scaled, and the keys of rope_parameters.
_SCALING = {
    "rope.scaling.type": "rope_type",
    "rope.scaling.factor": "factor",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
}
_LENGTH, _MAGNITUDE = "rope.scaling.original_context_length", "rope.scaling.attn_factor"
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
_NEEDED = {"block_count", "embedding_length", "attention.head_count", "context_length"}
_NEEDED |= {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"}
# Of a training, which a file does not keep.
TRAINING = ("attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop", "router_aux_loss_coef")


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """How llama.cpp holds the models of a family, by the `model_type` of the Hub. What it does not keep is there as the
    family's config.json means it where a key is missing, or as in `always`."""

    name: str
    keys: dict[str, str]
    always: dict[str, Any] = field(default_factory=dict)
    pairs: bool = False  # features that rotate together lie next to each other, as in the first code of LLaMA
    offset: bool = False  # norms are 1 + theirs
    divides: bool = False  # reads `FREQUENCIES`
    biases: bool = False  # may have the biases of `_BIASES`
    scalar: int | None = None  # the number of layers of the one size whose scores are scaled by the width of all heads


_LLAMA = Architecture(name="llama", keys=_SIZES | _HEADS, pairs=True, divides=True)
_GEMMA = Architecture(name="gemma", keys=_SIZES | _HEADS, offset=True)
ARCHITECTURES: dict[str, Architecture] = {
    "gpt2": Architecture(
        name="gpt2",
        keys={
            "block_count": "n_layer",
            "context_length": "n_positions",
            "embedding_length": "n_embd",
            "feed_forward_length": "n_inner",
            "attention.head_count": "n_head",
            "attention.head_count_kv": "n_head",
            "attention.layer_norm_epsilon": "layer_norm_epsilon",
            "vocab_size": "vocab_size",
        },
    ),
    "llama": replace(_LLAMA, biases=True),
    "mistral": _LLAMA,  # read as LLaMA, which is the same without windows
    "mixtral": replace(_LLAMA, keys=_LLAMA.keys | _EXPERTS),
    "qwen2": Architecture(name="qwen2", keys=_SIZES | _WIDTHS),
    "qwen3": Architecture(name="qwen3", keys=_SIZES | _HEADS),
    "qwen3_moe": Architecture(
        name="qwen3moe",
        keys=_SIZES
        | _HEADS
        | {
            "expert_count": "num_experts",
            "expert_used_count": "num_experts_per_tok",
            "expert_feed_forward_length": "moe_intermediate_size",
        },
        always={"norm_topk_prob": True},
    ),
    "smollm3": Architecture(name="smollm3", keys=_SIZES | _WIDTHS, pairs=True),
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, name="gemma2", keys=_GEMMA.keys | _WINDOWS | _CAPS, scalar=46),
    "gemma3_text": replace(
        _GEMMA,
        name="gemma3",
        keys=_GEMMA.keys
        | _WINDOWS
        | {"final_logit_softcapping": "final_logit_softcapping", "rope.freq_base_swa": "rope_local_base_freq"},
        scalar=62,
    ),
}


def metadata_of(row: Architecture, theirs: dict[str, Any]) -> dict[str, Any]:
    """What a file says of a model with this config.json."""
    ropes, types = theirs.get("rope_parameters") or {}, theirs.get("layer_types")
    rope, local = ropes.get(FULL, ropes), ropes.get(SLIDING, {})
    config = theirs | {
        "layer_types": None if types is None else [kind == SLIDING for kind in types],
        "rope_local_base_freq": local.get("rope_theta"),
    }
    metadata = {key: config[name] for key, name in row.keys.items() if config.get(name) is not None}
    match rope.get("rope_type"):
        case "linear" | "yarn" as kind:
            metadata |= {key: rope[name] for key, name in _SCALING.items() if name in rope}
            by = rope["attention_factor"] / _grown(rope["factor"]) if kind == "yarn" else 1.0
            metadata |= {_MAGNITUDE: by} if by != 1.0 else {}
        case "llama3":
            metadata[_LENGTH] = rope[_SCALING[_LENGTH]]
    return {f"{row.name}.{key}": value for key, value in metadata.items()}


def extra_tensors(row: Architecture, config: LMConfig) -> dict[str, Tensor]:
    """Those that are no weights."""
    position = config.stack.block.attention.position
    if not row.divides or position.scaling is None or position.scaling.kind != "llama3":
        return {}
    attention = config.stack.block.attention
    return {FREQUENCIES: _divisors(position, attention.head_dim or config.d_model // attention.n_heads)}


def config_in(
    metadata: Mapping[str, Any], stored: Mapping[str, Packed], *, where: str
) -> tuple[Architecture, dict[str, Any]]:
    """The architecture of a file, and the config.json that it could have been made from. Raises InputError for what is
    not known, by its name."""
    name = str(metadata.get(ARCHITECTURE))[:80]
    experts = bool(metadata.get(f"{name}.expert_count"))
    rows = [(kind, row) for kind, row in ARCHITECTURES.items() if row.name == name]
    if not rows:
        names = sorted({row.name for row in ARCHITECTURES.values()})
        raise unknown_key(name, names, where=f"{where}: {ARCHITECTURE}", what="architecture")
    kind, row = next((each for each in rows if experts == ("expert_count" in each[1].keys)), rows[0])
    sizes, scaling = dict[str, Any](), dict[str, Any]()
    if EMBEDDING in stored:
        sizes["vocab_size"] = stored[EMBEDDING].shape[0]
    known = [*row.keys, *_SCALING, _MAGNITUDE]
    for key, value in metadata.items():
        short = key.removeprefix(f"{name}.")
        if short in (key, "rope.scaling.finetuned") or (short == "expert_count" and not experts):
            continue
        if short not in known:
            raise unknown_key(key[:80], [f"{name}.{each}" for each in known], where=where)
        values, their = (sizes, row.keys[short]) if short in row.keys else (scaling, _SCALING.get(short, short))
        if values.setdefault(their, _plain(value)) != _plain(value):
            raise InputError(f"{key} is {_plain(value)!r:.80}, and not {values[their]!r:.80}", where=where, fix=OTHER)
    for key in sorted(row.keys.keys() & _NEEDED):
        number, most = sizes.get(row.keys[key]), len(stored) if key == "block_count" else LARGEST
        if type(number) is not (float if key.endswith("epsilon") else int) or not 0 < number <= most:
            raise InputError(f"{name}.{key} is {number!r:.80}, expected up to {most:,}", where=where, fix=OTHER)
    theirs: dict[str, Any] = {"model_type": kind, **row.always, **sizes, "tie_word_embeddings": OUTPUT not in stored}
    if row.biases:
        theirs |= {key: tensor in stored for key, tensor in _BIASES.items()}
    return row, theirs if kind == "gpt2" else _completed(row, theirs, scaling, stored, where)


def _completed(
    row: Architecture, theirs: dict[str, Any], scaling: dict[str, Any], stored: Mapping[str, Packed], where: str
) -> dict[str, Any]:
    """With what llama.cpp takes where a file does not say it, and how rotary positions are scaled."""
    heads, n = theirs["num_attention_heads"], theirs["num_hidden_layers"]
    width = theirs["hidden_size"] // heads
    if theirs.pop("", width) != width:
        raise InputError(f"heads that are not {width} wide, as the others of {row.name}", where=where, fix=OTHER)
    for key, value in (("num_key_value_heads", heads), ("rope_theta", 10_000.0), ("head_dim", width)):
        if key in row.keys.values():
            theirs.setdefault(key, value)
    if row.scalar is not None:
        theirs["query_pre_attn_scalar"] = width if n == row.scalar else theirs["head_dim"]
    turns = theirs.get("layer_types")
    if row.name == "gemma3" and not theirs.get("sliding_window"):
        turns, theirs["sliding_window"] = [False] * n, None
    if type(turns) is int:  # so many layers take turns, the last of which sees all
        turns = [i % turns < turns - 1 if turns else True for i in range(n)]
    if isinstance(turns, list):
        theirs["layer_types"] = [SLIDING if near else FULL for near in turns]
    return theirs | {"rope_scaling": _scaling_in(theirs, scaling, row, stored, where)}


def _scaling_in(
    theirs: Mapping[str, Any], scaling: dict[str, Any], row: Architecture, stored: Mapping[str, Packed], where: str
) -> dict[str, Any] | None:
    magnitude, context = scaling.pop(_MAGNITUDE, None), theirs["max_position_embeddings"]
    if row.divides and FREQUENCIES in stored:
        divisors = stored[FREQUENCIES].unpacked()
        rope = _LLAMA3 | scaling | {"rope_type": "llama3", "factor": _plain(float(divisors.max()))}
        position = rope_from_hf(rope, theirs["rope_theta"], context, where=where)
        expected = _divisors(position, 2 * divisors.numel())
        if not torch.allclose(divisors.flatten(), expected, rtol=1e-4):
            raise InputError(f"{FREQUENCIES} has other numbers than LLaMA 3's", where=where, fix=OTHER)
        return rope
    if "factor" not in scaling or scaling.get("rope_type") == "none":
        return None
    scaling.setdefault("rope_type", "linear")
    rope_from_hf(scaling, theirs["rope_theta"], context, where=where)  # refuses what is no number
    if scaling["rope_type"] == "yarn" and magnitude is not None:
        scaling["attention_factor"] = _plain(magnitude * _grown(scaling["factor"]))
    return scaling


def _divisors(position: PositionConfig, width: int) -> Tensor:
    """By what each frequency is divided in heads of this width."""
    scaled = frequencies(width, position.theta, position.scaling)
    return frequencies(width, position.theta, None) / scaled


def _grown(factor: float) -> float:
    """What yarn multiplies by (Peng et al. 2023, equation 22)."""
    return 0.1 * math.log(factor) + 1.0


def _plain(value: Any) -> Any:
    """A value of a file's metadata, a number in float32 as the shortest that it may have been made from."""
    if isinstance(value, numpy.ndarray):
        return value[:MOST_LAYERS].tolist()
    return float(str(numpy.float32(value))) if isinstance(value, float) else value


def rules_of(row: Architecture, family: Family[LMConfig], config: LMConfig) -> tuple[Rule, ...]:
    """The table of a file's tensors. Raises InputError for a tensor that the architecture does not have."""
    gguf = library()
    number = next(each for each, name in gguf.MODEL_ARCH_NAMES.items() if name == row.name)
    names = gguf.get_tensor_name_map(number, 1)
    attention = config.stack.block.attention
    heads = {"q_proj": attention.n_heads, "k_proj": attention.kv_heads or attention.n_heads} if row.pairs else {}
    n_experts = 0 if config.stack.block.experts is None else config.stack.block.experts.number
    rules = [Rule(FREQUENCIES, None)] if row.divides else []
    for rule in family.rules(config):
        module, _, kind = rule.theirs.replace("{i}", "0").rpartition(".")
        if rule.ours is None or (module == "lm_head" and config.tied):
            continue
        expert = _EXPERT.search(module)
        name = names.get_name(_EXPERT.sub(".experts.", module))
        if name is None:
            raise InputError(f"{row.name} in llama.cpp has no {module}")
        rules.append(
            replace(
                rule,
                theirs=f"{name}.{kind}".replace("blk.0.", "blk.{i}."),
                how="copy" if expert is None else "stack",
                part=rule.part if expert is None else (int(expert[1]), n_experts),
                heads=heads.get(module.rpartition(".")[2], 0),
                more=1.0 if row.offset and module.endswith("norm") else 0.0,
            )
        )
    return tuple(rules)
