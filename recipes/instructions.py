"""1,100 instructions with answers: a small LLaMA, from nothing, that has learnt the form of answers and little else.

heed train recipes/instructions.py --data PATH/TO/instructions.json --out runs/instructions
heed chat runs/instructions

The data are those of Raschka's book on building a language model (rasbt/LLMs-from-scratch, chapter 7, Apache-2.0), in
Alpaca's layout; a tenth is held out. One run of 204 steps, less than two minutes on one core: 4.00 nats a token of
held-out answers (perplexity 54), chrF 23, none exactly right. It has the forms ("The opposite of 'expand' is 'd'.") and
no knowledge: for that, start from a language model (--from RUN).
"""

import heedful

recipe = heedful.recipe(
    "chat",
    preset="llama-nano",
    model={"n_layers": 4, "d_model": 128, "kv_heads": 4, "d_ff": 352, "context_length": 128, "dropout": 0.1},
    data={"vocab_size": 2000},
    train={
        "epochs": 12,
        "tokens": 2048,
        "optimizer": "muon",
        "lr": 2e-3,
        "warmup": 30,
        "average": 0.99,
    },
)
