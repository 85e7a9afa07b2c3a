"""Tokenizers from the vocabulary files of older model folders: WordPiece, and byte-level BPE. SentencePiece has a
module of its own, `spm`."""

from collections.abc import Mapping, Sequence

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers


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
