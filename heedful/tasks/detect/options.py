"""What is asked of models that find things in pictures."""

from dataclasses import dataclass

from heedful.decode.settings import setting


@dataclass(frozen=True, kw_only=True)
class DetectOptions:
    threshold: float = setting(0.5, "The least probability of a box.", 0, 1)
