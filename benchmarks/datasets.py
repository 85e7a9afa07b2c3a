"""Small public sets of labelled texts, read from the files that they are published in, and written for `heed`.

Each is a `Labelled` whose test is what the field scores on: of SST-2 the dev part (Socher et al. 2013), of TREC and
SICK the test (Li and Roth 2002, Marelli et al. 2014), of MCTest the dev part too (Richardson et al. 2013). Of COPA
(Roemmele et al. 2011) only the dev questions have mirrored twins (Kavumba et al. 2019): it is cut into folds, twins
together. To validate on there are the dev parts of SICK and MRPC; elsewhere `heed` holds some examples out.
"""

import json
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from heedful.data.lines import read_lines, tsv_cells
from heedful.data.text.labelled import Example, Labelled
from heedful.errors import InputError, MissingError
from heedful.store import files

FOLDS = 5
SENTIMENT = ("negative", "positive")
QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}


def sst2(folder: Path) -> Labelled:
    """Sentences of film reviews, negative or positive: sst2.train.txt and sst2.dev.txt, "0 some text" on each line."""

    def read(path: Path) -> list[Example]:
        rows = [line.split(" ", 1) for line in read_lines(path)]
        return [Example(text, label=SENTIMENT[int(label)]) for label, text in rows]

    return Labelled(
        read(folder / "sst2.train.txt"), [], {"test": read(folder / "sst2.dev.txt")}, "SST-2", answer="label"
    )


def trec(folder: Path) -> Labelled:
    """Questions, and which of six kinds of answer they ask for: train_fine.txt and test_fine.txt.

    "NUM:dist How far is it?" on each line, of which the finer kind is left out.
    """

    def read(path: Path) -> list[Example]:
        rows = [line.split(" ", 1) for line in read_lines(path)]
        return [Example(text, label=kind.split(":")[0]) for kind, text in rows]

    return Labelled(
        read(folder / "train_fine.txt"), [], {"test": read(folder / "test_fine.txt")}, "TREC", answer="label"
    )


def sick(folder: Path, answer: Literal["label", "score"]) -> Labelled:
    """Pairs of captions: whether the first says the second ("label"), or how related they are, 1 to 5 ("score").

    train.tsv, dev.tsv and test.tsv, with the header pair_ID sentence_A sentence_B relatedness_score
    entailment_judgment.
    """

    def read(path: Path) -> list[Example]:
        (_, header), *rows = tsv_cells(read_lines(path))
        a, b, score, label = (
            header.index(name) for name in ("sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
        )
        if answer == "label":
            return [Example(row[a], row[b], label=row[label].lower()) for _, row in rows if row]
        return [Example(row[a], row[b], score=float(row[score])) for _, row in rows if row]

    train, valid, test = (read(folder / f"{name}.tsv") for name in ("train", "dev", "test"))
    return Labelled(train, valid, {"test": test}, "SICK", answer=answer)


def mrpc(folder: Path) -> Labelled:
    """Pairs of sentences from the news, and whether they say the same (Dolan and Brockett 2005): train.tsv, dev.tsv and
    test.tsv, with the header Quality, #1 ID, #2 ID, #1 String, #2 String."""

    def read(path: Path) -> list[Example]:
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8-sig").splitlines()[1:]]
        return [Example(first, second, label="same" if same == "1" else "other") for same, _, _, first, second in rows]

    train, valid, test = (read(folder / f"{name}.tsv") for name in ("train", "dev", "test"))
    return Labelled(train, valid, {"test": test}, "MRPC", answer="label")


def copa(folder: Path, *, fold: int) -> Labelled:
    """What happened, and the more plausible of two causes or effects: balanced-copa-dev-all.xml.

    Question n and its mirrored twin, 1000 + n, are tested on in fold n mod FOLDS, and trained on in all others.
    """
    path = folder / "balanced-copa-dev-all.xml"
    parts: dict[bool, list[Example]] = {True: [], False: []}
    try:
        items = ElementTree.parse(path).getroot().iter("item")
    except (OSError, ElementTree.ParseError) as error:
        raise MissingError(f"cannot be read: {error}", where=str(path)) from None
    for item in items:
        text, *choices = (str(item.findtext(tag)).strip() for tag in ("p", "a1", "a2"))
        right = int(item.attrib["most-plausible-alternative"]) - 1
        example = Example(text, QUESTIONS[item.attrib["asks-for"]], choices=tuple(choices), choice=right)
        parts[int(item.attrib["id"]) % 1000 % FOLDS == fold].append(example)
    return Labelled(parts[False], [], {"test": parts[True]}, "COPA", answer="choice")


def mctest(folder: Path, stories: Literal[160, 500], *, scored: Literal["dev", "test"] = "dev") -> Labelled:
    """Stories for children, and to each four questions with four answers: mc160 or mc500, .tsv and .ans of a part.

    The authors ask that the test part be scored once, at the very end.
    """

    def read(part: str) -> list[Example]:
        path = folder / f"mc{stories}.{part}.tsv"
        told, answers = read_lines(path), read_lines(path.with_suffix(".ans"))
        examples = []
        for line, letters in zip(told, answers, strict=True):
            _, _, story, *cells = line.split("\t")
            story = " ".join(story.replace("\\newline", " ").replace("\\tab", " ").split())
            for i, letter in enumerate(letters.split("\t")):
                question, *choices = cells[5 * i : 5 * i + 5]
                question = question.partition(": ")[2]  # without "one: " or "multiple: "
                examples.append(Example(story, question, choices=tuple(choices), choice="ABCD".index(letter)))
        return examples

    return Labelled(read("train"), [], {"test": read(scored)}, f"MCTest-{stories}", answer="choice")


def write_by_article(folder: Path, out: Path) -> None:
    """xquad.en.json (Artetxe et al. 2020) in parts as SQuAD's, the questions of an article in the same: every sixth is
    tested on, and the one after it validated on."""
    articles = json.loads((folder / "xquad.en.json").read_text(encoding="utf-8"))["data"]
    files.make_folder(out)
    for name, places in {"train": (2, 3, 4, 5), "valid": (1,), "test": (0,)}.items():
        own = [one for i, one in enumerate(articles) if i % 6 in places]
        files.write_text(out / f"{name}.json", json.dumps({"data": own}, ensure_ascii=False))


def write(folder: Path, data: Labelled) -> None:
    """train.jsonl, and valid.jsonl and a file for each test, where there is something in them: `--data` of `heed`."""
    files.make_folder(folder)
    for name, examples in {"train": data.train, "valid": data.valid, **data.tests}.items():
        if examples:
            lines = (json.dumps(row(one, data.answer), ensure_ascii=False) + "\n" for one in examples)
            files.write_text(folder / f"{name}.jsonl", "".join(lines))


def row(example: Example, answer: str) -> dict[str, object]:
    """What one line of a .jsonl file says."""
    found: dict[str, object] = {"text": example.text}
    if example.pair:
        found["question" if answer == "choice" else "pair"] = example.pair
    match answer:
        case "label":
            return found | {"label": example.label}
        case "score":
            return found | {"score": example.score}
        case "choice":
            return found | {"choices": list(example.choices), "label": example.choice}
    raise InputError(f"no set here answers with {answer}")
