"""What translators are worth: files of translations, other measures, and two systems side by side."""

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from commands import heed
from heedful.data.text.corpus import Corpus, read_parallel
from heedful.errors import MissingError, StorageError
from heedful.metrics.paired import compare
from heedful.run.learnt import LEARNT, has_held_out, learnt_from
from heedful.run.recipe import validated
from heedful.store import files
from heedful.tasks.translate.options import TranslationScoring
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.use import Translator
from heedful.verbs.evaluate import evaluate, scored
from heedful.verbs.memory import write_rows
from heedful.verbs.opened import open_model
from made import with_about


@pytest.fixture
def sides(corpus: Corpus, tmp_path: Path) -> TranslationScoring:
    pairs = corpus.tests["test"].rows(range(12))
    for name, side in (("source", pairs.source), ("target", pairs.target)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in side))
    return TranslationScoring(source=str(tmp_path / "source"), target=str(tmp_path / "target"), beam=2)


def test_translations_are_written(
    translators: tuple[Path, Path], sides: TranslationScoring, corpus: Corpus, tmp_path: Path
) -> None:
    out = tmp_path / "made.txt"
    (found,) = evaluate(translators[0], replace(sides, out=str(out)))
    made = Translator.load(translators[0]).translate(corpus.tests["test"].source[:12], beam=2)
    assert out.read_text().splitlines() == made
    assert found.notes == (f"{out}: 12 translations, a line each",)
    assert "ter" not in found.scores


def test_long_texts_are_scored_as_they_are_translated(
    translators: tuple[Path, Path], sides: TranslationScoring, corpus: Corpus, tmp_path: Path
) -> None:
    """In parts, as `heed translate` does it."""
    assert sides.source is not None
    lines = [". ".join(corpus.tests["test"].source[i : i + 9]) + "." for i in range(12)]
    Path(sides.source).write_text("".join(f"{line}\n" for line in lines))
    out = tmp_path / "made.txt"
    (found,) = evaluate(translators[0], replace(sides, out=str(out)))
    with pytest.warns(UserWarning, match=r"translated in \d+ parts"):
        made = Translator.load(translators[0]).translate(lines, beam=2)
    assert out.read_text().splitlines() == made
    assert "sources longer than all that was learnt from, translated in parts: 12" in found.notes


def test_pairs_that_are_left_out_are_told(translators: tuple[Path, Path], sides: TranslationScoring) -> None:
    assert sides.source is not None
    source = Path(sides.source)
    source.write_text("\n" + source.read_text().partition("\n")[2])
    (found,) = evaluate(translators[0], sides)
    assert found.notes == (f"{source}: 1 pair left out, a side is empty",)


def test_line_i_is_of_line_i_where_a_side_is_empty(
    translators: tuple[Path, Path], sides: TranslationScoring, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of translations, alignments and scores."""
    assert sides.source is not None
    assert sides.target is not None
    source, out = Path(sides.source), tmp_path / "made.txt"
    sources, targets = (Path(path).read_text().splitlines() for path in (source, sides.target))
    source.write_text("\n".join([sources[0], " ", *sources[2:], ""]))
    own = Translator.load(translators[0])
    (found,) = evaluate(translators[0], replace(sides, out=str(out)))
    made = own.translate([sources[0], *sources[2:]], beam=2)
    assert out.read_text().splitlines() == [made[0], "", *made[1:]]
    assert found.notes[-1] == f"{out}: 11 translations, a line each, and 1 empty line"
    for verb in ("align", "score"):
        words = [verb, translators[0], "--source", source, "--target", sides.target]
        assert heed(*words) == 0
        said = capsys.readouterr()
        assert [bool(line) for line in said.out.splitlines()] == [True, False, *[True] * 10]
        assert said.err == f"{source}: an empty line stands for 1 pair, of which a side is empty\n"
        assert heed(*words, "--json") == 0
        records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert records[1] == {"source": " ", "target": targets[1], "error": "a side is empty"}
        assert [one["source"] for one in records[2:]] == sources[2:]
        table = tmp_path / "pairs.tsv"
        table.write_text("".join(f"{one}\t{other}\n" for one, other in zip(sources[:3], ["ba", "", "de"], strict=True)))
        assert heed(verb, translators[0], "--data", table) == 0
        said = capsys.readouterr()
        assert len(said.out.splitlines()) == 2
        assert f"{table}: 1 pair left out, a side is empty: no line stands for such a pair\n" in said.err


def test_each_of_several_test_sets_gets_a_file(translators: tuple[Path, Path], corpus: Corpus, tmp_path: Path) -> None:
    for name, count in (("train", 20), ("valid", 2), ("test_a", 2), ("test_b", 3)):
        for side, lines in (("low", corpus.train.source), ("high", corpus.train.target)):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines[:count]))
    options = TranslationScoring(data=str(tmp_path), beam=1, out=str(tmp_path / "made.txt"))
    assert [one.name for one in evaluate(translators[0], options)] == ["test_a", "test_b"]
    assert [len((tmp_path / f"made.test_{name}.txt").read_text().splitlines()) for name in "ab"] == [2, 3]


@pytest.mark.filterwarnings("ignore:.*the translation is empty")
def test_two_systems_side_by_side(translators: tuple[Path, Path], sides: TranslationScoring, corpus: Corpus) -> None:
    one, other = translators
    (found,) = evaluate(one, replace(sides, against=str(other), ter=True, bootstrap=100))
    pairs = corpus.tests["test"].rows(range(12))
    texts, others = (Translator.load(run).translate(pairs.source, beam=2) for run in translators)
    assert texts != others
    wanted = compare(texts, others, pairs.references, samples=100, ter=True)
    assert found.scores["chrf"] == wanted.one.chrf
    assert found.scores["against"]["run"] == str(other)
    assert found.scores["against"]["chrf"] == wanted.other.chrf
    assert found.scores["compared"]["chrf"] == {"difference": wanted.difference("chrf"), "p": wanted.p["chrf"]}
    assert found.scores["compared"].keys() == {"bleu", "chrf", "ter"}
    assert found.told is not None
    assert f"  {one} " in found.told
    assert f"p = {wanted.p['ter']:.3f}" in found.told


def test_what_cannot_be_is_told_before_anything_is_translated(
    translators: tuple[Path, Path], sides: TranslationScoring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "search", None)
    for wrong, kind in (
        ({"out": str(tmp_path / "no" / "x")}, MissingError),
        ({"out": str(tmp_path)}, StorageError),
        ({"against": str(tmp_path / "no")}, MissingError),
    ):
        with pytest.raises(kind):
            list(evaluate(translators[0], replace(sides, **wrong)))


def test_all_of_what_the_run_has_not_learnt_is_scored_and_else_what_it_held_out(
    translators: tuple[Path, Path], corpus: Corpus, tmp_path: Path
) -> None:
    """A tenth of a fresh file would be held out of it, as if it were to be learnt from."""
    run, path = tmp_path / "run", tmp_path / "own.tsv"
    shutil.copytree(translators[0], run)
    (run / LEARNT).unlink()  # the pairs stand for fresh ones
    pairs = corpus.train.rows(range(40))
    path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(pairs.source, pairs.target, strict=True)))
    options = TranslationScoring(data=str(path), beam=1)
    (whole,) = evaluate(run, options)
    assert whole.name == "own.tsv"
    assert whole.told is not None
    assert whole.told.startswith("40 pairs, ")
    assert whole.notes == ()
    facts = json.loads((run / "data.json").read_text())
    known = {"path": "elsewhere/train.tsv", "sha256": sha256(path.read_bytes()).hexdigest()}
    held = {"files": [known], "held_out": read_parallel(path).held_out}
    (run / "data.json").write_text(json.dumps(facts | held))
    (part,) = evaluate(run, options)
    assert part.name == "test"
    assert part.told is not None
    assert part.told.startswith("1 pair, ")
    assert part.notes == (f"{path}: {run} has learnt from it, and what it held out for a test is scored",)
    (against,) = evaluate(translators[0], replace(options, against=str(run)))
    assert against.name == "test"
    (run / "data.json").write_text(json.dumps(facts | {"files": [known | {"path": "elsewhere/test.tsv"}]}))
    (tested,) = evaluate(run, options)
    assert tested.told == whole.told


def begun_with(folder: Path, data: list[Path], name: str, **more: object) -> Path:
    """A run's folder as it is before the first step, but for its model."""
    given = {"path": [*map(str, data)], "vocab_size": 300, "source": "low", "target": "high"} | more
    recipe = validated(TranslateRecipe, {"preset": "transformer-tiny", "data": given}, where="test")
    (folder / name).mkdir()
    files.write_json(folder / name / "data.json", TranslateJob(recipe).facts())
    return folder / name


def test_it_is_known_what_was_held_out_and_what_was_learnt(corpus: Corpus, tmp_path: Path) -> None:
    """However the files are called, packed and ordered, and whatever they were learnt with."""
    rows = [f"{a}\t{b}\n" for a, b in zip(corpus.train.source, corpus.train.target, strict=True)][:200]
    one, other, folder = tmp_path / "test.tsv", tmp_path / "other.tsv", tmp_path / "folder"
    folder.mkdir()
    for path, own in (
        (one, rows[:100]),
        (other, rows[100:]),
        (folder / "news.tsv", rows[:100]),
        (folder / "newstest2013.tsv", rows[100:]),
        (tmp_path / "turned.tsv", rows[99::-1]),
    ):
        path.write_text("".join(own))
    alone, both = begun_with(tmp_path, [one], "alone"), begun_with(tmp_path, [one, other], "both")
    student = begun_with(tmp_path, [one], "student", synthetic=[str(other)])
    tuned = begun_with(tmp_path, [other], "tuned", mix=[f"{one}:0.2"])
    apart = begun_with(tmp_path, [folder], "apart")
    held = read_parallel(tmp_path / "turned.tsv").held_out
    assert [has_held_out(run, held) for run in (alone, both, student, tuned, apart)] == [True, False, True, True, False]
    learnt = [learnt_from(run, [one, other]) for run in (alone, both, student, tuned, apart)]
    assert learnt == [[one], [one, other], [one, other], [one, other], [one]]
    later = tmp_path / "later"
    later.mkdir()
    files.write_json(later / "data.json", {})
    (later / "recipe.yaml").write_text(f"start_from: {alone}\n")
    assert has_held_out(later, held)
    assert learnt_from(later, [one, other]) == [one]


def test_what_was_learnt_as_a_whole_is_scored_with_a_warning(
    translators: tuple[Path, Path], corpus: Corpus, tmp_path: Path
) -> None:
    """What would be held out of it now was learnt too, where it stood with other data."""
    pairs = corpus.train.rows(range(40))
    one, other, run = tmp_path / "one.tsv", tmp_path / "other.tsv", tmp_path / "run"
    one.write_text("".join(f"{a}\t{b}\n" for a, b in zip(pairs.source, pairs.target, strict=True)))
    other.write_text("".join(f"{a} x\t{b}\n" for a, b in zip(pairs.source, pairs.target, strict=True)))
    shutil.copytree(translators[0], run)
    shutil.copy(begun_with(tmp_path, [one, other], "begun") / "data.json", run)
    options = TranslationScoring(data=str(one), beam=1)
    for one_of_two in (evaluate(run, options), evaluate(translators[0], replace(options, against=str(run)))):
        (whole,) = one_of_two
        assert whole.name == "one.tsv"
        assert whole.notes == (f"{one}: {run} has learnt from it: its scores on other data may be much lower",)
    names = [tmp_path / name for name in ("a.low", "a.high")]
    for path, side in zip(names, (pairs.source, pairs.target), strict=True):
        path.write_text("".join(f"{line}\n" for line in side))
    shutil.copy(begun_with(tmp_path, names, "sides") / "data.json", run)
    (sides,) = evaluate(run, TranslationScoring(source=str(names[0]), target=str(names[1]), beam=1))
    assert sides.notes == (f"{names[1]}: {run} has learnt from it: its scores on other data may be much lower",)


def test_all_rows_in_memory_are_scored(translators: tuple[Path, Path], corpus: Corpus, tmp_path: Path) -> None:
    run, pairs = tmp_path / "run", corpus.train.rows(range(40))
    rows = [*zip(pairs.source, pairs.target, strict=True)]
    shutil.copytree(translators[0], run)
    about = Translator.load(run).about
    path = write_rows(rows, tmp_path / "own", (about["source"], about["target"]))
    shutil.copy(begun_with(tmp_path, [path], "begun") / "data.json", run)
    model = open_model(run, Translator)
    (scores,) = model.evaluate(rows, {"beam": 1}).values()
    assert scores["loss"] == pytest.approx(model.loss(pairs))


def test_where_there_is_no_test_the_validation_pairs_are_scored(
    translators: tuple[Path, Path], corpus: Corpus, tmp_path: Path
) -> None:
    for name, count in (("train", 20), ("valid", 5)):
        for side, lines in (("low", corpus.train.source), ("high", corpus.train.target)):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines[:count]))
    (found,) = evaluate(translators[0], TranslationScoring(data=str(tmp_path), beam=1))
    assert found.name == "valid.low"
    assert found.told is not None
    assert found.told.startswith("5 pairs, ")


@pytest.mark.parametrize("names", [["test"], ["test_a", "test_b"], ["newstest2013"], ["valid"]])
@pytest.mark.parametrize("tables", [True, False])
def test_a_folder_of_tests_alone_is_scored(
    translators: tuple[Path, Path], corpus: Corpus, tmp_path: Path, names: list[str], tables: bool
) -> None:
    """And so is a validation part alone, which is no data to train on."""
    source, target = corpus.train.source[:6], corpus.train.target[:6]
    for name in names:
        if tables:
            rows = [f"{a}\t{b}\n" for a, b in zip(source, target, strict=True)]
            (tmp_path / f"{name}.tsv").write_text("en\tde\n" + "".join(rows))
        else:
            (tmp_path / f"{name}.en").write_text("".join(f"{line}\n" for line in source))
            (tmp_path / f"{name}.de").write_text("".join(f"{line}\n" for line in target))
    options = TranslationScoring(data=str(tmp_path), beam=1, source="en", target="de")
    found = list(evaluate(translators[0], options))
    assert [Path(one.name).stem for one in found] == names
    assert all(str(one.told).startswith("6 pairs, ") for one in found)
    with pytest.raises(MissingError, match="no training file"):
        read_parallel(tmp_path, source="en", target="de")


def test_a_run_that_knows_no_languages_tells_which_way_it_is_scored(
    translators: tuple[Path, Path], corpus: Corpus, tmp_path: Path
) -> None:
    model = with_about(Translator.load(translators[0]), source="source", target="target")
    rows = zip(corpus.train.target[:3], corpus.train.source[:3], strict=True)
    (tmp_path / "a.csv").write_text("de,en\n" + "".join(f'"{one}","{other}"\n' for one, other in rows))
    told = f"{tmp_path / 'a.csv'}: scored from de to en"
    (found,) = scored(model, TranslationScoring(data=str(tmp_path / "a.csv"), beam=1))
    assert told in found.notes
    (found,) = scored(model, TranslationScoring(data=str(tmp_path / "a.csv"), source="en", target="de", beam=1))
    assert not [note for note in found.notes if "scored from" in note]
