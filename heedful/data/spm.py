"""SentencePiece models (Kudo and Richardson, 2018) as tokenizers: the .spm and .model files that come with translators.

A model is a protobuf message. Only its pieces, their scores and its normalisation table are needed; a reader of the
wire format extracts them, so that neither of the two libraries is required.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from heedful.errors import InputError, StorageError

UNKNOWN = 2  # kinds of pieces; the others are control and unused pieces
NORMAL, USER_DEFINED = 1, 4  # the kinds of pieces that occur in a text
KINDS: dict[int, Literal["unigram", "bpe"]] = {1: "unigram", 2: "bpe"}  # kinds of models
AGAIN = "get the file again from its source"
LONGEST_PIECE = 1000  # characters
NEVER_READ = " "  # never matches: by then every space is "▁"

Value = int | bytes


@dataclass(frozen=True)
class Spm:
    """A SentencePiece model: pieces with their scores, and how a text is normalised before it is segmented."""

    pieces: tuple[tuple[str, float], ...]
    listed: tuple[tuple[str, float], ...]  # in the order of their ids, including control pieces
    unknown: int  # the id of the unknown token
    kind: Literal["unigram", "bpe"]
    by_bytes: bool  # unknown characters are written as bytes, whose pieces are in `listed`
    charsmap: bytes
    prefix: bool  # a space is put before a text
    squeezed: bool  # spaces at the ends are removed, and repeated ones reduced to one


def read_spm(data: bytes, *, where: str | Path = "") -> Spm:
    """Reads a `ModelProto` of a unigram or BPE model. Raises InputError for another kind, StorageError for another
    file."""
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
        if charsmap and not 4 <= 4 + int.from_bytes(charsmap[:4], "little") <= len(charsmap):
            raise ValueError("its table of normalisation ends too early")
        if (longest := max((len(piece) for piece, *_ in pieces), default=0)) > LONGEST_PIECE:
            raise ValueError(f"a piece of {longest:,} characters")
    except (ValueError, LookupError, TypeError, struct.error) as error:
        raise StorageError(f"not a SentencePiece model: {error}", where=str(where), fix=AGAIN) from None
    scores = [score for _, score, kind in pieces if kind == NORMAL]
    if not scores:
        raise StorageError("a SentencePiece model without pieces", where=str(where), fix=AGAIN)
    said = settings.get(3, 1)
    kind = KINDS.get(said) if isinstance(said, int) else None
    if kind is None or settings.get(24) or normal.get(5) == 0:
        what = "not a SentencePiece model of unigrams, or of BPE, that begin words with a space"
        raise InputError(what, where=str(where), fix="take a model that comes with a tokenizer.json")
    # As in the library: a user-defined piece scores higher than any pieces that it could be made of.
    defined = [(piece, len(piece) * max(scores) - 0.1) for piece, _, kind in pieces if kind == USER_DEFINED]
    return Spm(
        tuple([(piece, score) for piece, score, kind in pieces if kind == NORMAL] + defined),
        tuple((piece, score) for piece, score, _ in pieces),
        next((index for index, (*_, kind) in enumerate(pieces) if kind == UNKNOWN), 0),
        kind,
        bool(settings.get(35)),
        charsmap,
        prefix=bool(normal.get(3, 1)),
        squeezed=bool(normal.get(4, 1)),
    )


def from_spm(spm: Spm, numbers: Mapping[str, int], controls: Sequence[str]) -> tokenizers.Tokenizer:
    """Returns a tokenizer with the pieces of the model. `Tokenizer` gets their ids from `numbers`; here only the names
    of languages are taken from it: a text may begin with ">>fra<<". `controls` are the control tokens."""
    if spm.by_bytes:
        raise InputError("a SentencePiece model that knows bytes", fix="take a model that comes with a tokenizer.json")
    inner = tokenizers.Tokenizer(
        models.Unigram([(NEVER_READ, 0.0), *spm.pieces], unk_id=0) if spm.kind == "unigram" else _merging(spm)
    )
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


def _merging(spm: Spm) -> models.BPE:
    """Returns the merges of a BPE model: at each step the two neighbours are merged that give the piece with the best
    score, however it is split."""
    numbers = {piece: index for index, (piece, _) in enumerate([(NEVER_READ, 0.0), *spm.pieces])}
    return models.BPE(numbers, merges_by(dict(spm.pieces)), unk_token=NEVER_READ, fuse_unk=True)


def merges_by(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """Returns the merges of pieces, of which those with the best scores are made first."""
    return [
        (piece[:cut], piece[cut:])
        for piece in sorted(scores, key=lambda piece: -scores[piece])
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]


def as_fairseq(spm: Spm, languages: Sequence[str], mask: str) -> tokenizers.Tokenizer:
    """Returns a tokenizer with the ids of fairseq's models (Ott et al. 2019), such as mBART and XLM-R: four control
    tokens instead of the model's three, the pieces, the names of languages, and the mask."""
    controls = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [*((name, 0.0) for name in controls), *spm.listed[3:], *((name, 0.0) for name in (*languages, mask))]
    inner = _unigrams(spm, pieces, unknown=3)
    inner.add_special_tokens([*controls, *languages, AddedToken(mask, lstrip=True, normalized=False)])
    return inner


def as_pegasus(spm: Spm) -> tokenizers.Tokenizer:
    """Returns a tokenizer with the ids of Pegasus (Zhang et al. 2020): padding and end, the masks and reserved tokens
    of its training, and then the rest of the model."""
    controls = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{i}>" for i in range(2, 103))]
    pieces = [*((name, 0.0) for name in controls), *spm.listed[2:]]
    inner = _unigrams(spm, pieces, unknown=len(controls) - 2 + spm.unknown)
    inner.add_special_tokens([*controls, "<unk>"])
    return inner


def with_sentinels(spm: Spm, sentinels: Sequence[str]) -> tokenizers.Tokenizer:
    """Returns a tokenizer with the ids of the model's pieces, followed by the sentinels (as in the code of Raffel et
    al.)."""
    return _unigrams(spm, [*spm.listed, *((name, 0.0) for name in sentinels)], unknown=spm.unknown)


def _unigrams(spm: Spm, pieces: list[tuple[str, float]], *, unknown: int) -> tokenizers.Tokenizer:
    """Returns a tokenizer with these pieces. Raises InputError for a BPE model."""
    if spm.kind != "unigram":
        raise InputError("a SentencePiece model of BPE", fix="take a model that comes with a tokenizer.json")
    inner = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=unknown, byte_fallback=spm.by_bytes))
    if spm.charsmap:
        inner.normalizer = normalizers.Precompiled(spm.charsmap)
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    spaced = decoders.Metaspace()
    inner.decoder = decoders.Sequence([decoders.ByteFallback(), spaced]) if spm.by_bytes else spaced
    return inner


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yields the number and value of each field of a protobuf message: varints as int, all others as bytes."""
    place = 0

    def varint() -> int:
        nonlocal place
        value, shift = 0, 0
        while True:
            byte = data[place]
            place, value, shift = place + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

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
