"""Beginning with the model of another run: how strong its dropout is, and how many of its layers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.core.config import from_json, to_json
from heedful.errors import InputError
from heedful.models import config_of, make_model
from heedful.models.presets import ENCODERS, LANGUAGE_MODELS, TRANSLATORS, encoder_config, lm_config, translator_config
from heedful.run.folder import parameters
from heedful.run.start import copy_weights, with_dropout, with_layers
from heedful.store.model import save_model

ROWS = {**TRANSLATORS, **LANGUAGE_MODELS, **ENCODERS}


def configured(name: str, dropout: float) -> dict[str, Any]:
    row = replace(ROWS[name], dropout=dropout)
    if name in TRANSLATORS:
        return to_json(translator_config(row, source_vocab=300, target_vocab=300, joint=True))
    return to_json((lm_config if name in LANGUAGE_MODELS else encoder_config)(row, vocab_size=300))


@pytest.mark.parametrize("name", ROWS)
def test_dropout_is_where_the_preset_has_it(name: str) -> None:
    whole = configured(name, 0.1)
    assert with_dropout(whole, 0.3) == configured(name, 0.3)
    assert with_dropout(whole, 0) == configured(name, 0.0)
    assert whole == configured(name, 0.1), "it is not changed itself"


@pytest.mark.parametrize("name", ["transformer-tiny", "rnn-small", "decoder-tiny"])
def test_where_there_was_none_it_is_in_embeddings_and_branches(name: str) -> None:
    assert with_dropout(configured(name, 0.0), 0.2) == configured(name, 0.2)


@pytest.mark.parametrize("share", [1, -0.1, True, "0.1", None, float("nan")])
def test_what_is_no_share_is_refused(share: object) -> None:
    with pytest.raises(InputError, match=r"model\.dropout is .*, expected a number from 0 and below 1"):
        with_dropout(configured("transformer-tiny", 0.1), share)


def translator(**layers: int) -> Any:
    row = replace(TRANSLATORS["transformer-tiny"], d_model=16, n_heads=2, d_ff=32, **layers)
    return translator_config(row, source_vocab=300, target_vocab=300, joint=True)


def test_a_model_with_fewer_layers_has_some_of_those_at_equal_distances(tmp_path: Path) -> None:
    large = make_model(translator(encoder_layers=2, decoder_layers=6))
    save_model(tmp_path / "run", config_of(large), parameters(large), {})
    few = with_layers(config_of(large), "decoder", 3, where="x")
    assert from_json(type(large.config), few["model"], where="x") == translator(encoder_layers=2, decoder_layers=3)
    small = make_model(translator(encoder_layers=2, decoder_layers=3))
    copy_weights(small, str(tmp_path / "run"), stacks=["decoder"])
    for name, weight in parameters(small).items():
        if name.startswith("decoder.blocks."):
            _, _, number, rest = name.split(".", 3)
            name = f"decoder.blocks.{2 * int(number)}.{rest}"
        assert torch.equal(weight, parameters(large)[name])
    with pytest.raises(InputError, match="belongs to no parameter of this model"):
        copy_weights(small, str(tmp_path / "run"))


@pytest.mark.parametrize("number", [7, 0, True, "1", 1.5, None])
def test_more_layers_than_there_are_cannot_be_taken(number: object) -> None:
    config = {"kind": "seq2seq", "model": to_json(translator(encoder_layers=2, decoder_layers=6))}
    with pytest.raises(InputError, match="the model that it starts from has 6 layers there"):
        with_layers(config, "decoder", number, where="model.decoder_layers")


@pytest.mark.parametrize("name", ["rnn-small", "decoder-tiny"])
def test_what_has_no_such_layers_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no encoder with layers that are alike"):
        with_layers({"model": configured(name, 0.1)}, "encoder", 1, where="model.encoder_layers")
