"""Placeholders and addresses come out of `heed translate` and `model.translate` as they went in."""

import re

import pytest

from heedful.data.documents.tags import Alignment
from heedful.tasks.translate.documents.placeholders import _even
from heedful.tasks.translate.use import Translator
from heedful.verbs.use import ask
from made import with_about
from saying import Says, says_what_it_is_told
from serving import opened, translator

URL = "https://a.org/b?c=1"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return opened(translator(tmp_path_factory.mktemp("runs") / "made", "low", "high", seed=2))


@pytest.mark.parametrize(
    ("says", "expected", "times", "warned"),
    [
        (lambda text: [f"X {text}"], f"X ba {URL} de {{n}}.", 1, False),  # it copies
        (lambda text: ["lost" if "//" in text else f"Z {text}"], f"Z ba {URL} de {{n}}.", 2, False),  # a number
        (lambda text: ["lost" if "//" in text else "7391 8264 7391"], URL, 3, True),  # one of them twice
        (lambda text: ["lost"], URL, 3, True),  # it copies nothing
    ],
)
def test_they_are_never_lost(
    own: Translator, monkeypatch: pytest.MonkeyPatch, says: Says, expected: str, times: int, warned: bool
) -> None:
    asked = says_what_it_is_told(says, monkeypatch)
    (found,) = ask(own, "translate", [f"ba {URL} de {{n}}."])
    assert expected in found["text"]
    assert (found["text"].count(URL), found["text"].count("{n}")) == (1, 1)
    assert len(asked) == times
    assert found["source"] == f"ba {URL} de {{n}}."
    assert f"{URL}, {{n}}: the model does not copy it" in found.get("warning", "") or not warned
    assert ("warning" in found) == warned


def test_lines_within_a_programs_text_are_translated_one_by_one(
    own: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between them stand the escapes of the program, such as "\\n" in two characters, as they were."""
    asked = says_what_it_is_told(lambda text: [text.upper()], monkeypatch)
    assert own.translate("\\tBa de.\\nGi ko\\r\\n\\nLu ma\\n") == "\\tBA DE.\\nGI KO\\r\\n\\nLU MA\\n"
    assert sorted(asked) == ["Ba de.", "Gi ko", "Lu ma"]
    assert own.translate("C:\\new ba") == "C:\\NEW BA", "a path has no ends of lines"


def test_what_copies_them_is_not_searched_for_again(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = says_what_it_is_told(
        lambda text: ["GI"] if text == "gi" else [text if "//" in text else f"Z {text}"], monkeypatch
    )
    assert own.translate(["gi", f"ba {URL}", "ko"]) == ["GI", f"ba {URL}", "Z ko"]
    assert sorted(asked) == [f"ba {URL}", "gi", "ko"]


def test_what_lost_one_is_no_hypothesis(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    says_what_it_is_told(
        lambda text: ["one", "two", "three"] if "//" in text else ["lost", f"Z {text}", "lost"], monkeypatch
    )
    found = own.search(f"ba {URL}.", confidence=True, n_best=3)
    assert found.hypotheses == [(f"Z ba {URL}.", -1.0)], "the others lost it"
    assert (found.text, found.score) == found.hypotheses[0]
    assert [[word for word, _ in one.words] for one in found.said] == [["Z", "ba", f"{URL}."]]
    says_what_it_is_told(lambda text: ["lost", "gone"], monkeypatch)
    found = own.search(f"ba {URL}.", n_best=2)
    assert [score for _, score in found.hypotheses] == [0.0, -1.0]
    assert all(URL in text for text, _ in found.hypotheses)


def test_an_address_alone_stays(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    says_what_it_is_told(lambda text: ["lost", "gone"], monkeypatch)
    found = own.search(f"{URL} 12", n_best=2)
    assert found.hypotheses == [(f"{URL} 12", 0.0)]


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("ba <b>de</b> gi", "ba de gi", "ba <b>de</b> gi"),
        ("<p>ba</p><p>{n} <i>de</i>, gi</p>", "ba de, gi", "<p>ba</p><p>{n} <i>de</i>, gi</p>"),
        ("ba {n} ko <b>de</b>", "ba de", "ba {n} <b>de</b>"),
        ("ba <b>{n}</b> de <br/> gi", "ba de gi", "ba <b>{n}</b> de <br/> gi"),
    ],
)
def test_tags_that_are_text_are_put_back_around_their_words(
    own: Translator, monkeypatch: pytest.MonkeyPatch, text: str, said: str, expected: str
) -> None:
    def even(_: Translator, pairs: list[tuple[str, str]]) -> list[Alignment]:
        return [_even(*pair) for pair in pairs]

    says_what_it_is_told(lambda asked: ["lost" if re.search("[<{]|\\d", asked) else said], monkeypatch)
    monkeypatch.setattr("heedful.tasks.translate.pairs.links.aligned", even)
    found = own.search(text)
    assert found.text == expected


@pytest.mark.parametrize(
    "text",
    [
        "<b>Ba de gi.</b>",
        "Ba <b>de gi.</b>",
        "<p>Ba de gi.</p><p>Ko lu ma.</p>",
        "<p>Ba de gi.</p> <p>Ko lu ma.</p>",
        "{0}Ba de gi.{1}",
        "Ba de gi.<br/>",
        "Ba de gi. {n}",
        "Ba{n} de: {n} gi",
        '[box id="1"]Ba de gi.[/box] Ko lu.',
    ],
)
def test_what_touches_its_neighbour_still_does(own: Translator, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Whether a sentence is closed by a tag, or a placeholder hangs on a word: no blank is added, and none is lost."""

    def even(_: Translator, pairs: list[tuple[str, str]]) -> list[Alignment]:
        return [_even(*pair) for pair in pairs]

    says_what_it_is_told(lambda asked: ["lost" if re.search(r"[<{\[]|\d", asked) else asked.lower()], monkeypatch)
    monkeypatch.setattr("heedful.tasks.translate.pairs.links.aligned", even)
    assert own.search(text).text == text.lower()


def test_a_summary_may_leave_them_out(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    own = with_about(own, scores="rouge")
    asked = says_what_it_is_told(lambda text: ["short"], monkeypatch)
    assert own.translate(f"ba {URL} de.") == "short"
    assert len(asked) == 1


def test_of_what_has_none_nothing_is_told(own: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = says_what_it_is_told(lambda text: ["X <b>"], monkeypatch)
    (found,) = ask(own, "translate", ["ba de."])
    assert (found["text"], found.get("warning"), asked) == ("X <b>", None, ["ba de."])
