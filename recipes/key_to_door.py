"""A key, an empty room and a door, learnt from random walks: a Decision Transformer.

heed train recipes/key_to_door.py --out runs/key
heed eval runs/key --data key-to-door:2000 --plot asked.png
"""

import heedful

recipe = heedful.recipe(
    "decide",
    model={"n_layers": 1, "d_model": 32},
    data={"path": "key-to-door:2000"},
    train={"steps": 300, "tokens": 4096, "optimizer": "muon", "lr": 4e-3, "warmup": 20, "average": 0.98},
)
