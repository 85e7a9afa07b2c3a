"""Sums that were taught partly wrong, and a rule that knows better: what a model can be rewarded for without people.

    python -m benchmarks.sums runs/sums-data

writes `sums.jsonl`, instructions of which a third are right, most of the others one too many, and `prompts.txt`.
"""

import argparse
import json
import random
from pathlib import Path

RIGHT, ONE_MORE = 0.35, 0.8  # of the instructions so many are right, and so many of these or one too many
COUNT = 5000


def right(prompt: object, answer: str) -> float:
    """1 where the answer is the sum that the prompt asks for, and nothing else; 0 elsewhere."""
    first, second = str(prompt).removesuffix("=").split("+")
    return float(answer == str(int(first) + int(second)))


def instruction(draw: random.Random) -> str:
    a, b, chance = draw.randint(0, 9), draw.randint(0, 9), draw.random()
    said = a + b if chance < RIGHT else a + b + 1 if chance < ONE_MORE else draw.randint(0, 18)
    return f"{a}+{b}={said}"


def write_sums(folder: Path, *, seed: int) -> Path:
    """The instructions of a seed, and all prompts, in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    rows = [{"text": instruction(draw)} for _ in range(COUNT)]
    (folder / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "prompts.txt").write_text("".join(f"{a}+{b}=\n" for a in range(10) for b in range(10)))
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write_sums(given.folder, seed=given.seed)
