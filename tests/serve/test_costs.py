"""The dearest requests that are valid: whoever else asks is answered, and memory is bounded."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from made import SYLLABLES
from serving import serving
from waiting import PATIENCE

LETTERS, LISTED, LONGEST = 20_000, 128, 4096  # of a text, texts and tokens that a request may ask for
SERVED = ("transformer", "writer", "tag", "fill", "label", "answer", "parse", "match")
SECONDS = 2.0  # within which 99 of 100 small requests are answered


def long(text: str, letters: int = LETTERS) -> str:
    return (text * letters)[:letters]


WORDS = ["".join(own) for own in product(SYLLABLES, repeat=3)][:256]
FORMS = "|".join("".join(own) for own in product(SYLLABLES, repeat=4))[:19_000]
TALK, SENTENCES = long(" ".join(SYLLABLES) + " "), long("Ba de gi. ")
WIDE = {"beam": 64, "n_best": 64, "longest": LONGEST}
ENDLESS = {"longest": LONGEST, "shortest": LONGEST}


def translate(given: str | list[str], **options: Any) -> tuple[str, dict[str, Any]]:
    asked = {"text": given} if isinstance(given, str) else {"inputs": given}
    return "/api/translate", {"model": "transformer", **asked, "options": options}


def decoded(given: str | list[str], **decoding: Any) -> tuple[str, dict[str, Any]]:
    return translate(given, decoding=decoding)


def asks(verb: str, model: str, given: str | list[str], **options: Any) -> tuple[str, dict[str, Any]]:
    asked = {"text": given} if isinstance(given, str) else {"inputs": given}
    return f"/api/{verb}", {"model": model, **asked, "options": options}


def fragment(text: str, **options: Any) -> tuple[str, dict[str, Any]]:
    return "/api/fragment", {"model": "transformer", "text": text, "options": options}


def openai(path: str, **asked: Any) -> tuple[str, dict[str, Any]]:
    return f"/v1/{path}", {"model": "writer", **asked}


def libre(text: str | list[str], **asked: Any) -> tuple[str, dict[str, Any]]:
    return "/translate", {"q": text, "source": "low", "target": "high", "alternatives": 10, **asked}


KINDS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "a long text": translate(TALK),
    "a long text, a wide beam": decoded(TALK, **WIDE),
    "an endless wide beam": decoded("ba", **WIDE, shortest=LONGEST),
    "many endless wide beams": decoded(["ba"] * LISTED, **WIDE, shortest=LONGEST),
    "many sentences, a wide beam": decoded(SENTENCES, **WIDE),
    "many long texts": translate([long("ba de ", 7000)] * LISTED),
    "many samples": decoded(TALK, samples=64, longest=LONGEST),
    "many endless samples": decoded(["ba"] * LISTED, samples=2, **ENDLESS),
    "endless groups of beams": decoded("ba de", beam=64, groups=64, n_best=64, **ENDLESS),
    "no word twice": decoded("ba de", beam=16, no_repeat=2, **ENDLESS),
    "a penalty for repetition": decoded("ba de", beam=16, repetition_penalty=1.5, **ENDLESS),
    "as wide as is allowed": decoded("ba", beam=64, n_best=64, longest=240, shortest=240),
    "as many as are allowed": decoded(["ba"] * LISTED, beam=5, longest=250, shortest=250),
    "endless greedy": decoded("ba de", beam=1, **ENDLESS),
    "many endless greedy": decoded(["ba de"] * LISTED, beam=1, **ENDLESS),
    "a long beginning": ("/api/translate", {**translate("ba", decoding=ENDLESS)[1], "prefix": long("ba ", 2000)}),
    **{
        f"a text of {name}": translate(long(text))
        for name, text in {
            "dots": ".",
            "dots and spaces": ". ",
            "lines": "ba\n",
            "tags": "<a ",
            "pairs of tags": "<a>x</a>",
            "references": "&amp;",
            "one word": "b",
            "digits": "1",
            "emoji": "😀",
            "marks": "e\u0301\u0302",
            "links": "http://a.bc/d ",
            "quotes": '"',
            "spaces": "\u00a0",
        }.items()
    },
    "marked-up tags": fragment(long("<a "), markup="html"),
    "marked-up pairs": fragment(long("<b>ba</b> "), markup="html"),
    "a fragment of lines": fragment(long("ba\n"), markup="text"),
    "many alternatives of a fragment": fragment(TALK, n=64, decoding=WIDE),
    "words to be used": translate(TALK[:300], require=WORDS),
    "words in many forms": translate(TALK[:300], require=["|".join(WORDS[i : i + 10]) for i in range(40)]),
    "words not to be used": translate(TALK[:2000], avoid=WORDS),
    "a large glossary": translate(" ".join(WORDS), glossary=[[word, f"{word}x"] for word in WORDS]),
    "a term of many forms": translate("ba", glossary=[["ba", FORMS]]),
    "terms of many forms": translate(" ".join(WORDS[:40]), glossary=[[word, FORMS] for word in WORDS[:40]]),
    "words of many forms": translate("ba", require=[f"{FORMS}{n}" for n in range(40)]),
    "a glossary for many": translate([" ".join(WORDS)] * LISTED, glossary=[[word, f"{word}x"] for word in WORDS]),
    "alignments": asks("align", "transformer", [TALK[:2000]] * LISTED),
    "attention": ("/api/look", {"model": "transformer", "text": TALK[:2000]}),
    "attention on a page": ("/api/view", {"model": "transformer", "text": TALK[:2000], "kind": "html"}),
    "attention as a picture": ("/api/view", {"model": "transformer", "text": TALK[:2000], "kind": "png"}),
    "chances of each step": asks("steps", "transformer", TALK[:2000]),
    "alternatives of a long text": libre(TALK),
    "alternatives of many": libre(["ba de gi ko"] * 500),
    "long continuations": asks("generate", "writer", ["ba"] * LISTED, tokens=4000, samples=2),
    "continuations by a wide beam": asks("generate", "writer", ["ba"] * LISTED, tokens=4000, beam=2),
    "the best of many": asks("generate", "writer", "ba", tokens=4000, best_of=64),
    "likelihoods of long texts": asks("score", "writer", [TALK] * 32),
    "completions with chances": openai("completions", prompt=["ba ko lu"] * 64, echo=True, logprobs=5, max_tokens=1),
    "many long tags": asks("tag", "tag", [TALK] * 32),
    "many blanks": asks("fill", "fill", ["<mask> ba <mask>"] * LISTED),
    "trees": asks("parse", "parse", [TALK] * 16),
    "long contexts": asks("answer", "answer", ["ba"] * 16, context=TALK),
    "labels of long texts": asks("classify", "label", [TALK] * 32),
    "vectors of long texts": ("/api/embed", {"model": "match", "inputs": [TALK] * 32}),
}


def memory(process: int, key: str) -> int:
    """In bytes: "VmRSS" of now, "VmHWM" the most so far."""
    (line,) = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith(key)]
    return int(line.split()[1]) << 10


def at_work(process: int) -> int:
    """How long it has computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@asynccontextmanager
async def asked_beside(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> AsyncIterator[asyncio.Task]:
    """A request that is given up at the end."""
    asked = asyncio.create_task(client.post(path, json=body))
    await asyncio.sleep(0)
    try:
        yield asked
    finally:
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


async def comes_to_rest(process: int) -> None:
    """Waits until it computes nothing, which it may not do for longer than any stall of a machine."""
    before = -1
    async with asyncio.timeout(PATIENCE):
        while (now := at_work(process)) > before + 2:
            before = now
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("engine", ["auto", "own"])
def test_the_dearest_requests_leave_room(
    runs: dict[str, Path], engine: str, full: bool, tally: Callable[[str, int], None]
) -> None:
    """For a small client, which is always answered; they are answered or refused, and who leaves costs nothing more."""
    waits: list[float] = []

    async def small(client: httpx.AsyncClient) -> None:
        begun = time.monotonic()
        answer = await client.post("/api/translate", json={"model": "transformer", "text": "ba de gi"})
        assert answer.status_code == 200, answer.text
        waits.append(time.monotonic() - begun)

    async def attacked(url: str, process: int) -> dict[str, tuple[int, int]]:
        """Of each kind, the status (0: it was given up) and the most memory so far."""
        found: dict[str, tuple[int, int]] = {}
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            await small(client)
            for kind, (path, body) in KINDS.items():
                async with asked_beside(client, path, body) as asked:
                    for _ in range(100 if full else 3):
                        await small(client)
                    if full:  # to its end: an answer, or a limit
                        await asyncio.wait([asked])
                    status = asked.result().status_code if asked.done() else 0
                await comes_to_rest(process)
                found[kind] = status, memory(process, "VmHWM")
        return found

    with serving(*(runs[name] for name in SERVED), "--engine", engine) as (said, process):
        before = memory(process.pid, "VmRSS")
        found = asyncio.run(attacked(said["url"], process.pid))
    assert {kind: status for kind, (status, _) in found.items() if status not in (0, 200, 413)} == {}
    assert {kind: most for kind, (_, most) in found.items() if most > 2 * before} == {}
    if full:
        assert sorted(waits)[len(waits) * 99 // 100] < SECONDS
    tally("S11 the dearest requests", len(found))
