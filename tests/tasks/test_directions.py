"""A translator of several directions: a token before the source asks for the language, in training, use and scores."""

import json
from pathlib import Path

import pytest

import heedful
from commands import heed
from heedful.data.text.pairs import Pairs
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run.events import Finished
from heedful.run.recipe import override
from heedful.tasks.recipes import build
from heedful.tasks.translate.documents.files import translate_documents
from heedful.tasks.translate.exchange.hub_languages import asked_for_alone
from heedful.tasks.translate.exchange.onnx import ENGINE as ONNX
from heedful.tasks.translate.options import TranslationScoring
from heedful.tasks.translate.pairs.pharaoh import align_pairs
from heedful.tasks.translate.pairs.rerank import Judge
from heedful.tasks.translate.pairs.weigh import weigh
from heedful.tasks.translate.spec import TranslatorSpec, directions_of
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.training.distil import planned_back_translation, write_pairs
from heedful.tasks.translate.use import Translator
from heedful.verbs.check import check
from heedful.verbs.evaluate import evaluate
from heedful.verbs.train import train
from made import TRANSFORMER, backwards
from saved import save_run

DIRECTIONS = (("en", "de"), ("en", "fr"), ("fr", "en"))


def written(path: Path, source: list[str], target: list[str]) -> str:
    path.write_text("".join(f"{one}\t{other}\n" for one, other in zip(source, target, strict=True)))
    return str(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """ "German" is in capitals, and "French" in capitals and backwards."""
    folder, pairs = tmp_path_factory.mktemp("data"), backwards(300, 1)
    return [
        f"{written(folder / 'a.tsv', pairs.source, [text.upper() for text in pairs.source])}:en>de",
        f"{written(folder / 'b.tsv', pairs.source, pairs.target)}:en>fr",
        f"{written(folder / 'c.tsv', pairs.target, pairs.source)}:fr>en",
    ]


@pytest.fixture(scope="module")
def run(data: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Finished]:
    out = tmp_path_factory.mktemp("runs") / "several"
    recipe = override(build(TRANSFORMER | {"task": "translate"}, where="test"), [f"data.path={json.dumps(data)}"])
    (finished,) = (event for event in train(recipe, out) if isinstance(event, Finished))
    return out, finished


def test_each_source_begins_with_the_language_that_is_asked_for(data: list[str]) -> None:
    recipe = override(build(TRANSFORMER | {"task": "translate"}, where="test"), [f"data.path={json.dumps(data)}"])
    job = TranslateJob(recipe)
    names = {index: name for name, index in job.source.extra.items()}
    assert {*names.values()} == {"<|to_de|>", "<|to_fr|>", "<|to_en|>"}
    corpus = job.corpus
    for (source, _), text, way in zip(job.pairs, corpus.train.source, corpus.train.ways, strict=True):
        assert names[source[0]] == f"<|to_{corpus.directions[way][1]}|>"
        assert job.source.decode(source[1:]) == text
    few = TranslateJob(override(recipe, ["train.eval_sentences=3"]))
    assert [corpus.directions[way] for way in few.valid.ways] == [*DIRECTIONS], "each measurement is of all directions"
    noisy = TranslateJob(override(recipe, ["data.bpe_dropout=0.5", "noise.capitals=0.5"]))
    task = noisy.task(make_model(noisy.config))
    assert task.variants is not None
    order = [0, len(task.pairs) // 2, len(task.pairs) - 1]
    made = task.variants.of(task.pairs, order, 0, row=64)
    assert [source[0] for source, _ in made] == [task.pairs[i][0][0] for i in order]


def test_scores_are_told_by_direction(run: tuple[Path, Finished]) -> None:
    out, finished = run
    assert [*finished.scores] == [f"test, {source} to {target}" for source, target in DIRECTIONS]
    card = (out / "README.md").read_text()
    assert "Translates en, fr to de, fr, en." in card
    assert "| test, fr to en |" in card
    assert f'heed translate {out} "A sentence in fr." --to en' in card
    about = json.loads((out / "task.json").read_text())
    assert about["languages"]["directions"] == ["en>de", "en>fr", "fr>en"]
    assert (about["source"], about["target"]) == ("en", "de")


def test_another_direction_is_asked_for(run: tuple[Path, Finished]) -> None:
    ours: Translator = heedful.load(run[0])
    assert ours.directed(target="fr").about["source"] == "en"
    back = ours.directed(target="English")
    assert (back.about["source"], back.about["target"]) == ("fr", "en")
    assert back.around[0] == [ours.source.extra["<|to_en|>"]]
    assert not {*ours.source.extra.values()} & {*ours.source.encode(["<|to_fr|> x"])[0]}
    with pytest.raises(InputError, match="it does not translate fr to de"):
        ours.directed("fr", "de")
    assert [law.name for law in check(run[0]) if not law.holds] == []


def test_scores_and_losses_are_those_of_each_direction(run: tuple[Path, Finished]) -> None:
    ours: Translator = heedful.load(run[0])
    pairs = backwards(6, 5)
    whole = Pairs(
        [*pairs.source, *pairs.source],
        [*pairs.target, *pairs.target],
        "made",
        ways=[0, 1] * 6,
        directions=DIRECTIONS[:2],
    )
    made = ours.search_pairs(whole, beam=1)
    for way, to in enumerate(("de", "fr")):
        rows = [*range(way, 12, 2)]
        alone = ours.directed(target=to).search([whole.source[i] for i in rows], beam=1)
        assert [made[i].text for i in rows] == [one.text for one in alone]
    parts = [ours.directed(target=to)._nats(whole.rows(range(way, 12, 2))) for way, to in enumerate(("de", "fr"))]
    assert ours.loss(whole) == pytest.approx(sum(n for n, _ in parts) / sum(t for _, t in parts))


def test_pairs_are_scored_in_their_direction(
    run: tuple[Path, Finished], data: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not in that which the model takes unless another is asked for."""
    ours, pairs = heedful.load(run[0], Translator), backwards(3, 5)
    path = tmp_path / "pairs.tsv"
    written(path, ["fr", *pairs.target], ["en", *pairs.source])
    assert heed("score", run[0], "--data", path, "--json") == 0
    told = [json.loads(line)["logprob"] for line in capsys.readouterr().out.splitlines()]
    both = [*zip(pairs.target, pairs.source, strict=True)]
    right, other = ([one["logprob"] for one in weigh(ours.directed(target=to), both)] for to in ("en", "de"))
    assert told == pytest.approx(right, abs=1e-4)
    assert told != pytest.approx(other, abs=1e-4)


def test_names_of_files_say_the_direction(
    run: tuple[Path, Finished], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, pairs = heedful.load(run[0], Translator), backwards(3, 5)
    files = tmp_path / "test.fr", tmp_path / "test.en"
    for path, texts in zip(files, (pairs.target, pairs.source), strict=True):
        path.write_text("\n".join(texts) + "\n")
    sides = ["--source", files[0], "--target", files[1]]
    assert heed("score", run[0], *sides, "--json") == 0
    told = [json.loads(line)["logprob"] for line in capsys.readouterr().out.splitlines()]
    both = [*zip(pairs.target, pairs.source, strict=True)]
    right = [one["logprob"] for one in weigh(ours.directed(target="en"), both)]
    assert told == pytest.approx(right, abs=1e-4)
    assert heed("eval", run[0], *sides, "--out", tmp_path / "made.txt") == 0
    assert (tmp_path / "made.txt").read_text().splitlines() == ours.directed(target="en").translate(pairs.target)
    turned = ["--source", tmp_path / "test.fr", "--target", (tmp_path / "test.de")]
    turned[-1].write_text(files[1].read_text())
    assert heed("eval", run[0], *turned) == 2
    assert "it does not translate fr to de" in capsys.readouterr().err


def test_texts_in_another_language_than_is_scored_are_told(run: tuple[Path, Finished], tmp_path: Path) -> None:
    english = ["The old house stands beside a quiet river.", "Two children are playing with a red ball in the garden."]
    german = ["Das alte Haus steht neben einem ruhigen Fluss.", "Zwei Kinder spielen im Garten mit einem roten Ball."]
    french = ["La vieille maison se trouve au bord d'une rivière.", "Deux enfants jouent avec un ballon rouge."]
    path = tmp_path / "pairs.tsv"
    mend = "look whether columns or directions are mixed up"
    for target, texts, told in (
        ("de", german, []),
        ("fr", french, []),
        ("fr", german, [f"{path}: most targets are in de, not in fr: {mend}"]),
        ("fr", ["Ein Hund.", "Eine Katze."], []),  # too short to tell
    ):
        written(path, english, texts)
        options = TranslationScoring(data=f"{path}:en>{target}", beam=1)
        (found,) = evaluate(run[0], options)
        assert [note for note in found.notes if "most" in note] == told, (target, texts)
    written(path, french, german)
    (found,) = evaluate(run[0], TranslationScoring(data=f"{path}:en>fr", beam=1))
    assert [note for note in found.notes if "most" in note] == [
        f"{path}: most sources are in fr, not in en: {mend}",
        f"{path}: most targets are in de, not in fr: {mend}",
    ]


@pytest.mark.parametrize("verb", ["eval", "score", "align", "distil"])
def test_pairs_that_do_not_say_their_languages_are_refused(
    run: tuple[Path, Finished], tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    """In words of the data, and with what mends it."""
    pairs = backwards(3, 5)
    path = written(tmp_path / "pairs.tsv", pairs.source, pairs.target)
    assert heed(verb, run[0], "--data", path) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"error: {path}: which language is its source in? The model has several",
        f"fix: name a direction of the model behind the path: {path}:en>de",
    ]
    assert heed(verb, run[0], "--data", f"{path}:en>it") == 2
    assert f"error: {path}" in capsys.readouterr().err
    if verb == "align":
        assert heed(verb, run[0], "--data", f"{path}:en>fr") == 0


def test_back_translations_are_in_the_direction_that_is_asked_for(
    run: tuple[Path, Finished], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By options, or by the file's name; the sources are in the language that comes out."""
    ours, texts = heedful.load(run[0], Translator), backwards(3, 5).target
    for name, to, way in (
        ("mono.txt", "en", ("fr", "en")),
        ("mono.fr", "", ("fr", "en")),
        ("mono.en", "fr", ("en", "fr")),
        ("mono.txt", "", ("en", "de")),
    ):
        (tmp_path / name).write_text("\n".join(texts) + "\n")
        out = tmp_path / f"{name}{to}.tsv"
        longer: DecodingOptions = {"shortest": 2, "longest": 6}
        writing = planned_back_translation(run[0], [str(tmp_path / name)], out, longer, ("", to))
        assert f", from {way[0]} to {way[1]}" in "\n".join(write_pairs(writing, "cpu"))
        rows = [line.split("\t") for line in out.read_text().splitlines()]
        assert rows[0] == [way[1], way[0]]
        assert rows[1:] == [
            [made, text] for made, text in zip(ours.directed(*way).translate(texts, **longer), texts, strict=True)
        ]
    (tmp_path / "mono.en").write_text("x\n")
    assert heed("back-translate", run[0], tmp_path / "mono.en", "--out", tmp_path / "x.tsv", "--to", "it") == 2
    assert "--to: no language 'it'" in capsys.readouterr().err


def test_what_direction_was_taken_is_told_where_nothing_says_it(
    run: tuple[Path, Finished], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = backwards(2, 5)
    for name, texts in (("source.txt", pairs.source), ("reference.txt", pairs.target)):
        (tmp_path / name).write_text("\n".join(texts) + "\n")
    for verb in ("eval", "score", "align"):
        sides = ["--source", tmp_path / "source.txt", "--target", tmp_path / "reference.txt"]
        assert heed(verb, run[0], *sides) == 0
        assert "source.txt: taken as en to de; another direction is said by" in capsys.readouterr().err
    assert heed("score", run[0], f"{pairs.source[0]}\t{pairs.target[0]}") == 0
    assert capsys.readouterr().err == "taken as en to de; another direction is said by --to and --from-language\n"


def test_pairs_without_languages_are_taken_in_the_direction_that_is_named(
    run: tuple[Path, Finished], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, pairs = heedful.load(run[0], Translator), backwards(3, 5)
    sides = [tmp_path / "source.txt", tmp_path / "reference.txt"]
    for path, texts in zip(sides, (pairs.source, pairs.target), strict=True):
        path.write_text("\n".join(texts) + "\n")
    both = [*zip(pairs.source, pairs.target, strict=True)]
    right = [one["logprob"] for one in weigh(ours.directed(target="fr"), both)]
    files = ["--source", sides[0], "--target", sides[1]]
    for given in ([f"{one}\t{other}" for one, other in both], files):
        assert heed("score", run[0], *given, "--to", "French", "--from-language", "en", "--json") == 0
        said = capsys.readouterr()
        assert [json.loads(line)["logprob"] for line in said.out.splitlines()] == pytest.approx(right, abs=1e-4)
        assert "taken as" not in said.err
        assert heed("align", run[0], *given, "--to", "fr", "--json") == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert found == json.loads(json.dumps([*align_pairs(ours.directed(target="fr"), both)]))
    assert heed("eval", run[0], *files, "--to", "fr", "--out", tmp_path / "made.txt") == 0
    assert (tmp_path / "made.txt").read_text().splitlines() == ours.directed(target="fr").translate(pairs.source)
    for verb in ("eval", "score", "align"):
        assert heed(verb, run[0], "--data", f"{written(tmp_path / 'a.tsv', *sides_of(pairs))}:en>fr", "--to", "de") == 2
        assert "error: --to: " in capsys.readouterr().err
        assert heed(verb, run[0], *files, "--to", "it") == 2
        assert "--to: no language 'it'" in capsys.readouterr().err


def test_a_model_of_one_direction_is_compared_and_judged_in_it(run: tuple[Path, Finished], tmp_path: Path) -> None:
    """Where the other model has several, and another one by default."""
    ours, pairs = heedful.load(run[0], Translator), backwards(12, 5)
    alone = ours.directed(target="fr")
    about = {key: value for key, value in alone.about.items() if key != "languages"}
    one = save_run(tmp_path / "one", ours.trainable(), ours.source, ours.target, about)
    single = heedful.load(one, Translator)
    assert single.languages == ("en", "fr")
    path = written(tmp_path / "pairs.tsv", *sides_of(pairs))
    scored = single.evaluate(path, {"source": "en", "target": "fr", "against": str(run[0]), "bootstrap": 1000})
    (found,) = scored.values()
    assert found["against"]["chrf"] == found["chrf"], "both are the same model"
    for judge, own in ((ours, single), (ours, ours.directed("fr", "en"))):
        assert Judge(judge, own).translator.languages == own.languages
    back = Judge(ours, heedful.load(one, Translator).directed())
    (text,) = alone.translate(pairs.source[:1])
    (logprob,) = (one["logprob"] / one["tokens"] for one in weigh(alone, [(pairs.source[0], text)]))
    assert back.scores(pairs.source[:1], [[text]]) == [[pytest.approx(logprob, abs=1e-4)]]


def sides_of(pairs: Pairs) -> tuple[list[str], list[str]]:
    return pairs.source, pairs.target


def test_a_document_of_another_direction_of_the_model_tells_how_to_ask_for_it(
    run: tuple[Path, Finished], tmp_path: Path
) -> None:
    unit = '<body><trans-unit id="1"><source>ba de</source></trans-unit></body>'
    languages = 'source-language="fr" target-language="en"'
    path = tmp_path / "a.xlf"
    path.write_text(f'<xliff version="1.2"><file {languages}>{unit}</file></xliff>')
    ours, ways = (
        heedful.load(run[0], Translator),
        ("from fr, and is translated from en", "to en, and is translated to de"),
    )
    for asked, told in (
        (("", ""), [f"{ways[0]}: give --from-language fr", f"{ways[1]}: give --to en"]),
        (("", "en"), []),
    ):
        (written,) = translate_documents(ours.directed(*asked), [path], tmp_path / "b.xlf", DecodingOptions(longest=4))
        found = [line for line in written.warnings if "it is to be translated" in line]
        assert found == [f"{path}: it is to be translated {way}" for way in told]


def test_another_direction_is_looked_at(run: tuple[Path, Finished]) -> None:
    ours, text = heedful.load(run[0], Translator), backwards(1, 5).source[0]
    assert ours.look(text, {"to": "fr"}).facts["text"] == ours.directed(target="fr").translate(text)
    tokens = [next(iter(ours.attention(text, {"to": to}).values())).labels["key"] for to in ("fr", "de")]
    assert ["<|to_fr|>" in tokens[0], "<|to_fr|>" in tokens[1]] == [True, False]


def test_python_takes_the_language(run: tuple[Path, Finished], tmp_path: Path) -> None:
    """Where another one is meant than the model's first."""
    ours, pairs = heedful.load(run[0], Translator), backwards(3, 5)
    made = ours.directed(target="fr").translate(pairs.source)
    assert made != ours.translate(pairs.source)
    assert ours.translate(pairs.source, to="fr") == made
    assert ours.translate(pairs.source, to="French", from_language="en") == made
    (tmp_path / "a.txt").write_text(f"{pairs.source[0]}\n")
    ours.translate_files(tmp_path / "a.txt", tmp_path / "b.txt", to="fr")
    assert (tmp_path / "b.txt").read_text() == f"{made[0]}\n"
    rows = [*zip(*sides_of(pairs), strict=True)]
    right = {"loss": ours.directed(target="fr").loss(pairs), "chrf": ours.metric.score(made, pairs.references).chrf}
    found = ours.evaluate(rows, {"to": "fr"})["test"]
    assert {name: found[name] for name in right} == pytest.approx(right, rel=1e-4)
    assert ours.evaluate(rows)["test"]["loss"] != pytest.approx(right["loss"], rel=1e-4)
    with pytest.raises(InputError, match="no language 'it'"):
        ours.evaluate(rows, {"to": "it"})


def test_a_model_of_one_direction_learns_no_others(data: list[str], tmp_path: Path) -> None:
    plain = override(
        build(TRANSFORMER | {"task": "translate"}, where="test"), [f"data.path={data[0]}", "train.steps=2"]
    )
    for _ in train(plain, tmp_path / "one"):
        pass
    assert json.loads((tmp_path / "one" / "task.json").read_text())["target"] == "de"
    more = override(plain, [f"data.path={json.dumps(data)}", f"start_from={tmp_path / 'one'}", "model={}"])
    with pytest.raises(InputError, match="a model of one direction, and data of several"):
        TranslateJob(more)


def test_it_is_learnt_from_and_mixed(run: tuple[Path, Finished], data: list[str]) -> None:
    """A run of several directions is trained further on one, with another mixed in."""
    recipe = override(
        build(TRANSFORMER | {"task": "translate"}, where="test"),
        [f"start_from={run[0]}", "model={}", f"data.path={data[1]}", f'data.mix=["{data[1]}:0.25"]'],
    )
    job = TranslateJob(recipe)
    assert job.around.before == (job.source.extra["<|to_fr|>"],)
    several = override(recipe, [f"data.path={json.dumps(data[:2])}", f'data.mix=["{data[2]}:0.25"]'])
    with pytest.raises(InputError, match="pairs from fr to en are mixed in"):
        TranslateJob(several)


@pytest.mark.parametrize(
    ("way", "before", "told"), [("fr>de", "de", "a new direction"), ("en>it", "", "no language 'it'")]
)
def test_a_new_direction_is_learnt(
    run: tuple[Path, Finished], data: list[str], tmp_path: Path, way: str, before: str, told: str
) -> None:
    """Beside the others where the model has the target's token, and else alone and without the token of another."""
    path, source, target = data[0].partition(":")[0], *way.split(">")
    settings = [
        f"start_from={run[0]}",
        "model={}",
        f"data.path={path}",
        f"data.source={source}",
        f"data.target={target}",
    ]
    recipe = override(build(TRANSFORMER | {"task": "translate"}, where="test"), [*settings, "train.steps=1"])
    assert any(told in note for note in TranslateJob(recipe).notes)
    for _ in train(recipe, tmp_path / "new"):
        pass
    ours = heedful.load(tmp_path / "new", Translator)
    assert ours.around[0] == ([ours.source.extra[f"<|to_{before}|>"]] if before else [])
    assert ours.languages == (source, target)
    known = directions_of(ours.about)
    assert known == ([*DIRECTIONS, (source, target)] if before else [])
    assert ours.directed(target=target).around == ours.around
    if before:
        assert ours.directed("fr", "en").about["target"] == "en"


def test_a_model_of_several_languages_does_not_guess_those_of_the_data(
    run: tuple[Path, Finished], data: list[str]
) -> None:
    settings = [f"start_from={run[0]}", "model={}", f"data.path={data[0].partition(':')[0]}"]
    with pytest.raises(InputError, match="languages of the data: no language 'source'"):
        TranslateJob(override(build(TRANSFORMER | {"task": "translate"}, where="test"), settings))


def test_an_export_tells_which_languages_it_does_not_ask_for(
    run: tuple[Path, Finished], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = "there it translates to de alone: ask the run itself for 'fr', 'en'"
    assert heed("export", run[0], "--out", tmp_path / "hub", "--json") == 0
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == f"note: {note}"
    beside, *told = json.loads(said.out)["notes"]
    assert "the run itself keeps addresses and placeholders; it translates what is longer than" in beside
    assert told == [note]
    assert ONNX.lost(heedful.load(run[0]))[1:] == [note]
    assert asked_for_alone(TranslatorSpec(source="a", target="b", tagged="x", tags={"x": 5, "y": 6})) == [
        "there it translates as x alone: ask the run itself for 'y'"
    ]
    assert asked_for_alone(TranslatorSpec(source="a", target="b")) == []
