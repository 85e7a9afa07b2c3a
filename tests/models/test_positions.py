"""Whichever way positions are told, a model of each family learns what tokens it sees, which do not drown in them.

B batch, T tokens, K letters of the made words.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from heedful.models import make_model
from heedful.models.positions import FIXED, Positions
from heedful.models.presets import (
    ENCODERS,
    LANGUAGE_MODELS,
    PAINTERS,
    TRANSLATORS,
    encoder_config,
    lm_config,
    translator_config,
)
from heedful.models.vision_presets import VISION_TRANSFORMERS, vit_config

SCHEMES: tuple[Positions, ...] = get_args(Positions)
K, LENGTH, MASK, BEGIN, FIRST = 8, 16, 3, 1, 4  # the tokens FIRST to FIRST + K - 1 are letters
VOCAB = {"vocab_size": 16, "context_length": 16}
SMALL = {"d_model": 64, "n_heads": 4, "dropout": 0.0}
BATCH = 16
FREQUENCIES = math.log(K)  # the loss of a model that knows only how frequent letters are
# Such a model is within 0.06 of that in every mean of ten batches: three times its spread.
LEARNT = FREQUENCIES - 0.2
MOST = 100  # steps: those that learn need 12 to 70


def letters() -> Int[Tensor, "B 1"]:
    return torch.randint(FIRST, FIRST + K, (BATCH, 1))


def writing(model: nn.Module) -> Tensor:
    """The alphabet, round and round, from any letter."""
    text = FIRST + (letters() - FIRST + torch.arange(LENGTH + 1)) % K
    return F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def filling(model: nn.Module) -> Tensor:
    """One letter again and again, of which some are masked."""
    text = letters().expand(-1, LENGTH)
    hidden = torch.rand(text.shape) < 0.25
    hidden[:, 0], hidden[:, 1] = True, False
    return F.cross_entropy(model(text.masked_fill(hidden, MASK))[hidden], text[hidden])


def translating(model: nn.Module) -> Tensor:
    """One letter again and again into the same; the first one cannot be read off the target."""
    source = letters().expand(-1, LENGTH)
    target = torch.cat([torch.full((BATCH, 1), BEGIN), source], dim=1)
    return F.cross_entropy(model(source, target[:, :-1])[:, 0], target[:, 1])


def lm(preset: str, position: Positions) -> nn.Module:
    return make_model(lm_config(replace(LANGUAGE_MODELS[preset], **SMALL, n_layers=2, position=position), **VOCAB))


def encoder(preset: str, position: Positions) -> nn.Module:
    return make_model(encoder_config(replace(ENCODERS[preset], **SMALL, n_layers=2, position=position), **VOCAB))


def translator(preset: str, position: Positions) -> nn.Module:
    row: Any = TRANSLATORS[preset]
    layers = dict.fromkeys(("n_layers", "encoder_layers", "decoder_layers") & vars(row).keys(), 2)
    row = replace(row, **SMALL, **layers, d_ff=256, position=position)
    return make_model(translator_config(row, source_vocab=16, target_vocab=16, joint=True))


Loss = Callable[[nn.Module], Tensor]
FAMILIES: dict[str, tuple[Callable[[str, Positions], nn.Module], Loss]] = {
    "gpt-nano": (lm, writing),
    "gpt-1": (lm, writing),
    "llama-nano": (lm, writing),
    "encoder-tiny": (encoder, filling),
    "roberta-base": (encoder, filling),
    "modern-tiny": (encoder, filling),
    "transformer-tiny": (translator, translating),
    "decoder-tiny": (translator, translating),
}


def learns(model: nn.Module, loss: Loss, *, below: float, lr: float = 1e-3) -> bool:
    """Whether the mean loss of ten steps falls below this."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, betas=(0.9, 0.98))
    recent: list[float] = []
    for _ in range(MOST):
        found = loss(model)
        optimizer.zero_grad()
        found.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent = [*recent[-9:], found.item()]
        if len(recent) == 10 and sum(recent) / 10 < below:
            return True
    return False


@pytest.mark.parametrize("position", SCHEMES)
@pytest.mark.parametrize("preset", FAMILIES)
def test_a_model_learns(preset: str, position: Positions) -> None:
    make, loss = FAMILIES[preset]
    assert learns(make(preset, position), loss, below=LEARNT)


def lighter(model: nn.Module) -> Tensor:
    """Of noisy pictures: whether they are light or dark."""
    light = torch.randint(2, (BATCH,))
    return F.cross_entropy(model(0.3 * torch.randn(BATCH, 1, 16, 16) + light[:, None, None, None]), light)


@pytest.mark.parametrize("readout", ["cls", "mean"])
@pytest.mark.parametrize("position", ["learned", "sinusoidal"])
def test_a_vision_transformer_learns(position: Any, readout: Any) -> None:
    row = replace(VISION_TRANSFORMERS["vit-nano28"], n_layers=2, size=16, n_classes=2)
    model = make_model(vit_config(replace(row, position_embeddings=position, readout=readout)))
    assert learns(model, lighter, below=math.log(2) - 0.2)


def test_every_family_is_tried() -> None:
    """Those that a recipe can give positions to; the others have those of their papers."""
    for rows, tried in ((LANGUAGE_MODELS | PAINTERS, LANGUAGE_MODELS), (ENCODERS, ENCODERS)):
        assert {row.style for row in rows.values()} == {tried[name].style for name in FAMILIES if name in tried}
    kinds = {type(row) for row in TRANSLATORS.values() if hasattr(row, "position")}
    assert kinds == {type(TRANSLATORS[name]) for name in FAMILIES if name in TRANSLATORS}


@pytest.mark.parametrize("position", SCHEMES)
def test_only_fixed_vectors_need_scaled_tokens(position: Positions) -> None:
    """All other models begin with the weights that their papers give."""
    fixed = position in FIXED
    for row in LANGUAGE_MODELS.values():
        if not (row.compress and position == "rotary"):  # which is refused
            assert lm_config(replace(row, position=position)).embed.scaled == fixed
    for size in ENCODERS.values():
        assert encoder_config(replace(size, position=position)).embed.scaled == fixed
