"""The pages for a browser: a document for each view, and their scripts and styles. A document has the names of the
served models; everything else it asks of the other routes, like any client."""

import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from heedful.data.documents.read import READERS
from heedful.look import page as look_page
from heedful.serve.hosted import Hosted, Models, reads_of, reads_pictures
from heedful.serve.public import TRANSLATE, path_of
from heedful.serve.refusals import Refused

HERE = Path(__file__).parent / "page"
BESIDE = Path(look_page.__file__).parent  # the scripts and styles of the page of `heed look`
PARTS = (".js", ".css")


@dataclass(frozen=True)
class ServedPage:
    """A document. `fits`: whether it can show something of a model."""

    name: str
    title: str
    fits: Callable[[Hosted], bool] | None = None


def _looked_into(model: Hosted) -> bool:
    """Whether the page shows its attention: that to a sound is drawn by `heed look` alone."""
    return model.row.inside.look is not None and reads_of(model) != "sounds"


def _asked(verb: str) -> Callable[[Hosted], bool]:
    return lambda model: verb in model.row.asks


VIEWS = (
    ServedPage("start", "Models"),
    ServedPage(TRANSLATE, "Translate", _asked("align")),
    ServedPage("write", "Write", lambda model: bool(model.row.streams) and not model.row.converses),
    ServedPage("chat", "Chat", lambda model: bool(model.row.converses)),
    ServedPage("pictures", "Pictures", reads_pictures),
    ServedPage("sounds", "Sounds", lambda model: reads_of(model) == "sounds"),
    ServedPage("look", "Look inside", _looked_into),
    ServedPage("runs", "Runs"),
)
DOCS, MISSING = ServedPage("docs", "For programs"), ServedPage("missing", "Not here")
DOCUMENTS = Environment(loader=FileSystemLoader([HERE, BESIDE]), autoescape=True, undefined=StrictUndefined)


def routes(models: Models) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    def document(view: ServedPage) -> Callable[[], HTMLResponse]:
        return lambda: HTMLResponse(_written(view, models))

    for view in (*_shown(models), DOCS):
        path = "/" if view is VIEWS[0] else f"/{view.name}"
        router.add_api_route(path, document(view), methods=["GET"], response_class=HTMLResponse, name=view.title)

    @router.get("/page/{name}")
    async def part(name: str) -> Response:
        return part_of_page(name)

    @router.get("/favicon.ico")
    async def icon() -> Response:
        """None: browsers ask for one beside what is no document, such as openapi.json."""
        return Response(status_code=204)

    return router


def missing_page(request: Request, refused: Refused, models: Models) -> Response | None:
    """The answer to a browser that asked for an address which is not there; None for programs."""
    if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
        return None
    path = path_of(request.scope)
    written = _written(MISSING, models, root="../" * (path.count("/") - 1), path=path[:200], message=refused.message)
    return HTMLResponse(written, refused.status, refused.headers)


def _shown(models: Models) -> list[ServedPage]:
    return [view for view in VIEWS if view.fits is None or any(map(view.fits, models.values()))]


def _written(view: ServedPage, models: Models, *, root: str = "", **more: str) -> str:
    """`root`: the way from the address to that of the first page."""
    names = [name for name, model in models.items() if view.fits is None or view.fits(model)]
    views, kinds = _shown(models), [*READERS]
    template = DOCUMENTS.get_template(f"{view.name}.html")
    return template.render(view=view, views=views, models=names, kinds=kinds, root=root, **more)


def part_of_page(name: str) -> Response:
    """A script or a style sheet. Raises Refused for another name."""
    parts = {path.name: path for folder in (BESIDE, HERE) for path in folder.iterdir() if path.suffix in PARTS}
    if name not in parts:
        raise Refused(404, "there is no such part of the page")
    kind = mimetypes.types_map[parts[name].suffix]
    return Response(parts[name].read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})
