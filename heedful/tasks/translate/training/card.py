"""The model card of a translator."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heedful.data.text.columns import TARGET
from heedful.data.text.corpus import Corpus
from heedful.data.text.mix import MixedIn
from heedful.data.text.pairs import Pairs
from heedful.data.text.reading import paths_of
from heedful.errors import counted
from heedful.metrics.names import BEFORE, LABELS, SPEED, TEACHER
from heedful.metrics.texts import Metric
from heedful.run.card import CARD, CardText, Scores
from heedful.store import files
from heedful.tasks.translate.confidence import Calibration
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.spec import TASK, TranslatorSpec
from heedful.tasks.translate.training.synthetic import written_by

DATA = "data.json"
WHOSE = {BEFORE: " before", TEACHER: " of its teacher"}


@runtime_checkable
class Trained(Protocol):
    """What a card tells of a training: a TranslateJob."""

    recipe: TranslateRecipe
    corpus: Corpus
    mixes: list[MixedIn]
    metric: Metric
    score_names: tuple[str, ...]
    around: TranslatorSpec
    tag: str
    reads_capitals: bool
    originals: int
    synthetic: int
    calibration: Calibration | None

    def tests(self) -> Iterator[tuple[str, Pairs]]: ...


def card_text(job: Trained, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
    corpus, decode, first = job.corpus, job.recipe.decode, next(iter(scores.values()))
    verb, names, rank = job.recipe.task, job.score_names, job.metric.rank
    asked = "".join(f" --to {target}" for _, target in corpus.directions[-1:])  # of several directions the last
    what = job.recipe.PURPOSE.format(source=corpus.source, target=corpus.target)
    source, target = [(corpus.source, corpus.target), *corpus.directions][-1]
    example = job.recipe.EXAMPLE.format(source=source, target=target)
    besides = [(name, end) for end in (BEFORE, TEACHER) for name in names if f"{name}{end}" in first]
    columns = [LABELS[name] for name in names] + ["exactly right"] * ("exact" in first)
    columns += [f"{LABELS[name]}{WHOSE[end]}" for name, end in besides]
    rows = []
    tested = dict(job.tests())
    for name, each in scores.items():
        cells = [f"{each[own]:.1f}" for own in names]
        cells += [f"{100 * float(each['exact']):.1f} %"] if "exact" in each else []
        cells += [f"{each[f'{own}{end}']:.1f}" for own, end in besides]
        rows.append(f"| {name} | {len(tested[name]):,} | {' | '.join(cells)} |")
    sure = "" if job.calibration is None else f" {job.calibration.told}"
    return CardText(
        what=what,
        learnt_on=f"{counted(job.originals, 'pair')}, from `{corpus.train.name}`{_mixed_in(job)}",
        after=_written(job, f"{rank}{TEACHER}" in first) + _tags(job),
        table=[f"| test set | pairs | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns), *rows],
        how=f"Search: beam {decode.beam}, length penalty {decode.length_penalty:g}. Scored by {_signatures(scores)}."
        + _speeds(first)
        + sure,
        kept=f"step {best['step']:,}, the best on the validation pairs ({LABELS[rank]} {best[rank]:.1f}, greedy)",
        use=[
            f'heed {verb} {folder} "{example}"{asked}',
            f'heed look {folder} "{example}" --out attention.html',
        ],
        limits="It has seen only the text above, and translates what is like it: on other text expect worse than "
        "the table says. It can leave out, invent and repeat; nothing in it checks facts."
        + " It reads texts in CAPITALS in small letters."
        * (not job.reads_capitals),
    )


def renamed(folder: Path, source: str, target: str) -> dict[str, bytes]:
    """The files of a run of one direction that name its languages, with these names. The order is such that a change
    that was interrupted can be made again."""
    spec = TranslatorSpec.read(files.read_json(folder / TASK), where=str(folder / TASK))
    new = {"source": source, "target": target}
    old = dict(zip(new, spec.direction, strict=True))
    made: dict[str, bytes] = {}
    if (folder / CARD).is_file():
        card = files.read_bytes(folder / CARD, limit=files.JSON_LIMIT)
        for text in (TranslateRecipe.PURPOSE, TranslateRecipe.EXAMPLE):
            card = card.replace(text.format(**old).encode(), text.format(**new).encode())
        made[CARD] = card
    made[TASK] = files.json_bytes(replace(spec, source=source, target=target).written(), where=folder / TASK)
    if (folder / DATA).is_file():
        made[DATA] = files.json_bytes(files.read_json(folder / DATA) | new, where=folder / DATA)
    return made


def _signatures(scores: Scores) -> str:
    """How the test sets were scored; of which each, where that is not the same of all."""
    told: dict[str, list[str]] = {}
    for name, each in scores.items():
        own = " and ".join(f"`{each[key]}`" for key in ("signature", "chrf_signature") if key in each)
        told.setdefault(own, []).append(name)
    return next(iter(told)) if len(told) == 1 else "; ".join(f"{own} ({', '.join(sets)})" for own, sets in told.items())


def _written(job: Trained, scored: bool) -> str:
    """What of the data models wrote, and which; and whether a teacher among them is not `scored` beside it."""
    said, lacking = [], False
    for path, weight in paths_of(job.recipe.data.synthetic):
        known = written_by(path) or {"models": []}
        runs = " and ".join(f"`{one['run']}`" for one in known["models"])
        by = f", whose {known['writes']}s {runs} wrote" if runs else ""
        lacking |= bool(runs) and known["writes"] == TARGET and not scored
        said.append(f"`{path}`{by}{f', {weight:g} times in each epoch' if weight != 1 else ''}")
    if not said:
        return ""
    own = job.recipe.data.originals
    told = "" if own == 1 else f" The others were in each epoch {own:g} times." if own else " From no others."
    told += " The teacher was no longer there as it had been, and has no scores here." if lacking else ""
    return f" {job.synthetic:,} synthetic pairs are from {'; '.join(said)}.{told}"


def _tags(job: Trained) -> str:
    """The kinds of translations that can be asked for, and their numbers of training pairs."""
    tags = job.around.tags
    if not tags:
        return ""
    counted = Counter(tag for tag in job.corpus.train.tags if tag)
    listed = ", ".join(f"`{name}` ({counted[name]:,})" for name in tags)
    default = f"`{job.tag}` is taken where none is" if job.tag else "where none is, no tag is said"
    return f" Tags of its pairs are {listed}: `--tag {next(iter(tags))}` asks for one; {default}."


def _mixed_in(job: Trained) -> str:
    told = [f"{100 * mix.share:g} % of each epoch from `{mix.corpus.train.name}`" for mix in job.mixes]
    return f", with {' and '.join(told)}" if told else ""


def _speeds(scores: Mapping[str, Any]) -> str:
    """The speed of the model and of its teacher, if it has one."""
    if f"{SPEED}{TEACHER}" not in scores:
        return ""
    own, other = scores[SPEED], scores[f"{SPEED}{TEACHER}"]
    return f" So it translated {own:,.0f} sentences a second on this machine, and its teacher {other:,.0f}."
