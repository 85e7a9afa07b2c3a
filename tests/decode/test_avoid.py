"""Words that are to be avoided are never completed, by whatever tokens; and nothing else is forbidden."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heedful.decode.avoid import Avoid, avoiding
from heedful.decode.rules import NEVER
from heedful.errors import InputError

PIECES = [" ", "a", "b", "é", "É", " a", "ab", "ba", " B", "bé", ".", "“", " é", "ab a", "1", "_", "中", "文"]
SPELLINGS = [b"", *(piece.encode() for piece in PIECES), b"\xc3", b"\xa9", b"\x89", b"\xe2", b"\x80", b"\x9c"]
EOS, V = 0, len(SPELLINGS)
WORDS = st.lists(st.sampled_from(["a", "ab", "B", "bé", "É", "ab a", "aba", "1", "中文", "."]), min_size=1, max_size=3)


def text_of(tokens: list[int]) -> str | None:
    """None where half a character is left."""
    try:
        return b"".join(SPELLINGS[token] for token in tokens).decode()
    except UnicodeDecodeError:
        return None


def holds(words: list[str], text: str) -> bool:
    for word in words:
        before, after = (r"(?<!\w)" if word[0] not in "中.文" else ""), (r"(?!\w)" if word[-1] not in "中.文" else "")
        if re.search(before + re.escape(word) + after, text, re.IGNORECASE):
            return True
    return False


def forbidden(rule: Avoid, tokens: list[int]) -> Tensor:
    scores = rule(torch.tensor([tokens], dtype=torch.int64), torch.zeros(1, V))
    return scores[0] == NEVER


@settings(max_examples=150)
@given(WORDS, st.lists(st.integers(1, V - 1), max_size=24))
def test_what_is_allowed_never_completes_a_word(words: list[str], wanted: list[int]) -> None:
    rule, said = avoiding(words, SPELLINGS), list[int]()
    for token in wanted:
        if not forbidden(rule, said)[token]:
            said.append(token)
    text = text_of(said)
    assert text is None or not holds(words, text)


@settings(max_examples=150)
@given(WORDS, st.lists(st.integers(1, len(PIECES)), max_size=12))
def test_what_is_forbidden_would_have_completed_one(words: list[str], wanted: list[int]) -> None:
    rule = avoiding(words, SPELLINGS)
    for place, token in enumerate(wanted):
        text = text_of(wanted[: place + 1])
        assert text is not None
        assert bool(forbidden(rule, wanted[:place])[token]) == holds(words, text)
        if holds(words, text):
            return


def test_any_cut_into_tokens_and_any_case_counts() -> None:
    rule = avoiding(["Bé"], SPELLINGS)
    number = {spelling: token for token, spelling in enumerate(SPELLINGS)}
    first, half = number[b" B"], number[b"\xc3"]
    told = forbidden(rule, [first])
    assert told[number["é".encode()]]
    assert told[number["É".encode()]]
    assert not told[half]
    assert forbidden(rule, [first, half])[number[b"\xa9"]]
    assert forbidden(rule, [first, half])[number[b"\x89"]]
    assert forbidden(rule, [number[b" "]])[number["bé".encode()]]
    assert not forbidden(rule, [number[b"a"]])[number["bé".encode()]], "inside another word"


@pytest.mark.parametrize(("before", "whole"), [("“", True), ("«", True), ("\uff01", True), ("é", False), ("я", False)])
def test_a_word_begins_behind_a_sign_and_not_behind_a_letter(before: str, whole: bool) -> None:
    rule = avoiding(["a"], [b"", before.encode(), b"a"])
    scores = rule(torch.tensor([[1]]), torch.zeros(1, 3))[0]
    assert (scores == NEVER).tolist() == [False, False, whole]


def test_what_is_forced_may_be_said() -> None:
    rule = avoiding(["a"], SPELLINGS)
    a, dot = SPELLINGS.index(b" a"), SPELLINGS.index(b".")
    assert not forbidden(rule, [a, dot]).all()
    assert forbidden(rule, [a, dot])[a]


def test_long_histories_are_read_from_their_ends() -> None:
    rule = avoiding(["ab"], SPELLINGS)
    a, b, dot = (SPELLINGS.index(own) for own in (b"a", b"b", b"."))
    assert not forbidden(rule, [a] * 50)[b]
    assert forbidden(rule, [a] * 50 + [dot, a])[b]


def test_a_blank_word_is_refused() -> None:
    with pytest.raises(InputError, match="a word to be avoided is empty"):
        avoiding(["a", " "], SPELLINGS)
