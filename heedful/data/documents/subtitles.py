"""Subtitles in SubRip or WebVTT: the words of each cue. Numbers, times, settings, notes, styles and ruby readings are
kept."""

import html
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
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
TAG_SIGN = "\ud800"  # a surrogate, which is no character, and occurs in no text
SIGN = re.compile(r"\s*(?:[-\u2013\u2014]+|(?:>|&gt;){2,})\s*(?=\S|$)")  # before a speaker's words
NAME = r"[^\W\d_a-z](?:[^\W_a-z]|[ .'-]){0,30}:\s"  # a speaker's name in capitals
TAGS = rf"\s*(?:(?:{TAG.pattern})\s*)*"
SIGNED = re.compile(rf"{TAGS}(?!\s*-\d){SIGN.pattern}")  # and no number below zero
SPEAKS = re.compile(rf"{TAGS}(?:{SIGN.pattern}|{NAME})|\s*(?:<v[\s.]|[\u266a\u266b])")


def subtitles_document(data: bytes, where: str, kind: Literal["srt", "vtt"]) -> Document:
    text, encode = decoded(data, where)
    if kind == "vtt" and not text.startswith("WEBVTT"):
        raise InputError("does not begin with WEBVTT", where=f"{where}:1", fix="is it SubRip? then name it .srt")
    lines = [*lines_of(text), ""]
    times = {number for number, line in enumerate(lines) if TIMES.match(line)}
    if not times:
        what = "no cue: no line with times such as 00:00:01,000 --> 00:00:02,500"
        raise InputError(what, where=where, fix="give subtitles, or name the file .txt")
    ends = {number - 1 for number in times if kind == "srt" and number and lines[number - 1].strip().isdigit()}
    ends |= times
    parts: list[str | Passage] = []
    cue: list[str] = []  # lines with their ends
    within = False  # inside a cue; a SubRip cue may have blank lines
    for number, line in enumerate(lines):
        if within and line.strip(ENDS if kind == "vtt" else None) and number not in ends:
            cue.append(line)
            continue
        parts += [*_cue(cue, kind, number - len(cue) + 1), line]
        within, cue = number in times or (within and kind == "srt"), []
    return Document(parts, lambda whole: encode("".join(whole)))


def _cue(lines: Sequence[str], kind: Literal["srt", "vtt"], number: int) -> list[str | Passage]:
    """Makes one passage of the lines of a cue, or one for each speaker; dashes and the like before a speaker's words
    are kept. Where two speak, only the second may have a dash."""
    speaks = [bool(SPEAKS.match(line)) for line in lines]
    several = sum(speaks) > 1 or any(map(SIGNED.match, lines[1:]))
    groups: list[list[str]] = []
    for line, begins in zip(lines, speaks, strict=True):
        if not groups or (begins and several):
            groups.append([])
        groups[-1].append(line)
    made: list[str | Passage] = []
    for group in groups:
        run: list[Inline] = []
        spoken = False  # whether there was a text; the first one may begin with a speaker's sign
        for line in group:
            words = line.rstrip(ENDS)
            for text, tag in zip_longest(TAG.split(words), TAG.findall(words)):
                sign = None if spoken else SIGN.match(text)
                kept, text = (sign[0], text[sign.end() :]) if sign else ("", text)
                run += [Inline(kept), Inline(text, html.unescape(text) if kind == "vtt" else text)]
                run += [_tag(tag)] if tag else []
                spoken |= bool(text.strip())
            run.append(Inline(line[len(words) :], " "))
        filled = [line for line in group if line.strip()]
        made += passages_from(run, write=_write(filled, plain if kind == "srt" else escaped), line=number)
        number += len(group)
    return made


def _tag(tag: str) -> Inline:
    name = re.match(r"</?([A-Za-z]+)", tag)
    role: Role = "alone" if name is None or re.match(READING, tag) else "closes" if tag.startswith("</") else "opens"
    return Inline(tag, None, role, name[1] if name else "")


def _write(lines: Sequence[str], put: Callable[[Placed], str]) -> Callable[[Placed], str]:
    """Returns a function that writes a text in as many lines as before, of about equal length."""
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"

    def write(placed: Placed) -> str:
        tags = (part.raw for part in placed if isinstance(part, Mark))
        # One character for each tag, so that no line breaks inside one.
        said = put([part if isinstance(part, str) else replace(part, raw=TAG_SIGN) for part in placed])

        def fits(width: int) -> bool:
            return rewrapped(said, width, "", ending).count(ending) < len(lines)

        narrowest = -(-len(said) // len(lines))
        width = bisect_left(range(narrowest, len(said)), True, key=fits) + narrowest
        return re.sub(TAG_SIGN, lambda _: next(tags), rewrapped(said, width, "", ending))

    return write
