"""A ViT or DeiT with a decoder that looks at it, as the Hub holds them (VisionEncoderDecoderModel): TrOCR's decoder (Li
et al. 2023), which is BART's, or GPT-2 with cross-attention.

Each half has a configuration of its own. The encoder's pooler, which nothing reads, is left out, and written as zeros.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.exchange.hf import bart, gpt2, keys, seq2seq, vit
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import WORDLESS, How, Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, inside, modules, within
from heedful.models.image_to_text import ImageToTextConfig
from heedful.models.vit import ViTConfig

TABLE = KeyTable(
    keys={"encoder": Key({}), "decoder": Key({})},
    fixed={"is_encoder_decoder": True, "model_type": "vision-encoder-decoder"},
    irrelevant=WORDLESS | {"is_decoder", "processor_class", "vocab_size"},
)


def _moved(table: KeyTable, place: Callable[[str], str], fixed: Mapping[str, Any]) -> KeyTable:
    """The table of a model that is a part of another, where each of its paths has another `place`."""
    moved = {
        name: replace(key, ours=" ".join(map(place, key.ours.split())))
        for name, key in table.keys.items()
        if name not in ("id2label", *fixed)
    }
    always = {place(path): value for path, value in table.always.items()}
    return replace(table, keys=moved, always=always, fixed={**table.fixed, **fixed})


def _in_decoder(path: str) -> str:
    """Where a language model's setting is in ours: both attentions of a block are alike."""
    path = path.replace("stack.block.attention", "decoder.block.{attention,cross}")
    return path.replace("stack.", "decoder.").replace("embed.", "target.")


def _of_decoder(key: Key) -> Key:
    """A key of two stacks, of the decoder alone."""
    kept = (path for path in key.ours.split() if not path.startswith("encoder."))
    return replace(key, ours=" ".join(kept).replace("{decoder,encoder}", "decoder"))


_HALF = {"add_cross_attention": True, "is_decoder": True}
ENCODER = _moved(vit.TABLE, lambda path: f"encoder.{path}", {})
ENCODER = replace(
    ENCODER,
    keys=ENCODER.keys | {"qkv_bias": Key(True, "encoder.stack.block.attention.bias")},
    always=ENCODER.always | {"encoder.n_classes": 0},
    fixed={name: value for name, value in ENCODER.fixed.items() if name != "qkv_bias"},
)
GPT2 = _moved(gpt2.TABLE, _in_decoder, _HALF)
TROCR = KeyTable(
    # With what each is where a file leaves it out (their TrOCRConfig).
    keys={
        name: _of_decoder(key)
        for name, key in seq2seq.stack_keys(activation="gelu", d_model=1024, n_heads=16, d_ff=4096, n_layers=12).items()
        if not name.startswith("encoder")
    }
    | {
        "activation_dropout": Key(0.0, "decoder.block.mlp_dropout"),
        "dropout": Key(0.1, "{decoder.block,target}.dropout"),
        "layernorm_embedding": Key(
            True, "target.norm_eps", How(lambda key, norm, where: 1e-5 if norm else None, lambda eps: eps is not None)
        ),
        "max_position_embeddings": Key(512, "target.context_length"),
        "scale_embedding": Key(False, "target.scaled"),
        "tie_word_embeddings": Key(True, "tied"),
        "use_learned_position_embeddings": Key(
            True,
            "target.position_embeddings",
            How(lambda key, learned, where: "learned" if learned else "fairseq", lambda kind: kind == "learned"),
        ),
        "vocab_size": Key(50265, "target.vocab_size"),
        "cross_attention_hidden_size": Key(None),
    },
    fixed=keys.FIXED | _HALF | {"decoder_layerdrop": 0.0, "model_type": "trocr"},
    irrelevant=(seq2seq.IRRELEVANT | {"decoder_start_token_id"}) - {"cross_attention_hidden_size"},
)

_H, _BLOCKS = "decoder.transformer.h.{i}", "decoder.blocks.{i}"
_GPT2_RULES = (
    *(
        replace(rule, theirs=f"decoder.{rule.theirs}", ours=None if rule.ours is None else _in_decoder(rule.ours))
        for rule in gpt2.RULES
    ),
    *modules(inside(_H, _BLOCKS, {"ln_cross_attn": "cross_residual.in_norm"})),
    *modules(
        inside(
            _H,
            _BLOCKS,
            {"crossattention.c_proj": "cross_attention.out", "crossattention.q_attn": "cross_attention.query"},
        ),
        "transpose",
    ),
    *(
        Rule(f"{_H}.crossattention.c_attn.{kind}", f"{_BLOCKS}.cross_attention.{ours}.{kind}", "transpose", (i, 2))
        for i, ours in enumerate(("key", "value"))
        for kind in ("weight", "bias")
    ),
    Rule(f"{_H}.crossattention.bias", None),
    Rule(f"{_H}.crossattention.masked_bias", None),
)
_TROCR = "decoder.model.decoder"


def rules(config: ImageToTextConfig) -> tuple[Rule, ...]:
    """Those of the encoder, and of the decoder, which is GPT-2 where it is pre-norm."""
    output = "target.tokens.weight" if config.tied else "head.weight"
    encoder = _encoder_rules(config.encoder)
    if config.decoder.block.order == "pre":
        return (*encoder, *_GPT2_RULES, Rule("decoder.lm_head.weight", output))
    blocks = (rule for rule in seq2seq.block_rules() if rule.ours and rule.ours.startswith("decoder."))
    embed = config.target
    return (
        *encoder,
        *(replace(rule, theirs=f"decoder.{rule.theirs}") for rule in blocks),
        *(modules({f"{_TROCR}.layernorm_embedding": "target.norm"}) if embed.norm_eps is not None else ()),
        Rule(f"{_TROCR}.embed_tokens.weight", "target.tokens.weight"),
        Rule("decoder.output_projection.weight", output),
        Rule(f"{_TROCR}.embed_positions.weight", "target.position_embeddings.table.weight", unused=bart.UNUSED)
        if embed.position_embeddings == "learned"
        else Rule(f"{_TROCR}.embed_positions._float_tensor", None),  # sines, which old files hold
    )


def _encoder_rules(config: ViTConfig) -> tuple[Rule, ...]:
    """Those of ViT under the names of a part, without biases of queries, keys and values where there are none."""
    parts = within("encoder", vit.rules(config))
    renamed = (replace(rule, theirs=f"encoder.{rule.theirs.partition('.')[2]}") for rule in parts)
    biased = config.stack.block.attention.bias
    unbiased = tuple(f"attention.{name}.bias" for name in ("query", "key", "value"))
    pooler = (Rule(f"{_POOLER}.{kind}", None) for kind in ("weight", "bias"))
    return (*(rule for rule in renamed if biased or not rule.theirs.endswith(unbiased)), *pooler)


_POOLER = "encoder.pooler.dense"


def made(config: ImageToTextConfig) -> dict[str, Tensor]:
    """What their model has, and ours not."""
    C = config.encoder.d_model
    return {f"{_POOLER}.weight": torch.zeros(C, C), f"{_POOLER}.bias": torch.zeros(C)}


def config_from_hf(
    theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json"
) -> ImageToTextConfig:
    halves = TABLE.understood(theirs, where)
    for side, half in halves.items():
        if not isinstance(half, dict):
            raise InputError(f"{side} is {half!r}, expected an object", where=where)
    kind, table = halves["decoder"].get("model_type"), TROCR
    if kind not in ("gpt2", "trocr"):
        raise InputError(f"a decoder of the kind {kind!r}: only 'gpt2' and 'trocr' can be read", where=where)
    seen = ENCODER.understood(halves["encoder"], f"{where}: encoder")
    if kind == "gpt2":
        table, got = GPT2, gpt2.with_width(GPT2.understood(halves["decoder"], f"{where}: decoder"), where)
        width = got["n_embd"]
    else:
        got = TROCR.understood(halves["decoder"], f"{where}: decoder")
        width = got["cross_attention_hidden_size"] or got["d_model"]
        pad = halves["decoder"].get("pad_token_id", 1)
        if not got["use_learned_position_embeddings"] and pad != 1:  # the sines begin behind its number
            raise InputError(f"pad_token_id is {pad!r}: with sines for positions only 1 can be read", where=where)
    if width != seen["hidden_size"]:
        what = f"an encoder of the width {seen['hidden_size']!r}, and a decoder that looks at the width {width!r}"
        raise InputError(f"{what}: what is between them cannot be read", where=where)
    values = ENCODER.in_ours(seen, f"{where}: encoder")
    values |= vit.patch_from_hf(seen["patch_size"], f"{where}: encoder", "encoder.")
    values |= table.in_ours(got, f"{where}: decoder")
    if not seen["qkv_bias"]:
        values["encoder.stack.block.attention.out_bias"] = True
    return keys.built(ImageToTextConfig, values, where)


def config_to_hf(config: ImageToTextConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    ids = {"bos_token_id": start, "decoder_start_token_id": start, "eos_token_id": end, "pad_token_id": pad}
    gpt = config.decoder.block.order == "pre"
    decoder = (GPT2 if gpt else TROCR).in_theirs(config) | ids
    if not gpt:
        decoder["cross_attention_hidden_size"] = config.encoder.d_out
    elif config.encoder.d_out != config.d_model:
        raise InputError(f"GPT-2 cannot hold model.encoder.d_model = {config.encoder.d_out}, another than its own")
    theirs = {
        **TABLE.in_theirs(config),
        "architectures": ["VisionEncoderDecoderModel"],
        "encoder": ENCODER.in_theirs(config) | {"patch_size": vit.patch_to_hf(config.encoder.patches)},
        "decoder": decoder,
        "tie_word_embeddings": False,  # of a word to both halves: the decoder has its own
        **ids,
    }
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "GPT-2 after a ViT" if gpt else "TrOCR")


FAMILY = Family(
    "ViT with a decoder",
    ImageToTextConfig,
    always("VisionEncoderDecoderModel"),
    config_from_hf,
    config_to_hf,
    rules,
    suits=lambda config: not config.encoder.stages,
    made=made,
)
