"""Attention maps of a model, and vectors of its inputs: `heed look` and `heed embed`."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import chosen_of, united
from heedful.errors import InputError, counted
from heedful.run.task import Embedder
from heedful.store import files
from heedful.store.refusals import refuse_read
from heedful.tasks import TASKS
from heedful.tasks.shared.line_by_line import answer_lines
from heedful.tasks.shared.options import Device, Json, Run
from heedful.tasks.shared.terminal import printable, refuse_unused, say

TOP = 5  # nearest lines
LOOK_OPTIONS = united(row.inside.options() for row in TASKS.values())


def look(
    run: Run,
    text: Annotated[str, typer.Argument(help="The sentence to translate, or to read, or the file of a picture.")],
    options: dict[str, Any],
    out: Annotated[Path, typer.Option(help="A .png, .svg, .html or .json file.")] = Path("look.html"),
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Draw what a model looked at.

    Who looked at whom while a sentence was translated, or a text read for whatever is asked of it; or what was looked
    at in a picture, for what was found in it, or where in it a text is near.

    Example: heed look runs/demo "My sister buys three apples." --out look.html
    """
    from heedful.run.device import chosen_device
    from heedful.tasks.load import row_of_run
    from heedful.verbs.look import KINDS, refuse_blind
    from heedful.verbs.look import look as look_inside

    kind = out.suffix.removeprefix(".")
    if kind not in KINDS:
        raise InputError(
            f"{out.suffix or 'no suffix'} is not a picture", where=str(out), fix="--out x.png, x.svg, x.html or x.json"
        )
    files.need_output(out)
    refuse_read(out, [text])
    refuse_blind(run)
    chosen = chosen_of(row_of_run(run).inside.options(), options, LOOK_OPTIONS, str(run))
    looked = look_inside(run, text, kind, chosen, device=chosen_device(device))
    files.write_output(out, looked.picture)
    say(f"{looked.told}\n{out}")
    if as_json:
        print(json.dumps(looked.facts | {"out": str(out)}))


def embed(
    run: Run,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Texts, or files of pictures for a model of both; without any, lines of standard input."),
    ] = None,
    pool: Annotated[
        str | None, typer.Option(help="mean (of a text's hidden states), or first of them.", show_default="mean")
    ] = None,
    near: Annotated[Path | None, typer.Option(help="A file, of which the nearest lines are shown.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many of them.")] = TOP,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Turn texts into vectors, or find the lines of a file that are nearest: COSINE TAB LINE, the nearest first.

    Example: heed embed runs/fill "A fine film." --near reviews.txt --top 3
    """
    from heedful.data.lines import read_lines
    from heedful.run.device import chosen_device
    from heedful.tasks.shared.embed import nearest
    from heedful.verbs.use import embedder_of

    if near is None:
        refuse_unused("is of the lines that are near", {"--top": top != TOP}, fix="give --near FILE")
    vectors_of = _embedding_function(embedder_of(run, device=chosen_device(device)), pool, run)
    others = [] if near is None else list(dict.fromkeys(line for line in read_lines(near) if line.strip()))
    theirs, warned = vectors_of(others) if others else (None, [])
    if any(warned):
        say(f"warning: {near}: too long, and not read as a whole: {counted(sum(map(bool, warned)), 'line')}")

    def answers(lines: list[str], first: int) -> Iterator[Sequence[dict[str, Any]]]:
        for given, vector, warning in zip(lines, *vectors_of(lines), strict=True):
            record: dict[str, Any] = {"text": given}
            if theirs is None:
                record["vector"] = vector.tolist()
            else:
                record["near"] = [{"text": others[i], "score": score} for i, score in nearest(vector, theirs, top=top)]
            yield [record | ({"warning": warning} if warning else {})]

    def show(found: dict[str, Any]) -> str:
        if theirs is None:
            return " ".join(f"{value:.6g}" for value in found["vector"])
        return "\n".join(f"{each['score']:.3f}\t{printable(each['text'])}" for each in found["near"])

    answer_lines(inputs, answers, show, as_json=as_json)


def _embedding_function(
    embedder: Embedder, pool: str | None, run: Path
) -> Callable[[Sequence[str]], tuple[Any, list[str]]]:
    """A function from texts to their vectors, and a warning for each (empty if none) that is too long to be read as a
    whole. Raises InputError for `pool` with a model that has no choice of it."""
    from heedful.tasks.shared.embed import TextEncoder

    if not isinstance(embedder, TextEncoder):
        if pool is not None:
            raise InputError("this model has one vector of a text or a picture", where=str(run), fix="leave out --pool")
        return embedder.vectors_of
    return partial(embedder.vectors_of, pool=pool or "mean")
