"""People rank answers to prompts: which prompt comes next, and the judgements, which are saved one by one."""

import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from heedful.data.text.judgements import Judgement, judgements_in
from heedful.errors import InputError
from heedful.metrics.agreement import agreement
from heedful.store import files
from heedful.store.lock import one_after_another
from heedful.tasks.shared.terminal import on_one_line, say

Order = tuple[tuple[int, ...], ...]
Answers = Callable[[str], tuple[str, ...]]
HELP = "the numbers, the best first (2 1 3), alike ones with = (2 1=3); s: skip, u: undo, q: leave"
FIX = "name answers by their numbers, the best first: 2 1 3; alike ones with =: 2 1=3"


@dataclass(frozen=True)
class Item:
    """A prompt, and its answers, which are to be ranked."""

    prompt: str
    candidates: tuple[str, ...]


class Ranking:
    """The judgements in a file, to which several people and processes may add at the same time."""

    def __init__(self, out: Path, prompts: Iterable[str], answers: Answers) -> None:
        """Raises InputError for a file that holds something else, and StorageError if `out` is not a file."""
        self.out, self.prompts, self._answers = out.resolve(), list(dict.fromkeys(prompts)), answers
        if self.out.exists():
            files.refuse_other_than_files(self.out)
        self._read: list[Judgement] = []
        self._version: tuple[int, int, int] | None = None  # of the file that was read
        self._lock = threading.RLock()
        _ = self.judgements  # raises for a file that holds something else

    @property
    def judgements(self) -> list[Judgement]:
        """All that are in the file, whoever added them. Raises as `__init__`."""
        with self._lock:
            if not self.out.exists():
                return []
            if self._stamp() != self._version:
                with one_after_another(self.out):  # nobody is writing a line
                    self._reread()
            return self._read

    def _reread(self) -> None:
        """Where the file is locked."""
        self._version = self._stamp()
        self._read = judgements_in(self.out) if self.out.stat().st_size else []

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.out.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def next(self, who: str) -> Item | None:
        """The next item for this person; None if all are judged. Prompts with a single answer are skipped."""
        done = {one.prompt for one in self.judgements if one.who == who}
        for prompt in self.prompts:
            if prompt not in done and len(candidates := self._answers(prompt)) > 1:
                return Item(prompt, candidates)
        return None

    def count(self, who: str) -> int:
        """How many of the prompts this person has judged or skipped."""
        return len({one.prompt for one in self.judgements if one.who == who} & set(self.prompts))

    def judge(self, who: str, item: Item, order: Order) -> None:
        """Saves an order of an item's answers; an empty order skips it. Raises InputError or StorageError."""
        numbers = [number for group in order for number in group]
        if len(set(numbers)) < len(numbers) or not all(0 <= number < len(item.candidates) for number in numbers):
            raise InputError("an order that names an answer twice, or one that is not there", fix=FIX)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        made = Judgement(item.prompt, item.candidates, tuple(group for group in order if group), who, now)
        with self._lock, one_after_another(self.out):
            if self._stamp() != self._version:
                self._reread()
            files.append_line(self.out, json.dumps(made.record(), ensure_ascii=False))
            self._read, self._version = [*self._read, made], self._stamp()

    def undo(self, who: str) -> bool:
        """Removes this person's last judgement; False if there is none."""
        if not any(one.who == who for one in self.judgements):
            return False
        with self._lock, one_after_another(self.out):
            self._reread()  # also where it looks the same: an inode may be used again
            last = max((i for i, one in enumerate(self._read) if one.who == who), default=None)
            if last is None:
                return False
            self._read = [*self._read[:last], *self._read[last + 1 :]]
            rows = (json.dumps(one.record(), ensure_ascii=False) for one in self._read)
            files.write_output(self.out, "".join(f"{row}\n" for row in rows).encode())
            self._version = self._stamp()
            return True

    def agreement(self) -> dict[str, float | int]:
        """The agreement of all who judged the same answers; a person's last judgement counts."""
        judged: dict[str, dict[str, Sequence[int]]] = {}
        for one in self.judgements:
            if one.order:
                judged.setdefault(repr((one.prompt, one.candidates)), {})[one.who] = one.ranks
        return agreement(judged)


def order_in(text: str, count: int) -> Order:
    """Parses an order: "2 1=3", or "213" where there are at most 9 answers; numbers begin at 1. Raises InputError."""
    plain = re.sub(r"\s*=\s*", "=", text.strip())
    words = plain.split() if " " in plain or count > 9 else re.findall(r"\d(?:=\d)*|\D+", plain)
    groups = [word.split("=") for word in words]
    if not words or not all(part.isdecimal() and 1 <= int(part) <= count for group in groups for part in group):
        raise InputError(f"{text.strip()[:40]!r} is no order of {count} answers", fix=FIX)
    order = tuple(tuple(int(part) - 1 for part in group) for group in groups)
    if len({number for group in order for number in group}) < sum(map(len, order)):
        raise InputError(f"{text.strip()[:40]!r} names an answer twice", fix=FIX)
    if len(order) == len(order[0]) == 1:
        raise InputError(f"{text.strip()[:40]!r} is one answer alone, before no other", fix=FIX)
    return order


def in_terminal(ranking: Ranking, who: str) -> None:
    """Ranking in the terminal, until all is judged or standard input ends."""
    say(HELP)
    item = shown(ranking, who)
    while item is not None:
        if sys.stdin.isatty():
            sys.stderr.write("> ")
            sys.stderr.flush()
        line = sys.stdin.readline()
        word = line.strip().lower()
        if not line or word == "q":
            return
        if word == "u":
            if not ranking.undo(who):
                say("nothing to take back")
        else:
            try:
                ranking.judge(who, item, () if word == "s" else order_in(line, len(item.candidates)))
            except InputError as error:
                say(f"{error}: {error.fix}")
                continue
        item = shown(ranking, who)


def shown(ranking: Ranking, who: str) -> Item | None:
    item = ranking.next(who)
    if item is not None:
        say(f"\n[{ranking.count(who) + 1} of {len(ranking.prompts)}] {on_one_line(item.prompt)}")
        for number, text in enumerate(item.candidates, 1):
            say(f"  {number}  {on_one_line(text)}")
    return item
