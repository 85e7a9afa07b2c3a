"""Beginning with the model of another run: what may be said of it anew is how strong its dropout is."""

from dataclasses import replace
from typing import Any

import pytest

from heedful.core.config import to_json
from heedful.errors import InputError
from heedful.models.presets import ENCODERS, LANGUAGE_MODELS, TRANSLATORS, encoder_config, lm_config, translator_config
from heedful.run.start import with_dropout

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
