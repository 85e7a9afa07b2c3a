"""Finds faults in data before anything is trained on it, and prepares large data: `heed data check` and `prepare`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.errors import InputError, counted
from heedful.tasks import DEFAULT
from heedful.tasks.shared.options import Json, Settings
from heedful.tasks.shared.terminal import PICTURES, printable, say

if TYPE_CHECKING:
    from heedful.verbs.data import Checked

LONGEST = 60  # characters of an example's side


def data(
    what: Annotated[
        Literal["check", "prepare"],
        typer.Argument(
            help="check: look at every pair, and report. prepare: make token ids of large data, for heed train."
        ),
    ],
    paths: Annotated[list[str], typer.Argument(help="As for heed train --data: files, folders, patterns of names.")],
    source: Annotated[str | None, typer.Option(help="Language, column or key of the sources.")] = None,
    target: Annotated[str | None, typer.Option(help="Language, column or key of the targets.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="check: a .tsv file for what is left; what is left out goes beside it, and why. prepare: a folder."
        ),
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Keep pairs with this fault; repeatable.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Leave out pairs with this fault; repeatable.")] = None,
    picture: Annotated[Path | None, typer.Option(help="A .png or .svg of the lengths and of the faults.")] = None,
    valid: Annotated[
        list[str] | None, typer.Option(help="prepare: a file to validate on; of two languages two.")
    ] = None,
    test: Annotated[list[str] | None, typer.Option(help="prepare: a file to test on; of two languages two.")] = None,
    task: Annotated[str, typer.Option(help="prepare: what will be trained.")] = DEFAULT,
    start: Annotated[
        Path | None, typer.Option("--from", help="prepare: the run that the training will start from.")
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="prepare: the part of the work that is done here, as 2/8: of eight machines the second."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="prepare: the scheduler of a Dask cluster that does the work, as tcp://10.0.0.1:8786."),
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Check pairs of texts: duplicates, wrong languages, lost placeholders, overlap with tests. Or prepare
    pairs, running text or conversations that the memory does not hold.

    Example: heed data check memory.tmx --out clean.tsv
    """
    if what == "prepare":
        options: dict[str, object] = {"source": source, "target": target}
        options |= {"valid": valid and tuple(valid), "test": test and tuple(test)}
        _prepare(paths, out, task, options, start, settings or (), part, cluster, as_json=as_json)
        return
    for option, value in {"--part": part, "--cluster": cluster}.items():
        if value is not None:
            raise InputError("is for heed data prepare", where=option, fix="leave it out")
    from heedful.store import files
    from heedful.verbs.data import TAG, check_data, write_cleaned

    kind = kind_of_picture(picture)
    if picture:
        files.need_output(picture)
    given = paths if len(paths) > 1 else paths[0]
    checked = check_data(given, source=source, target=target, keep=keep or (), drop=drop or (), along=shown, out=out)
    beside = write_cleaned(checked, out) if out else None
    if picture and kind:
        from heedful.look.draw import to_bytes
        from heedful.look.pairs import lengths_and_faults

        train, counts = checked.read.train, {name: checked.report.counts[name] for name in checked.report.counts}
        drawn = lengths_and_faults(train.source, train.target, counts)
        files.write_output(picture, to_bytes(drawn, kind))
    if as_json:
        print(json.dumps(checked.record, ensure_ascii=False))
        return
    print("\n".join(map(printable, told(checked))))
    if out:
        say(f"{out}: what is left; {beside}: what is left out, and why")
        if checked.read.train.tags:
            say(f"{out}: its column {TAG!r} has the tag of each pair: heed train translate --set data.tag={TAG}")
    if picture:
        say(str(picture))


def _prepare(
    paths: list[str],
    out: Path | None,
    task: str,
    options: dict[str, object],
    start: Path | None,
    settings: Sequence[str],
    part: str | None,
    cluster: str | None,
    *,
    as_json: bool,
) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from heedful.run.prepared import read_part
    from heedful.verbs.data import prepare_data

    if out is None:
        raise InputError("no folder was given", where="heed data prepare", fix="--out DATA")
    share = read_part(part) if part is not None else None
    given = {"data.path": tuple(paths) if len(paths) > 1 else paths[0], "start_from": start and str(start)}
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        line = progress.add_task("", total=1.0)

        def shown(what: str, share: float) -> None:
            progress.update(line, description=what, completed=share)

        manifest = prepare_data(task, out, given, options, settings=settings, part=share, cluster=cluster, shown=shown)
    if as_json:
        print(json.dumps(manifest, ensure_ascii=False))
        return
    if missing := manifest.get("missing"):
        numbers = ", ".join(map(str, missing))
        rest = "The last to end makes the folder ready, or the command without --part does the rest"
        say(f"{out}: part {part} is done, and these are not: {numbers}. {rest}")
        return
    print("\n".join(map(printable, [*manifest["taken"], *manifest["notes"]])))
    say(f"{out}: {amount_of(manifest['counts'])}, ready for heed train {task} --data {out}")


def amount_of(counts: Mapping[str, int]) -> str:
    """How much is prepared."""
    noun = next(noun for noun in ("pair", "document", "conversation") if f"{noun}s" in counts)
    tokens = "" if noun == "pair" else f", {counted(counts['tokens'], 'token')}"
    return f"{counted(counts[f'{noun}s'], noun)}{tokens}"


def shown(numbers: range) -> Iterable[int]:
    """Yields the same numbers, and shows the progress on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(numbers, "pairs looked at", console=console, transient=True, disable=not console.is_terminal)


def kind_of_picture(picture: Path | None) -> Literal["png", "svg"] | None:
    """The kind of picture by its suffix; None without a picture. Raises InputError for any other kind of file."""
    if picture is None:
        return None
    if picture.suffix not in PICTURES:
        raise InputError(f"{picture.suffix or 'no suffix'} is not a picture", where=str(picture), fix="--picture x.png")
    return PICTURES[picture.suffix]


def told(checked: "Checked") -> list[str]:
    """The report as lines for a terminal."""
    from heedful.data.text.doubts import tokenised
    from heedful.data.text.quality import CHECKS

    record, report = checked.record, checked.report
    lines = [*checked.read.told, *checked.read.notes]
    sides = zip((checked.read.taken.source, checked.read.taken.target), report.languages, report.tokens, strict=True)
    lines += [
        f"{name}: {counted(words, 'word')}" + (f", {code}" if code not in (None, name) else "")
        for name, code, words in sides
    ]
    train = checked.read.train
    lines += filter(None, [tokenised(zip(train.source, train.target, strict=True))])
    for name, check in CHECKS.items():
        if not record[name]:
            continue
        percent = 100 * record[name] / record["pairs"]
        share = f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"
        lines += ["", f"{name}: {record[name]:,} ({share} %): {check.meaning}; {check.mend}"]
        for one in report.examples.get(name, []):
            note = f"  ({cut(one.note)})" if one.note else ""
            lines.append(f"  {one.where}: {cut(one.source)} -> {cut(one.target)}{note}")
    leave = record["pairs"] - record["kept"]
    share = f"{100 * leave / record['pairs']:.1f} %"
    return [
        *lines,
        "",
        f"{counted(record['pairs'], 'pair')}, {record['kept']:,} without a fault that makes them leave ({share} leave)",
    ]


def cut(text: str) -> str:
    """A text on one line, cut to the width of a line of the report."""
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))
    return printable if len(printable) <= LONGEST else f"{printable[: LONGEST - 1]}…"
