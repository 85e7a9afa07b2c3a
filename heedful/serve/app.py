"""The application: every route, in one place. Each module of routes gives a router, made for the models there are."""

import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from heedful.errors import HeedError, InputError
from heedful.serve import catalogue, chats, deepl, inside, libretranslate, openai, own, pages, runs
from heedful.serve.engine import Engine
from heedful.serve.gate import LOOPBACK, Gate, Rules
from heedful.serve.hosted import Hosted
from heedful.serve.meters import Meters
from heedful.serve.refusals import Refused, refusal, refused

Models = Mapping[str, Hosted]


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What routes are made for: the models by their names, the folder in which runs are looked for, and whether who
    asks must have a key."""

    models: Models
    meters: Meters
    runs: Path
    keyed: bool


# A line for each module of routes.
ROUTES: tuple[Callable[[Serving], APIRouter], ...] = (
    lambda serving: own.routes(serving.models, serving.meters),
    lambda serving: chats.routes(serving.models),
    lambda serving: openai.routes(serving.models),
    lambda serving: libretranslate.routes(serving.models, keyed=serving.keyed),
    lambda serving: deepl.routes(serving.models),
    lambda serving: inside.routes(serving.models),
    lambda serving: catalogue.routes(serving.models),
    lambda serving: runs.routes(serving.runs),
    lambda serving: pages.routes(serving.models),
)


def rules_for(host: str, key: str | None) -> Rules:
    """Who may ask a server that listens at this host. Raises InputError for one that others reach, without a key."""
    if host in LOOPBACK or host.startswith("127."):
        return Rules(key=key, hosts=LOOPBACK | {host})
    if not key:
        raise InputError(
            f"{host} is open to other machines", where="--host", fix="give --api-key KEY, or set HEED_API_KEY"
        )
    return Rules(key=key, hosts=LOOPBACK | {host.lower(), socket.gethostname().lower()}, addresses=True)


def open_routes(app: FastAPI) -> list[tuple[str, str]]:
    """The methods and paths of all routes."""
    routes = [*app.routes, *(route for router in app.state.routers for route in router.routes)]
    pairs = {(method, route.path) for route in routes if isinstance(route, Route) for method in route.methods or ()}
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]))


def make_app(
    models: Models,
    *,
    rules: Rules | None = None,
    meters: Meters | None = None,
    runs: Path = Path("runs"),
) -> FastAPI:
    """All routes, behind the gate. As it ends, so do the threads of the models."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for model in models.values():
            if isinstance(model, Engine):
                model.close()

    meters = meters or Meters()
    for model in models.values():
        if isinstance(model, Engine):
            model.meters = meters
    app = FastAPI(title="heedful", docs_url=None, redoc_url=None, lifespan=lifespan, redirect_slashes=False)
    rules = rules or Rules()
    serving = Serving(models=models, meters=meters, runs=runs, keyed=rules.key is not None)
    app.state.routers = [routes(serving) for routes in ROUTES]
    for router in app.state.routers:
        app.include_router(router)
    return behind_gate(app, rules, meters)


def behind_gate(app: FastAPI, rules: Rules, meters: Meters) -> FastAPI:
    """The application, which every request comes to through the gate, and whose errors are answers."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HeedError, _failed)
    app.add_exception_handler(HTTPException, _not_found)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_middleware(_gate(rules, meters))
    return app


def _gate(rules: Rules, meters: Meters) -> Callable[[ASGIApp], Gate]:
    return lambda app: Gate(app, rules, meters)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal(request.scope["path"], error)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HeedError)
    return refusal(request.scope["path"], refused(error))


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(request.scope["path"], Refused(error.status_code, str(error.detail), None, error.headers))


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return refusal(request.scope["path"], Refused(422, own.first_fault(error.errors())))
