"""The same faults, injected into this project's training and into Hugging Face's Trainer, one after the other.

    pip install transformers accelerate
    python -m benchmarks.faults --kills 40

Both train a small transformer for 60 steps on made data, save every 5 and keep 3, and are started again by the same
command after each fault. What counts is whether the run goes on, and whether it ends in the weights that it would have
had: "same", "other" (it went on, and nobody was told), or "stopped" (an error, although older good checkpoints exist).
"""

import argparse
import hashlib
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

import heedful
from heedful.data.text.corpus import Corpus
from heedful.data.text.pairs import Pairs
from heedful.run.events import Checkpointed
from heedful.tasks.translate.training.epochs import TranslationTask
from heedful.verbs.train import train

STEPS, EVERY, KEPT, HALF = 60, 5, 3, 30
FINISHED = "finished.sha256"


class System(Protocol):
    name: str

    def go(self, out: Path, *, leave_at: int = 0, poison_at: int = 0) -> None:
        """Trains in `out`, or goes on with what is there, and writes the hash of the last weights to FINISHED.

        `leave_at`: ends the process once this step is saved. `poison_at`: sets one weight to NaN before this step.
        """

    def checkpoints(self, out: Path) -> list[Path]: ...


def finish(out: Path, tensors: dict[str, torch.Tensor]) -> None:
    digest = hashlib.sha256()
    for _, tensor in sorted(tensors.items()):
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    (out / FINISHED).write_text(digest.hexdigest())


class Ours:
    name = "heedful"

    def __init__(self) -> None:
        draw = random.Random(0)
        lines = [" ".join(draw.choice("abcdefgh") for _ in range(draw.randint(3, 9))) for _ in range(200)]
        pairs = Pairs(lines, [line.upper() for line in lines], "made")
        self.corpus = Corpus(
            pairs, pairs.rows(range(4)), {"test": pairs.rows(range(4))}, "made", source="a", target="b"
        )
        self.recipe = heedful.recipe(
            "translate",
            preset="transformer-tiny",
            model={"d_model": 32, "n_heads": 2, "d_ff": 64},
            train={
                "steps": STEPS,
                "save_every": EVERY,
                "keep": KEPT,
                "eval_every": HALF,
                "tokens": 256,
                "precision": "fp32",
            },
        )
        self.recipe = self.recipe.model_copy(update={"data": self.recipe.data.model_copy(update={"vocab_size": 300})})

    def go(self, out: Path, *, leave_at: int = 0, poison_at: int = 0) -> None:
        plain = TranslationTask.loss
        made = 0

        def loss(task: TranslationTask, model: Any, batch: Any) -> Any:
            if made + 1 == poison_at:
                model.head.weight.data[3, 3] = math.nan
            return plain(task, model, batch)

        TranslationTask.loss = loss  # type: ignore[assignment, method-assign]
        for event in train(self.recipe, out, corpus=self.corpus):
            made = getattr(getattr(event, "step", None), "step", made)
            if isinstance(event, Checkpointed) and event.step == leave_at:
                os._exit(0)
        last = self.checkpoints(out)[-1]
        (out / FINISHED).write_text(hashlib.sha256((last / "weights.safetensors").read_bytes()).hexdigest())

    def checkpoints(self, out: Path) -> list[Path]:
        return by_step(out.glob("checkpoints/step-*"))


class Theirs:
    name = "transformers.Trainer"

    def go(self, out: Path, *, leave_at: int = 0, poison_at: int = 0) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
        from transformers.trainer_utils import get_last_checkpoint, set_seed

        class Faults(TrainerCallback):
            def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
                if state.global_step + 1 == poison_at:
                    more["model"].transformer.wte.weight.data[3, 3] = math.nan

            def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
                if state.global_step == leave_at:
                    os._exit(0)

        set_seed(1)
        config = GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2)
        draw = torch.Generator().manual_seed(0)
        rows = [torch.randint(4, 64, (12,), generator=draw) for _ in range(200)]
        arguments = TrainingArguments(
            output_dir=str(out),
            max_steps=STEPS,
            save_steps=EVERY,
            save_total_limit=KEPT,
            per_device_train_batch_size=16,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            logging_strategy="no",
            seed=1,
        )
        trainer = Trainer(
            GPT2LMHeadModel(config),
            arguments,
            train_dataset=[{"input_ids": row, "labels": row} for row in rows],
            callbacks=[Faults()],
        )
        newest = get_last_checkpoint(str(out)) if out.is_dir() else None
        trainer.train(resume_from_checkpoint=newest)
        assert isinstance(trainer.model, nn.Module)
        finish(out, dict(trainer.model.named_parameters()))

    def checkpoints(self, out: Path) -> list[Path]:
        return by_step(out.glob("checkpoint-*"))


def by_step(folders: Iterator[Path]) -> list[Path]:
    return sorted(folders, key=lambda path: int(path.name.rpartition("-")[2]))


def start(system: System, out: Path, **how: int) -> int:
    """The process id of a training."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        log = os.open(f"{out}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        system.go(out, **how)
        code = 0
    except BaseException as error:  # the child of a fork may not come back
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    os._exit(code)


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def outcome(out: Path, code: int, expected: str) -> str:
    if code or not (out / FINISHED).exists():
        return "stopped"
    return "same" if (out / FINISHED).read_text() == expected else "other"


def kills(system: System, folder: Path, count: int, expected: str, wait: float) -> Counter[str]:
    """kill -9 at random times, again and again on one run until it is finished; then another one."""
    chance, found, done, number = random.Random(count), Counter[str](), 0, 0
    while done < count:
        out, code, number = folder / f"kill-{number}", -9, number + 1
        while code == -signal.SIGKILL:
            pid = start(system, out)
            if done < count:
                time.sleep(chance.uniform(0.2, 1.0) * wait)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            code = ended(pid)
            done += code == -signal.SIGKILL
        found[outcome(out, code, expected)] += 1
    return found


def damages(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    chance = random.Random(0)
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        data = path.read_bytes()
        flipped = bytearray(data)
        flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        yield f"{path.name} removed", path.unlink
        yield f"{path.name} emptied", partial(path.write_bytes, b"")
        yield f"{path.name} cut", partial(path.write_bytes, data[: len(data) // 2])
        yield f"{path.name} one bit flipped", partial(path.write_bytes, flipped)


def damaged(system: System, folder: Path, expected: str) -> Counter[str]:
    """One file of the newest checkpoint is damaged, halfway; two older checkpoints are whole."""
    template = folder / "half"
    ended(start(system, template, leave_at=HALF))
    found = Counter[str]()
    for number, (what, _) in enumerate(damages(system.checkpoints(template)[-1])):
        out = folder / f"damage-{number}"
        shutil.copytree(template, out)
        dict(damages(system.checkpoints(out)[-1]))[what]()
        result = outcome(out, ended(start(system, out)), expected)
        found[result] += 1
        print(f"  {system.name}: {what}: {result}", file=sys.stderr)
    return found


def finite(folder: Path) -> bool:
    from safetensors.torch import load_file

    names = [name for name in ("weights.safetensors", "model.safetensors") if (folder / name).exists()]
    return all(bool(tensor.isfinite().all()) for name in names for tensor in load_file(folder / name).values())


def poisoned(system: System, folder: Path) -> str:
    """One weight becomes NaN before step 33."""
    out = folder / "poisoned"
    code = ended(start(system, out, poison_at=33))
    good = [path.name for path in system.checkpoints(out) if finite(path)]
    left = f"{good[-1]} is good" if good else "no good checkpoint is left"
    return f"{'ends as if nothing had happened' if code == 0 else 'stops with an error'}; {left}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    count = parser.parse_args().kills
    torch.set_num_threads(1)
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    import transformers  # before the forks, so that a child is at once at work

    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    for system in (Ours(), Theirs()):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            begin = time.perf_counter()
            ended(start(system, folder / "undisturbed"))
            wait = time.perf_counter() - begin
            expected = (folder / "undisturbed" / FINISHED).read_text()
            out = folder / "stopped-halfway"
            ended(start(system, out, leave_at=HALF))
            print(f"\n{system.name}")
            print(f"  left halfway, then the same command again: {outcome(out, ended(start(system, out)), expected)}")
            print(f"  {count} x kill -9, runs that ended: {dict(kills(system, folder, count, expected, wait / 2))}")
            print(f"  one file of the newest checkpoint damaged: {dict(damaged(system, folder, expected))}")
            print(f"  one weight becomes NaN: {poisoned(system, folder)}", flush=True)


if __name__ == "__main__":
    main()
