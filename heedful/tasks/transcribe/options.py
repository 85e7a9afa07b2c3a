"""What is asked of models that write down speech."""

from dataclasses import dataclass

from heedful.decode.settings import setting


@dataclass(frozen=True, kw_only=True)
class TranscribeOptions:
    language: str | None = setting(None, "The language that is spoken, of a model with several.")
