"""Vectors of words beside gensim's word2vec, at equal settings, on one core: words a second, and Spearman's correlation
with what people say of pairs of words (WordSim-353, SimLex-999, MEN).

python -m benchmarks.word_vectors TEXT PAIRS... [--method skipgram|cbow] [--epochs 5] [--seeds 1 2 3] [--workers 1]

Both read the same lines, split at blanks, in lower case, and take the same vocabulary, width, window, negative words
and subsampling. gensim is asked for as its documentation does (alpha 0.025). Rates are of words read, training alone.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

import torch

from heedful.run.events import Trained
from heedful.run.recipe import override
from heedful.tasks.recipes import recipe
from heedful.tasks.vectors.formats import as_binary
from heedful.tasks.vectors.judged import judged, read_pairs
from heedful.tasks.vectors.use import WordVectors
from heedful.verbs.train import train

WIDTH, WINDOW, NEGATIVES, LEAST = 100, 5, 5, 5


def ours(text: Path, method: str, epochs: int, seed: int) -> tuple[WordVectors, float]:
    """The vectors, and words a second: those of all epochs by the seconds of the last step."""
    settings = [f"train.epochs={epochs}", f"train.seed={seed}", f"model.method={method}", "data.words=blanks"]
    settings += [f"train.negatives={NEGATIVES}", f"data.window={WINDOW}", f"data.min_count={LEAST}"]
    settings += ["train.eval_every=1000000", "train.save_every=1000000"]
    made = override(recipe("vectors", data={"path": str(text)}), settings)
    with tempfile.TemporaryDirectory() as folder:
        seconds = 0.0
        for event in train(made, Path(folder) / "run", device="cpu"):
            seconds = event.step.seconds if isinstance(event, Trained) else seconds
        read = json.loads((Path(folder) / "run" / "data.json").read_text())["words"]
        return WordVectors.load(Path(folder) / "run"), epochs * read / seconds


def theirs(text: Path, method: str, epochs: int, seed: int, workers: int) -> tuple[WordVectors, float]:
    from gensim.models import Word2Vec

    lines = [line.split() for line in text.read_text(encoding="utf-8").lower().splitlines() if line.strip()]
    lines = lines[: round(0.9 * len(lines))]  # as much as is learned from here
    made = Word2Vec(vector_size=WIDTH, window=WINDOW, negative=NEGATIVES, min_count=LEAST, sg=method == "skipgram")
    made.seed, made.workers = seed, workers
    made.build_vocab(lines)
    begin = time.perf_counter()
    made.train(lines, total_examples=len(lines), epochs=epochs)
    seconds = time.perf_counter() - begin
    read = sum(made.wv.get_vecattr(word, "count") for word in made.wv.index_to_key)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.bin"
        file.write_bytes(as_binary(made.wv.index_to_key, made.wv.vectors))
        found = WordVectors.load(file)
    return found, epochs * read / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--method", choices=("skipgram", "cbow"), default="skipgram")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.workers)
    sets = {path.stem: [(a.lower(), b.lower(), score) for a, b, score in read_pairs(path)] for path in given.pairs}
    rows: dict[str, list[list[float]]] = {"heedful": [], "gensim": []}
    for seed in given.seeds:
        for name in rows:
            arguments = given.text, given.method, given.epochs, seed
            found, rate = ours(*arguments) if name == "heedful" else theirs(*arguments, given.workers)
            scores = [judged(found, pairs).spearman for pairs in sets.values()]
            rows[name].append([rate, *scores])
            told = {"of": name, "seed": seed, "words_a_second": rate}
            print(json.dumps(told | dict(zip(sets, scores, strict=True))), flush=True)
    for name, each in rows.items():
        columns = zip(["words a second", *sets], zip(*each, strict=True), strict=True)
        print(name, ", ".join(f"{key} {_spread(values)}" for key, values in columns))


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.4g}" + (f" ± {stdev(values):.2g}" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
