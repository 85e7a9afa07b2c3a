"""The application, with all routes. Each module of routes makes a router for the models that are served."""

import ipaddress
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from heedful.errors import HeedError, InputError
from heedful.serve import (
    catalogue,
    chats,
    deepl,
    inside,
    libretranslate,
    openai,
    own,
    own_documents,
    pages,
    runs,
    transcriptions,
)
from heedful.serve.documents import Documents
from heedful.serve.engine import Engine
from heedful.serve.gate import LOOPBACK, Gate, Handler, Rules
from heedful.serve.hosted import Models
from heedful.serve.meters import Meters
from heedful.serve.public import Direct, path_of
from heedful.serve.refusals import Refused, as_refused, refusal

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")  # of a host


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What the routes need: the models by name, the documents that clients sent, the folders with runs, and whether
    clients must send a key."""

    models: Models
    documents: Documents
    meters: Meters
    runs: Sequence[Path]
    keyed: bool


# One line for each module of routes.
ROUTES: tuple[Callable[[Serving], APIRouter], ...] = (
    lambda serving: own.routes(serving.models, serving.meters),
    lambda serving: chats.routes(serving.models),
    lambda serving: openai.routes(serving.models),
    lambda serving: transcriptions.routes(serving.models),
    lambda serving: own_documents.routes(serving.models, serving.documents),
    lambda serving: libretranslate.routes(serving.models, serving.documents, keyed=serving.keyed),
    lambda serving: deepl.routes(serving.models, serving.documents),
    lambda serving: inside.routes(serving.models),
    lambda serving: catalogue.routes(serving.models),
    lambda serving: runs.routes(serving.runs),
    lambda serving: pages.routes(serving.models),
)


def rules_for(host: str, key: str | None, names: Sequence[str] = ()) -> Rules:
    """The rules for a server that listens at `host`; `names` are those by which a proxy forwards requests to it. Raises
    InputError where other machines can reach it and there is no key, and for an invalid name."""
    for name in names:
        if not NAME.fullmatch(name):
            what = f"{name!r} is not the name of a host"
            raise InputError(what, where="--name", fix="for example --name models.example.org, and no port")
    alone = host.lower() in LOOPBACK or _is_loopback(host)
    if not key and (names or not alone):
        where, what = ("--host", host) if not alone else ("--name", names[0])
        raise InputError(
            f"{what} is open to other machines", where=where, fix="give --api-key KEY, or set HEED_API_KEY"
        )
    hosts = LOOPBACK | {host.lower(), *(name.lower() for name in names)}
    return Rules(key=key, hosts=hosts if alone else hosts | {socket.gethostname().lower()}, addresses=not alone)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may lead anywhere
        return False


def open_routes(app: FastAPI) -> list[tuple[str, str]]:
    """The methods and paths of all routes."""
    routes = [*app.routes, *(route for router in app.state.routers for route in router.routes)]
    pairs = {(method, route.path) for route in routes if isinstance(route, Route) for method in route.methods or ()}
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]))


def make_app(models: Models, *, rules: Rules | None = None, runs: Path = Path("runs")) -> FastAPI:
    """All routes, behind the gate. Beside the models, what is in the folder `runs` can be looked at, and in the folders
    of their runs. The threads of the models end with the application."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await documents.close()
        for model in models.values():
            if isinstance(model, Engine):
                model.close()

    meters, documents = Meters(), Documents()
    for model in models.values():
        if isinstance(model, Engine):
            model.count_in(meters)
    app = FastAPI(
        title="heedful",
        servers=[{"url": "."}],
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    rules = rules or Rules()
    beside = (model.run.resolve().parent for model in models.values())
    folders = [*dict.fromkeys([runs.resolve(), *beside])]
    serving = Serving(models=models, documents=documents, meters=meters, runs=folders, keyed=rules.key is not None)
    app.state.routers = [routes(serving) for routes in ROUTES]
    for router in app.state.routers:
        app.include_router(router)
    handlers = _direct(app.state.routers)
    return behind_gate(app, rules, meters, handlers, lambda request, error: pages.missing_page(request, error, models))


def behind_gate(
    app: FastAPI,
    rules: Rules,
    meters: Meters,
    direct: Mapping[tuple[str, str], Handler] | None = None,
    missing: Callable[[Request, Refused], Response | None] = lambda request, error: None,
) -> FastAPI:
    """Puts the gate before an application, and turns its errors into answers; `missing` may answer where an address is
    not there."""

    async def refused(request: Request, error: Exception) -> Response:
        told = as_refused(error)
        page = missing(request, told) if told.status in (404, 405) else None
        return page or refusal(path_of(request.scope), told)

    for kind in (Refused, HeedError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, refused)
    app.add_middleware(lambda inner: Gate(inner, rules, meters, direct))
    return app


def _direct(routers: Iterable[APIRouter]) -> dict[tuple[str, str], Handler]:
    """The handlers, by method and path, of the routes that read the request themselves."""
    found = [route for router in routers for route in router.routes if isinstance(route, Direct) and route.alone]
    return {(method, route.path): route.get_route_handler() for route in found for method in route.methods or ()}
