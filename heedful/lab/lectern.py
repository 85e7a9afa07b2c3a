"""Runs an exhibit by its id: reads deck.yaml, checks the settings and calls the exhibit's function."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import resources
from math import isfinite
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from heedful.core.config import unknown_key
from heedful.errors import InputError
from heedful.lab import EXHIBITS
from heedful.lab.exhibit import Exhibit, Says, Shown, Value, leaves

FINITE = ConfigDict(allow_inf_nan=False)
LONGEST = 1000  # characters of a setting
EMPTY = ("Attempting to set identical low and high", "Initializing zero-element")  # of no data
SHORT = "short"  # the setting for the shorter form of an exhibit, if it has one


class ExhibitEntry(BaseModel):
    """The entry of one exhibit in deck.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    topic: str
    decks: list[str]
    title: str
    says: dict[str, Any]
    why: dict[str, str] = {}  # of claims, what is not right
    of: dict[str, str] = {}  # of claims that are wrong, the deck, if the exhibit is of several


class Deck(BaseModel):
    """The content of deck.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    decks: dict[str, str]  # the decks' titles, by the ids that exhibits use
    exhibits: dict[str, ExhibitEntry]


@cache
def deck() -> Deck:
    """The decks' claims by exhibit."""
    return Deck.model_validate(yaml.safe_load(resources.files("heedful.lab").joinpath("deck.yaml").read_text("utf-8")))


def entry(name: str) -> ExhibitEntry:
    """The entry of an exhibit. Raises InputError for an unknown id, and suggests the nearest."""
    exhibits = deck().exhibits
    if name not in EXHIBITS:
        raise unknown_key(name, [*EXHIBITS], where="heed lecture: no such exhibit")
    return exhibits[name]


def settings_of(name: str) -> dict[str, object]:
    """An exhibit's settings with their defaults, in the order of its function's arguments."""
    own = inspect.signature(EXHIBITS[name]()).parameters.values()
    return {one.name: one.default for one in own if one.kind is inspect.Parameter.KEYWORD_ONLY}


def show(name: str, settings: Mapping[str, object] | None = None, *, short: bool = False) -> Shown:
    """Runs an exhibit. `settings` are values, or text as typed: `{"scale": 0.5}` or `{"scale": "0.5"}`. `short` selects
    its shorter form, if it has one. Raises InputError, also if nothing can be computed with the settings."""
    found, function = entry(name), EXHIBITS[name]()
    chosen = checked(name, function, settings or {})
    if short and SHORT in settings_of(name):
        chosen = {SHORT: True, **chosen}
    if not settings:
        return function(Says(found.says, found.why), **chosen)
    with _told(name, settings, "computed"):
        shown = function(Says(found.says, found.why), **chosen)
        numbers = [leaf for line in shown.lines for leaf in leaves(line.computed) if isinstance(leaf, float)]
        if not all(map(isfinite, numbers)):
            raise ArithmeticError("what comes out is no number")
    if (draw := shown.draw) is None:
        return shown
    return replace(shown, draw=lambda: _drawn(draw, name, settings))


def _drawn(draw: Callable[[], Any], name: str, settings: Mapping[str, object]) -> Any:
    with _told(name, settings, "drawn"):
        return draw()


@contextmanager
def _told(name: str, settings: Mapping[str, object], done: str) -> Iterator[None]:
    """Raises InputError if an exhibit fails with these settings."""
    try:
        with warnings.catch_warnings():
            for empty in EMPTY:
                warnings.filterwarnings("error", empty)
            yield
    except (ArithmeticError, LookupError, OSError, RuntimeError, TypeError, UserWarning, ValueError) as error:
        words = " ".join(f"{key}={value}" for key, value in settings.items())
        what = f"nothing can be {done} with {words} ({str(error).partition(chr(10))[0]})"
        raise InputError(what, where=f"--set of {name}", fix=f"heed lecture {name} tells its own settings") from error


def checked(name: str, function: Exhibit, settings: Mapping[str, object]) -> dict[str, object]:
    """The settings, converted to the types of the function's annotations. Raises InputError for invalid ones."""
    hints = inspect.get_annotations(function, eval_str=True)
    known = [*settings_of(name)]
    chosen: dict[str, object] = {}
    for key, given in settings.items():
        if key not in known:
            raise (
                unknown_key(key, known, where=f"--set of {name}")
                if known
                else InputError(f"{name} has no settings", where=f"--set {key}={given}", fix="leave --set out")
            )
        if isinstance(given, str) and len(given) > LONGEST:
            what = f"{len(given):,} characters"
            raise InputError(what, where=f"--set {key} of {name}", fix=f"give at most {LONGEST:,}")
        try:
            value = yaml.safe_load(given) if isinstance(given, str) and hints[key] is not str else given
            chosen[key] = TypeAdapter(hints[key], config=FINITE).validate_python(value)
        except (ValidationError, yaml.YAMLError) as error:
            raise _refused(error, name, key, given, hints[key]) from None
    return chosen


def _refused(error: Exception, name: str, key: str, given: object, hint: Any) -> InputError:
    """The error for a setting that does not fit its annotation."""
    where = f"--set {key} of {name}"
    bounds = (one.get("ctx", {}) for one in error.errors()) if isinstance(error, ValidationError) else ()
    if (most := next((bound["le"] for bound in bounds if "le" in bound), None)) is not None:
        what = f"{given}: more than {most:,} would take minutes, or gigabytes"
        return InputError(what, where=where, fix=f"give at most {most:,}")
    return InputError(f"{given!r} is no {getattr(hint, '__name__', str(hint))}", where=where)


def by_topic() -> Iterator[tuple[str, Sequence[str]]]:
    """Each topic with the ids of its exhibits, in the order of deck.yaml."""
    topics: dict[str, list[str]] = {}
    for name, one in deck().exhibits.items():
        if name in EXHIBITS:
            topics.setdefault(one.topic, []).append(name)
    yield from topics.items()


def errata() -> list[dict[str, Any]]:
    """The errors in the decks, by deck, and numbered: {number, deck, exhibit, claim, says, right}. They are the claims
    that their exhibits find wrong, as they run: of those that deck.yaml has something to say against, which are none
    that train for long."""
    rows = list[dict[str, Any]]()
    for name, one in deck().exhibits.items():
        for line in show(name).lines if one.why else ():
            if line.verdict == "wrong":
                whose = one.of.get(line.claim) or ", ".join(one.decks)
                rows.append({"deck": whose, "exhibit": name, "claim": line.claim, "says": line.deck, "right": line.why})
    rows.sort(key=lambda row: str(row["deck"]))
    return [{"number": number, **row} for number, row in enumerate(rows, 1)]


def record(name: str, shown: Shown, figure: str | None) -> dict[str, Value | Mapping[str, Value]]:
    """An exhibit as a record for programs: the deck's values and the computed ones, by claim."""
    return {
        "id": name,
        "title": entry(name).title,
        "deck": {line.claim: line.deck for line in shown.lines},
        "computed": {line.claim: line.computed for line in shown.lines},
        "verdict": shown.verdict,
        "verdicts": {line.claim: line.verdict for line in shown.lines},
        "figure": figure,
    }
