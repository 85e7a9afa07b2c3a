"""Texts in parts: nothing is lost between them, and tags are not touched."""

import html
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.serve.languages import code, in_english, listed
from heedful.serve.segments import cut

NODES = st.recursive(
    st.text(st.characters(codec="utf-8", exclude_characters="\r", exclude_categories=("Cc", "Cn", "Co"))).map(
        html.escape
    ),
    lambda inner: st.builds(
        lambda name, value, parts: f'<{name} a="{html.escape(value)}">{"".join(parts)}</{name}><x/><!-- <b> -->',
        st.sampled_from(["p", "b", "über", "x-y", "code"]),
        st.text("ab<>'\"&"),
        st.lists(inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.text(), st.booleans(), st.booleans())
def test_what_is_put_back_is_the_text(text: str, lines: bool, sentences: bool) -> None:
    made = cut(text, lines=lines, sentences=sentences)
    assert all(part.strip() == part and any(map(str.isalnum, part)) for part in made.spoken)
    said = made.said(made.spoken)
    assert said == text if lines else said.split() == text.split()


@settings(max_examples=60, deadline=None)
@given(NODES)
def test_of_xml_only_the_texts_are_spoken(text: str) -> None:
    made = cut(text, "xml", ignored=["code"])
    assert html.unescape(made.said(made.spoken)) == html.unescape(text)
    shouted = made.said(["<&>"] * len(made.spoken))
    assert cut(shouted, "xml", ignored=["code"]).said(["<&>"] * len(made.spoken)) == shouted
    for mark in ("<p ", "</p>", "<x/>", "<!-- <b> -->", "</über>", "</code>"):
        assert shouted.count(mark) == text.count(mark)


@settings(max_examples=60, deadline=None)
@given(st.text("ab <>/!-\"'=&;[CDATA]?pscript"))
def test_of_any_html_nothing_is_lost(text: str) -> None:
    made = cut(text, "html")
    assert html.unescape(made.said(made.spoken)).split() == html.unescape(text).split()


@pytest.mark.parametrize("part", ["<", "<a", '<a "', "<a '", "<!--", "<!", "</", "<script>", " ", ". ", "&", "\n", "a"])
@pytest.mark.parametrize("markup", [None, "html"])
def test_time_is_in_proportion_to_the_length(part: str, markup: str | None) -> None:
    begun = time.process_time()
    cut(part * (50_000 // len(part)), "html" if markup else None)
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Mr. Smith met Dr. J. Doe. They spoke.", ["Mr. Smith met Dr. J. Doe.", "They spoke."]),
        ("It costs 3.50 now. e.g. this one is lower", ["It costs 3.50 now. e.g. this one is lower"]),
        ('He said "Go." Then he went (away.) Then.', ['He said "Go."', "Then he went (away.)", "Then."]),
        ("これは本です。それはペンです。", ["これは本です。", "それはペンです。"]),
        ("... a ... B", ["... a ...", "B"]),
        ("one\n\n two\r\nthree", ["one", "two", "three"]),
    ],
)
def test_sentences(text: str, parts: list[str]) -> None:
    assert cut(text).spoken == parts


def test_what_html_says_is_not_to_be_translated_is_not() -> None:
    page = (
        '<p>a<img alt="b">c</p><p translate=no>d<p>e</p>f</p><STYLE>g < </STYLE>h<b class="x notranslate">i</b>'
        "<script>'<b>'</script>j<pre>k</pre><!doctype html>l"
    )
    assert cut(page, "html").spoken == ["a", "c", "h", "j", "k", "l"]


@pytest.mark.parametrize(
    ("name", "its_code", "told", "english"),
    [
        ("en", "en", "en", "English"),
        ("EN-us", "en", "en-US", "English (United States)"),
        ("pt_BR", "pt", "pt-BR", "Portuguese (Brazil)"),
        ("German", "de", "de", "German"),
        ("Deutsch", "de", "de", "German"),
        ("deu", "de", "de", "German"),
        ("zh", "zh", "zh", "Chinese"),
        ("source", "source", "source", "source"),
        ("low", "low", "low", "low"),
        ("noised text", "noised text", "noised text", "noised text"),
        ("../x", "../x", "../x", "../x"),
    ],
)
def test_languages_by_their_names(name: str, its_code: str, told: str, english: str) -> None:
    assert (code(name), listed(name), in_english(told)) == (its_code, told, english)
