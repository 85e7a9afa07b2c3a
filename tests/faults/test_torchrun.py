"""Two ranks as a user starts them: `torchrun`, stopped by a signal and started again (R8)."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.run.resume import flat
from made import TRANSFORMER, made_corpus
from trainer import Trainer, ends, told

SETTINGS = {
    "steps": 40,
    "precision": "fp32",
    "save_every": 1000,
    "eval_every": 1000,
    "eval_sentences": 4,
    "tokens": 192,
    "row": 32,
}
LAUNCH = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "heedful", "train", "translate")


def command(data: Path, out: Path) -> list[str]:
    keys = flat({**{name: TRANSFORMER[name] for name in ("model", "data", "decode")}, "train": SETTINGS})
    settings = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    where = ["--data", str(data), "--source", "low", "--target", "high", "--out", str(out)]
    return [sys.executable, *LAUNCH, *where, "--preset", "transformer-tiny", *settings]


def children(pid: int) -> list[int]:
    found = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [grandchild for child in found for grandchild in children(child)]


@pytest.mark.parametrize("count", [1, pytest.param(6, marks=pytest.mark.full)])
def test_torchrun_is_told_to_leave(
    count: int, tmp_path: Path, trainer: Trainer, tally: Callable[[str, int], None]
) -> None:
    pairs = made_corpus(150).train
    data = tmp_path / "pairs.tsv"
    data.write_text("low\thigh\n" + "".join(f"{a}\t{b}\n" for a, b in zip(pairs.source, pairs.target, strict=True)))
    straight = tmp_path / "straight"
    settings = [f"train.{key}={value}" for key, value in SETTINGS.items()]
    assert trainer.run(straight, *settings, model=str(data), ranks=2) == [0, 0], told(straight)
    for number in range(count):
        for attempt in range(10):
            out = tmp_path / f"asked-{number}-{attempt}"
            with subprocess.Popen(command(data, out), stderr=subprocess.PIPE, text=True) as launcher:
                assert launcher.stderr is not None
                for line in launcher.stderr:
                    if line.startswith("step 1 "):
                        break
                workers = children(launcher.pid)
                launcher.send_signal((signal.SIGTERM, signal.SIGINT)[number % 2])
                rest = launcher.stderr.read()
            if "saved at step" in rest or launcher.returncode != 0:
                break  # else the training was over before it was told to leave
        assert launcher.returncode != 0
        assert "saved at step" in rest
        assert "Unable to shutdown process" not in rest  # as torchrun says where one does not leave
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists() and os.getpgid(pid)], "orphans"
        again = subprocess.run(command(data, out), capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
        assert "continuing from step" in again.stderr
        assert ends(out) == ends(straight)
    tally("R8 signals", count)
