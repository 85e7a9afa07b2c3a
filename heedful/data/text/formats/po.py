"""PO, the catalogues of gettext, which hold the translations of programs."""

import re
from pathlib import Path
from typing import Any

from heedful.data.lines import read_bytes, read_lines, text_lines
from heedful.data.text.columns import SOURCE, Columns, Rows
from heedful.data.text.formats.languages import two_languages
from heedful.data.text.headers import column_of
from heedful.errors import InputError

CHARSET = re.compile(rb"charset=([\w.:-]+)")
NO_LINE_END = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")  # line ends only for Python and polib


def read_po(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the translated entries, numbered by their first lines; fuzzy and obsolete ones are left out. An entry with
    plural forms gives two pairs, with the first form and the last. Raises InputError or MissingError."""
    catalogue = catalogue_of("\n".join(_lines(path)), str(path))
    rows: list[tuple[int, tuple[str, str]]] = []
    entries = [entry for entry in catalogue if not entry.obsolete]
    for entry in entries:
        if entry.fuzzy or not entry.translated():
            continue
        if entry.msgid_plural:
            forms = [entry.msgstr_plural[number] for number in sorted(entry.msgstr_plural)]
            rows += [(entry.linenum, (entry.msgid, forms[0])), (entry.linenum, (entry.msgid_plural, forms[-1]))]
        else:
            rows.append((entry.linenum, (entry.msgid, entry.msgstr)))
    fuzzy = sum(entry.fuzzy for entry in entries)
    open_ = sum(not entry.translated() and not entry.fuzzy for entry in entries)
    said = catalogue.metadata.get("Language", "")
    turned = source != SOURCE and bool(said) and column_of(source, [said]) == 0
    there = (target if turned else source, said or target)
    left, right = two_languages(there, source, target, where=str(path))
    left_out = f", {fuzzy:,} fuzzy and {open_:,} untranslated entries left out" if fuzzy or open_ else ""
    layout = f"PO, {left} and {right}{left_out}"
    if not rows:
        raise InputError(f"no pair to learn from ({layout})", where=str(path), fix="give a file that is translated")
    columns = Columns(0, 1, left, right, True, layout)
    return ((line, (other, one)) for line, (one, other) in rows) if turned else iter(rows), columns


def catalogue_of(text: str, where: str) -> Any:
    """Parses a PO file by polib. Raises InputError."""
    import polib

    try:
        return polib.pofile(NO_LINE_END.sub(" ", f"{text}\n"))
    except (OSError, ValueError) as error:
        line = re.search(r"line (\d+)", str(error))
        at = f"{where}:{line[1]}" if line else where
        raise InputError("not a PO file: its entries do not parse", where=at, fix="try msgfmt --check") from None


def _lines(path: Path) -> list[str]:
    """Reads the lines in UTF-8, or in the encoding that the header names."""
    try:
        return read_lines(path)
    except InputError as error:
        if not error.what.endswith("is not UTF-8"):
            raise
        data = read_bytes(path)
        found = CHARSET.search(data[:4096])
        try:
            return text_lines(data.decode(found[1].decode() if found else "utf-8"), path)
        except (LookupError, UnicodeDecodeError):
            raise error from None
