"""Words that are never generated, whatever their tokens and their capitals.

An automaton reads the bytes of the tokens, and says for each token whether it would complete a word to avoid. A word is
whole if there is no letter or digit before and after it.

Sizes: V vocabulary, T tokens that may spell something, N states of the automaton, R rows, t tokens so far.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.rules import NEVER
from heedful.errors import InputError

MOST_CELLS = 1 << 26  # of the table of states and tokens
# What begins with these bytes is no letter: Latin-1 signs, general punctuation and symbols, wide punctuation.
SIGNS = (0xC2, 0xE2, 0xEF)
FRESH, INSIDE = 0, 1  # states: nothing was read, or no letter last; a letter of something else


@dataclass(frozen=True)
class Avoid:
    """A rule of `decode.rules` that forbids tokens which complete a word, even if they might begin a longer one:
    waiting would make a search generate non-words instead of the word to avoid."""

    # Where each token leads; to the last state, where a word is complete. A model may have tokens beyond, of no text.
    table: Int[Tensor, "N T"]
    longest: int  # so many tokens tell the state

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        table = self.table.to(scores.device)
        begin = INSIDE if history.shape[1] > self.longest else FRESH
        state = torch.full((len(scores),), begin, device=scores.device)
        for tokens in history[:, -self.longest :].unbind(1):
            state = table[state, tokens].long()
        scores[:, : table.shape[1]].masked_fill_(table[state] == len(table) - 1, NEVER)
        return scores


def avoiding(words: Sequence[str], spellings: Sequence[bytes]) -> Avoid:
    """The rule for these words. `spellings` are the bytes that each token adds to a text. Raises InputError for a blank
    word, and for more words than a table can hold."""
    if any(not word.strip() for word in words):
        raise InputError("a word to be avoided is empty", fix="leave it out")
    read = [_Word([_cases(letter) for letter in word], _parts(word[0]), _parts(word[-1])) for word in words]
    states, delta = _automaton(read)
    if len(states) * len(spellings) > MOST_CELLS:
        what = f"{len(words):,} words to be avoided are too many for a vocabulary of {len(spellings):,} tokens"
        raise InputError(what, fix="avoid fewer")
    table = _by_token(delta, spellings)
    complete = torch.tensor([*(state.complete for state in states), True])
    table[complete[table.long()]] = len(states)
    table[complete] = table[FRESH].clone()  # what was forced to be said is said
    longest = max((sum(max(map(len, each)) for each in word.letters) for word in read), default=0) + 1
    return Avoid(table, longest)


class _Word(NamedTuple):
    """The spellings of each letter of a word, and whether a letter before or after it would make another word."""

    letters: list[set[bytes]]
    parted_before: bool
    parted_after: bool


class _Item(NamedTuple):
    """A word that is being read: its number, its letter, and the bytes that are left of that."""

    word: int
    letter: int
    left: bytes


class _State(NamedTuple):
    """What is being read, whether a letter was last, and whether a word is complete unless a letter follows."""

    items: frozenset[_Item]
    inside: bool
    complete: bool


def _cases(letter: str) -> set[bytes]:
    return {one.encode() for one in (letter, letter.lower(), letter.upper())}


def _parts(letter: str) -> bool:
    """Whether it is a letter or digit of a script with spaces."""
    return letter.isalnum() and unicodedata.east_asian_width(letter) != "W"


def is_letter(byte: int) -> bool | None:
    """Whether a character that begins with this byte is one, or a digit; None of bytes that continue a character."""
    if byte < 0x80:
        return chr(byte).isalnum() or byte == ord("_")
    return None if byte < 0xC0 else byte not in SIGNS


def _after(state: _State, byte: int, words: Sequence[_Word], begins: Sequence[set[_Item]]) -> _State | None:
    """What is being read after one byte more, of words that begin so; None: a word is complete."""
    letter = is_letter(byte)
    if state.complete and letter is False:
        return None
    open_ = [own for own, word in zip(begins, words, strict=True) if not (state.inside and word.parted_before)]
    items, complete = set[_Item](), False
    for number, place, left in state.items.union(*open_):
        word = words[number]
        if left[0] != byte:
            continue
        if len(left) > 1:
            items.add(_Item(number, place, left[1:]))
        elif place + 1 < len(word.letters):
            items |= {_Item(number, place + 1, bytes_) for bytes_ in word.letters[place + 1]}
        elif word.parted_after:
            complete = True
        else:
            return None
    return _State(frozenset(items), state.inside if letter is None else letter, complete)


def _automaton(words: Sequence[_Word]) -> tuple[list[_State], Int[Tensor, "N 257"]]:
    """The states, and where each byte leads from each; one more state is that of a completed word, and one more byte is
    none."""
    begins = [{_Item(number, 0, bytes_) for bytes_ in word.letters[0]} for number, word in enumerate(words)]
    kinds = [is_letter(byte) for byte in range(256)]
    spelled = {byte for word in words for letter in word.letters for own in letter for byte in own}
    others = {
        kind: next(b for b in range(256) if kinds[b] is kind and b not in spelled) for kind in (True, False, None)
    }
    states = [_State(frozenset(), False, False), _State(frozenset(), True, False)]
    number, rows = {state: place for place, state in enumerate(states)}, []
    for state in states:  # which grows
        leads = {}
        for byte in (*spelled, *others.values()):
            found = _after(state, byte, words, begins)
            if found is not None and found not in number:
                number[found] = len(states)
                states.append(found)
            leads[byte] = -1 if found is None else number[found]
        rows.append([leads[byte if byte in spelled else others[kinds[byte]]] for byte in range(256)])
    if len(states) >= 1 << 15:
        raise InputError(f"{len(words):,} words to be avoided are too many", fix="avoid fewer")
    delta = torch.tensor([*rows, [-1] * 256])
    delta = torch.cat([delta.masked_fill(delta < 0, len(states)), torch.arange(len(states) + 1)[:, None]], dim=1)
    return states, delta.short()


def _by_token(delta: Int[Tensor, "N 257"], spellings: Sequence[bytes]) -> Int[Tensor, "N T"]:
    """Where each token leads from each state."""
    longest = max(map(len, spellings), default=0)
    read = torch.tensor([[*spelling, *[256] * (longest - len(spelling))] for spelling in spellings])
    table = torch.arange(len(delta)).short()[:, None].repeat(1, len(spellings))
    for column in range(longest):
        own = (read[:, column] < 256).nonzero()[:, 0]
        table[:, own] = delta[table[:, own].long(), read[own, column]]
    return table
