"""Reads conversations for training; the layout of a file is recognised by its contents.

JSON objects: OpenAI's {"messages": [{"role", "content"}]}, ShareGPT's {"conversations": [{"from", "value"}]}, Alpaca's
{"instruction", "input", "output"} (and self-instruct's, whose "instances" have inputs and outputs), Dolly's
{"instruction", "context", "response"}, {"question", "answer"} and {"prompt", "completion" or "response"}. Or lines of a
table: a question, a TAB and its answer.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from heedful.data.large import large_lines
from heedful.data.lines import json_items, json_lines, json_object, json_type, listed, read_lines, sanitise
from heedful.data.parts import Parts, kind_of, read_parts, read_tests
from heedful.data.tables import tab_cells
from heedful.errors import InputError, are, counted

KINDS = (".jsonl", ".json", ".tsv", ".txt")
FIX = 'write {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]} on each line'
TURN = 'a message is {"role": "system", "user" or "assistant", "content": "..."}'
ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
}
TOOLS = ("tool", "function", "function_call", "observation")  # roles that only conversations with tools have
TWO = (
    ("question", "answer"),
    ("prompt", "completion"),
    ("prompt", "response"),
    ("instruction", "output"),
    ("instruction", "response"),
)  # also the headers of tables
NO_ANSWER, EMPTY, CALLS = "without an answer", "with an empty turn", "with calls of tools"


class Message(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str
    weight: NotRequired[int]  # 0 for an answer that is context, but not trained on


Conversation = tuple[Message, ...]


@dataclass
class _Taken:
    """Counts of the conversations that were read, by layout, and of those that were left out, by reason."""

    layouts: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0  # conversations with turns after the last answer

    def notes(self, where: str) -> list[str]:
        told = [f"{where}: {counted(count, 'conversation')} as {layout}" for layout, count in self.layouts.items()]
        told += [
            f"{where}: {counted(count, 'conversation')} {why} {are(count)} left out" for why, count in self.left.items()
        ]
        if self.unanswered:
            told.append(f"{where}: what follows the last answer is cut from {counted(self.unanswered, 'conversation')}")
        return told


def read_conversations(path: str | Path) -> Parts[list[Conversation]]:
    """Reads the conversations of a file or folder, in parts as in `read_parts`; without validation data, conversations
    with the same first user message are held out together. Raises InputError or MissingError, also for a row in none of
    the layouts."""
    taken: list[str] = []
    parts = read_parts(path, lambda file: _read(file, taken), kinds=KINDS, key=asked_first)
    return replace(parts, notes=(*taken, *parts.notes))


def read_asked(path: str | Path) -> dict[str, list[Conversation]]:
    """Reads the conversations of a file, or of a folder's test files, by name, for measuring. Raises InputError or
    MissingError."""
    return read_tests(path, lambda file: _read(file, []), kinds=KINDS)


def messages_of(value: object) -> list[dict[str, Any]]:
    """Checks messages that are to be answered: each has a role, of any name, and a text or tool calls. A text in
    several parts is joined. Raises InputError."""
    return [_spoken(json_object(one, "", TURN)) for one in _list(value, "")]


def _spoken(one: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(one.get("role"), str):
        raise InputError(f"the role {one.get('role')!r}", fix=TURN)
    if one.get("content") is None and one.get("tool_calls"):
        return one
    return one | {"content": _message("user", one.get("content"), "")["content"]}


def asked_first(conversation: Conversation) -> str:
    """The first user message, by which conversations are held out."""
    return next((one["content"] for one in conversation if one["role"] == "user"), "")


def _read(path: Path, notes: list[str]) -> list[Conversation]:
    return [*conversations_in(path, notes)]


def conversations_in(path: Path, notes: list[str]) -> Iterator[Conversation]:
    """Yields the conversations of a file, and then adds notes on what was left out. A large file is not held in memory.
    Raises InputError or MissingError."""
    if kind_of(path) not in KINDS:
        what = "not a kind of file that conversations are read from"
        raise InputError(what, where=str(path), fix=f"give {', '.join(KINDS)}, or one of these with .gz")
    taken, some = _Taken(), False
    for layout, turns in _rows(path):
        if (each := _kept(turns, layout, taken)) is not None:
            some = True
            yield each
    notes += taken.notes(str(path))
    if not some:
        raise InputError("no conversation with an answer", where=str(path), fix=FIX)


def _rows(path: Path) -> Iterator[tuple[str, Sequence[Message | None]]]:
    """Yields the layout and the turns of each row; None stands for a turn of a tool."""
    lines = large_lines(path) or read_lines(path, longest=None)
    first = next(line.strip() for line in lines if line.strip())
    if kind_of(path) == ".json" or first == "[" or first.replace(" ", "").startswith("[{"):
        items = iter(json_items(path))
    elif kind_of(path) == ".jsonl" or (first.startswith("{") and first.endswith("}")):
        items = json_lines(path, lines)
    else:
        yield from _table(path, lines)
        return
    for where, row in items:
        yield from _objects(row, where)


def _table(path: Path, lines: Sequence[str]) -> Iterator[tuple[str, Sequence[Message]]]:
    begun = False
    for number, cells in tab_cells(path, lines):
        if not cells:
            continue
        if len(cells) != 2:
            what = f"{len(cells)} column{'s' * (len(cells) > 1)}, expected 2 (question TAB answer)"
            raise InputError(what, where=f"{path}:{number}", fix="give a question, a TAB and its answer on each line")
        if begun or tuple(cell.strip().lower() for cell in cells) not in TWO:
            yield "question TAB answer", _pair(*map(sanitise, cells))
        begun = True


def _objects(row: object, where: str) -> Iterator[tuple[str, Sequence[Message | None]]]:
    """Yields the conversations of one object: for self-instruct, one for each instance."""
    row = json_object(row, where, FIX)
    for key in ("messages", "conversations"):
        if key in row:
            turns = [_turn(one, where) for one in _list(row[key], where)]
            layout = "ShareGPT" if any("from" in one for one in row[key]) else "messages"
            yield layout, [*_system(row), *turns]
            return
    if isinstance(row.get("instances"), list) and "instruction" in row:
        for one in row["instances"]:
            yield (
                "self-instruct",
                _instructed({"instruction": row["instruction"], **json_object(one, where, TURN)}, where),
            )
        return
    if "instruction" in row and "output" in row:
        yield "Alpaca", [*_system(row), *_history(row, where), *_instructed(row, where)]
        return
    if "instruction" in row and "response" in row:
        given = row.get("context", row.get("input"))
        said = {"instruction": row["instruction"], "input": given, "output": row["response"]}
        yield "Dolly", [*_system(row), *_instructed(said, where)]
        return
    for asked, answered in TWO:
        if asked in row and answered in row:
            yield f"{asked} and {answered}", [*_system(row), *_sides(row[asked], row[answered], where)]
            return
    raise InputError(f"no conversation: there are keys {listed(row)}", where=where, fix=FIX)


def _kept(turns: Sequence[Message | None], layout: str, taken: _Taken) -> Conversation | None:
    """Returns the turns up to the last answer; None if the conversation is left out."""
    whole = [one for one in turns if one is not None]
    answers = (i for i, one in enumerate(whole, 1) if one["role"] == "assistant" and one.get("weight", 1))
    answered = max(answers, default=0)
    kept = tuple(one for one in whole[:answered] if one["role"] != "system" or one["content"].strip())
    why = CALLS if len(whole) < len(turns) else NO_ANSWER if not answered else None
    if why is None and not all(one["content"].strip() for one in kept):
        why = EMPTY
    if why is not None:
        taken.left[why] += 1
        return None
    taken.layouts[layout] += 1
    taken.unanswered += answered < len(whole)
    return kept


def _turn(value: object, where: str) -> Message | None:
    """Returns a message, with either pair of key names; None if a tool takes part in it. Raises InputError."""
    one = json_object(value, where, TURN)
    name = one.get("role", one.get("from"))
    if name in TOOLS or one.get("tool_calls") or one.get("function_call"):
        return None
    if not isinstance(name, str) or name.lower() not in ROLES:
        raise InputError(f"the role {name!r}", where=where, fix=TURN)
    made = _message(ROLES[name.lower()], one.get("content", one.get("value")), where)
    return Message(**made, weight=0) if one.get("weight") == 0 else made


def _message(role: Any, content: object, where: str) -> Message:
    if isinstance(content, list):  # OpenAI's content parts, if all are texts
        parts = [one.get("text") if isinstance(one, dict) and one.get("type") == "text" else None for one in content]
        content = "".join(map(str, parts)) if None not in parts else content
    if not isinstance(content, str):
        raise InputError(f"the content of a message is {json_type(content)}, expected text", where=where, fix=TURN)
    return {"role": role, "content": sanitise(content)}


def _pair(question: str, answer: str) -> tuple[Message, Message]:
    return {"role": "user", "content": question}, {"role": "assistant", "content": answer}


def _sides(asked: object, answered: object, where: str) -> list[Message | None]:
    """Returns the turns of a prompt and its completion, each a text or a list of messages."""
    sides: list[Message | None] = []
    for role, side in (("user", asked), ("assistant", answered)):
        sides += [_turn(one, where) for one in side] if isinstance(side, list) else [_message(role, side, where)]
    return sides


def _instructed(row: Mapping[str, Any], where: str) -> tuple[Message, Message]:
    """Returns an instruction, followed by its input if there is one, and the output."""
    said = {"input": "", "output": "", **row}
    values = [said["instruction"], "" if said["input"] is None else said["input"], said["output"]]
    texts = [_message("user", value, where)["content"] for value in values]
    return _pair("\n\n".join(filter(str.strip, texts[:2])), texts[2])


def _history(row: Mapping[str, Any], where: str) -> Iterator[Message]:
    """Yields the turns before an instruction."""
    earlier = row.get("history") or []
    known = isinstance(earlier, list) and all(isinstance(one, list) and len(one) == 2 for one in earlier)
    if not known:
        what = "a history that is no list of questions with their answers"
        raise InputError(what, where=where, fix='give [["...", "..."], ...]')
    for asked, answered in earlier:
        yield from (_message("user", asked, where), _message("assistant", answered, where))


def _system(row: Mapping[str, Any]) -> list[Message]:
    said = row.get("system", row.get("system_prompt"))
    return [{"role": "system", "content": sanitise(said)}] if isinstance(said, str) else []


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        what = "no messages" if value == [] else f"{json_type(value)}, expected a list of messages"
        raise InputError(what, where=where, fix=TURN)
    return value
