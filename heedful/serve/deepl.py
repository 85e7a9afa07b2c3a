"""DeepL's protocol (https://developers.deepl.com/docs) for texts and documents, which translators' tools use.

A tag inside a sentence moves with its words, by the model's attention; other tags separate texts. There is no quota:
456 is never answered.
"""

import asyncio
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from heedful.data.documents.markup import refuse_malformed
from heedful.serve.bodies import is_form
from heedful.serve.documents import DOCUMENT_BYTES, Documents, StoredDocument
from heedful.serve.glossaries import GLOSSARY_BYTES, Glossaries, NewGlossary, StoredGlossary
from heedful.serve.hosted import Models
from heedful.serve.languages import ServedPair, code, in_english, listed, pair_for, pairs, translated, unique
from heedful.serve.public import Name, RequestBody, body_shown, door, fields_of, form_shown, read_body, read_upload
from heedful.serve.refusals import DEEPL, Refused, shaped

MOST_BYTES = 128 * 1024  # of a request, as at DeepL
MOST_TEXTS = 50
SOON = 1.0  # seconds that an answer about a document waits for its end: their client asks again after 5 only
NO_LIMIT = 1_000_000_000_000  # the limit of DeepL's unlimited accounts
# DeepL's clients refuse English and Portuguese without a region.
REGIONS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-PT", "PT-BR")}

Tags = Annotated[list[Annotated[str, Field(max_length=2000)]], Field(max_length=200)]


class DeepLRequest(RequestBody):
    """The body of `/v2/translate`."""

    IGNORED: ClassVar = {
        "auth_key": "it is read before the rest",
        "preserve_formatting": "capitals and punctuation are never changed after translating",
        "outline_detection": "a tag is inline where its parent has text of its own",
        "tag_handling_version": "names one of their parsers",
        "model_type": "names one of their models: one here serves a pair of languages",
        "enable_beta_languages": "names some of their languages",
    }
    ONLY: ClassVar = {
        "formality": ("default", "prefer_more", "prefer_less"),
        "context": ("",),
        "glossary_ids": ([],),
        "style_id": ("",),
        "custom_instructions": ([],),
        "translation_memory_id": ("",),
        "translation_memory_threshold": (),
    }
    LISTS: ClassVar = frozenset({"text", "ignore_tags", "splitting_tags", "non_splitting_tags"})

    text: Annotated[list[Annotated[str, Field(max_length=MOST_BYTES)]], Field(min_length=1, max_length=MOST_TEXTS)]
    target_lang: Name
    source_lang: Name | None = None
    glossary_id: Annotated[str, Field(max_length=200)] | None = None
    split_sentences: Literal["0", "1", "nonewlines"] | None = None
    tag_handling: Literal["xml", "html"] | None = None
    ignore_tags: Tags | None = None
    splitting_tags: Tags | None = None
    non_splitting_tags: Tags | None = None
    show_billed_characters: bool = False


class DocumentRequest(RequestBody):
    """The fields of `/v2/document` beside the file."""

    IGNORED: ClassVar = {
        "auth_key": DeepLRequest.IGNORED["auth_key"],
        "enable_beta_languages": DeepLRequest.IGNORED["enable_beta_languages"],
        "enable_document_minification": "documents are not too large with their pictures",
    }
    ONLY: ClassVar = {
        key: DeepLRequest.ONLY[key]
        for key in ("formality", "style_id", "translation_memory_id", "translation_memory_threshold")
    } | {"glossary_ids": ("",)}

    target_lang: Name
    source_lang: Name | None = None
    filename: Name | None = None
    glossary_id: Annotated[str, Field(max_length=200)] | None = None
    output_format: Annotated[str, Field(max_length=20)] | None = None


class DocumentKey(RequestBody):
    """The body of a question about a document."""

    IGNORED: ClassVar = {"auth_key": DeepLRequest.IGNORED["auth_key"]}

    document_key: Name


class Usage:
    """The characters that were translated since the server was started."""

    characters = 0


def routes(models: Models, documents: Documents) -> APIRouter:
    router = APIRouter(prefix="/v2", route_class=door(most_bytes=MOST_BYTES), tags=["DeepL"])
    kept, usage = Glossaries(), Usage()

    @router.post("/translate", openapi_extra=body_shown(DeepLRequest))
    async def translate(request: Request) -> Response:
        asked = await read_body(request, DeepLRequest)
        pair, glossary = _asked_for(models, kept, asked)
        if asked.tag_handling == "xml":
            await asyncio.to_thread(_refuse_malformed, asked.text)
        terms = {} if glossary is None else {"glossary": glossary.entries}
        found = await translated(pair.hosted, asked.text, **pair.settings, **terms, **_settings(asked))
        usage.characters += sum(map(len, asked.text))
        made: list[dict[str, Any]] = [
            {"detected_source_language": listed(pair.source).partition("-")[0].upper(), "text": own[0]} for own in found
        ]
        if asked.show_billed_characters:
            made = [one | {"billed_characters": len(text)} for one, text in zip(made, asked.text, strict=True)]
        return JSONResponse({"translations": made})

    async def languages(request: Request) -> Response:
        sent = request.query_params.getlist("type")
        sent += (await fields_of(request)).get("type", []) if is_form(request.headers) else []
        (kind,) = sent if len(sent) == 1 else ("",) if sent else ("source",)
        if kind not in ("source", "target"):
            raise Refused(400, 'type: choose "source" or "target"', param="type")
        found = pairs(models)
        if kind == "source":
            names = unique(listed(pair.source).partition("-")[0] for pair in found)
            return JSONResponse([{"language": name.upper(), "name": in_english(name)} for name in names])
        targets = (listed(pair.target) for pair in found)
        names = unique(name for target in targets for name in REGIONS.get(target, (target.upper(),)))
        told = [{"language": name, "name": in_english(name.lower()), "supports_formality": False} for name in names]
        return JSONResponse(told)

    router.get("/languages")(languages)
    router.post("/languages")(languages)

    async def used() -> dict[str, Any]:
        """The characters since the server was started."""
        return {"character_count": usage.characters, "character_limit": NO_LIMIT}

    router.get("/usage")(used)
    router.post("/usage")(used)

    @router.get("/glossary-language-pairs")
    async def glossary_pairs() -> dict[str, Any]:
        found = dict.fromkeys((code(pair.source), code(pair.target)) for pair in pairs(models))
        return {"supported_languages": [{"source_lang": source, "target_lang": target} for source, target in found]}

    # `open_routes` does not look into included routers.
    router.routes.extend(_glossary_routes(models, kept).routes)
    router.routes.extend(_document_routes(models, kept, documents, usage).routes)
    return router


def _document_routes(models: Models, kept: Glossaries, documents: Documents, usage: Usage) -> APIRouter:
    router = APIRouter(prefix="/v2/document", route_class=door(most_bytes=DOCUMENT_BYTES), tags=["DeepL"])

    @router.post("", openapi_extra=form_shown(DocumentRequest))
    async def upload(request: Request) -> Response:
        asked, file = await read_upload(request, DocumentRequest)
        name = asked.filename or file.name
        suffix = PurePath(name).suffix.lower().removeprefix(".")
        if asked.output_format not in (None, "", suffix):
            raise Refused(400, f"output_format: a document stays what it is, {suffix}", param="output_format")
        pair, glossary = _asked_for(models, kept, asked)
        terms = {} if glossary is None else {"glossary": [line.split("\t") for line in glossary.entries.split("\n")]}
        document = documents.add(name, file.content, pair.hosted, {**pair.settings, **terms})
        return JSONResponse({"document_id": document.id, "document_key": document.key})

    @router.post("/{document_id}", openapi_extra=body_shown(DocumentKey))
    async def status(request: Request) -> Response:
        document = await named(request)
        await documents.ended(document, SOON)
        said: dict[str, Any] = {"document_id": document.id, "status": document.status}
        if document.status == "translating" and document.seconds_left is not None:
            said["seconds_remaining"] = document.seconds_left
        if document.status == "done":
            said["billed_characters"] = document.characters
        if document.error is not None:
            said["error_message"] = shaped(DEEPL, document.error)["message"]
        if document.warnings:
            said["warnings"] = document.warnings
        return JSONResponse(said)

    @router.post("/{document_id}/result", openapi_extra=body_shown(DocumentKey))
    async def result(request: Request) -> Response:
        document = await named(request)
        made = documents.fetched(document)
        usage.characters += document.characters
        return made

    async def named(request: Request) -> StoredDocument:
        asked = await read_body(request, DocumentKey)
        return documents.named(request.path_params["document_id"], asked.document_key)

    return router


def _glossary_routes(models: Models, kept: Glossaries) -> APIRouter:
    door_of_glossaries = door(most_bytes=GLOSSARY_BYTES)
    router = APIRouter(prefix="/v2/glossaries", route_class=door_of_glossaries, tags=["DeepL"])

    @router.post("", openapi_extra=body_shown(NewGlossary))
    async def create(request: Request) -> Response:
        sent = await read_body(request, NewGlossary)
        pair = pair_for(pairs(models), sent.source_lang, sent.target_lang, keys=("source_lang", "target_lang"))
        return JSONResponse((await kept.keep(sent, pair)).record, 201)

    @router.get("")
    async def listing() -> dict[str, Any]:
        return {"glossaries": [one.record for one in kept.values()]}

    @router.get("/{glossary_id}")
    async def one(glossary_id: str) -> dict[str, Any]:
        return kept.named(glossary_id).record

    @router.get("/{glossary_id}/entries")
    async def entries(glossary_id: str) -> Response:
        return Response(kept.named(glossary_id).entries, media_type="text/tab-separated-values")

    @router.delete("/{glossary_id}")
    async def delete(glossary_id: str) -> Response:
        del kept[kept.named(glossary_id).id]
        return Response(status_code=204)

    return router


def _asked_for(
    models: Models, kept: Glossaries, asked: DeepLRequest | DocumentRequest
) -> tuple[ServedPair, StoredGlossary | None]:
    """The model and its languages, and the glossary, that are asked for. Raises Refused."""
    if asked.glossary_id and asked.source_lang is None:
        raise Refused(400, "source_lang: it is needed where a glossary is used", param="source_lang")
    pair = pair_for(pairs(models), asked.source_lang, asked.target_lang, keys=("source_lang", "target_lang"))
    return pair, _of_this_pair(kept.named(asked.glossary_id), pair) if asked.glossary_id else None


def _of_this_pair(found: StoredGlossary, pair: ServedPair) -> StoredGlossary:
    """The glossary. Raises Refused if it is for other languages."""
    if (found.source, found.target) != (code(pair.source), code(pair.target)):
        what = f"glossary_id: its terms are translated from {found.source} to {found.target}"
        raise Refused(400, what, param="glossary_id")
    return found


def _settings(asked: DeepLRequest) -> dict[str, Any]:
    """The settings for the model: how texts are split, and by which tags."""
    how = asked.split_sentences or ("nonewlines" if asked.tag_handling == "html" else "1")
    named = {"ignored": asked.ignore_tags, "breaking": asked.splitting_tags, "inline": asked.non_splitting_tags}
    names = {key: [name.strip() for part in own or () for name in part.split(",")] for key, own in named.items()}
    return {"markup": asked.tag_handling or "text", "lines": how == "1", "sentences": how != "0", **names}


def _refuse_malformed(texts: list[str]) -> None:
    for number, text in enumerate(texts, 1):
        try:
            refuse_malformed(text)
        except ValueError as error:
            raise Refused(400, f"tag_handling: text {number} is {error}", param="text") from None
