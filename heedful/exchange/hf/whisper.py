"""Whisper (Radford et al. 2023), as the Hub holds it."""

from typing import Any

from heedful.exchange.hf import keys, seq2seq
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, modules
from heedful.models.speech import SpeechToTextConfig

_STACKS = seq2seq.stack_keys(activation="gelu", d_model=384, n_heads=6, d_ff=1536, n_layers=4)


def _in_encoder(key: Key) -> Key:
    """The same of a model whose stack of the encoder is in a module of its own."""
    ours = key.ours.replace("{decoder,encoder}", "{decoder,encoder.stack}").replace(
        "encoder.block", "encoder.stack.block"
    )
    return Key(key.default, ours.replace("encoder.n_layers", "encoder.stack.n_layers"), key.how)


TABLE = KeyTable(
    # With what each is where a file leaves it out (their WhisperConfig).
    keys={name: _in_encoder(key) for name, key in _STACKS.items()}
    | {
        "activation_dropout": Key(0.0, "{decoder,encoder.stack}.block.mlp_dropout"),
        "dropout": Key(0.0, "{decoder.block,encoder.stack.block,encoder,target}.dropout"),
        "max_source_positions": Key(1500, "encoder.context_length"),
        "max_target_positions": Key(448, "target.context_length"),
        "num_mel_bins": Key(80, "encoder.mels"),
        "scale_embedding": Key(False, "target.scaled"),
        "vocab_size": Key(51865, "target.vocab_size"),
    },
    always={
        "{encoder.stack,decoder}.block.order": "pre",
        "{encoder.stack,decoder}.final_norm": True,
        "decoder.block.{attention,cross}.key_bias": False,
        "encoder.stack.block.attention.key_bias": False,
        "target.position_embeddings": "learned",
    },
    fixed=seq2seq.FIXED | {"model_type": "whisper", "tie_word_embeddings": True, "use_weighted_layer_sum": False},
    # Of training, of a head for classes of sound, and of the times of words.
    irrelevant=seq2seq.IRRELEVANT
    | {"apply_spec_augment", "classifier_proj_size", "forced_decoder_ids", "median_filter_width"}
    | {f"mask_{what}_{how}" for what in ("time", "feature") for how in ("prob", "length", "min_masks")},
)
config_from_hf = keys.reader(SpeechToTextConfig, TABLE)

_BLOCKS = seq2seq.block_rules("in_norm", encoder="encoder.stack")
RULES = (
    *(rule for rule in _BLOCKS if not rule.theirs.endswith("k_proj.bias")),  # which they have not
    *modules({"model.encoder.conv1": "encoder.frames", "model.encoder.conv2": "encoder.pairs"}),
    Rule("model.encoder.embed_positions.weight", "encoder.position_embeddings.weight"),
    Rule("model.decoder.embed_positions.weight", "target.position_embeddings.table.weight"),
    Rule("model.decoder.embed_tokens.weight", "target.tokens.weight"),
    Rule("proj_out.weight", "target.tokens.weight"),
)


def config_to_hf(config: SpeechToTextConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    theirs = TABLE.in_theirs(config) | {"architectures": ["WhisperForConditionalGeneration"], "pad_token_id": pad}
    theirs |= {"decoder_start_token_id": start, "bos_token_id": start, "eos_token_id": end}
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "Whisper")


FAMILY = Family(
    "Whisper",
    SpeechToTextConfig,
    always("AutoModelForSpeechSeq2Seq"),
    config_from_hf,
    config_to_hf,
    always(RULES),
    tokens={"decoder_start_token_id": 50257, "eos_token_id": 50256, "pad_token_id": 50256},
)
