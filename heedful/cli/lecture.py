"""The lecture lab: `heed lecture`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError
from heedful.store import files
from heedful.tasks.shared.options import Json
from heedful.tasks.shared.terminal import PICTURES, say

if TYPE_CHECKING:
    from heedful.lab.exhibit import Shown


def lecture(
    exhibits: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...|all|errata]", help="Which; without any, all are listed by topic."),
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="Change a number of the exhibit; repeatable.")
    ] = [],  # noqa: B006  # typer copies it
    out: Annotated[Path | None, typer.Option(help="Its picture, .svg or .png; of several: a folder.")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark, for a dark slide.")] = False,
    short: Annotated[bool, typer.Option("--short", help="The shorter form of what trains or measures.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a lecture claims, beside what comes out here.

    Example: heed lecture N1 --set scale=1 --out n1.svg

    Example: heed lecture A1 A14 E14 --out pictures
    """
    from heedful.lab import lectern

    given = [name for name, value in (("--set", settings), ("--out", out), ("--short", short)) if value]
    if given and exhibits in (None, [], ["errata"]):
        raise InputError("is of an exhibit", where=given[0], fix=f"name one: heed lecture N1 {given[0]} ...")
    if not exhibits:
        for topic, names in lectern.by_topic():
            if not as_json:
                print(f"\n{topic}")
            for name in names:
                one = lectern.entry(name)
                found = {"id": name, "topic": topic, "decks": one.decks, "title": one.title}
                print(json.dumps(found | {"settings": settings_told(name)}) if as_json else f"  {name:<4} {one.title}")
        return
    if exhibits == ["errata"]:
        tell_errata(as_json)
        return
    every = exhibits == ["all"]
    names = [name for _, of in lectern.by_topic() for name in of] if every else exhibits
    several = len(names) > 1
    if several and settings:
        raise InputError("--set is of one exhibit", where=f"heed lecture {' '.join(exhibits)}", fix="name one exhibit")
    for name in names:
        lectern.entry(name)
    refuse_out(out, several)
    typed = dict(pair_of(setting) for setting in settings)
    for name in names:
        shown = lectern.show(name, typed, short=short)
        figure = picture(shown, name, out, several, dark)
        if as_json:
            print(json.dumps(lectern.record(name, shown, figure), allow_nan=False), flush=True)
        else:
            chosen = {lectern.SHORT: "True"} if short and lectern.SHORT in lectern.settings_of(name) else {}
            print(told(name, shown, figure, chosen | typed), flush=True)


def pair_of(setting: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not equals:
        raise InputError(f"{setting!r} is no KEY=VALUE", where="--set", fix="such as --set scale=0.5")
    return key, value


def settings_told(name: str) -> dict[str, str]:
    """The settings of an exhibit, by name, with their defaults as text."""
    from heedful.lab import lectern

    return {key: str(value) for key, value in lectern.settings_of(name).items()}


def refuse_out(out: Path | None, several: bool) -> None:
    """Checks --out before anything is computed. Raises MissingError, InputError or StorageError."""
    if out is None:
        return
    if several:
        files.need_access(out)
    if not several and out.suffix not in PICTURES:
        raise InputError(f"{out.suffix or 'no suffix'} is not a picture", where=str(out), fix="--out x.svg or x.png")
    if not several:
        files.need_output(out)


def picture(shown: "Shown", name: str, out: Path | None, several: bool, dark: bool) -> str | None:
    """Writes the exhibit's picture, and returns its path; None if there is no picture or no --out."""
    if out is None:
        return None
    if shown.draw is None:
        if not several:
            say(f"{name} has no picture")
        return None
    path = out / f"{name}.svg" if several else out
    files.make_folder(path.parent)
    files.write_output(path, shown.picture(PICTURES[path.suffix], dark=dark))
    return str(path)


def told(name: str, shown: "Shown", figure: str | None, typed: Mapping[str, str]) -> str:
    """An exhibit as text for a terminal; `typed` are the settings that were changed."""
    from heedful.lab import lectern
    from heedful.lab.paper import value

    one = lectern.entry(name)
    lines = [f"{name}  {one.title}  ({', '.join(one.decks)})"]
    if shown.text:
        lines += ["", shown.text.rstrip(), ""]
    rows = [(line.claim, value(line.deck), value(line.computed), str(line.verdict)) for line in shown.lines]
    cells = [("", "the deck", "here", ""), *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    lines += ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, [*widths, 0], strict=True)) for row in cells]
    lines += [f"  {line.claim}: {line.reason}" for line in shown.lines if line.reason]
    known = settings_told(name)
    if known:
        used = (
            f"{key}={typed[key]} (else {default})" if key in typed else f"{key}={default}"
            for key, default in known.items()
        )
        lines.append("settings: " + ", ".join(used))
    if typed and shown.verdict in ("wrong", "rounded"):
        lines.append("With other settings than the deck's, a number that differs from it may be right there.")
    if figure:
        lines.append(figure)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def tell_errata(as_json: bool) -> None:
    """Prints the decks' errors, each with the exhibit that shows it."""
    from heedful.lab import lectern
    from heedful.lab.paper import value

    for one in lectern.errata():
        if as_json:
            print(json.dumps(one))
        else:
            print(f"{one['number']:>2}  {one['deck']}  {one['claim']}: {value(one['says'])}")
            print(f"        {one['right']}  ({one['exhibit']})")
