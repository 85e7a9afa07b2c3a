"""Models of several languages: the tokens that name them, where these tokens stand, and how a direction is chosen.

task.json has this under `languages`; its `source` and `target` are the default direction, and "" where one must be
given.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from heedful.core.config import to_json
from heedful.data.lines import listed
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.directions import ARROW
from heedful.data.text.headers import SIDES, meaning
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Languages:
    """`tokens` are the ids of the languages' tokens, by name. The source's language stands before the source, or after
    its end (Liu et al. 2020). The target's is the first token of the target (Tang et al. 2020; Fan et al. 2020), starts
    decoding instead of the usual token (Liu et al. 2020), or stands before the source (Johnson et al. 2017).

    `prefixes` are texts before a source, by direction (Raffel et al. 2020); `directions` are the trained ones, if not
    all can be asked for.
    """

    tokens: dict[str, int] = field(default_factory=dict)
    source: Literal["", "before", "after"] = ""
    target: Literal["", "begin", "start", "before"] = ""
    prefixes: dict[str, str] = field(default_factory=dict)
    directions: tuple[str, ...] = ()

    @property
    def learnt(self) -> tuple[str, ...]:
        return self.directions or tuple(self.prefixes)

    def names(self, side: Literal["source", "target"]) -> list[str]:
        """The languages that can be translated from, or to."""
        index = 0 if side == "source" else 1
        return list(dict.fromkeys(each.split(ARROW)[index] for each in self.learnt)) or list(self.tokens)

    def pairs(self) -> list[tuple[str, str]]:
        """Every direction."""
        if self.learnt:
            return [(source, target) for source, _, target in (each.partition(ARROW) for each in self.learnt)]
        return [(source, target) for source in self.tokens for target in self.tokens if source != target]

    def prefix(self, source: str, target: str) -> str:
        """The text before a source of this direction."""
        return self.prefixes.get(f"{source}{ARROW}{target}", "").rstrip()

    def around(
        self, source: str, target: str, tokenizer: Tokenizer
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The tokens before and after a source of this direction, and those that begin its target; "" is an unknown
        language."""
        before = tokenizer.encode([self.prefix(source, target)])[0]
        after, begin = [tokenizer.eos], list[int]()
        if source and self.source:
            (before if self.source == "before" else after).append(self.tokens[source])
        if target and self.target in ("begin", "before"):
            (begin if self.target == "begin" else before).append(self.tokens[target])
        return tuple(before), tuple(after), tuple(begin)

    def start(self, target: str) -> int | None:
        """The token that decoding starts with, if that is the target's language."""
        return self.tokens[target] if target and self.target == "start" else None

    def direction(self, source: str, target: str, *, given: tuple[str, str]) -> tuple[str, str]:
        """The model's names of two languages; "" stands for that of `given`. Raises InputError for a language that the
        model does not have, and for a direction that it does not translate."""
        asked = source, target
        told = not source or self.source or self.learnt  # otherwise the source may be in any language
        source = (named(source, self.names("source"), "--from-language") if told else source) if source else given[0]
        target = named(target, self.names("target"), "--to") if target else given[1]
        if self._lacks(source, target):
            left = [
                (one, other)
                for one, other in self.pairs()
                if (one == source or not asked[0]) and (other == target or not asked[1])
            ]
            if len(left) == 1:  # the only direction with the language that was given
                source, target = left[0]
        if self._lacks(source, target):
            what = f"it does not translate {source} to {target}"
            raise InputError(what, fix=f"it does {', '.join(each.replace(ARROW, ' to ') for each in self.learnt[:8])}")
        return source, target

    def _lacks(self, source: str, target: str) -> bool:
        """Whether the model cannot translate this direction."""
        return bool(self.learnt) and f"{source}{ARROW}{target}" not in self.learnt


def named(name: str, among: Sequence[str], option: str) -> str:
    """The language of `among` with this name, ignoring case, or the only one that is the same language ("fr" is
    "fra_Latn"). Raises InputError."""
    plain = {each.lower(): each for each in among}
    if name.lower() in plain:
        return plain[name.lower()]
    wanted = meaning(name.lower())
    same = [each for each in among if wanted and wanted not in SIDES and meaning(each.lower()) == wanted]
    if len(same) == 1:
        return same[0]
    what = f"{name!r} may be {listed(same)}" if same else f"no language {name!r}: there are {listed(among)}"
    more = f" and {len(among) - 8} more" if not same and len(among) > 8 else ""
    raise InputError(what + more, where=option, fix="name one of them" if same else "heed info RUN names all")


def refuse_untold(languages: Languages, source: str, target: str, *, where: str) -> None:
    """Raises InputError where the languages of pairs are unknown, or are not a direction of the model."""
    try:
        if unsaid := {source, target} & {SOURCE, TARGET}:
            raise InputError(f"which language is its {min(unsaid)} in? The model has several")
        languages.direction(source, target, given=("", ""))
    except InputError as error:
        one, other = languages.pairs()[0]
        fix = f"name a direction of the model behind the path: {where}:{one}{ARROW}{other}"
        raise InputError(error.what, where=where, fix=fix) from None


def as_told(languages: Languages) -> dict[str, Any]:
    """The form in task.json."""
    return {key: value for key, value in to_json(languages).items() if value}


def token_of(name: str) -> str:
    """The control token for a target language, in a vocabulary that is made here."""
    return f"<|to_{re.sub(r'[^A-Za-z0-9_]', '_', name)}|>"


def tag_token(name: str) -> str:
    """The control token for a kind of translation (Sennrich et al. 2016, Controlling politeness)."""
    return f"<|tag_{re.sub(r'[^A-Za-z0-9_]', '_', name)}|>"


def only_direction(source: str, target: str, *, given: tuple[str, str]) -> None:
    """Raises InputError where another direction is asked of a model that has one."""
    for name, known, option in ((source, given[0], "--from-language"), (target, given[1], "--to")):
        if name and name != known and (meaning(name) is None or meaning(name) != meaning(known)):
            what = f"{name!r}: this run translates {given[0]} to {given[1]} alone"
            raise InputError(what, where=option, fix=f"leave out {option}")


def in_a_line(languages: Languages) -> str:
    """For `heed info`: how many languages, and the first of them."""
    count, both = len(languages.names("target")), languages.pairs()
    if len(both) <= 8:
        return ", ".join(f"{source} to {target}" for source, target in both)
    return f"{count:,} languages: {', '.join(languages.names('target')[:6])}{' ...' if count > 6 else ''}"
