"""The application: every route, in one place. Each module of routes gives a router, made for the models there are."""

from collections.abc import Mapping

from fastapi import FastAPI

from heedful.serve.hosted import Hosted

Models = Mapping[str, Hosted]


def make_app(models: Models) -> FastAPI:
    return FastAPI(title="heedful")
