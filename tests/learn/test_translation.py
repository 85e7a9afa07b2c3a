"""Every translator learns to say a sentence backwards in another alphabet, which a lookup of words cannot."""

import pytest

from heedful.data.text.corpus import Corpus
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import backwards, finished

TRANSFORMER = {"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
DECODER = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_layers": 2, "dropout": 0.0}
RECURRENT = {"d_embed": 48, "d_hidden": 64, "d_align": 48, "d_readout": 48, "dropout": 0.0}


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
