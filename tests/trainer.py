"""Small trainings in processes of their own, forked from one that has imported everything.

Tests use `Trainer`. Run as a program, this file is the other side: it reads a job per line from standard input, forks
its ranks, and answers with their process ids; asked to wait, it answers with how a process ended.
"""

import hashlib
import importlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from waiting import becomes

ROOT = Path(__file__).parent.parent


class Trainer:
    """Starts trainings of `made` corpora and recipes, and of `cases`."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__))]
        where = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
            "OMP_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "1",
        }
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=where)

    def ask(self, **question: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def start(
        self,
        out: Path,
        *settings: str,
        model: str = "TRANSFORMER",
        begun: Path | None = None,
        ranks: int = 1,
        leave: int = 0,
        patience: int = 120,
        lost: tuple[int, int, int] | None = None,
        memory: int = 0,
    ) -> list[int]:
        """Begins or continues a training in `out`, and returns the process ids of its ranks; `told` has their records.

        `model` and `begun`: as in `training`. `leave`: the step after which rank 0 sends itself SIGTERM. `patience`:
        seconds that ranks wait for each other. `lost`: a rank, the number of its losses, and the signal that it then
        sends itself, after recording "lost". `memory`: megabytes that a rank may take beside what it begins with; 0:
        all there are.
        """
        job = {"out": str(out), "settings": settings, "model": model, "begun": str(begun), "ranks": ranks}
        return self.ask(**job, leave=leave, patience=patience, lost=lost, memory=memory)

    def wait(self, pids: Sequence[int]) -> list[int]:
        """How each process ended: its exit code, or minus the signal that ended it."""
        return [self.ask(wait=pid) for pid in pids]

    def run(self, out: Path, *settings: str, **how: Any) -> list[int]:
        return self.wait(self.start(out, *settings, **how))

    def close(self) -> None:
        self.process.communicate()


def wait_until(done: Callable[[], bool], pid: int) -> None:
    """Waits until `done`, or until the process has ended."""
    assert becomes(lambda: done() or state_of(pid) == "Z")


def state_of(pid: int) -> str:
    """The state of a process that has not been waited for: "T" if it was stopped, "Z" if it has ended."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def told(out: Path, rank: int = 0) -> list[list[Any]]:
    """The records of a rank of the training in `out` so far: [word, ...] per line."""
    path = Path(f"{out}.{rank}.log")
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def ends(out: Path) -> dict[str, str]:
    """The results that must not depend on interruptions: the sha256 of the last weights, and the metrics."""
    steps = sorted((out / "checkpoints").glob("step-*"), key=lambda path: int(path.name[5:]))
    files = [*sorted(steps[-1].glob("*.safetensors")), out / "model.safetensors"]
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row.pop("seconds", None)
    return hashes | {"steps": steps[-1].name, "metrics": json.dumps(rows)}


# Modules that a training imports when it needs them, which every forked process would otherwise import anew.
TASKS = tuple(f"heedful.tasks.{task}.train" for task in ("translate", "chat", "reward", "prefer"))
IMPORTED = ("cases", "heedful.look.draw", "heedful.verbs.train", "sacrebleu", "torch._dynamo", *TASKS)


def serve() -> None:
    import torch

    import heedful.run.train
    import heedful.store.files
    from heedful.training.precision import choose_precision

    torch.set_num_threads(1)
    for name in IMPORTED:
        importlib.import_module(name)
    choose_precision(torch.device("cpu"))  # takes a second to measure
    heedful.run.train.curves = lambda rows, scores, title: None  # drawing takes longer than a small training
    heedful.run.train.to_bytes = lambda figure, kind: b"not drawn"
    heedful.store.files.Disk.fsync = lambda disk, descriptor: None
    for line in sys.stdin:
        question = json.loads(line)
        if "wait" in question:
            status = os.waitpid(question["wait"], 0)[1]
            print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)
            continue
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port = probe.getsockname()[1]
        pids = []
        for rank in range(question["ranks"]):
            pid = os.fork()
            if not pid:
                os._exit(train(question, rank, port))
            pids.append(pid)
        print(json.dumps(pids), flush=True)


def train(job: dict[str, Any], rank: int, port: int) -> int:
    from heedful.errors import HeedError
    from heedful.run.events import Checkpointed, Note, Trained
    from heedful.training.loop import CachingTask
    from heedful.verbs.train import train as events

    os.close(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)  # signals after the end of training have no effect
    log = os.open(f"{job['out']}.{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def tell(*words: Any) -> None:
        os.write(log, json.dumps(words).encode() + b"\n")

    if job["ranks"] > 1:
        os.environ.update(
            TORCHELASTIC_RUN_ID="test", RANK=str(rank), WORLD_SIZE=str(job["ranks"]), LOCAL_RANK=str(rank)
        )
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
        os.environ.update(HEEDFUL_RANK_TIMEOUT=str(job["patience"]))
    if job["memory"]:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + (job["memory"] << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    plain, made_of = CachingTask.loss, CachingTask.batches
    made_steps, epoch_now, losses = 0, 0, 0

    def batches(task: CachingTask, epoch: int, model: Any) -> Any:
        nonlocal epoch_now
        epoch_now = epoch
        return made_of(task, epoch, model)

    def loss(task: CachingTask, model: Any, batch: Any) -> Any:
        nonlocal losses
        tell("seen", epoch_now, sentences(batch))
        losses += 1
        if job["lost"] and job["lost"][:2] == [rank, losses]:
            tell("lost")
            os.kill(os.getpid(), job["lost"][2])
        if made_steps + 1 == job["leave"] and rank == 0:
            os.kill(os.getpid(), signal.SIGTERM)  # within the step, which is completed
        return plain(task, model, batch)

    CachingTask.loss, CachingTask.batches = loss, batches
    try:
        recipe, corpus = training(job["model"], Path(job["begun"]), *job["settings"])
        for event in events(recipe, Path(job["out"]), corpus=corpus):
            match event:
                case Trained():
                    made_steps = event.step.step
                    tell("step", made_steps)
                case Checkpointed():
                    tell("saved", event.step)
                case Note():
                    tell("note", event.text)
                    if event.text.startswith("continuing from step "):
                        made_steps = int(event.text.split()[-1])
    except HeedError as error:
        tell("error", str(error))
        return error.exit_code
    except BaseException as error:
        tell("bug", repr(error))
        return 99
    return 0


def training(name: str, begun: Path, *settings: str) -> tuple[Any, Any]:
    """A recipe, with those of these settings that its task has, and its data: a translator's from `made` or from a file
    with pairs from low to high, a case, or a method of prefer from the run in `begun`."""
    import cases
    import made
    from heedful.run.recipe import keys_in, override

    if Path(name).is_file():
        where = {"path": name, "source": "low", "target": "high"}
        recipe, corpus = override(made.made_recipe(), [f"data.{key}={word}" for key, word in where.items()]), None
    elif name in cases.METHODS:
        recipe, corpus = cases.preferring(begun, name), cases.PROMPTED
    elif name in cases.CASES:
        case = cases.CASES[name]
        recipe, corpus = cases.recipe_of(case, case.model, {"tokens": 128}), case.corpus
    else:
        recipe, corpus = made.made_recipe(getattr(made, name)), made.made_corpus(150, 4)
    known = {f"train.{key}" for key in keys_in(type(recipe), ["train"])}
    return override(recipe, [own for own in settings if own.partition("=")[0] in known]), corpus


def sentences(batch: Any) -> list[str]:
    """The target sentences of a batch, each as its ids in text; empty for a batch of another task."""
    from heedful.data.batches import PairBatch

    if not isinstance(batch, PairBatch):
        return []
    found = []
    for ids, segments in zip(batch.target_out.tolist(), batch.target_segments.tolist(), strict=True):
        for number in range(1, max(segments, default=0) + 1):
            found.append(" ".join(str(i) for i, segment in zip(ids, segments, strict=True) if segment == number))
    return found


if __name__ == "__main__":
    serve()
