"""Documents in our own API: sent, looked after, fetched."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import UploadFile

from heedful.serve.documents import Documents
from heedful.serve.gate import strict_json
from heedful.serve.hosted import Models
from heedful.serve.own import STATUSES, model_for, request_model, settings_of, validated
from heedful.serve.public import PASSAGE, Direct, form_of
from heedful.serve.refusals import Refused

DOCUMENTS = "/api/documents"


def routes(models: Models, documents: Documents) -> APIRouter:
    router = APIRouter(route_class=Direct)
    asks = {name: model.row.asks[PASSAGE]() for name, model in models.items() if PASSAGE in model.row.asks}
    if not asks:
        return router
    shape = request_model("document", [question.options for question in asks.values()])

    async def send(request: Request) -> Response:
        """Translates a document. The answer is its state, with the `id` by which to ask for it again."""
        async with form_of(request, max_files=1, max_fields=1, max_part_size=1 << 20) as form:
            file, said = form.get("file"), form.get("json", "{}")
            if not isinstance(file, UploadFile) or not isinstance(said, str) or {*form} - {"file", "json"}:
                raise Refused(422, "a document is sent in the field file, all else in json")
            given = validated(shape, strict_json(said.encode("utf-8", "surrogatepass"), depth=32))
            name, data = file.filename or "", await file.read()
        if given["inputs"] is not None or given["text"] is not None or given["stream"]:
            raise Refused(422, "a document is sent as a file", "leave out inputs, text and stream")
        model = model_for(models, "translate documents", [*asks], given["model"])
        return JSONResponse(documents.add(name, data, model, settings_of(given)).record)

    @router.get(f"{DOCUMENTS}/{{name}}")
    async def state(name: str) -> JSONResponse:
        return JSONResponse(documents.named(name).record)

    @router.get(f"{DOCUMENTS}/{{name}}/file")
    async def file(name: str) -> Response:
        """The translation, which is forgotten once it was fetched."""
        return documents.fetched(documents.named(name))

    @router.delete(f"{DOCUMENTS}/{{name}}")
    async def delete(name: str) -> Response:
        documents.drop(documents.named(name).id)
        return Response(status_code=204)

    router.add_api_route(DOCUMENTS, send, methods=["POST"], name="documents", openapi_extra=_form(shape))
    return router


def _form(shape: Any) -> dict[str, Any]:
    file = {"type": "string", "format": "binary"}
    fields = {"file": file, "json": {"type": "string", "description": "a JSON object with model and options"}}
    form = {"type": "object", "properties": fields, "required": ["file"], "additionalProperties": False}
    said = {str(status): {"description": what} for status, what in STATUSES.items()}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}}, "responses": said}
