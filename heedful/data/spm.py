"""SentencePiece models (Kudo and Richardson, 2018) as tokenizers: the .spm files that come with Marian's translators.

A model is a protobuf message. Its pieces, their scores and the table of its normalisation are all that is needed; a
reader of the wire format takes them out, so that neither of the two libraries has to be there.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from heedful.errors import InputError, StorageError

UNKNOWN = 2  # of the kinds of pieces; the others are control and unused ones
NORMAL, USER_DEFINED = 1, 4  # those that a text may hold
UNIGRAM = 1  # of the kinds of models
AGAIN = "get the file again from its source"
NEVER_READ = " "  # every space is "▁" by the time that pieces are looked for

Value = int | bytes


@dataclass(frozen=True)
class Spm:
    """A SentencePiece model: pieces with their scores, and how a text is normalised before it is cut into them."""

    pieces: tuple[tuple[str, float], ...]
    listed: tuple[tuple[str, float], ...]  # in the order of their ids, control pieces among them
    unknown: int  # the id of what is no piece
    charsmap: bytes
    prefix: bool  # a space is put before a text
    squeezed: bool  # spaces at the ends go, and of several one stays


def read_spm(data: bytes, *, where: str | Path = "") -> Spm:
    """Reads a `ModelProto` of the unigram kind. Raises InputError for another kind, StorageError for another file."""
    pieces, settings, normal = [], dict[int, Value](), dict[int, Value]()
    try:
        for number, value in _fields(data):
            if number == 1:
                piece = dict(_fields(_message(value)))
                (score,) = struct.unpack("<f", _message(piece.get(2, bytes(4))))
                pieces.append((_message(piece[1]).decode(), score, piece.get(3, NORMAL)))
            elif number == 2:
                settings = dict(_fields(_message(value)))
            elif number == 3:
                normal = dict(_fields(_message(value)))
        charsmap = _message(normal.get(2, b""))
        if charsmap:
            normalizers.Precompiled(charsmap)
    except Exception as error:  # the library raises no narrower class for a malformed table
        raise StorageError(f"not a SentencePiece model: {error}", where=str(where), fix=AGAIN) from None
    scores = [score for _, score, kind in pieces if kind == NORMAL]
    if not scores:
        raise StorageError("a SentencePiece model without pieces", where=str(where), fix=AGAIN)
    if settings.get(3, UNIGRAM) != UNIGRAM or settings.get(24) or settings.get(35) or normal.get(5) == 0:
        what = "not a SentencePiece model of unigrams that begin words with a space and know no bytes"
        raise InputError(what, where=str(where), fix="take a model that comes with a tokenizer.json")
    # As the library counts: a piece that its maker defined beats all that it could be made of.
    defined = [(piece, len(piece) * max(scores) - 0.1) for piece, _, kind in pieces if kind == USER_DEFINED]
    return Spm(
        tuple([(piece, score) for piece, score, kind in pieces if kind == NORMAL] + defined),
        tuple((piece, score) for piece, score, _ in pieces),
        next((index for index, (*_, kind) in enumerate(pieces) if kind == UNKNOWN), 0),
        charsmap,
        prefix=bool(normal.get(3, 1)),
        squeezed=bool(normal.get(4, 1)),
    )


def from_spm(spm: Spm, numbers: Mapping[str, int], controls: Sequence[str]) -> tokenizers.Tokenizer:
    """A tokenizer whose pieces are those of the model; which ids they have, `Tokenizer` is told by `numbers`, of which
    the names of languages are taken here: a text may begin with ">>fra<<". `controls` are the control tokens."""
    inner = tokenizers.Tokenizer(models.Unigram([(NEVER_READ, 0.0), *spm.pieces], unk_id=0))
    steps: list[normalizers.Normalizer] = [normalizers.Precompiled(spm.charsmap)] if spm.charsmap else []
    if spm.squeezed:
        steps += [normalizers.Replace(Regex(r"\A +|[ ▁]+\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    if spm.prefix:
        steps.append(normalizers.Prepend("▁"))
    inner.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    languages = [name for name in numbers if name.startswith(">>") and name.endswith("<<")]
    inner.add_tokens([AddedToken(name, normalized=False) for name in languages])
    inner.add_special_tokens(list(controls))
    return inner


def with_sentinels(spm: Spm, sentinels: Sequence[str]) -> tokenizers.Tokenizer:
    """A tokenizer with the ids of the model's pieces, and behind them the sentinels' (as the code of Raffel et al.)."""
    pieces = [*spm.listed, *((name, 0.0) for name in sentinels)]
    inner = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=spm.unknown))
    if spm.charsmap:
        inner.normalizer = normalizers.Precompiled(spm.charsmap)
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    inner.decoder = decoders.Metaspace()
    return inner


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """The number and value of each field of a protobuf message: varints as int, all else as bytes."""
    place = 0

    def varint() -> int:
        nonlocal place
        value, shift = 0, 0
        while True:
            byte = data[place]
            place, value, shift = place + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while place < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        length = {1: 8, 5: 4}[kind] if kind != 2 else varint()
        if place + length > len(data):
            raise IndexError("it ends too early")
        place += length
        yield key >> 3, data[place - length : place]


def _message(value: Value) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number where a message was expected")
    return value
