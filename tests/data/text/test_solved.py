"""Inputs with their answers, read from a file, or one line that says what is wrong where."""

import gzip
import json

import pytest

from heedful.data.text.solved import Solved, holds_solved, read_solved
from heedful.errors import InputError, MissingError


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_answers_are_texts_choices_or_indices(tmp_path):
    choices = ["colour", "animal", "2"]
    rows = [
        {"input": "1 + 1", "answer": "2"},
        {"input": "red", "answer": "colour", "choices": choices, "id": 7},
        {"input": "dog", "answer": 1, "choices": choices},
        {"input": "", "answer": "2", "choices": choices},
    ]
    expected = [
        Solved("1 + 1", "2"),
        Solved("red", "colour", tuple(choices)),
        Solved("dog", "animal", tuple(choices)),
        Solved("", "2", tuple(choices)),
    ]
    path = write(tmp_path / "task.jsonl", *rows)
    path.write_text("\n" + path.read_text().replace("\n", "\n\n"))
    assert read_solved(path) == expected
    assert holds_solved(path)
    packed = tmp_path / "task.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_solved(packed) == expected
    assert holds_solved(packed)


def test_text_is_no_task(tmp_path):
    assert not holds_solved(write(tmp_path / "text.jsonl", {"text": "input"}))
    assert not holds_solved(write(tmp_path / "list.jsonl", ["input"]))
    assert not holds_solved(write(tmp_path / "task.txt", {"input": "red", "answer": "colour"}))
    assert not holds_solved(tmp_path)
    with pytest.raises(MissingError):
        holds_solved(tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"answer": "a"}, 'no "input" that is a text'),
        ({"input": 1, "answer": "a"}, 'no "input" that is a text'),
        ([1], 'no "input" that is a text'),
        ({"input": "a"}, 'no "answer" that is a text or the index of a choice'),
        ({"input": "a", "answer": " "}, 'no "answer"'),
        ({"input": "a", "answer": 0}, 'no "answer"'),
        ({"input": "a", "answer": 2, "choices": ["b", "c"]}, 'no "answer"'),
        ({"input": "a", "answer": True, "choices": ["b", "c"]}, 'no "answer"'),
        ({"input": "a", "answer": "d", "choices": ["b", "c"]}, "the answer 'd' is none of the choices"),
        ({"input": "a", "answer": "b", "choices": ["b"]}, "1 choices, expected two or more different ones"),
        ({"input": "a", "answer": "b", "choices": ["b", "b"]}, "2 choices, expected two or more different ones"),
        ({"input": "a", "answer": "b", "choices": ["b", ""]}, '"choices" is not a list of texts'),
        ({"input": "a", "answer": "b", "choices": "bc"}, '"choices" is not a list of texts'),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, row, what):
    path = write(tmp_path / "task.jsonl", {"input": "red", "answer": "colour"}, row)
    with pytest.raises(InputError) as error:
        read_solved(path)
    assert str(error.value).startswith(f"{path}:2: {what}")
    assert error.value.fix.startswith('write {"input"')


def test_what_is_not_json_is_said(tmp_path):
    path = tmp_path / "task.jsonl"
    path.write_text('{"input": "a", "answer": "b"}\n{"input"\n')
    with pytest.raises(InputError, match=r"task\.jsonl:2: not JSON"):
        read_solved(path)
