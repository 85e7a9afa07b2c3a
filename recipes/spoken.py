"""Sentences of four words, spoken by thirty-six voices of espeak-ng, written down by a small CTC model, from nothing.

python -m benchmarks.spoken spoken
heed train recipes/spoken.py --out runs/spoken
heed eval runs/spoken --data spoken
"""

import heedful

recipe = heedful.recipe(
    "transcribe",
    preset="ctc-nano",
    data={"path": "spoken"},
    train={"steps": 1500, "eval_every": 250, "average": 0.99},
)
