"""SentencePiece models: read without their library, and cut texts as it does."""

import contextlib
import random
from typing import Any

import pytest
import sentencepiece

from heedful.data.spm import as_fairseq, from_spm, read_spm, with_sentinels
from heedful.data.tokenizer import SpecialTokens, Tokenizer
from heedful.errors import HeedError, InputError, StorageError
from hub import LINES, spm

SYMBOLS = "abcdeghilnrstuy    .,!é\t▁<>/ﬁ½Ｈ①漢字\n\u00a0\u3000ß😀"


def pair(data: bytes) -> tuple[sentencepiece.SentencePieceProcessor, Tokenizer, dict[str, int]]:
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    pieces = [theirs.id_to_piece(i) for i in range(3, theirs.get_piece_size())]
    numbers = {piece: index for index, piece in enumerate(["</s>", "<unk>", ">>fra<<", *reversed(pieces)])}
    special = SpecialTokens(bos=0, eos=0, unk=1)
    return theirs, Tokenizer(from_spm(read_spm(data), numbers, ["</s>", "<unk>"]), special, numbers), numbers


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalization_rule_name": "identity"},
        {"normalization_rule_name": "nmt_nfkc_cf"},
        {"add_dummy_prefix": False},
        {"remove_extra_whitespaces": False},
        {"user_defined_symbols": ["is", "the w"]},
        {"model_type": "bpe"},
        {"model_type": "bpe", "normalization_rule_name": "nmt_nfkc_cf"},
    ],
    ids=str,
)
def test_texts_are_cut_as_theirs(options: dict[str, Any]) -> None:
    theirs, ours, numbers = pair(spm(LINES * 9, 150, **options))
    draw = random.Random(0)
    texts = ["".join(draw.choice(SYMBOLS) for _ in range(draw.randint(0, 30))) for _ in range(800)]
    texts = [*texts, *LINES, "", " ", "   ", "a  b ", "unseen ЖЖ", "\uff28\uff45\uff4c\uff4c\uff4f"]
    for text, ids in zip(texts, ours.encode(texts), strict=True):
        pieces = theirs.encode(text, out_type=str)
        assert ids == [numbers.get(piece, 1) for piece in pieces], text
        known = [piece for piece in pieces if piece in numbers]
        assert ours.decode(ids) == "".join(known).replace("▁", " ").strip()
        assert ours.pieces(ids) == [piece if piece in numbers else "<unk>" for piece in pieces]


def test_a_language_may_be_named_first() -> None:
    theirs, ours, numbers = pair(spm(LINES * 9, 150))
    plain = [numbers.get(piece, 1) for piece in theirs.encode("The cat", out_type=str)]
    assert ours.encode([">>fra<< The cat", ">>fra<<The cat"]) == [[2, *plain]] * 2


def test_a_file_that_is_no_model_is_one_line() -> None:
    data = spm(LINES * 9, 100)
    for end in [*range(60), *range(60, len(data), len(data) // 20)]:
        with contextlib.suppress(HeedError):  # a cut between two pieces leaves a model, of fewer pieces
            read_spm(data[:end], where="x.spm")
    broken = b"\x1a\x06\x12\x04abcd"  # a table of normalisation that is none
    for bad in (b"", b"\xff" * 40, b"{}", bytes(30), b"\x0a\x02\x08\x01", b"\x08\x01", data + broken):
        with pytest.raises(StorageError, match=r"^x\.spm: (not )?a SentencePiece model") as caught:
            read_spm(bad, where="x.spm")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [400, 330])
def test_what_is_no_piece_is_written_in_bytes(size: int) -> None:
    """As mT5's vocabulary does."""
    data = spm(LINES * 9, size, byte_fallback=True)
    theirs, inner = sentencepiece.SentencePieceProcessor(model_proto=data), with_sentinels(read_spm(data), [])
    draw = random.Random(0)
    texts = ["".join(draw.choice(SYMBOLS) for _ in range(draw.randint(1, 30))) for _ in range(300)]
    texts = [" ".join(text.replace("▁", " ").replace("<", "").split()) for text in texts]  # and no control is spelled
    for text in [*texts, *LINES, "unseen ЖЖ ☃"]:
        found = inner.encode(text)
        assert found.ids == theirs.encode(text), text
        assert inner.decode(found.ids) == theirs.decode(found.ids)


def test_ids_as_in_fairseq() -> None:
    data = spm(LINES * 9, 120)
    theirs, inner = (
        sentencepiece.SentencePieceProcessor(model_proto=data),
        as_fairseq(read_spm(data), ["en_XX"], "<mask>"),
    )
    size = theirs.get_piece_size()
    for text in [*LINES, "unseen ЖЖ ☃ x"]:
        expected = [3 if index == 0 else index + 1 for index in theirs.encode(text)]
        assert inner.encode(text).ids == expected
    assert inner.encode("</s>en_XX <mask>").ids == [2, size + 1, size + 2]


@pytest.mark.parametrize("options", [{"model_type": "char"}, {"treat_whitespace_as_suffix": True}])
def test_other_kinds_of_models_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="not a SentencePiece model of unigrams"):
        read_spm(spm(LINES * 9, 100, **options))


def test_a_kind_that_its_place_has_no_use_for_is_refused() -> None:
    with pytest.raises(InputError, match="knows bytes"):
        from_spm(read_spm(spm(LINES * 9, 400, byte_fallback=True)), {}, [])
    with pytest.raises(InputError, match="of BPE"):
        with_sentinels(read_spm(spm(LINES * 9, 120, model_type="bpe")), [])
