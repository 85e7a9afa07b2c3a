"""What is asked of models that make pictures."""

from dataclasses import dataclass

from heedful.decode.settings import SamplingOptions, setting


@dataclass(frozen=True, kw_only=True)
class PaintOptions:
    """`keep` is the share of a picture's rows that are kept."""

    keep: float = setting(0.5, "The share of a picture's rows that stay.", 0, 1)
    samples: int = setting(1, "How many pictures of each.", 1)
    sampling: SamplingOptions = setting(SamplingOptions, "How tokens are drawn.")
