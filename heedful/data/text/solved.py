"""Inputs with their answers, for few-shot prompts."""

from dataclasses import dataclass
from pathlib import Path

from heedful.data.lines import json_lines, read_lines, sanitise
from heedful.data.parts import kind_of
from heedful.errors import InputError

FIX = 'write {"input": "...", "answer": "..."} on each line, with "choices": ["...", "..."] where there are such'


@dataclass(frozen=True)
class Solved:
    input: str
    answer: str
    choices: tuple[str, ...] = ()  # the answer is one of them; empty: any text


def holds_solved(path: str | Path) -> bool:
    """Whether a path is a .jsonl file (or .jsonl.gz) whose first object has an "input"."""
    path = Path(path)
    if path.is_dir() or kind_of(path) != ".jsonl":
        return False
    _, row = next(json_lines(path, read_lines(path)))
    return isinstance(row, dict) and "input" in row


def read_solved(path: str | Path) -> list[Solved]:
    """Reads a file with a JSON object a line: {"input": ..., "answer": ...}, perhaps with "choices": [...].

    The answer is a text; with choices it is one of them, or the index of one, from 0. Other keys are ignored. Raises
    InputError or MissingError.
    """
    return [_solved(row, where) for where, row in json_lines(path, read_lines(path))]


def _solved(row: object, where: str) -> Solved:
    if not isinstance(row, dict) or not isinstance(row.get("input"), str):
        raise InputError('no "input" that is a text', where=where, fix=FIX)
    choices, answer = row.get("choices", []), row.get("answer")
    if not isinstance(choices, list) or not all(isinstance(choice, str) and choice for choice in choices):
        raise InputError('"choices" is not a list of texts', where=where, fix=FIX)
    if "choices" in row and not 2 <= len(choices) == len(set(choices)):
        raise InputError(f"{len(choices)} choices, expected two or more different ones", where=where, fix=FIX)
    if type(answer) is int and 0 <= answer < len(choices):  # True and False are not indices
        answer = choices[answer]
    if not isinstance(answer, str) or not answer.strip():
        raise InputError('no "answer" that is a text or the index of a choice', where=where, fix=FIX)
    if choices and answer not in choices:
        raise InputError(f"the answer {answer!r} is none of the choices", where=where, fix=FIX)
    return Solved(sanitise(row["input"]), sanitise(answer), tuple(map(sanitise, choices)))
