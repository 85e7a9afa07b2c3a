"""The one edge where text is made clean, and how a text is quoted in a line."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.lines import quoted, sanitise


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("\ufeffe\u0301\0\r\n", "\ufeffe\u0301\0\r\n"),
        ("", ""),
    ],
)
def test_sanitise(text: str, clean: str) -> None:
    assert sanitise(text) == clean


ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
@settings(max_examples=300)
def test_what_is_sanitised_is_utf_8_and_stays(text: str) -> None:
    clean = sanitise(text)
    assert clean.encode().decode() == clean == sanitise(clean)
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert clean == text


@given(st.text())
def test_a_quoted_text_is_the_text(text: str) -> None:
    """On one line, and with spaces of all kinds as they are."""
    assert ast.literal_eval(quoted(text)) == text
    assert len(quoted(text).splitlines()) == 1
    assert quoted("l'\u00e9t\u00e9\u202f?") == '"l\'\u00e9t\u00e9\u202f?"'
