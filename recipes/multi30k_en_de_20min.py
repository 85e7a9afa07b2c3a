"""Multi30k, English to German, in twenty minutes; and as far as this goes, in an hour.

heed train recipes/multi30k_en_de_20min.py --data PATH/TO/multi30k --out runs/multi30k_en_de_20min
heed train --resume --out runs/multi30k_en_de_20min --set train.epochs=72 --set train.minutes=null

The first command: 39.7 BLEU on test_2016_flickr and 31.1 on test_2017_flickr (sacreBLEU, cased, beam 5) after 19.5
minutes on two cores with AVX-512 bf16. The second continues the finished run, its learning rate up again and down:
40.6 and 31.7 after 56 minutes in all, the second part on one core. (It was asked for 86 epochs at first, and stopped
and told 72 at the 54th.) One run each.
"""

import heedful

recipe = heedful.recipe(
    "translate",
    preset="transformer-tiny",
    model={"encoder_layers": 4, "decoder_layers": 4, "dropout": 0.3},
    data={"source": "en", "target": "de", "vocab_size": 6000},
    train={"epochs": 36, "minutes": 19.5, "lr": 5e-3, "warmup": 1000, "average": 0.999, "eval_sentences": 1014},
    decode={"beam": 5, "length_penalty": 1.0},
)
