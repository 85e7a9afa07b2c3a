"""Finds faults in pairs of texts before a training, and prepares them where they are too many for the memory."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from heedful.data.large import FileTexts
from heedful.data.lines import tsv_row
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.directions import SIDES
from heedful.data.text.pairs import Pairs
from heedful.data.text.quality import CHECKS
from heedful.data.text.quality.report import QualityExample, Report, examine, leaving
from heedful.data.text.reading import Read, read_whole
from heedful.errors import InputError
from heedful.run.prepared import WorkPart, read_manifest
from heedful.run.recipe import Recipe, override
from heedful.store import files
from heedful.store.refusals import refuse_read
from heedful.tasks import TASKS
from heedful.tasks.recipes import by_key, read_recipe
from heedful.tasks.shared.preparing.filling import Shown, no_news
from heedful.verbs.cluster import on_cluster

LEFT_OUT = ".left-out.tsv"
TAG = "kind"  # the column of the tags


@dataclass(frozen=True)
class Checked:
    """A report on pairs, and the numbers of those that are left out, with the faults of each."""

    read: Read
    report: Report
    left_out: dict[int, list[str]]

    @property
    def record(self) -> dict[str, Any]:
        """The report for programs: the numbers of all pairs, of those kept, and of those with each fault."""
        pairs, report = self.read.train, self.report
        counts = {name: report.counts[name] for name in CHECKS}
        counts["empty"] += pairs.dropped
        return {
            "pairs": len(pairs) + pairs.dropped,
            "kept": len(pairs) - len(self.left_out),
            **counts,
            "tokens": list(report.tokens),
            "languages": list(report.languages),
            "examples": {name: [asdict(one) for one in shown] for name, shown in report.examples.items()},
        }


def check_data(
    paths: str | Path | Sequence[str | Path],
    *,
    source: str | None = None,
    target: str | None = None,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
    along: Callable[[range], Iterable[int]] = iter,
    out: Path | None = None,
) -> Checked:
    """Checks all training pairs, also against the test and validation sets of the same data. `along` iterates over
    their numbers, and may show the progress. `out`: where the cleaned data will be written, which is checked first.
    Raises InputError, MissingError or StorageError."""
    for name in (*keep, *drop):
        if name not in CHECKS:
            raise InputError(f"no check is called {name!r}", fix=f"there are {', '.join(CHECKS)}")
    if out is not None:
        refuse_out(out)
    read = read_whole(paths, source=source, target=target)
    if out is not None:
        refuse_out(out, read.files)
    tests = [part for part in (read.valid, *read.tests.values()) if part]
    report = examine(read.train, tests, source=read.taken.source, target=read.taken.target, along=along)
    if read.train.empty and len(report.examples.setdefault("empty", [])) < 1:
        report.examples["empty"] = [
            QualityExample(read.train.line_of(place), one, other) for place, one, other in read.train.empty[:5]
        ]
    return Checked(read, report, report.left_out(leaving(keep, drop)))


def prepare_data(
    recipe: Recipe | str,
    out: Path,
    given: Mapping[str, object],
    options: Mapping[str, object],
    *,
    settings: Sequence[str] = (),
    part: WorkPart | None = None,
    cluster: str | None = None,
    shown: Shown = no_news,
) -> dict[str, Any]:
    """Prepares the data of a recipe into the folder `out`, and returns the manifest; of one `part` of the work, where
    others are not done, {"part": [2, 8], "missing": [3, 5]}. `cluster`: the address of a scheduler of Dask, whose
    workers do it. The other arguments are those of `heedful.verbs.train.planned`. Raises InputError, MissingError or
    StorageError."""
    named = read_recipe(recipe) if isinstance(recipe, str) else recipe
    row = TASKS[named.task]
    if row.prepares is None:
        able = ", ".join(name for name, task in TASKS.items() if task.prepares)
        what = f"data for {named.task} cannot be prepared"
        raise InputError(what, where="heed data prepare", fix=f"give them to heed train; --task is one of {able}")
    if part and cluster is not None:
        what = "a cluster shares out the work itself"
        raise InputError(what, where="--part and --cluster", fix="give one of the two")
    files.need_access(out)
    asked = {key: value for key, value in given.items() if value is not None} | by_key(options, named.task)
    with nullcontext(map) if cluster is None else on_cluster(cluster) as each:
        missing = row.prepares()(override(override(named, asked), settings)).into(out, shown, part=part, each=each)
    return {"part": [*(part or ())], "missing": missing} if missing else read_manifest(out)


def beside(out: Path) -> Path:
    """The table of what is left out, beside that of the cleaned data."""
    return out.with_name(out.name.removesuffix(".tsv") + LEFT_OUT)


def refuse_out(out: Path, read: Iterable[Path] = ()) -> None:
    """Raises InputError, MissingError or StorageError where cleaned data cannot be written to `out`, also because it
    would replace one of the files that were read."""
    if out.suffix != ".tsv":
        raise InputError("the cleaned data is a .tsv file", where=str(out), fix="--out clean.tsv")
    for place in (out, beside(out)):
        files.need_output(place)
        refuse_read(place, read)


def write_cleaned(checked: Checked, out: Path) -> Path:
    """Writes the pairs that are kept into a table with a header, and the others into a second one, with the place and
    the faults of each; returns the path of the second. Rows also have the languages, if there are several directions,
    and the tag, if there are tags; each reference has a row. Raises InputError, MissingError or StorageError."""
    refuse_out(out, checked.read.files)
    pairs, names = checked.read.train, _names(checked.read)
    told = [*([own[0] for own in SIDES] if pairs.directions else []), *([TAG] if pairs.tags else [])]
    lines = FileTexts([f"{tsv_row(*names, *told)}\n"])
    for i, (source, target) in enumerate(zip(pairs.source, pairs.target, strict=True)):
        if i in checked.left_out:
            continue
        for reference in (target, *(pairs.others[i] if pairs.others else ())):
            lines.append(f"{tsv_row(source, reference, *_kind(pairs, i))}\n")
    files.write_output(out, *lines.joined())
    gone = [(place, one, other, "empty") for place, one, other in pairs.empty]
    for i, faults in checked.left_out.items():
        gone.append((pairs.place_of(i), pairs.source[i], pairs.target[i], ", ".join(faults)))
    without = [tsv_row(one, other, pairs.line_of(place), why) for place, one, other, why in sorted(gone)]
    header = tsv_row(*names, "where", "why")
    files.write_output(beside(out), "\n".join([header, *without, ""]).encode())
    return beside(out)


def _names(read: Read) -> tuple[str, str]:
    """The names of the columns; not a number, which is that of a column in another file."""
    taken = read.taken
    numbered = any(name.startswith("column ") for name in (taken.source, taken.target))
    return (SOURCE, TARGET) if read.directions or numbered else (taken.source, taken.target)


def _kind(pairs: Pairs, i: int) -> list[str]:
    """The pair's languages, if there are several directions, and its tag, if there are tags."""
    return [*(pairs.direction_of(i) or ()), *([pairs.tags[i]] if pairs.tags else ())]
