"""WikiText-2: two million words of Wikipedia, a language model from nothing.

heed train recipes/wikitext2.py --data PATH/TO/wikitext2 --out runs/wikitext2
python -m benchmarks.wikitext2 --data PATH/TO/wikitext2 --out runs/wikitext2-table --minutes 20

The first command trains for 20 minutes; after 15 (`--set train.minutes=15`) on one core the perplexity of words was
190.7 on the validation part and 168.7 on the test. The second trains this for so many minutes, and a recurrent model
too, and counts n-grams: one table of perplexities. The folder holds train.txt, valid.txt and test.txt in the form with
<unk>. `word_perplexity` is what papers print for this text: of words, each end of a line one of them, though this model
reads and predicts pieces of words.
"""

from heedful.tasks.recipe import DataRecipe, Recipe, TrainRecipe

recipe = Recipe(
    task="generate",
    preset="llama-nano",
    model={
        "n_layers": 6,
        "d_model": 256,
        "n_heads": 4,
        "kv_heads": 4,
        "d_ff": 704,
        "context": 128,
        "dropout": 0.1,
    },
    data=DataRecipe(vocab_size=8000),
    train=TrainRecipe(minutes=20, tokens=4096, optimizer="muon", lr=4e-3, muon_lr=0.02, warmup=100),
)
