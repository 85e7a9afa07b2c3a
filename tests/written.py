"""Pairs as written by translators' tools, for the tests of readers."""

import io
import json
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

import openpyxl
import polib
import pyarrow
import pyarrow.parquet

Pairs = Sequence[tuple[str, str]]


def tmx(pairs: Pairs, one: str = "en", other: str = "de") -> bytes:
    units = "".join(
        f'<tu tuid="{i}"><prop type="x">note</prop><tuv xml:lang="{one}"><seg>{escape(source)}</seg></tuv>'
        f'<tuv xml:lang="{other}"><seg>{escape(target)}</seg></tuv></tu>\n'
        for i, (source, target) in enumerate(pairs)
    )
    head = f'<header creationtool="t" segtype="sentence" srclang="{one}" datatype="plaintext" o-tmf="t"/>'
    whole = f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">{head}<body>{units}</body></tmx>'
    return whole.encode()


def xliff(pairs: Pairs, one: str = "en", other: str = "de") -> bytes:
    units = "".join(
        f'<trans-unit id="{i}"><source>{escape(source)}</source><target state="final">{escape(target)}</target>'
        "</trans-unit>\n"
        for i, (source, target) in enumerate(pairs)
    )
    return (
        '<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        f'<file original="a" source-language="{one}" target-language="{other}" datatype="plaintext"><body>{units}'
        "</body></file></xliff>"
    ).encode()


def xliff2(pairs: Pairs, one: str = "en", other: str = "de") -> bytes:
    units = "".join(
        f'<unit id="{i}"><segment state="final"><source>{escape(source)}</source>'
        f"<target>{escape(target)}</target></segment></unit>\n"
        for i, (source, target) in enumerate(pairs)
    )
    return (
        '<?xml version="1.0"?><xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" '
        f'srcLang="{one}" trgLang="{other}"><file id="f">{units}</file></xliff>'
    ).encode()


def po(pairs: Pairs, one: str = "en", other: str = "de") -> bytes:
    catalogue = polib.POFile()
    catalogue.metadata = {"Language": other, "Content-Type": "text/plain; charset=UTF-8"}
    catalogue.extend(polib.POEntry(msgid=source, msgstr=target) for source, target in pairs)
    return str(catalogue).encode()


def xlsx(pairs: Pairs, one: str = "en", other: str = "de") -> bytes:
    book = openpyxl.Workbook()
    for row in ((one, other), *pairs):
        book.active.append(row)
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def parquet(pairs: Pairs, one: str = "en", other: str = "de") -> bytes:
    rows = [{"translation": {one: source, other: target}} for source, target in pairs]
    data = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), data)
    return data.getvalue()


def jsonl(pairs: Pairs, one: str = "en", other: str = "de") -> bytes:
    return "".join(json.dumps({one: source, other: target}) + "\n" for source, target in pairs).encode()


WRITERS: dict[str, Callable[[Pairs], bytes]] = {
    "tmx": tmx,
    "xlf": xliff,
    "xliff": xliff2,
    "po": po,
    "xlsx": xlsx,
    "parquet": parquet,
    "jsonl": jsonl,
}
