"""How a served translator answers: alone, to many at once, and for how much memory.

    heed demo --out runs/demo
    pip install flask waitress                    # the peer: CTranslate2 behind a server of the usual kind
    python -m benchmarks.serving --run runs/demo [--seconds 60]

All are asked over HTTP by LibreTranslate's `POST /translate`, with the run's own beam, for sentences of the phrasebook
in an order that is drawn; "offline" is the same model, called in a process without a server. One client asks one
sentence after another; many clients each do so at the same time, and every answer must be the one that the sentence
gets alone. Clients are sockets of this process, which takes a little of the cores that servers compute with.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.turns import Contestant, Work, machine
from heedful.data.documents.sentences import sentences_in
from heedful.data.made.phrasebook import phrasebook
from heedful.store import files
from heedful.tasks.load import load_model

BUSY = 429


def offline(run: Path, engine: str) -> Work:
    """Translates what it is given: a sentence, or a list of them as a file has them."""
    model = load_model(run, engine=None if engine == "own" else engine)
    return model.translate


def behind_flask(run: Path) -> None:
    """CTranslate2 behind Flask and waitress, with waitress's four threads, as LibreTranslate serves it."""
    import flask
    import waitress

    model = load_model(run, engine="ctranslate2")
    app = flask.Flask(__name__)

    @app.post("/translate")
    def translate() -> dict[str, str]:
        return {"translatedText": model.translate(flask.request.get_json()["q"])}

    server = waitress.create_server(app, host="127.0.0.1", port=0)
    print(json.dumps({"url": f"http://127.0.0.1:{server.effective_port}"}), flush=True)
    server.run()


@dataclass
class Asked:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)  # of each answer
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: int = 0  # answers that are not the sentence's own
    wall: float = 0.0

    @property
    def rate(self) -> float:
        return self.statuses[200] / self.wall

    def __str__(self) -> str:
        middle, last = statistics.median(self.seconds), sorted(self.seconds)[int(0.99 * len(self.seconds))]
        others = {status: count for status, count in self.statuses.items() if status != 200}
        text = f"{self.rate:8,.1f} sentences/s  median {1000 * middle:,.1f} ms  p99 {1000 * last:,.1f} ms"
        return f"{text}  {len(self.seconds):,} answers, {self.wrong} wrong, not answered: {others or 'none'}"


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def ask(self, text: str, pair: tuple[str, str]) -> tuple[int, Mapping[str, object]]:
        if not hasattr(self, "_reader"):
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        body = json.dumps({"q": text, "source": pair[0], "target": pair[1]}).encode()
        head = f"POST /translate HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
        return int(lines[0].split()[1]), json.loads(await self._reader.readexactly(length))


async def crowd(
    port: int, pair: tuple[str, str], right: Mapping[str, str], clients: int, seconds: float, most: float = float("inf")
) -> Asked:
    """So many clients for so long, or until so many answers came."""
    asked = Asked()
    begin = time.perf_counter()

    async def one(seed: int) -> None:
        client, draw, texts = Client(port), random.Random(seed), list(right)
        while time.perf_counter() - begin < seconds and len(asked.seconds) < most:
            text = draw.choice(texts)
            sent = time.perf_counter()
            status, answer = await client.ask(text, pair)
            asked.statuses[status] += 1
            if status == 200:
                asked.seconds.append(time.perf_counter() - sent)
                asked.wrong += answer["translatedText"] != right[text]
            elif status == BUSY:
                await asyncio.sleep(0.05)

    await asyncio.gather(*(one(seed) for seed in range(clients)))
    asked.wall = time.perf_counter() - begin
    return asked


@contextmanager
def served(command: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The port, and the number of the process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(json.loads(process.stdout.readline())["url"].rstrip("/").rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.wait()


def resident(pid: int) -> float:
    """MB of memory that the process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def compare(run: Path, engine: str, clients: int, seconds: float, rounds: int, requests: int) -> None:
    cores = len(os.sched_getaffinity(0))
    about = files.read_json(run / "task.json")
    pair = about["source"], about["target"]
    texts = dict.fromkeys(source for source, _ in phrasebook(60_000, seed=1).test)
    short = [text for text in texts if len(sentences_in(text, about["source"])) == 1]  # others are answered in parts
    sentences = short[:1000]
    print(machine(cores))

    alone = Contestant("offline", offline, (run, "own" if engine == "own" else "ctranslate2"))
    alone.start(cores)
    right = {text: alone.turn(text)[0] for text in sentences}
    single = statistics.median(alone.turn(text)[1] for text in sentences)
    of_a_file = statistics.median(len(sentences) / alone.turn(sentences)[1] for _ in range(3))
    alone.stop()
    print(f"offline: one sentence {1000 * single:,.1f} ms, a file of {len(sentences):,} {of_a_file:,.1f} sentences/s")

    ours = [sys.executable, "-m", "heedful", "serve", str(run), "--port", "0", "--engine", engine, "--json"]
    peer = [sys.executable, "-m", "benchmarks.serving", "--run", str(run), "--peer"]
    rates: dict[str, list[float]] = {}
    for name, command in [("heed serve", ours), ("Flask and waitress", peer)] * rounds:
        with served(command) as (port, _):
            asyncio.run(crowd(port, pair, right, 4, 2))
            print(f"{name:20} 1 client    {asyncio.run(crowd(port, pair, right, 1, 10))}", flush=True)
            many = asyncio.run(crowd(port, pair, right, clients, seconds))
            print(f"{name:20} {clients} clients  {many}", flush=True)
            rates.setdefault(name, []).append(many.rate)
    of_ours, of_peer = (statistics.median(each) for each in rates.values())
    print(f"heed serve / a file offline: {of_ours / of_a_file:.2f}; / the peer: {of_ours / of_peer:.2f}")

    with served(ours) as (port, pid):
        for asked in range(0, requests + 1, max(1, requests // 5)):
            print(f"after {asked:6,} requests: {resident(pid):,.0f} MB", flush=True)
            asyncio.run(crowd(port, pair, right, clients, 1e9, requests // 5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, type=Path)
    parser.add_argument("--engine", default="auto", choices=["auto", "own", "ctranslate2"])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=10_000, help="over which memory is watched")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)  # this process is the peer
    chosen = vars(parser.parse_args())
    if chosen.pop("peer"):
        behind_flask(chosen["run"])
    else:
        compare(**chosen)


if __name__ == "__main__":
    main()
