"""What is asked of models that answer questions from a text."""

from dataclasses import dataclass

from heedful.decode.settings import setting


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """`contexts` are the texts that the questions are answered from, one for each; `context` is used for a question
    without."""

    context: str = setting("", "The text that tells the answer, where a question has none of its own.")
    contexts: tuple[str, ...] = setting((), "A text that tells the answer, for each question.")
    top: int = setting(1, "How many answers to each question.", 1)
