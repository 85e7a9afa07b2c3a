"""OpenAI's protocol for speech: what is said in a file of sound, as text, with times, or as subtitles."""

from typing import Any, ClassVar, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from heedful.data.sound.subtitles import Segment, subtitles
from heedful.serve.gate import Rules
from heedful.serve.hosted import Hosted, Models
from heedful.serve.own import kept_files
from heedful.serve.public import TRANSCRIBE, Name, RequestBody, door, form_shown, read_upload
from heedful.serve.refusals import Refused


class TranscriptionRequest(RequestBody):
    """What `/v1/audio/transcriptions` is asked, besides the file."""

    IGNORED: ClassVar = {"chunking_strategy": "windows end at pauses, as it is"}
    ONLY: ClassVar = {
        "include[]": ("",),
        "prompt": ("",),
        "stream": ("false", False),
        "temperature": ("0", "0.0", 0, 0.0),
        "timestamp_granularities[]": ("segment",),
    }

    model: Name
    language: Name | None = None
    response_format: Literal["json", "text", "srt", "vtt", "verbose_json"] = "json"


def routes(models: Models) -> APIRouter:
    router = APIRouter(prefix="/v1/audio", route_class=door(most_bytes=Rules.form_bytes), tags=["OpenAI"])
    able = {name: hosted for name, hosted in models.items() if TRANSCRIBE in hosted.row.asks}
    if not able:
        return router

    @router.post("/transcriptions", openapi_extra=form_shown(TranscriptionRequest))
    async def transcriptions(request: Request) -> Response:
        asked, file = await read_upload(request, TranscriptionRequest, "file of sound")
        if asked.model not in able:
            what = f"The model `{asked.model}` does not exist, or turns no speech into text"
            raise Refused(404, what, param="model", code="model_not_found")
        async with kept_files([file], "sounds") as names:
            record = await _heard(able[asked.model], next(iter(names)), asked)
        return _shaped(record, asked.response_format)

    return router


async def _heard(hosted: Hosted, file: str, asked: TranscriptionRequest) -> dict[str, Any]:
    settings = {"language": asked.language} if asked.language else {}
    ((record,),) = await hosted.ask(TRANSCRIBE, [file], settings)
    return dict(record)


def _shaped(record: dict[str, Any], form: str) -> Response:
    """The answer in the format that is asked for."""
    segments = [Segment(**segment) for segment in record["segments"]]
    if form == "json":
        return JSONResponse({"text": record["text"]})
    if form == "verbose_json":
        timed = [{"id": number, **segment._asdict()} for number, segment in enumerate(segments)]
        head = {"task": TRANSCRIBE, "language": record.get("language", ""), "duration": record["seconds"]}
        return JSONResponse(head | {"text": record["text"], "segments": timed})
    return PlainTextResponse(f"{record['text']}\n" if form == "text" else subtitles(segments, f".{form}"))
