"""What a run or a preset is, in a few facts."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from heedful.core.config import unknown_key
from heedful.models import make_model
from heedful.models.presets import TRANSLATORS, translator
from heedful.store.files import read_json
from heedful.tasks.translate import Translator

VOCABULARY = 37_000  # what a preset's parameters are counted with: that of Vaswani et al. 2017


def describe(name: str | None) -> dict[str, Any]:
    """Facts of a run's folder or a preset; without a name, all presets with their parameter counts."""
    if name is None:
        return {preset: f"{parameter_count(preset):,} parameters" for preset in TRANSLATORS}
    if name in TRANSLATORS:
        return {"preset": name, "parameters": parameter_count(name), "vocabulary": VOCABULARY} | asdict(
            TRANSLATORS[name]
        )
    folder = Path(name)
    if not folder.is_dir():
        raise unknown_key(name, list(TRANSLATORS), where="heed info: neither a folder nor a preset")
    translator_ = Translator.load(folder)
    facts: dict[str, Any] = {
        "task": f"translate {translator_.about['source']} to {translator_.about['target']}",
        "model": type(translator_.model).__name__,
        "parameters": sum(parameter.numel() for parameter in translator_.model.parameters()),
        "vocabulary": translator_.target.size,
        "search": " ".join(f"{key}={value:g}" for key, value in translator_.about["decode"].items()),
    }
    if (folder / "scores.json").is_file():
        scores = read_json(folder / "scores.json")
        facts |= {"steps": scores["steps"], "minutes": scores["minutes"]}
        facts |= {f"BLEU on {test}": each["bleu"] for test, each in scores["scores"].items()}
    return facts


def parameter_count(preset: str) -> int:
    """How many numbers a preset learns, with one vocabulary of 37,000 for both sides. Nothing is allocated."""
    config = translator(TRANSLATORS[preset], source_vocab=VOCABULARY, target_vocab=VOCABULARY, joint=True)
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in make_model(config).parameters())
