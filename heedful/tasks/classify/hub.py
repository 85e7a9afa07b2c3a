"""What stands beside the weights of a classifier of texts on the Hub: its tokenizer, and what it calls its answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.data.text.labelled import Answer
from heedful.errors import InputError
from heedful.exchange.hf.folder import CONFIG
from heedful.exchange.hub import Files, read_framed, write_framed
from heedful.models.classifier import ClassifierConfig
from heedful.run.folder import tokenizer_files
from heedful.run.task import Hub, HubFiles
from heedful.tasks.classify.layout import ClassifySpec
from heedful.tasks.classify.use import TextClassifier

PROBLEMS: dict[Answer, str] = {
    "label": "single_label_classification",
    "labels": "multi_label_classification",
    "score": "regression",
}


def read_classifier(folder: Path, said: Mapping[str, Any], config: ClassifierConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out. Raises InputError for a problem that is none of
    theirs, and as `read_framed`."""
    tokenizer = read_framed(folder, said, size=config.body.embed.vocab_size)
    names = said.get("id2label") or {str(i): f"LABEL_{i}" for i in range(config.answers or 1)}
    problem = said.get("problem_type") or ("regression" if config.answers == 1 else PROBLEMS["label"])
    answer = next((answer for answer, name in PROBLEMS.items() if name == problem), None)
    if answer is None or (answer == "score" and config.answers != 1):
        raise InputError(f"problem_type is {problem!r} of {config.answers} answers", where=str(folder / CONFIG))
    labels = () if answer == "score" else tuple(str(names[key]) for key in sorted(names, key=int))
    about = {"task": "classify", **to_json(ClassifySpec(answer=answer, labels=labels))}
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": about}


def write_classifier(run: Path, served: TextClassifier) -> HubFiles:
    """Raises InputError for answers that they cannot hold."""
    spec = served.spec
    if spec.answer not in PROBLEMS or spec.symmetric or (spec.mean, spec.deviation) != (0.0, 1.0):
        what = f"answers ({spec.answer}) that are choices, of pairs in both orders, or standard scores"
        raise InputError(f"BERT and RoBERTa cannot hold {what}", where=str(run))
    made = write_framed(served.tokenizer, served.model.config.body.embed)
    labels = spec.labels or ("LABEL_0",)
    return HubFiles(made.files, made.ids | {"labels": labels, "problem": PROBLEMS[spec.answer]})


HUB = Hub(read_classifier, write_classifier)
