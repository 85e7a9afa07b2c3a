"""Tokenizers from the vocabulary files of older model folders: WordPiece, single tokens, letters, and byte-level BPE.
SentencePiece has a module of its own, `spm`."""

import re
from collections.abc import Mapping, Sequence

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers


def word_pieces(
    numbers: Mapping[str, int], *, lower: bool, unknown: str, chinese: bool, accents: bool | None
) -> tokenizers.Tokenizer:
    """Returns a WordPiece tokenizer: words are split into the longest known pieces; "##" begins a piece that continues
    a word (Devlin et al. 2019, their code). `accents`: whether to strip them; None: if text is lower-cased."""
    inner = tokenizers.Tokenizer(models.WordPiece(dict(numbers), unk_token=unknown))
    inner.normalizer = normalizers.BertNormalizer(handle_chinese_chars=chinese, strip_accents=accents, lowercase=lower)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    return inner


def single_tokens(numbers: Mapping[str, int], *, unknown: str) -> tokenizers.Tokenizer:
    """Returns a tokenizer of a list in which each token stands for itself wherever it occurs, such as the letters of
    residues. What is between them, up to a space, is one unknown token; spaces are left out (Lin et al. 2023, ESM-2;
    their code)."""
    inner = tokenizers.Tokenizer(models.WordLevel(dict(numbers), unk_token=unknown))
    longest_first = sorted(filter(None, numbers), key=len, reverse=True)
    each = pre_tokenizers.Split(Regex("|".join(map(re.escape, longest_first))), "isolated")
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), each])
    inner.decoder = decoders.Fuse()
    return inner


def letters(numbers: Mapping[str, int], *, controls: Sequence[str], between: str, unknown: str) -> tokenizers.Tokenizer:
    """Returns a tokenizer of single letters, with a token `between` words (Baevski et al. 2020; their code). A letter
    that is listed in one case alone is read in it; what is not listed, up to the next letter, is `unknown`."""
    inner = tokenizers.Tokenizer(models.WordLevel(dict(numbers), unk_token=unknown))
    other = {letter.swapcase(): letter for letter in numbers if len(letter) == len(letter.swapcase()) == 1}
    read = {" ": between} | {given: letter for given, letter in other.items() if given not in numbers}
    inner.normalizer = normalizers.Sequence([normalizers.Replace(*pair) for pair in read.items()])
    longest_first = sorted(numbers.keys() - {*controls}, key=lambda name: (-len(name), name))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("|".join(map(re.escape, longest_first))), "isolated")
    inner.decoder = decoders.Sequence([decoders.Fuse(), decoders.Replace(between, " ")])
    return with_controls(inner, controls)


def byte_merges(numbers: Mapping[str, int], merges: Sequence[tuple[str, str]], *, prefix: bool) -> tokenizers.Tokenizer:
    """Returns a byte-level BPE tokenizer with these merges (Radford et al. 2019). `prefix`: a space is put before a
    text that has none."""
    inner = tokenizers.Tokenizer(models.BPE(dict(numbers), list(merges)))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    inner.decoder = decoders.ByteLevel()
    return inner


def with_controls(
    inner: tokenizers.Tokenizer, names: Sequence[str], *, strips: Sequence[str] = ()
) -> tokenizers.Tokenizer:
    """Returns `inner` with these control tokens added; those in `strips` absorb the space before them."""
    inner.add_special_tokens([AddedToken(name, normalized=False, lstrip=name in strips) for name in names])
    return inner
