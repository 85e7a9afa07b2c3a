"""Sums put right by a rule, with GRPO, from the model of `sums.py`.

python -m benchmarks.sums runs/sums-data
heed train recipes/sums.py --data runs/sums-data/sums.jsonl --out runs/sums
heed train recipes/sums_grpo.py --data runs/sums-data/prompts.txt --out runs/sums-grpo

Of sums that are drawn 0.34 were right before and 0.77 after, of greedy ones 0.19 and 0.96, 0.44 nats an answer from the
model that it began with, by 3,200 answers (`python -m benchmarks.prefer sums`). Ten seconds on one busy core.
"""

import heedful

recipe = heedful.recipe(
    "prefer",
    start_from="runs/sums",
    prefer={
        "method": "grpo",
        "reward": "benchmarks.sums:right",
        "tokens": 4,
        "rollouts": 128,
        "batch": 32,
        "kl": 0.02,
        "eval_answers": 400,
    },
    train={"steps": 100, "lr": 5e-4},
)
