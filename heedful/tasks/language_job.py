"""Training a language model: from a recipe and its text to a tokenizer, token ids and the model's configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.data.documents import Documents
from heedful.models.lm import LMConfig
from heedful.models.presets import LANGUAGE_MODELS, language_model
from heedful.tasks.card import model_card
from heedful.tasks.folder import parameters, write_run
from heedful.tasks.generate import LanguageModel, LanguageTask, Likelihood
from heedful.tasks.job import Measured, Scores
from heedful.tasks.recipe import Recipe, row_of
from heedful.tasks.text_job import TextJob

ABOUT = {"task": "generate"}
SHOWN = 200  # tokens of a sample


class LanguageJob(TextJob):
    score_names: tuple[str, ...] = ("bits_per_byte",)

    def __init__(self, recipe: Recipe, corpus: Documents | None = None, begun: Path | None = None) -> None:
        row = None if recipe.start_from else row_of(LANGUAGE_MODELS, recipe)
        super().__init__(recipe, corpus, begun)
        size = self.tokenizer.size
        self.config = self.started(LMConfig) if row is None else language_model(row, vocab_size=size)

    def task(self, model: Any) -> LanguageTask:
        context = self.config.embed.places.size
        across, bos = self.recipe.data.across, self.tokenizer.bos
        return LanguageTask(self.documents, self.recipe.train, context=context, across=across, bos=bos)

    def measure(self, model: Any) -> Measured:
        language_model = LanguageModel(model, self.tokenizer, ABOUT)
        found = language_model.evaluate(self.corpus.valid, stride=language_model.context)
        ((sample,),) = language_model.generate([""], tokens=SHOWN)
        return Measured(found.loss, _scores(found), -found.loss, sample.text + "\n")

    def write(self, folder: Path, model: Any) -> None:
        write_run(folder, model, parameters(model), self.tokenizer, self.tokenizer, ABOUT)

    def finish(self, folder: Path, device: str) -> Scores:
        best = LanguageModel.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        found = {name: best.evaluate(texts) for name, texts in sets.items()}
        return {name: {"loss": each.loss, **_scores(each)} for name, each in found.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        rows = [
            f"| {name} | {each['loss']:.4f} | {each['perplexity']:.2f} | {each['bits_per_byte']:.4f} | "
            f"{each['word_perplexity']:.1f} |"
            for name, each in scores.items()
        ]
        header = "| text | nats a token | perplexity | bits a byte | perplexity of words |"
        context = self.config.embed.places.size
        origin = f"from the model in `{self.recipe.start_from}`" if self.start else "from scratch"
        return model_card(
            folder,
            what=f"Goes on with a text. Trained {origin} by heedful on {len(self.corpus.train):,} documents, "
            f"{sum(map(len, self.documents)):,} tokens, from `{self.corpus.name}`.",
            table=[header, "|---|---|---|---|---|", *rows],
            how=f"Scored through a window of {context} tokens that moves by half of it.",
            kept=f"step {best['step']:,}, the best on the validation text ({best['valid_loss']:.4f} nats a token)",
            minutes=minutes,
            use=[f'heed generate {folder} "Once upon a time" --tokens 200', f"heed eval {folder} --data more.txt"],
            limits="It has seen only the text above, and goes on like it. What it says may be false, and may repeat "
            "what it was trained on word for word.",
            notes=self.corpus.notes,
        )


def _scores(found: Likelihood) -> dict[str, float]:
    return {
        "perplexity": found.perplexity,
        "bits_per_byte": found.bits_per_byte,
        "word_perplexity": found.word_perplexity,
    }
