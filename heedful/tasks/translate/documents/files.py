"""`heed translate RUN --file IN --out OUT`: whole documents."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.data.documents.read import read_document
from heedful.data.text.headers import meaning, other_languages
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError
from heedful.store import files
from heedful.store.refusals import refuse_read
from heedful.tasks.translate.confidence import refuse_no_probability
from heedful.tasks.translate.documents.passages import translate_passages
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.pairs.pharaoh import AlignedPair
from heedful.tasks.translate.wishes import NO_WISHES, Wishes


@dataclass(frozen=True)
class TranslatedDocument:
    """A document that was translated. `warnings` are lines about what in it a person should look at, and `flagged` is
    how many passages are to be read first, where that was asked for; so is which words of each became which."""

    file: str
    out: str
    passages: int
    marks: int
    warnings: tuple[str, ...] = ()
    flagged: int | None = None
    alignments: tuple[AlignedPair, ...] = ()


def outputs_for(names: Sequence[Path], out: Path) -> list[Path]:
    """Where each document is written: to `out`, or to files of their names in the folder `out`, where there are several
    or it is one. Raises InputError, MissingError or StorageError."""
    folder = len(names) > 1 or os.path.isdir(out)
    made = [out / name.name if folder else out for name in names]
    for name, place in zip(names, made, strict=True):
        if made.count(place) > 1:
            raise InputError("two documents of one name", where=str(place), fix="translate them one by one")
        refuse_read(place, [name])
        if place.suffix.lower() != name.suffix.lower():
            raise InputError(f"not the ending of {name}", where=str(place), fix=f"--out {place.stem}{name.suffix}")
    if folder and os.path.isfile(out):
        raise InputError("a file, expected a folder for several documents", where=str(out), fix="give another --out")
    for place in made:
        files.need_output(place, makes_folder=folder)
    return made


def translate_documents(
    translator: BaseTranslator,
    names: Sequence[Path],
    out: Path,
    decoding: DecodingOptions,
    wishes: Wishes = NO_WISHES,
    *,
    flag: float | None = None,
    align: bool = False,
) -> Iterator[TranslatedDocument]:
    """Each as soon as it is written, which it is as a whole or not at all; all are read before the first is translated.
    Passages with a sentence that is less sure than `flag` are told, and marked where the kind of document has a mark.
    Raises InputError, MissingError or StorageError."""
    refuse_no_probability(flag)
    outputs = outputs_for(names, out)
    target = translator.spec.target or ""
    documents = [read_document(name, target) for name in names]
    for name, place, document in zip(names, outputs, documents, strict=True):
        passages = document.passages
        asked = translate_passages(translator, passages, decoding, wishes=wishes, flag=flag, align=align)
        said = [best for (best,) in asked]
        told = [
            f"{passage.where(name)}: {what}" for passage, own in zip(passages, said, strict=True) for what in own.told
        ]
        data = document.written([own.placed for own in said], [own.flagged for own in said])
        files.make_folder(place.parent)
        files.write_output(place, data)
        marks = sum(len(passage.marks) for passage in passages)
        others = (what for both in document.languages for what in _other_languages(both, translator))
        notes = (*dict.fromkeys(others), *document.notes)
        warnings = (*(f"{name}: {note}" for note in notes), *dict.fromkeys(told))
        flagged = None if flag is None else sum(own.flagged for own in said)
        alignments = tuple(
            AlignedPair(source=passage.text, target=own.text, alignment=own.links)
            for passage, own in zip(passages, said, strict=True)
            if own.links is not None
        )
        yield TranslatedDocument(str(name), str(place), len(passages), marks, warnings, flagged, alignments)


def _other_languages(said: tuple[str, str], translator: BaseTranslator) -> Iterator[str]:
    """What is told of a document that says other languages than those that it is translated from and to."""
    languages = translator.spec.languages
    for side, one, other in other_languages(said, translator.languages):
        way, option = ("from", "--from-language") if side == "source" else ("to", "--to")
        does = f"this model translates {way} {other}"
        if languages is not None and meaning(one) in map(meaning, languages.names(side)):
            does = f"is translated {way} {other}: give {option} {one}"
        yield f"it is to be translated {way} {one}, and {does}"
