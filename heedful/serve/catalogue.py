"""The models that are served: a few facts about each, and the figure of its architecture."""

import dataclasses
from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from heedful.errors import HeedError
from heedful.look.architecture_layout import picture
from heedful.serve.hosted import Hosted, Models
from heedful.serve.languages import code
from heedful.serve.own import model_for
from heedful.serve.public import PASSAGE
from heedful.store import files
from heedful.verbs.draw import drawn_model


def routes(models: Models) -> APIRouter:
    router = APIRouter()

    @router.get("/api/models")
    def listed() -> dict[str, Any]:
        """The served models: what each does, its verbs, languages and scores."""
        return {"models": [described(model) for model in models.values()]}

    @router.get("/api/models/{name}/figure")
    def figure(name: str, dark: bool = False) -> Response:
        """As `heed draw` draws it."""
        model = model_for(models, "can be drawn", [*models], name)
        return Response(
            picture(drawn_model(model.served.model, model.run.resolve().name), "svg", dark=dark),
            media_type="image/svg+xml",
        )

    return router


def _targets(model: Hosted) -> dict[str, list[str]] | None:
    """For a model of several languages: the targets of each source language."""
    targets: dict[str, list[str]] = {}
    for source, target in model.row.directions()(model.served.about) if model.row.directions else []:
        targets.setdefault(source, []).append(target)
    return targets or None


def _example(model: Hosted, languages: tuple[str, str] | None) -> str:
    """A text to begin with, in the language that the model reads; "" where none is known."""
    about, row = model.served.about, model.row
    if "example" in about or languages is None:
        return str(about.get("example", row.example))
    with suppress(HeedError, AttributeError):  # a run that was imported has no such file
        if text := files.read_json(model.run / "data.json").get("example"):
            return str(text)
    return row.example if code(languages[0]) == "en" else ""


def described(model: Hosted) -> dict[str, Any]:
    """A model's name, what it does, its verbs, and its scores."""
    row, about = model.row, model.served.about
    asks = {verb: part() for verb, part in row.asks.items()}
    languages = None if row.languages is None else row.languages()(about)
    return {
        "name": model.name,
        "task": row.name,
        "does": row.does,
        "engine": model.engine,
        "parameters": sum(weight.numel() for weight in model.served.model.parameters()),
        "verbs": {
            verb: {"reads": ask.reads, "options": [field.name for field in dataclasses.fields(ask.options)]}
            for verb, ask in asks.items()
            if not ask.local
        },
        "streams": row.streams or None,
        "converses": row.converses or None,
        "languages": None if languages is None else [*languages],
        "targets": _targets(model),
        "looks": row.inside.look is not None,
        "looks_with": [each.name for each in dataclasses.fields(row.inside.options())],
        "embeds": row.embedder is not None,
        "documents": PASSAGE in row.asks,
        "example": _example(model, languages),
        "scores": model.scores,
        "outdated": model.outdated,
    }
