"""The parallel text that a translator is trained and measured on: the pairs that `heedful.data.text.reading` reads,
split into training pairs and held-out pairs."""

import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path

from heedful.data.lines import composed
from heedful.data.parts import Parts, hold_out, stems
from heedful.data.text.directions import ARROW, Direction, in_words
from heedful.data.text.headers import SIDES, meaning
from heedful.data.text.pairs import Origin, Pairs, joined
from heedful.data.text.quality.languages import another, common_language, expected
from heedful.data.text.reading import Read, of_way, read_whole, two_sides
from heedful.errors import HeedError, InputError, counted

HELD_SHARE, HELD_MOST = 0.02, 2000  # share and most pairs, for validation, and again for a test
MOST_TOLD = 8  # files for which the notes say how they were read


@dataclass(frozen=True)
class Corpus(Parts[Pairs]):
    """The data that a translator is trained and measured on, and its two languages."""

    source: str = field(kw_only=True)
    target: str = field(kw_only=True)
    other_way: str = field(default="", kw_only=True)  # the options for the other direction
    directions: tuple[Direction, ...] = field(default=(), kw_only=True)  # if there are several
    # How often an epoch repeats the pairs of an origin, if not once.
    weights: Mapping[Origin, float] = field(default_factory=dict, kw_only=True)

    @property
    def held_out(self) -> str:
        """The fingerprint of all pairs that are not trained on, independent of their order."""
        parts = (self.valid, *self.tests.values())
        pairs = sorted(chain.from_iterable(zip(part.source, part.target, strict=True) for part in parts))
        return sha256("\0".join(chain.from_iterable(pairs)).encode()).hexdigest()


def read_parallel(
    path: str | Path | Sequence[str | Path],
    *,
    source: str | None = None,
    target: str | None = None,
    tag: str = "",
    valid: Sequence[str] = (),
    test: Sequence[str] = (),
) -> Corpus:
    """Reads the pairs in `path`, as `read_whole` does. The paths `valid`, joined, replace its validation data, and the
    paths `test` its tests: each is a test, but two files of two sides are one.

    Without validation data, about 2 % of the training pairs (at least 1, at most 2000) are held out, and as many for a
    test if there is none either. A hash of the lower-cased source decides: all translations of one sentence stay on one
    side, and every machine chooses the same. Raises InputError or MissingError.
    """
    return _corpus(read_all_parts(path, source=source, target=target, tag=tag, valid=valid, test=test))


def read_all_parts(
    path: str | Path | Sequence[str | Path],
    *,
    source: str | None = None,
    target: str | None = None,
    tag: str = "",
    valid: Sequence[str] = (),
    test: Sequence[str] = (),
    most: int | None = None,
) -> Read:
    """The same before anything is held out; `most` as of `read_whole`."""
    read = read_whole(path, source=source, target=target, tag=tag, most=most, besides=[*valid, *test])
    apart = list[Path]()
    if read.directions and (valid or test):
        fix = "give a folder, in which files are called train, valid and test"
        raise InputError("pairs of several directions, and files to validate or test on", where=str(path), fix=fix)
    if valid:
        held = _read_apart("--valid", valid, read, source, target, tag)
        told, notes = [*read.told, *held.told], [*read.notes, *held.notes]
        read, apart = replace(read, valid=held.train, told=told, notes=notes), [*held.files]
    if test:
        each = [test] if two_sides([(one, 1.0) for one in test]) else [[one] for one in test]
        tests = [_read_apart("--test", one, read, source, target, tag) for one in each]
        named = stems({own.files[0].name: own.train for own in tests})
        if len(named) < len(tests):
            raise InputError("two tests of one name", where=", ".join(test), fix="rename one")
        told, notes = [*read.told], [*read.notes]
        for each_test in tests:
            told += each_test.told
            notes += each_test.notes
        read = replace(read, tests=named, told=told, notes=notes)
        apart += [file for own in tests for file in own.files]
    return replace(read, files=[*read.files, *apart], apart=[*read.apart, *apart])


def _read_apart(
    option: str, paths: Sequence[str], like: Read, source: str | None, target: str | None, tag: str
) -> Read:
    """Reads validation or test data, in the languages of the training data. Raises InputError or MissingError."""
    said = _said(like.taken.source, like.taken.target)
    sides = source or said[0], target or said[1]
    try:
        read = read_whole(paths, source=sides[0], target=sides[1], tag=tag)
        first, second = read.taken.source, read.taken.target
        if sides == (None, None) and None not in _said(first, second) and _turned(like.train, first, second):
            read = read_whole(paths, source=second, target=first, tag=tag)
            note = f"{' + '.join(map(str, read.files))}: read from {second} to {first}, as the training texts are"
            read = replace(read, notes=[*read.notes, note])
    except HeedError as error:
        error.reword(lambda text: re.sub(r"(?<!\S)--data(?!\S)", option, text))
        raise
    if not len(read.train) or read.valid is not None or read.tests:
        raise InputError("parts of data, expected one part", where=", ".join(paths), fix="give a file, or two")
    return read


def _turned(train: Pairs, source: str, target: str) -> bool:
    """Whether the training texts are surely from the second of two languages to the first."""
    codes = common_language(train.source), common_language(train.target)
    return codes != (None, None) and all(
        code in (None, meaning(name)) for code, name in zip(codes, (target, source), strict=True)
    )


def read_to_score(
    path: str | Path | Sequence[str | Path],
    *,
    was_held_out: Callable[[str], bool],
    source: str | None = None,
    target: str | None = None,
    tag: str = "",
) -> Corpus:
    """Reads the pairs that a translator is measured on. If no file is named test, the validation data are the test, or
    else all pairs; but if the pairs that `read_parallel` would hold out were held out in training, by their
    fingerprint, they are. Raises InputError or MissingError."""
    read = read_whole(path, source=source, target=target, tag=tag, tests_alone=True)
    none = read.train.rows([])
    if read.valid is None and not read.tests:
        with suppress(InputError):  # too few pairs to hold any out
            if was_held_out((corpus := _corpus(read)).held_out):
                return corpus
    if read.tests and not len(read.train):
        read = replace(read, valid=read.valid or none)
    elif not read.tests:
        only = read.valid or read.train
        read = replace(read, train=none, valid=none, tests={Path(only.name).name: only})
    return _corpus(read)


def _corpus(read: Read) -> Corpus:
    """Holds out the parts that are missing, and collects notes for the user."""
    train, valid, tests, taken = read.train, read.valid, read.tests, read.taken
    lines = list(read.notes)
    for part in (train, valid, *tests.values()):
        if part and part.dropped:
            whole = part.dropped + len(part)
            lines.append(f"{part.name}: {part.dropped:,} of {whole:,} pairs dropped, a side is empty")
    if valid is None:
        valid, *test, train = _hold_out(train, 1 if tests else 2)
        lines.append(f"{train.name}: {counted(len(valid), 'pair')} held out for validation")
        if test:
            tests = {"test": test[0]}
            lines.append(f"{train.name}: {counted(len(test[0]), 'pair')} held out for a test")
    if read.directions:
        train, turned = _without_turned(train, [valid, *tests.values()])
        lines += [f"{train.name}: {counted(turned, 'pair')} left out, held out the other way round"] if turned else []
    known = set(map(alike, train.source))
    for part in (valid, *tests.values()):
        if seen := sum(alike(text) in known for text in part.source):
            lines.append(f"{part.name}: {seen:,} of {len(part):,} sources are in the training text too")
    told = [_with_weight(line, read.weights) for line in read.told]
    more = (f"and {len(told) - MOST_TOLD:,} more files",) if len(told) > MOST_TOLD else ()
    return Corpus(
        train,
        valid,
        tests,
        train.name,
        tuple(read.files),
        tuple(lines),
        apart=tuple(read.apart),
        source=taken.source,
        target=taken.target,
        other_way=taken.other_way,
        taken=(*told[:MOST_TOLD], *more),
        directions=tuple(read.directions),
        weights=read.weights,
    )


def with_languages(corpus: Corpus, like: tuple[str, str] | None = None) -> Corpus:
    """Names sides that are only called source or target by the languages of their texts, if both are sure; or as in
    `like`, the languages of the model that is tuned, if nothing speaks against them. Adds a line that says so."""
    sides = ((corpus.source, corpus.train.source), (corpus.target, corpus.train.target))
    if corpus.directions or not {meaning(name) for name, _ in sides} & {*SIDES}:
        return corpus
    found: list[str | None] = [common_language(texts) if meaning(name) in SIDES else name for name, texts in sides]
    how = "as the texts are in these"
    if like and None in found:
        others = [another(expected(*side), meaning(name)) for side, name in zip(sides, like, strict=True)]
        if not any(others):
            found = [*like]
            how = "taken as the model's"
    source, target = found
    if source is None or target is None or meaning(source) == meaning(target):
        told = (
            f"languages unknown, so named {corpus.source} and {corpus.target}: --source NAME --target NAME names them"
        )
        return replace(corpus, taken=(*corpus.taken, told))
    told = f"languages {source} and {target}, {how}: --source NAME --target NAME names others"
    return replace(corpus, source=source, target=target, taken=(*corpus.taken, told))


def languages_said(corpus: Corpus) -> tuple[str | None, str | None]:
    """Returns the languages for reading further data: None where a column's name is not a language, or with several
    directions."""
    return (None, None) if corpus.directions else _said(corpus.source, corpus.target)


def _said(*names: str) -> tuple[str | None, str | None]:
    source, target = (None if meaning(name) in (None, *SIDES) else name for name in names)
    return source, target


def _read_synthetic(path: str, like: Corpus) -> Read:
    """Reads pairs in the languages of a corpus, or by columns named source and target; for a corpus of several
    directions, in some of these. Raises InputError."""
    source, target = languages_said(like)
    if source and target:
        with suppress(InputError):
            return read_whole(path, source=source, target=target)
    read = read_whole(path)
    if not (known := like.directions):
        if read.directions:
            fix = f"say which are meant: --synthetic '{path}:{ARROW.join(read.directions[0])}'"
            raise InputError("pairs of several directions, and the others are of one", where=path, fix=fix)
        return read
    own = read.directions or [(read.taken.source, read.taken.target)]
    if unknown := [way for way in own if way not in known]:
        what = f"pairs from {in_words(unknown)}, and the others are from {in_words(known)}"
        raise InputError(what, where=path, fix=f"say of which these are: --synthetic '{path}:{ARROW.join(known[0])}'")
    weights = {Origin(file, way or own[0]): weight for (file, way), weight in read.weights.items()}
    if len(own) == 1:
        return replace(of_way(read, known, own[0]), weights=weights)
    ways = array("h", (known.index(own[way]) for way in read.train.ways))
    return replace(read, train=replace(read.train, ways=ways, directions=known), weights=weights)


def with_synthetic(corpus: Corpus, paths: Sequence[str], originals: float = 1.0) -> Corpus:
    """Adds training pairs that models wrote, from files as in `read_whole`. None of these is held out, and pairs with a
    side that is held out already are left out. An epoch repeats the other pairs `originals` times. Raises InputError or
    MissingError."""
    if not paths:
        return corpus
    found = [_read_synthetic(path, corpus) for path in paths]
    weights = {origin: weight for read in found for origin, weight in read.weights.items()}
    written = joined([read.train for read in found], " + ".join(read.train.name for read in found))
    kept = _not_held(written, corpus)
    notes = [*corpus.notes, *(note for read in found for note in read.notes)]
    if left_out := len(written) - len(kept):
        notes.append(f"{written.name}: {counted(left_out, 'synthetic pair')} left out, a side of theirs is held out")
    if written.dropped:
        notes.append(f"{written.name}: {counted(written.dropped, 'synthetic pair')} dropped, a side is empty")
    own = corpus.train if corpus.train.lines else corpus.train.numbered()
    train = joined([own, written.rows(kept)], own.name)
    origins = [Origin(file, way) for file in own.files for way in corpus.directions or [None]]
    weights |= {origin: originals * corpus.weights.get(origin, 1.0) for origin in origins}
    told = tuple(f"written by models: {_with_weight(line, weights)}" for read in found for line in read.told)
    files = (*corpus.files, *(file for read in found for file in read.files))
    return replace(corpus, train=train, files=files, notes=tuple(notes), taken=(*corpus.taken, *told), weights=weights)


def without_held(corpus: Corpus, like: Corpus) -> Corpus:
    """Returns the corpus without training pairs of which a side is held out in `like`. Raises InputError."""
    kept = _not_held(corpus.train, like)
    if not (left_out := len(corpus.train) - len(kept)):
        return corpus
    note = f"{corpus.train.name}: {counted(left_out, 'pair')} left out, a side of theirs is held out in {like.name}"
    return replace(corpus, train=corpus.train.rows(kept), notes=(*corpus.notes, note))


def _not_held(pairs: Pairs, corpus: Corpus) -> list[int]:
    """Returns the indices of the pairs of which no side is held out in a corpus. Raises InputError if there is none."""
    held = [corpus.valid, *corpus.tests.values()]
    sources = {alike(text) for part in held for text in part.source}
    targets = {alike(text) for part in held for own in part.references for text in own}
    if corpus.directions:  # a held-out side may be the source or the target here
        sources = targets = sources | targets
    both = enumerate(zip(pairs.source, pairs.references, strict=True))
    kept = [i for i, (one, others) in both if alike(one) not in sources and targets.isdisjoint(map(alike, others))]
    if not kept:
        raise InputError("every pair is held out already", where=pairs.name, fix="give other pairs")
    return kept


def _with_weight(line: str, weights: Mapping[Origin, float]) -> str:
    """Adds to the line about a file how often an epoch repeats it, if not once."""
    for (file, way), weight in weights.items():
        if line.startswith((f"{file}:", f"{file} + ")) and (way is None or line.endswith(f" ({in_words([way])})")):
            return f"{line}, {weight:g} times in each epoch"
    return line


def by_direction(tests: Mapping[str, Pairs]) -> Iterator[tuple[str, Pairs]]:
    """Yields the tests; a test of several directions gives one for each."""
    for name, part in tests.items():
        if not part.directions:
            yield name, part
        for (source, target), rows in part.by_direction().items():
            yield f"{name}, {source} to {target}", part.rows(rows)


def _without_turned(train: Pairs, held: Sequence[Pairs]) -> tuple[Pairs, int]:
    """Returns the pairs without those that are held out the other way round, and the number that was removed."""
    known = {(alike(two), alike(one)) for part in held for one, two in zip(part.source, part.target, strict=True)}
    both = enumerate(zip(train.source, train.target, strict=True))
    kept = [i for i, (one, two) in both if (alike(one), alike(two)) not in known]
    return (train.rows(kept), len(train) - len(kept)) if len(kept) < len(train) else (train, 0)


def held_key(text: str) -> str:
    """What a text is held out by. Not composed: a run that is continued holds out the same as when it was begun."""
    return text.strip().lower()


def alike(text: str) -> str:
    """What two texts have in common that are the same to a model, but for capitals."""
    return composed(held_key(text))


def held_room(pairs: int) -> int:
    """How many of so many pairs are held out, for each part."""
    return min(HELD_MOST, max(1, round(HELD_SHARE * pairs)))


def refuse_too_few(sources: int, parts: int, *, where: str) -> None:
    """Raises InputError where so many different sources are too few to hold out these parts."""
    if sources <= parts:
        what = f"{counted(sources, 'different source sentence')}, expected at least {parts + 1}, as some are held out"
        raise InputError(what, where=where, fix="give more pairs, or a validation file of their own")


def _hold_out(pairs: Pairs, count: int) -> list[Pairs]:
    """Returns `count` held-out parts and the rest. All pairs with one source stay together; with several directions,
    all pairs that share a text."""
    groups: dict[str, list[int]] = {}
    for i, key in enumerate(_connected(pairs) if pairs.directions else map(held_key, pairs.source)):
        groups.setdefault(key, []).append(i)
    refuse_too_few(len(groups), count, where=pairs.name)
    held = hold_out({key: len(rows) for key, rows in groups.items()}, held_room(len(pairs)), parts=count)
    rest = [key for key in groups if not any(key in own for own in held)]
    return [pairs.rows(sorted(i for key in keys for i in groups[key])) for keys in (*held, rest)]


def _connected(pairs: Pairs) -> list[str]:
    """Returns a text for each pair that is the same for all pairs connected by shared texts, such as a sentence and its
    translations into several languages. It does not depend on the order of the pairs."""
    above: dict[str, str] = {}

    def root(text: str) -> str:
        while (other := above.setdefault(text, text)) != text:
            above[text] = above[other]
            text = other
        return text

    for one, other in zip(map(held_key, pairs.source), map(held_key, pairs.target), strict=True):
        first, second = sorted((root(one), root(other)))
        above[second] = first
    return [root(held_key(text)) for text in pairs.source]
