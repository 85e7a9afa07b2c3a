"""A page on which people rank answers, served to this machine only."""

import threading
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, Field

from heedful.data.text.judgements import prompt_value
from heedful.serve.app import behind_gate
from heedful.serve.gate import Rules
from heedful.serve.meters import Meters
from heedful.serve.own import STRICT
from heedful.serve.pages import HERE, part_of_page
from heedful.serve.public import Name
from heedful.serve.refusals import Refused
from heedful.tasks.shared.ranking import Item, Ranking


class Decided(BaseModel):
    """An order of the answers to a prompt, by their numbers from 0; an empty order skips the prompt."""

    model_config = STRICT
    who: Name
    prompt: str = Field(max_length=1_000_000)
    candidates: list[str] = Field(max_length=64)
    order: list[list[int]] = Field(max_length=64)


class Who(BaseModel):
    model_config = STRICT
    who: Name


def make_ranking_app(ranking: Ranking, who: str) -> FastAPI:
    """The page and its routes; `who` is the judge unless another name is entered."""
    app = FastAPI(title="heed rank", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.include_router(routes(ranking, who))
    return behind_gate(app, Rules(), Meters())


def routes(ranking: Ranking, who: str) -> APIRouter:
    router, turn = APIRouter(), threading.Lock()  # requests run in different threads
    documents = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined)

    @router.get("/")
    def page() -> HTMLResponse:
        return HTMLResponse(documents.get_template("rank.html").render(who=who))

    @router.get("/page/{name}")
    async def part(name: str) -> Any:
        return part_of_page(name)

    @router.get("/rank/next")
    def following(who: str) -> dict[str, Any]:
        return asked(who)

    @router.post("/rank/judge")
    def judge(decided: Decided) -> dict[str, Any]:
        with turn:
            item = ranking.next(decided.who)
            if item != Item(decided.prompt, tuple(decided.candidates)):
                raise Refused(409, "this prompt is not the next one any more", "judge the one that is shown now")
            ranking.judge(decided.who, item, tuple(map(tuple, decided.order)))
        return asked(decided.who)

    @router.post("/rank/undo")
    def undo(person: Who) -> dict[str, Any]:
        if not ranking.undo(person.who):
            raise Refused(409, "nothing to take back")
        return asked(person.who)

    def asked(who: str) -> dict[str, Any]:
        """The next item to judge, and the progress."""
        item = ranking.next(who)
        far = {"who": who, "done": ranking.count(who), "prompts": len(ranking.prompts)}
        if item is None:
            return far | {"over": True, "out": Path(ranking.out).name, "agreement": ranking.agreement()}
        shown = prompt_value(item.prompt)
        return far | {"over": False, "prompt": item.prompt, "shown": shown, "candidates": list(item.candidates)}

    return router
