"""Pairs that models write: a teacher's for its student, and back-translations."""

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from commands import heed
from heedful.data.text.corpus import read_parallel, with_synthetic
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError
from heedful.metrics.texts import METRICS
from heedful.models import make_model
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.run.folder import parameters
from heedful.run.recipe import override
from heedful.store import files
from heedful.tasks.shared.options import StudentOptions
from heedful.tasks.shared.terminal import CONTROL
from heedful.tasks.translate.options import TeachingOptions
from heedful.tasks.translate.pairs.rerank import Judge
from heedful.tasks.translate.pairs.weigh import weigh
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.training import synthetic
from heedful.tasks.translate.training.distil import planned_distillation
from heedful.tasks.translate.training.synthetic import Synthetic, fastest, teacher_of, texts_in, written_by
from heedful.tasks.translate.use import Translator, load_together, load_translator
from made import TRANSFORMER, backwards
from saved import save_run

TEXTS = ["ba de", "gi ko lu", "ma", "ne pi ro su", "ba ba", "de"]
TINY = [f"model.{key}={value}" for key, value in TRANSFORMER["model"].items()]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    made = backwards(80, 5)
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{one}\t{other}\n" for one, other in zip(made.source, made.target, strict=True)))
    return path


def rows(path: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in path.read_text().split("\n")[:-1]]


def test_what_is_written_is_what_the_model_says(translators: tuple[Path, Path], tmp_path: Path) -> None:
    one, other = (
        Synthetic(texts=TEXTS, models=translators[:1], out=tmp_path / f"{side}.tsv", writes=side)
        for side in ("target", "source")
    )
    translator = load_translator(translators[0])
    warned = sum(bool(made.warnings) for made in translator.search(TEXTS))
    assert 0 < warned < 6
    assert [*one.write(translator)] == [(6, warned, 0)]
    said = [made.text for made in translator.search(TEXTS)]
    assert rows(one.out) == [("source", "target"), *zip(TEXTS, said, strict=True)]
    assert [*other.write(translator)]
    assert rows(other.out) == [("source", "target"), *zip(said, TEXTS, strict=True)]
    assert not one.part.exists()
    known = written_by(one.out)
    assert known is not None
    assert [own["run"] for own in known["models"]] == [str(translators[0])]
    assert known | {"models": one.facts["models"]} == one.facts


@pytest.mark.parametrize("judged_by", [1, 2])
def test_what_is_written_is_what_all_models_find_best(
    translators: tuple[Path, Path], tmp_path: Path, judged_by: int
) -> None:
    """The mean of their nats a token, each on its own, over the beam."""
    judges = (translators[1], translators[0])[:judged_by]
    settings: DecodingOptions = {"beam": 4}
    one = Synthetic(
        texts=TEXTS, models=translators[:1], judges=judges, out=tmp_path / "a.tsv", writes="target", settings=settings
    )
    own, *others = map(Translator.load, (translators[0], *judges))
    ((count, _, unjudged),) = one.write(own, [Judge(other, own) for other in others])
    assert (count, unjudged) == (6, 0)
    wanted, first = [], []
    for made in own.search(TEXTS, beam=4, n_best=4):
        sums = {text: score for text, score in made.hypotheses if text.strip()}
        for other in others:
            for record in weigh(other, [(made.source, text) for text in sums]):
                sums[record["target"]] += record["per_token"]
        wanted.append(max(sums, key=lambda text: sums[text]))
        first.append(made.text)
    assert rows(one.out) == [("source", "target"), *zip(TEXTS, wanted, strict=True)]
    assert wanted != first
    with pytest.raises(InputError, match="written with other judges"):
        replace(one, judges=()).written()
    with pytest.raises(InputError, match="nothing to choose among"):
        replace(one, settings={"beam": 1})


def test_nothing_is_written_twice(translators: tuple[Path, Path], tmp_path: Path, monkeypatch) -> None:
    """What is interrupted, and even torn, is continued, and comes to the same; what is whole is left."""
    monkeypatch.setattr(synthetic, "AT_ONCE", 2)
    settings = {"samples": 1, "seed": 3}  # a draw depends on the number of its text
    whole = Synthetic(
        texts=TEXTS, models=translators[:1], out=tmp_path / "whole.tsv", writes="target", settings=settings
    )
    broken = replace(whole, out=tmp_path / "broken.tsv")
    translator = load_translator(translators[0])
    assert [done for done, *_ in whole.write(translator)] == [2, 4, 6]
    next(broken.write(translator))
    with broken.part.open("a") as file:
        file.write("ma\tMA")
    broken = replace(broken)
    assert broken.written() == ["\t".join(row) for row in rows(whole.out)[1:3]]
    assert [done for done, *_ in broken.write(translator)] == [4, 6]
    assert broken.out.read_bytes() == whole.out.read_bytes()
    assert broken.written() is None
    assert [*broken.write(translator)] == []


def test_two_do_not_write_into_one_file(translators: tuple[Path, Path], tmp_path: Path, monkeypatch) -> None:
    """Who comes second is refused until the first has written all, and then has nothing to do."""
    monkeypatch.setattr(synthetic, "AT_ONCE", 2)
    one, other = (
        Synthetic(texts=TEXTS, models=translators[:1], out=tmp_path / "x.tsv", writes="target") for _ in range(2)
    )
    translator = load_translator(translators[0])
    first = one.write(translator)
    next(first)
    with pytest.raises(InputError, match="another command is writing here"):
        next(other.write(translator))
    assert [done for done, *_ in first] == [4, 6]
    assert [*other.write(translator)] == []
    assert len(rows(one.out)) == 1 + len(TEXTS)
    assert not one.part.exists()


@pytest.mark.parametrize("last", [".json", ".tsv"])
def test_interrupted_at_its_end_it_is_continued_too(
    translators: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """Between its last two files, and after both."""
    made = Synthetic(texts=TEXTS, models=translators[:1], out=tmp_path / "x.tsv", writes="target")
    translator, whole = load_translator(translators[0]), files.write_output

    def interrupted(path: Path, *chunks: bytes) -> str:
        digest = whole(path, *chunks)
        if path.suffix == last:
            raise KeyboardInterrupt
        return digest

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_output", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(made.write(translator))
    again = replace(made)
    list(again.write(translator))
    assert again.written() is None
    assert len(rows(made.out)) == 1 + len(TEXTS)
    assert written_by(made.out) is not None


def test_it_is_bound_to_its_models_texts_and_search(translators: tuple[Path, Path], tmp_path: Path) -> None:
    whole = Synthetic(texts=TEXTS, models=translators[:1], out=tmp_path / "x.tsv", writes="target")
    list(whole.write(load_translator(translators[0])))
    others = {"models": translators[1:], "texts": TEXTS[1:], "settings": {"beam": 3}}
    for (key, value), said in zip(others.items(), ("other models", "other texts", "another search"), strict=True):
        with pytest.raises(InputError, match=f"was written with {said}"):
            replace(whole, **{key: value}).written()
    assert teacher_of([whole.out], "cpu") is not None
    whole.out.with_suffix(".json").unlink()
    assert teacher_of([whole.out], "cpu") is None
    with pytest.raises(InputError, match="nothing known"):
        replace(whole).written()


def test_a_teacher_is_found_wherever_the_command_runs(
    translators: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where the folder of both is moved; an older file names it from where the command ran."""
    project = tmp_path / "project"
    shutil.copytree(translators[0], project / "runs" / "big")
    monkeypatch.chdir(project)
    made = Synthetic(texts=TEXTS, models=(Path("runs/big"),), out=Path("runs/small.taught.tsv"), writes="target")
    list(made.write(load_translator(made.models[0])))
    assert made.facts["models"][0]["run"] == "big"
    monkeypatch.chdir(tmp_path)
    moved = project.rename(tmp_path / "moved")
    taught = moved / "runs" / "small.taught.tsv"
    assert teacher_of([taught], "cpu") is not None
    assert teacher_of([taught.relative_to(tmp_path)], "cpu") is not None
    old = taught.with_suffix(".json")
    old.write_text(old.read_text().replace('"big"', '"moved/runs/big"'))
    assert teacher_of([taught], "cpu") is not None
    monkeypatch.chdir("/")
    assert teacher_of([taught], "cpu") is None


def test_a_teacher_that_says_nothing_is_named(
    translators: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not the data, which would seem to have an empty side."""
    silent = Synthetic(texts=TEXTS, models=translators[:1], out=tmp_path / "x.tsv", writes="target")
    translator = load_translator(translators[0])
    monkeypatch.setattr(Translator, "texts_of", lambda self, found: [" " for _ in found])
    with pytest.raises(InputError, match="6 texts were translated, and to none of them it says a word") as caught:
        list(silent.write(translator))
    assert caught.value.where == str(translators[0])
    assert [*tmp_path.iterdir()] == [], "a better teacher begins anew"


@pytest.mark.filterwarnings("ignore:text .*the translation is empty")
def test_the_fastest_engine_says_the_same(translators: tuple[Path, Path]) -> None:
    by_library, how = fastest(translators[:1], "cpu")
    assert how == "by CTranslate2"
    texts = backwards(20, 8).source
    own = load_translator(translators[0]).translate(texts, beam=1)
    assert by_library.translate(texts, beam=1) == own
    both, how = fastest(translators, "cpu")
    assert "several models" in how
    assert both.translate(texts) == load_together(translators).translate(texts)


@pytest.mark.parametrize("said", [{"begin": [9]}, {"decode": {"forced_eos": True}}])
def test_a_teacher_that_the_library_does_not_know_writes_by_heedful(
    translators: tuple[Path, Path], tmp_path: Path, said: dict[str, Any]
) -> None:
    one = load_translator(translators[0])
    about = one.about | {
        key: {**one.about.get(key, {}), **own} if key == "decode" else own for key, own in said.items()
    }
    run = save_run(tmp_path / "run", one.model, one.source, one.target, about)
    teacher, how = fastest([run], "cpu")
    assert teacher.engine is None
    assert how.startswith("by heedful itself (this model's ")
    assert teacher.translate(TEXTS[:1])


def test_what_models_wrote_is_learnt_from_and_never_held_out(pairs: Path, tmp_path: Path) -> None:
    corpus = read_parallel(pairs)
    held = corpus.valid
    written = [("la la", "LA"), (held.source[0], "X"), ("x", held.target[0].lower()), ("lu", "LU LU")]
    path = tmp_path / "made.tsv"
    path.write_text("".join(f"{one}\t{other}\n" for one, other in written))
    found = with_synthetic(corpus, [f"{path}:2"], 0.5)
    assert found.train.source == [*corpus.train.source, "la la", "lu"]
    assert (found.valid, found.tests) == (corpus.valid, corpus.tests)
    assert f"{path}: 2 synthetic pairs left out, a side of theirs is held out" in found.notes
    assert found.weights == {(str(pairs), None): 0.5, (str(path), None): 2.0}
    assert with_synthetic(corpus, []) is corpus
    path.write_text(f"{held.source[0]}\tX\n")
    with pytest.raises(InputError, match="held out already"):
        with_synthetic(corpus, [str(path)])


def test_originals_may_be_left_out(pairs: Path, tmp_path: Path) -> None:
    path = tmp_path / "made.tsv"
    path.write_text("la la\tLA LA\nla\tLA\n")
    given = TRANSFORMER | {"data": {"vocab_size": 300, "path": str(pairs), "synthetic": [str(path)], "originals": 0}}
    job = TranslateJob(TranslateRecipe.model_validate(given))
    own = len(job.pairs) - 2
    assert [sorted(job.task(make_model(job.config)).order(epoch)) for epoch in (0, 1)] == [[own, own + 1]] * 2
    assert not any("copies" in note for note in job.notes)


@pytest.mark.parametrize("written", [[], ["la la", "lu"]])
def test_pairs_of_several_references_are_not_taken_for_what_models_wrote(tmp_path: Path, written: list[str]) -> None:
    made, path, other = backwards(80, 5), tmp_path / "pairs.jsonl", tmp_path / "made.tsv"
    rows = [
        {"source": source, "target": [target, target.upper()]}
        for source, target in zip(made.source, made.target, strict=True)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    other.write_text("".join(f"{text}\t{text}\n" for text in written))
    data = {"vocab_size": 300, "path": str(path), "synthetic": [str(other)] if written else []}
    job = TranslateJob(TranslateRecipe.model_validate(TRANSFORMER | {"data": data}))
    assert job.facts().get("synthetic", 0) == len(written)
    assert job.originals == len(job.pairs) - len(written) == 2 * (job.facts()["pairs"]["train"] - len(written))


def test_a_student_is_a_run_that_tells_of_its_teacher(
    translators, pairs: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    scored = []  # by a clock on which each scoring takes a thousand seconds, and is no part of the speed
    score = METRICS["bleu"].score
    slow = METRICS["bleu"]._replace(score=lambda *texts, **how: scored.append(1) or score(*texts, **how))
    monkeypatch.setitem(METRICS, "bleu", slow)
    clock = SimpleNamespace(perf_counter=lambda: time.perf_counter() + 1000 * len(scored))
    monkeypatch.setattr("heedful.tasks.translate.train.time", clock)
    out = tmp_path / "student"
    words = ["distil", translators[0], "--with", translators[1], "--data", pairs, "--preset", "transformer-tiny"]
    words += [
        "--rerank",
        translators[1],
        "--beam",
        "4",
        "--out",
        out,
        "--source",
        "1",
        "--target",
        "2",
        "--json",
        "--device",
        "cpu",
    ]
    words += [word for setting in [*TINY, "train.steps=2", "decode.longest=9"] for word in ("--set", setting)]
    assert heed(*words) == 0
    told = capsys.readouterr()
    assert f"and the best of 4 chosen with {translators[1]}" in told.err
    scores = json.loads(told.out.splitlines()[-1])["scores"]["test"]
    assert {"bleu", "bleu_teacher"} <= scores.keys()
    assert min(scores["sentences_per_second"], scores["sentences_per_second_teacher"]) > 1
    taught = tmp_path / "student.taught.tsv"
    assert len(rows(taught)) == 1 + len(set(read_parallel(pairs).train.source))
    card = (out / "README.md").read_text()
    runs = " and ".join(f"`{run}`" for run in translators)
    assert f"synthetic pairs are from `{taught}`, whose targets {runs} wrote." in card
    assert "| BLEU of its teacher |" in card
    assert "sentences a second on this machine, and its teacher" in card
    assert load_translator(out).translate("ba de")
    before = taught.stat().st_mtime_ns
    assert heed(*words) == 0  # which is over already
    assert taught.stat().st_mtime_ns == before
    assert "which were written before" in capsys.readouterr().err


def test_a_student_may_begin_with_some_of_its_teachers_layers(translators, pairs: Path, tmp_path: Path, capsys) -> None:
    known = load_translator(translators[0])
    row = replace(TRANSLATORS["transformer-tiny"], **{**TRANSFORMER["model"], "decoder_layers": 2})
    config = translator_config(row, source_vocab=known.source.size, target_vocab=known.target.size, joint=True)
    teacher = save_run(tmp_path / "teacher", make_model(config), known.source, known.target, known.about)
    out = tmp_path / "student"
    words = ["distil", teacher, "--data", pairs, "--from", teacher, "--out", out, "--device", "cpu"]
    settings = ["model.decoder_layers=1", "train.steps=1", "train.lr=1e-9", "decode.longest=9"]
    assert heed(*words, *(word for setting in settings for word in ("--set", setting))) == 0
    own, theirs = (parameters(load_translator(run).model) for run in (out, teacher))
    assert theirs.keys() - own.keys() == {name for name in theirs if name.startswith("decoder.blocks.1.")} != set()
    for name, weight in own.items():
        torch.testing.assert_close(weight, theirs[name], atol=1e-5, rtol=0)
    assert (out / "tokenizer.json").read_bytes() == (teacher / "tokenizer.json").read_bytes()


def test_it_says_what_is_wrong_before_anything_is_translated(translators, pairs: Path, tmp_path: Path, capsys) -> None:
    for words, said in (
        (["--data", pairs, "--preset", "huge"], "huge"),
        (["--data", pairs, "--preset", "transformer-tiny", "--from", translators[0]], "--preset and --from"),
        ([], "no data was given"),
        (["--data", pairs, "--taught", tmp_path / "x.txt"], "into a .tsv file"),
        (["--data", pairs, "--set", "train.stepz=3"], "stepz"),
    ):
        assert heed("distil", translators[0], *words, "--out", tmp_path / "none") == 2
        assert said in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"pairs.tsv"}


def test_where_no_run_can_be_nothing_is_translated_for_it(translators, pairs: Path, tmp_path: Path, capsys) -> None:
    """Such as the teacher's own folder."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("ba")
    teacher = tmp_path / "teacher"
    shutil.copytree(translators[0], teacher)
    for out, what in ((tmp_path / "full", "is not empty and holds no run"), (teacher, "this run was begun with")):
        assert heed("distil", teacher, "--data", pairs, "--preset", "transformer-tiny", "--out", out) == 2
        assert what in capsys.readouterr().err
        assert not out.with_name(f"{out.name}.taught.tsv").exists()


def test_what_a_teacher_says_lies_beside_the_current_folder(translators, pairs: Path, tmp_path, monkeypatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for out in (".", "none/.."):
        student = StudentOptions(data=[str(pairs)], out=Path(out))
        writing = planned_distillation(translators[0], student, TeachingOptions()).writing
        assert writing.out == tmp_path / "here.taught.tsv"


def test_a_file_of_another_name_beside_it_is_not_lost(translators: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("[1]")
    writing = Synthetic(texts=TEXTS, models=translators[:1], out=tmp_path / "mine.tsv", writes="source")
    with pytest.raises(InputError, match=r"mine\.json: is there already"):
        writing.written()
    with pytest.raises(InputError, match=r"mine\.json: is there already"):
        next(writing.write(load_translator(translators[0])))
    assert (tmp_path / "mine.json").read_text() == "[1]"


def test_back_translations_are_pairs_the_other_way_round(translators, pairs: Path, tmp_path: Path, capsys) -> None:
    mono = tmp_path / "mono.txt"
    mono.write_text("ba de\n\ngi ko\nba de\n")
    assert texts_in([str(mono), str(pairs)], "low") == ["ba de", "gi ko", *dict.fromkeys(backwards(80, 5).target)]
    out = tmp_path / "back.tsv"
    assert heed("back-translate", translators[0], mono, "--out", out, "--sample", "--seed", 4, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"out": str(out), "pairs": 2}
    said = load_translator(translators[0]).search(["ba de", "gi ko"], samples=1, seed=4)
    assert rows(out) == [("source", "target"), *((CONTROL.sub(" ", one.text), one.source) for one in said)]
    mono.write_text("\n")
    assert heed("back-translate", translators[0], mono, "--out", tmp_path / "none.tsv") == 2
    recipe = override(TranslateRecipe.model_validate(TRANSFORMER), [f"data.path={pairs}", f'data.synthetic=["{out}"]'])
    assert TranslateJob(recipe).synthetic == 2
