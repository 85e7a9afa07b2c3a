"""Pairs as the programs write them that people have."""

from pathlib import Path

import written
from heedful.data.text.columns import Columns
from heedful.data.text.rows import read_rows

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
