"""Subtitles in SubRip or WebVTT: the words of each cue. Numbers, times, settings, notes, styles and ruby readings are
kept."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from heedful.data.documents.encodings import decoded
from heedful.data.documents.inline import Inline, escaped, passages_from
from heedful.data.documents.passages import Document, Mark, Passage, Placed, Role, plain
from heedful.data.documents.plain import lines_of, rewrapped
from heedful.errors import InputError

ENDS = "\r\n"
TIMES = re.compile(r"\s*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}\s*-->\s*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}")
READING = r"<rt\b[^<>\n]*>[^<\n]*(?:</rt>|(?=</ruby>))"  # ruby readings
TAG = re.compile(READING + r"|<[^<>\n]*>|\{\\[^{}\n]*\}|[\u266a\u266b]+")  # and musical notes
NO_SIGN = 0xD800  # the first surrogate: these are not characters, and occur in no text
SIGN = re.compile(r"\s*(?:[-\u2013\u2014]+|(?:>|&gt;){2,})\s*(?=\S|$)")  # before a speaker's words
NAME = r"[^\W\d_a-z](?:[^\W_a-z]|[ .'-]){0,30}:\s"  # a speaker's name in capitals
SPEAKS = re.compile(rf"\s*(?:(?:{TAG.pattern})\s*)*(?:{SIGN.pattern}|{NAME})|\s*(?:<v[\s.]|[\u266a\u266b])")


def subtitles_document(data: bytes, where: str, kind: Literal["srt", "vtt"]) -> Document:
    text, encode = decoded(data, where)
    if kind == "vtt" and not text.startswith("WEBVTT"):
        raise InputError("does not begin with WEBVTT", where=f"{where}:1", fix="is it SubRip? then name it .srt")
    lines = [*lines_of(text), ""]
    times = {number for number, line in enumerate(lines) if TIMES.match(line)}
    if not times:
        what = "no cue: no line with times such as 00:00:01,000 --> 00:00:02,500"
        raise InputError(what, where=where, fix="give subtitles, or name the file .txt")
    numbers = {number - 1 for number in times if kind == "srt" and number and lines[number - 1].strip().isdigit()}
    parts: list[str | Passage] = []
    cue: list[str] = []  # lines with their ends
    within = False  # inside a cue; a SubRip cue may have blank lines
    for number, line in enumerate(lines):
        if within and line.strip(ENDS if kind == "vtt" else None) and number not in times | numbers:
            cue.append(line)
            continue
        parts += [*_cue(cue, kind, number - len(cue) + 1), line]
        within, cue = number in times or (within and kind == "srt"), []
    return Document(parts, lambda whole: encode("".join(whole)))


def _cue(lines: Sequence[str], kind: Literal["srt", "vtt"], number: int) -> list[str | Passage]:
    """Makes one passage of the lines of a cue, or one for each speaker; dashes and the like before a speaker's words
    are kept."""
    speaks = [bool(SPEAKS.match(line)) for line in lines]
    groups: list[list[str]] = []
    for line, begins in zip(lines, speaks, strict=True):
        if not groups or (begins and sum(speaks) > 1):
            groups.append([])
        groups[-1].append(line)
    made: list[str | Passage] = []
    for group in groups:
        run: list[Inline] = []
        for line in group:
            words = line.rstrip(ENDS)
            begin = 0
            for found in TAG.finditer(words):
                run += [*_texts(words[begin : found.start()], kind, run), _tag(found[0])]
                begin = found.end()
            run += _texts(words[begin:], kind, run)
            run.append(Inline(line[len(words) :], " "))
        filled = [line for line in group if line.strip()]
        made += passages_from(run, write=_write(filled, plain if kind == "srt" else escaped), line=number)
        number += len(group)
    return made


def _texts(words: str, kind: Literal["srt", "vtt"], before: Sequence[Inline]) -> list[Inline]:
    """Returns a text, preceded by the speaker's sign if it is the first text."""
    first = not any(part.text and part.text.strip() for part in before)
    sign = SIGN.match(words) if first else None
    kept, words = (sign[0], words[sign.end() :]) if sign else ("", words)
    return [Inline(kept), Inline(words, html.unescape(words) if kind == "vtt" else words)]


def _tag(tag: str) -> Inline:
    name = re.match(r"</?([A-Za-z]+)", tag)
    role: Role = "alone" if name is None or re.match(READING, tag) else "closes" if tag.startswith("</") else "opens"
    return Inline(tag, None, role, name[1] if name else "")


def _write(lines: Sequence[str], put: Callable[[Placed], str]) -> Callable[[Placed], str]:
    """Returns a function that writes a text in as many lines as before, of about equal length."""
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"

    def write(placed: Placed) -> str:
        marks = [part for part in placed if isinstance(part, Mark)]
        signs = iter(range(len(marks)))  # one character for each tag, so that no line breaks inside one
        said = put(
            [part if isinstance(part, str) else replace(part, raw=chr(NO_SIGN + next(signs))) for part in placed]
        )
        width = -(-len(said) // len(lines))
        while len(made := rewrapped(said, width, "", ending).split(ending)) > len(lines):
            width += 1
        return re.sub("[\ud800-\udfff]", lambda found: marks[ord(found[0]) - NO_SIGN].raw, ending.join(made))

    return write
