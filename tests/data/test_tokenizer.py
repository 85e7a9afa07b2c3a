"""The tokenizer: every text comes back, none yields a control id, the same texts train the same tokenizer."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, models, pre_tokenizers
from tokenizers.normalizers import NFC, NFD

from heedful.data.bpe_dropout import BPEDropout
from heedful.data.lines import sanitise
from heedful.data.tokenizer import BOS, EOS, PAD, SMALLEST, SPECIALS, UNK, SpecialTokens, Tokenizer, train_tokenizer
from heedful.errors import InputError, StorageError, TextError
from vocabularies import BOTH, BPE, CORPUS, NASTY, UNIGRAM


@pytest.mark.parametrize("text", NASTY, ids=lambda text: ascii(text)[:24])
@BOTH
def test_nasty_texts_come_back(tokenizer: Tokenizer, text: str, tally: Callable[[str, int], None]) -> None:
    check_round_trip(tokenizer, text)
    tally("T1 texts through the tokenizer and back", 1)


MARKUP = st.sampled_from([*SPECIALS, "<", ">", "s", "/", "0x41", " ", "  ", "\n", "\ud83d", "\ude00", "ab", "é"])
ANY_TEXT = st.one_of(st.text(st.characters(exclude_categories=())), st.lists(MARKUP).map("".join))


@pytest.mark.parametrize("count", [400, pytest.param(5000, marks=pytest.mark.full)])
@BOTH
def test_every_text_comes_back(tokenizer: Tokenizer, count: int, tally: Callable[[str, int], None]) -> None:
    @given(ANY_TEXT)
    @settings(max_examples=count)
    def comes_back(text: str) -> None:
        check_round_trip(tokenizer, text)

    comes_back()
    tally("T1 texts through the tokenizer and back", count)


def check_round_trip(tokenizer: Tokenizer, text: str) -> None:
    clean = NFC().normalize_str(" " + sanitise(text))[1:]
    expected = clean if tokenizer is BPE else clean.replace("▁", " ")
    (ids,) = tokenizer.encode([text])
    assert all(len(SPECIALS) <= index < tokenizer.size for index in ids)
    assert tokenizer.decode(ids) == expected
    shown = tokenizer.pieces(ids)
    assert len(shown) == len(ids)
    if "<0x" not in clean and text:  # what is left of the pieces without lone bytes is the text
        whole = "".join(piece for piece in shown if not piece.startswith("<0x"))
        assert whole == (" " + clean).replace(" ", "▁")


@given(st.lists(ANY_TEXT, max_size=5))
@settings(max_examples=50)
def test_a_batch_is_each_text_by_itself(texts: list[str]) -> None:
    rows = BPE.encode(texts)
    assert rows == [BPE.encode([text])[0] for text in texts]
    assert BPE.decode_batch(rows) == [BPE.decode(row) for row in rows]


@BOTH
def test_words_of_many_texts_are_encoded_once_and_make_the_same_ids(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.data.tokenizer.MANY", 3)
    words = st.sampled_from([*NASTY, "it's", "'s", "we'LL", "12", "a1b", "½x", "x▁y", "near", "Büsche.", "a<b"])

    @given(st.lists(st.lists(words, max_size=6).map(" ".join) | ANY_TEXT, min_size=4, max_size=12))
    def whatever_they_are(texts: list[str]) -> None:
        for encode in (tokenizer.encode, tokenizer.encode_whole):
            assert encode(texts) == [encode([text])[0] for text in texts]

    whatever_they_are()


@BOTH
def test_control_ids_are_where_everybody_expects_them(tokenizer: Tokenizer) -> None:
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3) == (tokenizer.pad, tokenizer.unk, tokenizer.bos, tokenizer.eos)
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    (ids,) = tokenizer.encode(["two men"])
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "two men"
    assert tokenizer.decode([]) == ""
    assert tokenizer.encode([]) == []


@BOTH
def test_frequent_words_are_one_token_wherever_they_stand(tokenizer: Tokenizer) -> None:
    first, later = tokenizer.encode(["are", "men are"])
    assert len(first) == 1
    assert later[-1:] == first
    assert tokenizer.pieces(first) == ["▁are"]


def test_pieces_show_spaces_and_spread_characters() -> None:
    (ids,) = BPE.encode([" é\n😀!"])
    shown = BPE.pieces(ids)
    assert shown == ["▁", "▁", "<0xC3>", "é", "\n", "<0xF0>", "<0x9F>", "<0x98>", "😀", "!"]
    assert BPE.pieces(ids[:3]) == ["▁", "▁", "<0xC3>"]
    assert BPE.pieces([ids[2], EOS, ids[3]]) == ["<0xC3>", "</s>", "\ufffd"]
    (ids,) = UNIGRAM.encode(["men 😀"])
    assert UNIGRAM.pieces(ids)[-4:] == ["<0xF0>", "<0x9F>", "<0x98>", "😀"]


def test_bytes_that_are_no_utf_8_are_read_as_the_replacement() -> None:
    (ids,) = BPE.encode(["é"])
    assert BPE.decode(ids[:-1]) == "\ufffd"
    assert UNIGRAM.decode([len(SPECIALS) + 0xFF]) == "\ufffd"


# Forms of Unicode

# Of each kind of letter that Unicode has in two forms: accents of Latin, Greek and Cyrillic, several marks on one
# letter, signs that stand for letters, jamo of Korean, marks of Japanese, Hindi and Hebrew.
FORMS = ["Büsche", "Việt Nam", "καλή", "йёї", "Å \u212b \u2126 K", "한국어", "がぎぐ", "\u0958लम", "\ufb2aל"]
# What looks alike and means something else, or is meant: full width, blanks, joiners, presentation forms, ligatures.
KEPT = ["\uff21\uff22", "10\u00a0km\u202f!", "می\u200cکنم", "क्\u200dष", "\ufefb", "\ufb01", "\ufeffa\u200bb\xadc"]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "chars", "bytes"])
def test_texts_in_either_form_are_the_same_tokens(kind: Literal["bpe", "unigram", "chars", "bytes"]) -> None:
    composed = [NFC().normalize_str(text) for text in FORMS]
    apart = [NFD().normalize_str(text) if text == one else text for text, one in zip(FORMS, composed, strict=True)]
    assert all(one != other for one, other in zip(composed, apart, strict=True))
    tokenizer = train_tokenizer(composed * 2, kind=kind, size=600, mask=True)
    assert train_tokenizer(apart * 2, kind=kind, size=600, mask=True).json() == tokenizer.json()
    for encode in (tokenizer.encode, tokenizer.encode_whole, tokenizer.encode_marked, tokenizer.encode_masked):
        assert encode(apart) == encode(composed)
    assert [ids for ids, _ in tokenizer.encode_placed(apart)] == tokenizer.encode(composed)
    assert tokenizer.decode_batch(tokenizer.encode(apart)) == composed == [*map(tokenizer.composed, apart)]
    assert tokenizer.decode_batch(tokenizer.encode(KEPT)) == KEPT


def test_merges_are_left_out_of_words_in_either_form() -> None:
    tokenizer = train_tokenizer(FORMS * 2, kind="bpe", size=600)
    dropout = BPEDropout(tokenizer, 0.0)
    for text in FORMS:
        apart = NFD().normalize_str(text)
        assert dropout.encode(apart, random.Random(1)) == tokenizer.encode([text])[0]


@given(
    st.lists(
        st.sampled_from([*"aäzñ 한が", "\u0301", "\u0323", "\u0338", "<", "\u0958", "\u05bc"]), min_size=1, max_size=8
    )
)
@BOTH
def test_spans_are_of_the_text_that_was_given(tokenizer: Tokenizer, letters: list[str]) -> None:
    text = NFD().normalize_str("".join(letters))
    ((ids, spans),) = tokenizer.encode_placed([text])
    assert ids == tokenizer.encode([text])[0]
    assert spans == sorted(spans)
    borders = [0, *(end for _, end in spans)]
    assert all(begin <= end for begin, end in spans)
    assert all(begin <= reached for (begin, _), reached in zip(spans, borders, strict=False))  # nothing is left out
    assert borders[-1] == len(text)


def test_spans_of_letters_have_their_marks() -> None:
    text = "z\u0301e\u0323\u0302n"
    tokenizer = train_tokenizer([text], kind="chars", size=400)
    ((ids, spans),) = tokenizer.encode_placed([text], whole=True)
    assert {text[begin:end] for begin, end in spans} == {"z\u0301", "e\u0323\u0302", "n"}
    assert len(ids) == len(spans)


@BOTH
def test_a_vocabulary_that_did_not_compose_texts_still_does_not(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(tokenizer.json()) | {"normalizer": None}))
    older = Tokenizer.load(path)
    composed, apart = "Büsche", "Bu\u0308sche"
    assert older.encode([composed])[0] == tokenizer.encode([composed])[0] != older.encode([apart])[0]
    assert older.decode(older.encode([apart])[0]) == apart == older.composed(apart)
    for made in (older, older.with_extra(["<|user|>"]), older.literal(), older.begun_by(5)):
        assert (made.composes, tokenizer.composes) == (False, True)


# Training

KINDS: tuple[Literal["bpe", "unigram"], ...] = ("bpe", "unigram")
EACH_KIND = pytest.mark.parametrize("kind", KINDS)


@EACH_KIND
def test_training_fills_the_size_and_no_more(kind: Literal["bpe", "unigram"]) -> None:
    assert train_tokenizer(CORPUS, kind=kind, size=350).size == 350
    assert SMALLEST < train_tokenizer(CORPUS, kind=kind, size=50_000).size < 2_000


@EACH_KIND
def test_a_text_with_nothing_to_learn_leaves_the_bytes(kind: Literal["bpe", "unigram"]) -> None:
    tokenizer = train_tokenizer(["b"], kind=kind, size=SMALLEST + 2)
    assert tokenizer.size <= SMALLEST + 2 == 262
    assert tokenizer.decode(tokenizer.encode(["Büsche 😀"])[0]) == "Büsche 😀"


def test_what_was_seen_once_is_no_pattern() -> None:
    assert train_tokenizer(["never twice"], kind="bpe", size=400).size == SMALLEST
    assert train_tokenizer(["twice, twice"], kind="bpe", size=400).size > SMALLEST


@EACH_KIND
def test_no_text_is_refused(kind: Literal["bpe", "unigram"]) -> None:
    with pytest.raises(InputError, match="no text to learn a vocabulary from"):
        train_tokenizer(["", ""], kind=kind, size=400)


@EACH_KIND
def test_a_size_that_cannot_hold_the_bytes_is_refused(kind: Literal["bpe", "unigram"]) -> None:
    with pytest.raises(InputError, match="a vocabulary of 259 tokens, expected at least 260") as caught:
        train_tokenizer(CORPUS, kind=kind, size=SMALLEST - 1)
    assert caught.value.fix


def test_more_characters_than_tokens_are_refused() -> None:
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 100)))
    with pytest.raises(InputError, match="300 tokens cannot hold the 101 different characters") as caught:
        train_tokenizer([text], kind="unigram", size=300)
    assert "361" in caught.value.fix
    assert train_tokenizer([text], kind="unigram", size=361).size <= 361
    assert train_tokenizer([text], kind="bpe", size=300).size <= 300


@EACH_KIND
def test_surrogates_are_trained_on_as_what_they_are_read_as(kind: Literal["bpe", "unigram"]) -> None:
    dirty = train_tokenizer(["a \ud83d\ude00 \ud83d"] * 2, kind=kind, size=300)
    clean = train_tokenizer(["a 😀 \ufffd"] * 2, kind=kind, size=300)
    assert dirty.fingerprint == clean.fingerprint


@EACH_KIND
def test_training_is_the_same_each_time_and_in_each_process(kind: Literal["bpe", "unigram"]) -> None:
    texts = [f"{a}{b} {b}{a}" for a in ("ka", "to", "mi", "ru") for b in ("ne", "so", "hi")] * 2  # many ties
    prints = {train_tokenizer(texts, kind=kind, size=320).fingerprint for _ in range(8)}
    train = f"train_tokenizer({texts}, kind={kind!r}, size=320)"
    code = f"from heedful.data.tokenizer import train_tokenizer; print({train}.fingerprint)"
    prints.add(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    assert len(prints) == 1


# Files


@BOTH
def test_what_is_saved_is_loaded(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.json(), encoding="utf-8")
    again = Tokenizer.load(path)
    assert (again.json(), again.size, again.fingerprint) == (
        tokenizer.json(),
        tokenizer.size,
        tokenizer.fingerprint,
    )
    assert again.encode(NASTY) == tokenizer.encode(NASTY)
    assert BPE.fingerprint != UNIGRAM.fingerprint


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = tmp_path / "no" / "tokenizer.json"
    with pytest.raises(StorageError, match=r"(?m)tokenizer\.json: cannot be read: No such file or directory$"):
        Tokenizer.load(path)


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"\xff\xfe", b"hello", BPE.json().encode()[:-1], b"[" * 100_000])
def test_a_file_that_is_no_tokenizer_is_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(data)
    with pytest.raises(StorageError, match=r"(?m)tokenizer\.json: not a tokenizer: .+$") as caught:
        Tokenizer.load(path)
    assert "\n" not in str(caught.value)
    assert caught.value.fix


def test_a_vocabulary_without_a_byte_or_with_gaps_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    document = json.loads(BPE.json())
    vocabulary = document["model"]["vocab"]
    last = max(vocabulary, key=vocabulary.get)
    lacking = {"never seen" if token == "z" else token: index for token, index in vocabulary.items()}
    for other in (lacking, vocabulary | {last: 9999}):
        merges = [pair for pair in document["model"]["merges"] if "z" not in "".join(pair)]
        path.write_text(json.dumps(document | {"model": document["model"] | {"vocab": other, "merges": merges}}))
        with pytest.raises(StorageError, match="a tokenizer of another make"):
            Tokenizer.load(path)


SPLIT = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("tokenizer", "place", "value", "says"),
    [
        (BPE, ["model", "vocab", "<s>"], 9999, "<s> has the id 9999, expected 2"),
        (BPE, ["added_tokens", 3, "content"], "<end>", "a tokenizer of another make"),
        (UNIGRAM, ["model", "vocab", 3, 0], "<end>", f"</s> has the id {UNIGRAM.size}, expected 3"),
        (BPE, ["model", "vocab", "!"], 9999, "a tokenizer of another make"),
        (BPE, ["model", "dropout"], 0.1, "a tokenizer of another make"),
        (BPE, ["pre_tokenizer"], SPLIT, "a tokenizer of another make"),
        (BPE, ["pre_tokenizer", "pretokenizers", 1, "add_prefix_space"], True, "a tokenizer of another make"),
        (BPE, ["normalizer"], {"type": "Lowercase"}, "a tokenizer of another make"),
        (BPE, ["decoder"], None, "a tokenizer of another make"),
        (BPE, ["truncation"], None, ""),
        (UNIGRAM, ["model", "byte_fallback"], False, "a tokenizer of another make"),
        (UNIGRAM, ["model", "unk_id"], 0, "a tokenizer of another make"),
        (UNIGRAM, ["model", "vocab", 5, 0], "<0x00>", "a tokenizer of another make"),
        (UNIGRAM, ["pre_tokenizer", "pretokenizers", 1], SPLIT, "a tokenizer of another make"),
    ],
)
def test_a_tokenizer_of_another_make_is_refused(
    tmp_path: Path, tokenizer: Tokenizer, place: list[Any], value: object, says: str
) -> None:
    document = json.loads(tokenizer.json())
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document))
    if not says:
        assert Tokenizer.load(path).fingerprint == tokenizer.fingerprint
        return
    with pytest.raises(StorageError) as caught:
        Tokenizer.load(path)
    assert str(caught.value) == f"{path}: {says}"


def test_letters_tell_where_words_are_joined() -> None:
    tokenizer = train_tokenizer(CORPUS, kind="bytes", size=400, mask=True)
    ids = tokenizer.encode_whole(["a Zé-4\n"])[0]
    told = [tokenizer.letters(index) for index in ids]
    letter, other = (True, True), (False, False)
    assert told == [letter, other, letter, letter, letter, other, other, other]
    assert {tokenizer.letters(index) for index in (PAD, BOS, tokenizer.mask)} == {other}
    word = BPE.encode_whole([" men"])[0][0]
    assert BPE.letters(word) == (False, True)


def panicking() -> Tokenizer:
    """A vocabulary with a pattern that tries too many ways to match a text of "aaa...b"."""
    inner = tokenizers.Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "a": 2}, unk_token="a"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("(a+)+$"), "isolated")
    return Tokenizer(inner, SpecialTokens(bos=0, eos=1))


def test_a_text_at_which_the_library_panics_is_refused() -> None:
    """What it raises is no Exception: it would end the thread that is at work."""
    own, bad = panicking(), "a" * 60 + "b"
    assert own.encode(["a"]) == [[2]]
    for read in (own.encode, own.encode_whole, own.encode_placed, own.encode_marked):
        with pytest.raises(TextError, match="tokenizer cannot read"):
            read([bad])
