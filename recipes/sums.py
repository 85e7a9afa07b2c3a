"""Sums, taught partly wrong: the model that `sums_ppo.py` and `sums_grpo.py` put right.

python -m benchmarks.sums runs/sums-data
heed train recipes/sums.py --data runs/sums-data/sums.jsonl --out runs/sums

A third of the instructions are right, and it says so often what is right: see `sums_ppo.py`.
"""

import heedful

recipe = heedful.recipe(
    "generate",
    model={"n_layers": 2, "d_model": 64, "n_heads": 4, "context_length": 16, "dropout": 0.0},
    data={"tokenizer": "chars", "across": False},
    train={"steps": 2000, "tokens": 512, "lr": 3e-3, "precision": "fp32"},
)
