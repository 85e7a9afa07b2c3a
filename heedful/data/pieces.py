"""Learns the pieces of a vocabulary from texts: control tokens come first, then the bytes, then the rest."""

import json
from collections.abc import Iterable
from typing import Literal

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from heedful.data.lines import in_parts, sanitise
from heedful.errors import InputError

Kind = Literal["bpe", "unigram", "chars", "bytes"]
PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
N_BYTES = 256
SMALLEST = len(SPECIALS) + N_BYTES


def _byte_characters() -> dict[str, int]:
    """Returns the byte that each character stands for in a byte-level vocabulary (Radford et al., 2019)."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(N_BYTES) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(N_BYTES + i): byte for i, byte in enumerate(hidden)}


BYTE_OF = _byte_characters()


def trained_pieces(texts: Iterable[str], kind: Kind, size: int) -> tokenizers.Tokenizer:
    """Learns at most `size` pieces from the texts. Raises InputError as described in `train_tokenizer`."""
    if size < SMALLEST:
        what = f"a vocabulary of {size} tokens, expected at least {SMALLEST}: the bytes and the control tokens"
        raise InputError(what, fix="8000 suits most corpora")
    compose = normalizers.NFC().normalize_str
    read = [compose(part) for text in texts if text for part in in_parts(" " + sanitise(text))]
    if kind == "bytes":
        return blank_pieces("bpe")
    if not read:
        raise InputError("no text to learn a vocabulary from", fix="give training text")
    if kind == "chars":
        inner = blank_pieces("unigram")
        inner.model = _unigram([(character, -1.0) for character in sorted(set().union(*read).difference(" ") | {"▁"})])
        return inner
    return _train_bpe(read, size) if kind == "bpe" else _train_unigram(read, size)


def _train_bpe(texts: list[str], size: int) -> tokenizers.Tokenizer:
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,  # a pair that occurs once is no pattern
        special_tokens=list(SPECIALS),
        initial_alphabet=list(BYTE_OF),
        show_progress=False,
    )
    inner = blank_pieces("bpe")
    inner.train_from_iterator(texts, trainer)
    return inner


def _train_unigram(texts: list[str], size: int) -> tokenizers.Tokenizer:
    n_characters = len(set().union(*texts))
    if n_characters > size - SMALLEST:
        what = f"{size} tokens cannot hold the {n_characters:,} different characters of the text"
        raise InputError(what, fix=f"give at least {n_characters + SMALLEST}, or take the kind bpe")
    trainer = trainers.UnigramTrainer(
        vocab_size=size - N_BYTES, special_tokens=list(SPECIALS), unk_token=SPECIALS[UNK], show_progress=False
    )
    inner = blank_pieces("unigram")
    inner.train_from_iterator(texts, trainer)
    learned = json.loads(inner.to_str())["model"]["vocab"][len(SPECIALS) :]
    # The library ranks equal pieces, and spaces the scores of rare characters by 0.0001, in the order of a hash that
    # changes with every run. Here such characters share a score, and ties are sorted by alphabet.
    lowest = min((score for _, score in learned), default=0.0)
    rare = lowest + 1e-4 * (n_characters + 1)
    scored = [(piece, round(lowest if len(piece) == 1 and score <= rare else score, 6)) for piece, score in learned]
    inner.model = _unigram(sorted(scored, key=lambda item: (-item[1], item[0])))
    return inner


def blank_pieces(kind: Literal["bpe", "unigram"]) -> tokenizers.Tokenizer:
    """Returns a tokenizer with the control tokens and the bytes alone. It composes text (Unicode's NFC): a letter and
    its accent are the same tokens whether a file has them as one character or as two."""
    if kind == "bpe":
        vocabulary = {token: index for index, token in enumerate([*SPECIALS, *sorted(BYTE_OF)])}
        inner = tokenizers.Tokenizer(models.BPE(vocabulary, [], unk_token=SPECIALS[UNK]))
        # Each digit is a token: numbers are then copied digit by digit, and not learnt one by one.
        digits, words = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
        inner.decoder = decoders.ByteLevel()
    else:
        inner = tokenizers.Tokenizer(_unigram([]))
        # A piece ends after "<": no longer piece begins with it, so none is "<s>" or the byte token "<0x41>"
        inner.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(prepend_scheme="never"), pre_tokenizers.Split("<", "merged_with_previous")]
        )
        inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    inner.normalizer = normalizers.NFC()
    inner.add_special_tokens(list(SPECIALS))
    return inner


def _unigram(pieces: list[tuple[str, float]]) -> models.Unigram:
    fixed = [(token, 0.0) for token in (*SPECIALS, *(f"<0x{byte:02X}>" for byte in range(N_BYTES)))]
    return models.Unigram(fixed + pieces, unk_id=UNK, byte_fallback=True)
