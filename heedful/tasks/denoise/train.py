"""Trains a denoiser on pairs of corrupted text and target, which are made from plain text anew in every epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from heedful.data.batches import OUR_ENDS, Ends, PairBatch
from heedful.data.parts import some_of
from heedful.data.text.documents import Documents
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, counted
from heedful.models import TranslationModel, config_from
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.run.card import CardText, Scores, fingerprint
from heedful.run.job import Job, Measurement
from heedful.run.recipe import row_of
from heedful.run.start import Start, read_start
from heedful.tasks.denoise.noise import Noise, Passage, StoredPassages, check_words, fixed, make_noise, read_passages
from heedful.tasks.denoise.recipe import DenoiseRecipe
from heedful.tasks.denoise.use import denoising_likelihood, restored
from heedful.tasks.shared.lengths import most_positions
from heedful.tasks.shared.preparing.opened import prepared_documents, prepared_facts
from heedful.tasks.shared.preparing.texts import refuse_unprepared
from heedful.tasks.shared.sections import PackedTrain
from heedful.tasks.shared.text_job import documents_for
from heedful.tasks.translate.spec import NAME, NoiseSpec, TokenLengths, TranslatorSpec
from heedful.tasks.translate.training.directions import spec_of_start
from heedful.tasks.translate.training.epochs import TranslationTask
from heedful.tasks.translate.training.losses import ends_of, training_loss
from heedful.tasks.translate.use import Translator
from heedful.training.loss import Loss

SHOWN = 4  # passages in a sample


class DenoiseTask:
    """Batches of pairs that are made from the passages with new noise in every epoch, and the loss of a translator."""

    def __init__(
        self,
        passages: Sequence[Passage] | StoredPassages,
        noise: Noise,
        plan: PackedTrain,
        *,
        packs: bool,
        ends: Ends = OUR_ENDS,
    ) -> None:
        self.passages, self.noise, self.plan, self.packs, self.ends = passages, noise, plan, packs, ends

    def batches(self, epoch: int, model: object) -> Sequence[PairBatch]:
        seed, pair, passages = self.plan.seed, self.noise.pair, self.passages
        texts = passages.turn(seed, epoch) if isinstance(passages, StoredPassages) else passages
        pairs = [pair(passage, seed, epoch, i) for i, passage in enumerate(texts)]
        return TranslationTask(pairs, self.plan, packs=self.packs, ends=self.ends).batches(epoch, model)

    def loss(self, model: TranslationModel, batch: PairBatch) -> Loss:
        return training_loss(model, batch, smoothing=self.plan.smoothing or 0.0, rdrop=self.plan.rdrop)


class DenoiseJob(Job[DenoiseRecipe, Documents, TranslationModel]):
    unit: ClassVar = "documents"
    kinds: ClassVar = "a .txt or .jsonl file, or a folder of such"
    served: ClassVar = Translator
    score_names = ("perplexity",)
    tokenizer: Tokenizer
    start: Start | None

    def __init__(self, recipe: DenoiseRecipe, corpus: Documents | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        corpus, data, self.prepared = self.corpus, recipe.data, self.corpus.prepared
        if self.prepared is not None:
            refuse_unprepared(recipe, self.prepared, self.start and self.start.source)
        if self.start:
            self.tokenizer = self.start.source
            self.config = config_from(self.start.model, where=f"{recipe.start_from}/config.json")
        else:
            row = row_of(TRANSLATORS, recipe)
            self.tokenizer = (
                self.kept_tokenizer(lambda: recipe.learn_tokenizer(corpus.train))
                if self.prepared is None
                else self.prepared.tokenizers[0]
            )
            size = self.tokenizer.size
            self.config = translator_config(row, source_vocab=size, target_vocab=size, joint=True)
        self.around = spec_of_start(self.start)
        self.noise = make_noise(data.objective, self.tokenizer, self.around, where=recipe.start_from)
        self.ends = ends_of(self.tokenizer, self.around, where=recipe.start_from)
        most = min(data.longest, most_positions(self.config) or data.longest) - 1
        self.longest = most - max(len(self.noise.before), len(self.noise.begin))
        first = self._read_passages(corpus)
        valid = read_passages(corpus.valid, self.tokenizer, self.longest)
        if not first or not valid:
            raise InputError("no text to learn from or to be measured on", where=corpus.name, fix="give more text")
        self.first = len(first)
        check_words(first, self.noise)
        self.lengths = TokenLengths.of([sum(map(len, passage)) for passage in first], begun)
        self.valid = fixed([valid[i] for i in some_of(len(valid), recipe.train.eval_sentences)], self.noise)

    def _read_passages(self, corpus: Documents) -> list[Passage]:
        """Takes the passages; returns them, or those of the first turn."""
        if self.prepared is None:
            read = read_passages(corpus.train, self.tokenizer, self.longest)
            self.passages: list[Passage] | StoredPassages = read
            self.tokens, self.fingerprint = sum(map(len, chain.from_iterable(read))), fingerprint(corpus.train)
            return read
        stored = self.prepared.stored
        self.passages, self.turns = StoredPassages(stored, self.longest), stored.turns
        self.tokens = sum(count for token, count in stored.counts().items() if token != stored.apart)
        self.fingerprint, self.learnt_before = self.prepared.fingerprint, self.prepared.learnt
        return [*self.passages.turn(self.recipe.train.seed, 0)]

    @classmethod
    def first_look(cls, recipe: DenoiseRecipe, begun: Path | None) -> tuple[Documents | None, list[str]]:
        """What was prepared for the run; the job reads other data itself."""
        return prepared_documents(recipe.data.path, begun), []

    def read(self) -> Documents:
        path = self.recipe.data.path
        return prepared_documents(path, self.begun) or documents_for(path, self.begun)

    def read_start(self) -> Start | None:
        return read_start(self.recipe, self.begun, "translate")

    def describe(self) -> str:
        return f"{self._amount()}, {self.tokenizer.size:,} in the vocabulary"

    def own_facts(self) -> dict[str, object]:
        facts: dict[str, object] = {"tokens": self.tokens, "vocabulary": self.tokenizer.size}
        if self.turns == 1:
            facts["passages"] = self.first
        return facts if self.prepared is None else facts | prepared_facts(self.prepared, self.corpus, self.unit)

    def _amount(self) -> str:
        return f"{counted(self.first, 'passage')}{' in a turn' * (self.turns > 1)}, {self.tokens:,} tokens"

    def spec(self) -> dict[str, Any]:
        return self.translator_spec().written()

    def translator_spec(self) -> TranslatorSpec:
        """The task, the noise, and the default search settings."""
        objective = self.recipe.data.objective
        return replace(
            self.around,
            task=NAME,
            source="noised text",
            target="what was hidden" if objective == "spans" else "text",
            decode=self.recipe.decode.model_dump(exclude_none=True),
            noise=NoiseSpec(objective=objective, longest=self.longest),
            source_tokens=self.lengths,
        )

    def task(self, model: TranslationModel) -> DenoiseTask:
        return DenoiseTask(self.passages, self.noise, self.recipe.train, packs=model.packs, ends=self.ends)

    def measure(self, model: TranslationModel) -> Measurement:
        """Measures the loss on noised validation text; the sample shows what the model makes of some of it."""
        found = restored(model, self.valid, self.ends)
        shown, show = self.valid[:SHOWN], self.tokenizer.decode_marked
        served = Translator(model, self.tokenizer, self.tokenizer, self.translator_spec())
        sources = [source[len(self.noise.before) :] for source, _ in shown]
        made = served.hypotheses(sources, served.decoding(beam=1))
        lines = [
            f"source  {show(source)}\ntarget  {show(target)}\nmodel   {show(best[0].tokens)}\n"
            for (source, target), best in zip(shown, made, strict=True)
        ]
        return Measurement(found.loss, {"perplexity": found.perplexity}, -found.loss, "\n".join(lines))

    def score(self, best: Translator, part: list[str]) -> Mapping[str, Any]:
        found = denoising_likelihood(best, part)
        return {"loss": found.loss, "perplexity": found.perplexity}

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        rows = [f"| {name} | {each['loss']:.4f} | {each['perplexity']:.2f} |" for name, each in scores.items()]
        hidden = self.recipe.data.objective == "spans"
        mark = "<extra_id_0>" if hidden else "<mask>"
        task = "says what was hidden" if hidden else "says the text as it was"
        return CardText(
            what=f"Reads a text that was made worse and {task}: a start for models that make texts of texts.",
            learnt_on=f"{self._amount()}, from `{self.corpus.name}`",
            table=["| text | nats a token | perplexity |", "|---|---|---|", *rows],
            how=f"Scored on texts in passages of at most {self.longest} tokens, noised alike each time.",
            kept=f"step {best['step']:,}, the best on the validation text ({best['valid_loss']:.4f} nats a token)",
            use=[
                f"heed train translate --data PAIRS.tsv --from {folder} --out runs/tuned",
                f'heed translate {folder} "My sister {mark} a book."',
                f"heed eval {folder} --data more.txt",
            ],
            limits="It has seen only the text above, and puts right what is like it. What it says may be false.",
        )
