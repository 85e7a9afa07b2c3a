"""`heed loop`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError, counted
from heedful.store import files
from heedful.tasks.shared.options import Device, Json, Run, Seed, Settings
from heedful.tasks.shared.terminal import PEOPLE, Command, say, user_name

if TYPE_CHECKING:
    from heedful.tasks.prefer.loop import Round


def loop(
    run: Run,
    prompts: Annotated[Path, typer.Option(help="A .txt file, a prompt a line, or a .jsonl file of prompts.")],
    out: Annotated[Path, typer.Option(help="Where the rounds go.")],
    ranker: Annotated[
        str, typer.Option(help="person, in the terminal; or a rule: module:function, file.py:function, command:WORDS.")
    ] = "person",
    rounds: Annotated[int, typer.Option(min=1, help="How many in all; more than before continues.")] = 2,
    answers: Annotated[
        int | None,
        typer.Option(
            min=2, max=9, help="How many answers to a prompt are put in order.", show_default="4; for a rule 9"
        ),
    ] = None,
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens of an answer.")] = 64,
    noise: Annotated[
        float,
        typer.Option(min=0.0, help="Of a rule that plays a person: the deviation of what it values."),
    ] = 0.0,
    who: Annotated[str | None, typer.Option(help="Who judges.", show_default="the user's name")] = None,
    settings: Settings = None,
    reward_settings: Annotated[
        list[str] | None, typer.Option("--reward-set", metavar="KEY=VALUE", help="The same for the reward.")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Let a model learn from judgements of its answers, again and again: answers, an order, a reward, PPO.

    --set is for the recipe of heed train prefer. What was interrupted is continued by the same command.

    Example: heed loop runs/chat --prompts prompts.txt --out runs/loop --ranker rules.py:value --rounds 2
    """
    import torch

    from heedful.run.device import chosen_device
    from heedful.tasks.prefer.loop import ANSWERS, PERSON, RULE_ANSWERS, Plan, Round, newest_kept
    from heedful.tasks.prefer.loop import loop as rounds_of_loop
    from heedful.tasks.shared.progress import ProgressLine

    if noise and ranker == PERSON:
        raise InputError("--noise blurs a rule, and a person judges", fix="leave it out, or name a --ranker")
    if who and ranker != PERSON:
        raise InputError("--who names a person, and a rule judges", fix="leave it out")
    plan = Plan(
        start=str(run),
        prompts=prompts,
        out=files.with_proper_name(out),
        ranker=ranker,
        rounds=rounds,
        answers=answers or (ANSWERS if ranker == PERSON else RULE_ANSWERS),
        tokens=tokens,
        noise=noise,
        seed=seed,
        who=(who or user_name()) if ranker == PERSON else "",
        settings=tuple(settings or ()),
        reward_settings=tuple(reward_settings or ()),
    )
    done: list[Round] = []
    for each in rounds_of_loop(plan, ProgressLine().follow, torch.device(chosen_device(device))):
        done.append(each)
        say(told(each))
        if not each.kept:
            say(f"warning: round {each.number} made the answers worse: it is not kept")
        if as_json:
            print(json.dumps(asdict(each)), flush=True)

    say(f"the policy to use: {newest_kept(plan, done)}")


def told(one: "Round") -> str:
    parts = [
        f"round {one.number}: {counted(one.judgements, 'judgement')}, "
        f"{one.pair_accuracy:.0%} of held-out pairs in order",
        f"reward {one.reward_before:.2f} -> {one.reward_after:.2f}",
        f"KL divergence {one.kl:.2f} nats an answer, {one.length:.1f} tokens",
    ]
    if one.win_rate is not None:
        parts.append(f"the rule gives {one.value_before:.2f} -> {one.value_after:.2f}, better {one.win_rate:.0%}")
    return "; ".join(parts)


COMMANDS = (Command("loop", loop, group=PEOPLE),)
