"""Documents in our own API: sent, looked after, fetched."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from heedful.serve.documents import Documents
from heedful.serve.hosted import Models
from heedful.serve.own import model_for, openapi_body, refuse_stream, request_model, sent_files, settings_of
from heedful.serve.public import PASSAGE, Direct

DOCUMENTS = "/api/documents"


def routes(models: Models, documents: Documents) -> APIRouter:
    router = APIRouter(route_class=Direct)
    asks = {name: model.row.asks[PASSAGE]() for name, model in models.items() if PASSAGE in model.row.asks}
    if not asks:
        return router
    shape = request_model("document", [question.options for question in asks.values()])

    async def send(request: Request) -> Response:
        """Translates a document. The answer is its state, with the `id` by which to ask for it again."""
        given, ((name, data),) = await sent_files(request, shape, "document", most=1)
        if given["stream"]:
            refuse_stream("document")
        model = model_for(models, "translate documents", [*asks], given["model"])
        return JSONResponse(documents.add(name, data, model, settings_of(given)).record)

    @router.get(f"{DOCUMENTS}/{{name}}")
    async def state(name: str) -> JSONResponse:
        """How much of a document is translated."""
        return JSONResponse(documents.named(name).record)

    @router.get(f"{DOCUMENTS}/{{name}}/file")
    async def file(name: str) -> Response:
        """The translation, which is forgotten once it was fetched."""
        return documents.fetched(documents.named(name))

    @router.delete(f"{DOCUMENTS}/{{name}}")
    async def delete(name: str) -> Response:
        """Forgets a document, and stops its translation."""
        documents.drop(documents.named(name).id)
        return Response(status_code=204)

    router.add_api_route(
        DOCUMENTS, send, methods=["POST"], name="documents", openapi_extra=openapi_body(shape, texts=False, files=1)
    )
    return router
