"""Tatoeba, English to French: 160,000 short sentences.

heed train recipes/tatoeba_en_fr.py --data PATH/TO/tatoeba_eng_fra --out runs/tatoeba_en_fr

Cut to 5.5 minutes on one core (`--set train.minutes=5.5 --set train.warmup=300`), less than one epoch: 28.8 BLEU on the
3,303 test sentences (sacreBLEU, cased, beam 5), one run. All eight epochs have not been measured.
"""

import heedful

recipe = heedful.recipe(
    "translate",
    preset="transformer-tiny",
    model={"encoder_layers": 4, "decoder_layers": 4, "dropout": 0.1},
    data={"source": "en", "target": "fr", "vocab_size": 8000},
    train={"epochs": 8, "lr": 4e-3, "warmup": 1000, "average": 0.998, "eval_sentences": 1000},
)
