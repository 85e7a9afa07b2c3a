"""`heed act`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.tasks.decide.options import ActOptions, Asked
from heedful.tasks.shared.line_by_line import answer_lines, one_each
from heedful.tasks.shared.options import Device, Json, Run, Seed, Weights
from heedful.tasks.shared.terminal import Command

if TYPE_CHECKING:
    from heedful.tasks.decide.use import Decision


def act(
    run: Run,
    episodes: Annotated[
        list[str] | None,
        typer.Argument(help="Episodes as JSON, or names of environments; without any, lines of standard input."),
    ] = None,
    asked: Asked = None,
    seed: Seed = 0,
    device: Device = "auto",
    weights: Weights = "float32",
    as_json: Json = False,
) -> None:
    """Decide what to do next in an episode, or play one in an environment.

    An episode is {"observations": [...], "actions": [...], "rewards": [...]}, with one observation more, that of now.

    Example: heed act runs/decide key-to-door --asked 1
    """
    from heedful.tasks.decide.use import Decider
    from heedful.tasks.decide.use import act as decisions
    from heedful.tasks.shared.served import load_in_bits

    decider = load_in_bits(Decider.load, run, device, weights)

    def answers(lines: list[str], first: int) -> Iterator[Sequence["Decision"]]:
        return one_each(decisions(decider, lines, ActOptions(asked=asked, seed=seed)))

    def show(decision: "Decision") -> str:
        actions = " ".join(_shown(action) for action in decision["actions"])
        return actions if decision["reached"] is None else f"{decision['reached']:g}\t{actions}"

    answer_lines(episodes, answers, show, as_json=as_json)


def _shown(action: object) -> str:
    return ",".join(f"{number:.6g}" for number in action) if isinstance(action, list) else str(action)


COMMANDS = (Command("act", act),)
