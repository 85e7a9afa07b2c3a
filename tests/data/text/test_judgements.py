"""Judgements of answers: what a file may hold, and what is told of one that holds something else."""

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.data.text.judgements import (
    Judgement,
    conversation,
    judgements_in,
    order_by,
    order_of,
    prompt_value,
    read_judged,
    read_judgements,
)
from heedful.data.text.prompts import prompts_in, read_prompts
from heedful.errors import InputError

ASKED = [{"role": "user", "content": "Why?"}]
TALK = conversation([("user", "Why?")])


def said(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def written(folder: Path, *rows: Any, name: str = "j.jsonl") -> Path:
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder / name


def one(folder: Path, row: Any) -> Judgement:
    (found,) = judgements_in(written(folder, row))
    return found


def test_a_judgement_is_what_its_record_says(tmp_path: Path) -> None:
    judged = Judgement("Why?", ("a", "b", "c", "d"), ((2,), (0, 1)), "me", "2026-01-02T03:04:05+00:00")
    assert judged.record()["order"] == [[2], [0, 1]]
    assert one(tmp_path, judged.record()) == judged
    assert judged.ranks == [1, 1, 0, -1]
    assert judged.pairs() == [(2, 0), (2, 1)]
    assert judged.decides
    unsaid = judged.record() | {"who": None, "when": None}
    assert (one(tmp_path, unsaid).who, one(tmp_path, unsaid).when) == ("", "")
    talk = Judgement(TALK, ("a", "b"), ((0,), (1,)))
    assert talk.record()["prompt"] == ASKED == prompt_value(TALK)
    assert one(tmp_path, talk.record()) == talk


def test_an_order_may_be_a_plain_list(tmp_path: Path) -> None:
    assert one(tmp_path, {"prompt": "x", "candidates": ["a", "b"], "order": [1, 0]}).order == ((1,), (0,))


def test_orders_of_ranks_and_of_scores() -> None:
    assert order_of([5, 2, 2, -1]) == ((1, 2), (0,))
    assert order_by([0.5, 3.0, 0.5]) == ((1,), (0, 2))
    assert Judgement("", ("a", "b", "c"), order_of([1, 0, 1])).ranks == [1, 0, 1]


@pytest.mark.parametrize(
    ("row", "prompt", "candidates"),
    [
        ({"prompt": "Why?", "chosen": "a", "rejected": "b"}, "Why?", ("a", "b")),
        ({"chosen": "The sky is blue.", "rejected": "The sky is black."}, "The sky is", (" blue.", " black.")),
        ({"prompt": ASKED, "chosen": [said("a")], "rejected": [said("b")]}, TALK, ("a", "b")),
        ({"chosen": [*ASKED, said("a")], "rejected": [*ASKED, said("b")]}, TALK, ("a", "b")),
        ({"prompt": "Why?", "chosen": [*ASKED, said("a")], "rejected": [*ASKED, said("b")]}, TALK, ("a", "b")),
        ({"prompt": "Why?", "chosen": [said("a")], "rejected": [said("b")]}, TALK, ("a", "b")),
    ],
)
def test_preferences_as_trl_has_them(row: Any, prompt: str, candidates: tuple[str, ...], tmp_path: Path) -> None:
    assert one(tmp_path, row) == Judgement(prompt, candidates, ((0,), (1,)))


@pytest.mark.parametrize(
    ("asked", "prompt"),
    [
        ({"question": "Why?"}, "Why?"),
        ({"instruction": "Why?", "input": ""}, "Why?"),
        ({"instruction": "Add.", "input": "1 1"}, "Add.\n\n1 1"),
        ({"system": "", "input": "Why?"}, "Why?"),
        ({"system": "Be kind.", "question": "Why?"}, conversation([("system", "Be kind."), ("user", "Why?")])),
        ({"system_prompt": "Be kind.", "prompt": "Why?"}, conversation([("system", "Be kind."), ("user", "Why?")])),
    ],
)
def test_what_is_asked_goes_by_several_names(asked: dict[str, str], prompt: str, tmp_path: Path) -> None:
    row = asked | {"chosen": "It is so.", "rejected": "It is not."}
    assert one(tmp_path, row) == Judgement(prompt, ("It is so.", "It is not."), ((0,), (1,)))


def test_a_prompt_may_stand_behind_the_system_in_both_sides(tmp_path: Path) -> None:
    talk = [{"role": "system", "content": "Be kind."}, *ASKED]
    row = {"prompt": "Why?", "chosen": [*talk, said("a")], "rejected": [*talk, said("b")]}
    assert one(tmp_path, row).record()["prompt"] == talk
    row = {"prompt": "Why?", "system": "Be kind.", "chosen": [*ASKED, said("a")], "rejected": [*ASKED, said("b")]}
    assert one(tmp_path, row).record()["prompt"] == talk


def test_completions_as_ultrafeedback_has_them(tmp_path: Path) -> None:
    completions = [{"response": text, "overall_score": score} for text, score in (("a", 5.0), ("b", 8.5), ("c", 5.0))]
    found = one(tmp_path, {"instruction": "Why?", "models": ["x"], "completions": completions})
    assert found == Judgement("Why?", ("a", "b", "c"), ((1,), (0, 2)))


def test_what_prefers_nothing_is_left_out_and_told(tmp_path: Path) -> None:
    rows = [Judgement(f"{i}", ("a", "b"), ((0,), (1,))).record() for i in range(40)]
    tied, skipped = (Judgement("x", ("a", "b"), order).record() for order in (((0, 1),), ()))
    path = written(tmp_path, *rows, tied, skipped)
    parts = read_judgements(path)
    assert len(parts.train) + len(parts.valid) == 40
    assert any("2 of 42 judgements prefer no answer, and are left out" in note for note in parts.notes)
    assert len(read_judged(path)["j.jsonl"]) == 40
    with pytest.raises(InputError, match="no judgement that prefers"):
        read_judgements(written(tmp_path, tied, name="none.jsonl"))


def test_judgements_of_one_prompt_are_in_one_part(tmp_path: Path) -> None:
    rows = [Judgement(f"{i % 30}", ("a", str(i)), ((0,), (1,))).record() for i in range(120)]
    parts = read_judgements(written(tmp_path, *rows))
    assert not {one.prompt for one in parts.train} & {one.prompt for one in parts.valid}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("text", "text, expected an object"),
        ({"a": 1}, "no judgement: there are keys 'a'"),
        ({"prompt": "x", "candidates": "ab", "order": []}, '"candidates" is not a list of texts'),
        ({"prompt": "x", "candidates": ["a", "b"], "order": [[2]]}, "does not put 2 candidates in order"),
        ({"prompt": "x", "candidates": ["a", "b"], "order": [[0], [0]]}, "does not put 2 candidates in order"),
        ({"prompt": "x", "candidates": ["a", "b"], "order": [[True]]}, "does not put 2 candidates in order"),
        ({"prompt": "x", "candidates": ["a", "b"]}, "does not put 2 candidates in order"),
        ({"prompt": 3, "candidates": ["a", "b"], "order": [[0], [1]]}, "the prompt is a number"),
        ({"prompt": "x", "chosen": "a", "rejected": ["b"]}, "are not two texts, nor two lists"),
        ({"prompt": ASKED, "chosen": [], "rejected": [said("b")]}, "0 messages of a side"),
        ({"prompt": ASKED, "chosen": [{"role": 1}], "rejected": [said("b")]}, "1 messages of a side"),
        ({"instruction": "x", "completions": [{"response": "a"}]}, '"completions" without a "response"'),
    ],
)
def test_what_is_no_judgement_is_told_with_its_line(row: Any, what: str, tmp_path: Path) -> None:
    path = written(tmp_path, {"prompt": "x", "chosen": "a", "rejected": "b"}, row)
    with pytest.raises(InputError, match=what) as caught:
        judgements_in(path)
    assert caught.value.where == f"{path}:2"
    assert caught.value.fix


def test_prompts_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("1+2= \n\n3+4=\n")
    assert prompts_in(tmp_path / "p.txt") == ["1+2= ", "3+4="]
    rows = [{"prompt": "Why?"}, {"prompt": ASKED}, {"messages": [*ASKED, said("Because.")]}, "How?"]
    assert prompts_in(written(tmp_path, *rows)) == ["Why?", TALK, TALK, "How?"]
    (tmp_path / "many.txt").write_text("".join(f"{i}\n" for i in range(100)))
    parts = read_prompts(tmp_path / "many.txt")
    assert sorted(parts.train + parts.valid, key=int) == [f"{i}" for i in range(100)]
    for row, what in (({"text": "x"}, 'no "prompt"'), ({"prompt": [said("a")]}, "only the assistant speaks")):
        with pytest.raises(InputError, match=what):
            prompts_in(written(tmp_path, row, name="bad.jsonl"))


def test_what_tells_nothing_apart_is_no_preference(tmp_path: Path) -> None:
    assert not one(tmp_path, {"prompt": "Why?", "chosen": "So.", "rejected": "So."}).decides
    said = [{"role": "user", "content": "Why?"}], [{"role": "assistant", "content": "So."}]
    assert not one(tmp_path, {"prompt": said[0], "chosen": said[1], "rejected": said[1]}).decides
    assert not one(tmp_path, {"chosen": said[0] + said[1], "rejected": said[0] + said[1]}).decides
    completions = [{"response": "a", "score": float("nan")}, {"response": "b", "score": 1.0}]
    with pytest.raises(InputError, match="without"):
        one(tmp_path, {"instruction": "Why?", "completions": completions})
