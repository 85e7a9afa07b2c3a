"""What is asked of models that write texts about pictures, and the options of `heed look` for them."""

from dataclasses import dataclass
from typing import Annotated

from heedful.decode.settings import DecodingOptions, setting
from heedful.tasks.shared.options import LayerOptions, option_of


@dataclass(frozen=True, kw_only=True)
class DescribeOptions:
    question: str | None = setting(None, "What is asked about each picture.")
    decode: DecodingOptions = setting(DecodingOptions, "How to search, where it is not as the model has it.")


@dataclass(frozen=True, kw_only=True)
class DescribeLook(LayerOptions):
    question: Annotated[str | None, option_of("question", DescribeOptions)] = None
