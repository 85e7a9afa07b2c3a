"""Sums put right by a rule, with PPO, from the model of `sums.py`.

python -m benchmarks.sums runs/sums-data
heed train recipes/sums.py --data runs/sums-data/sums.jsonl --out runs/sums
heed train recipes/sums_ppo.py --data runs/sums-data/prompts.txt --out runs/sums-ppo
"""

import heedful

recipe = heedful.recipe(
    "prefer",
    start_from="runs/sums",
    prefer={
        "method": "ppo",
        "reward": "benchmarks.sums:right",
        "tokens": 4,
        "rollouts": 128,
        "batch": 32,
        "kl": 0.05,
        "eval_answers": 400,
    },
    train={"steps": 400, "lr": 5e-4},
)
