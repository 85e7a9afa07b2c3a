"""The recipe of a denoiser."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import DecodeSection, PackedTrain, TextRecipe, TokenizedData

if TYPE_CHECKING:
    from heedful.data.tokenizer import Tokenizer


class NoisedData(TokenizedData):
    """Running text, and how it is made worse."""

    longest: int = Field(200, ge=8, description="tokens in a passage; texts are cut into passages between sentences")
    objective: Literal["spans", "infill"] = Field(
        "spans",
        description="spans: spans hidden behind numbered marks (T5); infill: spans behind masks, and sentences in "
        "another order (BART)",
    )


class DenoiseRecipe(TextRecipe):
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:TRANSLATORS")
    SIZES: ClassVar = ("transformer-tiny", "transformer-small", "transformer-base-pre")
    FORM: ClassVar = "sentences"
    NEEDS: ClassVar = ("tokenizer", "vocab_size", "objective", "longest")

    task: Literal["denoise"] = "denoise"
    preset: str = "transformer-small"
    data: NoisedData = NoisedData()
    train: PackedTrain = PackedTrain()
    decode: DecodeSection = DecodeSection()

    def learn_tokenizer(self, texts: Iterable[str]) -> "Tokenizer":
        """One with a mask, or with as many sentinels as the longest passage needs."""
        from heedful.data.text.noise import sentences_of, span_count
        from heedful.data.tokenizer import train_tokenizer

        data, spans = self.data, self.data.objective == "spans"
        return train_tokenizer(
            [sentence for text in texts for sentence in sentences_of(text)],
            kind=data.tokenizer,
            size=data.vocab_size,
            mask=not spans,
            sentinels=span_count(data.longest)[1] + 1 if spans else 0,
        )
