"""The finished translator, and how it is loaded: with our own search or with another library's."""

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from heedful.core.arguments import checks_arguments
from heedful.data.text.pairs import Pairs
from heedful.decode.processes import Processes
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError
from heedful.metrics.texts import Rouge, Scores
from heedful.tasks.shared.lengths import warn
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.served import load_by
from heedful.tasks.translate import TRANSLATE
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.pipeline import translate_texts
from heedful.tasks.translate.searching import (
    Translation,
    hypotheses,
    search_batch,
)
from heedful.tasks.translate.wishes import NO_WISHES, Terms, Wishes, wishes_of

if TYPE_CHECKING:
    from heedful.tasks.translate.documents.files import TranslatedDocument


class Translator(BaseTranslator):
    """A translator in use."""

    hypotheses = hypotheses

    @one_or_many("prefix")
    def translate(
        self,
        texts: Sequence[str],
        *,
        to: str | None = "",
        from_language: str | None = "",
        tag: str | None = "",
        prefix: Sequence[str] | None = None,
        glossary: Terms | None = None,
        require: str | Collection[str] = (),
        avoid: str | Collection[str] = (),
        **settings: Unpack[DecodingOptions],
    ) -> list[str]:
        """The best translation of each text, by a search with the settings of `Decoding`, in the languages and of the
        kind that are asked for, as in `directed`. Warns of texts that are not read completely or are longer than all
        that the model was trained on, and of wishes that are not met."""
        asked = self.directed(from_language, to, tag)
        wishes = wishes_of(require, avoid, glossary, asked.languages)
        found = translate_texts(asked, texts, prefix=prefix, wishes=wishes, **settings)
        warn([translation.warning for translation in found])
        return [translation.text for translation in found]

    @one_or_many()
    def translate_files(
        self,
        documents: Sequence[str | Path],
        out: str | Path,
        *,
        to: str | None = "",
        from_language: str | None = "",
        tag: str | None = "",
        glossary: Terms | None = None,
        require: str | Collection[str] = (),
        avoid: str | Collection[str] = (),
        flag: float | None = None,
        **settings: Unpack[DecodingOptions],
    ) -> "list[TranslatedDocument]":
        """Translates documents (.docx, .html, .md, .odp, .ods, .odt, .po, .pptx, .srt, .txt, .vtt, .xlf, .xlsx) as
        `heed translate --file` does: one into the file `out`, several into the folder `out`. `flag`: passages with a
        sentence below this confidence are marked. Raises InputError, MissingError or StorageError; files that were
        written before stay."""
        from heedful.tasks.translate.documents.files import translate_documents

        asked = self.directed(from_language, to, tag)
        wishes, paths = wishes_of(require, avoid, glossary, asked.languages), [Path(one) for one in documents]
        return [*translate_documents(asked, paths, Path(out), settings, wishes, flag=flag)]

    @one_or_many("prefix")
    def search(
        self,
        texts: Sequence[str],
        *,
        prefix: Sequence[str] | None = None,
        wishes: Wishes = NO_WISHES,
        first: int = 0,
        confidence: bool = False,
        **settings: Unpack[DecodingOptions],
    ) -> list[Translation]:
        """The translations of each text, with scores. `prefix`: how each one must begin. `wishes`: words that each must
        have, and must not have. `first`: the number of the first text, which matters for sampling. `confidence`: return
        the words and their probabilities."""
        return translate_texts(
            self, texts, prefix=prefix, wishes=wishes, first=first, confidence=confidence, **settings
        )

    @contextmanager
    def in_processes(self, count: int) -> "Iterator[Translator]":
        """The same translator, for which `count` processes of one thread each search inside this block, if there is
        more than one batch: faster for files. Only on Linux and a CPU; elsewhere it is this one. The processes are
        forked: no other thread may hold a lock then, and later changes of the model do not reach them."""
        on_cpu = next(self.model.parameters()).device.type == "cpu"
        if count < 2 or sys.platform != "linux" or self.engine is not None or not on_cpu:
            yield self
            return
        processes = Processes(partial(search_batch, self), count)
        try:
            yield self.changed(processes=processes)
        finally:
            processes.close()

    @checks_arguments
    def measure(
        self, pairs: Pairs, *, bootstrap: int = 0, **settings: Unpack[DecodingOptions]
    ) -> tuple[Scores | Rouge, list[Translation]]:
        """The scores of the translations of `pairs`, and the translations."""
        made = self.search_pairs(pairs, **settings)
        texts = [translation.text for translation in made]
        return self.metric.score(texts, pairs.references, bootstrap=bootstrap), made

    def search_pairs(
        self, pairs: Pairs, *, confidence: bool = False, **settings: Unpack[DecodingOptions]
    ) -> list[Translation]:
        """The translations of the sources, as by `translate`, each in the direction and of the kind of its pair."""
        kinds = pairs.by_kind()
        if not kinds:
            return translate_texts(self, pairs.source, confidence=confidence, **settings)
        made: dict[int, Translation] = {}
        for (direction, tag), rows in kinds.items():
            own = self.directed(*direction, tag)
            found = translate_texts(own, [pairs.source[i] for i in rows], confidence=confidence, **settings)
            made |= dict(zip(rows, found, strict=True))
        return [made[i] for i in range(len(pairs))]

    @checks_arguments
    def join(self, other: "Translator", *, name: str = "") -> "Translator":
        """An ensemble of both, which searches by the mean of the probabilities. Raises InputError for a model with
        another vocabulary, or other tokens around texts."""
        if self.engine is not None or other.engine is not None:
            raise InputError("several models search by heedful alone", where=name, fix="leave out the engine")
        sides = zip((self.source, self.target), (other.source, other.target), strict=True)
        alike = all(own.fingerprint == theirs.fingerprint for own, theirs in sides)
        if not alike or any(getattr(self, what) != getattr(other, what) for what in ("around", "begin", "forbidden")):
            what = "its vocabulary is not that of the first model"
            fix = "train both on the same data with the same data.vocab_size, or one --from the other"
            raise InputError(what, where=name, fix=fix)
        return self.changed(others=(*self.others, other.model, *other.others))


def load_together(
    runs: Sequence[Path], *, device: str = "cpu", engine: str | None = None, weights: str = "float32"
) -> Translator:
    """The first run's translator, as an ensemble with the others. Raises InputError where their vocabularies differ."""
    first, *others = runs
    translator = load_translator(first, device=device, engine=engine, weights=weights)
    for run in others:
        translator = translator.join(load_translator(run, device=device, weights=weights), name=str(run))
    return translator


def load_translator(
    run: Path, *, device: str = "cpu", engine: str | None = None, weights: str = "float32"
) -> Translator:
    """With "auto", CTranslate2 searches if it supports the model, on a CPU and in float32. Raises InputError for an
    unknown engine, and for one that does not support the device or the weights."""
    translator: Translator = load_by(TRANSLATE, run, device=device, engine=engine, weights=weights)
    return translator
