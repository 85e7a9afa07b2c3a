"""Text that is read as it is made, a token at a time."""

from collections.abc import Sequence

from heedful.data.tokenizer import Tokenizer


class Reader:
    """The text of ids that come one after another, up to the first of the strings in `stop` that comes.

    What `read` and then `rest` hand out, joined, is what all the ids add to the text of `before`, cut before that
    string. Handed out is only what no further id can change: a character is held back until its last byte is there,
    and what could begin a stop string until it does not.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = (), before: Sequence[int] = ()) -> None:
        self.over = False  # whether a stop string has come: nothing more is to be read then
        self._tokenizer, self._stop = tokenizer, [word for word in stop if word]
        self._before = [*before]  # as many of the last decoded ids as have a text
        self._ids: list[int] = []  # not decoded yet
        self._text = ""  # not handed out yet

    def read(self, index: int) -> str:
        """What this id settles."""
        self._ids.append(index)
        return self._hand_out(hold=True) if self._tokenizer.settled(self._ids) else ""

    def rest(self) -> str:
        """What is still held back, once no further id comes."""
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
    """The length of the longest begin of a word, and not all of it, that a text ends with; by comparing no more than
    the text has."""
    lengths = range(min(len(word) - 1, len(text)), 0, -1)
    return next((n for n in lengths if word[n - 1] == text[-1] and text.endswith(word[:n])), 0)
