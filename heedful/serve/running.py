"""The running batch of a language model: the texts that it continues together, which join and leave between two
tokens."""

from collections.abc import Callable

from heedful.run.task import Served
from heedful.serve.hosted import StreamedPiece
from heedful.serve.jobs import WritingJob, hand_over, tellable
from heedful.serve.limits import Limits, TextWriter, Writes


class RunningTexts:
    """At most `rows` texts; a quarter of the rows is kept for short ones. For one thread."""

    def __init__(self, served: Served, limits: Limits) -> None:
        self.served, self.limits, self.rows = served, limits, limits.rows
        if isinstance(served, Writes):
            self.rows = max(1, min(self.rows, limits.at_once // 2 // served.context))
        self._texts: dict[int, WritingJob] = {}
        self._writer: TextWriter | None = None

    @property
    def texts(self) -> list[WritingJob]:
        return [*self._texts.values()]

    def has_room_for(self, text: WritingJob) -> bool:
        short = self.limits.short
        long = sum(other.writing.tokens > short for other in self._texts.values())
        return text.writing.tokens <= short or long < self.rows - self.rows // 4

    def enter(self, next_text: Callable[[], WritingJob | None]) -> None:
        """Adds the next texts, while there are free rows, and as many as may be read before the next step."""
        read = 0
        while len(self._texts) < self.rows and read < self.limits.read and (text := next_text()) is not None:
            assert isinstance(self.served, Writes)
            self._writer = self._writer or self.served.writer(rows=self.rows)
            try:
                how, prompt = text.writing, text.prompt
                ids = [int(token) for token in prompt] if how.exact else self.served.begun(prompt)
                number = self._writer.add(ids, text.sampling, tokens=how.tokens, stop=how.stop, top=how.top)
                self._texts[number] = text
                read += len(ids)
            except BaseException as error:
                hand_over([(text, tellable(error))])

    def step(self) -> int:
        """Writes the next token of each text, without those that are not waited for; returns the number of tokens."""
        writer = self._writer
        for number in [number for number, text in self._texts.items() if text.over]:
            del self._texts[number]
            if writer is not None:
                writer.cancel(number)
        if writer is None or not self._texts:
            return 0
        tokens, ready = 0, []
        for piece in writer.step():
            text = self._texts[piece.text]
            text.made.append(StreamedPiece(piece.piece, piece.token, piece.logprob, piece.finish, piece.top))
            tokens += piece.token is not None
            if piece.finish is not None:
                del self._texts[piece.text]
            if piece.finish is not None or len(text.made) >= text.writing.at_once:
                ready.append((text, text.made))
                text.made = []
        hand_over(ready)
        return tokens

    def abandoned(self) -> list[WritingJob]:
        """The texts that were continued, after a fault; the batch is empty then."""
        texts, self._texts, self._writer = self.texts, {}, None
        return texts
