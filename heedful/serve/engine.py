"""Answers concurrent requests: each model has a thread of its own.

Texts that a language model continues share one running batch, which they join and leave between any two tokens. Other
questions are gathered: those that arrived while the thread was busy, for the same verb with the same settings, are
answered as one batch. A single request never waits for others. An error of one request does not affect another: a batch
that raises is repeated one by one.

Where another library answers in place of the model, there is a second thread, so that one can encode and decode texts
while the library computes for the other. Only the thread that holds `_own` may use the model itself.

Nothing waits forever: the queue is bounded (BusyError), and so is the time until an answer or the next piece of a text
(LateError). A request that was cancelled in the queue is never computed; one that is cancelled later is stopped: the
model checks before each step whether anyone still waits, another library between parts of many texts.
"""

import asyncio
import functools
import json
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from heedful.core.config import from_json, unknown_key
from heedful.core.seeds import counter_seed
from heedful.decode.settings import Sampling
from heedful.errors import BusyError, InputError, LateError, TextError
from heedful.run.task import Served, Task
from heedful.serve.hosted import TOGETHER, Record, StreamedPiece, TextSide, Writing
from heedful.serve.jobs import QuestionJob, WorkJob, WritingJob, found_by, given_up, hand_over
from heedful.serve.meters import Meters
from heedful.store.model import MODEL
from heedful.tasks.load import row_of_model
from heedful.tasks.shared.served import by_library
from heedful.verbs.info import headlines
from heedful.verbs.opened import open_model
from heedful.verbs.use import ask_each, embedder_in, options_of, question_of

Made = TypeVar("Made")
ENGINES = ("auto", "own", "ctranslate2")
KNOWN = 1024  # parsed settings that are cached
LONG = 4096  # characters of settings above which they are not cached
PART = 32  # inputs of a question that are computed before checking whether it was cancelled


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one model."""

    waiting: int = 256  # requests in the queue
    inputs: int = 64  # inputs that are answered together
    rows: int = 32  # texts that are continued at the same time
    seconds: float = 60.0  # until an answer, or the next piece of a text
    gather: float = 0.004  # seconds that a batch waits to become as large as the one before


@runtime_checkable
class AddedText(Protocol):
    """What a step adds to the text with this number."""

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
    @property
    def top(self) -> tuple[tuple[int, float], ...]: ...


@runtime_checkable
class TextWriter(Protocol):
    """Continues texts, which may be added and cancelled at any time."""

    def __len__(self) -> int: ...
    def add(
        self, ids: Sequence[int], sampling: Sampling, *, tokens: int, stop: Sequence[str] = (), top: int = 0
    ) -> int: ...
    def cancel(self, number: int) -> None: ...
    def step(self) -> Sequence[AddedText]: ...


@runtime_checkable
class Writes(Protocol):
    """A model that continues texts."""

    def begun(self, prompt: str | Sequence[int]) -> list[int]: ...
    def writer(self, *, rows: int) -> TextWriter: ...


class Engine:
    """One model that is served (`heedful.serve.hosted.Hosted`). `fast` is the same model in another library, which is
    asked first; the model itself does what that library cannot. `why`: the reason why there is no `fast`."""

    def __init__(
        self,
        name: str,
        run: Path,
        row: Task,
        served: Served,
        engine: str = "own",
        *,
        fast: Served | None = None,
        why: str = "",
        limits: Limits | None = None,
    ) -> None:
        self.name, self.run, self.row, self.served, self.engine, self.why = name, run, row, served, engine, why
        self.limits = limits or Limits()
        self.scores: Mapping[str, float] = headlines(run)
        self._weights = _stamp(run)
        self._fast = fast
        self._changed = threading.Condition()  # guards what follows
        self._jobs: list[QuestionJob | WorkJob] = []
        self._texts: deque[WritingJob] = deque()
        self._before = 1  # questions in the last batch
        self._idle = 0  # threads
        self._closed = False
        self._own = threading.Lock()  # held while `served` is used,
        self._asking: Sequence[QuestionJob | WorkJob] = ()  # for these jobs
        for part in served.model.children():
            part.register_forward_pre_hook(self._refuse_given_up)
        self._known: dict[str, tuple[Any, bool]] = {}  # parsed options, and whether such questions are gathered
        self.count_in(Meters())
        # Used only by the first thread.
        self._writing: dict[int, WritingJob] = {}
        self._writer: TextWriter | None = None
        loops = [self._run] if fast is None else [self._run, self._gather]
        self._threads = [threading.Thread(target=loop, name=f"heed {name}", daemon=True) for loop in loops]
        for thread in self._threads:
            thread.start()

    @property
    def outdated(self) -> bool:
        return _stamp(self.run) != self._weights

    def count_in(self, meters: Meters) -> None:
        """Counts in these meters from now on; they read the length of the queue themselves."""
        self.meters = meters
        meters.waiting.labels(self.name).set_function(lambda: self.waiting)

    async def ask(
        self, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None
    ) -> list[list[Record]]:
        key = json.dumps([verb, settings], sort_keys=True, default=str)
        if (known := self._known.get(key)) is None:
            question = question_of(self.row, verb)
            options = options_of(question, verb, settings)
            known = options, question.gathers(options)
            if len(key) <= LONG:
                self._known = {} if len(self._known) >= KNOWN else self._known
                self._known[key] = known
        options, gathers = known
        if not inputs:
            return []
        begun = time.monotonic()
        if verb == self.row.streams and not options.compares:
            found = await self._write_whole(inputs, options)
        else:
            asked = QuestionJob(verb=verb, inputs=inputs, settings=settings or {}, key=key if gathers else None)
            found = await self._wait(asked)
        self.meters.answered.labels(self.name, verb).observe(time.monotonic() - begun)
        self.meters.inputs.labels(self.name, verb).inc(len(inputs))
        return found

    async def write(self, prompt: str | Sequence[int], writing: Writing) -> AsyncGenerator[StreamedPiece, None]:
        how = from_json(Sampling, dict(writing.sampling), where="sampling", largest=None)
        own = replace(how, seed=counter_seed(how.seed, 0, 0))  # the same as for one sample of one prompt
        async with aclosing(self._write(prompt, writing, own)) as pieces:
            async for piece in pieces:
                yield piece

    async def alone(self, work: Callable[[], Made]) -> Made:
        return await self._wait(WorkJob(work=work))

    async def embedded(self, inputs: Sequence[str]) -> tuple[list[list[float]], list[str]]:
        if self.row.embedder is None:
            raise InputError(f"{self.name} makes no vectors of texts", fix="ask a model that reads texts")
        return await self.alone(lambda: self._vectors(inputs)) if inputs else ([], [])

    def close(self) -> None:
        """Stops answering; the threads end after their current work, or with the process."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=1)

    @property
    def waiting(self) -> int:
        return len(self._jobs) + len(self._texts)

    # These run in the event loop's thread.

    def _submit(self, job: QuestionJob | WorkJob | WritingJob) -> None:
        """Adds a job to the queue. Raises BusyError."""
        with self._changed:
            if self._closed:
                raise BusyError(f"{self.name} is no longer served")
            if self.waiting >= self.limits.waiting:
                raise BusyError(f"{self.name} has {self.waiting} requests waiting", fix="ask again in a second")
            if isinstance(job, WritingJob):
                self._texts.append(job)
            else:
                self._jobs.append(job)
            self._changed.notify_all()

    async def _wait(self, job: QuestionJob | WorkJob) -> Any:
        self._submit(job)
        late = job.loop.call_later(self.limits.seconds, lambda: job.tell(self._late()))
        try:
            return await job.future
        finally:
            late.cancel()

    def _late(self) -> LateError:
        return LateError(f"{self.name} had no answer within {self.limits.seconds:g} s", fix="ask for less, or later")

    async def _write_whole(self, prompts: Sequence[str], options: Any) -> list[list[Record]]:
        """The records of a verb that generates texts: those of each sample of each prompt."""
        how, gate = Sampling(**options.sampling), asyncio.Semaphore(self.limits.rows)  # more would only wait
        writing = Writing(tokens=options.tokens, stop=options.stop, sampling=options.sampling, at_once=TOGETHER)
        if writing.tokens < 1 or options.samples < 1:
            raise InputError(f"{options.samples} texts of {writing.tokens} tokens", fix="ask for 1 or more")

        async def whole(prompt: str, number: int, sample: int) -> Record:
            own, made = replace(how, seed=counter_seed(how.seed, number, sample)), []
            async with gate, aclosing(self._write(prompt, writing, own)) as pieces:
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
            await given_up(tasks)
        return [made[i : i + count] for i in range(0, len(made), count)]

    async def _write(
        self, prompt: str | Sequence[int], writing: Writing, sampling: Sampling
    ) -> AsyncGenerator[StreamedPiece, None]:
        if not isinstance(self.served, Writes):
            raise InputError(f"{self.name} continues no texts", fix="ask a language model")
        text = WritingJob(prompt=prompt, writing=writing, sampling=sampling)
        self._submit(text)
        try:
            while True:
                try:
                    pieces = await asyncio.wait_for(text.told.get(), self.limits.seconds)
                except TimeoutError:
                    raise self._late() from None
                if isinstance(pieces, Exception):
                    raise pieces
                for piece in pieces:
                    yield piece
                    if piece.finish is not None:
                        return
        finally:
            text.over = True
            with self._changed:
                with suppress(ValueError):
                    self._texts.remove(text)
                self._changed.notify_all()

    # These run in the model's own threads.

    def _run(self) -> None:
        """The first thread, which handles all jobs and texts."""
        while not self._closed:
            with self._changed:
                self._rest_until(lambda: bool(self._jobs or self._texts or self._writing))
                jobs = self._taken(self._jobs)
            self._do(jobs)
            if self._texts or self._writing:
                with self._own:
                    self._enter()
                    self._step()
        error = BusyError(f"{self.name} is no longer served")
        with self._changed:
            hand_over([(job, error) for job in (*self._jobs, *self._texts, *self._writing.values())])

    def _gather(self) -> None:
        """The second thread, which handles only questions that can be gathered."""
        while not self._closed:
            with self._changed:
                self._rest_until(lambda: any(job.key is not None for job in self._jobs))
                jobs = self._taken([job for job in self._jobs if job.key is not None])
            self._do(jobs)

    def _rest_until(self, ready: Callable[[], bool]) -> None:
        self._idle += 1
        self._changed.wait_for(lambda: self._closed or ready())
        self._idle -= 1

    def _taken(self, jobs: Sequence[QuestionJob | WorkJob]) -> list[QuestionJob | WorkJob]:
        """Takes the first of these jobs, and those that can be answered with it, out of the queue; drops cancelled
        ones. An idle thread is left its share."""
        first = next((job for job in jobs if not job.future.done()), None)
        if first is None or self._closed:
            self._jobs = [job for job in self._jobs if not job.future.done()]
            return []
        alike = [first]
        if first.key is not None:
            if self._before > 1 and not self._writing:  # clients that were answered together ask again together
                self._changed.wait_for(lambda: self._closed or len(self._jobs) >= self._before, self.limits.gather)
            alike = [job for job in self._jobs if job.key == first.key and not job.future.done()]
            alike = alike[: -(-len(alike) // (1 + self._idle))]
        taken, count = list[QuestionJob | WorkJob](), 0
        for job in alike:
            count += len(job.inputs) if isinstance(job, QuestionJob) else 1
            if taken and count > self.limits.inputs:
                break
            taken.append(job)
        self._jobs = [job for job in self._jobs if job not in taken and not job.future.done()]
        self._before = max(1, len(taken))
        return taken

    def _do(self, jobs: Sequence[QuestionJob | WorkJob]) -> None:
        questions = [job for job in jobs if isinstance(job, QuestionJob)]
        if not questions:
            for job in jobs:
                assert isinstance(job, WorkJob)
                with self._asked_for([job]):
                    hand_over([(job, found_by(job.work))])
            return
        inputs = [text for one in questions for text in one.inputs]
        self.meters.batches.labels(self.name).observe(len(inputs))
        if len(questions) > 1:
            with suppress(Exception):
                rest = iter(self._records(questions[0], inputs, questions))
                hand_over([(one, [next(rest) for _ in one.inputs]) for one in questions])
                return
        for one in questions:
            hand_over([(one, found_by(functools.partial(self._in_parts, one)))])

    def _in_parts(self, question: QuestionJob) -> list[list[Record]]:
        """Answers a question in parts, if it can be split, and stops if it is cancelled in between."""
        made, size = list[list[Record]](), PART if question.key is not None else max(1, len(question.inputs))
        for begin in range(0, len(question.inputs), size):
            if question.future.done():
                break
            made += self._records(question, question.inputs[begin : begin + size])
        return made

    def _records(
        self, question: QuestionJob, inputs: Sequence[str], asking: Sequence[QuestionJob] = ()
    ) -> list[list[Record]]:
        """`asking`: the questions whose inputs these are, if there are several."""
        if self._fast is not None:
            try:
                return ask_each(self._fast, question.verb, inputs, question.settings)
            except TextError:
                raise
            except InputError:
                pass  # the library cannot do it
        with self._asked_for(asking or [question]):
            return ask_each(self.served, question.verb, inputs, question.settings)

    @contextmanager
    def _asked_for(self, asking: Sequence[QuestionJob | WorkJob]) -> Iterator[None]:
        with self._own:
            self._asking = asking
            try:
                yield
            finally:
                self._asking = ()

    def _refuse_given_up(self, *_: object) -> None:
        """Raises LateError if all jobs that the model is computing for were cancelled."""
        if self._asking and all(one.future.done() for one in self._asking):
            raise self._late()

    def _enter(self) -> None:
        """Adds waiting texts to the running batch, while there are free rows."""
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
                number = self._writer.add(ids, text.sampling, tokens=how.tokens, stop=how.stop, top=how.top)
                self._writing[number] = text
            except Exception as error:
                hand_over([(text, error)])

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
        except Exception as error:  # it cannot be attributed to one text
            hand_over([(text, error) for text in self._writing.values()])
            self._writing, self._writer = {}, None
            return
        tokens, ready = 0, []
        for one in pieces:
            text = self._writing[one.text]
            text.made.append(StreamedPiece(one.piece, one.token, one.logprob, one.finish, one.top))
            tokens += one.token is not None
            if one.finish is not None:
                del self._writing[one.text]
            if one.finish is not None or len(text.made) >= text.writing.at_once:
                ready.append((text, text.made))
                text.made = []
        hand_over(ready)
        self.meters.tokens.labels(self.name).inc(tokens)

    def _vectors(self, inputs: Sequence[str]) -> tuple[list[list[float]], list[str]]:
        embedder = embedder_in(self.row, self.served)
        read = embedder.text_vectors if isinstance(embedder, TextSide) else embedder.vectors_of
        vectors, warned = read(inputs)
        return vectors.tolist(), warned


def _stamp(run: Path) -> tuple[int, ...]:
    """Identifies the version of the weights in a run's folder; () where there are none."""
    with suppress(OSError):
        found = (run / MODEL).stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return ()


def open_engine(
    run: Path,
    *,
    engine: str = "auto",
    device: str = "cpu",
    name: str | None = None,
    limits: Limits | None = None,
) -> Engine:
    """Loads the model in a run's folder. With "auto", CTranslate2 is used for a model on a CPU if it supports it.
    Raises MissingError, InputError or StorageError."""
    if engine not in ENGINES:
        raise unknown_key(engine, [*ENGINES], where="engine")
    served = open_model(run, device=device)
    row, fast, why = row_of_model(served), None, ""
    if engine == "ctranslate2":
        fast = open_model(run, device=device, engine=engine)
    elif engine == "auto" and device == "cpu":
        fast, why = by_library(row, run)
    used = "own" if fast is None else "ctranslate2"
    name = name or run.resolve().name
    return Engine(name, run, row, served, used, fast=fast, why=why, limits=limits)
