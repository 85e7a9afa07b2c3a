"""Tokens as people read them."""

import re
from collections.abc import Callable, Sequence

from heedful.data.tokenizer import Tokenizer
from heedful.look.labels import token_label

BYTES, UNREADABLE = re.compile("(<0x[0-9A-F]{2}>)+"), "\N{REPLACEMENT CHARACTER}"


def readable_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Pieces as people read them: where a word begins is marked by what is before it, so the mark of a space goes
    and what continues a word shows it. The bytes that begin a character show it too, with "…"."""
    shown = tokenizer.pieces(ids)
    for i in range(len(shown) - 2, -1, -1):
        if BYTES.fullmatch(shown[i]) and shown[i + 1] and shown[i + 1] != UNREADABLE:
            shown[i] = f"{shown[i + 1][0]}…"
    return [
        piece.removeprefix("▁") if piece.startswith(("▁", "<")) or i == 0 else f"·{piece}"
        for i, piece in enumerate(shown)
    ]


def labelled_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """`readable_pieces`, each on one line and none of them blank."""
    return [token_label(piece) for piece in readable_pieces(tokenizer, ids)]


def named_after(tokenizer: Tokenizer, past: int) -> Callable[[int], str]:
    """What may follow a token, by its id, as `labelled_pieces` shows it there."""
    return lambda index: labelled_pieces(tokenizer, [past, index])[-1]
