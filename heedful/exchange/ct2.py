"""Models in the format of CTranslate2 (Klein et al. 2020), an engine for CPUs, by that library's specifications.

    spec = specification(model, words, quantize="int8")
    save(folder, spec)

The library is an optional extra: it is imported when it is first needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from heedful.core.attention import Attention
from heedful.core.block import Block, Stack, StackConfig
from heedful.core.embed import Embed, EmbedConfig
from heedful.core.position import PositionConfig, RelativeBuckets
from heedful.errors import InputError, MissingError, pip_install
from heedful.models.lm import LM, LMConfig
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heedful.store import files

QUANTIZATIONS = ("int8", "int16", "float16", "bfloat16")  # the types of weights besides float32
WEIGHTS = "model.bin"
MIN_POSITIONS = 4096  # rows, at least, of a table of unlimited positions

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "quick_gelu": "GELUSigmoid", "silu": "SWISH"}


@dataclass(frozen=True, kw_only=True)
class VocabularyStrings:
    """A string for each id of the source's and the target's vocabulary, and the strings of special tokens."""

    source: list[str]
    target: list[str]
    bos: str  # the input of the first step
    eos: str
    unk: str


def library() -> Any:
    """The module `ctranslate2`. Raises MissingError where it is not installed."""
    try:
        import ctranslate2
    except ImportError as error:
        raise MissingError("CTranslate2 is not installed", fix=pip_install("ctranslate2")) from error
    return ctranslate2


def most_tokens(embed: EmbedConfig, stack: StackConfig) -> int | None:
    """How many tokens a text may have in the exported model; None: any number."""
    if _schemes(stack):
        return None
    return embed.context_length if embed.position_embeddings == "learned" else max(MIN_POSITIONS, embed.context_length)


def sides(config: object) -> list[tuple[EmbedConfig, StackConfig]]:
    """The embeddings and the stack of each side, the decoder's last; empty for other models."""
    match config:
        case Seq2SeqConfig():
            return [(config.source, config.encoder), (config.target, config.decoder)]
        case LMConfig():
            return [(config.embed, config.stack)]
        case _:
            return []


def refuse(config: object, *, where: str = "") -> None:
    """Raises InputError for a model that cannot be exported, which names the obstacles."""
    both = sides(config)
    lacking = [what for side in both for what in _lacking(*side, causal=side is both[-1])]
    epsilons = {eps for embed, stack in both for eps in (stack.block.norm_eps, embed.norm_eps) if eps is not None}
    lacking += ["norms with different epsilons"] if len(epsilons) > 1 else []
    lacking += ["capped logits"] if isinstance(config, LMConfig) and config.softcap is not None else []
    lacking += [] if both else [f"a model of the kind {type(config).__name__.removesuffix('Config')}"]
    if lacking:
        what = f"CTranslate2 cannot be told of {', nor of '.join(dict.fromkeys(lacking))}"
        raise InputError(what, where=where, fix="use it here, without another engine")


def _lacking(embed: EmbedConfig, stack: StackConfig, *, causal: bool) -> Iterator[str]:
    block, own, cross = stack.block, stack.block.attention, stack.block.cross
    schemes = _schemes(stack)
    for scheme in schemes:
        if scheme.kind not in ("rotary", "buckets") or (scheme.kind == "buckets" and scheme.two_sided == causal):
            yield f"the position scheme {scheme.kind!r}"
    if len(schemes) + (embed.position_embeddings != "none") > 1:
        yield "several position schemes at once"
    if embed.types:
        yield "types of tokens"
    if any(layer.window is not None for layer in stack.layers):
        yield "attention in windows"
    if stack.pattern:
        yield "blocks that take turns"
    if block.kind != "transformer":
        yield f"{block.kind} blocks"
    if block.experts is not None:
        yield "experts"
    if block.order == "sandwich":
        yield "sandwich norms"
    if block.order == "post" and stack.final_norm:
        yield "a final norm behind post-norm blocks"
    if block.norm == "rms_offset":
        yield "norms that multiply by 1 + weight"
    if any(each is not None and each.norm is not None for each in (own, cross)):
        yield "norms of queries and keys"
    if any(each is not None and each.softcap is not None for each in (own, cross)):
        yield "capped attention"
    if any(scheme.scaling is not None for scheme in schemes):
        yield "rotary positions that are scaled"
    if own.gate or (cross is not None and cross.gate):
        yield "gated attention"
    if cross is not None and cross.position.kind != "none":
        yield f"the position scheme {cross.position.kind!r} across"
    if cross is not None and any(
        getattr(cross, key) != getattr(own, key) for key in ("n_heads", "kv_heads", "head_dim")
    ):
        yield "heads across that differ from the others"


def _schemes(stack: StackConfig) -> list[PositionConfig]:
    """The position schemes of the attention."""
    return [one for one in (stack.block.attention.position, stack.shared_position) if one.kind != "none"]


def specification(model: Seq2Seq | LM, words: VocabularyStrings, *, quantize: str | None = None) -> Any:
    """The content of a CTranslate2 folder, with copies of the weights. Raises InputError as `refuse` does."""
    refuse(model.config)
    specs = library().specs
    if isinstance(model, Seq2Seq):
        config = model.config
        encoder = specs.TransformerEncoderSpec(config.encoder.n_layers, **_settings(config.source, config.encoder))
        _fill_stack(encoder, encoder.embeddings[0], (config.source, config.encoder), model.source, model.encoder)
        embed, stack = config.target, config.decoder
        decoder = specs.TransformerDecoderSpec(stack.n_layers, with_encoder_attention=True, **_settings(embed, stack))
        _fill_stack(decoder, decoder.embeddings, (embed, stack), model.target, model.decoder)
        if config.scaled_output:
            decoder.scale_outputs = model.scale
        spec = specs.TransformerSpec(encoder, decoder)
        spec.register_source_vocabulary(words.source)
        spec.register_target_vocabulary(words.target)
        spec.config.decoder_start_token = words.bos
    else:
        embed, stack = model.config.embed, model.config.stack
        decoder = specs.TransformerDecoderSpec(stack.n_layers, with_encoder_attention=False, **_settings(embed, stack))
        _fill_stack(decoder, decoder.embeddings, (embed, stack), model.embed, model.stack)
        spec = specs.TransformerDecoderModelSpec(decoder)
        spec.register_vocabulary(words.target)
    _fill_linear(decoder.projection, model.head)
    spec.config.layer_norm_epsilon = stack.block.norm_eps
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = words.bos, words.eos, words.unk
    spec.validate()
    spec.optimize(quantization=quantize)
    return spec


def save(folder: Path, spec: Any) -> None:
    """Writes a model's files into `folder`, durably. Raises StorageError."""
    with files.storage_errors(folder / WEIGHTS):
        spec.save(str(folder))
    for path in folder.iterdir():
        files.fsync_file(path)


def _settings(embed: EmbedConfig, stack: StackConfig) -> dict[str, Any]:
    """The arguments of a stack's specification."""
    block, own = stack.block, stack.block.attention
    settings = {
        "num_heads": own.n_heads,
        "num_heads_kv": own.kv_heads if own.kv_heads != own.n_heads else None,
        "head_dim": own.head_dim,
        "pre_norm": block.order == "pre",
        "no_final_norm": not stack.final_norm,
        "activation": library().specs.Activation[_ACTIVATIONS[block.activation]],
        "layernorm_embedding": embed.norm_eps is not None,
        "relative_attention_bias": any(scheme.kind == "buckets" for scheme in _schemes(stack)),
        "ffn_glu": block.gated,
        "rms_norm": block.norm == "rms",
    }
    if own.position.kind == "rotary":
        settings |= {"rotary_dim": 0, "rotary_interleave": False, "rotary_base": own.position.theta}
    return settings


def _fill_stack(
    spec: Any, embeddings: Any, config: tuple[EmbedConfig, StackConfig], embed: Embed, stack: Stack
) -> None:
    embeddings.weight = _copy(embed.tokens.weight)
    spec.scale_embeddings = config[0].scaled
    if config[0].norm_eps is not None:
        _fill_norm(spec.layernorm_embedding, embed.norm)
    most = most_tokens(*config)
    if most is not None:
        spec.position_encodings.encodings = _copy(embed.position_embeddings(torch.arange(most)[None])[0])
    if config[1].final_norm:
        _fill_norm(spec.layer_norm, stack.norm)
    block: Any
    for layer, block in zip(spec.layer, stack.blocks, strict=True):
        _fill_block(layer, block)
        position = stack.position if stack.shares_position else block.self_attention.position
        if isinstance(position, RelativeBuckets):
            layer.self_attention.relative_attention_bias = _copy(position.table.weight)
            layer.self_attention.relative_attention_max_distance = numpy.int32(position.config.furthest)


def _fill_block(spec: Any, block: Block) -> None:
    own, cross = block.self_attention, block.cross_attention
    _fill_norm(spec.self_attention.layer_norm, _norm(block.self_residual))
    _fill_attention(spec.self_attention, own, [own.query, own.key, own.value], [own.out])
    if cross is not None:
        _fill_norm(spec.attention.layer_norm, _norm(block.cross_residual))
        _fill_attention(spec.attention, cross, [cross.query], [cross.key, cross.value], [cross.out])
    _fill_norm(spec.ffn.layer_norm, _norm(block.mlp_residual))
    mlp = block.mlp
    _fill_linear(spec.ffn.linear_0, mlp.up if mlp.gate is None else mlp.gate)
    if mlp.gate is not None:
        _fill_linear(spec.ffn.linear_0_noact, mlp.up)
    _fill_linear(spec.ffn.linear_1, mlp.down)


def _norm(residual: Any) -> nn.Module:
    """The norm of a residual, inside or outside."""
    return residual.in_norm if hasattr(residual.in_norm, "weight") else residual.out_norm


def _fill_attention(spec: Any, attention: Attention, *joined: Sequence[nn.Module]) -> None:
    spec.queries_scale = attention.heads.scale
    for linear, maps in zip(spec.linear, joined, strict=True):
        _fill_linear(linear, *maps)


def _fill_linear(spec: Any, *maps: Any) -> None:
    """Fills in one linear map with the outputs of several, concatenated."""
    spec.weight = torch.cat([_copy(each.weight) for each in maps])
    if maps[0].bias is not None:
        spec.bias = torch.cat([_copy(each.bias) for each in maps])


def _fill_norm(spec: Any, norm: Any) -> None:
    spec.gamma = _copy(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _copy(norm.bias)


def _copy(tensor: Tensor) -> Tensor:
    """A copy: CTranslate2 quantizes in place."""
    return tensor.detach().to_dense().float().cpu().clone()
