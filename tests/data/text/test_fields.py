"""What the fields of a format say of a text: the number that a plural form is for, that it is not confirmed, that it is
one of several, or that its line breaks are those of a program. What is left out or changed is told."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import openpyxl
import pyarrow
import pyarrow.parquet
import pytest

import written
from heedful.data.documents.read import read_document
from heedful.data.text.glossary import read_glossary
from heedful.data.text.reading import read_whole
from heedful.errors import InputError

ARABIC = "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);"
# Plural-Forms and Language of a catalogue; the number of its forms, that for 1, and those for several numbers.
PLURALS = {
    "two": ("nplurals=2; plural=(n != 1);", "de", 2, 0, (1,)),
    "zero and one alike": ("nplurals=2; plural=(n > 1);", "fr", 2, 0, (1,)),
    "none": ("nplurals=1; plural=0;", "ja", 1, 0, (0,)),
    "a form for 0": (
        "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);", "lv", 3, 0, (1,),
    ),
    "several forms": (
        "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);", "pl", 3, 0, (1, 2),
    ),
    "one is not the first": (ARABIC, "ar", 6, 1, (3, 4, 5)),
    "one is the second": (
        "nplurals=4; plural=(n%100==1 ? 1 : n%100==2 ? 2 : n%100==3 || n%100==4 ? 3 : 0);", "sl", 4, 1, (0, 2, 3),
    ),
    "one is the last": ("nplurals=2; plural=n==1;", "de", 2, 1, (0,)),
    "by its language": ("", "ar", 6, 1, (3, 4, 5)),
    "by its language and region": ("", "ar_EG", 6, 1, (3, 4, 5)),
    "of a template": ("nplurals=INTEGER; plural=EXPRESSION;", "ar", 6, 1, (3, 4, 5)),
    "nothing is known": ("", "", 2, 0, (1,)),
}  # fmt: skip


def catalogue(declared: str, language: str, texts: Sequence[str]) -> str:
    head = f'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    head += f'"Plural-Forms: {declared}\\n"\n' if declared else ""
    forms = "".join(f'msgstr[{number}] "{text}"\n' for number, text in enumerate(texts))
    return f'{head}\nmsgid "One file"\nmsgid_plural "%d files"\n{forms}'


@pytest.mark.parametrize("kind", PLURALS)
def test_each_plural_form_belongs_to_its_numbers(kind: str, tmp_path: Path) -> None:
    declared, language, count, singular, others = PLURALS[kind]
    (path := tmp_path / "p.po").write_text(catalogue(declared, language, [f"form {i}" for i in range(count)]))
    read = read_whole(path, source="en")
    pairs = {*zip(read.train.source, read.train.target, strict=True)}
    one = set() if singular in others else {("One file", f"form {singular}")}
    assert pairs - {("One file", "form 0")} == (one | {("%d files", f"form {i}") for i in others}) - {
        ("One file", "form 0")
    }
    assert one <= pairs
    left = count - len({singular, *others})
    assert (f"{left} further plural form" in read.told[0]) == (left > 0)


@pytest.mark.parametrize("kind", PLURALS)
def test_each_plural_form_is_translated_from_its_side(kind: str, tmp_path: Path) -> None:
    declared, language, count, singular, _ = PLURALS[kind]
    (path := tmp_path / "p.po").write_text(catalogue(declared, language, [""] * count))
    texts = [passage.text for passage in read_document(path, language).passages]
    expected = ["One file" if i == singular and count > 1 else "%d files" for i in range(count)]
    assert texts == expected
    (path := tmp_path / "none.po").write_text(catalogue(declared, "", [""] * count))
    assert [passage.text for passage in read_document(path, language).passages] == expected  # of the translation


@pytest.mark.parametrize("formula", ["n+", "n ? : 1", "n % 0", "__import__('os')", "n" * 2000])
def test_plural_forms_that_are_no_formula(formula: str, tmp_path: Path) -> None:
    (path := tmp_path / "p.po").write_text(catalogue(f"nplurals=2; plural={formula};", "de", ["a", "b"]))
    for read in (read_whole, read_document):
        with pytest.raises(InputError, match="Plural-Forms that are no formula") as caught:
            read(path)
        assert caught.value.fix


# Whether a translation is confirmed

NAMES = ("source", "target", "fuzzy")
Row = tuple[str, str, object]


def sheet(names: Sequence[str], rows: Sequence[Sequence[object]], path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (names, *rows):
        book.active.append([*row])
    book.save(path)


def table(separator: str) -> Callable[[Sequence[str], Sequence[Sequence[object]], Path], None]:
    def write(names: Sequence[str], rows: Sequence[Sequence[object]], path: Path) -> None:
        path.write_text("".join(separator.join(map(str, row)) + "\n" for row in (names, *rows)))

    return write


def objects(names: Sequence[str], rows: Sequence[Sequence[object]], path: Path) -> None:
    items = [dict(zip(names, row, strict=True)) for row in rows]
    lines = "".join(json.dumps(item) + "\n" for item in items)
    path.write_text(json.dumps(items) if path.suffix == ".json" else lines)


def parquet(names: Sequence[str], rows: Sequence[Sequence[object]], path: Path) -> None:
    items = [dict(zip(names, [*row[:2], str(row[2]), *row[3:]], strict=True)) for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(items), path)


TABLES = {"tsv": table("\t"), "csv": table(","), "xlsx": sheet, "jsonl": objects, "json": objects, "parquet": parquet}
MARKED: list[Row] = [
    (f"text {i}", f"Text {i}", mark)
    for i, mark in enumerate([True, "", "False", "true", 1, 0, "x", "no", "fuzzy", "", "yes", "0"])
]
KEPT = [row[0] for row in MARKED if row[2] in ("", "False", 0, "no", "0")]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("ways", [False, True])
def test_rows_that_are_not_confirmed(kind: str, ways: bool, tmp_path: Path) -> None:
    rows = [(*row, "en", "de") for row in MARKED] if ways else MARKED
    names = (*NAMES, "source_lang", "target_lang") if ways else NAMES
    TABLES[kind](names, rows, path := tmp_path / f"p.{kind}")
    if kind == "xlsx" and ways:
        return  # rows of a sheet do not name their languages
    read = read_whole(path)
    assert read.train.source == KEPT
    assert f"{len(MARKED) - len(KEPT)} fuzzy rows left out" in read.told[0]
    assert len(KEPT) == 6


@pytest.mark.parametrize("options", [("source", "target"), ("1", "2"), ("target", "source")])
def test_rows_that_are_not_confirmed_however_they_are_asked_for(options: tuple[str, str], tmp_path: Path) -> None:
    TABLES["tsv"](NAMES, MARKED, path := tmp_path / "p.tsv")
    assert len(read_whole(path, source=options[0], target=options[1]).train) == len(KEPT)


@pytest.mark.parametrize("kind", ["tsv", "csv", "xlsx", "jsonl"])
def test_terms_that_are_not_confirmed(kind: str, tmp_path: Path) -> None:
    TABLES[kind](("en", "de", "fuzzy"), MARKED, path := tmp_path / f"p.{kind}")
    glossary = read_glossary(path, source="en", target="de")
    assert [term.source for term in glossary.terms] == KEPT
    assert glossary.left_out == len(MARKED) - len(KEPT)


FEW = [(f"sentence {i} of them", f"Satz {i} davon") for i in range(9)]
UNCONFIRMED = {
    "needs-review-translation": ("xlf", 'state="final"', 'state="needs-review-translation"'),
    "needs-review-adaptation": ("xlf", 'state="final"', 'state="needs-review-adaptation"'),
    "needs-review-l10n": ("xlf", 'state="final"', 'state="needs-review-l10n"'),
    "a fuzzy match": ("xlf", 'state="final"', 'state-qualifier="fuzzy-match"'),
    "rejected": ("xlf", 'state="final"', 'state-qualifier="rejected-grammar"'),
    "XLIFF 2": ("xliff", 'state="final"', 'state="translated" subState="my:needs-review-translation"'),
    "fuzzy": ("po", 'msgid "sentence', '#, c-format, fuzzy\nmsgid "sentence'),
}


@pytest.mark.parametrize("kind", UNCONFIRMED)
def test_units_that_are_not_confirmed(kind: str, tmp_path: Path) -> None:
    suffix, plain, marked = UNCONFIRMED[kind]
    text = written.WRITERS[suffix](FEW).decode().replace(plain, marked, 2)
    (path := tmp_path / f"p.{suffix}").write_text(text)
    read = read_whole(path, source="en", target="de")
    assert [*zip(read.train.source, read.train.target, strict=True)] == FEW[2:]
    assert any(told in read.told[0] for told in ("2 unconfirmed drafts left out", "2 fuzzy and 0"))


# Units of a memory


def memory(*units: str) -> str:
    return written.tmx(FEW).decode().replace("<body>", f"<body>{''.join(f'<tu>{unit}</tu>' for unit in units)}")


def variant(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'


@pytest.mark.parametrize("second", ["de", "DE", "de-AT"])
def test_of_several_variants_the_first_is_read_and_the_others_are_told(second: str, tmp_path: Path) -> None:
    units = [variant("en", f"a {i}") + variant("de", f"b {i}") + variant(second, f"c {i}") for i in range(20)]
    (path := tmp_path / "p.tmx").write_text(memory(*units))
    read = read_whole(path, source="en", target="de")
    assert [*zip(read.train.source, read.train.target, strict=True)] == [
        *((f"a {i}", f"b {i}") for i in range(20)),
        *FEW,
    ]
    assert "20 further variants of units left out" in read.told[0]


def test_a_variant_whose_text_is_not_in_a_segment(tmp_path: Path) -> None:
    text = memory(variant("en", "a") + '<tuv xml:lang="de">b</tuv>')
    (path := tmp_path / "p.tmx").write_text(text)
    with pytest.raises(InputError, match="unit 1: a tuv without <seg>") as caught:
        read_whole(path, source="en", target="de")
    assert "<seg>" in caught.value.fix


BROKEN = "\n        Our neighbour\n        hides some bread.\n      "


@pytest.mark.parametrize("kind", ["tmx", "xlf", "xliff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_a_program_breaks_are_blanks(kind: str, end: str, tmp_path: Path) -> None:
    text = written.WRITERS[kind](FEW).decode()
    (path := tmp_path / f"p.{kind}").write_bytes(text.replace("sentence 3 of them", BROKEN).replace("\n", end).encode())
    read = read_whole(path, source="en", target="de")
    assert read.train.source[3] == "Our neighbour hides some bread."
    assert "line breaks in 1 text read as blanks" in read.told[0]
    kept = text.replace("<tuv", '<tuv xml:space="preserve"').replace("unit ", 'unit xml:space="preserve" ')
    kept = kept.replace("<segment", '<segment xml:space="preserve"').replace("sentence 3 of them", "Our\n neighbour")
    path.write_text(kept)
    assert read_whole(path, source="en", target="de").train.source[3] == "Our\n neighbour"


# Line breaks, and cells that hold no text

LINES = [*((f"text {i}", f"Text {i}") for i in range(3)), ("one\ntwo", "eins\nzwei"), ("three\nfour", "drei vier")]


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx", "jsonl", "json", "parquet", "po"])
def test_texts_with_line_breaks_are_told(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"p.{kind}"
    if kind in ("csv", "tsv"):
        separator = "," if kind == "csv" else "\t"
        rows = (f'"{one}"{separator}"{other}"\n' for one, other in (("en", "de"), *LINES))
        path.write_text("".join(rows))
    elif kind == "json":
        path.write_text(json.dumps([{"en": one, "de": other} for one, other in LINES]))
    else:
        path.write_bytes(written.WRITERS[kind](LINES))
    read = read_whole(path, source="en", target="de")
    assert [*zip(read.train.source, read.train.target, strict=True)] == LINES
    assert "2 with line breaks" in read.told[0]


def formulas(path: Path, *, rows: int) -> None:
    """As a program writes a sheet that has not computed its formulas."""
    book = openpyxl.Workbook()
    for row in (("en", "de", "length"), *((f"text {i}", f"Text {i}", i) for i in range(9))):
        book.active.append(row)
    for row in range(2, 2 + rows):
        book.active.cell(row, 2).value = f'=UPPER("text {row}")'
        book.active.cell(row, 3).value = f"=LEN(A{row})"
    book.save(path)


@pytest.mark.parametrize("rows", [1, 9])
def test_formulas_that_are_not_computed(rows: int, tmp_path: Path) -> None:
    formulas(path := tmp_path / "p.xlsx", rows=rows)
    told = "formulas? without a stored value, the first in row 2"
    for read, count in ((read_whole, rows), (read_glossary, 2 * rows)):
        with pytest.raises(InputError, match=f"{count} {told}") as caught:
            read(path, source="en", target="de")
        assert "save it" in caught.value.fix
    formulas(path, rows=0)
    assert len(read_whole(path).train) == 9
