"""Files of which a part is repeated: the time of reading them grows as they do, the memory is a multiple of their size,
and an error stays one line (X2)."""

import gzip
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import written
from growth import MOST, exponent
from heedful.data.text.conversations import read_conversations
from heedful.data.text.documents import read_documents
from heedful.data.text.glossary import read_glossary
from heedful.data.text.judgements import judgements_in
from heedful.data.text.labelled import read_examples
from heedful.data.text.questions import read_answered
from heedful.data.text.reading import read_whole
from heedful.data.text.tagged import read_sentences
from heedful.data.text.trees import read_trees
from heedful.errors import HeedError

Tally = Callable[[str, int], None]
Make = Callable[[int], str | bytes]
Parts = Mapping[str, tuple[str, Make]]  # the name of a file, and what is in it if a part comes n times

LITTLE = 0.03  # seconds, below which the clock tells nothing
MEMORY, ALWAYS = 250, 1 << 22  # bytes in memory for each byte of a file, or of what it unpacks to, and for any file
LONGEST = 800  # characters of an error

FEW = [(f"sentence {i} of them", f"Satz {i} davon") for i in range(9)]
ANSWERED = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def each(count: int, form: str) -> str:
    """The form for each number, which stands at its {0}."""
    return "".join(form.replace("{0}", str(i)) for i in range(count))


def tmx(body: str, header: str = "") -> str:
    return written.tmx(FEW).decode().replace("<body>", f"<note>{header}</note><body>{body}")


def tu(source: str, more: str = "") -> str:
    target = '<tuv xml:lang="de"><seg>b</seg></tuv>'
    return f'<tu>{more}<tuv xml:lang="en"><seg>{source}</seg></tuv>{target}</tu>'


def xlf(body: str) -> str:
    return written.xliff(FEW).decode().replace("<body>", f"<body>{body}")


def xlf2(body: str) -> str:
    return written.xliff2(FEW).decode().replace('<file id="f">', f'<file id="f">{body}')


def unit(source: str, target: str = "b", more: str = "") -> str:
    sides = f"<source>{source}</source><seg-source>{source}</seg-source><target>{target}</target>"
    return f"<trans-unit>{sides}{more}</trans-unit>"


def po(body: str, header: str = "") -> str:
    whole = written.po(FEW).decode()
    return whole.replace('"Language', f'{header}"Language', 1) + f"\n{body}\n"


def sheet(cells: str, *, more: str = "", styles: str = "") -> bytes:
    """A workbook with a sheet of these rows, below those of FEW."""
    changed = {"xl/worksheets/sheet1.xml": ("</sheetData>", f"{cells}</sheetData>{more}")}
    return rezipped(written.xlsx(FEW), changed | {"xl/styles.xml": ("<fonts", f"{styles}<fonts")})


def rezipped(data: bytes, changed: Mapping[str, tuple[str, str]], added: Mapping[str, str] | None = None) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).decode().replace(*changed.get(name, ("\0", ""))))
        for name, text in (added or {}).items():
            new.writestr(name, text)
    return made.getvalue()


def shared_strings(body: str) -> bytes:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    relation = f'<Relationship Id="s" Type="{kind}" Target="sharedStrings.xml"/></Relationships>'
    changed = {"xl/_rels/workbook.xml.rels": ("</Relationships>", relation)}
    return rezipped(written.xlsx(FEW), changed, {"xl/sharedStrings.xml": f"<sst>{body}</sst>"})


def sheets(count: int) -> bytes:
    """A workbook of so many sheets, of which each is the same part."""
    text = written.xlsx(FEW)
    with zipfile.ZipFile(io.BytesIO(text)) as book:
        named = book.read("xl/workbook.xml").decode().partition("<sheets>")[2].partition("</sheets>")[0]
    return rezipped(text, {"xl/workbook.xml": ("</sheets>", f"{named * count}</sheets>")})


def packed(files: Mapping[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


def parquet(columns: Mapping[str, list[str]], **options: int) -> bytes:
    made = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), made, **options)
    return made.getvalue()


def tbx(body: str) -> str:
    terms = concept("<term>a</term>", "<term>b</term>")
    return f'<martif type="TBX"><text><body>{terms}{body}</body></text></martif>'


def concept(source: str, target: str) -> str:
    sides = (f'<langSet xml:lang="{name}"><tig>{own}</tig></langSet>' for name, own in (("en", source), ("de", target)))
    return f"<termEntry>{''.join(sides)}</termEntry>"


MRK = '<mrk mtype="seg" mid="{0}">'
TUV = '<tuv xml:lang="{0}"><seg>a</seg></tuv>'
FILE = '<file source-language="en" target-language="x{0}"/>'
SEGMENT = "<segment><source>a</source><target>b</target></segment>"
CELL = '<c t="str"><v>a</v></c>'
SIDES = ("en", "de")
QUOTED = '"words of a long text "\n'
PAIRS: Parts = {
    "rows": ("p.tsv", lambda n: "en\tde\n" + each(n, "a {0}\tb {0}\n")),
    "blank rows": ("p.tsv", lambda n: "en\tde\na\tb\n" + "\n" * n),
    "columns": ("p.tsv", lambda n: "en\tde" + each(n, "\tc{0}") + "\na\tb" + "\t" * n + "\n"),
    "columns without a header": ("p.tsv", lambda n: each(n, "word {0} of many\t") + "x\n"),
    "quotes": ("p.tsv", lambda n: '"en"\t"de"\n' + '"a ""b"" c"\t"d"\n' * n),
    "open quotes": ("p.tsv", lambda n: "en\tde\n" + '"a\tb\n' * n),
    "lines of a cell": ("p.csv", lambda n: 'en,de\n"' + "a\n" * n + '",b\n'),
    "an open cell": ("p.csv", lambda n: 'en,de\na,b\n"' + "a\n" * n),
    "directions": ("p.tsv", lambda n: "source\ttarget\tsource_lang\ttarget_lang\n" + each(n, "a\tb\ten\tl{0}\n")),
    "fuzzy rows": ("p.tsv", lambda n: "en\tde\tfuzzy\na\tb\t\n" + each(n, "a {0}\tb\tTrue\n")),
    "objects": ("p.jsonl", lambda n: each(n, '{"en": "a {0}", "de": "b"}\n')),
    "keys": ("p.jsonl", lambda n: lines({"en": "a", "de": "b"} | {f"k{i}": "x" for i in range(n)})),
    "digits of a key": ("p.jsonl", lambda n: lines({"source": "a", "target1": "b", "1" * n + "x": "c"})),
    "references": ("p.jsonl", lambda n: lines({"en": "a", "de": ["b"] * n})),
    "numbered references": ("p.jsonl", lambda n: lines({"en": "a"} | {f"de{i}": "b" for i in range(n)})),
    "brackets": ("p.jsonl", lambda n: '{"en": "a", "de": "b", "x": ' + "[" * n + "]" * n + "}\n"),
    "items": ("p.json", lambda n: json.dumps([{"en": f"a {i}", "de": "b"} for i in range(n)])),
    "units": ("p.tmx", lambda n: tmx(tu("a") * n)),
    "variants": ("p.tmx", lambda n: tmx("<tu>" + TUV.replace("{0}", "en") * n + "</tu>")),
    "languages": ("p.tmx", lambda n: tmx("<tu>" + each(n, TUV.replace("{0}", "x{0}")) + "</tu>")),
    "regions": ("p.tmx", lambda n: tmx("<tu>" + each(n, TUV.replace("{0}", "en-x{0}")) + "</tu>")),
    "regions of units": ("p.tmx", lambda n: tmx(each(n, "<tu>" + TUV.replace("{0}", "en-x{0}") + "</tu>"))),
    "properties": ("p.tmx", lambda n: tmx(tu("a", '<prop type="x">y</prop>' * n))),
    "properties of the header": ("p.tmx", lambda n: tmx("", '<prop type="x">y</prop>' * n)),
    "codes": ("p.tmx", lambda n: tmx(tu("a<ph>&lt;br/&gt;</ph>" * n))),
    "marked text": ("p.tmx", lambda n: tmx(tu("<hi>" * n + "a" + "</hi>" * n))),
    "codes within codes": ("p.tmx", lambda n: tmx(tu("<ph><sub>" * n + "a" + "</sub></ph>" * n))),
    "units within units": ("p.tmx", lambda n: tmx("<tu>" * n + "</tu>" * n)),
    "texts within texts": ("p.tmx", lambda n: tmx('<tu><tuv xml:lang="en">' * n + "</tuv></tu>" * n)),
    "attributes": ("p.tmx", lambda n: tmx(tu("a", "<prop " + each(n, 'a{0}="y" ') + "/>"))),
    "an attribute": ("p.tmx", lambda n: tmx(tu("a", '<prop type="' + "y" * 1000 * n + '"/>'))),
    "a comment": ("p.tmx", lambda n: tmx("<!--" + "y" * 1000 * n + "-->")),
    "name spaces": ("p.tmx", lambda n: tmx(tu("a", each(n, '<p xmlns:a{0}="y{0}">') + "</p>" * n))),
    "lines of a segment": ("p.tmx", lambda n: tmx(tu("a   \n   " * n))),
    "units of XLIFF": ("p.xlf", lambda n: xlf(unit("a") * n)),
    "files of XLIFF": ("p.xlf", lambda n: xlf("</body></file>" + each(n, FILE) + "<file><body>")),
    "segments": ("p.xlf", lambda n: xlf(unit(each(n, MRK + "a</mrk>"), each(n, MRK + "b</mrk>")))),
    "segments within segments": ("p.xlf", lambda n: xlf(unit(*[each(n, MRK + "a") + "</mrk>" * n] * 2))),
    "proposals": ("p.xlf", lambda n: xlf(unit("a", "b", "<alt-trans><target>b</target></alt-trans>" * n))),
    "groups within groups": ("p.xlf", lambda n: xlf("<group>" * n + "</group>" * n)),
    "segments of XLIFF 2": ("p.xlf", lambda n: xlf2("<unit>" + SEGMENT * n + "</unit>")),
    "messages": ("p.po", lambda n: po(each(n, '\nmsgid "a {0}"\nmsgstr "b"\n'))),
    "lines of a message": ("p.po", lambda n: po('msgid ""\n' + QUOTED * n + 'msgstr "b"')),
    "lines of its translation": ("p.po", lambda n: po('msgid "x"\nmsgstr ""\n' + QUOTED * n)),
    "lines of a comment": ("p.po", lambda n: po("# words of a long text\n" * n + 'msgid "x"\nmsgstr "b"')),
    "places": ("p.po", lambda n: po("#: a.c:12 b.c:13\n" * n + 'msgid "x"\nmsgstr "b"')),
    "flags": ("p.po", lambda n: po("#, " + "c-format, " * n + '\nmsgid "x"\nmsgstr "b"')),
    "plural forms": ("p.po", lambda n: po('msgid "x"\nmsgid_plural "y"\n' + each(n, 'msgstr[{0}] "b"\n'))),
    "lines of the header": ("p.po", lambda n: po("", '"X-A: b\\n"\n' * n)),
    "obsolete messages": ("p.po", lambda n: po(each(n, '\n#~ msgid "a {0}"\n#~ msgstr "b"\n'))),
    "rows of a sheet": ("p.xlsx", lambda n: sheet(f"<row>{CELL}{CELL}</row>" * n)),
    "columns of a sheet": ("p.xlsx", lambda n: sheet("<row>" + CELL * n + "</row>")),
    "sheets": ("p.xlsx", sheets),
    "merged cells": ("p.xlsx", lambda n: sheet("", more=each(n, '<mergeCell ref="A{0}:B{0}"/>'))),
    "formats of numbers": ("p.xlsx", lambda n: sheet("", styles=each(n, '<numFmt numFmtId="2{0}" formatCode="y"/>'))),
    "strings": ("p.xlsx", lambda n: shared_strings("<si><t>abc</t></si>" * n)),
    "runs of a string": ("p.xlsx", lambda n: shared_strings("<si>" + "<r><t>abc</t></r>" * n + "</si>")),
    "rows of Parquet": ("p.parquet", lambda n: parquet({"en": [f"a {i}" for i in range(n)], "de": ["b"] * n})),
    "columns of Parquet": (
        "p.parquet",
        lambda n: parquet({"en": ["a"], "de": ["b"]} | {f"c{i}": ["x"] for i in range(n)}),
    ),
    "groups of rows": ("p.parquet", lambda n: parquet({"en": ["a"] * n, "de": ["b"] * n}, row_group_size=1)),
    "tables in a zip file": ("p.zip", lambda n: packed({f"{i}.tsv": "a\tb\n" for i in range(n // 10)})),
    "sides in a zip file": (
        "p.zip",
        lambda n: packed({f"{i}.{name}": "a\n" for i in range(n // 10) for name in SIDES}),
    ),
    "other files in a zip file": (
        "p.zip",
        lambda n: packed({"p.tsv": "en\tde\na\tb\n"} | {f"{i}.bin": "x" for i in range(n)}),
    ),
    "folders in a zip file": ("p.zip", lambda n: packed({"a/" * n + "p.tsv": "en\tde\na\tb\n"})),
    "members of gzip": ("p.tsv.gz", lambda n: gzip.compress(b"en\tde\n") + gzip.compress(b"a\tb\n") * n),
    "empty members of gzip": ("p.tsv.gz", lambda n: gzip.compress(b"en\tde\na\tb\n") + gzip.compress(b"") * n),
}
LABELS: Parts = {
    "labelled rows": ("p.tsv", lambda n: each(n, "text {0}\tx\n")),
    "labels": ("p.tsv", lambda n: each(n, "text {0}\tl{0}\n")),
    "columns": ("p.tsv", lambda n: "text\tlabel" + each(n, "\tc{0}") + "\na\tb" + "\t" * n + "\n"),
    "keys": ("p.jsonl", lambda n: lines({"text": "a", "label": "b"} | {f"k{i}": "x" for i in range(n)})),
    "a list of labels": ("p.jsonl", lambda n: lines({"text": "a", "labels": [f"l{i}" for i in range(n)]})),
    "choices": ("p.jsonl", lambda n: lines({"text": "a", "label": 1, "choices": [f"l{i}" for i in range(n + 2)]})),
    "labels in front": ("p.txt", lambda n: "__label__a " * n + "text\n__label__b text\n"),
    "rows with a label in front": ("p.txt", lambda n: "a text\nb text\n" * n),
}
TALKS: Parts = {
    "conversations": ("p.jsonl", lambda n: lines(*({"question": f"a {i}", "answer": "b"} for i in range(n + 2)))),
    "messages": ("p.jsonl", lambda n: lines({"messages": ANSWERED * n}, {"question": "a", "answer": "b"})),
    "parts of a message": (
        "p.jsonl",
        lambda n: lines({"question": [{"type": "text", "text": "a"}] * n, "answer": "b"}),
    ),
    "instances": (
        "p.jsonl",
        lambda n: lines({"instruction": "a", "instances": [{"input": f"{i}", "output": "b"} for i in range(n)]}),
    ),
    "earlier turns": ("p.jsonl", lambda n: lines({"instruction": "a", "output": "b", "history": [["a", "b"]] * n})),
    "questions and answers": ("p.tsv", lambda n: each(n + 2, "a {0}\tb\n")),
}
JUDGED: Parts = {
    "judgements": ("p.jsonl", lambda n: lines(*[{"prompt": "a", "chosen": "b", "rejected": "c"}] * n)),
    "candidates": (
        "p.jsonl",
        lambda n: lines({"prompt": "a", "candidates": ["b"] * n, "order": [[i] for i in range(n)]}),
    ),
    "messages of a prompt": (
        "p.jsonl",
        lambda n: lines(
            {"prompt": ANSWERED * n}
            | {side: [*ANSWERED * n, {"role": "assistant", "content": side}] for side in ("chosen", "rejected")}
        ),
    ),
    "messages of both sides": (
        "p.jsonl",
        lambda n: lines(
            {"prompt": [{"role": "user", "content": f"x {i}"} for i in range(n)]}
            | {side: [*ANSWERED * n, {"role": "assistant", "content": side}] for side in ("chosen", "rejected")}
        ),
    ),
    "scores": (
        "p.jsonl",
        lambda n: lines({"prompt": "a", "completions": [{"response": "b", "score": i} for i in range(n)]}),
    ),
}
TERMS: Parts = {
    "terms": ("p.tsv", lambda n: each(n, "a{0}\tb\n")),
    "forms": ("p.tsv", lambda n: "a\t" + each(n, "b{0}|") + "\n"),
    "rows of a term": ("p.tsv", lambda n: each(n, "a\tb{0}\n")),
    "columns": ("p.tsv", lambda n: "en\t" * n + "de\t" * n + "x\n" + "a\t" * n + "b\t" * n + "x\n"),
    "states": ("p.tsv", lambda n: "en\tde\t" + "status\t" * n + "x\na\tb\t" + "y\t" * n + "x\n"),
    "words of a term": ("p.tsv", lambda n: "a " * n + "\tb\n"),
    "an object": ("p.json", lambda n: json.dumps({f"a{i}": "b" for i in range(n)})),
    "concepts": ("p.tbx", lambda n: tbx(concept("<term>a</term>", "<term>b</term>") * n)),
    "terms of a concept": ("p.tbx", lambda n: tbx(concept(*["<term>a</term></tig><tig>" * n + "<term>b</term>"] * 2))),
    "forms of a concept": ("p.tbx", lambda n: tbx(concept("<term>a</term>", "<term>b</term></tig><tig>" * n))),
    "terms within terms": ("p.tbx", lambda n: tbx(concept("<term>" * n + "a" + "</term>" * n, "<term>b</term>"))),
    "regions": (
        "p.tbx",
        lambda n: tbx(each(n, concept("<term>a</term>", "<term>b</term>").replace('lang="en', 'lang="en-{0}'))),
    ),
}


def squad(count: int, context: str, answer: dict[str, object]) -> str:
    asked = [{"id": i, "question": "q", "answers": [answer]} for i in range(count)]
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": asked}]}]})


OTHERS: dict[str, tuple[str, Make, Callable[[Path], object]]] = {
    "questions": ("p.json", lambda n: squad(n, "a b", {"text": "b", "answer_start": 2}), read_answered),
    "questions without a place": ("p.json", lambda n: squad(n, "a " * n + "b", {"text": "b"}), read_answered),
    "tagged words": ("p.tsv", lambda n: "a\tN\n" * n, read_sentences),
    "trees": ("p.txt", lambda n: "(S (N a) (V b))\n" * (n + 2), read_trees),
    "a wide tree": ("p.txt", lambda n: ("(S " + "(N a) " * n + ")\n") * 2, read_trees),
    "a deep tree": ("p.txt", lambda n: "(S " * n + "(N a)" + ")" * n + "\n", read_trees),
    "documents": ("p.jsonl", lambda n: each(n + 20, '{"text": "a {0}"}\n'), read_documents),
}


def whole(path: Path) -> object:
    return read_whole(path, source="en", target="de")


def terms(path: Path) -> object:
    return read_glossary(path, source="en", target="de")


def cases() -> Iterator[object]:
    families: tuple[tuple[str, Parts, Callable[[Path], object]], ...] = (
        ("pairs", PAIRS, whole),
        ("labels", LABELS, read_examples),
        ("conversations", TALKS, read_conversations),
        ("judgements", JUDGED, judgements_in),
        ("glossary", TERMS, terms),
    )
    for family, parts, read in families:
        for name, (file, make) in parts.items():
            yield pytest.param(file, make, read, id=f"{family}: {name}")
    for name, (file, make, read) in OTHERS.items():
        yield pytest.param(file, make, read, id=name)


def told_briefly(read: Callable[[Path], object], path: Path) -> None:
    """Reads a file; where that ends with an error, this is one line."""
    told = ""
    try:
        read(path)
    except HeedError as error:
        told = f"{error} {error.fix}"
    assert len(told) < LONGEST + 4 * len(str(path))
    assert "\n" not in told


@pytest.mark.parametrize(("file", "make", "read"), [*cases()])
def test_a_part_that_comes_again(
    file: str, make: Make, read: Callable[[Path], object], tmp_path: Path, full: bool, tally: Tally
) -> None:
    paths = []
    for count in (10, 100, 1000, 10_000) if full else (200, 2000):
        (path := tmp_path / str(count) / file).parent.mkdir()
        made = make(count)
        path.write_bytes(made.encode() if isinstance(made, str) else made)
        paths.append(path)
    reading = partial(told_briefly, read)
    for few, many in pairwise(paths):
        assert exponent(reading, few, many, times=10, little=LITTLE) <= MOST
    tracemalloc.start()
    reading(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < ALWAYS + MEMORY * max(path.stat().st_size, unpacked(path))
    tally("X2 parts that come again", len(paths))


def unpacked(path: Path) -> int:
    if path.suffix == ".gz":
        return len(gzip.decompress(path.read_bytes()))
    if path.suffix not in (".zip", ".xlsx"):
        return 0
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())
