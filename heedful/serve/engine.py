"""What computes for many who ask at once: one thread a model, which owns it.

Texts that a language model continues come and go in one batch that lives on, between any two tokens. All else is
gathered: what came while the thread was at work, asks the same verb and has the same settings, is answered together,
and each gets its own. Who asks alone never waits for others. One request's error never ends another's: a batch that
raises is asked again, each by itself.

Nothing waits without end: the queue is bounded (BusyError), and so is the time until an answer or the next piece of a
text (LateError). What was given up before its turn is never computed.
"""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from heedful.core.config import from_json, unknown_key
from heedful.core.seeds import counter_seed
from heedful.decode.settings import Sampling
from heedful.errors import BusyError, InputError, LateError, TextError
from heedful.run.task import Embedder, Served, Task
from heedful.serve.hosted import Piece, Record, Writing
from heedful.serve.meters import Meters
from heedful.tasks.load import row_of_model, row_of_run
from heedful.tasks.shared.served import by_library
from heedful.verbs.opened import open_model
from heedful.verbs.use import ask_each, options_of, question_of

Made = TypeVar("Made")
ENGINES = ("auto", "own", "ctranslate2")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Of one model that is served."""

    waiting: int = 256  # requests in its queue
    inputs: int = 64  # answered together
    rows: int = 32  # texts that are continued at a time
    seconds: float = 60.0  # until an answer, or the next piece of a text
    gather: float = 0.004  # seconds that a batch waits for as many as the one before it had


@runtime_checkable
class Written(Protocol):
    """What a step adds to the text of a number."""

    @property
    def text(self) -> int: ...
    @property
    def piece(self) -> str: ...
    @property
    def token(self) -> int | None: ...
    @property
    def logprob(self) -> float: ...
    @property
    def finish(self) -> str | None: ...


@runtime_checkable
class TextWriter(Protocol):
    """What continues texts that come and go."""

    def __len__(self) -> int: ...
    def add(self, ids: Sequence[int], sampling: Sampling, *, tokens: int, stop: Sequence[str] = ()) -> int: ...
    def cancel(self, number: int) -> None: ...
    def step(self) -> Sequence[Written]: ...


@runtime_checkable
class Writes(Protocol):
    """A model that continues texts."""

    def begun(self, prompt: str | Sequence[int]) -> list[int]: ...
    def writer(self, *, rows: int) -> TextWriter: ...


@dataclass(eq=False)
class _Question:
    """Inputs for a verb; questions with equal keys are asked together (None: never)."""

    verb: str
    inputs: Sequence[str]
    settings: Mapping[str, Any]
    key: str | None
    future: "Future[list[list[Record]]]" = field(default_factory=Future)


@dataclass(eq=False)
class _Work:
    work: Callable[[], Any]
    future: "Future[Any]" = field(default_factory=Future)


@dataclass(eq=False)
class _Text:
    """A text to continue; `send` hands a piece, or an error, to who waits for it."""

    prompt: str | Sequence[int]
    writing: Writing
    sampling: Sampling
    send: Callable[[Piece | Exception], None]
    over: bool = False  # given up, or complete


class Engine:
    """One model that is served (`heedful.serve.hosted.Hosted`). `fast` is the same model by another library, which is
    asked first: what it cannot do, the model itself does."""

    def __init__(
        self,
        name: str,
        run: Path,
        row: Task,
        served: Served,
        engine: str = "own",
        *,
        fast: Served | None = None,
        limits: Limits | None = None,
        meters: Meters | None = None,
        device: str = "cpu",
    ) -> None:
        self.name, self.run, self.row, self.served, self.engine = name, run, row, served, engine
        self.limits, self.meters = limits or Limits(), meters or Meters()
        self._fast, self._device = fast, device
        self._changed = threading.Condition()  # guards what follows
        self._jobs: deque[_Question | _Work] = deque()
        self._texts: deque[_Text] = deque()
        self._closed = False
        # The thread's own.
        self._writing: dict[int, _Text] = {}
        self._writer: TextWriter | None = None
        self._embedder: Embedder | None = None
        self._before = 1  # questions in the last batch
        self._thread = threading.Thread(target=self._run, name=f"heed {name}", daemon=True)
        self._thread.start()

    async def ask(
        self, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None
    ) -> list[list[Record]]:
        question = question_of(self.row, verb)
        options = options_of(question, verb, settings)
        if not inputs:
            return []
        begun = time.monotonic()
        if verb == self.row.streams:
            found = await self._write_whole(inputs, options)
        else:
            chosen = dict(settings or {})
            key = json.dumps([verb, chosen], sort_keys=True, default=str) if question.gathers(options) else None
            found = await self._wait(_Question(verb, inputs, chosen, key))
        self.meters.answered.labels(self.name, verb).observe(time.monotonic() - begun)
        self.meters.inputs.labels(self.name, verb).inc(len(inputs))
        return found

    async def write(self, prompt: str | Sequence[int], writing: Writing) -> AsyncGenerator[Piece, None]:
        how = from_json(Sampling, dict(writing.sampling), where="sampling", largest=None)
        own = replace(how, seed=counter_seed(how.seed, 0, 0))  # as of one prompt, once
        async with aclosing(self._write(prompt, writing, own)) as pieces:
            async for piece in pieces:
                yield piece

    async def alone(self, work: Callable[[], Made]) -> Made:
        return await self._wait(_Work(work))

    async def embed(self, inputs: Sequence[str]) -> list[list[float]]:
        """A vector of each text. Raises InputError for a model that makes none."""
        if self.row.embedder is None:
            raise InputError(f"{self.name} makes no vectors of texts", fix="ask a model that reads texts")
        return await self.alone(lambda: self._vectors(inputs)) if inputs else []

    def close(self) -> None:
        """Nothing more is answered; the thread ends after what it is at, and with the process."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout=1)

    @property
    def waiting(self) -> int:
        return len(self._jobs) + len(self._texts)

    # In the event loop's thread.

    def _submit(self, queue: deque[Any], jobs: Sequence[Any]) -> None:
        """All of one request, or BusyError."""
        with self._changed:
            if self._closed:
                raise BusyError(f"{self.name} is no longer served")
            if self.waiting >= self.limits.waiting:
                raise BusyError(f"{self.name} has {self.waiting} requests waiting", fix="ask again in a second")
            queue.extend(jobs)
            self.meters.waiting.labels(self.name).set(self.waiting)
            self._changed.notify_all()

    async def _wait(self, job: "_Question | _Work") -> Any:
        self._submit(self._jobs, [job])
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.future), self.limits.seconds)
        except TimeoutError:
            if job.future.done() and not job.future.cancelled():
                raise  # the work's own
            raise self._late() from None

    def _late(self) -> LateError:
        return LateError(f"{self.name} had no answer within {self.limits.seconds:g} s", fix="ask for less, or later")

    async def _write_whole(self, prompts: Sequence[str], options: Any) -> list[list[Record]]:
        """The records of a verb whose answers are texts: each sample of each prompt."""
        how = Sampling(**options.sampling)
        writing = Writing(tokens=options.tokens, stop=options.stop, sampling=options.sampling)
        if writing.tokens < 1 or options.samples < 1:
            raise InputError(f"{options.samples} texts of {writing.tokens} tokens", fix="ask for 1 or more")

        async def whole(prompt: str, number: int, sample: int) -> Record:
            own, made = replace(how, seed=counter_seed(how.seed, number, sample)), []
            async with aclosing(self._write(prompt, writing, own)) as pieces:
                async for piece in pieces:
                    made.append(piece)
            said = [piece for piece in made if piece.token is not None]
            return {
                "prompt": prompt,
                "text": "".join(piece.text for piece in made),
                "tokens": [piece.token for piece in said],
                "logprobs": [piece.logprob for piece in said],
            }

        count = options.samples
        tasks = [asyncio.ensure_future(whole(prompt, i, j)) for i, prompt in enumerate(prompts) for j in range(count)]
        try:
            made = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [made[i : i + count] for i in range(0, len(made), count)]

    async def _write(
        self, prompt: str | Sequence[int], writing: Writing, sampling: Sampling
    ) -> AsyncGenerator[Piece, None]:
        if not isinstance(self.served, Writes):
            raise InputError(f"{self.name} continues no texts", fix="ask a language model")
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Piece | Exception]()

        def send(piece: Piece | Exception) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        text = _Text(prompt, writing, sampling, send)
        self._submit(self._texts, [text])
        try:
            while True:
                try:
                    piece = await asyncio.wait_for(pieces.get(), self.limits.seconds)
                except TimeoutError:
                    raise self._late() from None
                if isinstance(piece, Exception):
                    raise piece
                yield piece
                if piece.finish is not None:
                    return
        finally:
            text.over = True
            with self._changed:
                with suppress(ValueError):
                    self._texts.remove(text)
                self._changed.notify_all()

    # In the model's own thread.

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._jobs or self._texts or self._writing or self._closed):
                    self._changed.wait()
                if self._closed:
                    break
                jobs = self._taken()
                self.meters.waiting.labels(self.name).set(self.waiting)
            if jobs and isinstance(jobs[0], _Work):
                _carry_out(jobs[0].future, jobs[0].work)
            elif jobs:
                self._answer([job for job in jobs if isinstance(job, _Question)])
            self._enter()
            self._step()
        error = BusyError(f"{self.name} is no longer served")
        for job in self._jobs:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(error)
        for text in (*self._texts, *self._writing.values()):
            text.send(error)

    def _taken(self) -> list[_Question | _Work]:
        """The first in the queue, and what may be asked with it; those who gave up have left."""
        self._jobs = deque(job for job in self._jobs if not job.future.cancelled())
        if not self._jobs:
            return []
        first = self._jobs[0]
        if isinstance(first, _Work) or first.key is None:
            return [self._jobs.popleft()]
        if self._before > 1 and not self._writing:  # who was answered together will ask together again
            self._changed.wait_for(lambda: self._closed or len(self._jobs) >= self._before, self.limits.gather)
        taken: list[_Question | _Work] = []
        count = 0
        for job in [*self._jobs]:
            if isinstance(job, _Question) and job.key == first.key:
                if taken and count + len(job.inputs) > self.limits.inputs:
                    break
                taken.append(job)
                count += len(job.inputs)
        self._jobs = deque(job for job in self._jobs if job not in taken)
        return taken

    def _answer(self, questions: list[_Question]) -> None:
        questions = [one for one in questions if one.future.set_running_or_notify_cancel()]
        self._before = max(1, len(questions))
        if not questions:
            return
        inputs = [text for one in questions for text in one.inputs]
        self.meters.batches.labels(self.name).observe(len(inputs))
        if len(questions) > 1:
            with suppress(Exception):
                rest = iter(self._records(questions[0], inputs))
                answers = [[next(rest) for _ in one.inputs] for one in questions]
                for one, own in zip(questions, answers, strict=True):
                    one.future.set_result(own)
                return
        for one in questions:
            try:
                own = self._records(one, one.inputs)
            except Exception as error:
                one.future.set_exception(error)
            else:
                one.future.set_result(own)

    def _records(self, question: _Question, inputs: Sequence[str]) -> list[list[Record]]:
        if self._fast is not None:
            try:
                return ask_each(self._fast, question.verb, inputs, question.settings)
            except TextError:
                raise
            except InputError:
                pass  # what the library cannot do
        return ask_each(self.served, question.verb, inputs, question.settings)

    def _enter(self) -> None:
        """Lets texts in, as far as there are rows."""
        while len(self._writing) < self.limits.rows:
            with self._changed:
                if not self._texts:
                    return
                text = self._texts.popleft()
            if text.over:
                continue
            assert isinstance(self.served, Writes)
            self._writer = self._writer or self.served.writer(rows=self.limits.rows)
            try:
                how, prompt = text.writing, text.prompt
                ids = [int(token) for token in prompt] if how.exact else self.served.begun(prompt)
                self._writing[self._writer.add(ids, text.sampling, tokens=how.tokens, stop=how.stop)] = text
            except Exception as error:
                text.send(error)

    def _step(self) -> None:
        """The next token of each text that is being continued."""
        writer = self._writer
        for number in [number for number, text in self._writing.items() if text.over]:
            del self._writing[number]
            if writer is not None:
                writer.cancel(number)
        if writer is None or not self._writing:
            return
        try:
            pieces = writer.step()
        except Exception as error:  # whose it is cannot be told
            for text in self._writing.values():
                text.send(error)
            self._writing, self._writer = {}, None
            return
        tokens = 0
        for one in pieces:
            self._writing[one.text].send(Piece(one.piece, one.token, one.logprob, one.finish))
            tokens += one.token is not None
            if one.finish is not None:
                del self._writing[one.text]
        self.meters.tokens.labels(self.name).inc(tokens)

    def _vectors(self, inputs: Sequence[str]) -> list[list[float]]:
        if self._embedder is None:
            assert self.row.embedder is not None
            own = self.served
            loaded: Embedder = (
                own if isinstance(own, Embedder) else self.row.embedder().load(self.run, device=self._device)
            )
            self._embedder = loaded
        vectors, _ = self._embedder.vectors_of(inputs)
        made: list[list[float]] = vectors.tolist()
        return made


def _carry_out(future: "Future[Any]", work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        found = work()
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(found)


def open_engine(
    run: Path,
    *,
    engine: str = "auto",
    device: str = "cpu",
    name: str | None = None,
    limits: Limits | None = None,
    meters: Meters | None = None,
) -> Engine:
    """The model in a run's folder. By "auto" a model on a CPU is asked by CTranslate2, where that can serve it. Raises
    MissingError, InputError or StorageError."""
    if engine not in ENGINES:
        raise unknown_key(engine, [*ENGINES], where="engine")
    row_of_run(run)
    served = open_model(run, object, device=device)
    row = row_of_model(served)
    fast = None if engine == "own" else _by_library(run, row, device, required=engine != "auto")
    used = "own" if fast is None else "ctranslate2"
    name = name or run.resolve().name
    return Engine(name, run, row, served, used, fast=fast, limits=limits, meters=meters, device=device)


def _by_library(run: Path, row: Task, device: str, *, required: bool) -> Served | None:
    """The model by another library; None where it cannot be had, and is not `required`."""
    if required:
        served: Served = open_model(run, object, device=device, engine="ctranslate2")
        return served
    load = row.engines["ctranslate2"]().load if "ctranslate2" in row.engines and device == "cpu" else None
    return None if load is None else by_library(load, run, next(iter(row.asks.values()))())
