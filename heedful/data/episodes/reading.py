"""Reads episodes in parts: from .jsonl and .npz files, from a data set of Minari, or of random actions in an
environment."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from heedful.data.episodes.environments import NAMES, is_environment, random_episodes
from heedful.data.episodes.episode import PARTS, Episode, episode, parsed
from heedful.data.lines import DAMAGED, NOT_READ, archive_in, json_lines, read_bytes, read_lines
from heedful.data.parts import Parts, held_out, kind_of, read_parts, read_tests
from heedful.errors import InputError, MissingError

Episodes = Parts[list[Episode]]

KINDS = (".jsonl", ".npz")
ENDS = ("terminals", "timeouts", "terminations", "truncations", "dones")  # arrays of an .npz file that end an episode
MINARI = "minari:"
MANY, FEW, MOST = 2000, 200, 1_000_000  # random episodes to learn from by default; to validate and test on; at most


def read_episodes(path: str | Path) -> Episodes:
    """Reads episodes.

    - .jsonl: an object a line, {"observations": [...], "actions": [...], "rewards": [...]}, with one of each at every
      step: a whole number, or a list of numbers; a reward is a number.
    - .npz: the same as arrays of all steps of all episodes, and one or more of `ENDS`, true at the last step of each.
    - a folder with such files: train*, valid* and test*.
    - "minari:NAME": a data set that Minari has on this machine.
    - the name of an environment, perhaps with a number ("key-to-door:5000"): so many episodes of random actions.

    Without validation data, a tenth of the episodes is held out. Raises InputError or MissingError.
    """
    text = str(path)
    if text.startswith(MINARI):
        train, valid, notes = held_out(_minari(text), [], _key, noun="episode", where=Path(text))
        return Parts(train, valid, {}, text, notes=notes)
    name, _, number = text.partition(":")
    if not is_environment(name):
        return read_parts(path, read_file, kinds=KINDS, key=_key)
    if number and not (number.isdecimal() and 0 < int(number) <= MOST):
        raise InputError(f"{number!r} is no number of episodes", where=text, fix=f"for example {name}:5000")
    last = int(number or MANY)
    parts = (range(last), range(last, last + FEW), range(last + FEW, last + 2 * FEW))
    learnt, valid, test = (random_episodes(name, seeds) for seeds in parts)
    return Parts(learnt, valid, {"test": test}, text)


def read_test_episodes(path: str | Path) -> Mapping[str, list[Episode]]:
    """The episodes of a file, or the test sets of whatever else `read_episodes` reads. Raises InputError or
    MissingError."""
    if is_environment(str(path).partition(":")[0]) or str(path).startswith(MINARI):
        return read_episodes(path).scored()
    return read_tests(path, read_file, kinds=KINDS)


def _key(each: Episode) -> str:
    return each.fingerprint


def read_file(path: str | Path) -> list[Episode]:
    """The episodes of a .jsonl or .npz file. Raises InputError or MissingError."""
    path = Path(path)
    if kind_of(path) == ".npz":
        return _npz(path)
    if kind_of(path) != ".jsonl":
        fix = f"give .jsonl or .npz, or one of {', '.join(NAMES)}"
        raise InputError("not a kind of file that episodes are read from", where=str(path), fix=fix)
    lines = read_lines(path, longest=None)
    return [parsed(value, where) for where, value in json_lines(path, lines)]


def _npz(path: Path) -> list[Episode]:
    """Nothing in it is unpickled, and no more is unpacked than `archive_in` allows."""
    data = read_bytes(path)
    archive_in(io.BytesIO(data), len(data), str(path)).close()
    try:
        with numpy.load(io.BytesIO(data), allow_pickle=False) as packed:
            arrays = {name: packed[name] for name in (*PARTS, *ENDS) if name in packed.files}
    except (*DAMAGED, NOT_READ, OSError, ValueError, KeyError, MemoryError, SyntaxError) as error:
        what = f"arrays that cannot be read ({' '.join(str(error).split())[:100]})"
        raise InputError(what, where=str(path), fix="save it again by numpy.savez") from None
    ends = [arrays[name] for name in ENDS if name in arrays]
    if missing := [name for name in PARTS if name not in arrays]:
        raise InputError(f"no array {missing[0]!r}", where=str(path), fix=f"give {', '.join(PARTS)}")
    lengths = {len(values) if values.ndim else 0 for values in arrays.values()}
    if not ends or len(lengths) != 1 or any(end.ndim != 1 for end in ends):
        fix = f"one of {', '.join(ENDS)}, true at the last step of each episode, as long as all other arrays"
        raise InputError("nothing that says where its episodes end", where=str(path), fix=fix)
    return [
        episode(*(arrays[name][first:last] for name in PARTS), where=f"{path}: step {first}")
        for first, last in _between(numpy.any([end.astype(bool) for end in ends], axis=0))
    ]


def _between(ends: NDArray[Any]) -> Iterator[tuple[int, int]]:
    first = 0
    for last in (*(numpy.flatnonzero(ends) + 1).tolist(), len(ends)):
        if last > first:
            yield first, last
        first = last


def _minari(name: str) -> list[Episode]:
    try:
        import minari
    except ImportError:
        raise MissingError("Minari is not installed", where=name, fix="pip install 'minari[hdf5]'") from None
    try:
        episodes = [*minari.load_dataset(name.removeprefix(MINARI)).iterate_episodes()]
    except (OSError, ValueError, KeyError, ImportError) as error:
        fix = f"minari download {name.removeprefix(MINARI)}"
        raise MissingError(" ".join(str(error).split())[:200], where=name, fix=fix) from None
    return [
        episode(each.observations, each.actions, each.rewards, where=f"{name}: episode {number}")
        for number, each in enumerate(episodes)
    ]
