"""Sections of recipes that several tasks read."""

from typing import Literal

from pydantic import Field

from heedful.run.recipe import DataSection, Section, TrainSection


class TokenizedData(DataSection):
    """Texts, and how they become tokens."""

    tokenizer: Literal["bpe", "unigram", "chars", "bytes"] = Field("bpe", description="what tokens are")
    vocab_size: int = Field(8000, ge=300, le=1_000_000, description="how many different tokens at most")


class TokenTrain(TrainSection):
    tokens: int = Field(2048, ge=64, description="tokens in a batch (of the source, of pairs), padding included")


class SmoothedTrain(TokenTrain):
    smoothing: float | None = Field(
        None, ge=0, lt=1, description="label smoothing; null: 0.1 for what is made from a source, and else none"
    )


class PackedTrain(SmoothedTrain):
    row: int = Field(64, ge=8, description="tokens in a packed row, as long as the longest text has room")
    eval_sentences: int = Field(400, ge=1, description="how many validation examples are measured on each time")


class BeamSection(Section):
    """How the model searches unless it is told otherwise."""

    beam: int = Field(5, ge=1, le=64, description="hypotheses that live on; 1 is greedy")
    length_penalty: float = Field(1.0, ge=0, description="exponent of the length that scores are divided by")


class DecodeSection(BeamSection):
    longest: int | None = Field(None, ge=1, description="new tokens; null: twice the source's and 12 more")


class ImagesSection(Section):
    """Pictures, and how they are changed while a model learns from them."""

    size: int | None = Field(
        None, ge=8, le=4096, description="pixels of the longer edge; null: as data and model suggest"
    )
    channels: Literal[1, 3] | None = Field(None, description="null: 1 where all pictures are grey")
    batch: int = Field(128, ge=1, description="pictures in a batch")
    augment: Literal["none", "light", "strong"] = Field("light", description="how much pictures are changed")
    flip: bool = Field(True, description="left for right, where pictures are changed at all; not for what is written")
