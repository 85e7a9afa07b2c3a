"""Proteins: what a model reads of a chain, its loss, baselines, and what it answers by every door."""

from pathlib import Path

import numpy
import pytest
import torch

import heedful
from cases import ALIGNED, CASES, CHAINS, PROTEINS
from commands import heed
from heedful.data.proteins.chain import Chain, chain_of
from heedful.data.proteins.made import made_chain
from heedful.data.proteins.structures import read_structure
from heedful.errors import InputError, TextError, TooMuchError
from heedful.models.fold import Fold, Folded, fold_config
from heedful.models.fold import FoldSize as Size
from heedful.models.frames import Frames, backbone_torsions
from heedful.models.structure import Structure
from heedful.serve.limits import Limits
from heedful.tasks.fold.baselines import by_prior, contact_prior, covariance
from heedful.tasks.fold.layout import PRIOR, batch_of, chain_losses
from heedful.tasks.fold.recipe import FoldRecipe
from heedful.tasks.fold.train import FoldTask
from heedful.tasks.fold.use import StructurePredictor
from heedful.tasks.recipes import build
from heedful.verbs.check import check
from loud import make_loud

SIZE = Size(n_layers=1, d_msa=8, d_pair=8, n_heads=2, head_dim=4, structure_layers=2, distances=12)


def test_a_batch_is_its_chains() -> None:
    gapped = chain_of(ALIGNED)
    holed = CHAINS[0]._replace(backbone=CHAINS[0].backbone.copy())
    holed.backbone[2, 1] = numpy.nan
    batch = batch_of([gapped, holed])
    assert batch.sequences.shape == (2, len(holed.sequences), len(holed.letters))
    assert batch.valid.sum(1).tolist() == [9, len(holed.letters)]
    assert batch.related.sum(1).tolist() == [2, len(holed.sequences)]
    assert batch.known.sum(1).tolist() == [0, len(holed.letters) - 1]
    assert not batch.known[1, 2]
    assert batch.backbone.isfinite().all()


def test_an_epoch_has_each_chain_once_and_other_parts_and_relatives() -> None:
    plan = {"task": "fold", "data": {"sequences": 3, "residues": 16}, "train": {"tokens": 64}}
    recipe = build(plan, where="test")
    assert isinstance(recipe, FoldRecipe)
    task, seen = FoldTask(CHAINS, recipe), []
    for epoch in range(2):
        rows = [chain for batch in task.batches(epoch, None) for chain in batch.rows]
        assert sorted(chain.name for chain in rows) == sorted(chain.name for chain in CHAINS)
        whole = {chain.name: chain for chain in CHAINS}
        for chain in rows:
            assert chain.sequences.shape == (3, 16)
            assert chain.letters in whole[chain.name].letters
        seen.append({chain.name: chain.fingerprint for chain in rows})
        assert task.batches(epoch, None)[0].rows[0].fingerprint == rows[0].fingerprint
    assert seen[0] != seen[1]


def losses_of(model: Fold, chains: list[Chain]) -> torch.Tensor:
    batch = batch_of(chains)
    return chain_losses(model(batch.sequences, batch.valid, batch.related), batch)


def test_the_loss_of_a_chain_depends_on_nothing_else() -> None:
    """Not on the chains beside it, nor on how the true structure is turned; and it has a gradient for every weight."""
    model = make_loud(Fold(fold_config(SIZE)), std=0.3, norm=1.0)
    chains = [CHAINS[0], CHAINS[1]._replace(sequences=CHAINS[1].sequences[:2]), chain_of(ALIGNED)]
    together = losses_of(model, chains)
    for chain, loss in zip(chains, together, strict=True):
        torch.testing.assert_close(losses_of(model, [chain])[0], loss, rtol=1e-4, atol=1e-5)
    turn = Frames.of_backbone(torch.randn(3, 3)).rotation.numpy()
    turned = CHAINS[0]._replace(backbone=(CHAINS[0].backbone @ turn + 5.0).astype(numpy.float32))
    torch.testing.assert_close(losses_of(model, [turned])[0], together[0], rtol=1e-4, atol=1e-5)
    together[0].backward()
    without = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert without == []


def test_what_is_right_costs_next_to_nothing() -> None:
    batch = batch_of([CHAINS[0]])
    true, R = Frames.of_backbone(batch.backbone), batch.known.shape[1]
    between = torch.bucketize(torch.cdist(true.origin, true.origin), torch.linspace(2.3125, 21.6875, 11))
    sure = 50.0 * torch.nn.functional.one_hot(between, 12)
    level = torch.full((1, R), 49)
    told = 50.0 * torch.nn.functional.one_hot(level, 50)
    structure = Structure([true], backbone_torsions(batch.backbone), torch.zeros(1, R, 8))
    assert float(chain_losses(Folded(sure.float(), told.float(), structure), batch)) < 0.02
    mirror = Frames.of_backbone(batch.backbone * torch.tensor([1.0, 1.0, -1.0]))
    wrong = Structure([mirror], structure.angles, structure.single)
    assert float(chain_losses(Folded(sure.float(), told.float(), wrong), batch)) > 0.3


# Baselines


def test_covariance_finds_columns_that_change_together() -> None:
    draw = numpy.random.default_rng(0)
    rows = draw.integers(20, size=(200, 12)).astype(numpy.int8)
    rows[:, 9] = (rows[:, 2] + 7) % 20
    scores = covariance(Chain("made", rows))
    numpy.testing.assert_allclose(scores, scores.T, atol=1e-6)
    assert {*numpy.argwhere(numpy.triu(scores, 1) == numpy.triu(scores, 1).max())[0].tolist()} == {2, 9}
    assert numpy.isfinite(covariance(chain_of("ACDEFGHIKL"))).all()


def test_the_prior_is_how_often_residues_touch() -> None:
    prior = contact_prior(CHAINS)
    assert len(prior) == PRIOR
    assert prior[:2] == (1.0, 1.0)
    count = touch = 0
    for chain in CHAINS:
        ca = chain.backbone[:, 1]
        apart = numpy.linalg.norm(ca[7:] - ca[:-7], axis=1)
        count, touch = count + len(apart), touch + int((apart < 8).sum())
    assert prior[7] == pytest.approx(touch / count)
    assert by_prior(CHAINS[0], prior)[3, 10] == prior[7]


# In use


@pytest.fixture
def predictor() -> StructurePredictor:
    torch.manual_seed(1)
    about = {"task": "fold", "sequences": 2, "prior": [0.0] * PRIOR}
    return StructurePredictor(make_loud(Fold(fold_config(SIZE)), std=0.3, norm=1.0), about)


def test_a_prediction(predictor: StructurePredictor) -> None:
    found = predictor.fold(ALIGNED)
    R = 9
    assert found.contacts.shape == (R, R)
    assert found.backbone.shape == (R, 3, 3)
    assert ((found.confidence > 0) & (found.confidence < 100)).all()
    assert ((found.contacts >= 0) & (found.contacts <= 1 + 1e-6)).all()
    chances = [chance for _, _, chance in found.surest()]
    assert chances == sorted(chances, reverse=True)
    assert all(other - one >= 6 for one, other, _ in found.surest())
    alone, listed = predictor.fold("acdefghik"), predictor.fold([ALIGNED, "ACDEFGHIK"])
    assert not numpy.allclose(alone.contacts, found.contacts)
    numpy.testing.assert_array_equal(listed[1].contacts, alone.contacts)
    more = f"{ALIGNED}>third\nWWWWWWWWW\n"
    numpy.testing.assert_array_equal(predictor.fold(more).contacts, found.contacts)  # of two it is told
    with pytest.raises(TextError, match="stands for no residue"):
        predictor.fold("AC?")


def test_a_chain_costs_its_length_three_times(predictor: StructurePredictor) -> None:
    """As pairs are compared with pairs: what is kept at the same time is asked for before anything is computed."""
    most = Limits().at_once

    class Spent:
        at_once = most

        def spend(self, tokens: int, at_once: int) -> None:
            if at_once > most:
                raise TooMuchError(f"{at_once} at the same time")
            raise KeyboardInterrupt

    served = predictor.changed(budget=Spent())
    with pytest.raises(KeyboardInterrupt):
        served.fold("A" * 320)
    with pytest.raises(TooMuchError, match="at the same time"):
        served.fold("A" * 330)


def test_scores(predictor: StructurePredictor) -> None:
    scores = predictor.measure(CHAINS)
    assert scores.keys() == {"precision", "lddt", "precision_covariance", "precision_prior"}
    assert all(0 <= value <= 1 for value in scores.values())
    with pytest.raises(InputError, match="no structure of protein is known"):
        predictor.measure([chain_of("ACDEFGHIKL")])


def test_a_run_by_every_door(run_of, tmp_path: Path, capsys) -> None:
    run = run_of("fold")
    model = heedful.load(run, heedful.StructurePredictor)
    assert [law.name for law in check(run) if not law.holds] == []
    (record,) = model.ask("fold", [ALIGNED])[0]
    assert (
        record["contacts"] == [list(each) for each in model.fold(ALIGNED).surest()]
        or record["contacts"] == model.fold(ALIGNED).surest()
    )
    for kind in (".cif", ".pdb"):
        out = tmp_path / f"one{kind}"
        assert heed("fold", run, PROTEINS[0], "--out", out, "--picture", tmp_path / "one.svg") == 0
        (back,) = read_structure(out)
        found = model.fold(Path(PROTEINS[0]).read_text())
        assert back.letters == found.chain.letters
        numpy.testing.assert_allclose(back.backbone, found.backbone, atol=2e-3)
    assert (tmp_path / "one.svg").read_bytes().startswith(b"<?xml")
    assert capsys.readouterr().out.startswith(f"one\t{len(found.confidence)} residues\tconfidence ")
    for wrong in (["--out", "x.txt"], ["--picture", "x.cif"], ["two", "--out", "x.cif"]):
        assert heed("fold", run, PROTEINS[0], *wrong) == 2
        assert "of one protein" in capsys.readouterr().err
    assert heed("eval", run, "--data", "chains:1") == 0
    assert "precision covariance" in capsys.readouterr().out


def test_sizes_are_those_of_the_case() -> None:
    assert CASES["fold"].corpus.train[0].fingerprint == made_chain(0).fingerprint
