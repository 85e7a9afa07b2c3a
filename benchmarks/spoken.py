"""Makes spoken sentences to learn from, by the voices of espeak-ng, which the system must have (apt install espeak-ng).

    python -m benchmarks.spoken spoken

writes train.csv, valid.csv, test.csv and test_voices.csv into the folder, and a file of sound for each line. Sentences
are of a verb, a number, a colour and a thing. Those of both tests are not among the others; those of test_voices.csv
are spoken by voices that are not, either.
"""

import random
import subprocess
import sys
from itertools import product
from pathlib import Path

from heedful.store import files

WORDS = (
    ("bring", "count", "draw", "find", "hide", "move", "paint", "show", "take", "throw"),
    ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve"),
    ("black", "blue", "brown", "green", "grey", "orange", "purple", "red", "white", "yellow"),
    ("apples", "balls", "boats", "books", "chairs", "flowers", "horses", "houses", "keys", "shoes"),
)
VOICES = tuple(
    f"{accent}+{voice}"
    for accent in ("en-us", "en-gb", "en-gb-scotland")
    for voice in ("m1", "m2", "m3", "m4", "f1", "f2", "f3", "Andy", "Annie", "Mike", "linda", "steph")
)
OTHERS = ("en-gb-x-rp+m7", "en-gb-x-gbclan+f4", "en-gb-x-rp+belinda", "en-us+Denis", "en-gb-x-gbcwmd+max")
COUNTS = {"train": 3000, "valid": 100, "test": 300, "test_voices": 300}


def main(folder: Path, counts: dict[str, int] = COUNTS) -> None:
    draw = random.Random(0)
    sentences = [" ".join(words) for words in product(*WORDS)]
    draw.shuffle(sentences)
    for name, count in counts.items():
        parts, sentences = sentences[:count], sentences[count:]
        (folder / name).mkdir(parents=True, exist_ok=True)
        lines = ["audio,text"]
        for number, text in enumerate(parts):
            voice = draw.choice(OTHERS if name == "test_voices" else VOICES)
            said = ["espeak-ng", "-v", voice, "-s", str(draw.randint(150, 210)), "-p", str(draw.randint(35, 65)), text]
            subprocess.run([*said, "-w", str(folder / name / f"{number}.wav")], check=True)
            lines.append(f"{name}/{number}.wav,{text}")
        files.write_output(folder / f"{name}.csv", "".join(f"{line}\n" for line in lines).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
