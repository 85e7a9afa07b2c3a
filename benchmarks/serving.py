"""How a served model answers: alone, to many at once, and for how much memory.

    heed demo --out runs/demo
    pip install flask waitress                    # the peer: CTranslate2 behind a server of the usual kind
    python -m benchmarks.serving --run runs/demo [--seconds 60]
    python -m benchmarks.serving --run runs/lm    # a language model: 64 tokens, greedy
    python -m benchmarks.serving --run runs/demo --start

A translator is asked over HTTP by LibreTranslate's `POST /translate`, with the run's own beam, for sentences of the
phrasebook in an order that is drawn, and a language model by OpenAI's `POST /v1/completions`. "A file" is the same work
by `heed translate RUN < FILE` or `heed generate RUN PROMPT ...`, with and without what the command takes to begin. One
client asks one question after another; many clients each do so at the same time, and every answer must be the one that
the command gives. The clients are sockets of this process, whose share of the processors' time is told, as is what the
server does for each second of its own. `--start` tells how long `heed serve` takes until it answers, and the
first answer, beside the time that it takes to read the weights.
"""

import argparse
import json
import os
import random
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.turns import machine
from heedful.data.documents.sentences import sentences_in
from heedful.data.made.phrasebook import phrasebook
from heedful.store import files
from heedful.tasks.load import load_model

BUSY = 429
HEED = [sys.executable, "-m", "heedful"]
TICKS = os.sysconf("SC_CLK_TCK")  # of a second
TOKENS = 64  # that a language model adds


@dataclass(frozen=True)
class Job:
    """Questions, and the way to them; `answers` are those of the file, in the same order."""

    path: str
    bodies: Sequence[bytes]
    command: Sequence[str]  # that answers `texts`, lines of a file or arguments
    texts: Sequence[str]
    by_lines: bool

    def offline(self, texts: Sequence[str]) -> float:
        """The seconds that the command takes."""
        given = "".join(f"{text}\n" for text in texts) if self.by_lines else ""
        begin = time.perf_counter()
        words = [*self.command, "--json", *(() if self.by_lines else ("--", *texts))]
        subprocess.run(words, input=given, stdout=subprocess.DEVNULL, text=True, check=True)
        return time.perf_counter() - begin

    def answers(self) -> list[str]:
        """To `texts`; lines as a document, which is what a server makes of them."""
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder, "given.txt"), Path(folder, "made.txt")
            given.write_text("".join(f"{text}\n" for text in self.texts))
            words = ["--file", str(given), "--out", str(made)] if self.by_lines else ["--json", "--", *self.texts]
            done = subprocess.run([*self.command, *words], capture_output=True, text=True, check=True)
            lines = made.read_text().splitlines() if self.by_lines else done.stdout.splitlines()
        return lines if self.by_lines else [json.loads(line)["text"] for line in lines]


def text_of(body: bytes) -> str:
    answer: Mapping[str, Any] = json.loads(body)
    return str(answer["choices"][0]["text"] if "choices" in answer else answer["translatedText"])


def job_of(run: Path, engine: str) -> Job:
    about = files.read_json(run / "task.json")
    sources = dict.fromkeys(source for source, _ in phrasebook(60_000, seed=1).test)
    if "target" not in about:
        texts = [f"{source.split(',')[0][:24]} " for source in [*sources][:512]]
        asked = {"model": run.resolve().name, "max_tokens": TOKENS, "temperature": 0}
        bodies = [json.dumps({**asked, "prompt": text}).encode() for text in texts]
        command = [*HEED, "generate", str(run), "--tokens", str(TOKENS), "--temperature", "0"]
        return Job("/v1/completions", bodies, command, texts, by_lines=False)
    pair = {"source": about["source"], "target": about["target"]}
    short = [text for text in sources if len(sentences_in(text, pair["source"])) == 1]  # others come in parts
    bodies = [json.dumps({"q": text, **pair}).encode() for text in short[:1000]]
    library = ["--engine", engine] if engine != "auto" else []
    return Job("/translate", bodies, [*HEED, "translate", str(run), *library], short[:1000], by_lines=True)


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
    """What the clients saw, and what processors did meanwhile, in seconds."""

    seconds: list[float] = field(default_factory=list)  # of each answer
    statuses: Counter[int] = field(default_factory=Counter)
    bodies: list[tuple[int, bytes]] = field(default_factory=list)  # of answers, with the numbers of their questions
    wall: float = 0.0
    server: float = 0.0
    clients: float = 0.0
    wrong: int = 0

    @property
    def rate(self) -> float:
        return self.statuses[200] / self.wall

    def __str__(self) -> str:
        middle, last = statistics.median(self.seconds), sorted(self.seconds)[int(0.99 * len(self.seconds))]
        others = {status: count for status, count in self.statuses.items() if status != 200}
        text = f"{self.rate:8,.1f}/s  median {1000 * middle:,.1f} ms  p99 {1000 * last:,.1f} ms"
        text += f"  {self.statuses[200] / max(self.server, 1e-9):,.0f} for each second of the server's processors"
        text += f", the clients' share {self.clients / (self.clients + self.server):.0%}"
        return f"{text}  {len(self.seconds):,} answers, {self.wrong} wrong, not answered: {others or 'none'}"


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int, job: Job, seed: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"POST {job.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        self._asks = [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in job.bodies]
        self._draw, self._came, self.number, self.sent = random.Random(seed), b"", 0, 0.0

    def ask(self) -> None:
        self.number, self._came = self._draw.randrange(len(self._asks)), b""
        self.sent = time.perf_counter()
        self.socket.sendall(self._asks[self.number])

    def answer(self) -> tuple[int, bytes] | None:
        """The status and the body, once they are whole."""
        came = self.socket.recv(65536)
        assert came, "the server closed a connection"
        self._came += came
        head, _, body = self._came.partition(b"\r\n\r\n")
        at = head.lower().find(b"content-length:")
        if at < 0 or len(body) < int(head[at + 15 :].split(b"\r\n", 1)[0]):
            return None
        return int(head[9:12]), body


def crowd(
    port: int, pid: int, job: Job, right: Sequence[str], clients: int, seconds: float, most: float = float("inf")
) -> Asked:
    """So many clients for so long, or until so many answers came."""
    asked, waiting = Asked(), list[tuple[float, Client]]()
    with selectors.DefaultSelector() as selector:
        each = [Client(port, job, seed) for seed in range(clients)]
        begin, server, own = time.perf_counter(), processors(pid), time.process_time()
        for client in each:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.ask()
        while (now := time.perf_counter()) - begin < seconds and len(asked.seconds) < most:
            while waiting and waiting[0][0] <= now:
                waiting.pop(0)[1].ask()
            for key, _ in selector.select(0.05):
                client = key.data
                found = client.answer()
                if found is None:
                    continue
                status, body = found
                asked.statuses[status] += 1
                if status == BUSY:
                    waiting.append((time.perf_counter() + 0.05, client))
                    continue
                if status == 200:
                    asked.seconds.append(time.perf_counter() - client.sent)
                    asked.bodies.append((client.number, body))
                client.ask()
        asked.wall = time.perf_counter() - begin
        asked.server, asked.clients = processors(pid) - server, time.process_time() - own
        for client in each:
            client.socket.close()
    asked.wrong = sum(text_of(body) != right[number] for number, body in asked.bodies)
    return asked


def processors(pid: int) -> float:
    """Seconds of processors' time that a process has had."""
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / TICKS


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


def serving(run: Path, engine: str) -> list[str]:
    return [*HEED, "serve", str(run), "--port", "0", "--engine", engine, "--json"]


def compare(run: Path, engine: str, clients: int, seconds: float, rounds: int, requests: int) -> None:
    print(machine(len(os.sched_getaffinity(0))))
    job = job_of(run, engine)
    copies = max(1, round(seconds * (1000 if job.by_lines else 60) / len(job.texts)))  # about as long as the crowd asks
    if job.by_lines and not (find_spec("flask") and find_spec("waitress")):
        sys.exit("the peer is not there: pip install flask waitress")
    given = [*job.texts] * (copies if job.by_lines else 1)
    right, one, took = job.answers(), job.offline(given[:1]), job.offline(given)
    whole, of_a_file = len(given) / took, (len(given) - 1) / (took - one)
    print(f"a file of {len(given):,}: {whole:,.1f}/s, {of_a_file:,.1f}/s without the {one:.1f} s to begin", flush=True)

    peer = [sys.executable, "-m", "benchmarks.serving", "--run", str(run), "--peer"]
    contestants = [("heed serve", serving(run, engine))] + [("Flask and waitress", peer)] * job.by_lines
    rates: dict[str, list[float]] = {}
    for name, command in contestants * rounds:
        with served(command) as (port, pid):
            crowd(port, pid, job, right, 4, 2)
            print(f"{name:20} 1 client    {crowd(port, pid, job, right, 1, 10)}", flush=True)
            many = crowd(port, pid, job, right, clients, seconds)
            print(f"{name:20} {clients} clients  {many}", flush=True)
            rates.setdefault(name, []).append(many.rate)
    ours, *peers = (statistics.median(each) for each in rates.values())
    print(f"heed serve / a file: {ours / whole:.2f}, without its begin {ours / of_a_file:.2f}")
    print("".join(f"heed serve / the peer: {ours / rate:.2f}\n" for rate in peers), end="")

    with served(serving(run, engine)) as (port, pid):
        for asked in range(0, requests + 1, max(1, requests // 5)):
            print(f"after {asked:6,} requests: {resident(pid):,.0f} MB", flush=True)
            crowd(port, pid, job, right, clients, 1e9, requests // 5)


def start(run: Path, engine: str, rounds: int) -> None:
    """Seconds until the first answer, of a process that begins, and how many of them the model's own are."""
    job = job_of(run, engine)
    for _ in range(rounds):
        begin = time.perf_counter()
        with served(serving(run, engine)) as (port, _):
            ready = time.perf_counter() - begin
            client = Client(port, job, 0)
            client.ask()
            while client.answer() is None:
                pass
            first = time.perf_counter() - begin
            client.socket.close()
        reading = (
            "import time; from pathlib import Path; from heedful.tasks.load import load_model; b = time.perf_counter()"
        )
        reading += f"; load_model(Path({str(run)!r})); print(time.perf_counter() - b)"
        read = float(subprocess.run([sys.executable, "-c", reading], stdout=subprocess.PIPE, check=True).stdout)
        print(f"answers after {ready:.2f} s, the first answer after {first:.2f} s; reading the weights {read:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, type=Path)
    parser.add_argument("--engine", default="auto", choices=["auto", "own", "ctranslate2", "llama.cpp"])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=10_000, help="over which memory is watched")
    parser.add_argument("--start", action="store_true", help="tell how long it takes to begin")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)  # this process is the peer
    asked = parser.parse_args()
    if asked.peer:
        behind_flask(asked.run)
    elif asked.start:
        start(asked.run, asked.engine, asked.rounds)
    else:
        compare(asked.run, asked.engine, asked.clients, asked.seconds, asked.rounds, asked.requests)


if __name__ == "__main__":
    main()
