"""What many get who ask at once: what each would get alone."""

import asyncio
import os
import platform
import random
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from heedful.errors import BusyError, HeedError, InputError, LateError, NonFiniteError, TextError
from heedful.serve import engine as engine_module
from heedful.serve.engine import LONG, Engine
from heedful.serve.hosted import Hosted, Writing
from heedful.serve.jobs import given_up
from heedful.serve.limits import Limits
from heedful.serve.opening import open_engine
from heedful.tasks.translate.exchange import ctranslate2
from heedful.tasks.translate.exchange.ctranslate2 import CTranslate2
from heedful.verbs.use import ask, ask_each
from made import SYLLABLES
from nearly import like
from waiting import PATIENCE, becomes

Open = Callable[..., Engine]
TEXTS = [" ".join(SYLLABLES[i : i + n]) for n in (1, 2, 3, 4, 5) for i in range(5)]
ASKED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "transformer": ("translate", [{}, {"decoding": {"beam": 1}}, {"decoding": {"n_best": 2}}, {"prefix": "BA"}]),
    "rnn": ("translate", [{}, {"decoding": {"beam": 1}}]),
    "fill": ("fill", [{"top": 2}, {}]),
    "tag": ("tag", [{}]),
    "label": ("classify", [{}]),
    "choice": ("classify", [{"choices": ["ba", "de"]}, {"choices": ["gi", "ko", "ba"]}]),
    "answer": ("answer", [{"context": "ba is de. gi is ko."}, {"context": "ko is ba.", "top": 3}]),
    "parse": ("parse", [{}, {"beam": 1}]),
    "writer": ("score", [{}, {"choices": [" ba", " de"]}]),
}


async def pieces_of(engine: Engine, prompt: Any, writing: Writing) -> list[Any]:
    return [piece async for piece in engine.write(prompt, writing)]


@asynccontextmanager
async def standing_still(engine: Engine) -> AsyncIterator[None]:
    """The model is at work as long as the block lasts, and what is asked waits."""
    begun, over = threading.Event(), threading.Event()
    work = asyncio.create_task(engine.alone(lambda: (begun.set(), over.wait(PATIENCE))))
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    try:
        yield
        await asyncio.sleep(0)  # what was begun in the block is queued
    finally:
        over.set()
    await work


@pytest.mark.parametrize("name", sorted(ASKED))
def test_all_get_what_they_get_alone(opened: Open, name: str) -> None:
    """Whatever was gathered with it; and texts were."""
    engine, dice = opened(name), random.Random(name)
    verb, settings = ASKED[name]
    texts = [f"{text} <mask>" for text in TEXTS] if verb == "fill" else TEXTS
    asked = [(dice.sample(texts, dice.choice([1, 1, 2])), dice.choice(settings)) for _ in range(24)]

    async def together() -> list[Any]:
        assert isinstance(engine, Hosted)
        async with standing_still(engine):
            found = [asyncio.create_task(engine.ask(verb, inputs, own)) for inputs, own in asked]
        return await asyncio.gather(*found)

    found = asyncio.run(together())
    for (inputs, own), records in zip(asked, found, strict=True):
        assert records == like(ask_each(engine.served, verb, inputs, own))
        assert [each for listed in records for each in listed] == like(ask(engine.served, verb, inputs, own))
    batches = engine.meters.registry.get_sample_value("heed_batch_size_count", {"model": engine.name})
    assert batches is not None
    assert batches < len(asked)


def test_texts_that_are_written_together_are_what_each_is_alone(opened: Open) -> None:
    engine, dice = opened("writer", limits=Limits(rows=4)), random.Random(1)
    drawn = {"temperature": 0.9, "top_p": 0.95, "repetition_penalty": 1.1}
    asked = [
        (
            dice.choice(TEXTS),
            Writing(
                tokens=dice.randrange(1, 60),
                stop=dice.choice([(), ("a",)]),
                sampling=dice.choice([{"temperature": 0.0}, {**drawn, "seed": i}]),
            ),
        )
        for i in range(24)
    ]

    async def together() -> list[Any]:
        async def later(prompt: str, writing: Writing) -> Any:
            await asyncio.sleep(dice.random() * 0.05)
            return await pieces_of(engine, prompt, writing)

        return await asyncio.gather(*(later(*one) for one in asked))

    for (prompt, how), pieces in zip(asked, asyncio.run(together()), strict=True):
        ((alone,),) = engine.served.generate([prompt], tokens=how.tokens, stop=how.stop, **how.sampling)
        assert "".join(piece.text for piece in pieces) == alone.text
        assert [piece.token for piece in pieces if piece.token is not None] == alone.tokens
        assert [piece.logprob for piece in pieces if piece.token is not None] == like(alone.logprobs)
        assert [piece.finish for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
        assert how.stop or pieces[-1].finish == ("length" if len(alone.tokens) == how.tokens else "stop")


def test_who_waits_is_counted_when_it_is_asked_for(opened: Open) -> None:
    engine = opened("writer")

    def waiting() -> float | None:
        return engine.meters.registry.get_sample_value("heed_queue_length", {"model": engine.name})

    async def ask() -> None:
        async with standing_still(engine):
            writing = asyncio.create_task(pieces_of(engine, "ba", Writing(tokens=2)))
            await asyncio.sleep(0)
            assert waiting() == 1
        await writing

    asyncio.run(ask())
    assert waiting() == 0


def test_the_verb_of_a_language_model_gives_its_records(opened: Open) -> None:
    engine = opened("writer")
    settings = {"tokens": 7, "samples": 2, "sampling": {"seed": 3}, "stop": ["a"]}
    found = asyncio.run(engine.ask("generate", ["ba", "de gi"], settings))
    assert found == like(ask_each(engine.served, "generate", ["ba", "de gi"], settings))
    assert [len(own) for own in found] == [2, 2]
    for settings in ({"tokens": 5, "beam": 3, "samples": 2}, {"tokens": 5, "best_of": 3, "sampling": {"seed": 3}}):
        found = asyncio.run(engine.ask("generate", ["ba", "de gi"], settings))
        assert found == like(ask_each(engine.served, "generate", ["ba", "de gi"], settings))


def test_one_question_does_not_fill_the_queue(opened: Open) -> None:
    """So many texts of one wait for each other, and not in the queue, where each would have to begin in time."""
    engine, settings = opened("writer", limits=Limits(rows=2, waiting=3)), {"tokens": 5, "samples": 6}
    found = asyncio.run(engine.ask("generate", ["ba", "de gi"], settings))
    assert found == like(ask_each(engine.served, "generate", ["ba", "de gi"], settings))


def test_tokens_are_a_prompt_as_texts_are(opened: Open) -> None:
    engine, how = opened("writer"), Writing(tokens=9, sampling={"temperature": 0.0})
    ids = engine.served.tokenizer.encode_whole(["ba de"])[0]

    async def both() -> Any:
        return await pieces_of(engine, ids, how), await pieces_of(engine, "ba de", how)

    by_tokens, by_text = asyncio.run(both())
    assert by_tokens == by_text
    with pytest.raises(InputError, match="tokens that the model does not have"):
        asyncio.run(pieces_of(engine, [10**9], how))
    with pytest.raises(InputError, match="unknown key 'temperture'"):
        asyncio.run(pieces_of(engine, "ba", Writing(sampling={"temperture": 1.0})))


def test_a_cancelled_text_leaves_within_two_steps(opened: Open, full: bool) -> None:
    """At a random token; those beside it are what they are alone."""
    engine, dice = opened("writer"), random.Random(2)
    steps = []
    engine.served.model.head.register_forward_hook(lambda module, inputs, out: steps.append(len(out)))
    how = Writing(tokens=60, sampling={"temperature": 0.0, "repetition_penalty": 1.5})
    ((wanted,),) = engine.served.generate(["ko"], tokens=60, **how.sampling)

    async def cut_short() -> None:
        beside = asyncio.create_task(pieces_of(engine, "ko", how))
        async with aclosing(engine.write("ba", how)) as pieces:
            left = dice.randrange(1, 25)
            async for _ in pieces:
                left -= 1
                if not left:
                    break
        before = len(steps)
        assert "".join(piece.text for piece in await beside) == wanted.text
        assert all(rows == 1 for rows in steps[before + 2 :])

    async def alone() -> None:
        async with aclosing(engine.write("ba", how)) as pieces:
            async for _ in pieces:
                break
        before = len(steps)
        for _ in range(2):
            await engine.alone(int)  # between which there is a step, if there is any
        assert len(steps) - before <= 2
        assert not engine._running.texts

    for _ in range(500 if full else 10):
        asyncio.run(cut_short())
    asyncio.run(alone())


def test_one_alone_does_not_wait(opened: Open) -> None:
    engine = opened("tag", limits=Limits(gather=1e5))

    async def one_by_one() -> None:
        for text in TEXTS[:5]:
            await engine.ask("tag", [text])

    asyncio.run(one_by_one())


class Meanwhile(threading.Condition):
    """A lock before which something else happens, once, in the thread that is to wait for it."""

    who, first = 0, lambda: None

    def __enter__(self) -> bool:
        if threading.get_ident() == self.who:
            self.who = 0
            self.first()
        return super().__enter__()


def test_a_question_that_comes_while_a_batch_is_taken_is_answered(opened: Open, monkeypatch) -> None:
    """The thread takes the first question while the second waits for the lock; what is queued then is not what was
    queued when the second came."""
    with monkeypatch.context() as patch:
        patch.setattr(threading, "Condition", Meanwhile)
        engine = opened("tag")
    held, taken = threading.Event(), threading.Event()

    def asked(*words: Any) -> Any:
        taken.set()
        return ask_each(*words)

    def let_it_be_taken() -> None:
        held.set()
        assert taken.wait(PATIENCE)

    async def both() -> list[Any]:
        work = asyncio.create_task(engine.alone(lambda: held.wait(PATIENCE)))
        first = asyncio.create_task(engine.ask("tag", ["ba"]))
        await asyncio.sleep(0)  # both are queued
        engine._changed.who, engine._changed.first = threading.get_ident(), let_it_be_taken
        return [await engine.ask("tag", ["de gi"]), await first, await work]

    monkeypatch.setattr(engine_module, "ask_each", asked)
    second, first, _ = asyncio.run(both())
    assert [first, second] == like([ask_each(engine.served, "tag", [text]) for text in ("ba", "de gi")])


def test_only_who_is_guilty_gets_the_error(opened: Open) -> None:
    engine = opened("fill")

    async def all_of_them() -> list[Any]:
        texts = ["ba <mask>", "no mask here" * 400, "<mask> de"] * 5
        async with standing_still(engine):
            found = [asyncio.create_task(engine.ask("fill", [text])) for text in texts]
        return await asyncio.gather(*found, return_exceptions=True)

    found = asyncio.run(all_of_them())
    assert (
        engine.meters.registry.get_sample_value("heed_batch_size_sum", {"model": engine.name}) == 15
    )  # they were one batch
    assert all(isinstance(each, TextError | InputError) for each in found[1::3])
    assert found[::3] == like([ask_each(engine.served, "fill", ["ba <mask>"])] * 5)
    assert found[2::3] == like([ask_each(engine.served, "fill", ["<mask> de"])] * 5)


def test_a_step_that_fails_is_told_and_the_next_texts_are_made(opened: Open, monkeypatch) -> None:
    engine, how = opened("writer"), Writing(tokens=5, sampling={"temperature": 0.0})
    right = asyncio.run(pieces_of(engine, "ba", how))
    with monkeypatch.context() as patch:
        patch.setattr(engine.served.model, "step", Mock(side_effect=NonFiniteError("broken")))
        with pytest.raises(NonFiniteError, match="broken"):
            asyncio.run(pieces_of(engine, "ba", how))
    assert asyncio.run(pieces_of(engine, "ba", how)) == right


class Panic(BaseException):
    """As what a library raises that is written in another language."""


KILLED: dict[str, BaseException] = {
    "panic": Panic("pattern"),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "generator": GeneratorExit(),
    "cancelled": asyncio.CancelledError(),
    "stop": StopIteration(7),
    "memory": MemoryError(),
    "recursion": RecursionError(),
    "fault": ZeroDivisionError(),
    "model": NonFiniteError("broken"),
}


@pytest.mark.parametrize("how", sorted(KILLED))
def test_what_would_end_a_thread_is_told_and_the_next_is_answered(
    opened: Open, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Of a question, of several that were gathered, of a dear one, of other work, and of a text that is written."""
    tag, writer, error = opened("tag"), opened("writer"), KILLED[how]

    async def told(*asked: Any) -> None:
        for found in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(found, HeedError | MemoryError | RecursionError | ZeroDivisionError)
            assert not isinstance(found, LateError)

    async def gathered() -> None:
        async with standing_still(tag):
            asked = [asyncio.create_task(tag.ask("tag", [text])) for text in TEXTS[:3]]
            await asyncio.sleep(0)
        await told(*asked)

    async def whole() -> None:
        right = await tag.ask("tag", ["ba"]), await pieces_of(writer, "ba", Writing(tokens=2))
        with monkeypatch.context() as patch:
            patch.setattr(engine_module, "ask_each", Mock(side_effect=error))
            patch.setattr(writer.served.model, "step", Mock(side_effect=error))
            await told(tag.ask("tag", ["ba"]), tag.ask("tag", ["ba "] * tag.limits.letters))
            await gathered()
            await told(pieces_of(writer, "ba", Writing(tokens=2)))
            for size in (0, tag.limits.letters + 1):
                await told(tag.alone(Mock(side_effect=error), size=size))
        with monkeypatch.context() as patch:
            patch.setattr(writer.served, "begun", Mock(side_effect=error))
            await told(pieces_of(writer, "ba", Writing(tokens=2)))
        assert (await tag.ask("tag", ["ba"]), await pieces_of(writer, "ba", Writing(tokens=2))) == right
        assert not tag.trouble + writer.trouble

    asyncio.run(whole())


@pytest.mark.parametrize("part", ["_taken", "_do", "_of", "_next_text"])
def test_a_fault_of_the_thread_itself_is_told_too(opened: Open, caplog: pytest.LogCaptureFixture, part: str) -> None:
    """Who waits is told, unless another thread answers; and what is asked later is answered."""
    engine = opened("writer")
    works, broken = getattr(engine, part), threading.Event()

    def breaks(*words: Any, **more: Any) -> Any:
        if broken.is_set() and engine.waiting + len(engine._this.taken):
            broken.clear()
            raise Panic
        return works(*words, **more)

    async def asked() -> None:
        setattr(engine, part, breaks)
        writes = part == "_next_text"
        broken.set()
        with suppress(HeedError):
            await (pieces_of(engine, "ba", Writing(tokens=2)) if writes else engine.ask("score", ["ba"]))
        assert not broken.is_set()
        assert await engine.ask("score", ["ba"])
        assert await pieces_of(engine, "ba", Writing(tokens=2))

    asyncio.run(asked())
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_what_is_asked_after_a_fault_is_not_told_of_it(opened: Open) -> None:
    """However long the thread takes to come back from it."""
    engine, asked, broken = opened("writer"), threading.Event(), threading.Event()
    looks, leaves = engine._of, engine._turns.leave

    def breaks(*, dear: bool) -> Any:
        if dear and broken.is_set() and engine.waiting:
            broken.clear()
            raise Panic
        return looks(dear=dear)

    def leave() -> None:
        assert asked.wait(PATIENCE)
        leaves()

    async def whole() -> None:
        engine._of = breaks
        async with standing_still(engine):
            broken.set()
            engine._turns.leave = leave
            first = asyncio.create_task(engine.ask("score", ["ba"]))
            assert await asyncio.to_thread(becomes, lambda: not broken.is_set())
            later = asyncio.create_task(engine.ask("score", ["de"]))
            await asyncio.sleep(0)
            asked.set()
            with pytest.raises(HeedError, match="Panic"):
                await first
        assert await later

    asyncio.run(whole())


def test_a_thread_that_ends_or_does_not_come_back_is_trouble(opened: Open) -> None:
    over, engine = threading.Event(), opened("tag", limits=Limits(seconds=0.05))

    async def stuck() -> None:
        with pytest.raises(LateError):
            await engine.alone(lambda: over.wait(PATIENCE))
        assert await asyncio.to_thread(becomes, lambda: "does not come back" in engine.trouble)

    asyncio.run(stuck())
    over.set()
    assert becomes(lambda: not engine.trouble)
    engine._closed = True
    with engine._changed:
        engine._changed.notify_all()
    assert becomes(lambda: "a thread of tag has ended" in engine.trouble)


def test_a_full_queue_a_late_answer_and_who_left(opened: Open) -> None:
    """Who gives up before it is their turn is never answered."""
    engine, late = opened("tag", limits=Limits(waiting=3)), opened("tag", limits=Limits(seconds=0.3))
    held, asked = threading.Event(), []

    async def crowd() -> None:
        async with standing_still(engine):
            waiting = [asyncio.create_task(engine.alone(lambda i=i: asked.append(i))) for i in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(BusyError, match="3 requests waiting"):
                await engine.ask("tag", ["ba"])
            waiting[1].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert await engine.alone(lambda: "done") == "done"

    async def too_late() -> None:
        running = asyncio.create_task(late.alone(lambda: held.wait(PATIENCE)))
        await asyncio.sleep(0)
        with pytest.raises(LateError, match=r"within 0\.3 s"):
            await late.alone(lambda: asked.append("late"))
        with pytest.raises(LateError, match=r"within 0\.3 s"):
            await running
        held.set()

    asyncio.run(crowd())
    asyncio.run(too_late())
    late.close()
    assert asked == [0, 2]


def test_the_rest_of_what_is_given_up_is_not_computed(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of who is told that it is late, nor of who leaves: another library is asked in short calls."""
    pytest.importorskip("ctranslate2")
    engine, begun, over, calls = opened("transformer", engine="auto"), threading.Event(), threading.Event(), list[int]()
    assert engine.engine == "ctranslate2"
    run = CTranslate2._run

    def counted(self: Any, sources: Any, *words: Any, **more: Any) -> Any:
        calls.append(len(sources))
        begun.set()
        assert over.wait(PATIENCE)
        return run(self, sources, *words, **more)

    async def left() -> None:
        task = asyncio.create_task(engine.ask("translate", TEXTS * 4, {"confidence": False}))
        await asyncio.to_thread(begun.wait, PATIENCE)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        over.set()
        await engine.alone(int, size=10**6)  # after it, in the same thread

    monkeypatch.setattr(ctranslate2, "PIECE", 600)
    monkeypatch.setattr(CTranslate2, "_run", counted)
    asyncio.run(left())
    assert len(calls) == 1
    whole = asyncio.run(engine.ask("translate", TEXTS * 4, {"confidence": False}))
    assert len(calls) > 4
    assert [own["text"] for (own,) in whole] == [
        own["text"] for (own,) in ask_each(engine._fast, "translate", TEXTS * 4, {"confidence": False})
    ]


@pytest.mark.parametrize("asked", ["ask", "alone"])
def test_a_step_that_nobody_waits_for_is_not_made(opened: Open, asked: str) -> None:
    engine, begun, over, steps = opened("transformer"), threading.Event(), threading.Event(), [0]
    long: Any = {"longest": 400, "shortest": 400}

    def counted(*_: object) -> None:
        steps[0] += 1
        if steps[0] == 3:
            begun.set()
            assert over.wait(PATIENCE)

    async def left() -> None:
        work = engine.ask("translate", ["ba"], {"decoding": long})
        if asked == "alone":
            work.close()
            work = engine.alone(lambda: engine.served.translate("ba", **long))
        task = asyncio.create_task(work)
        await asyncio.to_thread(begun.wait, PATIENCE)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        over.set()
        await engine.alone(int)

    engine.served.model.decoder.blocks[0].register_forward_pre_hook(counted)
    asyncio.run(left())
    assert steps[0] <= 4
    assert asyncio.run(engine.ask("translate", ["ba"])) == like(ask_each(engine.served, "translate", ["ba"], None))


@asynccontextmanager
async def dear_at_work(engine: Engine) -> AsyncIterator[tuple[list[int], threading.Event]]:
    """A dear question, which stands still in the model, and has the turn, until the event is set; and how often it
    calls the model's decoder after that, in all and before the last call of another question."""
    calls, begun, over = [0, 0], threading.Event(), threading.Event()

    def counted(*_: object) -> None:
        if engine._this.dear:
            calls[0] += over.is_set()
            begun.set()
            assert over.wait(PATIENCE)
        else:
            calls[1] = calls[0]

    handle = engine.served.model.decoder.blocks[0].register_forward_pre_hook(counted)
    asked = asyncio.create_task(engine.ask("translate", ["ba"], {"decoding": {"longest": 200, "shortest": 200}}))
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    try:
        yield calls, over
    finally:
        over.set()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        handle.remove()


DEAR = Limits(letters=40)  # of the settings too: {} is quick


def test_a_dear_question_gives_way_before_its_next_block(opened: Open) -> None:
    """To one that comes while it has the turn."""
    engine = opened("transformer", limits=DEAR)

    async def beside() -> Any:
        async with dear_at_work(engine) as (calls, over):
            small = asyncio.create_task(engine.ask("translate", ["ba"]))
            assert await asyncio.to_thread(becomes, lambda: bool(engine._turns._waiting))
            over.set()
            found = await small
            assert calls[1] <= 1
        return found

    assert asyncio.run(beside()) == like(ask_each(engine.served, "translate", ["ba"], None))


def test_two_that_take_turns_get_what_each_gets_alone(opened: Open) -> None:
    """Blocks of one are computed between those of the other, and a recording holds its own alone."""
    engine, text = opened("transformer", limits=DEAR), " ".join(TEXTS[:8])
    long = {"decoding": {"longest": 60, "shortest": 60, "beam": 3}}
    alone = ask_each(engine.served, "translate", [text], long), ask_each(engine.served, "translate", TEXTS[:4], None)
    weights = engine.served.attention("ba de gi", {"head": 0})
    mixed: list[bool] = []
    engine.served.model.decoder.blocks[0].register_forward_pre_hook(lambda *_: mixed.append(engine._this.dear))

    async def beside() -> None:
        dear = asyncio.create_task(engine.ask("translate", [text], long))
        looked = asyncio.create_task(
            engine.alone(lambda: engine.served.attention("ba de gi", {"head": 0}), size=engine.limits.letters + 1)
        )
        small = []
        while not (dear.done() and looked.done()):
            small.append(await engine.ask("translate", TEXTS[:4]))
        found = await looked
        assert await dear == like(alone[0])
        assert all(one == like(alone[1]) for one in small)
        assert {name: own.weights.tolist() for name, own in found.items()} == like(
            {name: own.weights.tolist() for name, own in weights.items()}
        )

    asyncio.run(beside())
    changes = sum(one != other for one, other in pairwise(mixed))
    assert changes > 4


def test_a_server_that_ends_waits_for_no_search(opened: Open) -> None:
    engine = opened("transformer", limits=DEAR)

    async def closed() -> None:
        async with dear_at_work(engine) as (calls, over):
            closing = asyncio.create_task(asyncio.to_thread(engine.close))
            assert await asyncio.to_thread(becomes, lambda: engine._closed)
            over.set()
            await closing
            assert calls[0] <= 1
            assert becomes(lambda: not any(thread.is_alive() for thread in engine._threads))

    asyncio.run(closed())


def test_a_question_that_turns_out_to_be_dear_is_answered_by_the_other_thread(opened: Open) -> None:
    """Its letters are few, and its tokens times beams many."""
    engine = opened("transformer", limits=Limits(quick=100))
    asked = {"decoding": {"beam": 8, "longest": 40, "shortest": 40}}
    by: list[bool] = []
    engine.served.model.decoder.blocks[0].register_forward_pre_hook(lambda *_: by.append(engine._this.dear))
    assert asyncio.run(engine.ask("translate", ["ba"], asked)) == like(
        ask_each(engine.served, "translate", ["ba"], asked)
    )
    assert by[:40] == [True] * 40
    assert engine.meters.registry.get_sample_value("heed_batch_size_count", {"model": engine.name}) == 1


def test_short_texts_are_written_beside_long_ones_that_have_all_rows(opened: Open) -> None:
    """A fourth of the rows is kept for them."""
    engine = opened("writer", limits=Limits(rows=4, short=8))
    how = {"temperature": 0.0, "repetition_penalty": 1.5}
    long, short = Writing(tokens=4000, sampling=how), Writing(tokens=4, sampling=how)

    async def beside() -> None:
        async with AsyncExitStack() as left:
            streams = [await left.enter_async_context(aclosing(engine.write("ba", long))) for _ in range(6)]
            firsts = [asyncio.ensure_future(anext(stream)) for stream in streams]
            await asyncio.wait(firsts, return_when=asyncio.FIRST_COMPLETED)
            assert len(await pieces_of(engine, "de", short)) >= 4
            assert sum(first.done() for first in firsts) == 3
            await given_up(firsts)

    asyncio.run(beside())


def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library gives memory back by itself, or never")
def test_memory_that_a_dear_request_took_goes_back(opened: Open) -> None:
    """Also below what is still in use."""
    engine, kept = opened("tag"), list[torch.Tensor]()
    size, count = 1 << 14, 1 << 14  # a quarter of a GiB, in pieces too small to be mapped each by itself

    def work() -> int:
        parts = [torch.ones(size // 4) for _ in range(count)]
        kept.append(parts[-1])
        return rss()

    before = rss()
    assert asyncio.run(engine.alone(work, size=10**6)) > before + size * count // 2
    assert becomes(lambda: rss() < before + size * count // 4)


def test_options_are_read_once_and_long_ones_are_not_kept(opened: Open) -> None:
    engine = opened("answer")
    for times in (1, LONG // 8):
        settings = {"context": "ba is de. " * times}
        found = asyncio.run(engine.ask("answer", ["ba"], settings))
        assert found == like(ask_each(engine.served, "answer", ["ba"], settings))
        assert len(engine._known) == 1


def test_work_raises_its_own_errors_and_a_closed_engine_says_so(opened: Open) -> None:
    engine = opened("tag")
    with pytest.raises(ZeroDivisionError):
        asyncio.run(engine.alone(lambda: 1 / 0))
    with pytest.raises(InputError, match="unknown key 'tagg'"):
        asyncio.run(engine.ask("tagg", ["ba"]))
    with pytest.raises(InputError, match="unknown key 'topp'"):
        asyncio.run(engine.ask("tag", ["ba"], {"topp": 1}))
    with pytest.raises(InputError, match="continues no texts"):
        asyncio.run(pieces_of(engine, "ba", Writing()))
    assert asyncio.run(engine.ask("tag", [])) == []
    engine.close()
    with pytest.raises(BusyError, match="no longer served"):
        asyncio.run(engine.ask("tag", ["ba"]))


def test_vectors_are_those_of_the_embedder(opened: Open) -> None:
    for name in ("fill", "match"):
        engine = opened(name)
        assert engine.row.embedder is not None
        wanted, _ = engine.row.embedder().load(engine.run).vectors_of(["ba de", "gi"])
        assert asyncio.run(engine.embedded(["ba de", "gi"]))[0] == like(wanted.tolist())
    with pytest.raises(InputError, match="makes no vectors"):
        asyncio.run(opened("detect").embedded(["ba"]))


def test_no_file_is_read_that_a_request_names(opened: Open, picture: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(picture)
    path, engine = str(tmp_path / "x.png"), opened("match")
    wanted, _ = engine.served.text_vectors([path])
    assert asyncio.run(engine.embedded([path]))[0] == like(wanted.tolist())
    assert asyncio.run(engine.embedded([str(tmp_path / "none.png")]))[0]


def test_a_translator_is_asked_by_the_library_that_is_faster(opened: Open) -> None:
    """What it cannot do is done by the model itself, and so is all of a model that it does not have."""
    auto, own = opened("transformer", engine="auto"), opened("transformer")
    assert (auto.engine, own.engine, opened("rnn", engine="auto").engine) == ("ctranslate2", "own", "own")
    assert opened("tag", engine="auto").engine == "own"
    texts = TEXTS[:6]
    for settings in (
        {"decoding": {"beam": 1}},
        {"decoding": {"samples": 2, "seed": 1}},
        {"decoding": {"repetition_penalty": 1.3, "beam": 1}},
    ):
        found = asyncio.run(auto.ask("translate", texts, settings))
        assert found == like(asyncio.run(own.ask("translate", texts, settings)))
    with pytest.raises(InputError, match="serves translators"):
        open_engine(opened("tag").run, engine="ctranslate2")
    with pytest.raises(InputError, match="unknown key 'ours'"):
        open_engine(own.run, engine="ours")


def test_servers_that_start_at_once_have_the_library_all(runs: dict[str, Path], tmp_path: Path) -> None:
    """What it loads is made in the run's folder by the first, and the others wait for it."""
    run = shutil.copytree(runs["transformer"], tmp_path / "run", ignore=shutil.ignore_patterns("ctranslate2"))
    with ThreadPoolExecutor(4) as pool:
        engines = [*pool.map(lambda _: open_engine(run, engine="ctranslate2"), range(4))]
    assert {engine.engine for engine in engines} == {"ctranslate2"}
    for engine in engines:
        engine.close()


def test_a_library_that_fails_leaves_the_model_itself(runs, monkeypatch) -> None:
    monkeypatch.setattr("heedful.exchange.ct2.library", Mock(side_effect=RuntimeError("cannot be")))
    engine = open_engine(runs["transformer"], engine="auto")
    assert (engine.engine, engine.why) == ("own", "cannot be")
    engine.close()
