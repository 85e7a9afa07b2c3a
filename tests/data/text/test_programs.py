"""Pairs as the programs write them that people have."""

import csv
import io
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pytest

import written
from heedful.data.text.columns import SOURCE, TARGET, Columns
from heedful.data.text.conversations import read_conversations
from heedful.data.text.glossary import entries_in, read_glossary
from heedful.data.text.rows import read_rows
from heedful.errors import InputError

MANY = [(f"sentence {i} of them", f"Satz {i} davon") for i in range(3)]


def rows_of(
    path: Path, data: str | bytes, source: str = "en", target: str = "de"
) -> tuple[list[tuple[str, ...]], Columns]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    rows, taken = read_rows(path, source, target)
    return [row for _, row in rows], taken


def marked(*texts: str) -> str:
    return " ".join(f'<mrk mtype="seg" mid="{i}">{text}</mrk>' for i, text in enumerate(texts, 1))


def test_marked_segments_of_a_unit_are_pairs_of_their_own(tmp_path: Path) -> None:
    """As Okapi and Trados mark them: one that is not translated yet is no part of its neighbour's translation."""
    left = f"<g id='2'>{marked('Ba <g>de</g>.', 'Gi.', 'Ko.')}</g>"
    unit = f"<trans-unit id='a'><source>Ba de. Gi. Ko.</source><seg-source>{left}</seg-source>{{}}</trans-unit>"
    units = [
        unit.format(f"<target>{marked('Ab ed.', '', 'Ok.')}</target>"),
        unit.format(f'<target state="new">{marked("Ab ed.", "Ig.", "Ok.")}</target>'),
        unit.format("<target>Ab ed. Ig. Ok.</target>"),
        f"<trans-unit id='b'><source>Lu. Ma.</source><target>{marked('Ul.', 'Am.')}</target></trans-unit>",
    ]
    data = written.xliff(MANY).decode().replace("<body>", f"<body>{''.join(units)}")
    pairs, taken = rows_of(tmp_path / "a.xlf", data)
    own = [("Ba de.", "Ab ed."), ("Ko.", "Ok."), ("Ba de. Gi. Ko.", "Ab ed. Ig. Ok."), ("Lu. Ma.", "Ul. Am.")]
    assert pairs == [*own, *MANY]
    assert taken.layout == "XLIFF, en and de, 4 units not translated left out"


def test_files_of_one_xliff_may_write_their_languages_in_other_capitals(tmp_path: Path) -> None:
    data = written.xliff(MANY).decode()
    file = data[data.index("<file") : data.index("</file>") + len("</file>")]
    other = file.replace('="en"', '="EN"').replace("sentence", "phrase")
    pairs, taken = rows_of(tmp_path / "a.xlf", data.replace(file, file + other))
    assert pairs == [*MANY, *((one.replace("sentence", "phrase"), two) for one, two in MANY)]
    assert (taken.source, taken.target) == ("en", "de")


def test_a_code_that_breaks_a_line_parts_words(tmp_path: Path) -> None:
    codes = ['<x id="1" ctype="lb"/>', "<ph id='1'>&lt;br/></ph>", "<it id='1' pos='open'>\n</it>"]
    data = written.xliff([("{}", "{}")] * 3).decode()
    assert (
        rows_of(tmp_path / "a.xlf", data.format(*(f"ba{code}de" for code in codes for _ in "12")))[0]
        == [("ba de",) * 2] * 3
    )
    data = written.tmx([("{}", "{}")]).decode()
    one, other = '<ph type="lb">\\n</ph>', '<ph type="struct">&lt;BR clear="all"></ph><ph>%s</ph>'
    assert rows_of(tmp_path / "a.tmx", data.format(f"ba{one}de", f"ba{other}de"))[0] == [("ba de",) * 2]
    data = written.xliff2([("ba{0}de", "ba{0}de")]).decode()
    assert rows_of(tmp_path / "b.xlf", data.format('<ph id="1" type="fmt" subType="xlf:lb"/>'))[0] == [("ba de",) * 2]


QUOTES = [("en", "de"), *MANY, ('He said "ba".', 'Er sagte "de".'), ("two\nlines", "zwei\nZeilen"), ('"gi"', "a\tb")]


def as_csv(rows: Sequence[tuple[str, str]], quoting: int) -> str:
    made = io.StringIO()
    csv.writer(made, dialect="excel-tab", quoting=quoting).writerows(rows)
    return made.getvalue()


@pytest.mark.parametrize("name", ["a.tsv", "a.txt"])
def test_a_table_with_tabs_may_have_the_quotes_of_csv(tmp_path: Path, name: str) -> None:
    """As pandas and Excel write them."""
    assert rows_of(tmp_path / name, as_csv(QUOTES, csv.QUOTE_MINIMAL))[0] == QUOTES[1:]
    plain = [("en", "de"), *MANY]
    assert rows_of(tmp_path / name, as_csv(plain, csv.QUOTE_ALL))[0] == MANY
    (tmp_path / name).write_text(as_csv([("question", "answer"), *QUOTES[1:]], csv.QUOTE_MINIMAL))
    talks = read_conversations(tmp_path / name)
    assert {(one["content"], other["content"]) for one, other in [*talks.train, *talks.valid]} == {*QUOTES[1:]}


@pytest.mark.parametrize(
    "lines",
    [
        ['"ba" and "de"\tx', '"gi ""ko"""\ty'],
        ['"ba.\t"de.', 'ko."\tlu."'],
        ['"ba"\t"de"', "gi\tko"],
        ['""ba""\tde'],
        ['"ba""\t"de"'],
        ['ba ""de""\tgi'],
        ['""\tba', '"\tde'],
    ],
)
def test_quotes_of_sentences_stay(tmp_path: Path, lines: list[str]) -> None:
    assert rows_of(tmp_path / "a.tsv", "\n".join(lines), "source", "target")[0] == [
        tuple(line.split("\t")) for line in lines
    ]


def test_cells_of_a_workbook_are_what_a_person_sees(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    escapes = ("a_x005F_x0041_ _xD83D__xDE00_", "_x2028_ _x41_ _xZZZZ_")
    for row in (("en", "de"), ("ba_x000D_\nde", "ab_x0009_ed_x0007_"), ("#NAME?", "ig"), ("ko", "ok"), escapes):
        book.active.append(row)
    book.active["A3"].data_type = "e"
    book.create_sheet("more").append(("lu", "ul"))
    book.create_sheet("empty")
    book.save(tmp_path / "a.xlsx")
    pairs, taken = rows_of(tmp_path / "a.xlsx", (tmp_path / "a.xlsx").read_bytes())
    decoded = ("a_x0041_ \U0001f600", "\u2028 _x41_ _xZZZZ_")
    assert pairs == [("ba\r\nde", "ab\ted\x07"), ("", "ig"), ("ko", "ok"), decoded]
    assert taken.layout == "a sheet 'Sheet' (1 other sheet not read), columns 'en' and 'de' of its header"


def tbx(*concepts: dict[str, str]) -> str:
    made = ""
    for concept in concepts:
        terms = (
            f'<langSet xml:lang="{name}"><tig><term>{term}</term></tig></langSet>' for name, term in concept.items()
        )
        made += f"<termEntry>{''.join(terms)}</termEntry>"
    return f"<martif type='TBX'><text><body>{made}</body></text></martif>"


def test_terms_of_a_language_are_those_of_its_regions_too(tmp_path: Path) -> None:
    path = tmp_path / "a.tbx"
    path.write_text(
        tbx({"en": "lift", "de-DE": "Aufzug", "de-AT": "Lift"}, {"en-US": "pot", "DE-de": "Topf"}, {"fr": "lit"})
    )

    def terms(source: str, target: str) -> dict[str, tuple[str, ...]]:
        return {term.source: term.forms for term in read_glossary(path, source=source, target=target).terms}

    assert terms("en", "de") == {"lift": ("Aufzug", "Lift"), "pot": ("Topf",)}
    assert terms("de-AT", "en") == {"Lift": ("lift",)}
    assert terms("de-DE", "en-GB") == {"Aufzug": ("lift",), "Topf": ("pot",)}
    others = path.read_text().replace("fr", "en")
    for source, target, what in (
        ("en", "it", "no 'it'; its languages are 'en', 'de-DE', 'de-AT', 'en-US', 'DE-de', 'fr'"),
        ("en", "eng", "source and target are both 'en'"),
        (SOURCE, TARGET, "from which this model translates is not told"),
        (SOURCE, "en", "no 'source'"),
    ):
        with pytest.raises(InputError, match=what):
            terms(source, target)
    path.write_text(others)
    assert terms("German", TARGET) == {"Aufzug": ("lift",), "Lift": ("lift",), "Topf": ("pot",)}


def test_only_a_line_end_ends_a_term() -> None:
    assert entries_in("ba\u2028de\tgi\x0cko\rlu\tma\r\nne\tpi") == [("ba de", "gi ko"), ("lu", "ma"), ("ne", "pi")]


@pytest.mark.parametrize(
    "text",
    [
        "English (US),German (Germany)\nba,de\n",
        "Source text,Target text\nba,de\n",
        "no,target_segment,source_segment\n1,de,ba\n",
        "sep=;\nen;de\nba;de\n",
        "SEP=\t\r\nEnglish\tGerman\r\nba\tde\r\n",
    ],
)
def test_headers_of_programs_are_none_of_the_pairs(tmp_path: Path, text: str) -> None:
    assert rows_of(tmp_path / "a.csv", text, SOURCE, TARGET)[0] == [("ba", "de")]


def test_characters_that_xml_cannot_hold_are_told_with_what_takes_them_out(tmp_path: Path) -> None:
    """As old memories have them."""
    wrong = "".join(f"&#x{n:x};&#x{n:02X};&#{n};" for n in range(32) if n not in (9, 10, 13))
    right = "&#9;&#x9;&#x20;&#32;&#x1F600;"
    data = written.tmx([("{}", "{}")]).decode().format(f"ba{wrong}{right}", "de")
    with pytest.raises(InputError, match="reference to invalid character number") as raised:
        rows_of(tmp_path / "a.tmx", data)
    command = re.search("sed -E 's/(.*)//g' a.tmx > new", str(raised.value.fix))
    assert command is not None
    assert rows_of(tmp_path / "a.tmx", re.sub(command[1], "", data))[0] == [("ba\t\t  \U0001f600", "de")]


@pytest.mark.parametrize("lines", ["", "\n"], ids=["on one line", "on its own line"])
@pytest.mark.parametrize(
    ("wrong", "right", "command"),
    [
        ("".join(chr(n) for n in range(1, 32) if n not in (9, 10, 13)), "", "tr -d"),
        (" R&D & more &amp; &#233;", " R&D & more & é", "sed"),
    ],
)
def test_what_is_not_xml_is_told_with_a_command_that_mends_it(
    tmp_path: Path, wrong: str, right: str, command: str, lines: str
) -> None:
    """As programs write a memory that put texts into it as they are."""
    data = written.tmx([("{}", "{}")]).decode().replace("<seg>", f"{lines}<seg>").format(f"ba{wrong}", "de")
    with pytest.raises(InputError, match="not well-formed") as raised:
        rows_of(tmp_path / "a.tmx", data)
    fix = str(raised.value.fix)
    assert fix.partition(": ")[2].startswith(f"{command} ")
    subprocess.run(["sh", "-c", fix.partition(": ")[2]], cwd=tmp_path, check=True)
    assert rows_of(tmp_path / "b.tmx", (tmp_path / "new").read_bytes())[0] == [(f"ba{right}", "de")]


def test_utf_8_that_is_called_utf_16_is_told_with_a_command_that_mends_it(tmp_path: Path) -> None:
    """As an export that was converted by hand."""
    body = written.tmx([("ba", "dé")]).decode().partition("?>")[2]
    data = f'<?xml version="1.0" encoding="UTF-16"?>{body}'
    with pytest.raises(InputError, match="encoding specified") as raised:
        rows_of(tmp_path / "a.tmx", data)
    subprocess.run(["sh", "-c", str(raised.value.fix).partition(": ")[2]], cwd=tmp_path, check=True)
    assert rows_of(tmp_path / "b.tmx", (tmp_path / "new").read_bytes())[0] == [("ba", "dé")]


def test_a_second_header_of_a_catalogue_is_none_of_the_pairs(tmp_path: Path) -> None:
    """As extractors write it for an empty element."""
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    text = f'{header}#: a.html\n{header}msgid "ba"\nmsgstr "de"\n'
    assert rows_of(tmp_path / "a.po", text)[0] == [("ba", "de")]


def test_unconfirmed_drafts_are_left_out(tmp_path: Path) -> None:
    """As Trados, memoQ and XLIFF itself say it; what was made by `heed translate --file` too."""
    whole = written.xliff([("ba", "BA"), ("de", "DE"), ("gi", "GI")]).decode()
    marks = "".join(f'<mrk mtype="seg" mid="{number}">{{}}</mrk>' for number in "123")
    own = re.sub("<trans-unit.*</trans-unit>", "<trans-unit>{}</trans-unit>", whole, flags=re.DOTALL)
    confirmed = zip("123", ["Draft", "Translated", "RejectedTranslation"], strict=True)
    defined = "".join(f'<s:seg id="{number}" conf="{conf}"/>' for number, conf in confirmed)
    sides = f"<source>ba de gi</source><seg-source>{marks.format('ba', 'de', 'gi')}</seg-source>"
    sides += f"<target>{marks.format('BA', 'DE', 'GI')}</target>"
    trados = own.format(f'{sides}<s:seg-defs xmlns:s="s">{defined}</s:seg-defs>')
    memoq = whole.replace("<xliff", '<xliff xmlns:mq="MQXliff"')
    for number, status in enumerate(["MachineTranslated", "ManuallyConfirmed", "PartiallyEdited"]):
        memoq = memoq.replace(f'id="{number}"', f'id="{number}" mq:status="{status}"')
    ours = whole.replace('state="final">BA', 'state="translated" state-qualifier="mt-suggestion">BA')
    ours = ours.replace('state="final">DE', 'state="final" state-qualifier="mt-suggestion">DE')
    ours = ours.replace('state="final">GI', 'state="translated" state-qualifier="leveraged-mt">GI')
    for data in (trados, memoq, ours):
        rows, taken = rows_of(tmp_path / "a.xliff", data)
        assert rows == [("de", "DE")]
        assert taken.layout == "XLIFF, en and de, 2 unconfirmed drafts left out"
    with pytest.raises(InputError, match=r"no pair to learn from \(XLIFF, en and de, 3 unconfirmed drafts left"):
        rows_of(tmp_path / "a.xliff", trados.replace('"Translated"', '"Draft"'))


def test_of_several_sheets_the_one_with_a_header_is_read(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["made by", "me"])
    sheet = book.create_sheet("Pairs")
    for row in [("en", "de"), *MANY]:
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    rows, taken = rows_of(tmp_path / "a.xlsx", (tmp_path / "a.xlsx").read_bytes())
    assert rows == MANY
    assert taken.layout == "a sheet 'Pairs' (1 other sheet not read), columns 'en' and 'de' of its header"
