"""Documents that clients send to be translated. They are kept in memory until their translations are fetched, limited
in number, size and time. Each model translates one at a time, a few passages at a time, between other questions."""

import asyncio
import json
import logging
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from secrets import compare_digest, token_hex
from typing import Any, Literal
from urllib.parse import quote

from fastapi.responses import Response
from starlette.background import BackgroundTask

from heedful.data.documents.read import reader_of
from heedful.errors import BusyError, HeedError, InputError, LateError
from heedful.serve.document_process import PATIENCE
from heedful.serve.hosted import Hosted, Record
from heedful.serve.languages import code
from heedful.serve.public import PASSAGE
from heedful.serve.refusals import Refused, as_refused
from heedful.verbs.use import Directed, options_of

MOST = 64  # documents that are kept
MOST_BYTES = 1 << 28  # of all of them
DOCUMENT_BYTES = 1 << 25  # of a request that sends one
KEPT = 3600.0  # seconds since a document was last asked for
PAUSE = 1.0  # seconds until a model that is busy is asked again
LINE = 1 << 24  # bytes of an answer of the process that reads
PROGRAM = ("-P", "-m", "heedful.serve.document_process")

log = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class StoredDocument:
    """`data` is the document, and its translation once it is `done`. `key` is a secret for the protocols that have
    one."""

    name: str
    data: bytes
    hosted: Hosted
    settings: Mapping[str, Any]  # fields of the options of the verb
    languages: tuple[str, str]
    id: str = field(default_factory=lambda: token_hex(16))
    key: str = field(default_factory=lambda: token_hex(32))
    status: Literal["queued", "translating", "done", "error"] = "queued"
    passages: int = 0
    translated: int = 0  # of them
    characters: int = 0
    began: float = 0.0
    warnings: list[str] = field(default_factory=list)
    error: Refused | None = None
    work: "asyncio.Task[None] | None" = None
    forgotten: asyncio.TimerHandle | None = None

    @property
    def record(self) -> dict[str, Any]:
        """What a client is told of it."""
        said: dict[str, Any] = {key: getattr(self, key) for key in ("id", "name", "status", "passages", "translated")}
        said |= {"characters": self.characters, "warnings": self.warnings, "translated_name": self.translated_name}
        if self.error is not None:
            said["error"] = {"message": self.error.message, "fix": self.error.fix}
        return said

    @property
    def seconds_left(self) -> int | None:
        """Estimated from what is done so far."""
        if not self.translated:
            return None
        return 1 + int((time.monotonic() - self.began) / self.translated * (self.passages - self.translated))

    @property
    def translated_name(self) -> str:
        """manual.docx becomes manual.de.docx."""
        path = PurePath(self.name)
        return f"{path.stem}.{code(self.languages[1])}{path.suffix}"


class Documents(dict[str, StoredDocument]):
    """The documents by their ids."""

    def __init__(self) -> None:
        super().__init__()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # one at a time for each model

    def add(self, name: str, data: bytes, hosted: Hosted, settings: Mapping[str, Any]) -> StoredDocument:
        """Keeps a document, and begins its translation. Raises Refused where there is no room, and InputError for what
        is no document, or options that do not fit."""
        name = PurePath(name.replace("\\", "/")).name[-200:]
        name = "".join(letter if letter.isprintable() else "\ufffd" for letter in name)
        reader_of(name)
        failed = next((kept for kept in self.values() if kept.status == "error"), None)
        if len(self) >= MOST and failed is not None:  # the oldest gives up its place
            self.drop(failed.id)
        if len(self) >= MOST or sum(len(kept.data) for kept in self.values()) + len(data) > MOST_BYTES:
            what = f"{len(self)} documents are kept here, and there is no room for another"
            raise Refused(429, what, "fetch those that are done, or come back later", {"Retry-After": "60"})
        options, served = options_of(hosted.row.asks[PASSAGE](), PASSAGE, settings), hosted.served
        languages = served.directed(*options.asked()).languages if isinstance(served, Directed) else ("", "")
        made = StoredDocument(name=name, data=data, hosted=hosted, settings=settings, languages=languages)
        self[made.id] = made
        made.work = asyncio.create_task(self._translate(made))
        return self.named(made.id)

    def named(self, name: str, key: str | None = None) -> StoredDocument:
        """The document with this id, which is kept for an hour from now on. Raises Refused for another, and for a wrong
        key."""
        found = self.get(name)
        if found is None or (key is not None and not compare_digest(key.encode(), found.key.encode())):
            raise Refused(404, "there is no such document, or none any more", "send it again")
        if found.forgotten is not None:
            found.forgotten.cancel()
        found.forgotten = asyncio.get_running_loop().call_later(KEPT, self.drop, name)
        return found

    def drop(self, name: str) -> None:
        """Forgets a document, and stops its translation."""
        found = self.pop(name, None)
        if found is not None:
            for ended in (found.forgotten, found.work):
                if ended is not None:
                    ended.cancel()

    @staticmethod
    async def ended(document: StoredDocument, seconds: float | None = None) -> None:
        """Waits until a translation has ended, at most so long."""
        if document.work is not None:
            await asyncio.wait([document.work], timeout=seconds)

    async def close(self) -> None:
        work = [kept.work for kept in self.values() if kept.work is not None]
        for name in [*self]:
            self.drop(name)
        await asyncio.gather(*work, return_exceptions=True)

    def fetched(self, document: StoredDocument) -> Response:
        """The translation as an answer; the document is forgotten once that is sent. Raises Refused where it is not
        there."""
        if document.error is not None:
            raise document.error
        if document.status != "done":
            raise Refused(503, "it is not translated yet", "ask for its status", {"Retry-After": "1"})
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(document.translated_name, safe='')}"}
        forget = BackgroundTask(self.drop, document.id)
        return Response(document.data, media_type="application/octet-stream", headers=headers, background=forget)

    async def _translate(self, document: StoredDocument) -> None:
        try:
            async with self._turns[document.hosted.name]:
                document.status, document.began = "translating", time.monotonic()
                document.data = await _translated(document)
            document.status = "done"
        except Exception as error:
            document.status, document.data, document.error = "error", b"", as_refused(error)
            if document.error.status == 500:
                log.error("a document was not translated", exc_info=error)


async def _translated(document: StoredDocument) -> bytes:
    """The translation. Raises HeedError."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *PROGRAM, stdin=PIPE, stdout=PIPE, limit=LINE, start_new_session=True
    )
    try:
        header = {"name": document.name, "size": len(document.data), "languages": document.languages}
        answer = await _exchanged(process, header, document.data)
        document.passages, document.characters, document.data = answer["count"], answer["characters"], b""
        document.warnings += answer["warnings"]
        while answer["passages"]:
            records = await _answers(document, answer["passages"])
            answer = await _exchanged(process, {"translated": records})
            document.warnings += [each for each in answer["warnings"] if each not in document.warnings]
        assert process.stdout is not None
        return await process.stdout.readexactly(answer["size"])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _exchanged(process: Process, request: Mapping[str, Any], data: bytes = b"") -> dict[str, Any]:
    """Sends a request to the process that reads a document, and returns the answer. Raises InputError."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(ConnectionError):  # it has ended, and perhaps said why
        process.stdin.write(json.dumps(request).encode() + b"\n" + data)
        await process.stdin.drain()
    line = await process.stdout.readline()
    if not line.endswith(b"\n"):
        if await process.wait() == -signal.SIGALRM:
            raise InputError(f"it takes more than {PATIENCE} s to be read", fix="give it in parts")
        raise HeedError("the process that reads documents has ended")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise InputError(answer["error"], fix=answer["fix"])
    return answer


async def _answers(document: StoredDocument, passages: Sequence[str]) -> list[Record]:
    """The model's answer for each passage. A model that is busy is asked again, and one that is late for fewer."""
    found, size = list[Record](), len(passages)
    while part := passages[len(found) : len(found) + size]:
        try:
            records = await document.hosted.ask(PASSAGE, part, document.settings)
        except BusyError:
            await asyncio.sleep(PAUSE)
        except LateError:
            if size == 1:
                raise
            size //= 2
        else:
            found += [record for (record,) in records]
            document.translated += len(part)
    return found
