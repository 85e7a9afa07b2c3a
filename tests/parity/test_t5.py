"""T5 and T5 1.1 against Hugging Face's, with loud weights; see `compared` for what is asked. Embeddings are louder
still, as those of T5 are: the first version divides by the root of the width what it multiplies with them."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5LayerNorm

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
from heedful.exchange.hf.rules import to_ours
from heedful.exchange.hf.t5 import TABLE, config_from_hf, config_to_hf, rules
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.models.seq2seq import Seq2Seq
from loud import make_loud
from nearly import close

PAD, EOS = 0, 1
SPECIAL = Special(pad=PAD, start=PAD, end=EOS)
TINY: dict[str, Any] = {
    "vocab_size": 37,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 24,
    "num_layers": 3,
    "num_decoder_layers": 2,  # not more than of the encoder: their cache has as many
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 9,
    "decoder_start_token_id": PAD,
    "attn_implementation": "eager",
}
VARIANTS: dict[str, dict[str, Any]] = {
    "1.0": {},
    "1.1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "1.1, other functions": {
        "feed_forward_proj": "gated-silu",
        "tie_word_embeddings": False,
        "layer_norm_epsilon": 0.1,
    },
}
EMBEDDINGS = 3.0


def theirs_with(**settings: Any) -> T5ForConditionalGeneration:
    """Their class makes the output matrix one with the others, and parts them when it reads a file that has both."""
    theirs = T5ForConditionalGeneration(T5Config(**TINY | settings))
    if not theirs.config.scale_decoder_outputs:
        theirs.lm_head.weight = nn.Parameter(theirs.lm_head.weight.detach().clone())
    make_loud(theirs, norm=1.0, shared=EMBEDDINGS)
    return theirs


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    theirs = theirs_with(**VARIANTS[request.param])
    config = config_from_hf(theirs.config.to_dict())
    return pair_of(theirs, config, rules(config), SPECIAL)


def test_logits(pair: Pair) -> None:
    check_logits(pair)


def test_gradients_of_every_parameter(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their norm computes in single precision whatever it gets, so here it is torch's, which is the same formula."""

    def norm(self: T5LayerNorm, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weight, self.variance_epsilon)

    monkeypatch.setattr(T5LayerNorm, "forward", norm)
    check_gradients(pair)


def test_cached_steps(pair: Pair) -> None:
    """Of which the last are further from the first than distances are told apart."""
    check_cached_steps(pair)


@pytest.mark.parametrize("width", [1, 4])
def test_what_is_generated(pair: Pair, width: int) -> None:
    check_generated(pair, width=width)


def test_dropout_stands_where_theirs_does(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    check_dropout(pair, monkeypatch)


def test_there_and_back_is_identity(pair: Pair) -> None:
    check_there_and_back(pair)


def test_their_file_may_hold_tied_matrices_once(pair: Pair) -> None:
    check_tied_once(pair)


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_what_we_export_runs_there(tmp_path: Path, name: str) -> None:
    config = config_from_hf(
        {"model_type": "t5"} | {key: TINY[key] for key in TINY.keys() & {*TABLE.keys}} | VARIANTS[name]
    )
    ours = Seq2Seq(config).eval()
    make_loud(ours, norm=1.0, shared=EMBEDDINGS)
    told = config_to_hf(config, pad=PAD, start=PAD, end=EOS)
    theirs = T5ForConditionalGeneration.from_pretrained(export(tmp_path, ours, rules(config), told))
    assert theirs.config.scale_decoder_outputs == config.scaled_output == (config.tied == "all")
    pair = Pair(theirs, ours, rules(config), SPECIAL)
    close(*both_logits(pair, batch(pair)))
    search = theirs.generation_config
    assert (search.pad_token_id, search.decoder_start_token_id, search.eos_token_id) == (PAD, PAD, EOS)


PUBLISHED: dict[str, Any] = {  # what google-t5/t5-small says
    "architectures": ["T5ForConditionalGeneration"],
    "d_ff": 2048,
    "d_kv": 64,
    "d_model": 512,
    "decoder_start_token_id": 0,
    "dropout_rate": 0.1,
    "eos_token_id": 1,
    "initializer_factor": 1.0,
    "is_encoder_decoder": True,
    "layer_norm_epsilon": 1e-06,
    "model_type": "t5",
    "n_positions": 512,
    "num_heads": 8,
    "num_layers": 6,
    "output_past": True,
    "pad_token_id": 0,
    "relative_attention_num_buckets": 32,
    "task_specific_params": {"summarization": {"num_beams": 4}},
    "vocab_size": 32128,
}
NEWER = {  # and what google/flan-t5-small says beside
    "d_ff": 1024,
    "feed_forward_proj": "gated-gelu",
    "num_decoder_layers": 8,
    "num_heads": 6,
    "num_layers": 8,
    "relative_attention_max_distance": 128,
    "tie_word_embeddings": False,
    "transformers_version": "4.23.1",
    "use_cache": True,
}


def of(d_model: int, num_heads: int, d_ff: int, num_layers: int) -> dict[str, int]:
    return {"d_model": d_model, "num_heads": num_heads, "d_ff": d_ff, "num_layers": num_layers}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("t5-small", {}),
        ("t5-base", of(768, 12, 3072, 12)),
        ("t5-large", of(1024, 16, 4096, 24)),
        ("t5-v1.1-small", NEWER),
        ("t5-v1.1-base", NEWER | of(768, 12, 2048, 12) | {"num_decoder_layers": 12}),
        ("t5-v1.1-large", NEWER | of(1024, 16, 2816, 24) | {"num_decoder_layers": 24}),
    ],
)
def test_presets_are_the_published_models(name: str, change: dict[str, Any]) -> None:
    preset = translator_config(TRANSLATORS[name], source_vocab=32128, target_vocab=32128, joint=True)
    assert config_from_hf(PUBLISHED | change) == preset
    assert config_from_hf(config_to_hf(preset, pad=PAD, start=PAD, end=EOS)) == preset
    again = T5Config.from_dict(PUBLISHED | change)
    assert config_from_hf(again.to_dict()) == config_from_hf(again.to_diff_dict()) == preset


def test_what_they_leave_out_is_their_default() -> None:
    assert config_from_hf({"model_type": "t5"}) == config_from_hf(T5Config().to_dict())


@pytest.mark.parametrize("key", sorted({*TABLE.keys} - {"dense_act_fn", "is_gated_act"}))
def test_every_key_that_is_read_makes_a_difference(key: str) -> None:
    base = {"model_type": "t5"} | {key: TINY[key] for key in TINY.keys() & {*TABLE.keys}}
    other = {
        "dropout_rate": 0.5,
        "feed_forward_proj": "gated-silu",
        "layer_norm_epsilon": 0.1,
        "relative_attention_max_distance": 90,
        "scale_decoder_outputs": False,
        "tie_word_embeddings": False,
    }.get(key, 10)
    config = config_from_hf(base | {key: other})
    assert config != config_from_hf(base)
    assert config_to_hf(config, pad=PAD, start=PAD, end=EOS)[key] == other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_layer": 6}, "config.json: unknown key 'num_layer'"),
        ({"model_type": "umt5"}, "config.json: model_type is 'umt5': only 't5' can be read"),
        ({"is_decoder": True}, "config.json: is_decoder is True: only False can be read"),
        ({"feed_forward_proj": "gated-tanh"}, "config.json: feed_forward_proj 'tanh' is not one of relu, gelu"),
        ({"feed_forward_proj": None}, "config.json: feed_forward_proj 'None' is not one of relu, gelu"),
        ({"dense_act_fn": "silu"}, "config.json: dense_act_fn 'silu' and is_gated_act None where feed_forward_proj is"),
        ({"is_gated_act": True}, "config.json: dense_act_fn None and is_gated_act True where feed_forward_proj is"),
        ({"tie_word_embeddings": "no"}, "config.json.scaled_output: expected bool, found 'no'"),
        (
            {"tie_word_embeddings": False, "scale_decoder_outputs": True},
            "config.json: scale_decoder_outputs is True where tie_word_embeddings is False",
        ),
        ({"d_kv": "64"}, "config.json.encoder.block.attention.head_dim: expected int, found '64'"),
    ],
)
def test_what_we_cannot_build_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        config_from_hf(PUBLISHED | change)
    assert str(caught.value).startswith(message)


def test_tensors_that_are_not_accounted_for_are_refused(pair: Pair) -> None:
    state, own = pair.theirs.state_dict(), pair.weights()
    unread = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.zeros(1)}
    assert to_ours(pair.rules, state | unread, own).keys() == own.keys()
    with pytest.raises(InputError, match=r"no rule for their tensor 'encoder\.extra'"):
        to_ours(pair.rules, state | {"encoder.extra": torch.zeros(1)}, own)
    bias = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    with pytest.raises(InputError, match=r"nothing of theirs for our tensor 'decoder\.position\.table\.weight'"):
        to_ours(pair.rules, {key: value for key, value in state.items() if key != bias}, own)
    if pair.ours.config.tied == "inputs":
        with pytest.raises(InputError, match=r"nothing of theirs for our tensor 'head\.weight'"):
            to_ours(pair.rules, {key: value for key, value in state.items() if key != "lm_head.weight"}, own)


def test_what_t5_has_no_words_for_is_refused() -> None:
    for preset, words in (
        ("transformer-base", ("order = 'post'", "model.source.scaled = True", "model.encoder.final_norm = False")),
        ("bart-base", ("model.source.norm_eps = 1e-05", "model.encoder.block.bias = True", "output_bias = True")),
    ):
        config = translator_config(TRANSLATORS[preset], source_vocab=9, target_vocab=9, joint=True)
        with pytest.raises(InputError) as caught:
            config_to_hf(config, pad=PAD, start=PAD, end=EOS)
        assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("name", ["t5-small", "t5-v1.1-small"])
def test_no_name_has_two_rules(name: str) -> None:
    names = [
        rule.theirs for rule in rules(translator_config(TRANSLATORS[name], source_vocab=9, target_vocab=9, joint=True))
    ]
    assert len(names) == len(set(names))
