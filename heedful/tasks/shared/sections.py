"""Sections of recipes that several tasks read, and recipes that have them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import DataSection, Recipe, Section, TrainSection

if TYPE_CHECKING:
    from heedful.data.tokenizer import Tokenizer


class TokenizedData(DataSection):
    """Texts, and how they become tokens."""

    tokenizer: Literal["bpe", "unigram", "chars", "bytes"] = Field(
        "bpe", description="what a token is: a piece of a word (BPE or unigram), a character, or a byte"
    )
    vocab_size: int = Field(8000, ge=300, le=1_000_000, description="at most so many different tokens")


class TokenTrain(TrainSection):
    tokens: int = Field(2048, ge=64, description="tokens in a batch (of pairs: of the source), padding included")


class SmoothedTrain(TokenTrain):
    smoothing: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="label smoothing; null: 0.1 where a target is written from a source, and none elsewhere",
    )


class ImagesTrain(TrainSection):
    smoothing: float | None = Field(None, ge=0, lt=1, description="label smoothing; null: none")


class PackedTrain(SmoothedTrain):
    row: int = Field(64, ge=8, description="tokens in a packed row; more where the longest text needs it")
    eval_sentences: int = Field(400, ge=1, description="validation examples used in each measurement")
    rdrop: float = Field(
        0.0,
        ge=0,
        description="pass each batch twice under other dropout, and add so many times the divergence of what is said "
        "(R-Drop), which costs twice the time; 1, or up to 5 for very long trainings; 0: once",
    )


class BeamSection(Section):
    """How the finished model searches, unless its caller says otherwise."""

    beam: int = Field(5, ge=1, le=64, description="hypotheses kept in beam search; 1 is greedy")
    length_penalty: float = Field(1.0, ge=0, le=10, description="exponent of the length that scores are divided by")


class DecodeSection(BeamSection):
    longest: int | None = Field(
        None, ge=1, description="at most so many new tokens; null: twice the source's, and 12 more"
    )


class ImagesSection(Section):
    """Pictures, and how they are changed while a model learns from them."""

    size: int | None = Field(
        None, ge=8, le=4096, description="pixels of the longer edge; null: chosen by the data and the model"
    )
    channels: Literal[1, 3] | None = Field(None, description="1 grey, 3 colours; null: 1 where all pictures are grey")
    batch: int = Field(128, ge=1, description="pictures in a batch")
    augment: Literal["none", "light", "strong"] = Field(
        "light", description="how strongly pictures are altered in training"
    )
    flip: bool = Field(
        True, description="also mirror them left to right, unless augment is none; not for pictures of writing"
    )


class TextRecipe(Recipe):
    FORM: ClassVar[str] = "running text"  # as which it is prepared
    NEEDS: ClassVar[tuple[str, ...]] = ("tokenizer", "vocab_size")  # keys of the data that its tokens depend on
    MASKED: ClassVar[bool] = False  # whether a new tokenizer gets a mask token

    data: TokenizedData = TokenizedData()

    def learn_tokenizer(self, texts: Iterable[str]) -> "Tokenizer":
        """A new tokenizer of these documents. Raises InputError."""
        from heedful.data.tokenizer import train_tokenizer

        data = self.data
        return train_tokenizer(texts, kind=data.tokenizer, size=data.vocab_size, mask=self.MASKED)


class ImagesRecipe(Recipe):
    images: ImagesSection = ImagesSection()
