"""Translators' files: told apart by what is inside, read back as they were written, refused in one line."""

import gzip
import zipfile
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from xml.etree.ElementTree import fromstring

import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import written
from heedful.data.text.corpus import Corpus, read_parallel
from heedful.data.text.formats.inline import words_of
from heedful.errors import HeedError, InputError

MANY = [(f"sentence {i} of them", f"Satz {i} davon") for i in range(30)]
# What XML 1.0 and a cell of Excel can hold, and what PO leaves: no control characters, and something that is no blank.
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn"], exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=20,
).filter(lambda text: text.strip() == text != "" and not text.startswith(("=", "#")))

UNLIKE = (lambda pair: pair[0].lower(), lambda pair: pair[1].lower())  # what is held out with another text


def all_pairs(corpus: Corpus) -> dict[str, str]:
    parts = [corpus.train, corpus.valid, *corpus.tests.values()]
    return {source: target for part in parts for source, target in zip(part.source, part.target, strict=True)}


@pytest.mark.parametrize("kind", written.WRITERS)
@given(pairs=st.lists(st.tuples(TEXT, TEXT), min_size=4, max_size=8, unique_by=UNLIKE))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back(tmp_path: Path, kind: str, pairs: list[tuple[str, str]]):
    path = tmp_path / f"memory.{kind}"
    path.write_bytes(written.WRITERS[kind](pairs))
    assert all_pairs(read_parallel(path, source="en", target="de")) == dict(pairs)
    assert all_pairs(read_parallel(path, source="de", target="en")) == {target: source for source, target in pairs}


@pytest.mark.parametrize("kind", ["tmx", "xlf", "xliff", "po", "xlsx", "parquet"])
@pytest.mark.parametrize("name", ["memory.txt", "memory", "memory.bin"])
def test_what_is_inside_says_what_it_is(tmp_path: Path, kind: str, name: str):
    (tmp_path / name).write_bytes(written.WRITERS[kind](MANY))
    corpus = read_parallel(tmp_path / name, source=None if kind != "po" else "en")
    assert all_pairs(corpus) == dict(MANY)
    assert (corpus.source, corpus.target) == ("en", "de")
    (packed := tmp_path / "packed.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    assert all_pairs(read_parallel(packed, source=None if kind != "po" else "en")) == dict(MANY)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("kind", ["tmx", "xlf"])
def test_what_comes_before_the_first_tag_says_nothing(tmp_path: Path, kind: str, encoding: str):
    text = written.WRITERS[kind](MANY).decode().partition("?>")[2]
    begin = f'<?xml version="1.0" encoding="{encoding}"?><!-- <a> > {"long " * 1000}--><?b c?><!-- <d> -->\n'
    (tmp_path / "memory.txt").write_bytes(f"{begin}{text}".encode(encoding))
    assert all_pairs(read_parallel(tmp_path / "memory.txt")) == dict(MANY)


def test_a_zip_file_of_memories(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("a.tmx", written.tmx(MANY[:15]))
        archive.writestr("b.xlf", written.xliff(MANY[15:]))
    assert all_pairs(read_parallel(tmp_path / "all.zip")) == dict(MANY)


def test_each_pair_knows_where_it_stands(tmp_path: Path):
    (tmp_path / "a.tmx").write_bytes(written.tmx(MANY[:15]))
    (tmp_path / "b.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in MANY[15:]))
    parts = read_parallel(tmp_path, source="en", target="de")
    for part in (parts.train, parts.valid, *parts.tests.values()):
        for i, source in enumerate(part.source):
            file, _, line = part.where(i).replace(" unit ", "").rpartition(":")
            number = int(source.split()[1])
            assert (Path(file).name, int(line)) == (("a.tmx", number + 1) if number < 15 else ("b.tsv", number - 14))


@pytest.mark.parametrize(("kind", "where"), [("tmx", ": unit 7"), ("xliff", ": unit 7"), ("xlsx", ": row 8")])
def test_what_is_no_line_is_called_what_it_is(tmp_path: Path, kind: str, where: str):
    (path := tmp_path / f"memory.{kind}").write_bytes(written.WRITERS[kind](MANY))
    read = read_parallel(path, source="en", target="de")
    parts = [read.train, read.valid, *read.tests.values()]
    found = {part.source[i]: part.where(i) for part in parts for i in range(len(part))}
    assert found["sentence 6 of them"] == f"{path}{where}"


@pytest.mark.parametrize("name", ["ISO-8859-1", "windows-1250", "UTF-8"])
def test_the_header_of_a_catalogue_says_what_it_is_in(tmp_path: Path, name: str):
    pairs = {f"door {i}": f"T\u00fcr {i}" for i in range(9)}
    header = f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={name}\\n"\n"Language: de\\n"\n'
    entries = "".join(f'\nmsgid "{one}"\nmsgstr "{other}"\n' for one, other in pairs.items())
    (path := tmp_path / "a.po").write_bytes((header + entries).encode(name))
    assert all_pairs(read_parallel(path)) == pairs
    path.write_bytes((header.replace(name, "UTF-8") + entries).encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.po:7: byte 10 of the line .0xfc. is not UTF-8"):
        read_parallel(path)


def test_inline_codes_are_left_out_and_their_words_stay(tmp_path: Path):
    segment = (
        'Press <bpt i="1">&lt;b&gt;</bpt>Save<ept i="1">&lt;/b&gt;</ept> or <ph x="1"><sub>alt</sub></ph>'
        "<hi>Cancel</hi>.<ut>{tab}</ut>"
    )
    unit = f'<tu><tuv xml:lang="en"><seg>{segment}</seg></tuv><tuv xml:lang="de"><seg>Ja.</seg></tuv></tu>'
    text = written.tmx(MANY).decode().replace("<body>", f"<body>{unit}")
    (tmp_path / "m.tmx").write_text(text)
    assert all_pairs(read_parallel(tmp_path / "m.tmx"))["Press Save or Cancel."] == "Ja."
    inner = 'One <g id="1">two <x id="2"/>three</g> <mrk mtype="term">four</mrk><ph id="3">code</ph>'
    text = written.xliff(MANY).decode().replace("sentence 3 of them", inner)
    (tmp_path / "m.xlf").write_text(text)
    assert all_pairs(read_parallel(tmp_path / "m.xlf"))["One two three four"] == "Satz 3 davon"
    inner = 'One <pc id="1">two</pc> <ph id="2"/><cp hex="0041"/>'
    text = written.xliff2(MANY).decode().replace("sentence 3 of them", inner)
    (tmp_path / "m2.xlf").write_text(text)
    assert all_pairs(read_parallel(tmp_path / "m2.xlf"))["One two A"] == "Satz 3 davon"


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("Press <ph/> now", "Press now"),
        ("Press <ph/> <ph/> now", "Press now"),
        ("Press <bpt/> Save <ept/> now", "Press Save now"),
        ("Press<ph/> now", "Press now"),
        ("Press <ph><sub>alt</sub></ph>\n now", "Press now"),
        ("<ph/> Press", " Press"),
        ("Press {1> Save <1} now", "Press Save now"),
        ("Press <ph>&lt;br/&gt;</ph> now", "Press now"),
        ("Press<ph>&lt;br/&gt;</ph>now", "Press now"),
        ("two  blanks <ph/>and <hi> three </hi>", "two  blanks and  three "),
        ("vraiment\u00a0<ph/> ?", "vraiment\u00a0 ?"),
    ],
)
def test_a_code_between_blanks_leaves_those_before_it(segment: str, text: str):
    assert words_of(fromstring(f"<seg>{segment}</seg>".replace("{1>", "{1&gt;").replace("<1}", "&lt;1}"))) == text


def test_what_is_not_translated_is_left_out_and_said(tmp_path: Path):
    text = written.xliff(MANY).decode().replace('state="final"', 'state="needs-translation"', 2)
    (tmp_path / "m.xlf").write_text(text)
    corpus = read_parallel(tmp_path / "m.xlf")
    assert len(all_pairs(corpus)) == 28
    assert "2 units not translated left out" in corpus.taken[0]
    text = written.po(MANY).decode().replace('msgid "sentence 4', '#, fuzzy\nmsgid "sentence 4')
    (tmp_path / "m.po").write_text(text.replace('msgstr "Satz 7 davon"', 'msgstr ""'))
    corpus = read_parallel(tmp_path / "m.po", source="en")
    assert len(all_pairs(corpus)) == 28
    assert "1 fuzzy and 1 untranslated entries left out" in corpus.taken[0]


def test_languages_are_chosen_by_code_and_region(tmp_path: Path):
    text = written.tmx(MANY, "en-US", "de-AT").decode()
    third = '<tuv xml:lang="fr-FR"><seg>une phrase</seg></tuv></tu>'
    (tmp_path / "m.tmx").write_text(text.replace("</tu>", third))
    corpus = read_parallel(tmp_path / "m.tmx", source="en", target="de")
    assert all_pairs(corpus) == dict(MANY)
    assert (corpus.source, corpus.target) == ("en-US", "de-AT")
    with pytest.raises(InputError, match="which two languages"):
        read_parallel(tmp_path / "m.tmx")
    with pytest.raises(InputError, match="no 'it'; its languages are 'en-US'"):
        read_parallel(tmp_path / "m.tmx", source="it", target="de")


def test_a_language_of_a_memory_is_that_of_all_its_regions(tmp_path: Path):
    one, other = (
        written.tmx(part, *names).decode()
        for part, names in ((MANY[:20], ("en-GB", "de-DE")), (MANY[20:], ("en-US", "de-AT")))
    )
    both = '<tu><tuv xml:lang="en-US"><seg>color</seg></tuv><tuv xml:lang="en-GB"><seg>colour</seg></tuv></tu>'
    units = other.partition("<body>")[2].partition("</body>")[0] + both.replace(
        "</tu>", '<tuv xml:lang="de-DE"><seg>Farbe</seg></tuv></tu>'
    )
    (tmp_path / "m.tmx").write_text(one.replace("</body>", f"{units}</body>"))
    corpus = read_parallel(tmp_path / "m.tmx", source="en", target="German")
    assert all_pairs(corpus) == dict([*MANY, ("colour", "Farbe")])
    assert "TMX, en (en-GB, en-US) and German (de-DE, de-AT), " in corpus.taken[0]
    assert all_pairs(read_parallel(tmp_path / "m.tmx", source="en-GB", target="de")) == dict(
        [*MANY[:20], ("colour", "Farbe")]
    )
    (tmp_path / "m.tmx").write_text(one.replace("en-GB", "EN").replace("</body>", f"{units}</body>"))
    corpus = read_parallel(tmp_path / "m.tmx", source="en", target="de")
    assert all_pairs(corpus) == dict([*MANY, ("color", "Farbe")])
    assert "TMX, en (EN, en-US, en-GB) and de (de-DE, de-AT), " in corpus.taken[0]
    with pytest.raises(InputError, match="no 'en-AU'; its languages are 'EN'"):
        read_parallel(tmp_path / "m.tmx", source="en-AU", target="de")


@pytest.mark.parametrize(
    ("header", "of_units", "names"),
    [
        ("en", "", ("en-US", "de-DE")),
        ("EN-us", "", ("en_US", "de-DE")),
        ("en-GB", "", ("en", "de")),
        ("*all*", "en-US", ("en-US", "de-DE")),
    ],
)
def test_the_source_language_of_a_memory_may_be_spelled_in_another_way(
    tmp_path: Path, header: str, of_units: str, names: tuple[str, str]
):
    text = written.tmx([pair[::-1] for pair in MANY], *names[::-1]).decode()  # the target comes first
    text = text.replace(f'srclang="{names[1]}"', f'srclang="{header}"')
    (tmp_path / "m.tmx").write_text(text.replace("<tu ", f'<tu srclang="{of_units}" ') if of_units else text)
    corpus = read_parallel(tmp_path / "m.tmx")
    assert (corpus.source, corpus.target) == names
    assert all_pairs(corpus) == dict(MANY)


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>&b;</seg></tuv></tu></body></tmx>'
)


def overwritten(data: bytes, begin: int, count: int) -> bytes:
    begin %= len(data)
    return data[:begin] + b"\xff" * count + data[begin + count :]


BROKEN = {
    "entities that grow": ("m.tmx", BOMB.encode(), "it defines entities of its own"),
    "an entity from a file": (
        "m.tmx",
        BOMB.replace('<!ENTITY a "aaaaaaaaaa">', '<!ENTITY a SYSTEM "file:///etc/passwd">').encode(),
        "it defines entities of its own",
    ),
    "half a memory": ("m.tmx", written.tmx(MANY)[:900], "not well-formed XML"),
    "half a xliff": ("m.xlf", written.xliff(MANY)[:900], "not well-formed XML"),
    "half a xliff 2": ("m.xlf", written.xliff2(MANY)[:900], "not well-formed XML"),
    "a memory of bytes that are no text": (
        "m.tmx",
        written.tmx(MANY).replace(b"Satz", b"\xff\xfe"),
        "not well-formed XML",
    ),
    "an unknown encoding": ("m.tmx", written.tmx(MANY).replace(b"UTF-8", b"UTF-99"), "encoding"),
    "a bare ampersand": ("m.tmx", written.tmx(MANY).replace(b"davon", b"A & B", 1), "not well-formed XML"),
    "a memory without units": ("m.tmx", written.tmx([]), "no unit with a segment of text"),
    "a text without a language": ("m.tmx", written.tmx(MANY).replace(b' xml:lang="en"', b"", 1), "without xml:lang"),
    "one language": ("m.tmx", written.tmx(MANY).replace(b'"de"', b'"en"'), "which two languages"),
    "a xliff without units": ("m.xlf", written.xliff([]), "no unit with a source"),
    "a xliff without translations": (
        "m.xlf",
        written.xliff([(source, "") for source, _ in MANY]),
        "no pair to learn from",
    ),
    "a xliff of two targets": (
        "m.xlf",
        written.xliff(MANY).replace(
            b"</body></file>", b'</body></file><file source-language="en" target-language="fr"/>'
        ),
        "files of several languages: en to de, en to fr",
    ),
    "a catalogue that does not parse": ("m.po", b'msgid "a"\nmsgstr "b"\nmsgstr oh\nmsgid', "not a PO file"),
    "a catalogue without translations": (
        "m.pot",
        written.po([(source, "") for source, _ in MANY]),
        "no pair to learn from",
    ),
    "a catalogue in no UTF-8": ("m.po", written.po(MANY).replace(b"Satz", b"S\xe4tze"), "is not UTF-8"),
    "half a workbook": ("m.xlsx", written.xlsx(MANY)[:1000], "text"),
    "a workbook without cells": ("m.xlsx", written.xlsx([], "", ""), "no sheet with anything on it"),
    "a workbook of one column": ("m.xlsx", written.xlsx([("a", None)] * 4, "text", None), "column"),
    "half a parquet": ("m.parquet", written.parquet(MANY)[:300], "damaged"),
    "a parquet without rows": ("m.parquet", written.parquet([]), ""),
    "a parquet of numbers": ("m.parquet", written.parquet([(1, 2)] * 4), "expected text"),
    "not gzip": ("m.tmx.gz", b"\x1f\x8b" + b"0" * 40, "gzip"),
    "half a gzip": ("m.tmx.gz", gzip.compress(written.tmx(MANY))[:200], "gzip"),
    **{f"nothing in a {kind}": (f"m.{kind}", b"", "empty") for kind in ("tmx", "xlf", "po", "xlsx", "parquet")},
    "a memory of blanks": ("m.tmx", b"  \n\n", "empty"),
    "a page in place of a memory": ("m.tmx", b"<!DOCTYPE html><html><body>Sign in</body></html>", "a page, or XML"),
    "another xml": ("m.xlf", b'<?xml version="1.0"?><rss><item>a</item></rss>', "a page, or XML"),
    "another element closed": ("m.tmx", written.tmx(MANY).replace(b"</seg>", b"</sag>", 1), "mismatched tag"),
    "a NUL in a memory": ("m.tmx", written.tmx(MANY).replace(b"Satz", b"Sa\0tz", 1), "not well-formed XML"),
    "an entity of HTML": ("m.xlf", written.xliff(MANY).replace(b"Satz", b"&nbsp;", 1), "undefined entity"),
    "two memories in one": ("m.tmx", written.tmx(MANY) + b"<tmx/>", "junk after document element"),
    "a xliff 2 without units": ("m.xlf", written.xliff2([]), "no unit with a source"),
    "a xliff in Latin-1": ("m.xlf", written.xliff(MANY).replace(b"Satz", b"S\xe4tze", 1), "not well-formed XML"),
    "a memory in UTF-16 that says UTF-8": ("m.tmx", written.tmx(MANY).decode().encode("utf-16"), "encoding"),
    "a catalogue of plain text": ("m.po", b"just some words\nand more\n", "expected 2"),
    "a damaged workbook": ("m.xlsx", overwritten(written.xlsx(MANY), 2200, 300), "not a workbook"),
    "a damaged parquet": ("m.parquet", overwritten(written.parquet(MANY), 40, 200), "damaged"),
    "a parquet that says too much": ("m.parquet", overwritten(written.parquet(MANY), -12, 8), "damaged"),
    "a gzip of nothing": ("m.po.gz", gzip.compress(b""), "empty"),
}
assert len(BROKEN) >= 40


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_file_is_one_line(tmp_path: Path, fault: str, tally):
    name, data, told = BROKEN[fault]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(HeedError) as caught:
        read_parallel(tmp_path / name)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)
    assert caught.value.fix
    assert (tmp_path / name).read_bytes() == data
    tally("R10 bad data", 1)


@pytest.mark.parametrize("at", range(300, 4300, 100))
def test_a_workbook_with_a_few_wrong_bytes_is_read_or_one_line(tmp_path: Path, at: int) -> None:
    data = written.xlsx(MANY)
    (tmp_path / "m.xlsx").write_bytes(overwritten(data, at % len(data), 3))
    with suppress(InputError):
        read_parallel(tmp_path / "m.xlsx")


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\x0b"])
def test_what_only_python_takes_for_a_line_end_is_a_blank_of_a_catalogue(tmp_path: Path, sign: str) -> None:
    data = written.po(MANY).decode().replace("sentence 4 ", f"sentence 4{sign}")
    (tmp_path / "m.po").write_text(data)
    assert all_pairs(read_parallel(tmp_path / "m.po")) == dict(MANY)


def test_marked_text_is_as_deep_as_it_is(tmp_path: Path):
    data = written.tmx(MANY).replace(b"sentence 4 ", b"<hi>" * 3000 + b"sentence" + b"</hi>" * 3000 + b" 4 ")
    (tmp_path / "m.tmx").write_bytes(data)
    assert all_pairs(read_parallel(tmp_path / "m.tmx")) == dict(MANY)


def test_a_language_may_be_written_in_capitals(tmp_path: Path):
    (tmp_path / "m.tmx").write_bytes(written.tmx(MANY).replace(b'xml:lang="de"', b'xml:lang="DE"', 7))
    assert all_pairs(read_parallel(tmp_path / "m.tmx", source="en", target="de")) == dict(MANY)


def test_rows_of_a_sheet_may_end_early(tmp_path: Path):
    from openpyxl import Workbook

    book = Workbook(write_only=True)  # as it does not say how wide it is, a row has the cells that are written
    sheet = book.create_sheet()
    for row in (["en", "de"], *MANY, ["no translation yet"]):
        sheet.append(row)
    book.save(tmp_path / "m.xlsx")
    corpus = read_parallel(tmp_path / "m.xlsx")
    assert all_pairs(corpus) == dict(MANY)
    assert "1 of 31 pairs dropped" in corpus.notes[0]


def test_a_day_in_a_sheet_is_a_day(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    days = [datetime(2024, 5, 6), date(2024, 5, 7), datetime(2024, 5, 8, 10, 30)]
    for row in [("en", "de"), *((f"day {number}", day) for number, day in enumerate(days)), *MANY]:
        sheet.append(row)
    book.save(tmp_path / "days.xlsx")
    read = all_pairs(read_parallel(tmp_path / "days.xlsx"))
    assert [read[f"day {number}"] for number in range(3)] == ["2024-05-06", "2024-05-07", "2024-05-08 10:30:00"]


def test_tags_that_phrase_has_as_words_are_left_out(tmp_path: Path):
    pairs = [(f"{{1>Press {{b>{n}<b}} now<1}} {{2}}", f"Jetzt {{b>{n}<b}} drücken") for n in range(4)]
    (path := tmp_path / "a.mxliff").write_bytes(written.xliff(pairs))
    assert all_pairs(read_parallel(path)) == {f"Press {n} now {{2}}": f"Jetzt {n} drücken" for n in range(4)}


def test_a_title_above_a_table_and_a_sheet_of_notes_are_no_pairs(tmp_path: Path):
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["To be read first"])
    for row in ([], ["Glossary of 2024"], ["English", "German", "Seen"], *MANY, ["alone"]):
        (book["Terms"] if "Terms" in book.sheetnames else book.create_sheet("Terms")).append(row)
    book.save(tmp_path / "a.xlsx")
    read = read_parallel(tmp_path / "a.xlsx")
    assert all_pairs(read) == dict(MANY)
    assert "a sheet 'Terms' (1 other sheet not read) from row 3, columns 'English' and 'German'" in read.taken[0]
    assert read.train.where(0).endswith(": row 4")
