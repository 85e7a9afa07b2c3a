"""Judgements of people, or of a rule, on answers to a prompt: which is the best, which comes next, which are equal.

A line of a file is a judgement: {"prompt": ..., "candidates": ["...", "..."], "order": [[1], [0, 2]], "who": "...",
"when": "..."}. The order names candidates by their numbers from 0, in groups of equal ones, the best first; candidates
that are missing from it were not judged, and with an empty order the prompt was skipped. A prompt is a text, or a list
of messages.

Preferences in TRL's layouts ("prompt", "chosen" and "rejected", each a text or messages; the prompt may be part of the
two, or have another name in `ASKED`) and UltraFeedback's ("instruction" and "completions" with scores) are read too.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, takewhile
from pathlib import Path
from typing import Any

from heedful.data.lines import json_items, json_lines, json_object, json_type, listed, read_lines, sanitise
from heedful.data.parts import Parts, kind_of, read_parts, read_tests
from heedful.errors import InputError

KINDS = (".jsonl", ".json")
EXAMPLE = 'write {"prompt": "...", "candidates": ["...", "..."], "order": [[1], [0]]} on each line'
MESSAGES = 'messages are [{"role": "user", "content": "..."}, ...]'
ASKED = ("prompt", "question", "instruction", "input", "query")  # names of the prompt; the first that exists counts
SCORES = ("overall_score", "fine-grained_score", "score")  # UltraFeedback's scores; the first that exists counts


@dataclass(frozen=True)
class Judgement:
    """`prompt` is a text, or a conversation as the JSON list of its messages. `order`: numbers of candidates in groups
    of equal ones, the best group first; empty if the prompt was skipped."""

    prompt: str
    candidates: tuple[str, ...]
    order: tuple[tuple[int, ...], ...]
    who: str = ""
    when: str = ""  # ISO 8601

    @property
    def ranks(self) -> list[int]:
        """The rank of each candidate: 0 is the best, equal ones share a rank; -1: not judged."""
        found = [-1] * len(self.candidates)
        for rank, group in enumerate(self.order):
            for number in group:
                found[number] = rank
        return found

    @property
    def decides(self) -> bool:
        """Whether one candidate is better than another."""
        return len(self.order) > 1

    def pairs(self) -> list[tuple[int, int]]:
        """Returns the numbers of the better and the worse candidate, for every two that differ."""
        groups = combinations(self.order, 2)
        return [(better, worse) for above, below in groups for better in above for worse in below]

    def record(self) -> dict[str, Any]:
        """Returns the judgement as it is written to a file."""
        own = {"prompt": prompt_value(self.prompt), "candidates": list(self.candidates)}
        return own | {"order": [list(group) for group in self.order], "who": self.who, "when": self.when}


def prompt_value(prompt: str) -> object:
    """Returns a prompt as JSON files hold it: a conversation as a list of messages."""
    return json.loads(prompt) if is_conversation(prompt) else prompt


def is_conversation(prompt: str) -> bool:
    """Whether the prompt is the JSON list of a conversation's messages."""
    try:
        found = json.loads(prompt) if prompt.startswith("[{") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(found, list) and all(isinstance(one, dict) and "role" in one for one in found)


def order_of(ranks: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Returns the groups of equal ranks, in ascending order; ranks may have gaps, and those below 0 are left out."""
    groups: dict[int, list[int]] = {rank: [] for rank in sorted({rank for rank in ranks if rank >= 0})}
    for i, rank in enumerate(ranks):
        if rank >= 0:
            groups[rank].append(i)
    return tuple(map(tuple, groups.values()))


def order_by(scores: Sequence[float]) -> tuple[tuple[int, ...], ...]:
    """Returns the order of candidates by their scores, the highest first; equal scores form a group."""
    levels = {score: rank for rank, score in enumerate(sorted(set(scores), reverse=True))}
    return order_of([levels[score] for score in scores])


def read_judgements(path: str | Path) -> Parts[list[Judgement]]:
    """Reads the judgements of a file or folder that prefer one candidate to another, in parts as `read_parts`; all
    judgements of a prompt are in one part. Raises InputError or MissingError."""
    notes: list[str] = []
    parts = read_parts(path, lambda file: _deciding(file, notes), kinds=KINDS, key=lambda one: one.prompt)
    return replace(parts, notes=(*notes, *parts.notes))


def read_judged(path: str | Path) -> dict[str, list[Judgement]]:
    """Reads the judgements of a file, or of a folder's test files, by name, for measuring."""
    return read_tests(path, lambda file: _deciding(file, []), kinds=KINDS)


def judgements_in(path: Path) -> list[Judgement]:
    """Reads every judgement of a file, in order. Raises InputError or MissingError."""
    lines = read_lines(path, longest=None)
    items = json_items(path) if kind_of(path) == ".json" or lines[0].startswith("[") else json_lines(path, lines)
    return [_judgement(row, where) for where, row in items]


def _deciding(path: Path, notes: list[str]) -> list[Judgement]:
    if kind_of(path) not in KINDS:
        raise InputError("not a kind of file that judgements are read from", where=str(path), fix="give .jsonl")
    found = judgements_in(path)
    kept = [one for one in found if one.decides]
    if len(kept) < len(found):
        what = f"{len(found) - len(kept):,} of {len(found):,} judgements prefer no answer, and are left out"
        notes.append(f"{path}: {what}")
    if not kept:
        raise InputError("no judgement that prefers one answer to another", where=str(path), fix=EXAMPLE)
    return kept


def _judgement(row: object, where: str) -> Judgement:
    row = json_object(row, where, EXAMPLE)
    if "candidates" in row:
        return _ranked(row, where)
    if "chosen" in row and "rejected" in row:
        return _preferred(row, where)
    if isinstance(row.get("completions"), list):
        return _scored(row, where)
    raise InputError(f"no judgement: there are keys {listed(row)}", where=where, fix=EXAMPLE)


def _ranked(row: Mapping[str, Any], where: str) -> Judgement:
    candidates, order = row["candidates"], row.get("order")
    if not isinstance(candidates, list) or not all(isinstance(one, str) for one in candidates):
        raise InputError('"candidates" is not a list of texts', where=where, fix=EXAMPLE)
    groups = order if isinstance(order, list) else [None]
    numbers = [number for group in groups for number in (group if isinstance(group, list) else [group])]
    known = all(type(number) is int and 0 <= number < len(candidates) for number in numbers)
    if not known or len(set(numbers)) < len(numbers):
        what = f'"order" does not put {len(candidates)} candidates in order, each once at most'
        raise InputError(what, where=where, fix="name them by their numbers from 0, the best first: [[1], [0, 2]]")
    kept = tuple(tuple(group) if isinstance(group, list) else (group,) for group in groups if group != [])
    who, when = (row.get(key) or "" for key in ("who", "when"))
    return Judgement(_prompt(row.get("prompt"), where), tuple(map(sanitise, candidates)), kept, str(who), str(when))


def _preferred(row: Mapping[str, Any], where: str) -> Judgement:
    """Reads a preference in TRL's formats: https://huggingface.co/docs/trl/dataset_formats, preference."""
    chosen, rejected, prompt = row["chosen"], row["rejected"], _asked(row)
    if isinstance(chosen, list) and isinstance(rejected, list):
        asked = [] if prompt is None else prompt if isinstance(prompt, list) else [_turn("user", prompt)]
        before = zip(chosen[:-1], rejected[:-1], strict=False)  # without the answers, which may be equal
        shared = [one for one, _ in takewhile(lambda two: two[0] == two[1], before)]
        known = {json.dumps(one, sort_keys=True) for one in shared}  # both sides may repeat the prompt
        missing = [one for one in asked if json.dumps(one, sort_keys=True) not in known]
        shared = [] if asked and missing == asked else shared
        begun = [*missing, *shared]
        sides = [_last(side[len(shared) :], where) for side in (chosen, rejected)]
        return _of_two(_prompt(begun, where), sides[0], sides[1])
    if not isinstance(chosen, str) or not isinstance(rejected, str):
        what = '"chosen" and "rejected" are not two texts, nor two lists of messages'
        raise InputError(what, where=where, fix=EXAMPLE)
    if prompt is None:  # the common prefix, up to a whole word
        pairs = zip(chosen, rejected, strict=False)
        prompt = "".join(one for one, _ in takewhile(lambda two: two[0] == two[1], pairs))
        prompt = prompt[: prompt.rfind(" ")] if " " in prompt else ""
        chosen, rejected = chosen[len(prompt) :], rejected[len(prompt) :]
    return _of_two(_prompt(prompt, where), sanitise(chosen), sanitise(rejected))


def _asked(row: Mapping[str, Any]) -> object:
    """Returns the prompt of a row, after its system message if there is one; None if the row has no separate prompt."""
    asked = next((row[name] for name in ASKED if row.get(name) is not None), None)
    if not isinstance(asked, str):
        return asked
    if "prompt" not in row and isinstance(row.get("instruction"), str):  # as in Alpaca, with an input below it
        asked = "\n\n".join(
            one for one in (row["instruction"], row.get("input")) if isinstance(one, str) and one.strip()
        )
    said = row.get("system", row.get("system_prompt"))
    return [_turn("system", said), _turn("user", asked)] if isinstance(said, str) and said.strip() else asked


def _of_two(prompt: str, chosen: str, rejected: str) -> Judgement:
    """Returns a judgement that prefers the first; two equal texts are a tie."""
    return Judgement(prompt, (chosen, rejected), ((0, 1),) if chosen == rejected else ((0,), (1,)))


def _scored(row: Mapping[str, Any], where: str) -> Judgement:
    """Reads a row of UltraFeedback (Cui et al. 2023): an instruction, and completions with scores."""
    made = [one for one in row["completions"] if isinstance(one, dict) and isinstance(one.get("response"), str)]
    key = next((key for key in SCORES if made and all(_is_number(one.get(key)) for one in made)), None)
    if key is None or len(made) < len(row["completions"]):
        what = f'"completions" without a "response" and one of {", ".join(SCORES)} each'
        raise InputError(what, where=where, fix=EXAMPLE)
    candidates = tuple(sanitise(one["response"]) for one in made)
    prompt = _prompt(row.get("instruction", row.get("prompt")), where)
    return Judgement(prompt, candidates, order_by([float(one[key]) for one in made]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _prompt(value: object, where: str) -> str:
    if isinstance(value, str):
        return sanitise(value)
    if not isinstance(value, list) or not value or not all(map(is_message, value)):
        what = f"the prompt is {json_type(value)}, expected a text or a list of messages"
        raise InputError(what, where=where, fix=MESSAGES)
    return conversation([(one["role"], one["content"]) for one in value])


def conversation(messages: Iterable[tuple[str, str]]) -> str:
    """Returns messages, given as roles and contents, as the prompt of a judgement."""
    turns = [{"role": role, "content": sanitise(content)} for role, content in messages]
    return json.dumps(turns, ensure_ascii=False)


def is_message(value: object) -> bool:
    """Whether the value has a role and a content that are texts."""
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("role", "content"))


def _turn(role: str, content: object) -> dict[str, object]:
    return {"role": role, "content": content}


def _last(messages: Sequence[object], where: str) -> str:
    """Returns the content of the one message that is left of a side. Raises InputError for another number."""
    if len(messages) != 1 or not isinstance(one := messages[0], dict) or not is_message(one):
        what = f"{len(messages)} messages of a side are no part of the prompt, expected one answer"
        raise InputError(what, where=where, fix=MESSAGES)
    return sanitise(one["content"])
