"""SciTLDR: one sentence that summarises the abstract of a paper (Cachola et al. 2020), in minutes.

heed train recipes/scitldr.py --data PATH/TO/scitldr_a --out runs/scitldr

1,992 abstracts are few to learn a language from: begin with a denoiser of more text (Lewis et al. 2020) by

heed train denoise --data PATH/TO/TEXT --set data.objective=infill --out runs/denoise
heed train recipes/scitldr.py --data PATH/TO/scitldr_a --from runs/denoise --out runs/scitldr
"""

import heedful

recipe = heedful.recipe(
    "summarise",
    preset="transformer-tiny",
    model={"dropout": 0.2},
    data={"source": "source", "target": "target", "vocab_size": 8000, "longest": 400},
    train={"minutes": 10, "lr": 2e-3, "warmup": 200, "eval_sentences": 100},
    decode={"beam": 4, "longest": 60},
)
