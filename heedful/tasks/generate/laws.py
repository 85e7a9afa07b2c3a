"""The laws of a language model."""

from collections.abc import Sequence

from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.shared.probes import RowsProbe, a_few


class TextProbe(RowsProbe):
    def __init__(self, language_model: LanguageModel, texts: Sequence[str]) -> None:
        self.language_model = language_model
        own = language_model.tokenizer
        sentences = a_few(own.encode_whole(list(texts)), own.size)
        rows = [[own.bos, *ids[: language_model.context - 9]] for ids in sentences]
        super().__init__(language_model.model, rows, filler=own.pad)

    def searched(self) -> tuple[str, float]:
        """Generates from prompts of unequal length, in a batch that is too small for all, so that texts enter and leave
        it; and from each prompt alone."""
        prompts = [self.language_model.tokenizer.decode_whole(ids[1:]) for ids in self.rows]
        together = self.language_model.generate(prompts, tokens=20, temperature=0.0, batch=max(2, len(prompts) // 2))
        unequal = 0
        for prompt, (one,) in zip(prompts, together, strict=True):
            ((other,),) = self.language_model.generate([prompt], tokens=20, temperature=0.0)
            unequal += one.tokens != other.tokens
        return "prompts of a batch = alone (different tokens)", float(unequal)
