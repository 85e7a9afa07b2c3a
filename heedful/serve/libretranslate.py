"""LibreTranslate's protocol (https://libretranslate.com/docs): texts and documents from one language to another.

The language of a text is not detected: a translator's vocabulary is that of both sides, and cannot tell them apart.
"auto" works where only one of the served languages leads to the target.
"""

import asyncio
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from heedful.data.documents.read import READERS
from heedful.serve.documents import DOCUMENT_BYTES, Documents
from heedful.serve.hosted import Models
from heedful.serve.languages import ServedPair, in_english, listed, pair_for, pairs, said, translated, unique
from heedful.serve.public import Name, RequestBody, body_shown, door, form_shown, read_body, read_upload
from heedful.serve.refusals import DOWNLOAD, Refused

MOST_CHARACTERS = 50_000  # of a request
MOST_TEXTS = 500
MOST_ALTERNATIVES = 10
AUTOMATIC = "auto"  # a source that is to be detected

Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]


class LibreTranslateRequest(RequestBody):
    """The body of `/translate`. `model`, our own key, chooses among several models with this pair of languages."""

    IGNORED: ClassVar = {"api_key": "it is read before the rest", "secret": "a key of the project's own pages"}

    q: Annotated[list[Text], Field(fail_fast=True)] | Text
    source: Name
    target: Name
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Field(ge=0, le=MOST_ALTERNATIVES)] = 0
    model: Name | None = None


class DocumentRequest(RequestBody):
    """The fields of `/translate_file` beside the file."""

    IGNORED: ClassVar = {"api_key": "it is read before the rest"}

    source: Name
    target: Name
    model: Name | None = None


def routes(models: Models, documents: Documents, *, keyed: bool = False) -> APIRouter:
    router = APIRouter(route_class=door(most_bytes=16 * MOST_CHARACTERS), tags=["LibreTranslate"])

    @router.post("/translate", openapi_extra=body_shown(LibreTranslateRequest))
    async def translate(request: Request) -> Response:
        asked = await read_body(request, LibreTranslateRequest)
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        if len(texts) > MOST_TEXTS or sum(map(len, texts)) > MOST_CHARACTERS:
            what = f"q: at most {MOST_TEXTS} texts and {MOST_CHARACTERS:,} characters at once"
            raise Refused(400, what, param="q")
        pair = _pair(models, asked)
        how: dict[str, Any] = {"markup": asked.format, "n": asked.alternatives + 1, **pair.settings}
        found = await translated(pair.hosted, texts, **how)
        columns: dict[str, list[Any]] = {"translatedText": [own[0] for own in found]}
        if asked.alternatives:
            columns["alternatives"] = [own[1:] for own in found]
        if asked.source == AUTOMATIC:
            columns["detectedLanguage"] = [{"confidence": 0, "language": listed(pair.source)} for _ in texts]
        one = isinstance(asked.q, str)
        return JSONResponse({key: values[0] if one else values for key, values in columns.items()})

    @router.get("/languages")
    async def languages() -> list[dict[str, Any]]:
        found = pairs(models)
        targets: dict[str, list[str]] = {}
        for pair in found:
            targets.setdefault(listed(pair.source), []).append(listed(pair.target))
        return [_language(source) | {"targets": unique(own)} for source, own in targets.items()]

    @router.post("/detect")
    async def detect() -> None:
        what = "the language of a text is not detected here: give its source language"
        raise Refused(400, f"{what}, of {said(pair.source for pair in pairs(models))}")

    @router.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        first = next(iter(pairs(models)), None)
        return {
            "apiKeys": keyed,
            "keyRequired": keyed,
            "charLimit": MOST_CHARACTERS,
            "filesTranslation": first is not None,
            "supportedFilesFormat": [*READERS] if first is not None else [],
            "frontendTimeout": 500,
            "suggestions": False,
            "language": {
                "source": _language(listed(first.source)) if first else None,
                "target": _language(listed(first.target)) if first else None,
            },
        }

    # `open_routes` does not look into included routers.
    router.routes.extend(_document_routes(models, documents).routes)
    return router


def _document_routes(models: Models, documents: Documents) -> APIRouter:
    router = APIRouter(route_class=door(most_bytes=DOCUMENT_BYTES), tags=["LibreTranslate"])

    @router.post("/translate_file", openapi_extra=form_shown(DocumentRequest))
    async def translate_file(request: Request) -> Response:
        """Answers when the document is translated, with the address to fetch it from."""
        asked, file = await read_upload(request, DocumentRequest)
        pair = _pair(models, asked)
        document = documents.add(file.name, file.content, pair.hosted, pair.settings)
        try:
            await documents.ended(document)
        except asyncio.CancelledError:  # the client has left
            documents.drop(document.id)
            raise
        if document.error is not None:
            documents.drop(document.id)
            raise document.error
        name = quote(f"{document.id}.{document.translated_name}", safe="")
        url = f"{request.url.scheme}://{request.headers['host']}{request.scope.get('root_path', '')}{DOWNLOAD}{name}"
        warnings = {"warnings": document.warnings} if document.warnings else {}
        return JSONResponse({"translatedFileUrl": url, **warnings})

    @router.get(f"{DOWNLOAD}{{name}}")
    async def download_file(name: str) -> Response:
        return documents.fetched(documents.named(name.partition(".")[0]))

    return router


def _pair(models: Models, asked: LibreTranslateRequest | DocumentRequest) -> ServedPair:
    source = None if asked.source == AUTOMATIC else asked.source
    return pair_for(_named(pairs(models), asked.model), source, asked.target, keys=("source", "target"))


def _named(found: list[ServedPair], name: str | None) -> list[ServedPair]:
    """The translators with this name, or all."""
    chosen = [pair for pair in found if name in (None, pair.hosted.name)]
    if not chosen and name is not None:
        names = ", ".join(pair.hosted.name for pair in found)
        raise Refused(400, f"model: {name!r} is not served as a translator: choose {names}", param="model")
    return chosen


def _language(code: str) -> dict[str, Any]:
    return {"code": code, "name": in_english(code)}
