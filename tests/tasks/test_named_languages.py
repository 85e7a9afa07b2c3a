"""The languages of a run: as its data names them, as its texts are in, as they are named later."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import written
from commands import heed
from heedful.data.made.phrasebook import phrasebook
from heedful.data.text.corpus import Corpus, read_parallel, read_to_score, with_languages
from heedful.data.text.pairs import Pairs
from heedful.data.text.quality.languages import common_language
from heedful.errors import InputError
from heedful.run.recipe import override
from heedful.store.files import json_bytes
from heedful.store.model import replace_small
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.training.directions import another_direction
from heedful.verbs.info import describe, name_languages
from heedful.verbs.train import train
from made import made_recipe

BOOK = phrasebook(400, held_out=4).train
ENGLISH, FRENCH = [one for one, _ in BOOK], [other for _, other in BOOK]
HEAD = ("source", "target")


def pairs(source: list[str], target: list[str], names: tuple[str, str] = HEAD, **more: Any) -> Corpus:
    held = Pairs([], [], "held")
    return Corpus(Pairs(source, target, "made"), held, {}, "made", source=names[0], target=names[1], **more)


def named(corpus: Corpus) -> tuple[str, str]:
    return corpus.source, corpus.target


def tsv(path: Path, rows: list[tuple[str, str]], header: str = "") -> Path:
    path.write_text(header + "".join(f"{one}\t{other}\n" for one, other in rows), "utf-8")
    return path


def test_texts_are_in_a_language_where_that_is_sure() -> None:
    short = [word for text in ENGLISH for word in text.split()]
    assert (common_language(ENGLISH), common_language(FRENCH)) == ("en", "fr")
    assert max(map(len, short)) < 25
    assert common_language(ENGLISH[:20]) is None, "too few"
    assert common_language([*ENGLISH[:150], *FRENCH[:150]]) is None
    assert common_language([*ENGLISH, *FRENCH[:40]]) is None
    assert common_language(["1,234", "?!"] * 2000) is None
    assert common_language([]) is None


def test_sides_without_a_language_are_named_by_their_texts() -> None:
    found = with_languages(pairs(ENGLISH, FRENCH))
    assert named(found) == ("en", "fr")
    assert found.taken == ("languages en and fr, as the texts are in these: --source NAME --target NAME names others",)
    assert named(with_languages(pairs(FRENCH, ENGLISH, ("Quelltext", "tgt")))) == ("fr", "en")
    assert named(with_languages(pairs(ENGLISH, FRENCH, ("Klingon", "column 2")))) == ("Klingon", "column 2")
    assert named(with_languages(pairs(ENGLISH, FRENCH, ("de", "target")))) == ("de", "fr")
    unknown = "languages unknown, so named source and target: --source NAME --target NAME names them"
    for both in ((ENGLISH[:9], FRENCH[:9]), (ENGLISH, ENGLISH), (ENGLISH, [*FRENCH[:50], *ENGLISH[:50]] * 4)):
        corpus = with_languages(pairs(*both))
        assert named(corpus) == HEAD
        assert corpus.taken == (unknown,)


def test_too_few_pairs_to_tell_are_of_the_models_languages_unless_they_are_of_others() -> None:
    few = ENGLISH[:20], FRENCH[:20]
    assert named(with_languages(pairs(*few), ("English", "fr"))) == ("English", "fr")
    assert named(with_languages(pairs(*few), ("en", "de"))) == HEAD
    assert named(with_languages(pairs(*few), ("fr", "en"))) == HEAD
    assert named(with_languages(pairs(ENGLISH, FRENCH), ("en", "de"))) == ("en", "fr")


LAYOUTS: dict[str, Callable[[Path, list[tuple[str, str]]], Path | list[Path]]] = {
    "no header": lambda folder, rows: tsv(folder / "p.tsv", rows),
    "sides": lambda folder, rows: tsv(folder / "p.tsv", rows, "Source text\tTarget\n"),
    "turned": lambda folder, rows: tsv(folder / "p.tsv", [row[::-1] for row in rows], "tgt\tsrc\n"),
    "keys": lambda folder, rows: _written(folder / "p.jsonl", written.jsonl(rows, "source", "target")),
    "short keys": lambda folder, rows: _written(folder / "p.jsonl", written.jsonl(rows, "src", "tgt")),
    "sheet": lambda folder, rows: _written(folder / "p.xlsx", written.xlsx(rows, "Quelle", "Ziel")),
    "parquet": lambda folder, rows: _written(folder / "p.parquet", written.parquet(rows, "source", "target")),
    "folder": lambda folder, rows: _sides(folder, rows, "train.source", "train.target")[0].parent,
    "short folder": lambda folder, rows: _sides(folder, rows, "train.src", "train.tgt")[0].parent,
}


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _sides(folder: Path, rows: list[tuple[str, str]], *names: str) -> list[Path]:
    for side, name in enumerate(names):
        (folder / name).write_text("".join(f"{row[side]}\n" for row in rows), "utf-8")
    return [folder / name for name in names]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_names_no_language_is_read_again_by_those_that_were_found(layout: str, tmp_path: Path) -> None:
    path = LAYOUTS[layout](tmp_path, BOOK)
    corpus = with_languages(read_parallel(path))
    assert named(corpus) == ("en", "fr")
    again = read_parallel(path, source="en", target="fr")
    assert (again.train.source, again.train.target) == (corpus.train.source, corpus.train.target)
    (scored,) = read_to_score(path, was_held_out=lambda fingerprint: False, source="en", target="fr").tests.values()
    assert [*zip(scored.source, scored.target, strict=True)] == BOOK
    (scored,) = read_to_score(path, was_held_out=lambda fingerprint: False, source="fr", target="en").tests.values()
    assert [*zip(scored.target, scored.source, strict=True)] == BOOK


def tiny(path: Path, **more: Any) -> TranslateRecipe:
    return override(made_recipe(steps=2, eval_every=2, eval_sentences=4), {"data.path": str(path), **more})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a file of English and French that does not say so."""
    folder = tmp_path_factory.mktemp("named")
    list(train(tiny(tsv(folder / "p.tsv", BOOK)), folder / "run"))
    return folder / "run"


def about(run: Path) -> tuple[str, str]:
    told, facts = (json.loads((run / name).read_text()) for name in ("task.json", "data.json"))
    assert (told["source"], told["target"]) == (facts["source"], facts["target"])
    return told["source"], told["target"]


def test_a_run_is_of_the_languages_of_its_texts(run: Path) -> None:
    assert about(run) == ("en", "fr")
    card = (run / "README.md").read_text()
    assert "Translates en to fr." in card
    assert '"A sentence in en."' in card
    notes = json.loads((run / "data.json").read_text())["notes"]
    assert "languages en and fr, as the texts are in these: --source NAME --target NAME names others" in notes


def test_languages_are_named_later_and_a_run_goes_on_with_these(run: Path, tmp_path: Path, capsys) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    assert heed("info", copy, "--set", "source=en-GB", "--set", "target=French") == 0
    assert "translate en-GB to French" in capsys.readouterr().out
    assert about(copy) == ("en-GB", "French")
    card = (copy / "README.md").read_text()
    assert "Translates en-GB to French." in card
    assert card.count('"A sentence in en-GB."') == 2
    assert describe(str(copy))["task"] == "translate en-GB to French"
    list(train(tiny(run.parent / "p.tsv", **{"train.steps": 4}), copy, resume=True))
    assert about(copy) == ("en-GB", "French")
    assert "Translates en-GB to French." in (copy / "README.md").read_text()


def test_an_older_run_goes_on_with_its_names(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    for name in ("task.json", "data.json"):
        facts = json.loads((copy / name).read_text()) | {"source": "source", "target": "target"}
        data = json_bytes(facts, where=name)
        replace_small(copy, name, data) if name == "task.json" else (copy / name).write_bytes(data)
    list(train(tiny(run.parent / "p.tsv", **{"train.steps": 4}), copy, resume=True))
    assert about(copy) == HEAD
    name_languages(copy, ["source=en"])
    assert about(copy) == ("en", "target")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["source=Englsh"], "'Englsh' is no language"),
        (["source="], "'' is no language"),
        (["source=source"], "'source' is no language"),
        (["sorce=en"], "unknown side 'sorce'"),
        (["en"], "unknown side 'en'"),
        (["source=FR"], "source and target are both 'FR'"),
    ],
)
def test_what_names_no_languages_is_refused(settings: list[str], says: str, run: Path) -> None:
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
    with pytest.raises(InputError, match=says):
        name_languages(run, settings)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("name", ["gpt", "spans", "label"])
def test_what_is_no_translator_has_no_languages(name: str, run_of: Callable[[str], Path]) -> None:
    with pytest.raises(InputError, match="not a translator, which has languages"):
        name_languages(run_of(name), ["source=en"])


def test_a_run_of_several_languages_keeps_their_names(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    rows = [f"{one}\t{other}\ten\tfr\n{other}\t{one}\tfr\ten\n" for one, other in BOOK]
    path.write_text("source\ttarget\tsource_lang\ttarget_lang\n" + "".join(rows), "utf-8")
    list(train(tiny(path), tmp_path / "run"))
    with pytest.raises(InputError, match="a model of several languages"):
        name_languages(tmp_path / "run", ["source=de"])


def test_pairs_of_another_direction_than_the_model_that_is_tuned_are_told(run: Path, tmp_path: Path) -> None:
    told = "the model translates en to fr, and these pairs are from {} to {}: it learns this, and unlearns that"
    for source, target in (("English", "German"), ("fr", "en"), ("en", "de")):
        assert another_direction(str(run), source, target) == told.format(source, target)
    for source, target in (("English", "fr-CA"), ("source", "target"), ("en", "column 2")):
        assert another_direction(str(run), source, target) == ""
    assert another_direction("", "en", "de") == ""
    path = tsv(tmp_path / "p.tsv", [row[::-1] for row in BOOK])
    recipe = tiny(path, start_from=str(run), model={})
    (*_,) = train(recipe, tmp_path / "tuned")
    assert told.format("fr", "en") in json.loads((tmp_path / "tuned" / "data.json").read_text())["notes"]
    assert about(tmp_path / "tuned") == ("fr", "en")


def test_summaries_name_no_languages(tmp_path: Path) -> None:
    path = tsv(tmp_path / "p.tsv", BOOK)
    list(train(tiny(path, **{"data.scores": "rouge"}), tmp_path / "run"))
    assert about(tmp_path / "run") == HEAD
    with pytest.raises(InputError, match="not a translator, which has languages"):
        name_languages(tmp_path / "run", ["source=de"])
