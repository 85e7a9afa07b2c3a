"""What a run or a preset is, in a few facts."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from heedful.core.config import unknown_key
from heedful.data.images import Preparation
from heedful.models import make_model
from heedful.models.presets import ENCODERS, LANGUAGE_MODELS, PAINTERS, TRANSLATORS, encoder, language_model, translator
from heedful.models.vision_presets import (
    DETECTORS,
    PAIRS,
    SEGMENTERS,
    VISION_TRANSFORMERS,
    detector,
    segmenter,
    two_towers,
    vision_transformer,
)
from heedful.store.files import read_json
from heedful.tasks.classify import TextClassifier
from heedful.tasks.classify_images import ImageClassifier
from heedful.tasks.detect import Detector
from heedful.tasks.load import load_model
from heedful.tasks.match import Matcher
from heedful.tasks.paint import Painter
from heedful.tasks.segment import Segmenter
from heedful.tasks.translate import Translator

VOCABULARY = 37_000  # what a preset's parameters are counted with: that of Vaswani et al. 2017

# Those that are told.
SCORES = (
    "bleu",
    "perplexity",
    "accuracy",
    "spearman",
    "micro_f1",
    "span_f1",
    "exact_match",
    "f1",
    "map50",
    "miou",
    "bits_per_pixel",
    "text_to_image_recall_10",
)

# What makes a configuration of a row without knowing data.
MAKERS: list[tuple[Mapping[str, Any], Callable[[Any], Any]]] = [
    (LANGUAGE_MODELS, language_model),
    (PAINTERS, language_model),
    (ENCODERS, encoder),
    (VISION_TRANSFORMERS, vision_transformer),
    (DETECTORS, detector),
    (SEGMENTERS, segmenter),
    (PAIRS, two_towers),
]
PRESETS: dict[str, Any] = {**TRANSLATORS, **{name: row for rows, _ in MAKERS for name, row in rows.items()}}


def describe(name: str | None) -> dict[str, Any]:
    """Facts of a run's folder or a preset; without a name, all presets with their parameter counts."""
    if name is None:
        return {preset: f"{parameter_count(preset):,} parameters" for preset in PRESETS}
    if name in PRESETS:
        facts = {"preset": name, "parameters": parameter_count(name)}
        return facts | ({"vocabulary": VOCABULARY} if name in TRANSLATORS else {}) | asdict(PRESETS[name])
    folder = Path(name)
    if not folder.is_dir():
        raise unknown_key(name, [*PRESETS], where="heed info: neither a folder nor a preset")
    served = load_model(folder)
    size = sum(parameter.numel() for parameter in served.model.parameters())
    facts = {"model": type(served.model).__name__, "parameters": size}
    if isinstance(served, Translator):
        facts |= {
            "task": f"translate {served.about['source']} to {served.about['target']}",
            "vocabulary": served.target.size,
            "search": " ".join(
                f"{key}={value:g}" for key, value in served.about.get("decode", {}).items() if value is not None
            ),
        }
    elif isinstance(served, TextClassifier):
        says = served.says
        what = ", ".join(says.labels) or says.answer
        facts |= {"task": "classify", "answers": what, "vocabulary": served.tokenizer.size}
    elif isinstance(served, ImageClassifier | Detector | Segmenter):
        labels = served.says.labels
        answers = ", ".join(labels) if len(labels) <= 20 else f"{len(labels):,} labels"
        facts |= {"task": served.about["task"], "answers": answers, "pictures": _pictures(served.says.preparation)}
    elif isinstance(served, Matcher):
        facts |= {"task": "match", "pictures": _pictures(served.says.preparation), "vocabulary": served.tokenizer.size}
        facts |= {"context": served.layout.context, "common width": served.model.config.d_common}
    elif isinstance(served, Painter):
        facts |= {"task": "paint", "pictures": _pictures(served.says.preparation), "colours": len(served.says.palette)}
    else:
        facts |= {"task": served.about["task"], "vocabulary": served.tokenizer.size, "context": served.context}
    if (folder / "scores.json").is_file():
        scores = read_json(folder / "scores.json")
        facts |= {"steps": scores["steps"], "minutes": scores["minutes"]}
        for test, each in scores["scores"].items():
            facts |= {f"{key} on {test}": each[key] for key in SCORES if key in each}
    return facts


def _pictures(seen: Preparation) -> str:
    size = " x ".join(map(str, seen.crop or seen.resize)) or "any"
    if seen.longest is not None and not seen.crop:
        size = f"edges of {size} to {seen.longest}"
    return f"{size} pixels, {seen.channels} channel{'s' if seen.channels > 1 else ''}"


def parameter_count(preset: str) -> int:
    """How many numbers a preset learns: a translator's with one vocabulary of 37,000 for both sides, an encoder's with
    the head that names words. Nothing is allocated."""
    make = next((make for rows, make in MAKERS if preset in rows), None)
    if make is None:
        config: Any = translator(TRANSLATORS[preset], source_vocab=VOCABULARY, target_vocab=VOCABULARY, joint=True)
    else:
        config = make(PRESETS[preset])
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in make_model(config).parameters())
