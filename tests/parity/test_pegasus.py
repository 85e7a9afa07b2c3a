"""Pegasus against Hugging Face's, with loud weights; see `compared` for what is asked."""

from typing import Any

import pytest
from torch import nn
from transformers import PegasusConfig, PegasusForConditionalGeneration

from compared import (
    Pair,
    Special,
    check_cached_steps,
    check_dropout,
    check_generated,
    check_gradients,
    check_logits,
    check_there_and_back,
    check_tied_once,
    pair_of,
)
from heedful.exchange.hf.pegasus import RULES, config_from_hf
from loud import make_loud

PAD, EOS = 0, 1
SPECIAL = Special(pad=PAD, start=PAD, end=EOS)
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
    "published": {"scale_embedding": True, "activation_function": "relu"},
    "plain": {},
}


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    theirs = PegasusForConditionalGeneration(PegasusConfig(**TINY | VARIANTS[request.param]))
    make_loud(theirs, norm=1.0)
    nn.init.normal_(theirs.final_logits_bias, std=0.4)
    return pair_of(theirs, config_from_hf(theirs.config.to_dict()), RULES, SPECIAL)


def test_logits(pair: Pair) -> None:
    check_logits(pair)


def test_gradients_of_every_parameter(pair: Pair) -> None:
    """Theirs gives none to the token that pads, with which every target begins, unless it is told of no padding."""
    for module in pair.theirs.modules():
        if isinstance(module, nn.Embedding):
            module.padding_idx = None
    check_gradients(pair)


def test_cached_steps(pair: Pair) -> None:
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
