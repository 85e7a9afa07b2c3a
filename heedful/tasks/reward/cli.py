"""`heed reward`."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError
from heedful.tasks.shared.line_by_line import answer_lines, one_each
from heedful.tasks.shared.options import Device, Json, Run
from heedful.tasks.shared.terminal import PEOPLE, Command, printable

if TYPE_CHECKING:
    from heedful.tasks.reward.use import Rewarded


def reward(
    run: Run,
    prompt: Annotated[
        str | None,
        typer.Argument(help="What is answered; without any, lines of standard input: a prompt, a TAB, an answer."),
    ] = None,
    answers: Annotated[list[str] | None, typer.Argument(help="Answers to it.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Tell how good answers are to a reward: the larger, the better, where the prompt is the same.

    Example: heed reward runs/reward "What is the capital of France?" "Paris." "Lyon."
    """
    from heedful.run.device import chosen_device
    from heedful.run.task import NOTHING
    from heedful.tasks.reward.use import RewardModel, reward_lines

    if prompt is not None and not answers:
        raise InputError("a prompt without an answer", fix="give answers behind it")
    model = RewardModel.load(run, device=chosen_device(device))

    def found(lines: list[str], first: int) -> Iterator[Sequence["Rewarded"]]:
        return one_each(reward_lines(model, lines, NOTHING))

    def show(one: "Rewarded") -> str:
        return f"{one['reward']:.3f}\t{printable(str(one['prompt']))}\t{printable(one['answer'])}"

    given = ({"prompt": prompt, "answer": answer} for answer in answers or ())
    lines = None if prompt is None else [json.dumps(one, ensure_ascii=False) for one in given]
    answer_lines(lines, found, show, as_json=as_json)


COMMANDS = (Command("reward", reward, group=PEOPLE),)
