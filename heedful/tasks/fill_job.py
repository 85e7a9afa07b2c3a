"""Training an encoder to name hidden words: from a recipe and its text to a tokenizer, token ids and the model's
configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.data.documents import Documents
from heedful.errors import InputError
from heedful.models.encoder import EncoderConfig
from heedful.models.presets import ENCODERS, encoder
from heedful.tasks.blanks import SHARE, Hider, Joiner
from heedful.tasks.card import model_card, origin, score_table
from heedful.tasks.fill import Filler, FillTask
from heedful.tasks.folder import parameters, write_run
from heedful.tasks.job import Measured, Scores
from heedful.tasks.recipe import Recipe, row_of
from heedful.tasks.text_job import TextJob

SHOWN = 5  # texts of a sample


class FillJob(TextJob):
    score_names: tuple[str, ...] = ("accuracy",)

    def __init__(self, recipe: Recipe, corpus: Documents | None = None, begun: Path | None = None) -> None:
        data, pairs = recipe.data, recipe.data.pairs != "none"
        row = None if recipe.start_from else row_of(ENCODERS, recipe)
        super().__init__(recipe, corpus, begun, mask=True)
        self.config = (
            self.started(EncoderConfig)
            if row is None
            else encoder(row, vocab_size=self.tokenizer.size, pooler=pairs, pairs=pairs)
        )
        if pairs and (not self.config.pairs or self.config.embed.types < 2):
            what = f"the model {recipe.start_from or recipe.preset} does not tell pairs of texts apart"
            raise InputError(what, fix="leave out data.pairs")
        self.about = {"task": "fill"} | ({"pairs": data.pairs} if pairs else {})

    def task(self, model: Any) -> FillTask:
        context, data = self.config.embed.places.size, self.recipe.data
        hider, joiner = Hider(self.tokenizer, whole_words=data.whole_words), Joiner(self.tokenizer, data.pairs)
        return FillTask(self.documents, self.recipe.train, context=context, hider=hider, joiner=joiner)

    def measure(self, model: Any) -> Measured:
        filler = Filler(model, self.tokenizer, self.about)
        found = filler.evaluate(self.corpus.valid)
        sample = "".join(f"{filler.sample(text)}\n" for text in self.corpus.valid[:SHOWN])
        scores = found.scores()
        return Measured(scores.pop("loss"), scores, -found.loss, sample)

    def write(self, folder: Path, model: Any) -> None:
        write_run(folder, model, parameters(model), self.tokenizer, self.tokenizer, self.about)

    def finish(self, folder: Path, device: str) -> Scores:
        best = Filler.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(texts).scores() for name, texts in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        return model_card(
            folder,
            what=f"Names hidden words of a text. Trained {origin(self.recipe.start_from)} by heedful on "
            f"{len(self.corpus.train):,} documents, {sum(map(len, self.documents)):,} tokens, from "
            f"`{self.corpus.name}`.",
            table=score_table("text", scores),
            how=f"{SHARE:.0%} of the tokens were hidden, the same ones each time; loss is in nats a hidden token. The "
            f"model reads {self.config.embed.places.size} tokens at a time.",
            kept=f"step {best['step']:,}, the best on the validation text ({best['valid_loss']:.4f} nats a token)",
            minutes=minutes,
            use=[f'heed fill {folder} "The cat sat on the <mask>."', f"heed eval {folder} --data more.txt"],
            limits="It has seen only the text above, and expects texts like it. What it names may be false.",
            notes=self.corpus.notes,
        )
