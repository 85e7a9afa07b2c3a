"""What BART, Marian, Pegasus and DETR have in common on the Hub: the names of two stacks' settings and of their
tensors."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from heedful.apply.lora import DOWN
from heedful.core.block import BlockConfig, StackConfig
from heedful.exchange.hf import keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, EVERYWHERE, Key, KeyReader, KeyTable
from heedful.exchange.hf.rules import Recast, Rule, always, inside, modules
from heedful.models.seq2seq import Seq2SeqConfig

FIXED = keys.FIXED_SEQ2SEQ | {"decoder_layerdrop": 0.0, "encoder_layerdrop": 0.0}
IRRELEVANT = EVERYWHERE | {
    "classifier_dropout",
    "init_std",
    "num_hidden_layers",  # of a time when there was one number for both
}
IRRELEVANT_TEXT = IRRELEVANT | {
    "add_bias_logits",  # the bias is always there
    "classif_dropout",
    "force_bos_token_to_be_generated",
}

_BLOCK = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.out_proj": "self_attention.out",
    "self_attn_layer_norm": "self_residual.{norm}",
    "fc1": "mlp.up",
    "fc2": "mlp.down",
    "final_layer_norm": "mlp_residual.{norm}",
}
_CROSS = {
    "encoder_attn.q_proj": "cross_attention.query",
    "encoder_attn.k_proj": "cross_attention.key",
    "encoder_attn.v_proj": "cross_attention.value",
    "encoder_attn.out_proj": "cross_attention.out",
    "encoder_attn_layer_norm": "cross_residual.{norm}",
}
# One matrix for source, target and output.
SHARED = tuple(
    Rule(f"{name}.weight", "source.tokens.weight")
    for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
)


def stack_keys(*, activation: str, d_model: int, n_heads: int, d_ff: int, n_layers: int) -> dict[str, Key]:
    """The keys of both stacks, and what each of these is where a file leaves it out."""
    return {
        "activation_function": Key(activation, "{decoder,encoder}.block.activation", ACTIVATION),
        "attention_dropout": Key(0.0, "decoder.block.{attention,cross}.dropout encoder.block.attention.dropout"),
        "d_model": Key(d_model, "d_model"),
        "decoder_attention_heads": Key(n_heads, "decoder.block.{attention,cross}.n_heads"),
        "decoder_ffn_dim": Key(d_ff, "decoder.block.d_ff"),
        "decoder_layers": Key(n_layers, "decoder.n_layers"),
        "dropout": Key(0.1, "{decoder,encoder}.block.dropout"),
        "encoder_attention_heads": Key(n_heads, "encoder.block.attention.n_heads"),
        "encoder_ffn_dim": Key(d_ff, "encoder.block.d_ff"),
        "encoder_layers": Key(n_layers, "encoder.n_layers"),
    }


def block_rules(norm: Literal["out_norm", "in_norm"] = "out_norm", *, encoder: str = "encoder") -> Iterator[Rule]:
    """The tensors of both stacks, which are post-norm, or pre-norm with "in_norm" and end in a norm. `encoder`: the
    name of its stack here."""
    for stack, ours, block in (("encoder", encoder, _BLOCK), ("decoder", "decoder", _BLOCK | _CROSS)):
        named = {theirs: ours.replace("{norm}", norm) for theirs, ours in block.items()}
        yield from modules(inside(f"model.{stack}.layers.{{i}}", f"{ours}.blocks.{{i}}", named))
        if norm == "in_norm":
            yield from modules({f"model.{stack}.layer_norm": f"{ours}.norm"})


def family(
    name: str,
    kind: str,
    table: KeyTable,
    read: KeyReader[Seq2SeqConfig],
    rules: Callable[[Seq2SeqConfig], tuple[Rule, ...]],
    said: Callable[..., dict[str, Any]],
    tokens: Mapping[str, int],
) -> Family[Seq2SeqConfig]:
    """That of their class `kind`. `said` is what it writes beside the table and the special tokens' numbers, of our
    configuration and these."""

    def config_to_hf(config: Seq2SeqConfig, *, pad: int, start: int, end: int, **more: int) -> dict[str, Any]:
        theirs = table.in_theirs(config) | {"architectures": [kind], "decoder_start_token_id": start}
        theirs |= {"eos_token_id": end, "pad_token_id": pad, **said(config, start=start, end=end, **more)}
        return keys.nothing_lost(theirs, config, read(theirs), name)

    return Family(name, Seq2SeqConfig, always("AutoModelForSeq2SeqLM"), read, config_to_hf, rules, tokens=tokens)


def biased_sines_first(config: Seq2SeqConfig) -> Recast[Seq2SeqConfig]:
    """An equal model as Marian and Pegasus lay it out: biases everywhere, which are zeros where this one has none, and
    all sines of a position before its cosines, which is another order of the model's features."""
    sides = (config.source, config.target)
    turned = all(side.position_embeddings == "sinusoidal" and not side.sines_first for side in sides)
    recast = replace(
        config,
        source=replace(config.source, sines_first=turned or config.source.sines_first),
        target=replace(config.target, sines_first=turned or config.target.sines_first),
        encoder=_biased(config.encoder),
        decoder=_biased(config.decoder),
        output_bias=True,
    )
    features = torch.arange(config.d_model)
    order = torch.cat([features[0::2], features[1::2]]) if turned else features
    return Recast(
        recast, lambda tensors: _with_biases({name: _turned(name, own, order) for name, own in tensors.items()})
    )


def _biased(stack: StackConfig) -> StackConfig:
    def block(own: BlockConfig) -> BlockConfig:
        cross = None if own.cross is None else replace(own.cross, bias=True)
        return replace(own, attention=replace(own.attention, bias=True), cross=cross, bias=True)

    return replace(stack, block=block(stack.block), pattern=tuple(map(block, stack.pattern)))


_MAPS = ("query", "key", "value", "out", "up", "gate", "down")
_READ = ("tokens", "query", "key", "value", "up", "gate", "head")  # from the model's features
_WRITE = ("out", "down", "norm", "in_norm", "out_norm", "branch_norm")  # to them


def _turned(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """The same with the model's features in another order; of an adapter the half that reads them, or writes them."""
    *_, module, kind = name.split(".")
    if module in _WRITE:
        return tensor if f".{kind}" == DOWN else tensor[order]
    return tensor[:, order] if module in _READ and f".{kind}" in (".weight", DOWN) else tensor


def _with_biases(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found = dict(tensors)
    for name, tensor in tensors.items():
        module = name.removesuffix(".weight")
        if module.endswith(tuple(f".{map_}" for map_ in _MAPS)):
            found.setdefault(f"{module}.bias", tensor.new_zeros(len(tensor)))
    output = tensors.get("head.weight", tensors.get("target.tokens.weight", tensors["source.tokens.weight"]))
    found.setdefault("head.bias", output.new_zeros(len(output)))
    return found
