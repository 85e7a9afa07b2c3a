"""`heed chat`."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.decode.settings import SamplingOptions
from heedful.errors import TextError
from heedful.tasks.chat.options import ChatOptions
from heedful.tasks.shared.line_by_line import Record, answer_groups, answer_lines, one_each, text_groups
from heedful.tasks.shared.options import Device, Json, Offered, Run, TextEngine, Texts, by_groups, option_of
from heedful.tasks.shared.terminal import Command, LineCount, say

if TYPE_CHECKING:
    from heedful.tasks.chat.talk import Talk

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # control characters that could affect a terminal


@by_groups
def chat(
    run: Run,
    turns: Texts = None,
    system: Annotated[str, option_of("system", ChatOptions)] = "",
    tokens: Annotated[int, option_of("tokens", ChatOptions)] = 200,
    stop: Annotated[list[str] | None, option_of("stop", ChatOptions)] = None,
    weights: Annotated[str, typer.Option(help="float32, int8 or int4: fewer bits are faster.")] = "float32",
    engine: TextEngine = "own",
    render: Annotated[bool, typer.Option("--render", help="Show the prompt of each line in place of a reply.")] = False,
    device: Device = "auto",
    as_json: Json = False,
    *,
    sampling: Annotated[SamplingOptions, Offered("temperature", "top_k", "top_p", "seed", temperature=0.8)],
) -> None:
    """Talk with a model, turn by turn; /help tells the commands at a terminal, and Ctrl-C ends an answer.

    Without a terminal, each line of standard input is a turn, or a JSON list of messages to be answered by itself.

    Example: heed chat runs/chat
    """
    if render:
        _render(run, turns, system, as_json=as_json)
        return
    from heedful.run.device import chosen_device
    from heedful.tasks.chat.talk import QUIT, Talk
    from heedful.tasks.chat.use import ChatModel
    from heedful.tasks.generate.llama import with_engine

    loaded = ChatModel.load(run, device=chosen_device(device, weights=weights, engine=engine), weights=weights)
    model = with_engine(loaded, run, engine=engine, weights=weights)
    talk = Talk(model, ChatOptions(tokens=tokens, system=system, stop=tuple(stop or ()), sampling=sampling))
    if turns is None and not as_json and sys.stdin.isatty():
        _at_a_terminal(talk)
        return

    def answers(lines: list[str], first: int) -> Iterator[Sequence[Record]]:
        for line in lines:
            if line.strip() in QUIT and not as_json:
                raise typer.Exit
            yield [talk.record(line, commands=not as_json)]

    # One by one: each answer depends on those before it.
    given = [turns] if turns else text_groups()
    answer_groups(
        (one for lines in given for one in ([lines] if isinstance(lines, TextError) else ([line] for line in lines))),
        answers,
        lambda record: shown(record["content"]),
        named=lambda number: f"turn {number + 1}" if turns else f"<stdin>:{number + 1}",
        name="the turns" if turns else "<stdin>",
        as_json=as_json,
        progress=LineCount(False),
    )


def _render(run: Run, turns: list[str] | None, system: str, *, as_json: bool) -> None:
    from heedful.tasks.chat.template import template_of
    from heedful.tasks.chat.use import written_out

    template = template_of(run)

    def answers(lines: list[str], first: int) -> Iterator[Sequence[Mapping[str, Any]]]:
        return one_each({"prompt": written_out(template, line, system)} for line in lines)

    answer_lines(turns, answers, lambda record: record["prompt"], as_json=as_json)


def _at_a_terminal(talk: "Talk") -> None:
    """Reads turns and prints answers as they are generated, until the user leaves."""
    from heedful.tasks.chat.talk import GONE

    with suppress(ImportError):  # not on Windows
        import readline  # noqa: F401 - lines can be edited, and those before come back
    print("/help tells what can be typed; Ctrl-D leaves")
    while True:
        try:
            line = input("> ").strip()
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print("\nCtrl-D or /quit leaves")
            continue
        if line.startswith("/"):
            found = talk.command(line)
            print(found)
            if found == GONE:
                return
        elif line:
            _answer(talk, line)


def _answer(talk: "Talk", line: str) -> None:
    pieces = talk.answer(line)
    try:
        while True:
            try:
                print(shown(next(pieces)), end="", flush=True)
            except StopIteration as over:
                print()
                if warning := over.value.warning:
                    say(f"warning: {warning}")
                return
    except KeyboardInterrupt:
        pieces.close()
        print(" ... stopped")
    except TextError as error:
        say(f"no answer: {error}" + (f"; {error.fix}" if error.fix else ""))


def shown(text: str) -> str:
    """The text with control characters escaped, so that it cannot affect a terminal."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


COMMANDS = (Command("chat", chat),)
