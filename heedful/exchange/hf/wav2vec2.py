"""wav2vec 2.0 (Baevski et al. 2020) with a head of CTC, as the Hub holds it.

What only their training uses is not read: the vector in the place of hidden sound, and the chance to skip a layer.
"""

from collections.abc import Collection
from typing import Any

from heedful.exchange.hf import keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, EVERYWHERE, How, Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, inside, modules
from heedful.models.speech import CTCConfig
from heedful.models.wave import WaveEncoderConfig

_LISTED = How(lambda key, value, where: value, list)
TABLE = KeyTable(
    # With what each is where a file leaves it out (their Wav2Vec2Config).
    keys={
        "activation_dropout": Key(0.1, "encoder.stack.block.mlp_dropout"),
        "attention_dropout": Key(0.1, "encoder.stack.block.attention.dropout"),
        "conv_bias": Key(False, "encoder.bias"),
        "conv_dim": Key([512] * 7, "encoder.channels", _LISTED),
        "conv_kernel": Key([10, 3, 3, 3, 3, 2, 2], "encoder.kernels", _LISTED),
        "conv_stride": Key([5, 2, 2, 2, 2, 2, 2], "encoder.strides", _LISTED),
        "do_stable_layer_norm": Key(False, "encoder.stack.final_norm"),
        "feat_extract_norm": Key("group", "encoder.norm"),
        "feat_proj_dropout": Key(0.0, "encoder.feature_dropout"),
        "final_dropout": Key(0.1, "dropout"),
        "hidden_act": Key("gelu", "encoder.stack.block.activation", ACTIVATION),
        "hidden_dropout": Key(0.1, "encoder.stack.block.dropout encoder.dropout"),
        "hidden_size": Key(768, "d_model"),
        "intermediate_size": Key(3072, "encoder.stack.block.d_ff"),
        "layer_norm_eps": Key(1e-5, "encoder.stack.block.norm_eps"),
        "num_attention_heads": Key(12, "encoder.stack.block.attention.n_heads"),
        "num_conv_pos_embedding_groups": Key(16, "encoder.position_groups"),
        "num_conv_pos_embeddings": Key(128, "encoder.position_kernel"),
        "num_hidden_layers": Key(12, "encoder.stack.n_layers"),
        "pad_token_id": Key(0, "blank"),
        "vocab_size": Key(32, "vocab_size"),
    },
    fixed=keys.FIXED
    | {
        "adapter_attn_dim": None,
        "add_adapter": False,
        "feat_extract_activation": "gelu",
        "model_type": "wav2vec2",
        "use_weighted_layer_sum": False,
    },
    # Of their trainings, of parts that only these or other models have, and how many convolutions are listed.
    irrelevant=(EVERYWHERE - {"pad_token_id"})
    | {"adapter_kernel_size", "adapter_stride", "apply_spec_augment", "classifier_proj_size", "codevector_dim"}
    | {"contrastive_logits_temperature", "ctc_loss_reduction", "ctc_zero_infinity", "diversity_loss_weight"}
    | {"feat_extract_dropout", "feat_quantizer_dropout", "layerdrop", "num_adapter_layers", "num_codevector_groups"}
    | {"num_codevectors_per_group", "num_feat_extract_layers", "num_negatives", "output_hidden_size"}
    | {"proj_codevector_dim", "tdnn_dilation", "tdnn_dim", "tdnn_kernel", "tie_word_embeddings", "xvector_output_dim"}
    | {f"mask_{what}_{how}" for what in ("time", "channel", "feature") for how in ("prob", "length", "min_masks")}
    | {f"mask_{what}_{how}" for what in ("time", "channel") for how in ("selection", "other", "min_space")}
    | {f"no_mask_{what}_overlap" for what in ("time", "channel")},
)

_BLOCK = {
    "attention.q_proj": "self_attention.query",
    "attention.k_proj": "self_attention.key",
    "attention.v_proj": "self_attention.value",
    "attention.out_proj": "self_attention.out",
    "layer_norm": "self_residual.{norm}",
    "feed_forward.intermediate_dense": "mlp.up",
    "feed_forward.output_dense": "mlp.down",
    "final_layer_norm": "mlp_residual.{norm}",
}
_CONVOLUTION, _POSITION = "wav2vec2.feature_extractor.conv_layers.{i}", "wav2vec2.encoder.pos_conv_embed.conv"


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> CTCConfig:
    """What their configuration means here. Raises InputError for one that cannot be built."""
    got = TABLE.understood(theirs, where)
    order = "pre" if got["do_stable_layer_norm"] else "post"
    return keys.built(CTCConfig, TABLE.in_ours(got, where) | {"encoder.stack.block.order": order}, where)


def rules(config: CTCConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration."""
    assert isinstance(config.encoder, WaveEncoderConfig)
    stable = config.encoder.stack.final_norm
    block = {theirs: ours.replace("{norm}", "in_norm" if stable else "out_norm") for theirs, ours in _BLOCK.items()}
    maps = inside("wav2vec2.encoder.layers.{i}", "encoder.stack.blocks.{i}", block) | {
        "wav2vec2.feature_projection.layer_norm": "encoder.feature_norm",
        "wav2vec2.feature_projection.projection": "encoder.features",
        "wav2vec2.encoder.layer_norm": "encoder.stack.norm" if stable else "encoder.input_norm",
        f"{_CONVOLUTION}.layer_norm": "encoder.norms.{i}",
        "lm_head": "head",
    }
    kinds = ("weight", "bias") if config.encoder.bias else ("weight",)
    return (
        *modules(maps),
        *modules({f"{_CONVOLUTION}.conv": "encoder.convolutions.{i}"}, kinds=kinds),
        Rule(f"{_POSITION}.parametrizations.weight.original0", "encoder.position.scale"),
        Rule(f"{_POSITION}.parametrizations.weight.original1", "encoder.position.direction"),
        Rule(f"{_POSITION}.weight_g", "encoder.position.scale", written=False),  # as old files say it
        Rule(f"{_POSITION}.weight_v", "encoder.position.direction", written=False),
        Rule(f"{_POSITION}.bias", "encoder.position.bias"),
        Rule("wav2vec2.masked_spec_embed", None),
    )


def config_to_hf(config: CTCConfig, *, start: int, end: int) -> dict[str, Any]:
    """Without sound that is hidden in their training, for which they would want a vector."""
    theirs = TABLE.in_theirs(config) | {"architectures": ["Wav2Vec2ForCTC"], "bos_token_id": start, "eos_token_id": end}
    theirs |= {"mask_time_prob": 0.0, "mask_feature_prob": 0.0}
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "wav2vec 2.0")


FAMILY = Family(
    "wav2vec 2.0",
    CTCConfig,
    always("AutoModelForCTC"),
    config_from_hf,
    config_to_hf,
    rules,
    suits=lambda config: isinstance(config.encoder, WaveEncoderConfig),
)
