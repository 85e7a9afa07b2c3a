"""Sums put right by a rule, with PPO, from the model of `sums.py`.

python -m benchmarks.sums runs/sums-data
heed train recipes/sums.py --data runs/sums-data/sums.jsonl --out runs/sums
heed train recipes/sums_ppo.py --data runs/sums-data/prompts.txt --out runs/sums-ppo

Of sums that are drawn 0.34 were right before and 0.93 after, of greedy ones 0.19 and 0.99, 0.49 nats an answer from the
model that it began with, by 3,200 answers; with two other seeds 0.36 and 0.85, 0.37 and 0.94: `python -m
benchmarks.prefer sums`. Five seconds on two cores, and half a minute for `sums.py`.
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
