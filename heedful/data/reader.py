"""Decodes text while it is generated, token by token."""

from collections.abc import Sequence

from heedful.data.tokenizer import Tokenizer


class Reader:
    """Decodes ids that come one after another, up to the first occurrence of a string in `stop`.

    The results of `read` and then `rest`, joined, are the text that all ids add to the text of `before`, cut before the
    stop string. `read` returns only what later ids cannot change: it holds back a character until its last byte has
    come, and text that could begin a stop string until it turns out not to.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = (), before: Sequence[int] = ()) -> None:
        self.over = False  # whether a stop string has come: no further ids should be read
        self._tokenizer, self._stop = tokenizer, [tokenizer.composed(word) for word in stop if word]
        self._before = [*before]  # the last decoded ids, as many as have a text
        self._ids: list[int] = []  # not decoded yet
        self._text = ""  # decoded, but not returned yet

    def read(self, index: int) -> str:
        """Returns the text that is final after this id."""
        self._ids.append(index)
        return self._hand_out(hold=True) if self._tokenizer.settled(self._ids) else ""

    def rest(self) -> str:
        """Returns the text that is still held back, after the last id."""
        return self._hand_out(hold=False)

    def _hand_out(self, *, hold: bool) -> str:
        added = self._tokenizer.decode_after(self._before, self._ids)
        self._before = [*self._ids] if added else [*self._before, *self._ids]
        text = self._text + added
        ends = [text.index(word) for word in self._stop if word in text]
        self.over |= bool(ends)
        begun = max((begun_by(text, word) for word in self._stop), default=0) if hold else 0
        end = min(ends) if ends else len(text) - begun
        self._ids, self._text = [], "" if ends else text[end:]
        return text[:end]


def begun_by(text: str, word: str) -> int:
    """Returns the length of the longest proper prefix of `word` with which the text ends. The time does not depend on
    the length of the word if the text is shorter."""
    lengths = range(min(len(word) - 1, len(text)), 0, -1)
    return next((n for n in lengths if word[n - 1] == text[-1] and text.endswith(word[:n])), 0)
