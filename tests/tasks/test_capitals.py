"""Texts in capitals are read in small letters where a model learnt from hardly any."""

import json
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.data.documents.words import words_in
from heedful.data.text.corpus import Corpus
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.run.recipe import override
from heedful.tasks.translate.capitals import (
    has_capitals,
    in_capitals,
    in_small_letters,
)
from heedful.tasks.translate.exchange.onnx import ENGINE as ONNX
from heedful.tasks.translate.inside.look import look_at_translation
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.pairs.rerank import Judge
from heedful.tasks.translate.segment import segments_of
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.use import Translator
from heedful.verbs.exchange import export_model, import_model
from made import TRANSFORMER, made_recipe, with_about
from saved import save_run


@pytest.mark.parametrize(
    ("text", "language", "read"),
    [
        ("TWO DOGS RUN. ONE IS BROWN!", "en", "Two dogs run. One is brown!"),
        ("¿DÓNDE ESTÁ? ¡AQUÍ!", "es", "¿Dónde está? ¡Aquí!"),
        ("3 DOGS AND {NAME}", "", "3 dogs and {NAME}"),
        ("PRESS %s. SEE http://a.com/B NOW", "en", "Press %s. See http://a.com/B now"),
        ("WHAT DO I PLAY? MP3 2ND PART", "English", "What do I play? MP3 2nd part"),
        ("GROßE STRAßE", "de", "Große straße"),
        ("İSTANBUL IŞIK", "tr-TR", "İstanbul {0}ş{0}k".format("\N{LATIN SMALL LETTER DOTLESS I}")),
        ("IŞIK AÇ", "Turkish", "Iş\N{LATIN SMALL LETTER DOTLESS I}k aç"),
        ("İKİ IŞIK", "en", "İki işik"),  # of "İ" two letters would become one
        ("SCHO\u0308NE STRASSE", "de", "Scho\u0308ne strasse"),
    ],
)
def test_a_text_in_capitals_is_a_sentence_of_as_many_letters(text: str, language: str, read: str) -> None:
    assert in_capitals(text)
    assert in_small_letters(text, language) == read
    assert len(read) == len(text)


@pytest.mark.parametrize(
    "text",
    ["NATO", "A B C", "Two DOGS RUN", "{FILE_NAME}: OK", "两 只 狗", "用 IBM 和 NASA", "שלום IBM NASA", "12 34", ""],
)
def test_a_name_or_what_has_small_letters_is_none(text: str) -> None:
    assert not in_capitals(text)


def test_a_hundredth_of_the_sources_is_enough_to_read_them_as_they_are() -> None:
    assert has_capitals(["a dog"] * 99 + ["A DOG RUNS"])
    assert not has_capitals(["a dog"] * 100 + ["A DOG RUNS"])


def test_a_run_tells_whether_it_reads_capitals(corpus: Corpus) -> None:
    recipe = made_recipe(TRANSFORMER)
    assert TranslateJob(recipe, corpus).spec()["reads_capitals"] is False
    assert "reads_capitals" not in TranslateJob(override(recipe, ["noise.capitals=0.1"]), corpus).spec()


@pytest.fixture
def quiet(translators: tuple[Path, Path]) -> Translator:
    translator = Translator.load(translators[0])
    assert translator.spec.reads_capitals is False
    return translator


SMALL, LOUD = "Ba de gi ko. Lu ma ne!", "BA DE GI KO. LU MA NE!"


def test_it_is_translated_aligned_and_looked_at_as_the_same_text_in_small_letters(quiet: Translator) -> None:
    (small, loud) = quiet.search([SMALL, LOUD])
    assert (loud.text, loud.score) == (small.text, small.score)
    assert loud.source == LOUD
    (one, other) = aligned(quiet, [(SMALL, small.text), (LOUD, small.text)])
    assert one == other
    assert len(one.source) == len(words_in(LOUD))
    assert look_at_translation(quiet, LOUD).source == look_at_translation(quiet, SMALL).source


def test_it_is_as_long_as_the_same_text_in_small_letters(quiet: Translator) -> None:
    """The words of this model's targets are in capitals, so that here a text in capitals has fewer tokens."""
    few, many = (len(quiet.source.encode([text])[0]) for text in (LOUD, SMALL))
    assert few < many
    quiet = with_about(quiet, source_tokens={"longest": few, "centile_99": few})
    assert segments_of(quiet, LOUD) == segments_of(quiet, SMALL)


def test_a_model_of_the_other_direction_judges_the_source_as_it_was_read(quiet: Translator) -> None:
    other = with_about(quiet, source=quiet.languages[1], target=quiet.languages[0])
    judge = Judge(other, quiet)
    assert judge.scores([LOUD], [["BA DE"]]) == judge.scores([SMALL], [["BA DE"]])


def test_a_model_that_reads_capitals_gets_them(quiet: Translator) -> None:
    quiet = with_about(quiet, reads_capitals=True)
    assert quiet.encode([LOUD]) != quiet.encode([SMALL])
    assert quiet.source.decode(quiet.encode([LOUD])[0][0]) == LOUD


def test_what_was_learnt_from_is_known_on_the_way_back(quiet: Translator, tmp_path: Path) -> None:
    model: Any = quiet.model
    learnt = {"source_tokens": {"longest": 9, "centile_99": 8}, "reads_capitals": False}
    run = save_run(tmp_path / "run", model, quiet.source, quiet.target, quiet.about | learnt)
    export_model(run, tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "again")
    again = Translator.load(tmp_path / "again")
    assert {key: again.about[key] for key in learnt} == learnt
    assert again.as_read(LOUD) == quiet.as_read(LOUD) != LOUD
    path = tmp_path / "hub" / "config.json"
    told = json.loads(path.read_text())
    told["task_specific_params"]["translation"]["source_tokens"] = {"longest": "9"}
    path.write_text(json.dumps(told))
    with pytest.raises(InputError, match=r"source_tokens.*longest"):
        import_model(tmp_path / "hub", tmp_path / "never")


def test_an_export_tells_that_capitals_are_read_as_they_are(quiet: Translator, tmp_path: Path) -> None:
    model: Any = quiet.model
    told = ["there a text in CAPITALS is read as it is: the run itself reads it in small letters"]
    for reads in (False, True):
        run = save_run(
            tmp_path / f"{reads}", model, quiet.source, quiet.target, quiet.about | {"reads_capitals": reads}
        )
        _, *hub = export_model(run, tmp_path / f"{reads}-hub").notes
        _, *onnx = ONNX.lost(heedful.load(run))
        assert hub == onnx == ([] if reads else told)


def test_a_word_that_was_learnt_with_a_capital_has_one(quiet: Translator) -> None:
    lines = ["We saw Berlin in October.", "In October the dog saw it.", "Is the dog in Berlin?", "We saw the dog."]
    quiet.source = train_tokenizer(lines * 9, kind="bpe", size=400)
    assert quiet.as_read("THE DOG SAW BERLIN IN OCTOBER. WE SAW IT!") == "The dog saw Berlin in October. We saw it!"
    assert in_small_letters("THE DOG SAW BERLIN.") == "The dog saw berlin."
