"""The lecture: a page an exhibit of `heed lecture`, by topic, in its order. Nothing is listed here by hand."""

import inspect
from collections.abc import Sequence
from typing import Any

from docs.book.pages import Page, Text, plain, run
from heedful.lab import EXHIBITS, lectern
from heedful.lab.paper import value

SHOW = """\
from heedful.lab import lectern

shown = lectern.show("{name}"{settings}, short=True)
shown"""


def lecture_pages(only: Sequence[str] = ()) -> dict[str, list[Page]]:
    """The pages of each topic; of these exhibits alone where some are named."""
    topics = {topic: [name for name in names if not only or name in only] for topic, names in lectern.by_topic()}
    return {topic: [lecture_page(name) for name in names] for topic, names in topics.items() if names}


def lecture_page(name: str) -> Page:
    """What the exhibit is about, its picture, what the deck says, what comes out here, and what may be changed."""
    entry, names = lectern.entry(name), dict[str, Any]()
    settings = {key: default for key, default in lectern.settings_of(name).items() if _told(key, default)}
    typed = f", {settings!r}" if settings else ""
    code = run(SHOW.format(name=name, settings=typed), names, f"exhibit {name}")
    shown = names["shown"]
    rows = ["| | the deck | here | verdict |", "|---|---|---|---|"]
    rows += [
        f"| {_cell(line.claim)} | {_cell(value(line.deck))} | {_cell(value(line.computed))} | {line.verdict} |"
        for line in shown.lines
    ]
    why = [f"- **{plain(line.claim)}**: {plain(line.reason)}" for line in shown.lines if line.reason]
    told = [f"```text\n{shown.text.rstrip()}\n```\n"] if shown.text else []
    change = "".join(f" --set {key}={default}" for key, default in [*settings.items()][:1])
    say = f"In a terminal: `heed lecture {name}{change}{f' --out {name}.svg' if shown.draw else ''}`."
    say += " What stands behind `--set`, or between the braces, may be changed." if change else ""
    pictures = {}
    if shown.draw is not None:
        for suffix, dark in (("", False), ("-dark", True)):
            pictures[f"{name}{suffix}.svg"] = shown.picture("svg", dark=dark)
    about = plain(inspect.getdoc(EXHIBITS[name]()) or "")
    said = "; ".join(lectern.deck().decks[deck] for deck in entry.decks)
    intro = Text("\n".join([about, "", f"*Said in {plain(said)}.*"]))
    text = Text("\n".join([*rows, "", *why, "", *told, say]))
    return Page(name, f"{name}: {entry.title}", [intro, text, code], pictures)


def _told(key: str, default: object) -> bool:
    """Whether a setting is a number or a word that a page can print: not one whose default is chosen as it runs."""
    return key != lectern.SHORT and isinstance(default, int | float | str) and len(str(default)) < 40


def _cell(text: str) -> str:
    """The same in a row of a table, of which a long list of numbers shows its begin."""
    return " ".join(plain(text if len(text) <= 160 else f"{text[:157]}...").split())
