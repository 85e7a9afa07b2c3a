"""Perplexity of words on WikiText-2: of counting, and of a recurrent model and ours, trained for the same minutes.

    python -m benchmarks.wikitext2 --data PATH/TO/wikitext2 --out runs/wikitext2 --minutes 15

The figure of all three is the one that papers print: e to the power of the nats of a text over its words and ends of
lines together (217,646 in the validation text, 245,569 in the test). The first two give the next word a probability
among 33,278. Ours gives one to the text itself, spaces, line ends and the letters of "<unk>" included, in pieces that
it has learnt: the same words, and no less to pay, since it could also have said what is no word. Minutes are of
training alone; all three have read the training text only.
"""

import argparse
import math
from pathlib import Path

import torch

from benchmarks.lstm_lm import nats, trained
from benchmarks.ngram import SPLITS, KneserNey, numbered, read_words
from heedful.data.text.documents import read_text
from heedful.errors import HeedError, InputError
from heedful.run.events import Measured, Note
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.recipes import read_recipe
from heedful.verbs.train import train

RECIPE = Path(__file__).parent.parent / "recipes" / "wikitext2.py"
ORDERS = (3, 5)


def ours(data: Path, out: Path, *, recipe: str, minutes: float, words: list[int]) -> list[float]:
    """Valid and test perplexity of the recipe's model, trained in `out`, over `words` of each."""
    plan = read_recipe(recipe)
    plan = plan.model_copy(
        update={
            "data": plan.data.model_copy(update={"path": str(data)}),
            "train": plan.train.model_copy(update={"minutes": minutes, "steps": None, "epochs": None}),
        }
    )
    for event in train(plan, out):
        if isinstance(event, Note):
            print(event.text, flush=True)
        elif isinstance(event, Measured):
            print(f"step {event.step}: {event.scores['word_perplexity']:.1f} on the validation text", flush=True)
    model = LanguageModel.load(out)
    found = [model.measure(read_text(data / f"{name}.txt")) for name in SPLITS[1:]]
    if [each.words for each in found] != words:
        raise InputError(f"{[each.words for each in found]} words, expected {words}", where=str(data))
    return [each.word_perplexity for each in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path, help="the folder that our run fills")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--recipe", default=str(RECIPE))
    chosen = parser.parse_args()
    texts, vocabulary = numbered({name: read_words(chosen.data / f"{name}.txt") for name in SPLITS})
    words = [len(texts[name]) for name in SPLITS[1:]]
    print(f"{words[0]:,} and {words[1]:,} words, vocabulary {vocabulary:,}, {torch.get_num_threads()} threads")
    rows = {}
    for order in ORDERS:
        counts = KneserNey(texts["train"], order=order, vocabulary=vocabulary)
        rows[f"Kneser-Ney, {order}-grams"] = [counts.perplexity(texts[name]) for name in SPLITS[1:]]
    lstm = trained(torch.from_numpy(texts["train"]), vocabulary=vocabulary, minutes=chosen.minutes)
    rows[f"LSTM, {chosen.minutes:g} minutes"] = [
        math.exp(nats(lstm, torch.from_numpy(texts[name])) / len(texts[name])) for name in SPLITS[1:]
    ]
    rows[f"heedful, {chosen.minutes:g} minutes"] = ours(
        chosen.data, chosen.out, recipe=chosen.recipe, minutes=chosen.minutes, words=words
    )
    print("\n| perplexity of words | valid | test |\n|---|---|---|")
    for name, (valid, test) in rows.items():
        print(f"| {name} | {valid:.1f} | {test:.1f} |")


if __name__ == "__main__":
    try:
        main()
    except HeedError as error:
        raise SystemExit(f"error: {error}") from None
