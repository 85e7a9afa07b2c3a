"""BART against Hugging Face's, with loud weights; see `compared` for what is asked."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import BartConfig, BartForConditionalGeneration, BartModel

from compared import (
    Pair,
    Special,
    batch,
    both_logits,
    check_cached_steps,
    check_dropout,
    check_generated,
    check_gradients,
    check_logits,
    check_there_and_back,
    check_tied_once,
    export,
    pair_of,
)
from heedful.errors import InputError
from heedful.exchange.hf.bart import FAMILY, RULES, TABLE, config_from_hf, whole
from heedful.exchange.hf.rules import to_ours
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.models.seq2seq import Seq2Seq
from loud import make_loud
from nearly import close

BOS, PAD, EOS = 0, 1, 2
SPECIAL = Special(pad=PAD, start=EOS, end=EOS)  # a target begins with the end of the source
TINY: dict[str, Any] = {
    "vocab_size": 37,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 32,
    "attention_dropout": 0.2,
    "activation_dropout": 0.3,
    "forced_eos_token_id": None,
    "attn_implementation": "eager",
}
VARIANTS: dict[str, dict[str, Any]] = {
    "bart": {},
    "scaled": {"scale_embedding": True, "activation_function": "gelu_new"},
}


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    theirs = BartForConditionalGeneration(BartConfig(**TINY | VARIANTS[request.param]))
    make_loud(theirs, norm=1.0)
    nn.init.normal_(theirs.final_logits_bias, std=0.4)
    config = config_from_hf(theirs.config.to_dict())
    return pair_of(theirs, config, RULES, SPECIAL)


def test_logits(pair: Pair) -> None:
    check_logits(pair)


def test_gradients_of_every_parameter(pair: Pair) -> None:
    check_gradients(pair)


def test_cached_steps(pair: Pair) -> None:
    check_cached_steps(pair)


@pytest.mark.parametrize(("width", "first"), [(1, None), (1, BOS), (4, None), (4, BOS)])
def test_what_is_generated(pair: Pair, width: int, first: int | None) -> None:
    check_generated(pair, width=width, first=first)


def test_dropout_stands_where_theirs_does(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    check_dropout(pair, monkeypatch)


def test_there_and_back_is_identity(pair: Pair) -> None:
    """But for the rows that nothing looks up, which come back as zeros."""
    for table in (pair.theirs.model.encoder.embed_positions, pair.theirs.model.decoder.embed_positions):
        table.weight.data[:2] = 0.0
    check_there_and_back(pair)


def test_their_file_may_hold_tied_matrices_once(pair: Pair) -> None:
    check_tied_once(pair)


def test_a_file_of_the_bare_model(pair: Pair) -> None:
    """Which has other names, and no bias on the logits."""
    bare = {
        name.removeprefix("model."): tensor for name, tensor in pair.theirs.state_dict().items() if "model." in name
    }
    assert bare.keys() == BartModel(pair.theirs.config).state_dict().keys()
    own = pair.weights()
    found = to_ours(RULES, whole(bare), own)
    assert not found.pop("head.bias").any()
    assert all(torch.equal(value, own[name]) for name, value in found.items())
    assert whole(pair.theirs.state_dict()).keys() == pair.theirs.state_dict().keys()


def test_what_we_export_runs_there(tmp_path: Path) -> None:
    config = config_from_hf({"model_type": "bart"} | {key: TINY[key] for key in TINY.keys() & {*TABLE.keys}})
    ours = Seq2Seq(config).eval()
    make_loud(ours, norm=1.0)
    told = FAMILY.config_to_hf(config, pad=PAD, start=EOS, end=EOS, first=BOS)
    theirs = BartForConditionalGeneration.from_pretrained(export(tmp_path, ours, RULES, told))
    pair = Pair(theirs, ours, RULES, SPECIAL)
    close(*both_logits(pair, batch(pair)))
    search = theirs.generation_config
    assert (search.pad_token_id, search.bos_token_id, search.decoder_start_token_id) == (PAD, BOS, EOS)
    assert (search.eos_token_id, search.forced_bos_token_id, search.forced_eos_token_id) == (EOS, BOS, EOS)


PUBLISHED: dict[str, Any] = {  # what facebook/bart-base says
    "_name_or_path": "bart-base",
    "activation_dropout": 0.1,
    "activation_function": "gelu",
    "add_bias_logits": False,
    "add_final_layer_norm": False,
    "architectures": ["BartModel"],
    "attention_dropout": 0.1,
    "bos_token_id": 0,
    "classif_dropout": 0.1,
    "classifier_dropout": 0.0,
    "d_model": 768,
    "decoder_attention_heads": 12,
    "decoder_ffn_dim": 3072,
    "decoder_layerdrop": 0.0,
    "decoder_layers": 6,
    "decoder_start_token_id": 2,
    "dropout": 0.1,
    "early_stopping": True,
    "encoder_attention_heads": 12,
    "encoder_ffn_dim": 3072,
    "encoder_layerdrop": 0.0,
    "encoder_layers": 6,
    "eos_token_id": 2,
    "forced_bos_token_id": 0,
    "forced_eos_token_id": 2,
    "gradient_checkpointing": False,
    "id2label": {"0": "LABEL_0"},
    "init_std": 0.02,
    "is_encoder_decoder": True,
    "label2id": {"LABEL_0": 0},
    "max_position_embeddings": 1024,
    "model_type": "bart",
    "no_repeat_ngram_size": 3,
    "normalize_before": False,
    "normalize_embedding": True,
    "num_beams": 4,
    "num_hidden_layers": 6,
    "pad_token_id": 1,
    "scale_embedding": False,
    "task_specific_params": {"summarization": {"length_penalty": 1.0}},
    "torch_dtype": "float32",
    "transformers_version": "4.12.0.dev0",
    "use_cache": True,
    "vocab_size": 50265,
}
LARGE = {
    "d_model": 1024,
    **{f"{side}_{key}": n for side in ("encoder", "decoder") for key, n in (("layers", 12), ("ffn_dim", 4096))},
    **{f"{side}_attention_heads": 16 for side in ("encoder", "decoder")},
}


@pytest.mark.parametrize(("name", "change"), [("bart-base", {}), ("bart-large", LARGE)])
def test_presets_are_the_published_models(name: str, change: dict[str, Any]) -> None:
    preset = translator_config(TRANSLATORS[name], source_vocab=50265, target_vocab=50265, joint=True)
    assert config_from_hf(PUBLISHED | change) == preset
    assert config_from_hf(FAMILY.config_to_hf(preset, pad=PAD, start=EOS, end=EOS)) == preset


def test_what_they_leave_out_is_their_default() -> None:
    assert config_from_hf({"model_type": "bart"}) == config_from_hf(BartConfig().to_dict())


@pytest.mark.parametrize("key", sorted(TABLE.keys))
def test_every_key_that_is_read_makes_a_difference(key: str) -> None:
    base = {"model_type": "bart"} | {key: TINY[key] for key in TINY.keys() & {*TABLE.keys}}
    other = {
        "activation_function": "relu",
        "attention_dropout": 0.5,
        "activation_dropout": 0.5,
        "dropout": 0.5,
        "scale_embedding": True,
    }.get(key, 8)
    config = config_from_hf(base | {key: other})
    assert config != config_from_hf(base)
    assert FAMILY.config_to_hf(config, pad=PAD, start=EOS, end=EOS)[key] == other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder_layer": 6}, "config.json: unknown key 'encoder_layer'"),
        ({"normalize_before": True}, "config.json: normalize_before is True: only False can be read"),
        ({"normalize_embedding": False}, "config.json: normalize_embedding is False: only True can be read"),
        ({"model_type": "mbart"}, "config.json: model_type is 'mbart': only 'bart' can be read"),
        ({"decoder_layerdrop": 0.1}, "config.json: decoder_layerdrop is 0.1: only 0.0 can be read"),
        ({"tie_word_embeddings": False}, "config.json: tie_word_embeddings is False: only True can be read"),
        ({"activation_function": "tanh"}, "config.json: activation_function 'tanh' is not one of relu, gelu"),
        ({"d_model": "512"}, "config.json.d_model: expected int, found '512'"),
    ],
)
def test_what_we_cannot_build_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        config_from_hf(PUBLISHED | change)
    assert str(caught.value).startswith(message)


def test_tensors_that_are_not_accounted_for_are_refused(pair: Pair) -> None:
    state, own = pair.theirs.state_dict(), pair.weights()
    with pytest.raises(InputError, match=r"no rule for their tensor 'model\.extra'"):
        to_ours(RULES, state | {"model.extra": torch.zeros(1)}, own)
    for name in ("final_logits_bias", "model.decoder.embed_positions.weight", "model.encoder.layernorm_embedding.bias"):
        with pytest.raises(InputError, match="nothing of theirs for our tensor"):
            to_ours(RULES, {key: value for key, value in state.items() if key != name}, own)


def test_what_bart_has_no_words_for_is_refused() -> None:
    for preset, words in (
        (
            "transformer-base-pre",
            ("order = 'pre'", "model.source.position_embeddings = 'sinusoidal'", "output_bias = False"),
        ),
        ("t5-small", ("model.encoder.shared_position.kind = 'buckets'", "model.scaled_output = True", "norm = 'rms'")),
    ):
        config = translator_config(TRANSLATORS[preset], source_vocab=9, target_vocab=9, joint=True)
        with pytest.raises(InputError) as caught:
            FAMILY.config_to_hf(config, pad=PAD, start=EOS, end=EOS)
        assert all(word in str(caught.value) for word in words)


def test_no_name_has_two_rules() -> None:
    names = [rule.theirs for rule in RULES]
    assert len(names) == len(set(names))
