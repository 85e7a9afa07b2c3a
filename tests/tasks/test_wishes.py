"""What a translation must have in it is there, and what it must not is not, whatever the model."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from heedful.data.documents.tags import Alignment
from heedful.data.text.corpus import Corpus
from heedful.decode.contract import Hypothesis
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError
from heedful.tasks.translate import placed, searching
from heedful.tasks.translate.cli import WordOptions
from heedful.tasks.translate.documents.fragments import FragmentOptions, translate_fragments
from heedful.tasks.translate.inside.words import AlignOptions, align
from heedful.tasks.translate.options import TranslateOptions
from heedful.tasks.translate.records import translate_texts
from heedful.tasks.translate.segment import sentence_of
from heedful.tasks.translate.use import Translator
from heedful.tasks.translate.wishes import WantedForms, Wishes, wishes_of
from made import DECODER, RECURRENT, TRANSFORMER, random_translator

KINDS = {"transformer": TRANSFORMER, "decoder": DECODER, "rnn": RECURRENT}
TEXTS = ["ba de gi", "ko", "lu ma ne pi", "", "su ba, KO"]


@pytest.fixture(scope="module", params=sorted(KINDS))
def model(corpus: Corpus, request: pytest.FixtureRequest) -> Translator:
    return random_translator(corpus, KINDS[request.param], decode={"beam": 3, "longest": 24})


def whole(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){word}(?!\w)", text) is not None


def test_required_words_are_said_and_others_are_not(model: Translator) -> None:
    for said in model.translate(TEXTS, require=["BA", "Zug um Zug|KO"])[:3]:
        assert whole("BA", said)
        assert whole("Zug um Zug", said) or whole("KO", said)
    plain = model.translate(TEXTS)
    words = [word for text in plain for word in re.findall(r"\w+", text)][:6]
    assert words
    for beam in (1, 3):
        for said in model.translate(TEXTS, avoid=words, beam=beam):
            for word in words:  # U+FFFD, where this model says half a character, is no end of a word
                assert not re.search(rf"(?<![\w\ufffd]){word}(?![\w\ufffd])", said, re.IGNORECASE)


def test_half_characters_are_read_as_unknown_ones(model: Translator) -> None:
    """As Python has them of open(errors="surrogateescape"), and of escapes in JSON. A whole pair is its character."""
    given, clean = (
        ["ba \ud800 de.", "ko \ud83d\ude00 \udce9", "\udce9"],
        ["ba \ufffd de.", "ko \U0001f600 \ufffd", "\ufffd"],
    )
    assert model.translate(given) == model.translate(clean)
    assert model.translate(given[:1], prefix=["KO. \ud800 LU"]) == model.translate(clean[:1], prefix=["KO. \ufffd LU"])
    assert [one.source for one in model.search(given)] == clean
    words = {"require": "BA|\ud800", "avoid": ["LU\udce9"], "glossary": {"de \ud800": "MA|\udce9"}}
    known = {"require": "BA|\ufffd", "avoid": ["LU\ufffd"], "glossary": {"de \ufffd": "MA|\ufffd"}}
    assert model.translate(given, **words) == model.translate(clean, **known)
    (record,) = translate_texts(model, given[:1], TranslateOptions(confidence=True, glossary=(("ba", "LU\ud800"),)))
    json.dumps(record, ensure_ascii=False).encode()
    (fragment,) = translate_fragments(model, given[:1], FragmentOptions())
    json.dumps(fragment, ensure_ascii=False).encode()
    assert align(model, given[0], AlignOptions()) == align(model, clean[0], AlignOptions())
    assert sentence_of(model, given[0], 1) == clean[0]


def test_terms_are_said_where_the_source_has_them(model: Translator) -> None:
    wishes = wishes_of((), (), {"ba": "LU", "ko": "Pferd|Pferde"}, model.languages)
    made = model.search(TEXTS, wishes=wishes, n_best=2)
    assert [[term["source"] for term in one.terms] for one in made] == [["ba"], ["ko"], [], [], ["ba", "ko"]]
    assert all(term["used"] for one in made for term in one.terms)
    for text, _ in made[0].hypotheses:
        assert whole("LU", text)
    assert made[1].terms[0]["target"] in made[1].text
    assert made[2:4] == model.search(TEXTS, n_best=2)[2:4], "without terms as without a glossary"
    alone = [model.search([text], wishes=wishes, n_best=2)[0].text for text in TEXTS]
    assert alone == [one.text for one in made]


def test_with_its_terms_a_translation_is_about_as_long(model: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may not end without a word would otherwise repeat itself, which a model finds likely."""
    held, limits = searching.constrained_beam, list[int]()

    def constrained_beam(*given: Any, **settings: Any) -> list[list[Hypothesis]]:
        limits.extend(settings["longest"])
        return held(*given, **settings)

    monkeypatch.setattr(searching, "constrained_beam", constrained_beam)
    (ids,), wish = model.encode(["lu ma ne pi ba"])[0], model.phrases.wish(WantedForms(("LU",)))
    for plain in (3, 8, 999):
        found = model.hypotheses([ids], model.decoding(longest=None), wishes=[[wish]], plain=[plain])
        assert len(found[0][0].tokens) <= limits[-1]
    room = max(map(len, wish.phrases)) + 1
    half = max(3, len(ids) // 2)
    assert limits == [own + room for own in (5 * half // 4 + searching.SLACK, 10 + searching.SLACK, 2 * len(ids) + 12)]


def test_what_is_read_to_place_a_term_is_asked_for(model: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its source's words is left out once, whatever becomes of it."""
    spent = list[int]()

    class Counting:
        at_once = None

        def spend(self, tokens: int, at_once: int) -> None:
            spent.append(tokens)

    monkeypatch.setattr(placed.PlainRow, "has_lost", lambda row, held: True)
    monkeypatch.setattr(model, "budget", Counting())
    (plain,) = model.search(["ba de gi"])
    begun = len(spent)
    model.search(["ba de gi"], wishes=wishes_of((), (), {"ba": "Zug"}, model.languages))
    ((ids,), _) = model.encode(["ba de gi"])
    assert (1 + len(ids)) * (len(ids) + len(plain.tokens[0])) in spent[begun:]


def test_what_has_the_words_anyway_stays(model: Translator) -> None:
    texts, asked = TEXTS[:3], {"prefix": ["KO LU"] * 3, "n_best": 2}
    plain = model.search(texts, **asked)
    assert all(whole("KO", one.text) for one in plain)
    found = model.search(texts, wishes=Wishes(require=("KO",)), **asked)
    assert [one.text for one in found] == [one.text for one in plain]
    assert [one.score for one in found] == pytest.approx([one.score for one in plain], abs=1e-4)


def test_a_term_in_capitals_may_be_said_in_capitals() -> None:
    wishes = wishes_of((), "Rüde", {"dog": "Hund|Rüde"}, ("en", "de"))
    (one,) = wishes.of("A DOG")
    assert set(one.forms) == {"Hund", "HUND"}
    (one,) = wishes.of("Dogs and a dog")
    assert (one.forms, one.times) == (("Hund",), 2)


def test_signs_of_a_term_are_wanted_of_the_translation() -> None:
    wishes = wishes_of((), (), {"C++": "C++", "C#": "C#", "@home": "@Hause", "U.S.": "U.S.A."}, ("en", "de"))
    for source, good, bad in (
        ("a C++ job", "eine C++-Stelle", "eine C#-Stelle"),
        ("in C#", "in C#.", "in C."),
        ("@home", "bin @Hause", "zu Hause"),
        ("the U.S.", "die U.S.A. da", "die U.S. da"),
    ):
        (wanted,) = wishes.of(source)
        assert source[slice(*wanted.spans[0])] == wanted.source
        assert wanted.met(good)
        assert not wanted.met(bad)
    assert not wishes.of("vitamin C at home in the US")


def test_a_form_that_is_put_into_a_text_has_its_signs_once() -> None:
    alignment = Alignment([(0, 3)], [(0, 1), (1, 2), (2, 3)], [{0: 1.0}, {}, {}])
    wanted = WantedForms(("C++", "D+"), 1, "C++", ((0, 3),))
    assert placed._texts("c++", wanted, alignment) == ["C++", "D++"]
    alignment = Alignment([(0, 5)], [(0, 1), (1, 5)], [{}, {0: 1.0}])
    assert placed._texts("@home", WantedForms(("@Hause",), 1, "@home", ((0, 5),)), alignment) == ["@Hause"]


def test_a_prefix_goes_before(model: Translator) -> None:
    (said,) = model.translate(TEXTS[:1], prefix=["KO"], require="BA")
    assert said.startswith("KO")
    assert whole("BA", said[2:])


def test_records_tell_of_terms_and_what_was_not_met(model: Translator) -> None:
    options = TranslateOptions(glossary=(("ba", "LU"),))
    first, second, *_ = translate_texts(model, TEXTS, options)
    assert first["terms"] == [{"source": "ba", "target": "LU", "used": True}]
    assert "terms" not in second
    short = TranslateOptions(glossary=(("ba", "LU LU LU LU LU"),), decoding=DecodingOptions(longest=2))
    (record,) = translate_texts(model, TEXTS[:1], short)
    assert not record["terms"][0]["used"]
    assert "'LU LU LU LU LU'" in record["warning"]


def test_wishes_that_cannot_be_are_refused(model: Translator) -> None:
    with pytest.raises(InputError, match="is required, and to be avoided"):
        model.translate("ba", require="der Zug", avoid="zug")
    with pytest.raises(InputError, match="a required word is empty"):
        model.translate("ba", require=" | ")
    with pytest.raises(InputError, match="a word to be avoided is empty"):
        model.translate("ba", avoid=" ")
    with pytest.raises(InputError, match="is not drawn"):
        model.translate("ba", avoid="BA", samples=1)
    with pytest.raises(InputError, match="not a term and its translation"):
        [*translate_texts(model, TEXTS, TranslateOptions(glossary=(("ba",),)))]
    for glossary in ([("ba",)], [("ba", "LU", "TE")]):
        with pytest.raises(InputError, match="not a term and its translation"):
            model.translate("ba", glossary=glossary)
    for glossary in (["ba\tLU"], {"ba": 3}, {"ba": ["LU", 3]}, [3]):
        with pytest.raises(InputError, match="not a term and its translation"):
            inspect.unwrap(wishes_of)((), (), glossary, ("en", "de"))  # without its annotations


def test_a_first_line_that_is_taken_for_a_term_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    terms = tmp_path / "terms.tsv"
    unknown, known = "Begriff\tWort\nba\tLU|TE\n", "Term (EN)\tTerm (DE)\nba\tLU|TE\n"
    for text, told in (
        (unknown, "2 terms, the first 'Begriff': 'Wort'"),
        (known, "1 term, the first 'ba': 'LU' or 'TE'"),
    ):
        terms.write_text(text)
        WordOptions(glossary=terms).wishes(("en", "de"))
        assert capsys.readouterr().err == f"{terms}: {told}\n"


def test_a_glossary_may_be_a_file(model: Translator, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("ba\tLU\n")
    assert whole("LU", model.translate("ba", glossary=tmp_path / "terms.tsv"))


@pytest.mark.parametrize("avoid", ["", " "])
def test_an_empty_word_to_be_avoided_is_refused_beside_others(avoid: str) -> None:
    for require, glossary in (("x", None), ((), {"dog": "Hund"})):
        with pytest.raises(InputError, match="a word to be avoided is empty"):
            wishes_of(require, avoid, glossary, ("en", "de"))
