"""A language model alone learns to say a sentence backwards in another alphabet after a sign (Liu et al. 2018), which
looking words up cannot do."""

from heedful.data.text.documents import Documents
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import backwards, finished

GPT = {"d_model": 64, "n_heads": 4, "n_layers": 2, "context_length": 64}


def test_it_learns(tmp_path):
    test = backwards(100, 3)
    seen = set(test.source)
    kept = backwards(4000, 1)
    kept = kept.rows(i for i, source in enumerate(kept.source) if source not in seen)
    texts = [f"{source} > {target}" for source, target in zip(kept.source, kept.target, strict=True)]
    corpus = Documents(texts[50:], texts[:50], {}, "made", (), ())
    recipe = build(
        {
            "task": "generate",
            "preset": "gpt-nano",
            "model": GPT,
            "data": {"tokenizer": "chars", "across": False},
            "train": {
                "steps": 280,
                "eval_every": 280,
                "optimizer": "muon",
                "tokens": 512,
                "lr": 4e-3,
                "warmup": 30,
                "average": 0.9,
                "precision": "fp32",
            },
        },
        where="test",
    )
    finished(train(recipe, tmp_path / "run", corpus=corpus))
    made = LanguageModel.load(tmp_path / "run").generate(
        [f"{source} > " for source in test.source], tokens=30, temperature=0.0
    )
    right = sum(found.text == target for (found,), target in zip(made, test.target, strict=True))
    assert right >= 90
