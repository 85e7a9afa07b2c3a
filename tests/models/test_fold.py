"""AlphaFold in small: the laws of the whole, with recycling."""

import pytest
import torch
from torch import Tensor

from heedful.models import config_of, model_from
from heedful.models.fold import N_KINDS, Fold, Folded, FoldSize, fold_config, limits
from loud import make_loud

B, N, R = 2, 4, 6
ROW = FoldSize(n_layers=1, d_msa=8, d_pair=8, n_heads=2, head_dim=4, structure_layers=2, recycles=2, distances=10)


@pytest.fixture
def model() -> Fold:
    return make_loud(Fold(fold_config(ROW)), std=0.3, norm=1.0).eval()


@pytest.fixture
def sequences() -> Tensor:
    return torch.randint(N_KINDS, (B, N, R))


def parts(folded: Folded) -> list[Tensor]:
    frames = folded.structure.frames[-1]
    return [folded.distances, folded.agreement, frames.origin, frames.rotation, folded.structure.angles]


def close(one: Folded, other: Folded) -> None:
    for own, expected in zip(parts(one), parts(other), strict=True):
        largest = float(expected.detach().abs().max().clamp(min=1))
        torch.testing.assert_close(own, expected, rtol=1e-5, atol=2e-5 * largest)


def row_of(folded: Folded, row: int, length: int) -> list[Tensor]:
    distances, *rest = parts(folded)
    return [distances[row : row + 1, :length, :length], *(part[row : row + 1, :length] for part in rest)]


def test_padding_of_residues_and_of_sequences_changes_nothing(model: Fold, sequences: Tensor) -> None:
    valid = torch.arange(R) < torch.tensor([[R - 2], [R]])
    related = torch.arange(N) < torch.tensor([[N], [N - 1]])
    rows = model(sequences, valid, related)
    alone = (model(sequences[:1, :, : R - 2]), model(sequences[1:, : N - 1]))
    for row, (single, length) in enumerate(zip(alone, (R - 2, R), strict=True)):
        for own, expected in zip(row_of(rows, row, length), parts(single), strict=True):
            largest = float(expected.detach().abs().max().clamp(min=1))
            torch.testing.assert_close(own, expected, rtol=1e-5, atol=2e-5 * largest)


def test_the_order_of_relatives_is_not_seen(model: Fold, sequences: Tensor) -> None:
    close(model(sequences[:, [0, 3, 1, 2]]), model(sequences))


def test_distances_are_the_same_in_either_order(model: Fold, sequences: Tensor) -> None:
    distances = model(sequences).distances
    torch.testing.assert_close(distances, distances.transpose(1, 2))
    assert distances.shape[-1] == len(limits(ROW.distances)) + 1


def test_recycling_goes_on_from_what_was_found(model: Fold, sequences: Tensor) -> None:
    """As many passes as configured; gradients come from the last alone."""
    plain = model(sequences)
    close(model(sequences, recycles=ROW.recycles), plain)
    before = None
    for _ in range(ROW.recycles + 1):
        folded, before = model._one(sequences, None, None, before)
    close(folded, plain)
    assert not torch.allclose(model(sequences, recycles=0).distances, plain.distances, atol=1e-2)
    passes = list[bool]()
    model.trunk.blocks[0].register_forward_hook(lambda block, given, out: passes.append(out[1].requires_grad))
    model(sequences)
    assert passes == [False, False, True]


def test_a_new_model_begins_at_rest() -> None:
    frames = Fold(fold_config(ROW))(torch.zeros(1, 1, 4, dtype=torch.long)).structure.frames[-1]
    assert frames.origin.abs().max() == 0


def test_its_configuration_is_kept(model: Fold, sequences: Tensor) -> None:
    again = model_from(config_of(model)).eval()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(sequences).distances, model(sequences).distances)
