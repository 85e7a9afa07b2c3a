"""WikiText-2: two million words of Wikipedia, a language model from nothing.

heed train recipes/wikitext2.py --data PATH/TO/wikitext2 --out runs/wikitext2
python -m benchmarks.wikitext2 --data PATH/TO/wikitext2 --out runs/wikitext2-table --minutes 15

The first command trains for 15 minutes; on one core the perplexity of words was then 152.8 on the validation part and
133.2 on the test. (A word-level LSTM, `python -m benchmarks.lstm_lm --minutes 15`, came to 173.0 and 159.9 on that
core, and 5-grams with Kneser-Ney smoothing to 232.5 and 217.8.) The second trains both, counts, and prints a table.
The folder holds train.txt, valid.txt and test.txt in the form with <unk>. `word_perplexity` is what papers print for
this text: of words, each end of a line one of them, though this model reads and predicts pieces of words. It is small
and has no dropout because it reads the text only twice.
"""

import heedful

recipe = heedful.recipe(
    "generate",
    preset="llama-nano",
    model={"n_layers": 4, "d_model": 192, "n_heads": 3, "kv_heads": 3, "d_ff": 512, "context_length": 128},
    data={"vocab_size": 8000},
    train={"minutes": 15, "tokens": 4096, "optimizer": "muon", "lr": 4e-3, "muon_lr": 0.02, "warmup": 100},
)
