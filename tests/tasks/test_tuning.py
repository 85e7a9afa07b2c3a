"""A translator that has learnt is trained further: what it is tuned with, what is mixed in, what it is worth before and
after."""

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

from heedful.data.text.corpus import Corpus
from heedful.data.text.pairs import Pairs
from heedful.errors import InputError, MissingError
from heedful.models import make_model
from heedful.run.events import Finished, Note, Trained
from heedful.run.recipe import override, to_yaml
from heedful.tasks.recipes import build
from heedful.tasks.translate.train import TranslateJob
from heedful.verbs.train import planned, train
from made import TRANSFORMER, backwards

FEW = {"train": TRANSFORMER["train"] | {"steps": 3, "save_every": 1, "eval_every": 3, "precision": "fp32"}}


def written(path: Path, pairs: Pairs) -> str:
    path.write_text("".join(f"{one}\t{other}\n" for one, other in zip(pairs.source, pairs.target, strict=True)))
    return str(path)


@pytest.fixture(scope="module")
def general(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A file of pairs, and a run that was trained on them."""
    folder = tmp_path_factory.mktemp("general")
    path = written(folder / "general.tsv", backwards(300, 1))
    recipe = build(TRANSFORMER | {"task": "translate"} | FEW, where="test")
    for _ in train(override(recipe, [f"data.path={path}", "train.steps=20"]), folder / "run"):
        pass
    return path, folder / "run"


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> str:
    turned = backwards(120, 9)
    return written(tmp_path_factory.mktemp("domain") / "domain.tsv", Pairs(turned.source, turned.source, "copies"))


def tuned_recipe(general: tuple[str, Path], domain: str, *settings: str, **given: object):
    own = {"data.path": domain, "start_from": str(general[1]), "data.mix": [f"{general[0]}:0.25"], **given}
    return planned("translate", Path("none"), own, settings=settings)


def test_rates_and_epochs_are_chosen_by_how_many_pairs_there_are(
    general: tuple[str, Path], domain: str, tmp_path: Path
) -> None:
    recipe, told = tuned_recipe(general, domain)
    plan = recipe.train
    assert (plan.lr, plan.epochs, plan.patience, plan.optimizer) == (1e-3, 122, 3, "adam")
    assert told == [
        'the model is tuned with train.optimizer="adam", train.lr=0.001, train.warmup=100, train.tokens=1024, '
        "train.rdrop=1.0, train.patience=3, train.epochs=122, as there are 120 pairs, unless --set says otherwise"
    ]
    more = written(tmp_path / "more.tsv", backwards(9000, 4))
    recipe, told = tuned_recipe(general, more, "train.patience=7", **{"train.minutes": 2.0})
    assert (recipe.train.lr, recipe.train.epochs, recipe.train.patience) == (1e-3, None, 7)
    assert recipe.train.rdrop == 0  # of two minutes
    assert "as there are 9,000 pairs" in told[-1]
    recipe, _ = tuned_recipe(general, more)
    assert (recipe.train.epochs, recipe.train.rdrop) == (14, 1)


def suited(path: str, out: Path = Path("none"), *settings: str, **given: object):
    return planned("translate", out, {"data.path": path, **given}, settings=settings)


def test_few_pairs_are_learnt_from_by_a_small_model_that_is_to_agree_with_itself(domain: str, tmp_path: Path) -> None:
    recipe, told = suited(domain)
    plan = recipe.train
    assert (recipe.preset, recipe.model) == ("transformer-tiny", {"dropout": 0.2})
    assert (plan.tokens, plan.lr, plan.rdrop, plan.steps, plan.epochs) == (1024, 4e-3, 1.0, None, None)
    assert told == [
        'the model is trained with preset="transformer-tiny", model.dropout=0.2, train.tokens=1024, train.lr=0.004, '
        "train.rdrop=1.0, as there are 120 pairs, unless --set says otherwise"
    ]
    corpus = Corpus(backwards(40, 2), backwards(4, 3), {}, "made", source="low", target="high")
    in_memory, told = planned("translate", Path("none"), {}, corpus=corpus)
    assert (in_memory.preset, "as there are 40 pairs" in told[0]) == ("transformer-tiny", True)


def test_some_ten_thousand_pairs_are_learnt_from_by_a_narrow_deep_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "some.tsv", backwards(11_000, 4))
    layers = {"encoder_layers": 4, "decoder_layers": 4, "dropout": 0.2}
    recipe, told = suited(path)
    plan = recipe.train
    assert (recipe.preset, recipe.model, plan.lr, plan.epochs) == ("transformer-tiny", layers, 4e-3, 43)
    assert (plan.tokens, plan.rdrop) == (2048, 0)
    assert "train.epochs=43, as there are 11,000 pairs, unless --set says otherwise" in told[0]
    timed, _ = suited(path, **{"train.minutes": 5.0})
    assert (timed.preset, timed.model, timed.train.epochs) == ("transformer-tiny", layers, None)
    short, told = suited(path, **{"train.minutes": 1.0})  # the size is chosen by what the machine does
    assert (short.preset, short.model, told) == ("auto", {}, [])
    summaries, told = suited(path, **{"data.scores": "rouge"})
    assert (summaries.preset, told) == ("transformer-small", [])
    monkeypatch.setattr("heedful.tasks.translate.training.tuning.SOME", 10_500)
    many, told = suited(path)
    assert (many.preset, many.model, many.train.rdrop, told) == ("transformer-small", {}, 0.0, [])


def test_what_is_said_stays(domain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, _ = suited(domain, Path("none"), "train.lr=1e-3", "train.rdrop=0")
    assert (recipe.train.lr, recipe.train.rdrop, recipe.train.tokens) == (1e-3, 0, 1024)
    named, told = suited(domain, preset="transformer-base")
    assert (named.preset, named.train.lr, named.model, told) == ("transformer-base", 2e-3, {}, [])
    wide, _ = suited(domain, Path("none"), "model.d_model=64")
    assert (wide.model, wide.train.tokens) == ({"d_model": 64}, 2048)
    monkeypatch.setattr("heedful.tasks.translate.training.tuning.LARGE", 10)
    large, told = suited(domain)
    assert (large.preset, told) == ("transformer-small", [])


def test_a_preset_is_not_taken_beside_a_run_that_has_its_own_sizes(general: tuple[str, Path], domain: str) -> None:
    for said in ({"preset": "transformer-tiny"}, {}):
        settings = () if said else ("preset=transformer-tiny",)
        with pytest.raises(InputError, match=r"the preset transformer-tiny beside the run .* to begin with"):
            tuned_recipe(general, domain, *settings, **said)


@pytest.mark.parametrize(("budget", "agreed"), [({"train.minutes": 1}, 0), ({"train.minutes": 5}, 1)])
def test_a_short_training_of_few_pairs_passes_each_batch_once(
    domain: str, budget: dict[str, object], agreed: float
) -> None:
    recipe, _ = suited(domain, **budget)
    assert (recipe.preset, recipe.train.rdrop) == ("transformer-tiny", agreed)


def test_a_training_that_has_begun_keeps_its_own(domain: str, tmp_path: Path) -> None:
    begun = build({"task": "translate", "data": {"path": domain}, "train": {"lr": 1e-3}}, where="test")
    (tmp_path / "recipe.yaml").write_text(to_yaml(begun))
    recipe, _ = suited(domain, tmp_path)
    assert recipe.model_dump() == begun.model_dump()


def test_a_training_that_has_begun_agrees_with_itself_as_before_under_another_budget(
    domain: str, tmp_path: Path
) -> None:
    begun, _ = suited(domain, tmp_path)
    (tmp_path / "recipe.yaml").write_text(to_yaml(begun))
    shorter, told = suited(domain, tmp_path, **{"train.minutes": 1})
    assert shorter.train.rdrop == begun.train.rdrop == 1
    assert told == [line.replace("as there are 120 pairs", "as it was begun") for line in suited(domain)[1]]
    (tmp_path / "recipe.yaml").write_text(to_yaml(suited(domain, Path("none"), **{"train.minutes": 1})[0]))
    assert suited(domain, tmp_path)[0].train.rdrop == 0


def test_a_folder_of_another_task_lends_nothing(domain: str, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(to_yaml(build({"task": "classify"}, where="test")))
    assert suited(domain, tmp_path)[0] == suited(domain)[0]
    with pytest.raises(InputError, match="task = 'classify', not 'translate'"):
        next(train(suited(domain, tmp_path)[0], tmp_path))


def test_an_epoch_has_every_pair_of_the_data_and_a_share_of_the_mix(general: tuple[str, Path], domain: str) -> None:
    recipe, _ = tuned_recipe(general, domain)
    job = TranslateJob(recipe)
    own = len(job.corpus.train)
    task = job.task(make_model(job.config))
    orders = [task.order(epoch) for epoch in range(8)]
    for order in orders:
        assert sorted(i for i in order if i < own) == [*range(own)]
        assert len(order) == own + round(own / 3)
    assert {i for order in orders for i in order} == {*range(len(job.pairs))}
    texts = job.source.decode_batch([source for source, _ in job.pairs[own:]])
    assert texts == job.mixes[0].corpus.train.source
    assert any(note.startswith("mixed in, 25 % of each epoch: ") for note in job.notes)


def test_scores_before_and_after_on_both(general: tuple[str, Path], domain: str, tmp_path: Path) -> None:
    recipe, _ = tuned_recipe(general, domain, "train.steps=3", "decode.beam=1", "decode.longest=9")
    (finished,) = (event for event in train(recipe, tmp_path / "run") if isinstance(event, Finished))
    assert [*finished.scores] == ["test", "general, mixed in: test"]
    trained = json.loads((general[1] / "scores.json").read_text())["scores"]["test"]
    for each in finished.scores.values():
        assert {"bleu", "chrf", "bleu_before", "chrf_before"} <= each.keys()
    assert trained["chrf"] > 0
    card = (tmp_path / "run" / "README.md").read_text()
    assert "| test set | pairs | BLEU | chrF | exactly right | BLEU before | chrF before |" in card
    assert "with 25 % of each epoch from `" in card
    facts = json.loads((tmp_path / "run" / "data.json").read_text())
    (mixed,) = facts["mix"]
    assert {key: mixed[key] for key in ("path", "share", "pairs")} == {"path": general[0], "share": 0.25, "pairs": 288}


def test_what_is_mixed_in_is_the_same_after_an_interruption(
    general: tuple[str, Path], domain: str, tmp_path: Path
) -> None:
    recipe, _ = tuned_recipe(
        general, domain, "train.steps=6", "train.save_every=2", "train.eval_every=6", "train.precision=fp32"
    )
    for name, until in (("straight", 7), ("broken", 5)):
        for event in train(recipe, tmp_path / name):
            if isinstance(event, Trained) and event.step.step == until:
                break
    for _ in train(recipe, tmp_path / "broken", resume=True):
        pass
    one, other = (
        safetensors.torch.load_file(tmp_path / run / "checkpoints" / "step-6" / "weights.safetensors")
        for run in ("straight", "broken")
    )
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_a_mix_is_of_the_run(general: tuple[str, Path], domain: str, tmp_path: Path) -> None:
    """Another one is another training."""
    recipe, _ = tuned_recipe(general, domain, "train.steps=2")
    assert [event for event in train(recipe, tmp_path / "run") if isinstance(event, Note)]
    with pytest.raises(Exception, match=r"data\.mix"):
        next(train(override(recipe, ["data.mix=[]", "train.steps=3"]), tmp_path / "run"))


def test_a_start_that_is_gone_is_told_as_its_scores_are_missing(
    general: tuple[str, Path], domain: str, tmp_path: Path
) -> None:
    start = shutil.copytree(general[1], tmp_path / "start")
    recipe, _ = tuned_recipe((general[0], start), domain, "train.steps=2")
    told = [event.text for event in train(recipe, tmp_path / "run") if isinstance(event, Note)]
    assert not [text for text in told if "is not there" in text]
    shutil.rmtree(start)
    recipe = override(recipe, ["train.steps=4"])
    told = [event.text for event in train(recipe, tmp_path / "run") if isinstance(event, Note)]
    what = f"{start}, which this training began with, is not there: the scores of before are not told"
    assert told[-1] == what


@pytest.mark.parametrize("start", ["nowhere", "empty", "other"])
def test_what_cannot_be_begun_with_is_refused_before_the_pairs_are_read(
    start: str, domain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "task.json").write_text('{"task": "fill"}')
    recipe = override(build({"task": "translate"}, where="test"), {"data.path": domain})
    recipe = override(recipe, {"start_from": str(tmp_path / start)})
    monkeypatch.setattr(TranslateJob, "read_pairs", lambda recipe: pytest.fail("the pairs are read"))
    with pytest.raises((InputError, MissingError)) as caught:
        list(train(recipe, tmp_path / "run"))
    assert caught.value.where == str(tmp_path / start)
    assert not (tmp_path / "run").exists()
