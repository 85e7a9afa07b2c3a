"""Glossaries that programs send to a server, and name when they translate, as in DeepL's protocol. They are kept in
memory, limited in number and size, until the server ends."""

import asyncio
import csv
import io
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import uuid4

from pydantic import Field

from heedful.data.text.glossary import entries_in, glossary_of
from heedful.errors import InputError
from heedful.serve.languages import ServedPair, code
from heedful.serve.public import Name, RequestBody
from heedful.serve.refusals import Refused

MOST = 64
GLOSSARY_BYTES = 1 << 20  # of a request that sends one

Entries = list[tuple[str, str]]


class NewGlossary(RequestBody):
    """The body of `/v2/glossaries`."""

    IGNORED: ClassVar = {"auth_key": "it is read before the rest"}

    name: Annotated[str, Field(min_length=1, max_length=1000)]
    source_lang: Name
    target_lang: Name
    entries: Annotated[str, Field(min_length=1, max_length=GLOSSARY_BYTES)]
    entries_format: Literal["tsv", "csv"]


@dataclass(frozen=True)
class StoredGlossary:
    """A glossary from `source` to `target`, which are language codes. Each line of `entries` has a term, a TAB and its
    translation."""

    name: str
    source: str
    target: str
    entries: str
    id: str = field(default_factory=lambda: str(uuid4()))
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def record(self) -> dict[str, Any]:
        """The answer about a glossary: everything but its entries."""
        return {
            "glossary_id": self.id,
            "name": self.name,
            "ready": True,
            "source_lang": self.source,
            "target_lang": self.target,
            "creation_time": f"{self.made:%Y-%m-%dT%H:%M:%S.%f}Z",
            "entry_count": self.entries.count("\n") + 1,
        }


class Glossaries(dict[str, StoredGlossary]):
    """The glossaries by their ids."""

    async def keep(self, sent: NewGlossary, pair: ServedPair) -> StoredGlossary:
        """Stores a glossary. Raises Refused where there is no room, and InputError for invalid entries."""
        self._refuse_more()
        source, target = code(pair.source), code(pair.target)
        entries = await asyncio.to_thread(_entries, sent, source, target)
        self._refuse_more()
        kept = StoredGlossary(sent.name, source, target, entries)
        self[kept.id] = kept
        return kept

    def _refuse_more(self) -> None:
        if len(self) >= MOST:
            raise Refused(400, f"{MOST} glossaries are kept here, and no more: delete one first")

    def named(self, name: str) -> StoredGlossary:
        """Raises Refused."""
        if name not in self:
            raise Refused(404, "glossary_id: there is no such glossary, or none any more", param="glossary_id")
        return self[name]


def _entries(sent: NewGlossary, source: str, target: str) -> str:
    """The entries of a glossary, a line for each. Raises InputError."""
    found = _entries_of_csv(sent.entries, source, target) if sent.entries_format == "csv" else None
    entries = entries_in(sent.entries, where="entries") if found is None else found
    seen = set[str]()
    for term, _ in entries:
        if term in seen:
            raise InputError(f"{term!r} comes twice", where="entries", fix="several forms of one: Hund|Hunde")
        seen.add(term)
    glossary_of(entries, where="entries")
    return "\n".join(map("\t".join, entries))


def _entries_of_csv(text: str, source: str, target: str) -> Entries:
    """Parses CSV: a term and its translation in each row, optionally their languages. Raises InputError."""
    rows, made = csv.reader(io.StringIO(text), strict=True), Entries()
    try:
        for row in filter(None, rows):
            if len(row) not in (2, 4) or [*map(code, row[2:])] not in ([], [source, target]):
                what = f"line {rows.line_num} is not a term, its translation, {source}, {target}"
                raise InputError(what, where="entries", fix="the languages may be left out")
            made.append((" ".join(row[0].split()), " ".join(row[1].split())))
    except csv.Error as error:
        raise InputError(f"line {rows.line_num}: {error}", where="entries") from None
    return made
