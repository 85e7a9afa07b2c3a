"""Text that is read as it is made is the text of all ids, whatever they are, and nothing of a stop string gets out."""

from typing import SupportsIndex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.reader import Reader, begun_by
from heedful.data.tokenizer import SMALLEST, SPECIALS, Tokenizer, train_tokenizer

CORPUS = [
    "Two young, white males are outside near many bushes.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "  two  spaces,\ttabs\tand\nlines 😀\n",
] * 3
KINDS = {kind: train_tokenizer(CORPUS, kind=kind, size=400) for kind in ("bpe", "unigram", "chars", "bytes")}
EACH = pytest.mark.parametrize("kind", sorted(KINDS))


# Ids as a bad model may choose them (a share of the vocabulary), many of them bytes, and characters of several bytes.
CHOICES = st.lists(
    st.floats(0, 1, exclude_max=True) | st.integers(len(SPECIALS), SMALLEST - 1) | st.text("äß😀é中a ", max_size=3),
    max_size=12,
)


def ids_of(tokenizer: Tokenizer, choices: list[float | int | str]) -> list[int]:
    ids: list[int] = []
    for choice in choices:
        if isinstance(choice, str):
            ids += tokenizer.encode_whole([choice])[0]
        else:
            span = tokenizer.size - len(SPECIALS)
            ids.append(choice if isinstance(choice, int) else len(SPECIALS) + int(choice * span))
    return ids


def read(tokenizer: Tokenizer, ids: list[int], stop: list[str]) -> list[str]:
    """The pieces of what is read up to a stop."""
    reader, pieces = Reader(tokenizer, stop), []
    for index in ids:
        pieces.append(reader.read(index))
        if reader.over:
            break
    pieces.append(reader.rest())
    assert reader.rest() == ""
    return pieces


@EACH
@settings(max_examples=60)
@given(CHOICES, st.floats(0, 1), st.integers(0, 6), st.lists(st.text("aeß😀 n", min_size=1, max_size=3), max_size=2))
def test_pieces_joined_are_the_whole(
    kind: str, choices: list[float | int | str], start: float, length: int, words: list[str]
) -> None:
    tokenizer = KINDS[kind]
    ids = ids_of(tokenizer, choices)
    whole = tokenizer.decode_whole(ids)
    assert "".join(read(tokenizer, ids, [])) == whole
    place = int(start * len(whole))
    stop = [word for word in [whole[place : place + length], *words] if word]
    pieces = read(tokenizer, ids, stop)
    text = "".join(pieces)
    assert whole.startswith(text)
    assert not any(word in text for word in stop)
    rest = whole[len(text) :]
    assert (not rest) == (not any(word in whole for word in stop))
    assert not rest or any(rest.startswith(word) for word in stop)
    if len(stop) == 1:
        assert text == whole.partition(stop[0])[0]


@EACH
def test_what_is_settled_comes_at_once(kind: str) -> None:
    tokenizer = KINDS[kind]
    (ids,) = tokenizer.encode_whole(["two spaces"])
    assert read(tokenizer, ids, []) == [*(tokenizer.decode_whole([index]) for index in ids), ""]


def test_a_character_waits_for_its_last_byte() -> None:
    tokenizer = KINDS["bytes"]
    (ids,) = tokenizer.encode_whole(["é😀a"])
    assert read(tokenizer, ids, []) == ["", "é", "", "", "", "😀", "a", ""]
    assert read(tokenizer, ids[:5], []) == ["", "é", "", "", "", "\ufffd"]


def test_what_could_begin_a_stop_string_waits() -> None:
    tokenizer = KINDS["bytes"]
    (ids,) = tokenizer.encode_whole(["aab abac"])
    assert read(tokenizer, ids, ["abac"]) == ["", "a", "", "ab ", "", "", "", "", ""]
    assert read(tokenizer, ids[:-1], ["abac"]) == ["", "a", "", "ab ", "", "", "", "aba"]
    assert read(tokenizer, ids, ["", "z"]) == [*"aab abac", ""]


class Counted(str):
    """A text that counts what is cut out of it."""

    cut = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = super().__getitem__(key)
        Counted.cut += len(found)
        return found


@given(st.text("ab", max_size=6), st.text("ab", min_size=1, max_size=6))
def test_what_a_stop_string_may_begin_with_is_the_longest(text: str, word: str) -> None:
    ends = [n for n in range(1, len(word)) if text.endswith(word[:n])]
    assert begun_by(text, word) == max(ends, default=0)


def test_a_long_stop_string_costs_what_the_text_has() -> None:
    reader = Reader(KINDS["bytes"], [Counted("ab" * 5000)])
    made = "".join(map(reader.read, ids_of(KINDS["bytes"], ["ba" * 4])))
    assert made + reader.rest() == "ba" * 4
    assert Counted.cut < 1000


def test_a_stop_string_may_be_of_either_form() -> None:
    tokenizer = train_tokenizer(["weiße Männer"], kind="bpe", size=400)
    ids = tokenizer.encode(["zwei Männer hier"])[0]
    assert "".join(read(tokenizer, ids, ["Ma\u0308nn"])) == " zwei "
