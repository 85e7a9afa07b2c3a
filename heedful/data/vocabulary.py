"""Vocabularies of other makers as tokenizers, from the bare lists that stand in old folders: pieces of words
(WordPiece), and byte-level merges. SentencePiece has a module of its own, `spm`."""

from collections.abc import Mapping, Sequence

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers


def word_pieces(
    numbers: Mapping[str, int], *, lower: bool, unknown: str, chinese: bool, accents: bool | None
) -> tokenizers.Tokenizer:
    """Words are split into the longest pieces that there are; "##" begins one that continues a word (Devlin et al.
    2019, their code). `accents`: whether to strip them; None: where text is set in lower case."""
    inner = tokenizers.Tokenizer(models.WordPiece(dict(numbers), unk_token=unknown))
    inner.normalizer = normalizers.BertNormalizer(handle_chinese_chars=chinese, strip_accents=accents, lowercase=lower)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    return inner


def byte_merges(numbers: Mapping[str, int], merges: Sequence[tuple[str, str]], *, prefix: bool) -> tokenizers.Tokenizer:
    """Bytes are merged in this order (Radford et al. 2019). `prefix`: a space is put before a text without one."""
    inner = tokenizers.Tokenizer(models.BPE(dict(numbers), list(merges)))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    inner.decoder = decoders.ByteLevel()
    return inner


def with_controls(
    inner: tokenizers.Tokenizer, names: Sequence[str], *, strips: Sequence[str] = ()
) -> tokenizers.Tokenizer:
    """The same, with tokens that are never made of text: those in `strips` take the space before them."""
    inner.add_special_tokens([AddedToken(name, normalized=False, lstrip=name in strips) for name in names])
    return inner
