"""PO, the catalogues of gettext, which hold the translations of programs."""

import re
from collections import Counter
from collections.abc import Mapping
from gettext import c2py
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from heedful.data.lines import read_bytes, read_lines, text_lines
from heedful.data.text.columns import SOURCE, Columns, Rows
from heedful.data.text.formats.languages import two_languages
from heedful.data.text.headers import column_of
from heedful.errors import InputError, counted

CHARSET = re.compile(rb"charset=([\w.:-]+)")
MOST_LINES = 10_000
CONTINUED = re.compile(r'\s*(?:#~\s*"|#(?!~)|")?')  # the beginning of a line that adds to the one above it
COUNTS = (*range(200), 1000, 10**6, 2 * 10**6)  # of these, a form is for several, or for one number alone
GERMANIC = (2, "(n != 1)")
NO_LINE_END = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")  # line ends only for Python and polib


class PluralForms(NamedTuple):
    """The numbers of the forms of a translation: the one for 1, and the others, without a form for one number alone,
    such as 0 or 2."""

    singular: int
    others: tuple[int, ...]


def plural_forms(metadata: Mapping[str, str], where: str) -> PluralForms:
    """Returns the forms that the header of a catalogue declares (GNU gettext's manual, "Additional functions for plural
    forms"), or else those that are usual for its language. Raises InputError."""
    from babel.messages.plurals import PLURALS  # slow to import

    declared, language = metadata.get("Plural-Forms", ""), metadata.get("Language", "").replace("-", "_")
    found = re.search(r"plural\s*=(?!\s*EXPRESSION)([^;]*)", declared)
    usual = PLURALS.get(language) or PLURALS.get(language.partition("_")[0]) or GERMANIC
    try:
        form_of = c2py(found[1].strip() if found else usual[1])
        counts, singular = Counter(map(form_of, COUNTS)), form_of(1)
    except (ValueError, ArithmeticError):
        what = f"Plural-Forms that are no formula: {declared[:80]!r}"
        raise InputError(what, where=where, fix='write "nplurals=2; plural=(n != 1);" as the language has it') from None
    others = tuple(sorted(form for form, count in counts.items() if count > 1 and form != singular))
    return PluralForms(singular, others or (singular,))


def read_po(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the translated entries, numbered by their first lines; fuzzy and obsolete ones are left out. An entry with
    plural forms gives a pair for the singular, and one for each form that `plural_forms` has for the plural. Raises
    InputError or MissingError."""
    catalogue = catalogue_of("\n".join(_lines(path)), str(path))
    rows: list[tuple[int, tuple[str, str]]] = []
    entries = [entry for entry in catalogue if not entry.obsolete and entry.msgid]  # some tools write two headers
    forms, unused = plural_forms(catalogue.metadata, str(path)), 0
    for entry in entries:
        if entry.fuzzy or not entry.translated():
            continue
        if entry.msgid_plural:
            texts = entry.msgstr_plural
            singular, others = forms if len(texts) > 1 else (min(texts), (min(texts),))
            pairs = [(entry.msgid, texts[singular])] if singular in texts else []
            pairs += [(entry.msgid_plural, texts[form]) for form in others if form in texts]
            unused += len(texts.keys() - {singular, *others})
        else:
            pairs = [(entry.msgid, entry.msgstr)]
        rows += [(entry.linenum, pair) for pair in pairs]
    fuzzy = sum(entry.fuzzy for entry in entries)
    open_ = sum(not entry.translated() and not entry.fuzzy for entry in entries)
    said = catalogue.metadata.get("Language", "")
    turned = source != SOURCE and bool(said) and column_of(source, [said]) == 0
    there = (target if turned else source, said or target)
    left, right = two_languages(there, source, target, where=str(path))
    left_out = f", {fuzzy:,} fuzzy and {open_:,} untranslated entries left out" if fuzzy or open_ else ""
    left_out += f", {counted(unused, 'further plural form')} left out" if unused else ""
    layout = f"PO, {left} and {right}{left_out}"
    if not rows:
        raise InputError(f"no pair to learn from ({layout})", where=str(path), fix="give a file that is translated")
    columns = Columns(0, 1, left, right, True, layout)
    return ((line, (other, one)) for line, (one, other) in rows) if turned else iter(rows), columns


def catalogue_of(text: str, where: str) -> Any:
    """Parses a PO file by polib. Raises InputError, also for a string or a comment of more than `MOST_LINES` lines, of
    which the time grows with the square."""
    import polib

    number = 1
    for begin, lines in groupby(text.split("\n"), lambda line: CONTINUED.match(line)[0]):  # type: ignore[index]
        count = sum(1 for _ in lines)
        if begin.strip() and count > MOST_LINES:
            what = f"{count:,} lines of one string or comment, at most {MOST_LINES:,} are read"
            raise InputError(what, where=f"{where}:{number}", fix="try msgfmt --check")
        number += count
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
