"""Kinds of translations, which a token before the source asks for: in training, use and scores."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import heedful
from commands import heed
from heedful.data.text.corpus import read_parallel
from heedful.data.text.reading import read_whole, tag_said
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run.folder import read_saved
from heedful.run.recipe import override
from heedful.run.train import train
from heedful.tasks import TASKS
from heedful.tasks.recipes import build
from heedful.tasks.translate.languages import tag_token
from heedful.tasks.translate.options import TranslateOptions, TranslationScoring
from heedful.tasks.translate.pairs.weigh import weigh
from heedful.tasks.translate.records import translate_texts, translator_facts
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.training.synthetic import with_tag
from heedful.tasks.translate.use import Translator
from heedful.verbs.evaluate import evaluate
from made import TRANSFORMER, backwards

KINDS = ("formal", "plain", "formal")


def job_on(path: object, *settings: str) -> TranslateJob:
    recipe = override(build(TRANSFORMER | {"task": "translate"}, where="test"), [f"data.path={json.dumps(path)}"])
    return TranslateJob(override(recipe, settings))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of which a column says the kind."""
    pairs, path = backwards(120, 1), tmp_path_factory.mktemp("tags") / "pairs.tsv"
    rows = [f"{KINDS[i % 3]}\t{pairs.source[i]}\t{pairs.target[i]}" for i in range(len(pairs))]
    path.write_text("\n".join(["register\ten\tde", *rows, ""]))
    return path


@pytest.fixture(scope="module")
def run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "kinds"
    recipe = build(TRANSFORMER | {"task": "translate"}, where="test")
    recipe = override(recipe, [f"data.path={table}", "data.tag=register", "train.steps=3", "decode.longest=9"])
    for _ in train(TASKS["translate"], recipe, out):
        pass
    return out


def test_each_source_begins_with_what_its_column_says(table: Path) -> None:
    job = job_on(str(table), "data.tag=register")
    names = {index: name for name, index in job.source.extra.items()}
    for (source, _), text, tag in zip(job.pairs, job.corpus.train.source, job.corpus.train.tags, strict=True):
        assert names[source[0]] == tag_token(tag)
        assert job.source.decode(source[1:]) == text
    kinds = read_whole(str(table), tag="register").train.tags
    assert kinds == [KINDS[i % 3] for i in range(120)]
    assert job.corpus.valid.tags
    with pytest.raises(InputError, match="different tags, at most 100"):
        job_on(str(table), "data.tag=en")
    with pytest.raises(InputError, match="no column 'kind'"):
        job_on(str(table), "data.tag=kind")


def test_a_path_may_say_it(table: Path, tmp_path: Path) -> None:
    assert tag_said("a.tsv#formal:0.5") == ("a.tsv:0.5", "formal")
    assert tag_said("a.tsv:en>de#x") == ("a.tsv:en>de", "x")
    assert tag_said("a.tsv#x:en>de,de>en:2") == ("a.tsv:en>de,de>en:2", "x")
    assert tag_said("a#1.tsv") == ("a#1.tsv", "")
    other = tmp_path / "pairs.tsv2.tsv"
    other.write_text("en\tde\n" + "".join(f"{one}\t{one}\n" for one in ("la", "lu")))
    read = read_whole([f"{table}", f"{other}#news:2"])
    assert read.train.tags == [""] * 120 + ["news"] * 2
    assert read.weights == {(str(other), None): 2.0}
    job = job_on([f"{table}", f"{other}#news:2"])
    tagged = [source for source, _ in job.pairs if source[0] == job.source.extra["<|tag_news|>"]]
    assert len(tagged) == list(job.corpus.train.tags).count("news")
    assert "tagged" not in job.spec()


def test_a_kind_is_asked_for(run: Path) -> None:
    ours: Translator = heedful.load(run)
    tokens = {name: ours.source.extra[tag_token(name)] for name in ("formal", "plain")}
    assert (ours.about["tags"], ours.about["tagged"]) == (tokens, "formal")
    assert ours.around[0] == [tokens["formal"]]  # the more frequent one, as each pair has one
    plain = ours.directed(tag="plain")
    assert plain.around[0] == [tokens["plain"]]
    assert plain.directed(tag="formal").around == ours.around
    assert {*tokens.values()} <= {*ours.forbidden}
    with pytest.raises(InputError, match="no tag 'rude': there are 'formal', 'plain'"):
        ours.directed(tag="rude")
    (record,) = translate_texts(ours, ["ba de"], TranslateOptions(tag="plain"))
    assert record["text"] == plain.search(["ba de"])[0].text
    card = (run / "README.md").read_text()
    assert "Tags of its pairs are `formal` (" in card
    assert "`--tag formal` asks for one; `formal` is taken where none is." in card
    assert translator_facts(read_saved(run))["tags"] == "formal, plain, formal unless asked"


def test_pairs_are_scored_as_their_kind(run: Path, table: Path) -> None:
    ours: Translator = heedful.load(run)
    pairs = read_parallel(str(table), tag="register").train.rows(range(6))
    made = ours.search_pairs(pairs, beam=1)
    for tag in ("formal", "plain"):
        rows = [i for i in range(6) if pairs.tags[i] == tag]
        alone = ours.directed(tag=tag).search([pairs.source[i] for i in rows], beam=1)
        assert [made[i].text for i in rows] == [one.text for one in alone]
    assert ours.loss(pairs) != pytest.approx(ours.loss(replace(pairs, tags=["plain"] * 6)), rel=1e-6)


def test_eval_takes_the_column_that_the_run_was_trained_with(run: Path, table: Path, tmp_path: Path) -> None:
    ours: Translator = heedful.load(run)
    lines = table.read_text().splitlines()[:10]
    for name, head in (("own", lines[0]), ("other", lines[0].replace("register", "kind"))):
        (tmp_path / name).mkdir()
        for part in ("train", "valid", "test"):
            (tmp_path / name / f"{part}.tsv").write_text("\n".join([head, *lines[1:], ""]))
    held = read_parallel(tmp_path / "own", tag="register").tests["test"]
    (found,) = evaluate(run, TranslationScoring(data=str(tmp_path / "own"), beam=1))
    assert found.scores["loss"] == pytest.approx(ours.loss(held), rel=1e-6)
    assert found.notes == (f"test: 8 of 9 examples: {run} has learnt from them",)
    (other,) = evaluate(run, TranslationScoring(data=str(tmp_path / "other"), beam=1))
    assert other.scores["loss"] == pytest.approx(ours.loss(replace(held, tags=[""] * len(held))), rel=1e-6)
    assert other.scores["loss"] != found.scores["loss"]
    assert "no column 'register'" in other.notes[0]
    assert "'formal' is asked for, as by default" in other.notes[0]
    with pytest.raises(InputError, match="no column 'fr'"):
        list(evaluate(run, TranslationScoring(data=str(table), source="en", target="fr")))


def test_given_pairs_are_scored_as_their_kind(run: Path, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours: Translator = heedful.load(run)
    pairs = read_whole(str(table), tag="register").train
    assert heed("score", run, "--data", table, "--json") == 0
    said = capsys.readouterr()
    told = [json.loads(line) for line in said.out.splitlines()]
    assert [each["source"] for each in told] == pairs.source
    for tag, others in (("formal", "plain"), ("plain", "formal")):
        i = pairs.tags.index(tag)
        pair = [(pairs.source[i], pairs.target[i])]
        (own,), (other,) = (weigh(ours.directed(tag=name), pair) for name in (tag, others))
        assert told[i]["logprob"] == pytest.approx(own["logprob"], abs=1e-4)
        assert told[i]["logprob"] != pytest.approx(other["logprob"], abs=1e-4)
    assert heed("align", run, "--data", table) == 0
    assert len(capsys.readouterr().out.splitlines()) == 120


def test_a_model_begun_with_knows_its_tags_and_no_others(run: Path, table: Path) -> None:
    start = [f"start_from={run}", "model={}"]
    again = job_on(str(table), "data.tag=register", *start)
    assert again.spec()["tags"] == heedful.load(run).about["tags"]
    with pytest.raises(InputError, match="does not know the tag 'news'"):
        job_on(f"{table}#news", *start)
    plain = job_on(str(table))
    assert "tags" not in plain.spec()
    model = Translator(make_model(plain.config), plain.source, plain.target, plain.translator_spec())
    with pytest.raises(InputError, match="learnt no tags"):
        model.directed(tag="formal")


def test_back_translations_have_a_tag_of_their_own(table: Path, tmp_path: Path) -> None:
    back = tmp_path / "back.tsv"
    back.write_text("source\ttarget\nla la\tLA LA\n")
    assert with_tag(f"{back}:0.5") == f"{back}:0.5"
    back.with_suffix(".json").write_text(json.dumps({"writes": "source", "models": []}))
    assert with_tag(f"{back}:0.5") == f"{back}#back:0.5"
    assert with_tag(f"{back}:en>de") == f"{back}:en>de#back"
    assert with_tag(f"{back}:en>de:0.5") == f"{back}:en>de#back:0.5"
    assert with_tag(f"{back}#mine") == f"{back}#mine"
    job = job_on(str(table), f'data.synthetic=["{back}"]')
    marked = [source for source, _ in job.pairs if source[0] == job.source.extra["<|tag_back|>"]]
    assert len(marked) == 1
    assert "tagged" not in job.spec()


def test_tags_are_of_the_data_that_they_are_said_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tsv").write_text("en\tde\nhello\thallo\n")
    (tmp_path / "a.en").write_text("hello\n")
    (tmp_path / "a.de").write_text("hallo\n")
    assert read_whole("./a.tsv#formal").train.tags == ["formal"]
    ways = read_whole(["a.tsv:en>de#formal", "a.tsv:de>en"]).train
    assert [*zip(ways.source, ways.tags, strict=True)] == [("hello", "formal"), ("hallo", "")]
    said = read_whole("a.tsv#formal:de>en").train
    assert (said.source, said.tags) == (["hallo"], ["formal"])
    assert read_whole(["a.en", "a.de#formal"]).train.tags == ["formal"]
    with pytest.raises(InputError, match="two tags of the same pairs: formal and plain"):
        read_whole(["a.en#plain", "a.de#formal"])


def test_a_column_of_tags_beside_languages_in_a_zip_file_or_without_a_header(tmp_path: Path) -> None:
    rows = "source\ttarget\tsource_lang\ttarget_lang\tkind\nhello\thallo\ten\tde\tformal\nhi\tsalut\ten\tfr\tplain\n"
    (tmp_path / "a.tsv").write_text(rows)
    assert read_whole(tmp_path / "a.tsv", tag="kind").train.tags == ["formal", "plain"]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.tsv", "en\tde\tkind\nhello\thallo\tformal\n")
    assert read_whole(tmp_path / "a.zip", tag="kind").train.tags == ["formal"]
    (tmp_path / "b.tsv").write_text("hello\thallo\nbye\ttschüss\n")
    with pytest.raises(InputError, match="no column 'kind': it has no header"):
        read_whole(tmp_path / "b.tsv", tag="kind")
