"""What the commands share: the application, words that several take, and how things are told."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="One attention core, and every transformer family on it: train, measure, use and look inside.",
)

Run = Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="End with one line of JSON.")]
Engine = Annotated[
    str | None, typer.Option(help="ctranslate2: search by that library, the faster one on a CPU.", show_default="own")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 and so on; auto: CUDA where there is one.")]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe, such as train.lr=3e-4.")
]

SHARES = {"map": "mAP", "map50": "mAP@0.5", "map75": "mAP@0.75", "miou": "mean IoU"}


def say(text: str) -> None:
    """What a person reads goes to standard error, so that standard output is the result alone."""
    print(text, file=sys.stderr, flush=True)


def unescaped(text: str) -> str:
    r"""A shell hands \n and \t on as two characters each."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def input_lines() -> Iterator[list[str]]:
    """Standard input in groups of lines: one at a time at a terminal, many where they come from a file."""
    size = 1 if sys.stdin.isatty() else 512
    group: list[str] = []
    reader = open(0, encoding="utf-8", errors="surrogateescape", newline="\n", closefd=False)  # noqa: SIM115
    for line in reader:
        group.append(line.rstrip("\r\n"))
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def told(name: str, value: float | int) -> str:
    from heedful.tasks.scores import LABELS

    if isinstance(value, int):
        return f"{value:,} {name.replace('_', ' ')}"
    if name == "exact":
        return f"{100 * value:.1f} % exactly right"
    return (
        f"{LABELS[name]} {value:.1f}" if name in LABELS else f"{SHARES.get(name, name.replace('_', ' '))} {value:.3f}"
    )


class Progress:
    """One line that changes in place at a terminal; a plain line now and then elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.score = ""

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def follow(self, events: Iterator[Any]) -> Any:
        """Draws the events of a training up to the last, which is handed back."""
        from heedful.tasks.run import Finished, Measured, Note, Trained

        status = self.console.status("") if self.console.is_terminal else None
        with status or contextlib.nullcontext():
            last = 0.0
            for event in events:
                match event:
                    case Note(text):
                        self.say(text)
                    case Trained() as now:
                        if status is not None:
                            status.update(self._line(now))
                        elif now.step.seconds - last >= 15 or now.step.step == 1:
                            last = now.step.seconds
                            self.say(self._line(now))
                    case Measured() as now:
                        self.score = "  ".join(told(name, value) for name, value in now.scores.items())
                        mark = "  best" if now.best else ""
                        self.say(f"step {now.step:,}  valid loss {now.valid_loss:.3f}  {self.score}{mark}")
                    case Finished() as now:
                        return now
        return None

    def _line(self, now: Any) -> str:
        left = int(now.seconds_left)
        return (
            f"step {now.step.step:,}  loss {now.step.loss:.3f}  lr {now.lr:.1e}  "
            f"{now.rate:,.0f} {now.counted}/s  {left // 60}:{left % 60:02} left  {self.score}"
        )
