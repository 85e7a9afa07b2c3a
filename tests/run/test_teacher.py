"""A student beside its teacher, in every task that has them: what is learnt, that a training continues with the same
bits, and which two do not go together."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cases import CASES, Case, labelled, recipe_of
from commands import heed
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run.recipe import DistilledRecipe, DistilSection, Recipe, override
from heedful.run.start import copy_weights
from heedful.store import files
from heedful.tasks import TASKS
from heedful.tasks.recipes import saved_recipe
from heedful.tasks.tag.layout import NONE
from heedful.verbs.train import train
from loud import make_loud
from made import finished, goes_on_alike

PLAN = {"steps": 4, "eval_every": 2, "tokens": 256, "precision": "fp32"}
WIDER = {"d_model": 32, "n_heads": 4, "n_layers": 2}
BINARY = "labels"  # of which each is a yes or a no


def rows_of_images(model: Any, batch: Any, task: Any) -> Tensor:
    used = [*dict.fromkeys([*batch.pictures, *batch.partners])]
    return model(task.pixels(used, batch.epoch))


# The logits of a model on a batch, a row for each thing that is predicted, by its own forward pass.
LOGITS: dict[str, Callable[[Any, Any, Any], Tensor]] = {
    "gpt": lambda model, batch, task: model(batch.tokens).flatten(0, 1),
    "experts": lambda model, batch, task: model(batch.tokens, batch.segments).flatten(0, 1),
    "fill": lambda model, batch, task: model(batch.tokens, batch.segments, batch.types)[batch.chosen],
    "pairs": lambda model, batch, task: model(batch.tokens, batch.segments, batch.types)[batch.chosen],
    "label": lambda model, batch, task: model(batch.tokens, batch.segments, batch.types),
    "labels": lambda model, batch, task: model(batch.tokens, batch.segments, batch.types),
    "tag": lambda model, batch, task: model(*batch[:3])[batch.labels != NONE],
    "classify-images": rows_of_images,
}


def case_of(name: str) -> Case:
    case = CASES[name]
    return replace(case, more=case.more | {"images": {"size": 16, "batch": 3}}) if name == "classify-images" else case


@pytest.fixture(scope="module", params=LOGITS)
def taught(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The name of a case, and a run of a wider model on its data."""
    case, out = case_of(request.param), tmp_path_factory.mktemp("teacher") / request.param
    finished(train(recipe_of(case, case.model | WIDER, PLAN), out, corpus=case.corpus))
    return request.param, out


def student_of(name: str, teacher: Path, **changes: object) -> Recipe:
    case = case_of(name)
    settings = {"distil.teacher": str(teacher)} | changes
    return override(recipe_of(case, case.model, PLAN), settings)


def job_of(name: str, recipe: Recipe) -> Any:
    job = TASKS[recipe.task].job
    assert job is not None
    return job()(recipe, case_of(name).corpus)


def test_a_loss_is_that_of_the_data_mixed_with_that_of_the_teacher(taught: tuple[str, Path]) -> None:
    """And its gradient: against the logits of both models' forward passes."""
    name, run = taught
    job = job_of(name, student_of(name, run, **{"distil.teacher_weight": 0.3, "distil.temperature": 3.0}))
    alone = job_of(name, recipe_of(case_of(name), case_of(name).model, PLAN))
    assert job.fingerprint == alone.fingerprint
    model = make_model(job.config).eval()
    make_loud(model, std=0.3)
    teacher = job.teacher.model
    task, plain = job.task(model), alone.task(model)
    batch = task.batches(0, model)[0]
    own, other = (LOGITS[name](each, batch, task) / 3.0 for each in (model, teacher))
    if name == BINARY:
        own, other = (torch.stack((part, torch.zeros_like(part)), -1) for part in (own, other))
    shares = other.detach().softmax(-1)
    apart = (shares * (shares.log() - own.log_softmax(-1))).sum()
    data = plain.loss(model, batch)
    wanted, found = 0.7 * data.total + 0.3 * 9.0 * apart, task.loss(model, batch)
    torch.testing.assert_close(found.total, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found.total.detach() - found.extra, data.total.detach() - data.extra, rtol=1e-5, atol=0)
    assert found.count == data.count
    assert found.beside["teacher_kl"].total == pytest.approx(apart.item(), rel=1e-4, abs=1e-5)
    parameters = [each for each in model.parameters() if each.requires_grad]
    grads = [torch.autograd.grad(total, parameters, allow_unused=True) for total in (found.total, wanted)]
    for one, two in zip(*grads, strict=True):
        if two is not None:
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4 * max(1.0, two.abs().max().item()))


def test_it_goes_on_as_if_nothing_had_happened_and_its_card_names_the_teacher(
    taught: tuple[str, Path], tmp_path: Path
) -> None:
    name, run = taught
    case = case_of(name)
    recipe = override(student_of(name, run), {"train.save_every": 2})
    goes_on_alike(recipe, case.corpus, tmp_path, after=3)
    assert f"with the model in `{run}` as its teacher," in (tmp_path / "whole" / "README.md").read_text()
    assert {path.name for path in run.glob("tokenizer*")} == {path.name for path in tmp_path.glob("whole/tokenizer*")}


@pytest.mark.parametrize("taught", ["gpt"], indirect=True)
def test_a_student_as_wide_may_learn_what_the_head_reads(taught: tuple[str, Path], tmp_path: Path) -> None:
    """And one with its teacher's weights has nothing more to learn of it."""
    name, run = taught
    recipe = student_of(name, run, **{f"model.{key}": value for key, value in WIDER.items()})
    job = job_of(name, override(recipe, {"distil.hidden_weight": 2.0, "distil.teacher_weight": 1.0}))
    job.teacher.check(job.config, job.spec(), job.tokenizer_hash)
    model: nn.Module = make_model(job.config).eval()
    make_loud(model, std=0.3)
    batch = job.task(model).batches(0, model)[0]
    read, other = (each.hidden(batch.tokens).flatten(0, 1) for each in (model, job.teacher.model))
    apart = 2 * (1 - F.cosine_similarity(read, other)).sum()
    found = job.task(model).loss(model, batch)
    torch.testing.assert_close(found.total, 4 * found.beside["teacher_kl"].total + apart, rtol=1e-4, atol=1e-3)
    copy_weights(model, str(run))
    same = job.task(model).loss(model, batch)
    assert same.total.item() == pytest.approx(0, abs=1e-2)


@pytest.mark.parametrize("taught", ["gpt"], indirect=True)
def test_what_a_teacher_cannot_teach_is_refused(taught: tuple[str, Path], tmp_path: Path) -> None:
    name, run = taught
    out, corpus = tmp_path / "out", CASES[name].corpus

    def refused(recipe: Recipe, what: str, corpus: Any = corpus) -> None:
        with pytest.raises(InputError, match=what):
            next(iter(train(recipe, out, corpus=corpus)))
        assert not out.exists()

    refused(student_of(name, run, **{"distil.hidden_weight": 1.0}), "32 features and the student 16")
    refused(student_of(name, run, **{"model.context_length": 48}), "context_length is 24, and that of the student 48")
    refused(student_of("fill", run), "a model for 'generate' does not teach one for 'fill'", CASES["fill"].corpus)
    other = recipe_of(CASES[name], CASES[name].model, PLAN)
    finished(train(other, tmp_path / "other", corpus=replace(corpus, train=["xyz zyx\n"] * 60)))
    recipe = override(other, {"distil.teacher": str(run), "start_from": str(tmp_path / "other"), "model": {}})
    refused(recipe, "the tokenizer of the student is another")


@pytest.mark.parametrize("taught", ["label", "tag", "classify-images"], indirect=True)
def test_a_teacher_of_other_classes_is_refused(taught: tuple[str, Path], tmp_path: Path) -> None:
    name, run = taught
    case = case_of(name)
    recipe = student_of(name, run)
    if name == "label":
        few = [one for one in case.corpus.train if one.label != "ba"]
        corpus = replace(case.corpus, train=few, valid=few[:6], tests={})
        for answer in ("score", "choice"):
            with pytest.raises(InputError, match=f"a {answer} has no probabilities of labels"):
                job_of("label", recipe).__class__(recipe, labelled(answer))
        other = override(recipe, {"preset": "encoder-tiny"})
        with pytest.raises(InputError, match="built on one and the student on the other"):
            next(iter(train(other, tmp_path / "other", corpus=case.corpus)))
    elif name == "tag":
        changed = [one._replace(labels=("O",) * len(one.words)) for one in case.corpus.train]
        corpus = replace(case.corpus, train=changed, valid=changed[:6], tests={})
    else:
        with pytest.raises(InputError, match="its preparation is"):
            next(iter(train(override(recipe, {"images.size": 32}), tmp_path / "other", corpus=case.corpus)))
        part = replace(case.corpus.train, labels=[*"acacac"])
        corpus = replace(case.corpus, train=part, valid=part, tests={})
    with pytest.raises(InputError, match="its labels is"):
        next(iter(train(recipe, tmp_path / "out", corpus=corpus)))


@pytest.mark.parametrize("taught", ["gpt"], indirect=True)
def test_a_training_continues_with_its_own_teacher_alone(taught: tuple[str, Path], tmp_path: Path) -> None:
    name, run = taught
    case, out = CASES[name], tmp_path / "out"
    copy = tmp_path / run.name  # of the same name, in another folder
    finished(train(student_of(name, run), out, corpus=case.corpus))
    files.make_folder(copy)
    for path in run.iterdir():
        if path.is_file():
            files.write_bytes(copy / path.name, path.read_bytes())
    longer = {"train.steps": 5}
    finished(train(override(student_of(name, copy), longer), out, corpus=case.corpus))
    for path in copy.iterdir():
        path.unlink()
    finished(train(recipe_of(case, case.model | WIDER, PLAN | {"seed": 2}), copy, corpus=case.corpus))
    with pytest.raises(InputError, match="the teacher is not the one that this run was begun with"):
        list(train(override(student_of(name, copy), {"train.steps": 6}), out, corpus=case.corpus))


def test_a_token_of_its_own_learns_from_the_teacher(tmp_path: Path) -> None:
    """DeiT: the first head learns the labels, the second one the teacher's answers."""
    case = case_of("classify-images")
    run = tmp_path / "run"
    finished(train(recipe_of(case, case.model | WIDER, PLAN), run, corpus=case.corpus))
    job = job_of("classify-images", student_of("classify-images", run, **{"model.teacher": True}))
    model = make_model(job.config).eval()
    make_loud(model, std=0.3)
    for weight, learns, rests in ((0.0, "head", "teacher_head"), (1.0, "teacher_head", "head")):
        plan = job.teacher.plan.model_copy(update={"teacher_weight": weight})
        job.teacher = replace(job.teacher, plan=plan)
        task = job.task(model)
        model.zero_grad()
        task.loss(model, task.batches(0, model)[0]).total.backward()
        assert model.get_submodule(learns).weight.grad.abs().max() > 0
        assert not model.get_submodule(rests).weight.grad.any()


def test_the_command_makes_a_student_of_its_teachers_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, run, out, text = case_of("gpt"), tmp_path / "run", tmp_path / "student", tmp_path / "text.txt"
    text.write_text("".join(case.corpus.train))
    finished(train(override(recipe_of(case, case.model | WIDER, PLAN), {"data.path": str(text)}), run))
    settings = ["model.d_model=16", "model.n_heads=2", "model.n_layers=1", "model.context_length=24", "train.steps=2"]
    words = ["--preset", "gpt-nano", "--device", "cpu", *(word for one in settings for word in ("--set", one))]
    assert heed("distil", run, *words, "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["steps"] == 2
    recipe = saved_recipe(out)
    assert recipe.data == saved_recipe(run).data
    assert isinstance(recipe, DistilledRecipe)
    assert recipe.distil == DistilSection(teacher=str(run))
    for more, what in (
        (["--with", str(run)], "--with is not used by this model"),
        (["--from", str(run)], "--preset and --from"),
        (["--set", "distil.heat=2"], "unknown key 'heat'"),
        (["--set", "distil.teacher_weight=2"], "distil.teacher_weight = 2"),
    ):
        assert heed("distil", run, *words, *more, "--out", tmp_path / "none") == 2
        assert what in capsys.readouterr().err
    (run / "task.json").write_text('{"task": "encode"}')
    assert heed("distil", run, *words, "--out", tmp_path / "none") == 2
    assert "a model for 'encode' does not teach" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
