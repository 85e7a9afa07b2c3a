"""Tokens in a form that people can read."""

import re
from collections.abc import Callable, Sequence

from heedful.data.tokenizer import Tokenizer
from heedful.look.labels import token_label

BYTES, UNREADABLE = re.compile("(<0x[0-9A-F]{2}>)+"), "\N{REPLACEMENT CHARACTER}"


def readable_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Readable pieces: the mark of a space is removed, and a piece that continues a word begins with "·". Bytes of an
    incomplete character show the character, with "…"."""
    shown = tokenizer.pieces(ids)
    for i in range(len(shown) - 2, -1, -1):
        if BYTES.fullmatch(shown[i]) and shown[i + 1] and shown[i + 1] != UNREADABLE:
            shown[i] = f"{shown[i + 1][0]}…"
    return [
        piece.removeprefix("▁") if piece.startswith(("▁", "<")) or i == 0 else f"·{piece}"
        for i, piece in enumerate(shown)
    ]


def labelled_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """`readable_pieces`, each on one line and none blank."""
    return [token_label(piece) for piece in readable_pieces(tokenizer, ids)]


def named_after(tokenizer: Tokenizer, past: int) -> Callable[[int], str]:
    """Names token ids as `labelled_pieces` shows them after the token `past`."""
    return lambda index: labelled_pieces(tokenizer, [past, index])[-1]
