"""Models of several languages: the tokens that name them, where these tokens stand, and how a direction is chosen.

task.json has this under `languages`; its `source` and `target` are the default direction, and "" where one must be
given.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedful.core.config import from_json, to_json
from heedful.data.lines import listed
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.directions import ARROW
from heedful.data.text.headers import SIDES, meaning
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.store import files

if TYPE_CHECKING:
    from heedful.run.start import Start

KEY = "languages"
TAGS = "tags"  # the ids of the tokens that ask for a kind of translation, by name
TAGGED = "tagged"  # the kind that is asked for
MOST_TAGS = 100


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

    def around(self, source: str, target: str, tokenizer: Tokenizer) -> dict[str, Any]:
        """The tokens around a text of this direction, as in task.json; "" is an unknown language."""
        before = tokenizer.encode([self.prefix(source, target)])[0]
        after, begin = [tokenizer.eos], list[int]()
        if source and self.source:
            (before if self.source == "before" else after).append(self.tokens[source])
        if target and self.target in ("begin", "before"):
            (begin if self.target == "begin" else before).append(self.tokens[target])
        return {"before": before, "after": after, "begin": begin}

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


@dataclass(frozen=True, kw_only=True)
class DirectionOptions:
    """The languages and the kind of translation that are asked for, as by `--to`, `--from-language` and `--tag`; "" is
    the model's default."""

    to: str = ""
    from_language: str = ""
    tag: str = ""


@dataclass(frozen=True, kw_only=True)
class DirectionByEitherName(DirectionOptions):
    """The same, with second names for the languages."""

    source: str = ""  # another name for `from_language`
    target: str = ""  # another name for `to`

    def asked(self) -> tuple[str, str, str]:
        """The two languages, and the tag. Raises InputError where a language is given by both names."""
        for name, other in (("to", "target"), ("from_language", "source")):
            if getattr(self, name) and getattr(self, other):
                what = "two names of the same, each with a language"
                raise InputError(what, where=f"{name}, {other}", fix="give one")
        return self.from_language or self.source, self.to or self.target, self.tag


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


def languages_in(about: Mapping[str, Any]) -> Languages | None:
    """The languages in task.json; None for a model of one direction."""
    return from_json(Languages, about[KEY], where="task.json: languages") if KEY in about else None


def as_told(languages: Languages) -> dict[str, Any]:
    """The form in task.json."""
    return {key: value for key, value in to_json(languages).items() if value}


def languages_of_begun(begun: Path | None) -> tuple[str, str] | None:
    """The languages of a run that is continued, as its files name them; None for a new one."""
    paths = () if begun is None else (begun / "task.json", begun / "data.json")
    facts = next((files.read_json(path) for path in paths if path.is_file()), None)
    return None if facts is None else (str(facts[SOURCE]), str(facts[TARGET]))


def languages_of_start(start_from: str) -> tuple[str, str] | None:
    """The languages of the run that a training begins with; None where it has not just two that are known."""
    path = Path(start_from) / "task.json"
    about = files.read_json(path) if start_from and path.is_file() else {}
    found = languages_of(about)
    unknown = found is None or KEY in about or {*map(meaning, found)} & {None, *SIDES}
    return None if unknown else found


def another_direction(start_from: str, source: str, target: str) -> str:
    """A line where a training begins with a model of one direction, and its pairs are of another; "" otherwise."""
    known, own = languages_of_start(start_from), [meaning(source), meaning(target)]
    if known is None or own == [*map(meaning, known)] or {None, *SIDES} & {*own}:
        return ""
    ways = f"the model translates {known[0]} to {known[1]}, and these pairs are from {source} to {target}"
    return f"{ways}: it learns this, and unlearns that"


def directed_start(start: "Start", source: str, target: str) -> "tuple[Start, str]":
    """The model to start from, set to the direction of pairs with these sides, and a line that says what that adds to
    the texts. Raises InputError where the model does not have such a language, but needs one."""
    languages = languages_in(start.around)
    if languages is None:
        return start, ""
    given = str(start.around.get("source", "")), str(start.around.get("target", ""))
    try:
        source, target = languages.direction(source, target, given=given)
    except InputError as error:
        if languages.prefixes:
            return start, f"no language of the model is told: {error.what}"
        if languages.target == "before" and not {source, target} & {SOURCE, TARGET}:
            return _in_new_direction(start, languages, source, target)
        fix = "say what the sides are in, as the model calls it: --source NAME --target NAME"
        raise InputError(error.what, where="languages of the data", fix=fix) from None
    around = languages.around(source, target, start.source)
    directed = start._replace(around={**start.around, **around, "source": source, "target": target})
    if (first := languages.start(target)) is not None:
        tokenizer = start.target.begun_by(first)
        directed = directed._replace(source=tokenizer, target=tokenizer)
    prefix = languages.prefix(source, target)
    return directed, f"before each source: {prefix!r}" if prefix else f"as the model calls them: {source} to {target}"


def _in_new_direction(start: "Start", languages: Languages, source: str, target: str) -> "tuple[Start, str]":
    """The model to start from, set to a direction that it was not trained on; it has tokens only for targets. With the
    target's token this is an additional direction; without it, the model's only one."""
    try:
        target = named(target, list(languages.tokens), "--to")
    except InputError:
        around = {key: value for key, value in start.around.items() if key != KEY}
        told = f"the model has no language {target!r}: it learns {source} to {target}, and unlearns the others"
        return start._replace(around={**around, "before": [], "source": source, "target": target}), told
    more = replace(languages, directions=(*languages.directions, f"{source}{ARROW}{target}"))
    around = {**more.around(source, target, start.source), KEY: as_told(more), "source": source, "target": target}
    return start._replace(around={**start.around, **around}), f"a new direction of the model: {source} to {target}"


def token_of(name: str) -> str:
    """The control token for a target language, in a vocabulary that is made here."""
    return f"<|to_{re.sub(r'[^A-Za-z0-9_]', '_', name)}|>"


def tag_token(name: str) -> str:
    """The control token for a kind of translation (Sennrich et al. 2016, Controlling politeness)."""
    return f"<|tag_{re.sub(r'[^A-Za-z0-9_]', '_', name)}|>"


def tags_said(parts: Iterable[Pairs]) -> list[str]:
    """The tags of pairs, the most frequent first. Raises InputError where there are too many."""
    counted = Counter(tag for part in parts for tag in part.tags if tag)
    if len(counted) > MOST_TAGS:
        fix = "name a column that says what kind a pair is of"
        raise InputError(f"{len(counted):,} different tags, at most {MOST_TAGS}", where="data.tag", fix=fix)
    return [name for name, _ in counted.most_common()]


def tags_of(names: Sequence[str], around: Mapping[str, Any], tokenizer: Tokenizer, *, where: str) -> dict[str, Any]:
    """The part of task.json about tags: those of the model that training starts from, or these in a new vocabulary.
    Raises InputError for a tag that the model does not know."""
    tokens = around.get(TAGS) or {name: tokenizer.extra.get(tag_token(name)) for name in names}
    if unknown := [name for name in names if tokens.get(name) is None]:
        what = f"the model does not know the tag {unknown[0]!r}"
        raise InputError(what, where=where, fix="leave out --from, or the tags")
    if not tokens:
        return {}
    forbidden = around.get("forbidden", [tokenizer.pad, tokenizer.bos])
    return {TAGS: tokens, "forbidden": list(dict.fromkeys([*forbidden, *tokens.values()]))}


def tagged(about: Mapping[str, Any], tag: str) -> dict[str, Any]:
    """task.json, set to translations of this kind: its token is the last one before a source. Raises InputError for an
    unknown tag."""
    tokens = about.get(TAGS, {})
    if tag not in tokens:
        what = f"no tag {tag!r}: there are {listed(tokens)}" if tokens else "this model has learnt no tags"
        raise InputError(what, where="--tag", fix="name one of them" if tokens else "leave it out")
    plain = [token for token in about.get("before", []) if token not in tokens.values()]
    return {**about, "before": [*plain, tokens[tag]], TAGGED: tag}


def arounds_of(
    directions: Sequence[tuple[str, str]], around: Mapping[str, Any], tokenizer: Tokenizer, *, where: str = ""
) -> dict[tuple[str, str], dict[str, Any]]:
    """The tokens around the texts of each direction, for the model that training starts from or for a new one. Raises
    InputError where the model has only one direction, or marks languages in a way that a batch of several cannot."""
    if not directions:
        return {}
    languages, more = languages_in(around), dict[str, Any]()
    if languages is None:
        names = list(dict.fromkeys(target for _, target in directions))
        if not all(token_of(name) in tokenizer.extra for name in names):
            fix = "leave out --from, or give data of its direction"
            raise InputError("a model of one direction, and data of several", where=where, fix=fix)
        tokens = {name: tokenizer.extra[token_of(name)] for name in names}
        learnt = tuple(f"{source}{ARROW}{target}" for source, target in directions)
        languages = Languages(tokens=tokens, target="before", directions=learnt)
        more = {"forbidden": [tokenizer.pad, tokenizer.bos, *tokens.values()]}
    if languages.source == "after" or languages.target == "start":
        what = "its languages are told at the end of a source, or start decoding: one direction at a time"
        raise InputError(what, where=where, fix="train it on one direction")
    made = {}
    for source, target in directions:
        one, other = languages.direction(source, target, given=("", ""))
        own = languages.around(one, other, tokenizer)
        told = {KEY: as_told(languages), "source": one, "target": other}
        made[source, target] = {**around, **own, **more, **told}
    return made


def redirected(
    about: Mapping[str, Any], source: str, target: str, tokenizer: Tokenizer
) -> tuple[dict[str, Any], int | None] | None:
    """task.json, set to another direction, and the token that decoding starts with, if that is the target's language;
    None if nothing changes. Raises InputError for a direction that the model does not have."""
    if not source and not target:
        return None
    given = str(about.get("source", "")), str(about.get("target", ""))
    languages = languages_in(about)
    if languages is None:
        only_direction(source, target, given=given)
        return None
    source, target = languages.direction(source, target, given=given)
    around = languages.around(source, target, tokenizer)
    return {**about, **around, "source": source, "target": target}, languages.start(target)


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


def languages_of(about: Mapping[str, Any]) -> tuple[str, str] | None:
    """The languages that a model translates from and to, as in task.json; None for a model that writes summaries."""
    if about.get("scores") == "rouge":
        return None
    return str(about.get("source", "source")), str(about.get("target", "target"))


def directions_of(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All directions of a model of several languages; none for another."""
    languages = languages_in(about)
    return [] if languages is None else languages.pairs()
