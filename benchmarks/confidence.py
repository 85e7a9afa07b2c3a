"""How well a translator's confidence tells sentences of its own kind from others.

    python -m benchmarks.confidence RUN --proper test.en --other german=test.de --other news=news.en

For each kind: the area under the curve (of all pairs of a proper and another sentence, the share of which the proper
one is surer; 0.5 by chance), and how many are marked as unlike all that was learnt. Besides the files of others it
tries nonsense, made of the letters of the proper sentences, and these with their words in another order. At most 300
sentences a kind.
"""

import argparse
import re
from pathlib import Path
from random import Random

from scipy.stats import mannwhitneyu

from heedful.data.lines import read_lines
from heedful.tasks.translate.confidence import sentence_confidence
from heedful.tasks.translate.use import Translator, load_translator

MOST = 300  # sentences a kind


def nonsense(text: str, draw: Random) -> str:
    """The text with each of its words made of letters drawn from all of its letters."""
    letters = re.findall(r"[^\W\d_]", text) or ["x"]
    return re.sub(r"[^\W\d_]+", lambda word: "".join(draw.choice(letters) for _ in word[0]), text)


def another_order(text: str, draw: Random) -> str:
    words = text.split()
    draw.shuffle(words)
    return " ".join(words)


def judged(translator: Translator, texts: list[str]) -> tuple[list[float], float]:
    """The confidence of the translation of each text, and the share of texts that are marked."""
    found = translator.search(texts, confidence=True)
    sure = [sentence_confidence(one.said[0], translator.calibration) for one in found if one.said]
    return sure, sum(one.unlike for one in found) / len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--proper", type=Path, required=True)
    parser.add_argument("--other", action="append", default=[], metavar="NAME=FILE")
    chosen = parser.parse_args()
    translator = load_translator(chosen.run, engine="auto")
    proper = [text for text in read_lines(chosen.proper) if len(text.split()) > 1][:MOST]
    draw = Random(0)
    kinds = {"nonsense": [nonsense(text, draw) for text in proper]}
    kinds["another order"] = [another_order(text, draw) for text in proper]
    for one in chosen.other:
        name, _, file = one.partition("=")
        kinds[name] = [text for text in read_lines(file) if text.strip()][:MOST]
    own, marked = judged(translator, proper)
    print("| sources | mean confidence | area under the curve | marked as unlike |\n|---|---|---|---|")
    print(f"| proper | {sum(own) / len(own):.3f} | | {marked:.3f} |")
    for name, texts in kinds.items():
        sure, marked = judged(translator, texts)
        area = mannwhitneyu(own, sure).statistic / (len(own) * len(sure))
        print(f"| {name} | {sum(sure) / len(sure):.3f} | {area:.3f} | {marked:.3f} |", flush=True)


if __name__ == "__main__":
    main()
