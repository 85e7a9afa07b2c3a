"""`heed transcribe`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.errors import InputError
from heedful.store import files as storage
from heedful.tasks.shared.line_by_line import answers_to_pictures
from heedful.tasks.shared.options import Device, Json, Run, option_of
from heedful.tasks.shared.terminal import Command, printable, say, tell
from heedful.tasks.transcribe.options import TranscribeOptions


def transcribe(
    run: Run,
    sounds: Annotated[
        list[str] | None, typer.Argument(help="Files of sound; without any, lines of standard input.")
    ] = None,
    language: Annotated[str, option_of("language", TranscribeOptions, metavar="LANGUAGE")] = "",
    times: Annotated[bool, typer.Option("--times", help="A line for each segment, with its times.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write subtitles: a .srt or .vtt file, for one sound.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Write down what is said in files of sound (WAV, FLAC, MP3, Ogg) of any length.

    Example: heed transcribe runs/speech talk.mp3 --out talk.srt
    """
    from heedful.data.sound.subtitles import KINDS, clock, subtitles
    from heedful.run.device import chosen_device
    from heedful.tasks.transcribe.use import Transcriber, Transcript, transcribed_record

    if out is not None and (out.suffix not in KINDS or sounds is None or len(sounds) != 1):
        raise InputError("subtitles are one .srt or .vtt file, of one sound", where=str(out), fix="--out talk.srt")
    if out is not None:
        storage.need_output(out)
    model = Transcriber.load(run, device=chosen_device(device))

    def heard(group: list[str]) -> list[Transcript]:
        return [model.transcribe(file, language=language) for file in group]

    for file, transcript in answers_to_pictures(sounds, heard, as_json=as_json, together=1, noun="sound"):
        plain = transcript.text if sounds and len(sounds) == 1 else f"{transcript.text}\t{printable(file)}"
        timed = (f"{clock(start, False)}\t{clock(end, False)}\t{text}" for start, end, text in transcript.segments)
        tell(transcribed_record(file, transcript), timed if times else plain, as_json=as_json)
        if out is not None:
            storage.write_output(out, subtitles(transcript.segments, out.suffix).encode())
            say(str(out))


COMMANDS = (Command("transcribe", transcribe),)
