"""Writes docs/inputs.md by reading a file of each kind:

python -m docs.make_inputs

What a row says is what the reader said of the files that are made here, or its error.
"""

import contextlib
import gzip
import io
import json
import lzma
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from heedful.data.images.captions import Captioned, read_captioned
from heedful.data.parts import Parts
from heedful.data.text.corpus import read_parallel
from heedful.data.text.doubts import doubts
from heedful.data.text.labelled import Example, read_labelled
from heedful.data.text.pairs import Pairs
from heedful.errors import HeedError

PAGE = Path(__file__).parent / "inputs.md"
OPENING = """\
# What may be given as data

Each row is a file or a folder that was made and given to the reader of its task, as `heed train TASK --data` does, and
what came of it: what was taken, or the error and how to mend it. A run says the same before its first step. What is not
told of the parts is that validation pairs, and a test, were held out where there was none. This page is written by
`docs/make_inputs.py`.
"""
HEADER = ("| what it is | `--data` | what happens |", "|---|---|---|")
COUNT = 1100

Files = Mapping[str, str | bytes]


class Case(NamedTuple):
    """Some files, which of them are given, and what they are."""

    what: str
    files: Files
    given: str | tuple[str, ...]


def page() -> str:
    """The whole page."""
    lines = [OPENING]
    for title, read, cases in SECTIONS:
        lines += [f"## {title}\n", *HEADER, *(row(case, read) for case in cases), ""]
    return "\n".join(lines)


def row(case: Case, read: Callable[[str | tuple[str, ...]], Sequence[str]]) -> str:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in case.files.items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        try:
            said = "; ".join(read(case.given))
        except HeedError as error:
            said = f"**error:** {error} ({error.fix})"
    given = case.given if isinstance(case.given, str) else " ".join(case.given)
    return f"| {case.what} | `{given}` | {said.replace('|', chr(92) + '|')} |"


def pairs(path: str | tuple[str, ...]) -> list[str]:
    corpus = read_parallel(path)
    tests = [pair for part in corpus.tests.values() for pair in zip(part.source, part.target, strict=True)]
    return [*corpus.taken, *told(corpus), *doubts(corpus.train.source, corpus.train.target, tests)]


def labelled(path: str | tuple[str, ...]) -> list[str]:
    data = read_labelled(str(path))
    first = data.train[0]
    answer = ", ".join(first.labels) or first.label or f"{first.score:g}"
    found = f"{len(data.train) + len(data.valid):,} examples, the first {first.text[:30]!r}: {answer}"
    return [*told(data), found]


def captioned(path: str | tuple[str, ...]) -> list[str]:
    data = read_captioned(str(path))
    texts = [text for part in (data.train, data.valid) for own in part.captions for text in own]
    return [*told(data), f"{len(data.train) + len(data.valid)} pictures with {len(texts)} texts"]


def told(data: Parts[Pairs] | Parts[list[Example]] | Parts[Captioned]) -> list[str]:
    return [note for note in data.notes if "held out" not in note]


def table(separator: str, header: str = "", count: int = COUNT) -> str:
    rows = (separator.join((f"number {n}", f"Zahl {n}")) for n in range(count))
    return "\n".join([*([header] if header else []), *rows]) + "\n"


def packed(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def picture(shade: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (8, 8), (shade,) * 3).save(data, "PNG")
    return data.getvalue()


def one(what: str, name: str, content: str | bytes) -> Case:
    return Case(what, {name: content}, name)


TSV = table("\t")
EN, DE = ("".join(f"{word} {n}\n" for n in range(COUNT)) for word in ("number", "Zahl"))
OBJECTS = [{"en": f"number {n}", "de": f"Zahl {n}"} for n in range(COUNT)]
LINES = "\n".join(map(json.dumps, OBJECTS)) + "\n"
TRANSLATIONS = "\n".join(json.dumps({"id": str(n), "translation": each}) for n, each in enumerate(OBJECTS))
TABLES = {"a.csv": table(";", "en;de"), "b.tsv": "de\ten\nja\tyes\n", "c.dev.tsv": "en\tde\nx\ty\n"}
OPUS = {"Europarl.de-en.de": DE, "Europarl.de-en.en": EN, "README": "x\n", "LICENSE": "x\n"}
FUZZY = "source,target,fuzzy\n" + "".join(f"number {n},Zahl {n},{n < 9}\n" for n in range(COUNT))
ODS = "application/vnd.oasis.opendocument.spreadsheet"
CUES = "1\n00:00:01,000 --> 00:00:02,000\nYes.\n\n"
VARIANT = '<tuv xml:lang="{}"><seg>{} {{0}}</seg></tuv>'
UNIT = f"<tu>{VARIANT.format('en', 'number')}{VARIANT.format('de', 'Zahl')}{VARIANT.format('de', 'Nummer')}</tu>"
MEMORY = f'<tmx><header srclang="en"/><body>{"".join(map(UNIT.format, range(COUNT)))}</body></tmx>'
NUMBERS = [json.dumps({"dialogue": f"long {n}", "summary1": f"a {n}", "summary2": f"b {n}"}) for n in range(COUNT)]
NEWS = [{"id": str(n), "article": f"long {n}", "highlights": f"short {n}"} for n in range(COUNT)]
NEWS_TABLE = "id,article,highlights\n" + "".join(f"{n},long {n},short {n}\n" for n in range(COUNT))
PAIRS = (
    one("TABs between source and target", "p.tsv", TSV),
    one("a header of languages", "p.tsv", table("\t", "English\tGerman")),
    one("commas", "p.csv", table(",")),
    one("semicolons, as spreadsheets write them", "p.csv", table(";", "en;de")),
    one("bars", "p.txt", table(" | ", "en | de")),
    one("quoted cells", "p.csv", "en,de\n" + "".join(f'"one, {n}","eins ""{n}"""\n' for n in range(COUNT))),
    one("gzip", "p.tsv.gz", gzip.compress(TSV.encode(), mtime=0)),
    one("an object a line", "p.jsonl", LINES),
    one(
        "translations, as Hugging Face has them",
        "p.jsonl",
        TRANSLATIONS,
    ),
    one("a list of objects", "p.json", json.dumps(OBJECTS)),
    one("a list under a name", "p.json", json.dumps({"version": 1, "data": OBJECTS})),
    one("lines of objects called .json", "p.json", LINES),
    Case("a folder with train.*, and parts", {"train.en": EN, "train.de": DE, "dev.en": "a\n", "dev.de": "b\n"}, "."),
    Case("a folder as OPUS packs it", OPUS, "."),
    Case("a folder of one pair of files", {"corpus.en": EN, "corpus.de": DE}, "."),
    Case("what two names have in common", OPUS, "Europarl.de-en"),
    Case("two files, the source first", {"a.en": EN, "b.de": DE}, ("a.en", "b.de")),
    Case(
        "several tables",
        {"a.csv": table(";", "en;de"), "b.tsv": "de\ten\nja\tyes\n", "c.dev.tsv": "en\tde\nx\ty\n"},
        ".",
    ),
    Case("a zip file of OPUS", {"de-en.zip": packed(OPUS)}, "de-en.zip"),
    Case("a zip file of a table", {"z.zip": packed({"mine/p.csv": table(";")})}, "z.zip"),
    one("texts with line breaks", "p.csv", "en,de\n" + "".join(f'"one\n{n}","eins\n{n}"\n' for n in range(COUNT))),
    one("a column that marks what is not confirmed", "p.csv", FUZZY),
    one("several translations of a text in a memory", "m.tmx", MEMORY),
    one("the third column of Tatoeba", "p.tsv", TSV.replace("\n", "\tCC-BY 2.0\n")),
    one("a byte order mark", "p.tsv", b"\xef\xbb\xbf" + TSV.encode()),
    one("CRLF", "p.tsv", TSV.replace("\n", "\r\n")),
    one("blank lines and empty sides", "p.tsv", TSV + "\n\t\nleft\t\n"),
    one("copies", "p.tsv", table("\t", count=60) * 20),
    one("the same text on both sides", "p.tsv", "".join(f"same {n}\tsame {n}\n" for n in range(COUNT))),
    one("five pairs", "p.tsv", table("\t", count=5)),
    one("one pair", "p.tsv", "yes\tja\n"),
    one("UTF-16", "p.tsv", TSV.encode("utf-16")),
    one("Latin-1", "p.tsv", (TSV + "size\tGröße\n").encode("latin-1")),
    one("an empty file", "p.tsv", ""),
    one("a header alone", "p.tsv", "en\tde\n"),
    one("one column", "p.tsv", EN),
    one("three columns", "p.tsv", "1\tyes\tja\n2\tno\tnein\n"),
    one("three languages", "p.tsv", "en\tde\tfr\nyes\tja\toui\n"),
    one("a row too short", "p.csv", table(";", "en;de") + "alone\n"),
    Case("sides of unequal length", {"a.en": EN + "more\n", "b.de": DE}, ("a.en", "b.de")),
    Case("one side", {"a.en": EN, "a.de": DE}, "a.en"),
    one("commas of texts without quotes", "p.csv", "Well, yes,Nun, ja\n" * COUNT),
    Case("subtitles, line by line", {"a.en": CUES, "a.de": CUES}, ("a.en", "a.de")),
    Case("pages, line by line", {"a.en": "<p>Yes.</p>\n", "a.de": "<p>Ja.</p>\n"}, ("a.en", "a.de")),
    Case("logs, line by line", {"a.en": "INFO: yes\n", "a.de": "INFO: ja\n"}, ("a.en", "a.de")),
    one("a sheet of OpenDocument", "p.ods", packed({"mimetype": ODS}, zipfile.ZIP_STORED)),
    one("far more than a file is worth", "p.tsv.gz", gzip.compress(b"yes\tja\n" * (1 << 24), mtime=0)),
    one("a quote that is not closed", "p.csv", table(",") + '"open,offen\nmore,mehr\n'),
    one("a NUL byte", "p.tsv", TSV + "a\0\tb\n"),
    one("packed by anything but gzip and zip", "p.tsv.xz", lzma.compress(TSV.encode())),
    one("a picture", "p.png", picture(0)),
    one("a picture called a table", "p.tsv", picture(0)),
    one("JSON with a fault", "p.json", '[{"en": "yes",\n "de": }]'),
    one("JSON of texts", "p.json", '["yes", "ja"]'),
    one("keys that name neither", "p.jsonl", '{"a": "yes", "b": "ja"}\n'),
    one("a damaged zip file", "z.zip", "PK"),
    Case("a folder without a training file", {"newstest2013.en": EN, "newstest2013.de": DE}, "."),
    Case("a folder of three languages", {"train.en": EN, "train.de": DE, "train.fr": EN}, "."),
    Case("a name that is not there", {"pairs.tsv": TSV}, "pair.tsv"),
)
SUMMARIES = (
    one("CNN's names", "p.json", json.dumps(NEWS)),
    one(
        "the same as a table",
        "p.csv",
        NEWS_TABLE,
    ),
    one("several references", "p.jsonl", "\n".join(NUMBERS)),
)
LABELS = (
    one("text TAB label", "t.tsv", "fine\tgood\npoor\tbad\n" * 9),
    one("label TAB text", "t.tsv", "".join(f"{('good', 'bad')[n % 2]}\tfilm {n}\n" for n in range(18))),
    one("names in a header, in any order", "t.csv", "category;id;sentence\ngood;1;fine\nbad;2;poor\nbad;3;weak\n"),
    one("a label in front, as in TREC", "t.txt", "DESC:manner How is it ?\nHUM:ind Who is it ?\n" * 9),
    one("a number in front, as in SST", "t.txt", "3 a fine film .\n0 a poor film .\n" * 9),
    one("fastText's", "t.txt", "__label__good a fine film\n__label__bad a poor film\n"),
    one("several of fastText's", "t.txt", "__label__good __label__film fine\n__label__bad poor\n"),
    one("a number each", "t.jsonl", '{"text": "fine", "score": 2}\n{"text": "poor", "score": 1}\n'),
    one("plain text", "t.txt", "It rained.\nWe stayed in.\nNobody came.\n"),
    one("no label", "t.jsonl", '{"text": "fine"}\n'),
)
PICTURES = {f"Images/{n}.png": picture(n) for n in range(3)}
FLICKR_8K = "image,caption\n0.png,black\n1.png,grey\n1.png,dim\n"
FLICKR_30K = "image_name| comment_number| comment\n0.png| 0| black\n1.png| 0| grey\n"
CAPTIONED = '{"file": "0.png", "text": "black"}\n{"file": "1.png", "text": "grey"}\n'
ASKED = "image,question,answer\n0.png,how dark?,very\n1.png,how dark?,a little\n"
CAPTIONS = (
    Case("as Flickr8k", PICTURES | {"captions.txt": FLICKR_8K}, "captions.txt"),
    Case("as Flickr30k", PICTURES | {"a.csv": FLICKR_30K}, "a.csv"),
    Case("other names", PICTURES | {"a.csv": "title;filename\nblack;0.png\ngrey;1.png\n"}, "a.csv"),
    Case("with questions, for `describe`", PICTURES | {"a.csv": ASKED}, "a.csv"),
    Case("objects", PICTURES | {"a.jsonl": CAPTIONED}, "a.jsonl"),
    Case("a picture that is not there", PICTURES | {"a.csv": "image,text\n9.png,x\n"}, "a.csv"),
    Case("no column of pictures", {"a.csv": "number,text\n9,x\n"}, "a.csv"),
)
SECTIONS = (
    ("Pairs, for `translate`", pairs, PAIRS),
    ("Summaries, for `summarise`", pairs, SUMMARIES),
    ("Labelled texts, for `classify`", labelled, LABELS),
    ("Pictures and texts, for `match` and `describe`", captioned, CAPTIONS),
)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
