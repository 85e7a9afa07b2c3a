"""Rounds of answers, judgements, a reward and a policy: by a rule, by a person, and continued."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from heedful.cli import app
from heedful.data.text.judgements import judgements_in
from heedful.errors import InputError, MissingError
from heedful.run.events import Checkpointed, Measured, Trained
from heedful.store.lock import run_lock
from heedful.tasks.prefer import loop as looping
from heedful.tasks.prefer.loop import rounds_of
from heedful.tasks.shared.progress import ProgressLine
from heedful.training.loop import Step
from serving import language_model

RULES = "def vowels(prompt, answer):\n    return sum(map(answer.count, 'aeio')) / max(1, len(answer))\n"
PROMPTS = ["ba", "de", "gi", "ko", "lu", "ma"]
FEW = ["train.steps=2", "train.eval_every=2", "train.save_every=1"]
PLAN = [*FEW, "prefer.rollouts=6", "prefer.eval_answers=4"]


class CutError(Exception):
    pass


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loop")
    language_model(folder / "start", context=48)
    (folder / "prompts.txt").write_text("".join(f"{prompt}\n" for prompt in PROMPTS))
    (folder / "rules.py").write_text(RULES)
    return folder


def heed(world: Path, out: Path, *words: str, given: str | None = None) -> list[dict[str, Any]]:
    plain = ["loop", str(world / "start"), "--prompts", str(world / "prompts.txt"), "--out", str(out), "--tokens", "5"]
    plain += [word for setting in PLAN for word in ("--set", setting)]
    plain += [word for setting in FEW for word in ("--reward-set", setting)]
    made = CliRunner().invoke(app, [*plain, *words, "--device", "cpu", "--json"], input=given, catch_exceptions=False)
    assert made.exit_code == 0, made.output
    return [json.loads(line) for line in made.stdout.splitlines()]


def test_a_rule_ranks_round_after_round_and_more_rounds_continue(world: Path, tmp_path: Path) -> None:
    rule = ["--ranker", f"{world / 'rules.py'}:vowels", "--noise", "0.1"]
    first = heed(world, tmp_path / "run", *rule, "--rounds", "1")
    both = heed(world, tmp_path / "run", *rule, "--rounds", "2")
    assert both[:1] == first
    assert [one["number"] for one in both] == [1, 2]
    assert both[1]["judgements"] == 2 * both[0]["judgements"] == 12
    assert all(0 <= one["win_rate"] <= 1 and one["kl"] >= 0 for one in both)
    assert (tmp_path / "run" / "round-2" / "policy" / "model.safetensors").is_file()
    kept = judgements_in(tmp_path / "run" / "round-2" / "judgements.jsonl")
    assert [one.prompt for one in kept] == PROMPTS
    with pytest.raises(InputError, match=r"begun with noise = 0\.1, not 0\.2"):
        heed(world, tmp_path / "run", *rule[:2], "--noise", "0.2")


def test_a_loop_that_is_cut_off_comes_to_the_same(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ["--ranker", f"{world / 'rules.py'}:vowels", "--rounds", "2"]
    whole = heed(world, tmp_path / "whole", *rule)
    plain, cuts = looping.train, []

    def train(*given: Any, **more: Any) -> Iterator[Any]:
        for event in plain(*given, **more):
            yield event
            if isinstance(event, Checkpointed) and event.step == 1 and len(cuts) < 4:  # in the midst of a training
                cuts.append(event)
                raise CutError

    monkeypatch.setattr(looping, "train", train)
    for _ in range(4):
        with pytest.raises(CutError):
            heed(world, tmp_path / "cut", *rule)
    assert heed(world, tmp_path / "cut", *rule) == whole
    assert rounds_of(tmp_path / "cut") == rounds_of(tmp_path / "whole")


def test_a_training_is_not_told_with_the_scores_of_the_one_before(capsys: pytest.CaptureFixture[str]) -> None:
    line, step = ProgressLine(), Step(1, 0, 0.5, 1, 1.0, 1.0, 0.1, 0.0)
    line.follow(iter([Measured(1, 0.5, {"accuracy": 0.25}, True, "")]))
    line.follow(iter([Trained(step, 1e-3, 10.0, "tokens", None)]))
    before, after = capsys.readouterr().err.splitlines()
    assert "accuracy 0.250" in before
    assert "accuracy" not in after


def test_a_person_ranks_and_may_leave_in_between(world: Path, tmp_path: Path) -> None:
    lines = "1234\n" * 3
    with pytest.raises(InputError, match="round 1: 3 of 6 prompts are judged"):
        heed(world, tmp_path / "run", "--rounds", "1", "--who", "ada", given=lines)
    (made,) = heed(world, tmp_path / "run", "--rounds", "1", "--who", "ada", given=lines)
    assert made["judgements"] == 6
    assert made["win_rate"] is None
    assert {one.who for one in judgements_in(tmp_path / "run" / "round-1" / "judgements.jsonl")} == {"ada"}


def test_two_loops_do_not_write_into_one_folder(world: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with run_lock(tmp_path / "run"), pytest.raises(InputError, match="another trainer"):
        heed(world, tmp_path / "run", "--rounds", "1", "--who", "ada", given="1234\n" * 6)
    assert not (tmp_path / "run" / "loop.json").exists()


def test_a_reward_that_was_learnt_ranks_nothing(world: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot judge its own"):
        heed(world, tmp_path / "run", "--ranker", str(world / "start"))


def test_what_no_round_can_be_made_with_is_refused_before_anybody_judges(world: Path, tmp_path: Path) -> None:
    """So that the same folder takes the command with the mistake mended."""
    (tmp_path / "one.txt").write_text("ba\n")
    (tmp_path / "talk.jsonl").write_text('{"prompt": [{"role": "user", "content": "ba"}]}\n')
    for words, kind, what in (
        (["--set", "prefer.foo=1"], InputError, "unknown key 'foo'"),
        (["--reward-set", "train.steps=x"], InputError, "train.steps = 'x'"),
        (["--set", "prefer.method=grpo", "--set", "prefer.group=1"], InputError, "compares answers to the same prompt"),
        (["--set", "prefer.tokens=48"], InputError, "a prompt and the 48 tokens of an answer are 49 tokens"),
        (["--prompts", str(tmp_path / "one.txt")], InputError, "one example alone"),
        (["--noise", "0.1"], InputError, "--noise blurs a rule, and a person judges"),
        (["--ranker", f"{world / 'rules.py'}:vowels", "--who", "ada"], InputError, "--who names a person"),
        (["--tokens", "48"], InputError, "a prompt and the 48 tokens of an answer are 49 tokens"),
        (["--prompts", str(tmp_path / "none.txt")], MissingError, "no such file"),
        (["--prompts", str(tmp_path / "talk.jsonl")], InputError, "a prompt that is a conversation"),
    ):
        with pytest.raises(kind, match=what):
            heed(world, tmp_path / "run", "--rounds", "1", *words, given="1234\n" * 6)
        assert not (tmp_path / "run").exists()
    (made,) = heed(world, tmp_path / "run", "--rounds", "1", given="1234\n" * 6)
    assert made["judgements"] == 6
