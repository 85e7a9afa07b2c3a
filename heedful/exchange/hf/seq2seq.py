"""What BART, Marian and DETR have in common on the Hub: the names of two stacks' settings and of their tensors."""

from collections.abc import Iterator

from heedful.exchange.hf import keys
from heedful.exchange.hf.keys import ACTIVATION, EVERYWHERE, Key
from heedful.exchange.hf.rules import Rule, inside, modules

FIXED = keys.FIXED_SEQ2SEQ | {"decoder_layerdrop": 0.0, "encoder_layerdrop": 0.0}
IRRELEVANT = EVERYWHERE | {
    "classifier_dropout",
    "init_std",
    "num_hidden_layers",  # of a time when there was one number for both
}
IRRELEVANT_TEXT = IRRELEVANT | {
    "add_bias_logits",  # the bias is always there
    "bad_words_ids",
    "classif_dropout",
    "force_bos_token_to_be_generated",
    "forced_bos_token_id",
    "forced_eos_token_id",
}

_BLOCK = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.out_proj": "self_attention.out",
    "self_attn_layer_norm": "self_residual.out_norm",
    "fc1": "mlp.up",
    "fc2": "mlp.down",
    "final_layer_norm": "mlp_residual.out_norm",
}
_CROSS = {
    "encoder_attn.q_proj": "cross_attention.query",
    "encoder_attn.k_proj": "cross_attention.key",
    "encoder_attn.v_proj": "cross_attention.value",
    "encoder_attn.out_proj": "cross_attention.out",
    "encoder_attn_layer_norm": "cross_residual.out_norm",
}


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


def block_rules() -> Iterator[Rule]:
    """The tensors of both stacks' blocks."""
    for stack, block in (("encoder", _BLOCK), ("decoder", _BLOCK | _CROSS)):
        yield from modules(inside(f"model.{stack}.layers.{{i}}", f"{stack}.blocks.{{i}}", block))
