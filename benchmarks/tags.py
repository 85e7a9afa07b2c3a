"""Inline tags in a thousand sentences: are all there and well-formed, and where a word aligner would have put them?

    python -m benchmarks.tags RUN SOURCE [--sentences 1000] [--train EN DE]

RUN translates the lines of SOURCE, in each of which random words have tags around them: a pair, a pair inside a pair,
and a tag alone, where the sentence is long enough. The same tags are then moved by the links of eflomal (Östling and
Tiedemann 2016, `pip install eflomal`) in both directions, which learnt them from the pairs of TRAIN, two files line by
line, and from the translations themselves. A tag is where the aligner would have put it if it is around the same words;
those of whose words it links none are left out. With --translations the tags are moved into translations that are
given.
"""

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from heedful.data.documents.passages import Mark, Passage, Role, plain, with_pairs
from heedful.data.documents.tags import Alignment, moved
from heedful.data.documents.words import words_in
from heedful.decode.settings import DecodingOptions
from heedful.tasks.translate.documents.passages import translate_passages
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.use import Translator

TAG = re.compile(r"</?[a-z]\d*/?>")


def tagged(line: str, draw: random.Random) -> str:
    """A sentence with tags around some of its words."""
    words = [span for span in words_in(line) if line[slice(*span)].isalnum()]
    if len(words) < 4:
        return line
    first = draw.randrange(len(words) - 1)
    last = min(len(words) - 1, first + draw.choice([0, 0, 1, 1, 2, 3]))
    at = [(words[first][0], 0, "<b>"), (words[last][1], 9, "</b>")]
    if last > first and draw.random() < 0.4:
        inner = draw.randint(first, last)
        at += [(words[inner][0], 1, "<i>"), (words[inner][1], 8, "</i>")]
    if draw.random() < 0.3:
        alone = draw.choice([word for number, word in enumerate(words) if not first <= number <= last + 1] or words[:1])
        at.append((alone[0], 5, "<x/>"))
    made, begin = "", 0
    for place, _, tag in sorted(at):
        made += line[begin:place] + tag
        begin = place
    return made + line[begin:]


def passage_of(text: str) -> Passage:
    bare, begin, marks, names = "", 0, list[Mark](), list[str]()
    for tag in TAG.finditer(text):
        bare += text[begin : tag.start()]
        begin = tag.end()
        role: Role = "closes" if tag[0].startswith("</") else "alone" if tag[0].endswith("/>") else "opens"
        marks.append(Mark(len(bare), tag[0], role))
        names.append(tag[0].strip("</>"))
    return Passage(bare + text[begin:], tuple(with_pairs(marks, names)), text)


def well_formed(text: str) -> bool:
    stack: list[str] = []
    for tag in TAG.findall(text):
        if tag.startswith("</"):
            if not stack or stack.pop() != tag[2:-1]:
                return False
        elif not tag.endswith("/>"):
            stack.append(tag[1:-1])
    return not stack


def placed(text: str) -> dict[str, tuple[int, ...]]:
    """Where each tag stands, in words."""
    found: dict[str, list[int]] = {}
    bare, begin = "", 0
    for tag in TAG.finditer(text):
        bare += text[begin : tag.start()]
        begin = tag.end()
        found.setdefault(tag[0].strip("</>"), []).append(len(words_in(bare)))
    return {name: tuple(at) for name, at in found.items()}


Links = set[tuple[int, int]]


def links_of(pairs: Sequence[tuple[str, str]], count: int) -> tuple[list[Links], list[Links], list[Links]]:
    """The links of the first pairs, in which both directions of eflomal agree, or one alone and no other is there; and
    those of each direction."""
    import eflomal

    def words(text: str) -> str:
        return " ".join(text[slice(*span)].lower() for span in words_in(text))

    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder) / name for name in ("source", "target", "forward", "reverse")]
        for side, name in enumerate(names[:2]):
            with open(name, "w", encoding="utf-8") as file:
                file.writelines(words(pair[side]) + "\n" for pair in pairs)
        with open(names[0], encoding="utf-8") as source, open(names[1], encoding="utf-8") as target:
            aligner = eflomal.Aligner()
            aligner.align(
                source, target, links_filename_fwd=str(names[2]), links_filename_rev=str(names[3]), quiet=True
            )
        both = []
        for name in names[2:]:
            lines = name.read_text("utf-8").splitlines()[:count]
            both.append([{(int(a), int(b)) for a, b in (link.split("-") for link in line.split())} for line in lines])
    made = []
    for forward, reverse in zip(*both, strict=True):
        sure = forward & reverse
        linked = {j for _, j in sure}
        made.append(sure | {(i, j) for i, j in forward | reverse if j not in linked})
    return made, both[0], both[1]


def linked(passage: Passage, name: str, links: set[tuple[int, int]]) -> bool:
    """Whether the aligner links any of the words that a tag is around, or that a tag alone stands between."""
    at = [mark.at for mark in passage.marks if mark.raw.strip("</>") == name]
    words = [i for i, (begin, end) in enumerate(words_in(passage.text)) if end >= at[0] and begin <= at[-1]]
    inside = [i for i in words if len(at) == 1 or words_in(passage.text)[i][0] in range(*at)]
    return any(i in inside for i, _ in links)


def as_alignment(source: str, target: str, links: set[tuple[int, int]]) -> Alignment:
    words, others = words_in(source), words_in(target)
    rows: list[dict[int, float]] = []
    for j in range(len(others)):
        own = [i for i, other in links if other == j]
        rows.append({i: 1 / len(own) for i in own})
    return Alignment(words, others, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("source", type=Path)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--train", type=Path, nargs=2, help="two files, line by line, that the aligner learns from")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--translations", type=Path, help="the lines' translations, in place of the model's own")
    given = parser.parse_args()
    draw = random.Random(0)
    lines = [line for line in given.source.read_text("utf-8").splitlines() if line.strip()][: given.sentences]
    texts = [tagged(line, draw) for line in lines]
    passages = [passage_of(text) for text in texts]
    translator, decoding = Translator.load(given.run), DecodingOptions(beam=given.beam)
    if given.translations is None:
        found = [own.placed for (own,) in translate_passages(translator, passages, decoding, sentences=False)]
    else:
        said = given.translations.read_text("utf-8").splitlines()[: len(passages)]
        pairs = [(passage.text, text) for passage, text in zip(passages, said, strict=True)]
        moves = zip(passages, said, aligned(translator, pairs), strict=True)
        found = [moved(passage.text, passage.marks, text, alignment) for passage, text, alignment in moves]
    made = [plain(own) for own in found]
    bare = ["".join(part for part in own if isinstance(part, str)) for own in found]
    whole = sum(sorted(TAG.findall(one)) == sorted(TAG.findall(other)) for one, other in zip(texts, made, strict=True))
    formed = sum(map(well_formed, made))
    sys.stdout.write(f"{len(made):,} sentences: {formed:,} well-formed, {whole:,} with all of their tags\n")
    sources = [passage.text for passage in passages]
    learnt = [*zip(*(path.read_text("utf-8").splitlines() for path in given.train), strict=True)] if given.train else []
    links, *each = links_of([*zip(sources, bare, strict=True), *learnt], len(made))
    hits: dict[str, list[bool]] = {}
    sure: list[bool] = []  # of those on which the two directions of the aligner agree
    for passage, translation, own, link, forward, reverse in zip(passages, bare, made, links, *each, strict=True):
        wanted, one, other = (
            placed(
                plain(moved(passage.text, passage.marks, translation, as_alignment(passage.text, translation, each)))
            )
            for each in (link, forward, reverse)
        )
        ours = placed(own)
        for name, at in wanted.items():
            if linked(passage, name, link):  # else the aligner does not know either
                hits.setdefault(name, []).append(ours.get(name) == at)
                if one.get(name) == other.get(name):
                    sure.append(ours.get(name) == at)
    every = [hit for own in hits.values() for hit in own]
    told = ", ".join(f"<{name}> {sum(own) / len(own):.1%} of {len(own):,}" for name, own in sorted(hits.items()))
    sys.stdout.write(
        f"{sum(every) / len(every):.1%} of {len(every):,} tags where the aligner would have put them: {told}\n"
    )
    sys.stdout.write(
        f"its own two directions agree on {len(sure) / len(every):.1%} of them, and of those "
        f"{sum(sure) / len(sure):.1%} are there\n"
    )


if __name__ == "__main__":
    main()
