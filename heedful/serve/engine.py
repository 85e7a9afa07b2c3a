"""Answers concurrent requests: each model has threads of its own.

Texts that a language model continues share one running batch, which they join and leave between any two tokens. Other
questions are gathered: those that arrived while the thread was busy, for the same verb with the same settings, are
answered as one batch. A single request never waits for others. An error of one request does not affect another: a batch
that raises is repeated one by one.

Dear questions, those of long texts or wide searches, have another thread, which answers one at a time, the shortest
first. It gives way to the others before each block of the model. Where another library answers in place of the model,
there is one more thread for those that are not dear, so that one can encode and decode texts while the library
computes for the other. A thread has the turn (`Turns`) from the first call of the model for a request to the last.

Nothing waits forever: the queue is bounded (BusyError), and so is the time until an answer or the next piece of a text
(LateError). Nothing is larger than the budget: a search asks before it begins (`spend`). A request that was cancelled
in the queue is never computed; one that is cancelled later is stopped: the model checks before each block whether
anyone still waits, another library before each short call. Whatever a thread raises is told to those who wait, and the
thread continues; if it does not come back, or has ended, `trouble` says so.
"""

import asyncio
import functools
import json
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from heedful.core.config import from_json
from heedful.core.seeds import counter_seed
from heedful.decode.settings import Sampling
from heedful.errors import BusyError, HeedError, InputError, LateError, TextError, TooMuchError
from heedful.run.task import Served, Task
from heedful.serve.budget import refuse_tokens, whole_in_time
from heedful.serve.hosted import TOGETHER, Record, StreamedPiece, Writing, record_of, vectors_of_texts
from heedful.serve.jobs import (
    DearError,
    QuestionJob,
    ThreadState,
    Turns,
    WorkJob,
    WritingJob,
    found_by,
    given_up,
    hand_over,
    tellable,
)
from heedful.serve.limits import (
    LibraryServed,
    Limits,
    Stoppable,
    Writes,
    give_back_memory,
    parts_in_order,
    reading_size,
)
from heedful.serve.meters import Meters
from heedful.serve.running import RunningTexts
from heedful.store.model import weights_stamp
from heedful.tasks.shared.opened import Opened
from heedful.verbs.info import headlines
from heedful.verbs.use import ask_each, options_of, question_of

Made = TypeVar("Made")
KNOWN = 1024  # parsed settings that are cached
LONG = 4096  # characters of settings above which they are not cached
STUCK = 2.0  # times the seconds until an answer, after which a thread that has not come back is stuck

log = logging.getLogger("heedful.serve")


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
        served = served.changed(budget=self) if isinstance(served, Opened) else served
        fast = fast.changed(budget=self) if isinstance(fast, Opened) else fast
        self.name, self.run, self.row, self.served, self.engine, self.why = name, run, row, served, engine, why
        self.limits = limits or Limits()
        self.scores: Mapping[str, float] = headlines(run)
        self._weights = weights_stamp(run)
        self._fast = fast
        self._changed = threading.Condition()  # guards what follows
        self._jobs: list[QuestionJob | WorkJob] = []
        self._texts: deque[WritingJob] = deque()
        self._before = 1  # questions in the last batch
        self._idle = 0  # threads
        self._closed = False
        self._turns, self._this = Turns(), ThreadState()
        self._busy: dict[int, float] = {}  # threads that are at work, and since when
        self._known: dict[str, tuple[Any, bool]] = {}  # parsed options, and whether such questions are gathered
        self.count_in(Meters())
        self._running = RunningTexts(served, self.limits)  # used only by the first thread
        self._limit_costs()
        rounds = [self._answer_dear, self._answer] + [self._gather] * (fast is not None)
        self._threads = [
            threading.Thread(target=self._run, args=[one], name=f"heed {name}", daemon=True) for one in rounds
        ]
        for thread in self._threads:
            thread.start()

    def _limit_costs(self) -> None:
        for part in parts_in_order(self.served.model):
            part.register_forward_pre_hook(self._go_on)
        for one in (self.served, self._fast):
            if isinstance(one, LibraryServed) and isinstance(one.engine, Stoppable):
                one.engine.serve(self.served, self._between)

    @property
    def outdated(self) -> bool:
        return weights_stamp(self.run) != self._weights

    @property
    def trouble(self) -> str:
        now = time.monotonic()
        if not all(thread.is_alive() for thread in self._threads):
            return f"a thread of {self.name} has ended"
        if any(now - begun > STUCK * self.limits.seconds for begun in [*self._busy.values()]):
            return f"{self.name} does not come back from a request"
        return ""

    @property
    def at_once(self) -> int:
        return self.limits.at_once

    def spend(self, tokens: int, at_once: int) -> None:
        """Before a search: the budget of the jobs that this thread computes for. Raises TooMuchError."""
        this, most = self._this, self.limits
        if not this.asking:
            return
        this.spent += tokens
        if at_once > most.at_once:
            what = f"{at_once:,} tokens (times beams or samples) at the same time, at most {most.at_once:,}"
            raise TooMuchError(what, fix="take a narrower beam, a lower limit, or shorter texts")
        if this.spent > most.tokens:
            what = f"{this.spent:,} tokens (times beams or samples), at most {most.tokens:,} in one request"
            raise TooMuchError(what, fix="send less at once, or take a narrower beam")
        if not this.dear and this.spent > most.quick * len(this.asking):
            raise DearError(this.spent)

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
            size = len(key) + await reading_size(question_of(self.row, verb), inputs)
            asked = QuestionJob(
                verb=verb,
                inputs=inputs,
                settings=settings or {},
                key=key if gathers else None,
                size=size,
                dear=size > self.limits.letters,
            )
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

    async def alone(self, work: Callable[[], Made], *, size: int = 0) -> Made:
        return await self._wait(WorkJob(work=work, size=size, dear=size > self.limits.letters))

    async def embedded(self, inputs: Sequence[str]) -> tuple[list[list[float]], list[str]]:
        if self.row.embedder is None:
            raise InputError(f"{self.name} makes no vectors of texts", fix="ask a model that reads texts")
        if not inputs:
            return [], []
        return await self.alone(lambda: vectors_of_texts(self.row, self.served, inputs), size=sum(map(len, inputs)))

    def close(self) -> None:
        """Stops answering; the threads end before the next block of the model, or with the process."""
        with self._changed:
            self._closed = True
            gone = BusyError(f"{self.name} is no longer served")
            hand_over([(job, gone) for job in (*self._jobs, *self._texts, *self._running.texts)])
            self._changed.notify_all()
        until = time.monotonic() + 1
        for thread in self._threads:
            thread.join(timeout=max(0.0, until - time.monotonic()))

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
        how, gate = Sampling(**options.sampling), asyncio.Semaphore(self._running.rows)  # more would only wait
        writing = Writing(tokens=options.tokens, stop=options.stop, sampling=options.sampling, at_once=TOGETHER)
        if writing.tokens < 1 or options.samples < 1:
            raise InputError(f"{options.samples} texts of {writing.tokens} tokens", fix="ask for 1 or more")
        refuse_tokens(len(prompts) * options.samples * writing.tokens, self.limits)

        async def whole(prompt: str, number: int, sample: int) -> Record:
            own, made = replace(how, seed=counter_seed(how.seed, number, sample)), []
            async with gate, aclosing(self._write(prompt, writing, own)) as pieces:
                async for piece in pieces:
                    made.append(piece)
            return record_of(prompt, made)

        count = options.samples
        tasks = [asyncio.ensure_future(whole(prompt, i, j)) for i, prompt in enumerate(prompts) for j in range(count)]
        try:
            async with whole_in_time(self.name, self.limits):
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

    def _run(self, work: Callable[[], None]) -> None:
        """A thread. What it raises is told to those who wait for it, and it continues."""
        while not self._closed:
            try:
                work()
            except BaseException as error:
                log.exception("a thread of %s failed, and continues", self.name)
                self._turns.leave()
                hand_over([(job, tellable(error)) for job in self._this.taken])
            self._this.taken = ()

    @contextmanager
    def _taking(self) -> Iterator[None]:
        """A thread looks for jobs. Where that fails, it has all that wait to tell, and none that comes later."""
        with self._changed:
            try:
                yield
            except BaseException:
                self._this.taken, self._jobs = self._jobs, []
                raise

    def _answer(self) -> None:
        """The first thread: all jobs that are not dear, and texts."""
        with self._taking():
            self._rest_until(lambda: bool(self._texts or self._running.texts or self._of(dear=False)))
            jobs = self._taken(self._of(dear=False))
        self._do(jobs)
        if self._texts or self._running.texts:
            with self._at_work():
                self._turns.take()
                self._write_on()

    def _write_on(self) -> None:
        try:
            self._running.enter(self._next_text)
            self.meters.tokens.labels(self.name).inc(self._running.step())
        except BaseException as error:  # it cannot be attributed to one text
            if not isinstance(error, Exception):
                log.exception("a step of %s failed", self.name)
            with self._changed:
                texts = self._running.abandoned()
                hand_over([(text, tellable(error)) for text in texts or self._texts])
                self._texts = self._texts if texts else deque()
        finally:
            self._turns.leave()

    def _gather(self) -> None:
        """The second thread: questions that can be gathered."""

        def able() -> list[QuestionJob | WorkJob]:
            return [job for job in self._of(dear=False) if job.key is not None]

        with self._taking():
            self._rest_until(lambda: bool(able()))
            jobs = self._taken(able())
        self._do(jobs)

    def _answer_dear(self) -> None:
        """The thread for dear jobs."""
        self._this.dear = True
        with self._taking():
            self._changed.wait_for(lambda: self._closed or bool(self._of(dear=True)))
            waiting = [job for job in self._of(dear=True) if not job.future.done()]
            jobs = [] if self._closed else sorted(waiting, key=lambda job: job.size)[:1]
            self._this.taken = jobs
            self._jobs = [job for job in self._jobs if job not in jobs and not job.future.done()]
        self._do(jobs)
        if jobs:
            give_back_memory()

    def _of(self, *, dear: bool) -> "list[QuestionJob | WorkJob]":
        return [job for job in self._jobs if job.dear == dear]

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        own = threading.get_ident()
        self._busy[own] = time.monotonic()
        try:
            yield
        finally:
            del self._busy[own]

    def _rest_until(self, ready: Callable[[], bool]) -> None:
        self._idle += 1
        try:
            self._changed.wait_for(lambda: self._closed or ready())
        finally:
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
            if self._before > 1 and not self._running.texts:  # clients that were answered together ask again together
                self._changed.wait_for(lambda: self._closed or len(self._jobs) >= self._before, self.limits.gather)
            alike = [job for job in self._of(dear=False) if job.key == first.key and not job.future.done()]
            alike = alike[: -(-len(alike) // (1 + self._idle))]
        taken, count = list[QuestionJob | WorkJob](), 0
        for job in alike:
            count += len(job.inputs) if isinstance(job, QuestionJob) else 1
            if taken and count > self.limits.inputs:
                break
            taken.append(job)
        self._jobs = [job for job in self._jobs if job not in taken and not job.future.done()]
        self._before = max(1, len(taken))
        self._this.taken = taken
        return taken

    def _do(self, jobs: Sequence[QuestionJob | WorkJob]) -> None:
        with self._at_work():
            questions = [job for job in jobs if isinstance(job, QuestionJob)]
            if questions and not questions[0].moved:
                self.meters.batches.labels(self.name).observe(sum(len(one.inputs) for one in questions))
            if len(questions) > 1:
                with suppress(Exception):
                    found = iter(self._records(questions))
                    hand_over([(one, [next(found) for _ in one.inputs]) for one in questions])
                    return
            for job in jobs:
                self._do_alone(job)

    def _do_alone(self, job: QuestionJob | WorkJob) -> None:
        if job.future.done():
            return
        found = found_by(functools.partial(self._found, job))
        if isinstance(found, DearError):
            with self._changed:
                job.dear, job.moved, job.size = True, True, found.tokens
                self._jobs = [*self._jobs, job]
                self._changed.notify_all()
            return
        if isinstance(found, HeedError) and found.__cause__ is not None:
            log.error("a request to %s failed", self.name, exc_info=found.__cause__)
        hand_over([(job, found)])

    def _found(self, job: QuestionJob | WorkJob) -> Any:
        if isinstance(job, QuestionJob):
            return self._records([job])
        with self._computing([job]):
            return job.work()

    def _records(self, questions: Sequence[QuestionJob]) -> list[list[Record]]:
        """Of all their inputs."""
        question, inputs = questions[0], [text for one in questions for text in one.inputs]
        if self._fast is not None:
            try:
                with self._computing(questions):
                    return ask_each(self._fast, question.verb, inputs, question.settings)
            except (TextError, TooMuchError):
                raise
            except InputError:
                pass  # the library cannot do it
        with self._computing(questions):
            return ask_each(self.served, question.verb, inputs, question.settings)

    @contextmanager
    def _computing(self, asking: Sequence[QuestionJob | WorkJob]) -> Iterator[None]:
        self._this.asking, self._this.spent = asking, 0
        try:
            yield
        finally:
            self._this.asking = ()
            self._turns.leave()

    def _go_on(self, *_: object) -> None:
        """Before each block of the model: takes the turn, which a dear job gives to others that wait. Raises LateError
        where no client waits for the result any more."""
        this = self._this
        if this.asking:
            self._refuse_given_up()
            self._turns.take(give_way=this.dear)

    def _between(self) -> None:
        """Before each call of the other library, in which others may use the model."""
        if self._this.asking:
            self._refuse_given_up()
            self._turns.leave()

    def _refuse_given_up(self) -> None:
        if self._closed:
            raise BusyError(f"{self.name} is no longer served")
        if all(one.future.done() for one in self._this.asking):
            raise self._late()

    def _next_text(self) -> WritingJob | None:
        """The first of the waiting texts that may enter, which leaves the queue."""
        with self._changed:
            self._texts = deque(text for text in self._texts if not text.over)
            found = next((text for text in self._texts if self._running.has_room_for(text)), None)
            if found is not None:
                self._texts.remove(found)
            return found
