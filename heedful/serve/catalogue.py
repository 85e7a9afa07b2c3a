"""The models that are served: a few facts about each, and the figure of its architecture."""

import dataclasses
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from heedful.look.architecture_layout import picture
from heedful.serve.hosted import Hosted, Models
from heedful.serve.own import model_for
from heedful.verbs.draw import drawn_model


def routes(models: Models) -> APIRouter:
    router = APIRouter()

    @router.get("/api/models")
    def listed() -> dict[str, Any]:
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
        "example": about.get("example", row.example),
        "scores": model.scores,
        "outdated": model.outdated,
    }
