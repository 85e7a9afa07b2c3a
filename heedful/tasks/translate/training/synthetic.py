"""Pairs that models write, to be learnt from: one side is a person's, the other a translation of it.

A teacher's translations of sources are what a student learns in sequence-level distillation (Kim and Rush 2016), and a
model of the other direction makes pairs of texts that have no translation (Sennrich et al. 2016). They are a .tsv file
of two columns, as any data. A .json file of the same name beside it says who wrote it, of what, and where the models
are, seen from its folder; a .part file has what is written so far, and is continued by the same question.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from heedful.data.lines import tsv_row
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.encodings import read_encoded_lines
from heedful.data.text.headers import is_header
from heedful.data.text.layouts import is_language
from heedful.data.text.reading import holds_pairs, paths_of, read_whole, tag_said
from heedful.decode.settings import Decoding, DecodingOptions
from heedful.errors import HeedError, InputError, MissingError
from heedful.exchange.ctranslate2 import made_of
from heedful.run.card import fingerprint
from heedful.store import files
from heedful.store.lock import held_alone
from heedful.tasks.shared.terminal import CONTROL
from heedful.tasks.translate.pairs.rerank import UNJUDGED, Judge, chosen_by
from heedful.tasks.translate.pipeline import translate_texts
from heedful.tasks.translate.searching import refuse_engine
from heedful.tasks.translate.spec import spec_of_run
from heedful.tasks.translate.use import Translator, load_together, load_translator

AT_ONCE = 2048  # texts that are translated before they are written down
ENGINE = "ctranslate2"
RUNS = ("models", "judges")  # of the facts: by their files, wherever they are
OTHER = "write to another file"
BACK = "back"  # the tag of back-translations


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """What is to be written: by these models, searching as one, to the file `out`, which ends in .tsv. `writes` is the
    side of the pairs that they make; `languages` are what the columns are called, the source first."""

    texts: Sequence[str]
    models: tuple[Path, ...]
    out: Path
    writes: Literal["source", "target"]
    judges: tuple[Path, ...] = ()  # models that choose among the beam too
    languages: tuple[str, str] = (SOURCE, TARGET)
    direction: tuple[str, str] = ("", "")  # that models of several languages are asked for
    settings: DecodingOptions = field(default_factory=DecodingOptions)

    def __post_init__(self) -> None:
        if self.out.suffix != ".tsv":
            raise InputError("pairs are written into a .tsv file", where=str(self.out), fix="name one")
        for place in (self.out, self.beside, self.part):
            files.need_output(place, makes_folder=True)
        if self.judges and self.decoding.n_best < 2:
            raise InputError("one translation of each, and nothing to choose among", fix="give --beam 5, or more")

    @cached_property
    def decoding(self) -> Decoding:
        """How the models search, for as many translations as there are to choose among."""
        decoding = spec_of_run(self.models[0]).decoding(self.settings)
        return replace(decoding, n_best=decoding.beam) if self.judges else decoding

    @property
    def part(self) -> Path:
        return self.out.with_suffix(".part")

    @property
    def beside(self) -> Path:
        return self.out.with_suffix(".json")

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Who writes what, and how: what the file is bound to. Raises MissingError or InputError."""
        judges = {"judges": self._told(self.judges)} if self.judges else {}
        return {
            "writes": self.writes,
            "models": self._told(self.models),
            **judges,
            "direction": list(self.direction),
            "decode": asdict(self.decoding),
            "texts": fingerprint(self.texts),
            "pairs": len(self.texts),
        }

    def _told(self, runs: Sequence[Path]) -> list[dict[str, Any]]:
        return [{"run": os.path.relpath(run, self.out.parent), "files": made_of(run)} for run in runs]

    def written(self) -> list[str] | None:
        """The rows that an earlier call has left; None of what is whole. Raises InputError for those of other models or
        texts."""
        fix = f"remove it with {self.out.with_suffix('.*')}, or {OTHER}"
        if self.out.is_file():
            known = written_by(self.out)
            if known is None:
                raise InputError("is there already, and was written by nothing known", where=str(self.out), fix=fix)
            if (changed := _changed(known, self.facts)) is not None:
                raise InputError(f"was written with {changed}", where=str(self.out), fix=fix)
            return None
        if self.beside.is_file() and written_by(self.out) is None:
            raise InputError("is there already, and would be written over", where=str(self.beside), fix=OTHER)
        lines = files.read_whole_lines(self.part) if self.part.is_file() else []
        if not lines:
            return []
        if (changed := _changed(files.parse_json(lines[0].encode(), where=self.part), self.facts)) is not None:
            raise InputError(f"was begun with {changed}", where=str(self.part), fix=fix)
        return lines[1:]

    def write(self, translator: Translator, judges: Sequence[Judge] = ()) -> Iterator[tuple[int, int, int]]:
        """Translates what is not yet translated, chooses with the judges, and yields how many texts are, and since the
        last time of how many there is a warning, and on how many a judge had no say. Raises StorageError, InputError
        where no text becomes a word, and as a search does."""
        if self.written() is None:
            return
        files.make_folder(self.part.parent)
        with held_alone(self.part):
            yield from self._write(translator, judges)

    def _write(self, translator: Translator, judges: Sequence[Judge]) -> Iterator[tuple[int, int, int]]:
        rows = self.written()  # no other process writes by now
        if rows is None:
            files.remove_tree(self.part)
            return
        if not files.read_whole_lines(self.part):
            files.append_line(self.part, json.dumps(self.facts))
        asked: DecodingOptions = {**self.settings, "n_best": 1}
        choose = partial(chosen_by, judges) if judges else None
        for begin in range(len(rows), len(self.texts), AT_ONCE):
            own = self.texts[begin : begin + AT_ONCE]
            found = translate_texts(translator, own, first=begin, choose=choose, **asked)
            said = [one.text for one in found]
            if not rows and not any(text.strip() for text in said):
                files.remove_tree(self.part)
                runs = " and ".join(map(str, self.models))
                what = f"{len(own):,} texts were translated, and to none of them it says a word"
                fix = "train it longer; heed eval RUN tells what it is worth"
                raise InputError(what, where=runs, fix=fix)
            for text, made in zip(own, said, strict=True):
                made = CONTROL.sub(" ", made)
                rows.append(tsv_row(*((made, text) if self.writes == SOURCE else (text, made))))
                files.append_line(self.part, rows[-1])
            yield (
                len(rows),
                sum(map(bool, (one.warnings for one in found))),
                sum(UNJUDGED in one.warning for one in found),
            )
        files.write_output(self.beside, files.json_bytes(self.facts, where=self.beside))
        whole = "\n".join([tsv_row(*self.languages), *rows, ""])
        files.write_output(self.out, whole.encode())  # last: it says that all is there
        files.remove_tree(self.part)


def _changed(known: Mapping[str, Any], facts: Mapping[str, Any]) -> str | None:
    """What of it is another one now."""
    for key in RUNS:
        if [one["files"] for one in known.get(key, [])] != [one["files"] for one in facts.get(key, [])]:
            return f"other {key}"
    names = {"texts": "other texts", "pairs": "other texts", "decode": "another search"}
    differing = [key for key in facts if key not in RUNS and known.get(key) != facts[key]]
    return names.get(differing[0], "other settings") if differing else None


def with_tag(text: str) -> str:
    """A path of pairs to train on, with the tag of back-translations where it holds such, and has none (Caswell et al.
    2019): the model is told that their sources are not as people write."""
    plain, tag = tag_said(text)
    if tag:
        return text
    (path, _), *others = paths_of([plain])
    if others or (written_by(path) or {}).get("writes") != SOURCE:
        return text
    if Path(plain).exists():
        return f"{plain}#{BACK}"
    return re.sub(r"(?=(:[\d.]+)?$)", f"#{BACK}", plain, count=1)  # before a weight


def columns_called(source: str, target: str) -> tuple[str, str]:
    """What the columns of such a file are called: by their languages, where both are some."""
    return (source, target) if is_header([source, target]) else (SOURCE, TARGET)


def texts_in(names: Sequence[str], language: str) -> list[str]:
    """The different texts of files that have one a line, and the targets of those of pairs. Raises InputError or
    MissingError."""
    found: dict[str, None] = {}
    for name in names:
        if holds_pairs(Path(name)) or Path(name).is_dir():
            asked = language if is_language(language) else None
            found |= dict.fromkeys(read_whole(name, target=asked).train.target)
        else:
            found |= dict.fromkeys(read_encoded_lines(Path(name))[0])
    texts = [text for text in found if text.strip()]
    if not texts:
        raise InputError("no text", where=", ".join(names), fix="give files with a text a line")
    return texts


def written_by(path: Path) -> dict[str, Any] | None:
    """What stands beside a file of such pairs, with the paths of its models from here; None beside another."""
    beside = path.with_suffix(".json")
    if path.suffix != ".tsv" or not beside.is_file():
        return None
    known = files.read_json(beside)
    if not isinstance(known, dict) or not isinstance(known.get("models"), list):
        return None
    return known | {"models": [{**one, "run": str(_run_at(path.parent, one["run"]))} for one in known["models"]]}


def _run_at(folder: Path, said: str) -> Path:
    """Where a run is that a file of this folder names; older ones named it from where the command ran."""
    near = Path(os.path.normpath(folder / said))
    return Path(said) if Path(said).is_dir() and not near.is_dir() else near


def fastest(runs: Sequence[Path], device: str, *, draws: bool = False) -> tuple[Translator, str]:
    """The runs, searching as one or drawing at random, by the fastest engine that does it, and in words which. Raises
    as `load_together`."""
    why = "several models" if len(runs) > 1 else "drawn at random" if draws else f"on {device}"
    if len(runs) == 1 and not draws and device == "cpu":
        try:
            translator = load_translator(runs[0], engine=ENGINE)
            refuse_engine(translator, translator.decoding())
            return translator, "by CTranslate2"
        except MissingError as error:
            if not runs[0].is_dir():
                raise
            why = str(error)
        except HeedError as error:
            why = str(error)
    return load_together(runs, device=device), f"by heedful itself ({why})"


def teacher_of(paths: Sequence[Path], device: str) -> Translator | None:
    """The model, or several as one, that wrote the targets of the first of these files whose models are still there as
    they were."""
    for path in paths:
        known = written_by(path)
        if known is None or known.get("writes") != TARGET:
            continue
        runs = [(Path(one["run"]), one["files"]) for one in known["models"]]
        if all(run.is_dir() and made_of(run) == own for run, own in runs):
            return load_together([run for run, _ in runs], device=device).directed(*known["direction"])
    return None
