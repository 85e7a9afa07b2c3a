"""`heed rank`: people rank answers, in the terminal or on a page."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import counted
from heedful.store import files
from heedful.store.refusals import refuse_read
from heedful.tasks.shared.options import Device, Json, Run, Seed
from heedful.tasks.shared.terminal import refuse_unused, say, user_name

if TYPE_CHECKING:
    from heedful.tasks.shared.ranking import Ranking

PORT = 8766


def rank(
    run: Run,
    prompts: Annotated[Path, typer.Option(help="A .txt file, a prompt a line, or a .jsonl file of prompts.")],
    out: Annotated[Path, typer.Option(help="Where the judgements are kept; what is there already is not asked again.")],
    who: Annotated[str | None, typer.Option(help="Who judges.", show_default="the user's name")] = None,
    page: Annotated[bool, typer.Option("--page", help="On a page in a browser, served to this machine alone.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the page; 0 takes a free one.")] = PORT,
    answers: Annotated[int, typer.Option(min=2, max=9, help="How many answers to a prompt.")] = 4,
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens of an answer.")] = 64,
    temperature: Annotated[float, typer.Option(min=0.01, help="At which they are drawn.")] = 1.0,
    seed: Seed = 0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Put a model's answers in order, for heed train reward: the best first, alike ones together.

    In the terminal, or without one a line of standard input for each prompt. Whatever is decided is kept at once.

    Example: heed rank runs/chat --prompts prompts.txt --out judgements.jsonl
    """
    from heedful.data.text.prompts import prompts_in
    from heedful.run.device import chosen_device
    from heedful.tasks.shared.ranking import Ranking, in_terminal
    from heedful.verbs.opened import open_model
    from heedful.verbs.ranking import answers_by

    if not page:
        refuse_unused("is of a page", {"--port": port != PORT}, fix="give --page")
    asked = prompts_in(prompts)
    files.need_output(out)
    refuse_read(out, [prompts])
    who = who or user_name()
    model = open_model(run, device=chosen_device(device))
    settings = {"tokens": tokens, "sampling": {"temperature": temperature, "seed": seed}}
    ranking = Ranking(out, asked, answers_by(model, answers, settings))
    if page:
        on_a_page(ranking, who, port, as_json=as_json)
    else:
        in_terminal(ranking, who)
    done, agreed = ranking.count(who), ranking.agreement()
    say(
        f"{out}: {counted(len(ranking.judgements), 'judgement')}, {done:,} of {len(ranking.prompts):,} prompts by {who}"
    )
    if agreed["items"]:
        tau, same = agreed.get("kendall_tau"), agreed.get("same_order")
        told = [f"Kendall's tau {tau:.2f}"] * (tau is not None) + [f"{same:.0%} of pairs alike"] * (same is not None)
        compared = counted(int(agreed["items"]), "prompt")
        say(f"agreement on {compared}: {', '.join(told) or 'nothing that can be compared'}")
    if as_json and not page:
        judged = {"judgements": len(ranking.judgements), "done": done, "prompts": len(ranking.prompts)}
        print(json.dumps({"out": str(out), "who": who, **judged, "agreement": agreed}))


def on_a_page(ranking: "Ranking", who: str, port: int, *, as_json: bool) -> None:
    from heedful.cli.serving import listen, run_until_ended, url_of
    from heedful.serve.ranking import make_ranking_app
    from heedful.serve.server import make_server

    with listen("127.0.0.1", port) as listening:
        url = url_of("127.0.0.1", listening.getsockname()[1])

        def ready() -> None:
            if as_json:
                print(json.dumps({"url": url}), flush=True)
            say(f"{url} asks; Ctrl-C ends it, and all that was decided is kept")

        run_until_ended(make_server(make_ranking_app(ranking, who), ready=ready), listening)
