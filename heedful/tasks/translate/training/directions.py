"""The directions and the kinds of translations that a model learns: those of the model that training starts from, or
new ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.corpus import Corpus, with_languages
from heedful.data.text.directions import ARROW, Direction
from heedful.data.text.headers import SIDES, meaning
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.run.start import Start
from heedful.store import files
from heedful.tasks.translate.languages import Languages, named, tag_token, token_of
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.spec import TranslatorSpec, spec_in

MOST_TAGS = 100
ONE_WAY = ("", "")  # the direction of all pairs, where there are not several


def languages_of_begun(begun: Path | None) -> tuple[str, str] | None:
    """The languages of a run that is continued, as its files name them; None for a new one."""
    if begun is None:
        return None
    if (spec := spec_in(begun)) is not None:
        return spec.direction
    facts = files.read_json(begun / "data.json") if (begun / "data.json").is_file() else None
    return None if facts is None else (str(facts[SOURCE]), str(facts[TARGET]))


def languages_of_start(start_from: str) -> tuple[str, str] | None:
    """The languages of the run that a training begins with; None where it has not just two that are known."""
    spec = spec_in(Path(start_from)) if start_from else None
    if spec is None or spec.languages is not None or spec.language_pair is None:
        return None
    return None if {*map(meaning, spec.language_pair)} & {None, *SIDES} else spec.language_pair


def languages_known(corpus: Corpus, recipe: TranslateRecipe, begun: Path | None) -> Corpus:
    """The pairs of translations with the languages of the run that is continued, or else as the data names them, or as
    the texts are in."""
    if recipe.data.scores != "bleu":
        return corpus
    if (known := languages_of_begun(begun)) and not corpus.directions:
        return replace(corpus, source=known[0], target=known[1])
    return with_languages(corpus, languages_of_start(recipe.start_from))


def another_direction(start_from: str, source: str, target: str) -> str:
    """A line where a training begins with a model of one direction, and its pairs are of another; "" otherwise."""
    known, own = languages_of_start(start_from), [meaning(source), meaning(target)]
    if known is None or own == [*map(meaning, known)] or {None, *SIDES} & {*own}:
        return ""
    ways = f"the model translates {known[0]} to {known[1]}, and these pairs are from {source} to {target}"
    return f"{ways}: it learns this, and unlearns that"


def spec_of_start(start: Start | None) -> TranslatorSpec:
    """What is kept of the model that training starts from: its languages, and the tokens around texts."""
    return TranslatorSpec() if start is None else TranslatorSpec.read(start.around)


def directed_start(start: Start, source: str, target: str) -> tuple[Start, str]:
    """The model to start from, set to the direction of pairs with these sides, and a line that says what that adds to
    the texts. Raises InputError where the model does not have such a language, but needs one."""
    spec = spec_of_start(start)
    languages = spec.languages
    if languages is None:
        return start, ""
    try:
        source, target = languages.direction(source, target, given=(spec.source or "", spec.target or ""))
    except InputError as error:
        if languages.prefixes:
            return start, f"no language of the model is told: {error.what}"
        if languages.target == "before" and not {source, target} & {SOURCE, TARGET}:
            return _in_new_direction(start, spec, languages, source, target)
        fix = "say what the sides are in, as the model calls it: --source NAME --target NAME"
        raise InputError(error.what, where="languages of the data", fix=fix) from None
    directed = start._replace(around=spec.between(source, target, start.source).written())
    if (first := languages.start(target)) is not None:
        tokenizer = start.target.begun_by(first)
        directed = directed._replace(source=tokenizer, target=tokenizer)
    prefix = languages.prefix(source, target)
    return directed, f"before each source: {prefix!r}" if prefix else f"as the model calls them: {source} to {target}"


def _in_new_direction(
    start: Start, spec: TranslatorSpec, languages: Languages, source: str, target: str
) -> tuple[Start, str]:
    """The model to start from, set to a direction that it was not trained on; it has tokens only for targets. With the
    target's token this is an additional direction; without it, the model's only one."""
    try:
        target = named(target, list(languages.tokens), "--to")
    except InputError:
        alone = replace(spec, languages=None, before=(), source=source, target=target)
        line = f"the model has no language {target!r}: it learns {source} to {target}, and unlearns the others"
        return start._replace(around=alone.written()), line
    more = replace(languages, directions=(*languages.directions, f"{source}{ARROW}{target}"))
    directed = replace(spec, languages=more).between(source, target, start.source)
    return start._replace(around=directed.written()), f"a new direction of the model: {source} to {target}"


def tags_said(parts: Iterable[Pairs]) -> list[str]:
    """The tags of pairs, the most frequent first. Raises InputError where there are too many."""
    counted = Counter(tag for part in parts for tag in part.tags if tag)
    if len(counted) > MOST_TAGS:
        fix = "name a column that says what kind a pair is of"
        raise InputError(f"{len(counted):,} different tags, at most {MOST_TAGS}", where="data.tag", fix=fix)
    return [name for name, _ in counted.most_common()]


def tags_of(names: Sequence[str], start: TranslatorSpec, tokenizer: Tokenizer, *, where: str) -> dict[str, int]:
    """The tokens of tags: those of the model that training starts from, or of these in a new vocabulary. Raises
    InputError for a tag that the model does not know."""
    new = {name: tokenizer.extra[tag_token(name)] for name in names if tag_token(name) in tokenizer.extra}
    known = start.tags or new
    if unknown := [name for name in names if name not in known]:
        what = f"the model does not know the tag {unknown[0]!r}"
        raise InputError(what, where=where, fix="leave out --from, or the tags")
    return known


def specs_of(
    directions: Sequence[Direction], tags: Sequence[str], start: TranslatorSpec, tokenizer: Tokenizer, *, where: str
) -> dict[Direction, TranslatorSpec]:
    """What the model is told of each direction (`ONE_WAY` where there are not several), for the model that training
    starts from or for a new one. Raises InputError where the model has only one direction, marks languages in a way
    that a batch of several cannot, or does not know a tag."""
    tokens = tags_of(tags, start, tokenizer, where=where)
    made = _directed_specs(directions, start, tokenizer, where=where)
    if not tokens:
        return made
    forbidden = tuple(dict.fromkeys([*start.never(tokenizer), *tokens.values()]))
    return {way: replace(spec, tags=tokens, forbidden=forbidden) for way, spec in made.items()}


def _directed_specs(
    directions: Sequence[Direction], start: TranslatorSpec, tokenizer: Tokenizer, *, where: str
) -> dict[Direction, TranslatorSpec]:
    if not directions:
        return {ONE_WAY: start}
    languages = start.languages
    if languages is None:
        names = list(dict.fromkeys(target for _, target in directions))
        if not all(token_of(name) in tokenizer.extra for name in names):
            fix = "leave out --from, or give data of its direction"
            raise InputError("a model of one direction, and data of several", where=where, fix=fix)
        tokens = {name: tokenizer.extra[token_of(name)] for name in names}
        learnt = tuple(f"{source}{ARROW}{target}" for source, target in directions)
        languages = Languages(tokens=tokens, target="before", directions=learnt)
        start = replace(start, forbidden=(tokenizer.pad, tokenizer.bos, *tokens.values()))
    if languages.source == "after" or languages.target == "start":
        what = "its languages are told at the end of a source, or start decoding: one direction at a time"
        raise InputError(what, where=where, fix="train it on one direction")
    several, made = replace(start, languages=languages), {}
    for source, target in directions:
        one, other = languages.direction(source, target, given=("", ""))
        made[source, target] = several.between(one, other, tokenizer)
    return made
