"""Files of pairs that models write, and a student that learns from its teacher's (Kim and Rush 2016)."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import torch

from heedful.data.text.corpus import read_parallel
from heedful.data.text.layouts import language_of
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError, are, counted
from heedful.run.recipe import override, plain_recipe, validated
from heedful.run.task import Lesson
from heedful.store.files import with_proper_name
from heedful.tasks.shared.options import StudentOptions
from heedful.tasks.translate.languages import only_direction, refuse_untold
from heedful.tasks.translate.options import PRESET, TeachingOptions
from heedful.tasks.translate.pairs.rerank import UNJUDGED, Judge
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.spec import spec_of_run
from heedful.tasks.translate.training.synthetic import Synthetic, columns_called, fastest, texts_in
from heedful.tasks.translate.use import load_translator

EVERY = 15  # seconds between two lines that tell how far it is
OWN_DATA = ("tokenizer", "vocab_size", "joint")  # what a student takes of its teacher's recipe


class Distillation(NamedTuple):
    """The teacher's file of pairs, and the student's training."""

    writing: Synthetic
    recipe: TranslateRecipe


def lesson(teacher: Path, student: StudentOptions, teaching: TeachingOptions) -> Lesson:
    """What `heed distil` does for a translator: the teacher writes the file before the student's training."""
    planned = planned_distillation(teacher, student, teaching)
    return Lesson(planned.recipe, partial(write_pairs, planned.writing))


def planned_distillation(teacher: Path, student: StudentOptions, teaching: TeachingOptions) -> Distillation:
    """What the teacher says goes into a .tsv file: as one model with the runs beside it, chosen among its beam with
    those that judge. Raises InputError or MissingError."""
    path, source, target = student.path, teaching.source, teaching.target
    if not path:
        raise InputError("no data was given", fix="--data PATH: the pairs whose sources the teacher translates")
    taught = teaching.taught or Path(f"{with_proper_name(student.out)}.taught.tsv")
    spec = spec_of_run(teacher)
    several = spec.languages is not None
    if not several:
        source, target = source or spec.direction[0], target or spec.direction[1]
    given: dict[str, Any] = {"path": path, "source": source or "", "target": target or ""}
    given |= {"synthetic": [str(taught)], "originals": teaching.originals}
    own = {} if student.start else plain_recipe(teacher).get("data", {})  # of a model without a recipe nothing
    given |= {key: own[key] for key in OWN_DATA if key in own}
    plan = {} if student.minutes is None else {"minutes": student.minutes}
    begun = {"start_from": student.start} if student.start else {"preset": student.preset or PRESET}
    recipe = validated(TranslateRecipe, {**begun, "data": given, "train": plan}, where="heed distil")
    recipe = override(recipe, student.settings or ())
    corpus = read_parallel(path, source=source, target=target)
    if corpus.directions:
        raise InputError("data of several directions", where=corpus.name, fix="name one: --source en --target de")
    if spec.languages is not None:
        refuse_untold(spec.languages, corpus.source, corpus.target, where=corpus.name)
    writing = Synthetic(
        texts=[*dict.fromkeys(corpus.train.source)],
        models=(teacher, *map(Path, teaching.together or ())),
        judges=tuple(map(Path, teaching.rerank or ())),
        out=taught,
        writes="target",
        languages=columns_called(corpus.source, corpus.target),
        direction=(corpus.source, corpus.target) if several else ("", ""),
        settings=teaching.search,
    )
    return Distillation(writing, recipe)


def planned_back_translation(
    run: Path, texts: Sequence[str], out: Path, decoding: DecodingOptions, asked: tuple[str, str] = ("", "")
) -> Synthetic:
    """Sources for the texts of these files, by a model of the other direction; `asked` are the languages of the texts
    and of the sources, "" what the model takes by default. Raises InputError or MissingError."""
    spec = spec_of_run(run)
    given = read, made = spec.language_pair or ("", "")
    if spec.languages is None:
        only_direction(*asked, given=given)
    else:
        said = next(filter(None, (language_of(Path(name)) for name in texts)), "")
        read, made = spec.languages.direction(asked[0] or said, asked[1], given=given)
    return Synthetic(
        texts=texts_in(texts, read),
        models=(run,),
        out=out,
        writes="source",
        languages=columns_called(made, read),
        direction=("", "") if (read, made) == given else (read, made),
        settings=decoding,
    )


def write_pairs(writing: Synthetic, device: str) -> Iterator[str]:
    """Writes what is not yet written, and tells in words how far it is. Raises as `Synthetic.write`."""
    count = len(writing.texts)
    if writing.written() is None:
        yield f"{writing.out}: {counted(count, 'translation')}, which were written before"
        return
    translator, how = fastest(writing.models, device, draws=bool(writing.settings.get("samples")))
    translator = translator.directed(*writing.direction)
    by = translator.decoding(**writing.settings).length_penalty
    judges = [Judge(load_translator(run, device=device), translator, length_penalty=by) for run in writing.judges]
    runs = " and ".join(map(str, writing.models))
    if translator.spec.languages is not None:
        how = f"{how}, from {' to '.join(translator.languages)}"
    if judges:
        how = f"{how}, and the best of {writing.decoding.beam} chosen with {' and '.join(map(str, writing.judges))}"
    yield f"{counted(count, 'text')} {are(count)} translated by {runs}, {how}"
    begin, last, doubted, unjudged = perf_counter(), 0.0, 0, 0
    with translator.in_processes(torch.get_num_threads()) as translator:
        for done, warnings, left in writing.write(translator, judges):
            doubted += warnings
            unjudged += left
            seconds = perf_counter() - begin
            if done == count or seconds - last >= EVERY:
                last = seconds
                yield f"{done:,} of {count:,} translated, in {seconds:,.0f} seconds"
    if doubted:
        yield f"translations with a warning, as of a source that is too long or a number that is lost: {doubted:,}"
    if unjudged:
        yield f"{UNJUDGED}: {counted(unjudged, 'text')}"
    yield f"{writing.out}: {counted(count, 'pair')}; {writing.out.with_suffix('.json')} says who wrote them"
