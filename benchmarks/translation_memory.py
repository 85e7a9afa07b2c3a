"""From a translation memory to an engine of one's own, as docs/documents.md tells it, and another tool's parser.

    python -m benchmarks.translation_memory make PAIRS.tsv FOLDER [--pairs 20000]    # memory.tmx and new.xlf
    python -m benchmarks.translation_memory open TRANSLATED.xlf                      # by translate-toolkit

PAIRS.tsv has a source and a target a line. The units of new.xlf are lines that are not in the memory, and every second
one has a code around one of its words.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

UNITS = 100


def memory(pairs: list[tuple[str, str]], source: str, target: str) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
    yield f'<header srclang="{source}" datatype="plaintext" segtype="sentence" adminlang="en" o-tmf="tsv" '
    yield 'creationtool="heedful" creationtoolversion="1"/>\n<body>\n'
    for one, other in pairs:
        sides = ((source, one), (target, other))
        own = "".join(f'<tuv xml:lang="{code}"><seg>{escape(text)}</seg></tuv>' for code, text in sides)
        yield f"<tu>{own}</tu>\n"
    yield "</body>\n</tmx>\n"


def unit(number: int, text: str, draw: random.Random) -> str:
    words = text.split(" ")
    made = [escape(word) for word in words]
    if number % 2:
        at = draw.randrange(len(words))
        made[at] = f'<g id="1">{made[at]}</g>'
    return f'<trans-unit id="{number}"><source>{" ".join(made)}</source></trans-unit>\n'


def make(given: argparse.Namespace) -> None:
    lines = [line.split("\t")[:2] for line in given.pairs_file.read_text("utf-8").splitlines()]
    pairs = [*dict.fromkeys((one, other) for one, other in lines)]
    draw = random.Random(0)
    draw.shuffle(pairs)
    known, kept = pairs[: given.pairs], {one for one, _ in pairs[: given.pairs]}
    new = [*dict.fromkeys(one for one, _ in pairs[given.pairs :] if one not in kept and len(one.split()) > 3)][:UNITS]
    (given.folder / "memory.tmx").write_text("".join(memory(known, given.source, given.target)), "utf-8")
    units = "".join(unit(number, text, draw) for number, text in enumerate(new, 1))
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
    )
    file = f'<file original="new.txt" source-language="{given.source}" datatype="plaintext">\n<body>\n'
    (given.folder / "new.xlf").write_text(f"{head}{file}{units}</body>\n</file>\n</xliff>\n", "utf-8")
    sys.stdout.write(f"{len(known):,} pairs in memory.tmx, {len(new):,} units in new.xlf\n")


def open_(given: argparse.Namespace) -> None:
    from translate.storage.xliff import xlifffile

    store = xlifffile.parsestring(given.file.read_bytes())
    translated = sum(bool(own.target) for own in store.units)  # `istranslated` asks whether a person approved it
    lost = sum(len([*own.xmlelement.iter("{*}g")]) % 2 for own in store.units)  # one in the source, one in the target
    sys.stdout.write(
        f"{len(store.units):,} units, {translated:,} with a target, {lost:,} without the codes of their source\n"
    )
    for own in store.units[:3]:
        sys.stdout.write(f"  {own.source}\n    {own.target}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("make")
    one.add_argument("pairs_file", type=Path)
    one.add_argument("folder", type=Path)
    one.add_argument("--pairs", type=int, default=20_000)
    one.add_argument("--source", default="en")
    one.add_argument("--target", default="de")
    one.set_defaults(run=make)
    other = verbs.add_parser("open")
    other.add_argument("file", type=Path)
    other.set_defaults(run=open_)
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
