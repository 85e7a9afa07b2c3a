"""Every translator learns to say a sentence backwards in another alphabet, which a lookup of words cannot."""

from pathlib import Path

import pytest

from heedful.data.text.corpus import Corpus
from heedful.data.text.pairs import Pairs
from heedful.tasks.recipes import build
from heedful.tasks.translate.use import Translator
from heedful.verbs.train import train
from made import backwards, finished

TRANSFORMER = {"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
DECODER = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_layers": 2, "dropout": 0.0}
RECURRENT = {"d_embed": 48, "d_hidden": 64, "d_align": 48, "d_readout": 48, "dropout": 0.0}


def forwards(count: int, seed: int) -> Pairs:
    """Sentences in another alphabet, word by word."""
    source = backwards(count, seed).source
    return Pairs([*source], [text.upper() for text in source], f"made-{seed}")


def test_a_term_that_was_never_seen_takes_the_place_of_what_would_be_said(tmp_path: Path) -> None:
    """And nothing else changes: a search that is held to it alone says it first or last, and leaves out the rest."""
    corpus = Corpus(forwards(2000, 1), forwards(50, 2), {}, "made", source="low", target="high")
    settings = {"steps": 120, "optimizer": "muon", "lr": 4e-3, "warmup": 30, "average": 0.9, "tokens": 512, "row": 32}
    recipe = {"preset": "transformer-tiny", "model": TRANSFORMER, "data": {"vocab_size": 300}, "train": settings}
    finished(train(build(recipe, where="test"), tmp_path / "run", corpus=corpus))
    texts = [text for text in forwards(200, 3).source if text.split().count("ko") == 1 and len(text.split()) > 3][:20]
    said = Translator.load(tmp_path / "run").translate(texts, glossary={"ko": "Zug"})
    right = [one == text.upper().replace("KO", "Zug") for one, text in zip(said, texts, strict=True)]
    assert sum(right) / len(right) >= 0.7, said


@pytest.mark.parametrize(
    ("preset", "model", "lr"),
    [
        ("transformer-tiny", TRANSFORMER, 4e-3),
        ("decoder-tiny", DECODER, 4e-3),
        ("decoder-tiny", DECODER | {"input_loss": 0.0, "prefix": True}, 4e-3),
        ("rnn-small", RECURRENT, 8e-3),
    ],
    ids=["transformer", "decoder", "prefix", "rnn"],
)
def test_it_learns(tmp_path, preset, model, lr):
    test = backwards(100, 3)
    seen = set(test.source)
    kept = backwards(4000, 1)
    kept = kept.rows(i for i, source in enumerate(kept.source) if source not in seen)
    corpus = Corpus(kept, backwards(50, 2), {"test": test}, "made", source="low", target="high")
    recipe = build(
        {
            "preset": preset,
            "model": model,
            "data": {"vocab_size": 300},
            "train": {
                "steps": 180,
                "optimizer": "muon",
                "lr": lr,
                "warmup": 30,
                "average": 0.9,
                "tokens": 512,
                "row": 32,
                "eval_every": 180,
            },
        },
        where="test",
    )
    last = finished(train(recipe, tmp_path / "run", corpus=corpus))
    copied = [source.upper() == target for source, target in zip(test.source, test.target, strict=True)]
    assert sum(copied) / len(copied) < 0.2  # what saying each word in its turn gets right
    assert last.scores["test"]["exact"] >= 0.9
