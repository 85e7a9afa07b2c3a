"""Multi30k, English to German, by the recurrent model that attention was invented for (Bahdanau et al. 2015).

heed train recipes/multi30k_en_de_rnn.py --data PATH/TO/multi30k --out runs/multi30k_en_de_rnn

35.2 BLEU on test_2016_flickr and 26.5 on test_2017_flickr (sacreBLEU, cased, beam 5), one run.
"""

import heedful

recipe = heedful.recipe(
    "translate",
    preset="rnn-small",
    model={"dropout": 0.3},
    data={"source": "en", "target": "de", "vocab_size": 6000},
    train={"epochs": 10, "lr": 2e-3, "warmup": 400, "average": 0.998, "eval_sentences": 1014},
    decode={"beam": 5, "length_penalty": 1.0},
)
