"""A whole run: what it leaves behind, that it goes on with the same numbers, and what it refuses."""

import dataclasses
import json
import math
import random
import re
import shlex
import shutil
import string

import pytest
import safetensors.torch
import torch
from PIL import Image

import heedful
from cases import CASES, learnt, recipe_of
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import HeedError, InputError, MissingError, StorageError
from heedful.look.draw import curves, to_bytes
from heedful.models import make_model
from heedful.models.presets import TRANSLATORS
from heedful.run.events import Checkpointed, Finished, Measured, Note, Trained
from heedful.run.job import Measurement
from heedful.run.recipe import override, to_yaml
from heedful.store import files
from heedful.tasks import TASKS
from heedful.tasks.recipes import build, saved_recipe
from heedful.tasks.translate.train import TranslateJob
from heedful.verbs.check import check
from heedful.verbs.train import train
from made import DECODER, RECURRENT, RUN_FILES, TRANSFORMER, made_corpus, made_recipe


@pytest.fixture(scope="module")
def finished(tmp_path_factory, corpus):
    out = tmp_path_factory.mktemp("run") / "small"
    return out, list(train(made_recipe(), out, corpus=corpus))


def test_a_run_folder_is_complete(finished, corpus):
    out, events = finished
    assert {type(event) for event in events} == {Note, Trained, Measured, Checkpointed, Finished}
    assert [event.step.step for event in events if isinstance(event, Trained)] == list(range(1, 13))
    assert {path.name for path in out.iterdir()} >= RUN_FILES
    assert [path.name for path in sorted((out / "checkpoints").iterdir())] == ["step-12", "step-8"]
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "bleu" in row] == [6, 12]
    assert "a note" in (out / "README.md").read_text()
    assert saved_recipe(out) == made_recipe()


def test_one_text_alone_is_translated_alone(finished):
    model = heedful.load(finished[0])
    assert model.translate("ba de gi") == model.translate(["ba de gi"])[0]


def test_what_becomes_what_is_said_before_time_is_spent_on_it(tmp_path, corpus, monkeypatch):
    def learns(*words, **more):
        told.append("learns a vocabulary")
        return train_tokenizer(*words, **more)

    monkeypatch.setattr("heedful.tasks.translate.training.tokenizers.train_tokenizer", learns)
    pairs = "".join(f"{a}\t{b}\n" for a, b in zip(corpus.train.source, corpus.train.target, strict=True))
    (tmp_path / "pairs.tsv").write_text("English\tFrench\n" + pairs)
    recipe = override(made_recipe(steps=1), [f"data.path={tmp_path / 'pairs.tsv'}"])
    told = []
    for event in train(recipe, tmp_path / "run"):
        if isinstance(event, Trained):
            break
        told += [event.text] if isinstance(event, Note) else []
    assert told[1] == "translates English to French (the other way: --source French --target English)"
    assert told[2].startswith("the first pair: ")
    assert " -> " in told[2]
    assert told[3] == "learns a vocabulary"
    assert len({*told}) == len(told)


def test_the_steps_of_an_epoch_are_those_that_are_made(tmp_path, corpus):
    """The last of an epoch may have fewer batches."""

    def told(accumulate):
        recipe = made_recipe(steps=2, accumulate=accumulate, tokens=500)
        events = list(train(recipe, tmp_path / f"{accumulate}", corpus=corpus))
        assert [each.step.epoch for each in events if isinstance(each, Trained)] == [0, int(accumulate == 1000)]
        (found,) = (event.text for event in events if isinstance(event, Note) and "an epoch" in event.text)
        return int(re.search(r"([0-9]+) steps? an epoch", found)[1])

    batches = told(1)
    assert batches % 4 == 1
    assert (told(4), told(1000)) == (batches // 4 + 1, 1)


def test_the_time_that_is_left_is_told_once_it_is_known_and_stays_within_the_budget(tmp_path, corpus):
    def left(**plan):
        events = train(made_recipe(steps=12, **plan), tmp_path / f"run-{len(plan)}", corpus=corpus)
        return [event.seconds_left for event in events if isinstance(event, Trained)]

    by_steps = left()
    assert by_steps[:4] == [None] * 4
    assert None not in by_steps[4:]
    assert 0 <= by_steps[-1] < 60
    by_minutes = left(minutes=100.0)
    assert all(0 <= seconds <= 6000 for seconds in by_minutes)


@pytest.mark.parametrize(("pairs", "least", "most"), [(20, 30, 30), (120, 30, 30), (600, 70, 110)])
def test_few_pairs_are_gone_through_more_often_without_a_budget(tmp_path, monkeypatch, pairs, least, most):
    """Ten times, or for so many steps as it takes to learn anything."""
    monkeypatch.setattr("heedful.tasks.translate.recipe.TranslateRecipe.FEWEST_STEPS", 30)
    recipe = made_recipe(steps="null", eval_every=1000, eval_sentences=1)
    *_, last = (
        event for event in train(recipe, tmp_path / "run", corpus=made_corpus(pairs)) if isinstance(event, Trained)
    )
    assert least <= last.step.step <= most


def test_a_training_that_was_too_short_says_so(tmp_path, corpus, monkeypatch):
    """By the steps that it made, or by a loss that no look at the source is needed for; and not otherwise, nor where a
    loss says that so few were enough."""

    def told(name, **plan):
        events = list(train(made_recipe(steps=2, eval_every=2, **plan), tmp_path / name, corpus=corpus))
        assert isinstance(events[-1], Finished)
        return [event.verdict for event in events[-1:] if event.verdict.startswith("trained too little")]

    (by_loss,) = told("loss")
    assert re.search(r"a loss of \d+\.\d\d is no better than \d\.\d\d, .* more time .* a smaller --preset", by_loss)
    monkeypatch.setattr(TranslateJob, "chance", lambda job: 1e9)
    assert told("learnt") == []
    monkeypatch.setattr(TranslateJob, "chance", lambda job: 20.0)
    (by_steps,) = told("steps")
    assert re.search(r"2 steps, 0\.\d+ times the data, are few", by_steps)
    monkeypatch.setattr("heedful.run.measuring.FEWEST", 2)
    monkeypatch.setattr("heedful.run.measuring.FEW", 2)
    assert told("enough") == []


FLAT, FALLING = [3.0, 2.0, 2.0], [3.0, 2.5, 2.0]


@pytest.mark.parametrize(
    ("losses", "bleu", "enough", "verdict", "command"),
    [
        (
            FLAT,
            25.0,
            10,
            r"good for the gist, .*, of texts like its own \(BLEU 25\.0 on test\)$",
            "translate",
        ),
        (FALLING, 45.0, 10, r"good for drafts that need few corrections.*; its loss was still falling", "train"),
        (
            FLAT,
            35.0,
            1000,
            r"for drafts that a translator corrects.*; 400 pairs are few .* published model",
            "import",
        ),
        (FLAT, 0.4, 10, r"of no use yet: no score is better than luck$", "translate"),
    ],
)
def test_a_training_ends_with_what_it_is_good_for_and_what_comes_next(
    tmp_path, corpus, monkeypatch, losses, bleu, enough, verdict, command
):
    course = iter(losses)
    monkeypatch.setattr(TranslateJob, "measure", lambda job, model: Measurement(next(course), {"bleu": bleu}, bleu, ""))
    monkeypatch.setattr(TranslateJob, "finish", lambda *_: {"test": {"bleu": bleu, "chrf": bleu}})
    monkeypatch.setattr(TranslateJob, "chance", lambda job: 1e9)
    monkeypatch.setattr("heedful.tasks.translate.train.ENOUGH", enough)
    out = tmp_path / "a run"
    recipe = override(made_recipe(steps=3, eval_every=1), {"data.path": "own pairs.tsv"})
    *_, finished = train(recipe, out, corpus=made_corpus())
    assert re.search(verdict, finished.verdict)
    assert finished.verdict in (out / "log.txt").read_text().splitlines()
    assert finished.commands[0].startswith(f"heed {command} ")
    assert all(str(out) in shlex.split(line) for line in finished.commands if str(out) in line)
    assert f"heed translate '{out}' " in (out / "README.md").read_text()
    if command == "train":
        assert finished.commands[0] == f"heed train translate --resume --out '{out}' --set train.steps=6"
    if command == "import":
        assert "--data 'own pairs.tsv'" in finished.commands[1]


@pytest.mark.parametrize("chance", [1e9, 0.1], ids=["enough", "trained too little"])
@pytest.mark.parametrize(("before", "better"), [(49.1, False), (0.4, True), (None, True)])
def test_a_model_that_is_no_better_than_that_it_began_with_is_not_advised(
    tmp_path, corpus, monkeypatch, chance, before, better
):
    """Only later measurements choose the best model, none of which need be better than what was there at first."""
    scores = {"bleu": 25.0, "chrf": 40.0} | ({} if before is None else {"bleu_before": before, "chrf_before": 99.0})
    monkeypatch.setattr(TranslateJob, "measure", lambda job, model: Measurement(2.0, {"bleu": 25.0}, 25.0, ""))
    monkeypatch.setattr(TranslateJob, "finish", lambda *_: {"test": scores})
    monkeypatch.setattr(TranslateJob, "chance", lambda job: chance)
    recipe = override(made_recipe(steps=2, eval_every=1), {"data.path": "own pairs.tsv"})
    *_, finished = train(recipe, tmp_path / "run", corpus=corpus)
    told = "no better than the model that it began with (BLEU 25.0, BLEU 49.1 before, on test): keep "
    assert finished.verdict.startswith(told) is not better
    assert ("--resume" in finished.commands[0]) is (better and chance < 1)


def test_what_a_recipe_says_of_adam_is_done(tmp_path, corpus):
    def weights(name, **plan):
        for _ in train(made_recipe(steps=3, eval_every=3, **plan), tmp_path / name, corpus=corpus):
            pass
        return (tmp_path / name / "model.safetensors").read_bytes()

    plain = weights("plain")
    assert weights("same", beta1=0.9, beta2=0.98, epsilon=1e-9, weight_decay=0.0) == plain
    changed = {"beta1": 0.5, "beta2": 0.5, "epsilon": 0.1, "weight_decay": 0.5}
    assert plain not in [weights(key, **{key: value}) for key, value in changed.items()]


def test_patience_ends_a_training_that_gets_no_better_and_that_is_remembered(tmp_path, corpus, monkeypatch):
    """The third measurement is the best; the fourth is as good, and so kept, but no better."""
    ranks = {1: 1.0, 2: 0.0, 3: 2.0, 4: 2.0, 5: 1.5, 6: 1.0, 7: 3.0}

    def measure(job, model):
        return Measurement(1.0, {"bleu": 0.0}, ranks[next(steps)], "")

    def run(name, patience, *, until=100):
        events = []
        for event in train(made_recipe(steps=7, eval_every=1, patience=patience), tmp_path / name, corpus=corpus):
            events.append(event)
            if isinstance(event, Checkpointed) and event.step == until:
                break
        told = [event.text for event in events if isinstance(event, Note) and "stopped early" in event.text]
        return [event.step.step for event in events if isinstance(event, Trained)], told

    monkeypatch.setattr(TranslateJob, "measure", measure)
    steps = iter(range(1, 8))
    straight, told = run("straight", 3)
    assert straight == [1, 2, 3, 4, 5, 6]
    assert told == ["stopped early: 3 measurements in a row found no better model than that of step 4, which is kept"]
    assert run("straight", 3) == ([], told)
    steps = iter(range(7, 8))
    assert run("straight", 4) == ([7], [])
    steps = iter(range(1, 8))
    assert run("broken", 3, until=4) == ([1, 2, 3, 4], [])
    steps = iter(range(5, 8))
    assert run("broken", 3) == ([5, 6], told)


# BLEU and loss of each step: below 1 BLEU is luck, and the loss decides; then BLEU does.
BY_LUCK = [(0.3, 6.0), (0.7, 5.0), (0.0, 4.0), (0.4, 3.0), (0.9, 3.5), (0.8, 3.0)]
ABOVE = [*BY_LUCK[:5], (1.5, 3.4), (2.0, 3.6), (1.9, 2.0), (0.9, 1.0)]


@pytest.mark.parametrize(
    ("course", "bests", "kept"),
    [
        (BY_LUCK, [1, 2, 3, 4], "step 4, whose validation loss is the lowest, as no score there was better than luck"),
        (ABOVE, [1, 2, 3, 4, 6, 7], "step 7, the best on the validation pairs (BLEU 2.0"),
    ],
)
def test_where_a_score_is_luck_the_loss_decides(tmp_path, corpus, monkeypatch, course, bests, kept):
    """Which model is kept, when patience ends, and what is said of it; in one go, or in calls of one step."""

    def measured(name, until):
        steps = iter(course[until - 1 :] if until <= len(course) else course)
        monkeypatch.setattr(
            TranslateJob,
            "measure",
            lambda job, model: (lambda bleu, loss: Measurement(loss, {"bleu": bleu}, bleu, ""))(*next(steps)),
        )
        recipe = made_recipe(steps=min(until, 20), eval_every=1, save_every=1, patience=2)
        return [event for event in train(recipe, tmp_path / name, corpus=corpus) if isinstance(event, Measured)]

    whole = measured("whole", 20)
    apart = [event for until in range(1, len(course) + 1) for event in measured("apart", until)]
    for name, events in (("whole", whole), ("apart", apart)):
        assert [event.step for event in events] == [*range(1, len(course) + 1)]
        assert [event.step for event in events if event.best] == bests
        assert kept in (tmp_path / name / "README.md").read_text()
    assert measured("whole", 20) == []  # patience is used up, which is remembered


@pytest.mark.parametrize("name", CASES)
def test_every_score_has_a_floor(name):
    """A task that ranks models by a score says up to where that is luck: above no right answer at all."""
    case = CASES[name]
    job = TASKS[case.task].job()(recipe_of(case, case.model, {"eval_sentences": 3}), case.corpus)
    found = job.measure(make_model(job.config))
    if found.rank == -found.loss:
        assert job.floor() == -math.inf
    else:
        assert 0 < job.floor() < math.inf


@pytest.mark.parametrize("name", CASES)
def test_every_task_learns_in_bf16(name, tmp_path):
    """Where a machine is fast in it, a training chooses it."""
    (_, there), (_, wanted) = (
        learnt(CASES[name], tmp_path / precision, precision=precision, steps=1) for precision in ("bf16", "fp32")
    )
    assert there.keys() == wanted.keys()


def test_what_is_measured_after_the_last_checkpoint_is_remembered(tmp_path, corpus, monkeypatch):
    """The best model is of a step that had been saved already: a worse one does not take its place."""
    ranks = iter([1.0, 5.0, 3.0])
    monkeypatch.setattr(TranslateJob, "measure", lambda job, model: Measurement(1.0, {"bleu": 0.0}, next(ranks), ""))

    def measured(steps):
        events = train(made_recipe(steps=steps, eval_every=4, save_every=3), tmp_path / "run", corpus=corpus)
        return [(event.step, event.best) for event in events if isinstance(event, Measured)]

    assert measured(6) == [(4, True), (6, True)]
    kept = (tmp_path / "run" / "model.safetensors").read_bytes()
    assert measured(6) == []
    assert measured(8) == [(8, False)]
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == kept


def test_what_was_told_before_the_first_checkpoint_is_told_once(tmp_path, corpus):
    for until in (2, 100):
        for event in train(made_recipe(steps=3, eval_every=1, save_every=3), tmp_path / "run", corpus=corpus):
            if isinstance(event, Measured) and event.step == until:
                break
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3]


def test_its_losses_are_drawn(tmp_path, corpus, monkeypatch):
    for drawing in (curves, to_bytes):
        monkeypatch.setattr(f"heedful.run.train.{drawing.__name__}", drawing)
    assert list(train(made_recipe(steps=2, eval_every=1), tmp_path / "run", corpus=corpus))
    with Image.open(tmp_path / "run" / "plots" / "training.png") as picture:
        assert min(picture.size) > 400
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 50


def test_the_same_command_again_changes_nothing(finished, corpus):
    out, _ = finished
    before = (out / "model.safetensors").read_bytes()
    again = list(train(made_recipe(), out, corpus=corpus))
    assert not [event for event in again if isinstance(event, Trained)]
    assert (out / "model.safetensors").read_bytes() == before
    told = [event.text for event in again if isinstance(event, Note)]
    assert "nothing is left to train: train.steps=12 is reached, at step 12; to train on, give more than that" in told


def test_a_run_without_what_was_measured_says_so_first(finished, corpus, tmp_path):
    """And not when more has been trained, with a traceback."""
    shutil.copytree(finished[0], tmp_path / "run")
    metrics = tmp_path / "run" / "metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join(line for line in lines if "valid_loss" not in line))
    with pytest.raises(StorageError, match=r"metrics\.jsonl: the measurement of step \d+, whose model is kept"):
        next(train(made_recipe(steps=14), tmp_path / "run", corpus=corpus))


def test_what_was_measured_is_on_the_disk_before_the_checkpoint(tmp_path, corpus, monkeypatch):
    flushed: list[str] = []
    monkeypatch.setattr(files, "fsync_file", lambda path: flushed.append(path.name))
    events = list(train(made_recipe(), tmp_path / "run", corpus=corpus))
    assert [event.step for event in events if isinstance(event, Checkpointed)] == [4, 8, 12]
    assert flushed == ["metrics.jsonl"] * 2  # it was first measured at step 6


@pytest.mark.parametrize("recipe", [TRANSFORMER, DECODER, RECURRENT], ids=["transformer", "decoder", "rnn"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_interrupted_run_ends_in_the_same_weights(tmp_path, corpus, recipe, precision):
    recipe = override(
        build(recipe, where="test"), [f"train.precision={precision}", "train.steps=6", "train.save_every=2"]
    )
    for _ in train(recipe, tmp_path / "straight", corpus=corpus):
        pass
    for event in train(recipe, tmp_path / "broken", corpus=corpus):
        if isinstance(event, Trained) and event.step.step == 5:  # after the save at step 4
            break
    for _ in train(recipe, tmp_path / "broken", corpus=corpus, resume=True):
        pass
    for name in ("weights", "average", "optimizer"):
        one, other = (
            safetensors.torch.load_file(tmp_path / run / "checkpoints" / "step-6" / f"{name}.safetensors")
            for run in ("straight", "broken")
        )
        assert one.keys() == other.keys()
        for key in one:
            assert torch.equal(one[key], other[key]), key


def test_going_on_with_another_training_is_refused(finished, corpus):
    out, _ = finished
    with pytest.raises(InputError, match=r"begun with train\.lr = 0\.002, not 0\.1"):
        next(train(made_recipe(lr=0.1), out, corpus=corpus))
    other = heedful.data.text.corpus.Corpus(
        corpus.valid, corpus.valid, corpus.tests, "made", source="low", target="high"
    )
    with pytest.raises(InputError, match="the training data is not the data that"):
        list(train(made_recipe(steps=14), out, corpus=other))


def test_a_recipe_that_was_changed_by_hand_is_refused_before_it_is_trained_by(finished, corpus, tmp_path):
    """And not when the first better model was to be saved."""
    out = shutil.copytree(finished[0], tmp_path / "run")
    changed = override(made_recipe(steps=14), ["decode.beam=3"])
    (out / "recipe.yaml").write_text(to_yaml(changed))
    with pytest.raises(InputError, match=r"task\.json: this run was begun with decode\.beam = 2, not 3"):
        next(train(changed, out, corpus=corpus))


def test_what_was_changed_by_hand_since_the_checkpoint_is_told_where_it_holds(finished, corpus, tmp_path):
    out = shutil.copytree(finished[0], tmp_path / "run")

    def told(*settings):
        recipe = override(made_recipe(), settings)
        (out / "recipe.yaml").write_text(to_yaml(recipe))
        return [event.text for event in train(recipe, out, corpus=corpus) if isinstance(event, Note)]

    changed = ["train.lr=0.001", "train.clip=2.0", "train.steps=14"]
    line = (
        "recipe.yaml was changed since step 12: from here on train.clip = 2.0 (was 1.0), train.lr = 0.001 (was 0.002)"
    )
    assert line in told(*changed)
    assert not [text for text in told(*changed[:2], "train.steps=15") if "was changed" in text]


@pytest.mark.parametrize("setting", ["train.seed=7", "train.optimizer=muon", "train.precision=fp32"])
def test_what_cannot_change_under_way_is_refused_where_it_was_changed_by_hand(setting, finished, corpus, tmp_path):
    out = shutil.copytree(finished[0], tmp_path / "run")
    changed = override(made_recipe(steps=14), [setting])
    (out / "recipe.yaml").write_text(to_yaml(changed))
    key, value = setting.split("=")
    with pytest.raises(InputError, match=rf"this run was begun with {key} = .*, not '?{value}") as caught:
        next(train(changed, out, corpus=corpus))
    assert caught.value.fix == "bring back the recipe.yaml that this run was begun with, or choose another --out"


def test_a_preset_that_has_changed_is_not_gone_on_with(finished, corpus, monkeypatch):
    row = TRANSLATORS["transformer-tiny"]
    monkeypatch.setitem(TRANSLATORS, "transformer-tiny", dataclasses.replace(row, activation="gelu"))
    with pytest.raises(InputError, match=r"begun with decoder\.block\.activation = 'relu'.* now has 'gelu'"):
        list(train(made_recipe(steps=14), finished[0], corpus=corpus))


def test_more_steps_may_be_asked_for(finished, corpus, tmp_path):
    out = tmp_path / "copy"
    shutil.copytree(finished[0], out)
    steps = [
        event.step.step for event in train(made_recipe(steps=14), out, corpus=corpus) if isinstance(event, Trained)
    ]
    assert steps == [13, 14]
    assert saved_recipe(out) == made_recipe(steps=14)  # which is what --resume continues
    list(train(made_recipe(steps=13), out, corpus=corpus))
    assert saved_recipe(out) == made_recipe(steps=14)  # that is how it was trained


def test_a_run_is_continued_where_its_data_lie_now(tmp_path, corpus):
    pairs = "".join(f"{a}\t{b}\n" for a, b in zip(corpus.train.source, corpus.train.target, strict=True))
    for folder, text in (("here", pairs), ("there", pairs), ("other", pairs.replace("ba", "ko"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pairs.tsv").write_text(text)

    def recipe(steps, path):
        return override(made_recipe(steps=steps), {"data.path": str(tmp_path / path)})

    def steps(recipe):
        return [each.step.step for each in train(recipe, tmp_path / "run") if isinstance(each, Trained)]

    assert steps(recipe(1, "here/pairs.tsv")) == [1]
    assert steps(recipe(2, "there/pairs.tsv")) == [2]
    assert saved_recipe(tmp_path / "run").data.path == str(tmp_path / "there/pairs.tsv")
    with pytest.raises(InputError, match="the training data is not the data that"):
        steps(recipe(3, "other/pairs.tsv"))
    with pytest.raises(InputError, match=r"begun with data\.path = "):
        steps(recipe(3, "there/pairs.tsv:0.5"))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["data.path=nowhere.tsv"], "nowhere.tsv"),
        (["model.d_modle=3"], "unknown key 'd_modle'"),
        (["model.d_model=wide"], "expected int, found 'wide'"),
        (["data.longest=8"], "every pair is longer"),
    ],
)
def test_bad_input_leaves_nothing_behind(tmp_path, corpus, settings, says):
    out = tmp_path / "never"
    lines = ["".join(random.sample(string.ascii_letters, 30)) for _ in range(9)]
    long = heedful.data.text.pairs.Pairs(lines, lines, "long")
    given = heedful.data.text.corpus.Corpus(long, long, {"test": long}, "made", source="a", target="b")
    missing = settings[0].startswith("data.path")
    with pytest.raises(HeedError, match=says):
        list(train(override(made_recipe(), settings), out, corpus=None if missing else given))
    assert not out.exists()


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path, corpus):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="not empty and holds no run"):
        next(train(made_recipe(), tmp_path, corpus=corpus))
    with pytest.raises(MissingError, match="no run to continue"):
        next(train(made_recipe(), tmp_path / "none", corpus=corpus, resume=True))


@pytest.mark.parametrize("recipe", [TRANSFORMER, DECODER, RECURRENT], ids=["transformer", "decoder", "rnn"])
def test_a_trained_model_keeps_the_laws(tmp_path, corpus, recipe):
    out = tmp_path / "run"
    for _ in train(override(build(recipe, where="test"), ["train.steps=3"]), out, corpus=corpus):
        pass
    laws = list(check(out))
    assert sum("CTranslate2" not in law.name for law in laws) == (8 if recipe is RECURRENT else 9)
    assert [law.name for law in laws if not law.holds] == []


def test_separate_vocabularies(tmp_path, corpus):
    recipe = override(made_recipe(steps=2), ["data.joint=false", "data.tokenizer=unigram", "data.vocab_size=300"])
    for _ in train(recipe, tmp_path / "run", corpus=corpus):
        pass
    model = heedful.load(tmp_path / "run")
    assert model.source is not model.target
    assert len(model.translate(["ba de"], beam=2)) == 1


def test_one_stack_reads_one_vocabulary(tmp_path, corpus):
    recipe = override(build(DECODER, where="test"), ["data.joint=false"])
    with pytest.raises(InputError, match=r"data\.joint = false: a decoder alone reads source and target with one"):
        list(train(recipe, tmp_path / "run", corpus=corpus))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("base", [TRANSFORMER, DECODER], ids=["transformer", "decoder"])
def test_long_sources_are_cut_in_training_and_in_use(tmp_path, base):
    """Documents to be summarised: without `cut` their pairs are left out, with it their beginnings are read."""
    documents = [f"{word} " * 40 for word in ("ba", "de", "gi")] * 20
    pairs = heedful.data.text.pairs.Pairs(
        [*documents, "ko lu"], [*(text[:2].upper() for text in documents), "KO"], "made"
    )
    corpus = heedful.data.text.corpus.Corpus(pairs, pairs, {"test": pairs}, "made", source="long", target="short")
    recipe = override(build(base, where="test"), ["train.steps=2", "data.longest=16", "decode.longest=5"])
    (note,) = [
        e.text for e in train(recipe, tmp_path / "left", corpus=corpus) if isinstance(e, Note) and "16 tok" in e.text
    ]
    assert note == "60 pairs of more than 16 tokens are left out"
    assert heedful.load(tmp_path / "left").search(documents[:1])[0].cut == 0
    recipe = override(recipe, ["data.cut=true"])
    (note,) = [
        e.text for e in train(recipe, tmp_path / "cut", corpus=corpus) if isinstance(e, Note) and "16 tok" in e.text
    ]
    assert note == "60 sources are cut after 16 tokens"
    model = heedful.load(tmp_path / "cut")
    ((ids,), (beyond,)) = model.encode(documents[:1])
    assert (len(ids), len(model.source.encode(documents[:1])[0])) == (15, 15 + beyond)
    found, short = model.search([documents[0], "ko"], beam=2)
    assert (found.cut, short.cut) == (0, 0), "a translation is of all of it, in parts"
    assert found.parts > 1
    assert [law.name for law in check(tmp_path / "cut", documents[:3]) if not law.holds] == []


def test_a_validation_pair_of_any_length_is_measured(tmp_path, corpus):
    long = heedful.data.text.pairs.Pairs(["ba de " * 3000], ["DE BA"], "long")
    given = heedful.data.text.corpus.Corpus(
        corpus.train, long, {"test": corpus.valid}, "made", source="low", target="high"
    )
    recipe = override(made_recipe(steps=1), ["decode.longest=3"])
    assert any(isinstance(event, Measured) for event in train(recipe, tmp_path / "run", corpus=given))
