"""What is asked of models that fill in masks."""

from dataclasses import dataclass

from heedful.decode.settings import setting


@dataclass(frozen=True, kw_only=True)
class FillOptions:
    top: int = setting(5, "How many candidates for each mask.", 1)
