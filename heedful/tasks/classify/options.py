"""What is asked of classifiers of texts."""

from dataclasses import dataclass

from heedful.decode.settings import setting


@dataclass(frozen=True, kw_only=True)
class ClassifyOptions:
    """`pairs` are second texts, or questions, one for each text; `pair` is used where a text has none."""

    pair: str = setting("", "A second text, or a question, for each text that has none of its own.")
    pairs: tuple[str, ...] = setting((), "A second text, or a question, for each text.")
    choices: tuple[str, ...] = setting((), "An answer to choose; give it twice or more.")
