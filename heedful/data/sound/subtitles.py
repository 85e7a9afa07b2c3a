"""Transcripts as subtitles: SubRip (.srt) and WebVTT (.vtt)."""

from collections.abc import Sequence
from typing import NamedTuple

KINDS = (".srt", ".vtt")


class Segment(NamedTuple):
    """What is said between two times, in seconds."""

    start: float
    end: float
    text: str


def subtitles(segments: Sequence[Segment], kind: str) -> str:
    """The content of a file of this kind, a cue for each segment with a text."""
    comma = kind == ".srt"
    cues = [
        f"{number}\n{clock(segment.start, comma)} --> {clock(segment.end, comma)}\n{segment.text}\n"
        for number, segment in enumerate((segment for segment in segments if segment.text), 1)
    ]
    return "\n".join(cues if comma else ["WEBVTT\n", *cues])


def clock(seconds: float, comma: bool) -> str:
    """Hours, minutes, seconds and thousandths, behind a comma or a point."""
    whole, thousandths = divmod(round(1000 * seconds), 1000)
    minutes, seconds = divmod(whole, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{',' if comma else '.'}{thousandths:03}"
