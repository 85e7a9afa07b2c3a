"""Prompts to be answered: a text a line, or objects with a "prompt", which may be a conversation."""

from pathlib import Path

from heedful.data.lines import json_items, json_lines, json_object, read_lines, sanitise
from heedful.data.parts import Parts, kind_of, read_parts
from heedful.data.text.judgements import conversation, is_message
from heedful.errors import InputError

KINDS = (".txt", ".jsonl", ".json")
EXAMPLE = 'write {"prompt": "..."} on each line, or a prompt a line in a .txt file'


def read_prompts(path: str | Path) -> Parts[list[str]]:
    """Reads the prompts of a file or folder, in parts as `read_parts`. Raises InputError or MissingError."""
    return read_parts(path, prompts_in, kinds=KINDS, key=str)


def prompts_in(path: Path) -> list[str]:
    """Reads the prompts of a file, in order: the lines of a .txt file that are not blank, unchanged; for each object
    its "prompt", a text or a list of messages, or its "messages" up to the last one that is not the assistant's. Raises
    InputError or MissingError."""
    kind, lines = kind_of(path), read_lines(path, longest=None)
    if kind not in KINDS:
        raise InputError("not a kind of file that prompts are read from", where=str(path), fix="give .txt or .jsonl")
    if kind == ".txt":
        return [line for line in lines if line.strip()]
    items = json_items(path) if kind == ".json" or lines[0].startswith("[") else json_lines(path, lines)
    return [_prompt(row, where) for where, row in items]


def _prompt(row: object, where: str) -> str:
    if isinstance(row, str):
        return sanitise(row)
    row = json_object(row, where, EXAMPLE)
    value = row.get("prompt", row.get("messages"))
    if isinstance(value, str):
        return sanitise(value)
    turns = value if isinstance(value, list) else []
    if not turns or not all(map(is_message, turns)):
        raise InputError('no "prompt" that is a text or a list of messages', where=where, fix=EXAMPLE)
    while turns and turns[-1]["role"] == "assistant":
        turns = turns[:-1]
    if not turns:
        raise InputError("a conversation in which only the assistant speaks", where=where, fix=EXAMPLE)
    return conversation((one["role"], one["content"]) for one in turns)
