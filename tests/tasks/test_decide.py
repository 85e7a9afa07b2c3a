"""Decisions: what a model reads of an episode, what it answers by every door, and what a training and scores say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import heedful
from cases import BEGUN_SWING, BEGUN_WALK, SWINGS, WALKS
from commands import heed
from heedful.data.episodes.environments import Begun, random_episodes
from heedful.data.episodes.episode import Episode, Space
from heedful.data.parts import Parts
from heedful.errors import InputError, TextError
from heedful.tasks.decide.layout import DecideSpec, step_losses, windows
from heedful.tasks.decide.recipe import DecideRecipe
from heedful.tasks.decide.scoring import played_baselines
from heedful.tasks.decide.train import DecideJob, DecideTask
from heedful.tasks.decide.use import Decider
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

CHOICES = DecideSpec(observations=Space("discrete", 6), actions=Space("discrete", 2), context=4, scale=2.0)
VECTORS = DecideSpec(
    observations=Space("vector", 3),
    actions=Space("vector", 1),
    context=4,
    scale=2.0,
    mean=(1.0, 0.0, 0.0),
    deviation=(2.0, 1.0, 1.0),
)


def so_far(episode: Episode, steps: int) -> Begun:
    """The first steps, and the observation after them."""
    return Begun(
        episode.observations[: steps + 1].tolist(),
        episode.actions[:steps].tolist(),
        episode.rewards[:steps].tolist(),
        episode.total,
    )


@pytest.mark.parametrize(("spec", "episode"), [(CHOICES, WALKS[0]), (VECTORS, SWINGS[0])])
def test_deciding_reads_what_training_reads(spec: DecideSpec, episode: Episode) -> None:
    """An episode so far, whose whole return is asked for, is the window that ends there, but for the action of now."""
    for steps in range(len(episode)):
        first = max(0, steps + 1 - spec.context)
        cut = windows(episode, spec.context, first % spec.context)
        learnt = spec.batch([next(window for window in cut if window.first == first)])
        now = spec.batch([spec.now(so_far(episode, steps))])
        T = steps + 1 - first
        assert torch.equal(now.steps, learnt.steps[:, :T])
        assert torch.equal(now.states, learnt.states[:, :T])
        assert torch.equal(now.actions[:, :-1], learnt.actions[:, : T - 1])
        assert torch.allclose(now.returns, learnt.returns[:, :T], atol=1e-6)
        assert not now.actions[0, -1].any()


def test_each_step_is_learnt_once_an_epoch() -> None:
    recipe = build({"task": "decide", "data": {"context": 4}, "train": {"tokens": 64}}, where="test")
    assert isinstance(recipe, DecideRecipe)
    task = DecideTask(SWINGS, VECTORS, recipe)
    cuts = []
    for epoch in range(4):
        every = [window for batch in task.batches(epoch, None) for window in batch.rows]
        learnt = sorted(step for window in every for step in range(window.first, window.first + len(window.returns)))
        assert learnt == sorted(list(range(7)) * len(SWINGS))
        assert max(len(window.returns) for window in every) <= 4
        cuts.append(tuple(sorted(window.first for window in every)))
    assert len({*cuts}) > 1


def test_losses_are_those_of_steps_that_are_not_padding() -> None:
    batch = VECTORS.batch([window for each in SWINGS[:2] for window in windows(each, 4)])
    losses = step_losses(batch.actions + batch.valid[..., None] * 2.0, batch)
    assert torch.allclose(losses, torch.full((14,), 4.0))
    chosen = CHOICES.batch([windows(WALKS[0], 4)[0]])
    sure = torch.nn.functional.one_hot(chosen.actions, 2) * 99.0
    assert step_losses(sure, chosen).max() < 1e-6


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="another kind than the model reads, which are 6 kinds"):
        CHOICES.states(numpy.zeros((2, 3), dtype=numpy.float32))
    with pytest.raises(InputError, match="another kind than the model reads"):
        CHOICES.states(numpy.array([6]))
    with pytest.raises(InputError, match="a mean or deviation of another size"):
        replace(VECTORS, mean=(1.0,))


@pytest.fixture
def choices(run_of: Any) -> Decider:
    model: Decider = heedful.load(run_of("choices"))
    return model


@pytest.fixture
def swings(run_of: Any) -> Decider:
    model: Decider = heedful.load(run_of("swings"))
    return model


def test_an_answer_is_the_likeliest_action(choices: Decider, swings: Decider) -> None:
    answer = choices.act(BEGUN_WALK)
    assert answer["reached"] is None
    assert sum(answer["chances"]) == pytest.approx(1.0)
    assert answer["actions"] == [int(numpy.argmax(answer["chances"]))]
    assert answer["asked"] == choices.spec.best
    (numbers,) = swings.act(BEGUN_SWING)["actions"]
    assert len(numbers) == 1
    assert -1 <= numbers[0] <= 1
    assert swings.act(BEGUN_SWING)["chances"] is None


def test_a_played_episode_is_made_of_such_answers(choices: Decider) -> None:
    """Alone and together."""
    several = choices.play("bandit-walk", episodes=3, asked=2.0)
    (alone,) = choices.play("bandit-walk", episodes=1, asked=2.0)
    assert several[0].fingerprint == alone.fingerprint
    for steps in range(len(alone)):
        begun = so_far(alone, steps)
        text = json.dumps({"observations": begun.observations, "actions": begun.actions, "rewards": begun.rewards})
        assert choices.act(text, asked=2.0)["actions"] == [alone.actions[steps]]
    answer = choices.act("bandit-walk", asked=2.0)
    assert (answer["actions"], answer["reached"]) == (alone.actions.tolist(), alone.total)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("left", "not JSON"),
        ("[1]", "a list, expected an episode"),
        ('{"observations": [1], "actions": [1], "rewards": [1]}', "1 observations, 1 actions and 1 rewards"),
        ('{"observations": [[1]]}', "another kind than the model reads"),
        ('{"observations": [1, 1], "actions": [7], "rewards": [1]}', "actions of another kind"),
        ('{"observations": []}', "0 observations"),
        (json.dumps({"observations": [1] * 7, "actions": [0] * 6, "rewards": [0] * 6}), "an episode of 6 steps"),
    ],
)
def test_a_text_that_is_no_episode_has_no_answer(choices: Decider, text: str, says: str) -> None:
    with pytest.raises(TextError, match=says):
        choices.act(text)


def test_a_return_that_is_no_number(choices: Decider) -> None:
    for asked in (float("nan"), float("inf")):
        with pytest.raises(InputError, match=f"a return of {asked}"):
            choices.act(BEGUN_WALK, asked=asked)


def test_an_environment_of_another_kind(choices: Decider) -> None:
    with pytest.raises(InputError, match=r"key-to-door: observations of vectors of 8 and actions of 4 kinds"):
        choices.act("key-to-door")
    with pytest.raises(InputError, match="the environment of the training is not known"):
        choices.play()


def test_a_task_json_of_another_model(choices: Decider) -> None:
    with pytest.raises(InputError, match="for another model"):
        Decider(choices.model, {**choices.about, "actions": {"kind": "vector", "size": 2}})


def test_episodes_of_another_environment_are_refused() -> None:
    for name, says in (("graph", "2 kinds"), ("key-to-door", "6 kinds")):
        recipe = build({"task": "decide", "data": {"environment": name}}, where="test")
        data = Parts(WALKS, WALKS[:4], {}, "made")
        if name == "graph":  # which has more of both
            assert DecideJob(recipe, data).answers.observations.size == 20
        else:
            with pytest.raises(InputError, match=says):
                DecideJob(recipe, data)
    with pytest.raises(InputError, match="begins with nothing"):
        DecideJob(build({"task": "decide", "start_from": "there"}, where="test"), Parts(WALKS, WALKS, {}, "made"))


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that knows its environment."""
    out = tmp_path_factory.mktemp("decide") / "run"
    model = {"d_model": 16, "n_heads": 2, "n_layers": 1}
    plan = {"steps": 2, "eval_every": 2, "precision": "fp32"}
    sections: dict[str, Any] = {"task": "decide", "model": model, "data": {"path": "bandit-walk:20"}, "train": plan}
    scores = finished(train(build(sections, where="test"), out)).scores
    assert scores["bandit-walk"].keys() == {"return", "behaviour_cloning", "best_tenth", "fitted_q", "learnt_from"}
    assert scores["test"].keys() == {"loss", "accuracy"}
    return out


def test_scores_are_of_what_is_played(walked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "asked.svg"
    words = ["eval", walked, "--episodes", 4, "--asked", 1, "--asked", 2.5, "--plot", plot, "--json"]
    assert heed(*words) == 0
    tests = json.loads(capsys.readouterr().out)["tests"]
    assert tests.keys() == {"asked 1", "asked 2.5"}
    decider = heedful.load(walked)
    totals = [each.total for each in decider.play(episodes=4, asked=2.5)]
    assert tests["asked 2.5"]["return"] == pytest.approx(sum(totals) / 4)
    assert "asked return" in plot.read_text()
    assert heed(*words[:4], "--plot", tmp_path / "asked.pdf") == 2
    assert "neither .png nor .svg" in capsys.readouterr().err


def test_without_data_no_file_is_read(
    walked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as those of the current folder."""
    compared: list[Path] = []
    monkeypatch.setattr("heedful.verbs.evaluate.learnt_from", lambda run, paths: compared.extend(paths) or [])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large.bin").write_bytes(b"x")
    assert heed("eval", walked, "--episodes", 2, "--asked", 1) == 0
    assert compared == []
    assert "asked 1: return" in capsys.readouterr().out


def test_scores_on_data_have_baselines_beside(walked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert heed("eval", walked, "--data", "bandit-walk:20", "--episodes", 4, "--asked", 2, "--json") == 0
    tests = json.loads(capsys.readouterr().out)["tests"]
    assert {"test", "asked 2", "behaviour_cloning", "best_tenth", "fitted_q", "learnt_from"} == tests.keys()


def test_info_and_a_picture(walked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert heed("info", walked, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["environment"], facts["observations"], facts["actions"]) == ("bandit-walk", "6 kinds", "2 kinds")
    assert heed("look", walked, "bandit-walk", "--out", tmp_path / "x.svg") == 0
    assert "sees 5" in (tmp_path / "x.svg").read_text()
    assert heed("trace", walked, "bandit-walk") == 0
    assert "action 1" in capsys.readouterr().out


def test_baselines_of_few_choices() -> None:
    """Fitted Q takes what is sure."""
    decider = Decider.__new__(Decider)
    spec = DecideSpec(
        observations=Space("discrete", 6), actions=Space("discrete", 2), environment="bandit-walk", scale=3.0
    )
    decider.spec = spec
    learnt = random_episodes("bandit-walk", range(300))
    means = played_baselines(decider, learnt, episodes=50)
    assert means["fitted_q"] == pytest.approx(2.4, abs=0.01)
