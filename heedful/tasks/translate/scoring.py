"""Scores a translator on a pair of files or on test sets, alone or in comparison with another."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from heedful.core.config import to_json
from heedful.data.text.corpus import by_direction, read_to_score
from heedful.data.text.directions import Direction
from heedful.data.text.pairs import Pairs, read_pairs, told_apart
from heedful.data.text.quality.languages import mostly_another
from heedful.errors import InputError, counted
from heedful.metrics.names import LABELS
from heedful.metrics.paired import Compared, compare
from heedful.metrics.texts import Rouge, Scores
from heedful.run.learnt import has_held_out, learnt_from, warning
from heedful.run.task import Scored
from heedful.store import files
from heedful.store.lock import run_lock
from heedful.store.refusals import refuse_read
from heedful.tasks.shared.terminal import on_one_line
from heedful.tasks.translate.calibration import FEWEST, calibrated
from heedful.tasks.translate.confidence import write_calibration
from heedful.tasks.translate.options import TranslationScoring
from heedful.tasks.translate.pairs.directed import directed_by_data, directed_by_files, refuse_named
from heedful.tasks.translate.pairs.tagged import with_tags
from heedful.tasks.translate.searching import Translation
from heedful.tasks.translate.use import Translator, load_translator

SURE = 0.05  # the p-value below which a difference counts


def score_translator(translator: Translator, options: TranslationScoring) -> Iterator[Scored]:
    """The scores on a pair of files, or on the test sets of data as for training. Raises InputError or MissingError."""
    tests, valid, told_of_data = _parts(translator, options)
    written = _outputs(options.out, [*tests])
    read = [file for part in (*tests.values(), valid) for file in part.files]
    for path in written.values():
        refuse_read(path, [*read, *filter(None, (options.data, options.source, options.target))])
    other = _other(translator, options)
    if other is not None and other.spec.languages is not None and translator.spec.languages is None:
        tests = {name: _in_direction(translator, part) for name, part in tests.items()}
    for run in options.together or ():
        translator = translator.join(load_translator(Path(run), device=_device(translator)), name=run)
    kept = _to_be_calibrated(translator) if options.calibrate else None
    settings = options.search
    with ExitStack() as both:
        if kept is not None:
            both.enter_context(run_lock(kept))  # its weights stay those that are calibrated
        translator = both.enter_context(translator.in_processes(torch.get_num_threads()))
        if other is not None:
            other = both.enter_context(other.in_processes(torch.get_num_threads()))
        for name, pairs in tests.items():
            made = translator.search_pairs(pairs, **settings)
            texts = [translation.text for translation in made]
            alone = translator.target.ours and translator.engine is None and not translator.others
            loss = {"loss": translator.loss(pairs)} if alone else {}
            notes = (*told_of_data, *_other_languages(pairs, translator.languages), *_notes(pairs, made))
            told_of_data = ()
            if out := written.get(name):
                files.write_output(out, "".join(f"{on_one_line(text)}\n" for text in pairs.in_place(texts)).encode())
                blank = f", and {counted(len(pairs.empty), 'empty line')}" if pairs.empty else ""
                notes = (*notes, f"{out}: {counted(len(texts), 'translation')}, a line each{blank}")
            told = counted(len(pairs), "pair")
            if other is None:
                scores = translator.metric.score(texts, pairs.references, bootstrap=options.bootstrap, ter=options.ter)
                yield Scored(name, loss | known(scores), f"{told}, {scores}", notes, told_apart(pairs))
                continue
            others = [translation.text for translation in other.search_pairs(pairs, **settings)]
            found = compare(texts, others, pairs.references, samples=options.bootstrap, ter=options.ter)
            names = " + ".join([str(translator.run or "this"), *(options.together or ())]), str(options.against)
            yield Scored(
                name, loss | _record(found, names[1]), f"{told}\n{_told(found, names)}", notes, told_apart(pairs)
            )
        if kept is not None:
            yield _calibrated(translator, valid, kept)


def known(scores: Scores | Rouge) -> dict[str, Any]:
    """The scores as a record, without those that were not computed."""
    return {key: value for key, value in asdict(scores).items() if value is not None}


def _to_be_calibrated(translator: Translator) -> Path:
    """The folder for the calibration. Raises InputError, and StorageError where it cannot be written."""
    if translator.run is None or translator.others:
        raise InputError("confidence is calibrated of one run", where="--calibrate", fix="leave out --with")
    files.need_access(translator.run)
    return translator.run


def _calibrated(translator: Translator, pairs: Pairs, run: Path) -> Scored:
    """Calibrates on `pairs`, and writes the result into the run's folder. Raises InputError."""
    if (found := calibrated(translator, pairs)) is None:
        what = f"confidence is calibrated on {FEWEST} translations or more"
        raise InputError(what, where=pairs.name, fix="give more pairs")
    write_calibration(run, found)
    return Scored(f"calibrated on {pairs.name}", to_json(found), found.told)


class _Parts(NamedTuple):
    """The test sets, the pairs for calibration, and notes on how they were read."""

    tests: Mapping[str, Pairs]
    valid: Pairs
    told: tuple[str, ...]


def _parts(translator: Translator, options: TranslationScoring) -> _Parts:
    """The pairs of data or of two files; some of the runs may have been trained on them."""
    runs = [one for one in (translator.run, options.against, *(options.together or ())) if one is not None]
    if options.data is not None:
        return _of_data(translator, options.data, options, runs)
    if options.source is not None and options.target is not None:
        return _of_files(translator, options.source, options.target, options, runs)
    raise InputError("nothing to score", fix="give --source FILE --target FILE, or --data PATH")


def _of_data(translator: Translator, data: str, options: TranslationScoring, runs: Sequence[str | Path]) -> _Parts:
    refuse_named(data, to=options.to, from_language=options.from_language)
    several, source, target = translator.spec.languages is not None, options.source, options.target
    if not several:
        source, target = source or translator.languages[0], target or translator.languages[1]
    held = list[str]()

    def was_held_out(fingerprint: str) -> bool:
        held.extend(str(run) for run in runs if has_held_out(Path(run), fingerprint))
        return bool(held)

    read = partial(read_to_score, data, was_held_out=was_held_out, source=source, target=target)
    corpus, told = with_tags(translator, lambda tag: read(tag=tag))
    if not several and (corpus.source, corpus.target) != (source, target):
        told = (*told, f"{data}: scored from {corpus.source} to {corpus.target}")
    if held:
        told = (*told, f"{data}: {held[0]} has learnt from it, and what it held out for a test is scored")
    tests, valid = corpus.tests, corpus.valid
    others = [run for run in runs if str(run) not in held]
    scored = dict.fromkeys(Path(file) for part in tests.values() for file in part.files)
    told = (*told, *(line for file in scored for line in _warnings(others, [file])))
    if several and corpus.directions:
        tests = dict(by_direction(tests))
    elif several:
        known_way = partial(_in_direction, directed_by_data(translator, corpus.source, corpus.target, data))
        tests, valid = {name: known_way(part) for name, part in tests.items()}, known_way(valid)
    return _Parts(tests, valid or next(iter(tests.values())), told)


def _of_files(
    translator: Translator, source: str, target: str, options: TranslationScoring, runs: Sequence[str | Path]
) -> _Parts:
    pairs, told = read_pairs(source, target), _warnings(runs, [Path(target), Path(source)])
    directed, unsaid = directed_by_files(translator, source, target, named=(options.from_language, options.to))
    if translator.spec.languages is not None:
        pairs, told = _in_direction(directed, pairs), (*told, *unsaid)
    return _Parts({Path(source).name: pairs}, pairs, told)


def _warnings(runs: Sequence[str | Path], paths: Sequence[Path]) -> tuple[str, ...]:
    """Warnings about runs that were trained on all of these files (one side alone teaches no translations)."""
    return tuple(warning(paths[0], run) for run in runs if learnt_from(Path(run), paths) == paths)


def _in_direction(translator: Translator, part: Pairs) -> Pairs:
    """The pairs, marked as being in the translator's direction."""
    return replace(part, ways=[0] * len(part), directions=(translator.languages,))


def _other(translator: Translator, options: TranslationScoring) -> Translator | None:
    """The translator to compare with."""
    if options.against is None:
        return None
    if translator.metric.rank != "bleu":
        raise InputError("texts that are scored by ROUGE are not compared", fix="leave out --against")
    return load_translator(Path(options.against), device=_device(translator), engine=options.engine)


def _device(translator: Translator) -> str:
    """The device of the model; with an engine, our model has no weights."""
    return "cpu" if translator.engine is not None else str(next(translator.model.parameters()).device)


def _outputs(out: str | None, names: list[str]) -> dict[str, Path]:
    """The output file of each test set: the given one, or, for several sets, "made.NAME.txt" and the like. Raises
    InputError, MissingError or StorageError."""
    if out is None:
        return {}
    path = Path(out)
    several = len(names) > 1
    made = {name: path.with_name(f"{path.stem}.{Path(name).name}{path.suffix}") if several else path for name in names}
    for place in made.values():
        files.need_output(place)
    return made


def _notes(pairs: Pairs, made: list[Translation]) -> Iterator[str]:
    if pairs.dropped:
        yield f"{pairs.name}: {counted(pairs.dropped, 'pair')} left out, a side is empty"
    if parted := sum(one.parts > 1 for one in made):
        yield f"sources longer than all that was learnt from, translated in parts: {parted:,}"
    if cut := sum(one.cut > 0 for one in made):
        yield f"sources that were too long, their last tokens not read: {cut:,}"


def _other_languages(pairs: Pairs, direction: Direction) -> Iterator[str]:
    """A warning for each side whose texts are mostly in another language. `direction` is that of pairs that do not have
    one of their own."""
    for way, rows in pairs.by_direction().items() or [(direction, range(len(pairs)))]:
        part = pairs.rows(rows)
        for side, name, texts in (("sources", way[0], part.source), ("targets", way[1], part.target)):
            if (found := mostly_another(name, texts)) is not None:
                what = f"most {side} are in {found[0]}, not in {found[1]}"
                yield f"{pairs.name}: {what}: look whether columns or directions are mixed up"


def _record(found: Compared, against: str) -> dict[str, Any]:
    differences = {name: {"difference": found.difference(name), "p": p} for name, p in found.p.items()}
    return known(found.one) | {"against": {"run": against, **known(found.other)}, "compared": differences}


def _told(found: Compared, names: tuple[str, str]) -> str:
    width = max(map(len, names))
    lines = [
        f"  {name:{width}}  {scores.figures}" for name, scores in zip(names, (found.one, found.other), strict=True)
    ]
    for name, p in found.p.items():
        above = found.difference(name)
        better = names[0] if (above < 0) == (name == "ter") else names[1]  # the fewer edits, the better
        verdict = f"{better} is better" if p < SURE else "it may be chance"
        lines.append(f"  {LABELS[name]} {above:+.1f}, p = {p:.3f}: {verdict}")
    return "\n".join(lines) + found.one.signatures
