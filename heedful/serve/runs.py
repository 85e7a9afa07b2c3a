"""The runs in the folders of those that are served: their results and curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from heedful.errors import MissingError
from heedful.serve.encoded import plain
from heedful.serve.refusals import Refused
from heedful.verbs.runs import list_runs, read_one


def routes(folders: Sequence[Path]) -> APIRouter:
    router = APIRouter()

    @router.get("/api/runs")
    def listed() -> JSONResponse:
        """All runs beside those that are served."""
        return JSONResponse({"runs": plain(list_runs(folders))})

    @router.get("/api/runs/{name}")
    def one(name: str) -> JSONResponse:
        """A run with its curve, recipe, card and scores."""
        try:
            found: Any = read_one(folders, name)
        except MissingError as error:
            raise Refused(404, error.what, error.fix or None) from None
        return JSONResponse(plain(found))

    return router
