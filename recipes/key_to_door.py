"""A key, an empty room and a door, learnt from random walks: a Decision Transformer.

heed train recipes/key_to_door.py --out runs/key
heed eval runs/key --data key-to-door:2000 --plot asked.png

Asked for a return of 1 it reaches 1.00 in 100 episodes, from walks that reach 0.19 on average: one training, 19 seconds
of one core. Behaviour cloning of all walks reaches 0.06 to 0.16, of the best tenth 1.00, fitted Q 0.04 to 0.12, each
with three seeds.
"""

import heedful

recipe = heedful.recipe(
    "decide",
    model={"n_layers": 1, "d_model": 32},
    data={"path": "key-to-door:2000"},
    train={
        "steps": 300,
        "tokens": 4096,
        "optimizer": "muon",
        "lr": 4e-3,
        "warmup": 20,
        "average": 0.98,
        "precision": "fp32",
    },
)
