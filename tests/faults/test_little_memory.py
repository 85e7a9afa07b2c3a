"""Every verb where memory is short: 4 GiB of addresses, or of memory that may be written, beside torch's own (M1).

The second is what counts under strict overcommit, as containers and clusters have it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from cases import BEGUN_WALK, LINES, PIXELS, SOUNDS
from heedful import cli
from heedful.data.images.files import to_image
from made import TRANSFORMER, made_corpus, random_translator
from saved import save_run

Limit = Literal["RLIMIT_AS", "RLIMIT_DATA"]
# Runs commands, and lines of Python ("python", CODE), in one process, and prints for each its exit code and its errors.
CHILD = """
import contextlib, io, json, os, resource, sys
import torch
torch.set_num_threads(1)
kind = getattr(resource, sys.argv[1])
pages = open("/proc/self/statm").read().split()[0 if kind == resource.RLIMIT_AS else 5]
limit = int(pages) * os.sysconf("SC_PAGE_SIZE") + int(sys.argv[2])
resource.setrlimit(kind, (limit, limit))
from heedful import cli
for words in json.loads(sys.argv[3]):
    said, code = io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            if words[0] == "python":
                exec(words[1])
            else:
                sys.argv = ["heed", *words]
                cli.main()
    except SystemExit as left:
        code = left.code or 0
    except BaseException as error:
        code = repr(error)[:300]
    print(json.dumps([code, said.getvalue()]), flush=True)
"""
BESIDE_TORCH = 4 << 30  # bytes
EVAL = "import heedful; heedful.load({run!r}).evaluate({data!r})"


def commands(run_of: Callable[[str], Path], folder: Path) -> list[list[str]]:
    """A command of every kind, and the same from Python, in an order in which each finds what it needs. The demo, which
    is a training, is left to the other tests."""
    translator, lm, chat, teacher = *map(str, map(run_of, ("transformer", "gpt", "chat"))), str(folder / "teacher")
    loud = random_translator(made_corpus(60), TRANSFORMER)
    save_run(folder / "teacher", loud.model, loud.source, loud.target, loud.about)
    for number, pixels in enumerate(PIXELS[:2]):
        to_image(pixels).save(folder / f"{number}.png")
    (folder / "pairs.tsv").write_text("".join(f"{i} ba de\tDE BA {i}\n" for i in range(60)))
    (folder / "texts.txt").write_text("".join(LINES))
    (folder / "prompts.txt").write_text("ba\nko\nde\ngi\nba ko\nde gi\n")
    (folder / "rules.py").write_text("def value(prompt, answer):\n    return float(sum(map(ord, answer)) % 7)\n")
    (folder / "a.txt").write_text("ba de gi\n")
    (folder / "chain.fasta").write_text(">a\nGIVEQCCTSICSLYQLENYCN\n")
    small = ["--set", 'model={"d_model": 16, "n_heads": 2, "d_ff": 32}', "--set", "train.steps=2"]
    few = ["--set", "train.steps=2"]
    rounds = ["--rounds", "1", "--tokens", "4", *few]
    pairs, image = "pairs.tsv", "0.png"
    plain = [
        ["train", "translate", "--data", pairs, "--out", "t", *small, "--set", "data.vocab_size=300"],
        ["prune", "t", "--out", "pruned", *few],
        ["data", "check", pairs, "--out", "clean.tsv"],
        ["distil", teacher, "--data", pairs, "--out", "student", "--preset", "transformer-tiny", *small],
        ["back-translate", teacher, "texts.txt", "--out", "back.tsv"],
        ["eval", translator, "--data", pairs, "--out", "said.txt"],
        ["check", translator],
        ["translate", translator, "ba de"],
        ["translate", translator, "--file", "a.txt", "--out", "b.txt"],
        ["translate", translator, "ba de", "--weights", "int8"],
        ["align", translator, "ba de\tDE BA"],
        ["summarise", translator, "ba de"],
        ["generate", lm, "ba", "--tokens", "4"],
        ["score", lm, "ba de"],
        ["chat", chat, "ba", "--tokens", "3"],
        ["classify", str(run_of("label")), "ba"],
        ["tag", str(run_of("tag")), "ba de"],
        ["answer", str(run_of("answer")), "ba?", "--context", "ba is de."],
        ["fill", str(run_of("fill")), "ba <mask>"],
        ["parse", str(run_of("parse")), "a ba de"],
        ["detect", str(run_of("detect")), image],
        ["segment", str(run_of("segment")), image],
        ["match", str(run_of("match")), image, "--text", "a", "--text", "b"],
        ["describe", str(run_of("describe")), image],
        ["paint", str(run_of("paint")), image],
        ["vectors", str(run_of("vectors")), "near", "ba"],
        ["embed", str(run_of("fill")), "ba de"],
        ["reward", str(run_of("reward")), "ba", "de"],
        ["python", "from heedful.tasks.prefer import loop; loop.beats_chance = lambda *_: True"],  # after two steps
        ["loop", chat, "--prompts", "prompts.txt", "--out", "loop", "--ranker", "rules.py:value", *rounds],
        ["rank", chat, "--prompts", "prompts.txt", "--out", "judged.jsonl", "--who", "a"],
        ["look", translator, "ba de", "--out", "x.html"],
        ["act", str(run_of("choices")), BEGUN_WALK],
        ["transcribe", str(run_of("transcribe")), SOUNDS[0]],
        ["fold", str(run_of("fold")), "chain.fasta"],
        ["plan", "translate", "--preset", "transformer-tiny", "--pairs", "1k"],
        ["draw", "transformer-tiny"],
        ["trace", translator, "ba de"],
        ["info", translator],
        ["lecture", "N1"],
        ["serve", translator, "--check"],
        ["export", lm, "--out", "hub"],
        ["export", translator, "--out", "ct2", "--to", "ctranslate2"],
        ["import", "hub", "--out", "imported"],
        ["python", "import os; os.truncate('t/model.safetensors', 100)"],
        ["restore", "t"],
    ]
    python = [
        "import heedful; rows = [(f'ba {i}', f'{i} BA') for i in range(60)]; "
        "heedful.train('translate', 'p', data=rows, preset='transformer-tiny', settings=['train.steps=2'])",
        "import heedful; heedful.load('p').translate(['ba'])",
        f"import heedful; heedful.load({translator!r}).evaluate('pairs.tsv')",
        f"import heedful; m = heedful.load({translator!r}); m.save(m.trainable(), 'saved')",
        "from heedful.verbs.exchange import import_model; import_model('hub', 'again')",
        "from heedful.verbs.exchange import export_model; export_model('again', 'out')",
    ]
    return [*plain, *(["python", code] for code in python)]


@pytest.mark.parametrize("limit", ["RLIMIT_AS", pytest.param("RLIMIT_DATA", marks=pytest.mark.full)])
def test_every_verb_works_with_little_memory(
    limit: Limit, run_of: Callable[[str], Path], tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    asked = commands(run_of, tmp_path)
    assert {words[0] for words in asked} == {*cli.heed.commands, "python"} - {"demo"}
    for words, (code, said) in zip(asked, run(asked, limit, BESIDE_TORCH, tmp_path), strict=True):
        assert code == 0, (words, said)
    tally("M1 verbs where memory is short", len(asked))


def run(asked: Sequence[Sequence[str]], limit: Limit, size: int, folder: Path) -> list[tuple[object, str]]:
    """The exit code and the errors of each command, in a process that may take so many bytes more than torch."""
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", CHILD, limit, str(size), json.dumps(asked)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]
