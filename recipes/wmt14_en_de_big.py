"""WMT-14, English to German, the big model of Vaswani et al. 2017 (table 2: 28.4 BLEU on newstest2014).

heed train recipes/wmt14_en_de_big.py --data PATH/TO/wmt14 --out runs/wmt14_en_de_big
heed plan recipes/wmt14_en_de_big.py --pairs 4.5M --on 8xP100

It has not been trained here: the settings are the paper's (sections 5.1 to 5.4 and 6.1). The paper took 3.5 days on
eight P100; `heed plan` says 3.9 days there, and 1.2 hours on eight H100. Batches have 25,000 tokens a side; the rate
peaks at 1024^-0.5 4000^-0.5; no gradient is clipped; in the end the weights of the last 20 checkpoints are averaged,
which the paper wrote every ten minutes, 600 steps. On a device with less memory, `--set train.tokens=6250 --set
train.accumulate=4` makes the same steps.
"""

import heedful

recipe = heedful.recipe(
    "translate",
    preset="transformer-big",
    data={"source": "en", "target": "de", "vocab_size": 37000},
    train={
        "steps": 300_000,
        "tokens": 25_000,
        "lr": 4.94e-4,
        "beta2": 0.98,
        "epsilon": 1e-9,
        "schedule": "inverse_sqrt",
        "warmup": 4000,
        "smoothing": 0.1,
        "clip": 0,
        "average": 0,
        "average_last": 20,
        "save_every": 600,
        "eval_every": 6000,
        "eval_sentences": 1000,
    },
    decode={"beam": 4, "length_penalty": 0.6},
)
