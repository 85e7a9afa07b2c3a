"""What a run says of itself: the machine that it ran on, and a model card made from facts alone."""

import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from heedful.data.text import Corpus
from heedful.tasks.recipe import Recipe

LIBRARIES = ("heedful", "torch", "tokenizers", "safetensors", "sacrebleu", "numpy")


def environment(device: torch.device, precision: str) -> dict[str, Any]:
    """The machine, the libraries, and all else that the numbers of a run depend on."""
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "precision": precision,
        "versions": {name: metadata.version(name) for name in LIBRARIES},
    }


def model_card(
    out: Path,
    recipe: Recipe,
    corpus: Corpus,
    scores: Mapping[str, Mapping[str, float | str]],
    minutes: float,
    metrics: Sequence[Mapping[str, Any]],
) -> str:
    """README.md of a run's folder."""
    measured = [row for row in metrics if "bleu" in row]
    best = max(measured, key=lambda row: row["bleu"])
    lines = [
        f"# {out.name}",
        "",
        f"Translates {corpus.source} to {corpus.target}. Trained from scratch by heedful on {len(corpus.train):,} "
        f"sentence pairs, from `{corpus.train.name}`.",
        "",
        "| test set | pairs | BLEU | chrF | exactly right |",
        "|---|---|---|---|---|",
    ]
    for name, each in scores.items():
        exact = f"{100 * float(each['exact']):.1f} %"
        pairs = len(corpus.tests[name])
        lines.append(f"| {name} | {pairs:,} | {each['bleu']:.1f} | {each['chrf']:.1f} | {exact} |")
    first = next(iter(scores.values()))
    lines += [
        "",
        f"Search: beam {recipe.decode.beam}, length penalty {recipe.decode.length_penalty:g}. "
        f"BLEU `{first['signature']}`, chrF `{first['chrf_signature']}`.",
        "",
        f"The weights are those of step {best['step']:,}, the best on the validation pairs (BLEU {best['bleu']:.1f}, "
        f"greedy); training took {minutes:.1f} minutes. `recipe.yaml` is the whole recipe, `environment.json` the "
        "machine, `data.json` the data, `metrics.jsonl` every measurement.",
        "",
        "![loss and scores](plots/training.png)",
        "",
        "## Use",
        "",
        "```",
        f'heed translate {out} "A sentence in {corpus.source}."',
        f'heed look {out} "A sentence in {corpus.source}." --out attention.html',
        "```",
        "",
        "## Limits",
        "",
        "It has seen only the text above, and translates what is like it: on other text expect worse than the table "
        "says. It can leave out, invent and repeat; nothing in it checks facts.",
    ]
    if corpus.notes:
        lines += ["", "## Notes on the data", "", *(f"- {note}" for note in corpus.notes)]
    return "\n".join(lines) + "\n"
