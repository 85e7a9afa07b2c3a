"""The lecture: a page an exhibit of `heed lecture`, by topic, in its order. Nothing is listed here by hand."""

from collections.abc import Sequence
from typing import Any

from docs.book.pages import Page, Text, run
from heedful.lab import lectern
from heedful.lab.paper import picture, value

SHOW = """\
from heedful.lab import lectern

shown = lectern.show("{name}", short=True)
for line in shown.lines:
    print(line.claim, "|", line.verdict)
"""


def lecture_pages(only: Sequence[str] = ()) -> dict[str, list[Page]]:
    """The pages of each topic; of these exhibits alone where some are named."""
    topics = {topic: [name for name in names if not only or name in only] for topic, names in lectern.by_topic()}
    return {topic: [lecture_page(name) for name in names] for topic, names in topics.items() if names}


def lecture_page(name: str) -> Page:
    """What the deck says, what comes out here, the verdict, and the picture."""
    entry, names = lectern.entry(name), dict[str, Any]()
    code = run(SHOW.format(name=name), names, f"exhibit {name}")
    shown = names["shown"]
    rows = ["| | the deck | here | verdict |", "|---|---|---|---|"]
    rows += [
        f"| {_cell(line.claim)} | {_cell(value(line.deck))} | {_cell(value(line.computed))} | {line.verdict} |"
        for line in shown.lines
    ]
    why = [f"- **{_plain(line.claim)}**: {_plain(line.reason)}" for line in shown.lines if line.reason]
    told = [f"```text\n{shown.text.rstrip()}\n```\n"] if shown.text else []
    settings = lectern.settings_of(name)
    change = next((f" --set {key}={default}" for key, default in settings.items() if not isinstance(default, str)), "")
    say = f"In a terminal, `heed lecture {name}{change} --out {name}.svg`"
    say += "; what stands behind `--set` may be changed." if change else "."
    pictures = {}
    if shown.draw is not None:
        for suffix, dark in (("", False), ("-dark", True)):
            pictures[f"{name}{suffix}.svg"] = picture(shown, "svg", dark=dark)
    text = "\n".join([f"Said in {', '.join(entry.decks)}.\n", *rows, "", *why, "", *told, say])
    return Page(name, f"{name}: {entry.title}", [Text(text), code], pictures)


def _plain(text: str) -> str:
    """Text whose signs mean nothing to Markdown."""
    for sign in "\\`*_{}[]<>#|$":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def _cell(text: str) -> str:
    """The same in a row of a table, of which a long list of numbers shows its begin."""
    return _plain(text if len(text) <= 160 else f"{text[:157]}...")
