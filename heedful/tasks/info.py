"""What a run or a preset is, in a few facts."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from heedful.core.config import unknown_key
from heedful.models import make_model
from heedful.models.presets import ENCODERS, LANGUAGE_MODELS, TRANSLATORS, encoder, language_model, translator
from heedful.models.vision_presets import VISION_TRANSFORMERS, vision_transformer
from heedful.store.files import read_json
from heedful.tasks.classify import TextClassifier
from heedful.tasks.classify_images import ImageClassifier
from heedful.tasks.load import load_model
from heedful.tasks.translate import Translator

VOCABULARY = 37_000  # what a preset's parameters are counted with: that of Vaswani et al. 2017

SCORES = ("bleu", "perplexity", "accuracy", "spearman", "micro_f1")  # those that are told


def describe(name: str | None) -> dict[str, Any]:
    """Facts of a run's folder or a preset; without a name, all presets with their parameter counts."""
    if name is None:
        presets = (*TRANSLATORS, *LANGUAGE_MODELS, *ENCODERS, *VISION_TRANSFORMERS)
        return {preset: f"{parameter_count(preset):,} parameters" for preset in presets}
    if name in TRANSLATORS:
        return {"preset": name, "parameters": parameter_count(name), "vocabulary": VOCABULARY} | asdict(
            TRANSLATORS[name]
        )
    if name in LANGUAGE_MODELS:
        return {"preset": name, "parameters": parameter_count(name)} | asdict(LANGUAGE_MODELS[name])
    if name in ENCODERS:
        return {"preset": name, "parameters": parameter_count(name)} | asdict(ENCODERS[name])
    if name in VISION_TRANSFORMERS:
        return {"preset": name, "parameters": parameter_count(name)} | asdict(VISION_TRANSFORMERS[name])
    folder = Path(name)
    if not folder.is_dir():
        known = [*TRANSLATORS, *LANGUAGE_MODELS, *ENCODERS, *VISION_TRANSFORMERS]
        raise unknown_key(name, known, where="heed info: neither a folder nor a preset")
    served = load_model(folder)
    size = sum(parameter.numel() for parameter in served.model.parameters())
    facts: dict[str, Any] = {"model": type(served.model).__name__, "parameters": size}
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
    elif isinstance(served, ImageClassifier):
        seen = served.says.preparation
        size = f"{seen.size[0]} x {seen.size[1]} pixels, {seen.channels} channel{'s' if seen.channels > 1 else ''}"
        facts |= {"task": "classify-images", "answers": ", ".join(served.says.labels), "pictures": size}
    else:
        facts |= {"task": served.about["task"], "vocabulary": served.tokenizer.size, "context": served.context}
    if (folder / "scores.json").is_file():
        scores = read_json(folder / "scores.json")
        facts |= {"steps": scores["steps"], "minutes": scores["minutes"]}
        for test, each in scores["scores"].items():
            facts |= {f"{key} on {test}": each[key] for key in SCORES if key in each}
    return facts


def parameter_count(preset: str) -> int:
    """How many numbers a preset learns: a translator's with one vocabulary of 37,000 for both sides, an encoder's with
    the head that names words. Nothing is allocated."""
    config: Any
    if preset in LANGUAGE_MODELS:
        config = language_model(LANGUAGE_MODELS[preset])
    elif preset in ENCODERS:
        config = encoder(ENCODERS[preset])
    elif preset in VISION_TRANSFORMERS:
        config = vision_transformer(VISION_TRANSFORMERS[preset])
    else:
        config = translator(TRANSLATORS[preset], source_vocab=VOCABULARY, target_vocab=VOCABULARY, joint=True)
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in make_model(config).parameters())
