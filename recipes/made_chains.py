"""Contacts and backbones of made chains, from 16 aligned sequences each: AlphaFold in small.

heed train recipes/made_chains.py --out runs/fold
heed eval runs/fold --data chains
"""

import heedful

recipe = heedful.recipe(
    "fold",
    model={"n_layers": 1, "structure_layers": 2, "recycles": 0},
    data={"path": "chains:300"},
    train={
        "steps": 400,
        "eval_every": 60,
        "optimizer": "muon",
        "lr": 4e-3,
        "warmup": 20,
        "average": 0.97,
        "precision": "fp32",
    },
)
