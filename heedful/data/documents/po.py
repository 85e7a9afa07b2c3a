"""PO, the catalogues of gettext: messages without a translation, or with a fuzzy one, are translated; fuzzy marks stay.

Translations to review are marked as fuzzy. In a message with plural forms, the form for 1 is translated from the
singular, and all others from the plural.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from heedful.data.documents.encodings import decoded
from heedful.data.documents.inline import Inline
from heedful.data.documents.messages import chooses, passages_of
from heedful.data.documents.passages import Document, Part, Passage, Placed, SegmentState
from heedful.data.documents.plain import lines_of
from heedful.data.text.formats.po import CHARSET, catalogue_of, plural_forms
from heedful.errors import InputError, counted

FIELD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)[ \t]*(?=\")")
QUOTED = re.compile(r'"((?:[^"\\\r\n]|\\.)*)"')
LINE = re.compile(rf"#.*|(?:{FIELD.pattern})?{QUOTED.pattern}|")
NO_LANGUAGE = re.compile(r'(?m)^("Language:)[ \t]*(\\n")')  # as in the output of xgettext
CODE = re.compile(r"[a-z]{2,3}(_[A-Z]{2})?")


@dataclass
class Entry:
    line: int
    begin: int  # its position in the file, after its comments
    fuzzy: bool = False
    quoted: dict[str, list[str]] = field(default_factory=dict)  # the source between each pair of quotes
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)  # the ranges of msgstr and its forms, in characters

    @cached_property
    def fields(self) -> dict[str, str]:
        return {name: "".join(parts) for name, parts in self.quoted.items()}


def po_document(data: bytes, where: str, target: str) -> Document:
    text, encode = decoded(data, where, says=CHARSET)
    metadata = catalogue_of(text, where).metadata
    language = metadata.get("Language", "")
    singular = f"msgstr[{plural_forms({**metadata, 'Language': language or target}, where).singular}]"
    for number, line in enumerate(lines_of(text), 1):
        if not LINE.fullmatch(line.strip()):
            what = "neither a comment nor a quoted string"
            raise InputError(what, where=f"{where}:{number}", fix="try msgfmt --check")
    entries = [entry for entry in _entries(text) if entry.fields.get("msgid")]
    if not entries:
        raise InputError("no message", where=where, fix="give a PO file of gettext")
    head = text[: entries[0].begin]
    if CODE.fullmatch(target) and (told := NO_LANGUAGE.sub(rf"\1 {target}\2", head, count=1)) != head:
        text = told + text[len(head) :]
        entries = [entry for entry in _entries(text) if entry.fields.get("msgid")]
    line_end = "\r\n" if "\r\n" in text else "\n"
    parts: list[Part] = []
    done = left = fuzzy = 0
    for entry in entries:
        said = [name for name in entry.spans if entry.fields[name]]
        if len(said) == len(entry.spans) and not entry.fuzzy:
            left += 1
            continue
        fuzzy += bool(said) and entry.fuzzy
        parts += [text[done : entry.begin], SegmentState("", "" if entry.fuzzy else f"#, fuzzy{line_end}")]
        done = entry.begin
        for name, (begin, end) in sorted(entry.spans.items(), key=lambda item: item[1]):
            if name in said and not entry.fuzzy:
                continue
            plural = "msgid_plural" in entry.fields and (name != singular or len(entry.spans) == 1)
            source = entry.fields["msgid_plural" if plural else "msgid"]
            parts += [text[done:begin], f"{name} ", *_quoted(source, entry.line, line_end)]
            done = end
    notes = [f"{counted(fuzzy, 'fuzzy entry')} translated anew, and still marked as fuzzy"] if fuzzy else []
    notes += [f"{counted(left, 'entry')} translated already, left as before"] if left else []
    return Document([*parts, text[done:]], lambda whole: encode("".join(whole)), tuple(notes), (("", language),))


def _quoted(source: str, line: int, line_end: str) -> Iterator[str | Passage]:
    """Yields a string; each line of its text is a passage."""
    lines = [(source, "")] if chooses(source) else re.findall(r"((?:(?!\\n)(?:\\.|[^\\]))*)(\\n|$)", source)
    lines = [(words, end) for words, end in lines if words or end]
    yield '"' if len(lines) < 2 else f'""{line_end}"'
    for number, (words, end) in enumerate(lines):
        run = [Inline(words, unescaped(words))]
        yield from passages_of(run, unescaped, write=_escaped, line=line, blanks=False)
        yield end
        if number + 1 < len(lines):
            yield f'"{line_end}"'
    yield '"'


def unescaped(text: str) -> str:
    import polib

    return str(polib.unescape(text))


def _escaped(placed: Placed) -> str:
    import polib

    return "".join(str(polib.escape(part)) if isinstance(part, str) else part.raw for part in placed)


def _entries(text: str) -> Iterator[Entry]:
    """Yields the entries that are not obsolete."""
    entry: Entry | None = None
    fuzzy = False
    name = ""
    position = 0
    for number, line in enumerate(lines_of(text), 1):
        bare = line.strip()
        found = FIELD.match(bare)
        ends = not bare or bare.startswith("#") or (found and found[1] in ("msgctxt", "msgid"))
        if ends and entry is not None and entry.spans:
            yield entry
            entry, fuzzy = None, False
        if bare.startswith("#"):
            flagged = bare.startswith("#,") and "fuzzy" in re.split(r"[,\s]+", bare)
            fuzzy = (fuzzy or flagged) and not bare.startswith("#~")
        elif found:
            entry = entry or Entry(number, position, fuzzy)
            name = found[1]
            entry.quoted[name] = [own[1] for own in QUOTED.finditer(bare, found.end())]
            if name.startswith("msgstr"):
                begin = position + line.index("msgstr")
                entry.spans[name] = (begin, position + len(line.rstrip()))
        elif bare.startswith('"') and entry is not None:
            entry.quoted[name] += [own[1] for own in QUOTED.finditer(bare)]
            if name in entry.spans:
                entry.spans[name] = (entry.spans[name][0], position + len(line.rstrip()))
        position += len(line)
    if entry is not None and entry.spans:
        yield entry
