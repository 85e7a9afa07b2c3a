"""A program that reads one document, hands out its passages, and writes the document with their translations.

A document may be made to cost its reader minutes and gigabytes. So a server reads each in a process of its own, which
the system ends after `PATIENCE` seconds for one request, and limits to `MEMORY` bytes where that is supported (on
Linux). Requests and answers are JSON objects, each on a line; the contents of the document before and after follow such
a line.
"""

import contextlib
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.data.documents.passages import Placed, passage_json
from heedful.data.documents.read import document_in
from heedful.data.text.headers import other_languages
from heedful.errors import HeedError, InputError

MEMORY = 1 << 30  # bytes
PATIENCE = 60  # seconds
TOGETHER = (16, 2000)  # passages of an answer, and characters from which there are no more of them
LONGEST = 20_000  # characters of a passage, as of other texts that a server translates
MOST_TAGS = 5000  # of a passage


class OpenDocument:
    """A document that is translated. `languages`: from which to which."""

    def __init__(self, data: bytes, name: str, languages: tuple[str, str]) -> None:
        """Raises InputError."""
        self.name, self.languages, self.document = name, languages, document_in(data, name, languages[1])
        self.passages = self.document.passages
        self.placed: list[Placed] = []
        self.flagged: list[bool] = []
        for passage in self.passages:
            if len(passage.text) > LONGEST:
                what = f"a paragraph of {len(passage.text):,} characters, at most {LONGEST:,} are translated here"
                raise InputError(what, where=passage.where(name), fix="break its lines")
            if len(passage.marks) > MOST_TAGS:
                what = f"a paragraph with {len(passage.marks):,} tags, at most {MOST_TAGS:,} are moved here"
                raise InputError(what, where=passage.where(name), fix="take out those that are empty")

    def facts(self) -> dict[str, Any]:
        """The numbers of passages and of characters to translate, and what is to be told of the whole document."""
        ways = {"source": "from", "target": "to"}
        others = (
            f"it is to be translated {ways[side]} {one}, and is translated {ways[side]} {other}"
            for said in self.document.languages
            for side, one, other in other_languages(said, self.languages)
        )
        notes = (*dict.fromkeys(others), *self.document.notes)
        return {
            "count": len(self.passages),
            "characters": sum(len(passage.text) for passage in self.passages),
            "warnings": [f"{self.name}: {note}" for note in notes],
        }

    def take(self, translated: Sequence[Mapping[str, Any]]) -> list[str]:
        """Keeps the translations of the next passages; returns their warnings, with the passages of each."""
        warnings = list[str]()
        for record in translated:
            passage = self.passages[len(self.placed)]
            self.placed.append([part if isinstance(part, str) else passage.marks[part] for part in record["parts"]])
            self.flagged.append(record["flagged"])
            warnings += [f"{passage.where(self.name)}: {warning}" for warning in record["warnings"]]
        return warnings

    def following(self) -> list[str]:
        """The passages to translate next; none at the end."""
        most, enough = TOGETHER
        chosen, characters = list[str](), 0
        for passage in self.passages[len(self.placed) : len(self.placed) + most]:
            if characters >= enough:
                break
            chosen.append(passage_json(passage))
            characters += len(passage.text)
        return chosen

    def written(self) -> bytes:
        """Raises InputError."""
        return self.document.written(self.placed, self.flagged)


def main() -> None:
    _limit_memory()
    header = json.loads(sys.stdin.buffer.readline())
    try:
        _end_after(PATIENCE)
        document = OpenDocument(sys.stdin.buffer.read(header["size"]), header["name"], tuple(header["languages"]))
        answer = document.facts()
        while passages := document.following():
            _tell({**answer, "passages": passages})
            _end_after(0)
            request = sys.stdin.buffer.readline()
            if not request:  # the server is gone
                return
            _end_after(PATIENCE)
            answer = {"warnings": document.take(json.loads(request)["translated"])}
        data = document.written()
        _tell({**answer, "passages": [], "size": len(data)}, data)
    except HeedError as error:
        _tell({"error": str(error), "fix": error.fix})
    except MemoryError:
        document = None  # there must be some left to say so
        _tell(
            {
                "error": f"{header['name']}: it needs more than {MEMORY >> 20:,} MiB to be read",
                "fix": "give it in parts",
            }
        )


def _tell(answer: Mapping[str, Any], data: bytes = b"") -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + data)
    sys.stdout.buffer.flush()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such module, macOS no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _end_after(seconds: int) -> None:
    """Ends this process after so many seconds; 0 cancels that."""
    if sys.platform != "win32":
        signal.alarm(seconds)


if __name__ == "__main__":
    main()
