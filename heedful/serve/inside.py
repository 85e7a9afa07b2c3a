"""Looking inside the models that are served: their attention weights, as numbers, pages or pictures."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field, create_model

from heedful.core.config import from_json
from heedful.run.task import Looked, NamedWeights
from heedful.serve.bodies import MULTIPART, media_type
from heedful.serve.encoded import in_json
from heedful.serve.hosted import Hosted, Models, reads_of
from heedful.serve.own import (
    Name,
    Sent,
    given_json,
    kept_files,
    model_for,
    openapi_body,
    refuse_long,
    refuse_stream,
    request_model,
    sent_files,
    settings_of,
)
from heedful.serve.refusals import Refused
from heedful.verbs.look import look_into, weights_of
from heedful.verbs.walk import walk_through

LOOK = "look"
MEDIA = {"json": "application/json", "html": "text/html", "svg": "image/svg+xml", "png": "image/png"}
OWN = ("kind", "query")  # keys of a request that are no options of the model
MOST_WEIGHTS = 1 << 22  # in one answer of JSON
SQUARED = 100  # a text of so many letters takes as long as reading it so often: weights grow with its square
OF_A_PICTURE = 1 << 20  # letters that are read as fast as one is looked into


def routes(models: Models) -> APIRouter:
    router = APIRouter()
    kinds = [model.row.inside.options() for model in models.values() if model.row.inside.look is not None]
    asked = request_model(LOOK, kinds)
    form = Field("json", description="The form of the answer.")
    fields: dict[str, Any] = {"kind": (Literal["json", "html", "svg", "png"], form)}
    viewed = create_model("view_request", __base__=asked, **fields)
    number = Annotated[int, Field(ge=0, le=4096)]
    fields = {
        "layer": (Name, Field(description="The name of a layer of attention.")),
        "head": (number, Field(0, description="A head of it, from 0.")),
        "query": (number, Field(0, description="The token that looks at others, from 0.")),
    }
    walked = create_model("walk_request", __base__=asked, **fields)

    async def look(request: Request) -> Response:
        """The attention weights, and the tokens of both sides."""
        able = [name for name, model in models.items() if model.row.inside.attention is not None]
        model, found = await _asked(request, asked, models, able, _weights)
        return await in_json({"model": model.name, **found})

    async def view(request: Request) -> Response:
        """The attention weights as data for a page (JSON), as a page in one file, or as a picture."""
        able = [name for name, model in models.items() if model.row.inside.look is not None]
        _, (kind, looked) = await _asked(request, viewed, models, able, _picture)
        return Response(looked.picture, media_type=MEDIA[kind])

    async def walk(request: Request) -> Response:
        """One head and one query, with every number between what comes in and what goes out."""
        able = [name for name, model in models.items() if model.row.inside.attention is not None]
        model, found = await _asked(request, walked, models, able, _walk)
        return await in_json({"model": model.name, **found})

    for path, answer, shape in (("look", look, asked), ("view", view, viewed), ("walk", walk, walked)):
        body = openapi_body(shape, files=1)
        router.add_api_route(f"/api/{path}", answer, methods=["POST"], name=path, openapi_extra=body)
    return router


async def _asked(
    request: Request,
    shape: type[BaseModel],
    models: Models,
    able: list[str],
    work: Callable[[Hosted, str, Mapping[str, Any], Any], Any],
) -> tuple[Hosted, Any]:
    """The requested model, and the result of `work`, which is run in the model's thread on the input and options."""
    sent: Sent = []
    if media_type(request.headers) == MULTIPART:
        given, sent = await sent_files(request, shape, "file")
    else:
        given = await given_json(request, shape)
    if given["stream"]:
        refuse_stream(LOOK)
    model = model_for(models, "look", able, given["model"])
    if ((reads := reads_of(model)) != "texts") != bool(sent):
        raise Refused(415, f"{model.name} reads {reads}", "send one of those")
    chosen = {key: value for key, value in settings_of(given).items() if key not in OWN}
    refuse_long([*chosen.items(), ("text", None if sent else _text(given))])
    options = from_json(model.row.inside.options(), chosen, where=LOOK, largest=None)
    if not sent:
        text = _text(given)
        return model, await model.alone(lambda: work(model, text, given, options), size=len(text) ** 2 // SQUARED)
    if len(sent) > 1:
        raise Refused(400, f"{len(sent)} {reads}", "look into one at a time")
    async with kept_files(sent, reads) as names:
        (file,) = names
        return model, await model.alone(lambda: work(model, file, given, options), size=OF_A_PICTURE)


def _text(given: Mapping[str, Any]) -> str:
    text = given["text"] if given["inputs"] is None else given["inputs"]
    if not isinstance(text, str):
        raise Refused(422, "one text is needed", 'give "text"')
    return text


def _weights(model: Hosted, what: str, given: Mapping[str, Any], options: Any) -> dict[str, Any]:
    found = weights_of(model.served, what, options)
    count = sum(each.weights.numel() for each in found.values())
    if count > MOST_WEIGHTS:
        raise Refused(413, f"{count:,} weights, at most {MOST_WEIGHTS:,} are sent", 'choose a "layer", or less text')
    layers = {name: each.weights.tolist() for name, each in found.items()}
    return {"tokens": _tokens(found), "layers": layers, "dims": {name: [*own.dims] for name, own in found.items()}}


def _tokens(found: Mapping[str, NamedWeights]) -> dict[str, list[str]]:
    """The tokens of keys and queries: "source" and "target", of the cross-attention if there is one. Patches of a
    picture have no tokens."""
    labels = [own.labels for own in found.values() if own.labels]
    if not labels:
        return {}
    crossing = [own for own in labels if own.get("query") != own.get("key")]
    own = (crossing or labels)[0]
    return {name: [*own[side]] for name, side in (("source", "key"), ("target", "query")) if side in own}


def _walk(model: Hosted, what: str, given: Mapping[str, Any], options: Any) -> dict[str, Any]:
    head, query = given["head"] or 0, given["query"] or 0
    return walk_through(model.served, what, options, layer=given["layer"], head=head, query=query)


def _picture(model: Hosted, what: str, given: Mapping[str, Any], options: Any) -> tuple[str, Looked]:
    kind = given["kind"] or "json"
    return kind, look_into(model.served, what, kind, options)
