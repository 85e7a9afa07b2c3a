"""The laws that a model must keep, checked on the user's own model, each with its figure: those of `probes`, that
saving loses nothing, and that another engine says the same, within SCORES where it does the sums."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from heedful.decode.search import greedy
from heedful.errors import InputError, MissingError
from heedful.store.checkpoint import verify
from heedful.store.files import read_json
from heedful.tasks import ct2
from heedful.tasks.folder import parameters, read_tokenizers, tokenizer_files, write_model
from heedful.tasks.generate import LanguageModel
from heedful.tasks.load import load_model
from heedful.tasks.probes import PROBES, Law, random_sentences
from heedful.tasks.translate import Translator

SCORES = 1e-3  # nats, by another engine


def check(run: Path, texts: Sequence[str] = ()) -> Iterator[Law]:
    """Checks the folder and its model, law by law. `texts` are what to check on; without any, random tokens are."""
    if not run.is_dir():
        raise MissingError("no such folder", where=str(run), fix="check the path")
    folders = sorted(run.glob("checkpoints/step-*"))
    damaged = tuple(f"{path / problem}" for path in folders for problem in verify(path))
    yield Law(f"{len(folders)} checkpoints verify (damaged files)", float(len(damaged)), 0.0, damaged)
    model = load_model(run)
    probe = next(probe for kind, probe in PROBES.items() if isinstance(model, kind))
    yield from probe(model, texts).laws()
    yield Law("save then load", _saved_and_loaded(run, model), 0.0)
    yield from _by_ctranslate2(run, model, texts)


def _by_ctranslate2(run: Path, served: Any, texts: Sequence[str]) -> Iterator[Law]:
    """That the model says the same by CTranslate2, or why that was not asked."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "exported"
        try:
            yield Law("CTranslate2: log-probabilities", ct2.export(run, served, folder), SCORES)
            if isinstance(served, Translator):
                yield from _translated(served, ct2.load(folder), texts)
            else:
                yield from _gone_on(served, folder, texts)
        except (InputError, MissingError) as error:
            yield Law("CTranslate2", None, 0.0, (f"not compared: {error.what}",))


def _translated(served: Translator, other: Translator, texts: Sequence[str]) -> Iterator[Law]:
    sentences = [ids for ids in served.encode(list(texts))[0] if ids][:8]
    sentences, settings = sentences or random_sentences(served.source.size), served.decoding(beam=1, longest=30)
    theirs, ours = ([best[0] for best in model.hypotheses(sentences, settings)] for model in (other, served))
    unequal = sum(a.tokens != b.tokens for a, b in zip(ours, theirs, strict=True))
    yield Law("CTranslate2: greedy (different tokens)", float(unequal), 0.0)
    worst = max(abs(a.score - b.score) for a, b in zip(ours, theirs, strict=True))
    yield Law("CTranslate2: greedy (scores)", worst, SCORES)


def _gone_on(served: LanguageModel, folder: Path, texts: Sequence[str]) -> Iterator[Law]:
    encoded = [ids for ids in served.tokenizer.encode_whole(list(texts)) if ids][:8]
    half = max(1, served.context // 2)
    prompts = [[*served.before, *ids][:half] for ids in encoded or random_sentences(served.tokenizer.size)]
    options: dict[str, Any] = {"eos": served.end, "longest": min(20, half), "forbidden": served.forbidden}
    ours = [greedy(served.model, torch.tensor([ids[:-1]]), bos=ids[-1], **options)[0].tokens for ids in prompts]
    theirs = ct2.greedy(folder, served, prompts, tokens=min(20, half))
    unequal = sum(list(a) != b for a, b in zip(ours, theirs, strict=True))
    yield Law("CTranslate2: greedy (different tokens)", float(unequal), 0.0)


def _saved_and_loaded(run: Path, served: Any) -> float:
    own = parameters(served.model)
    tokenizers = read_tokenizers(run)
    beside = ({} if tokenizers is None else tokenizer_files(*tokenizers)) | {"task.json": read_json(run / "task.json")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        write_model(folder, served.model, own, beside)
        other = parameters(load_model(folder).model)
    return max(float((own[name] - other[name]).abs().max()) for name in own)
