"""Training answers in conversations, from a language model or from nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from heedful.core.config import from_json
from heedful.core.seeds import shuffled
from heedful.data.batches import TextBatch, pack_texts
from heedful.data.stored import StoredAnswers, Text
from heedful.data.text.chat_template import ChatTemplate
from heedful.data.text.chat_tokens import ChatTokens
from heedful.data.text.conversations import Conversation, read_conversations
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import counted
from heedful.exchange.hub import CHAT
from heedful.metrics.labels import entropy
from heedful.models.lm import LM, LMConfig
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.run.card import CardText, Scores, fingerprint
from heedful.run.job import Job, Measurement
from heedful.run.recipe import row_of
from heedful.run.start import Start, copy_weights, read_start
from heedful.store import files
from heedful.tasks.chat.card import examples, taught
from heedful.tasks.chat.layout import Learnable, learnable
from heedful.tasks.chat.prepared import Conversations, prepared_conversations, refuse_unprepared
from heedful.tasks.chat.recipe import ChatRecipe
from heedful.tasks.chat.template import chosen_template, controls_in, special_names
from heedful.tasks.chat.use import ChatModel
from heedful.tasks.generate.losses import next_token_loss
from heedful.tasks.shared.body import GROWN
from heedful.tasks.shared.preparing.opened import prepared_facts
from heedful.tasks.shared.sections import SmoothedTrain
from heedful.training.loss import Loss

SHOWN = 6  # conversations of a sample
FEW = 32  # conversations whose tokens are checked before training
GENERATED = 100  # answers that are generated and compared with those of a test set


class ChatTask:
    """Rows of whole conversations, and the cross-entropy of the assistant's messages and their ends."""

    def __init__(self, texts: Sequence[Text], plan: SmoothedTrain, *, context: int) -> None:
        self.texts, self.plan, self.context = texts, plan, context

    def batches(self, epoch: int, model: object) -> list[TextBatch]:
        texts, seed = self.texts, self.plan.seed
        if isinstance(texts, StoredAnswers):
            texts = texts.turn(seed, epoch)
            order = [*range(len(texts))]
        else:
            order = shuffled(len(texts), seed, epoch)
        rows = max(1, self.plan.tokens // self.context)
        return [*pack_texts(texts, order, row=self.context, rows=rows)]

    def loss(self, model: LM, batch: TextBatch) -> Loss:
        return next_token_loss(model, batch, across=False, smoothing=self.plan.smoothing or 0.0)


class ChatJob(Job[ChatRecipe, Conversations, LM]):
    unit: ClassVar = "conversations"
    kinds: ClassVar = "a .jsonl, .json or .tsv file of conversations, or a folder of such"
    served: ClassVar = ChatModel
    score_names = ("perplexity",)
    start: Start | None
    tokenizer: Tokenizer

    def __init__(self, recipe: ChatRecipe, corpus: Conversations | None = None, begun: Path | None = None) -> None:
        row = None if recipe.start_from else row_of(LANGUAGE_MODELS, recipe)
        super().__init__(recipe, corpus, begun)
        start = Path(recipe.start_from) if recipe.start_from else None
        begins = begun if begun is not None and (begun / CHAT).is_file() else None
        source = chosen_template("" if begins else recipe.data.template, begins or start)
        self.prepared = self.corpus.prepared
        self.tokenizer = self._tokenizer(source)
        self.template = ChatTemplate(source, special_names(self.tokenizer))
        self.config = self._config() if row is None else lm_config(row, vocab_size=self.tokenizer.size)
        self.new_tokens = self._new_tokens()
        if recipe.train.lora and self.new_tokens:
            new = ", ".join(self.new_tokens)
            self.notes.append(f"{new}: new to the model, so the vectors of all tokens are learnt beside the adapters")
        self.written = ChatTokens(self.tokenizer, self.template)
        if self.prepared is None:
            read, too_long = self._learnable(self.corpus.train, self.corpus.name)
            self.texts: list[Text] | StoredAnswers = read
            self.notes += too_long
            self.fingerprint = fingerprint(one["content"] for own in self.corpus.train for one in own)
        else:
            known = self.tokenizer if self.start else None
            refuse_unprepared(recipe, self.prepared, source, self.config.embed.context_length, known)
            self.texts, self.turns = self.prepared.stored, self.prepared.stored.turns
            self.fingerprint, self.learnt_before = self.prepared.fingerprint, self.prepared.learnt
        self.notes += self._torn()
        self.notes += self._learnable(self.corpus.valid, f"{self.corpus.name}, to validate on").notes
        for name, part in self.corpus.tests.items():
            self.notes += self._learnable(part, f"{self.corpus.name}, {name}").notes

    @classmethod
    def first_look(cls, recipe: ChatRecipe, begun: Path | None) -> tuple[Conversations | None, list[str]]:
        """What was prepared for the run; the job reads other data itself."""
        return prepared_conversations(recipe.data.path, begun), []

    def read(self) -> Conversations:
        path = self.recipe.data.path
        return prepared_conversations(path, self.begun) or read_conversations(path)

    def read_start(self) -> Start | None:
        return read_start(self.recipe, self.begun, "generate")

    def _tokenizer(self, source: str) -> Tokenizer:
        """The tokenizer of the run, or of the model to start from, with the control tokens of the template added; or a
        new one."""
        controls, data = controls_in(source), self.recipe.data
        if self.start is not None:
            return self.start.source.with_extra(controls)
        if self.prepared is not None:
            return self.prepared.tokenizers[0]
        texts = (one["content"] for own in self.corpus.train for one in own)
        return self.kept_tokenizer(
            lambda: train_tokenizer(texts, kind=data.tokenizer, size=data.vocab_size, extra=controls)
        )

    def _new_tokens(self) -> list[str]:
        """The control tokens that the model to start from does not have."""
        if self.start is None:
            return []
        if self.begun is not None:
            return list(files.read_json(self.begun / "data.json").get("new_tokens", []))
        return [name for name in self.tokenizer.extra if name not in self.start.source.extra]

    def _config(self) -> LMConfig:
        """The configuration of the model to start from, with its vocabulary enlarged by the new tokens."""
        assert self.start is not None
        config = from_json(LMConfig, self.start.model["model"], where=f"{self.recipe.start_from}/config.json")
        size = max(config.embed.vocab_size, self.tokenizer.size)
        return replace(config, embed=replace(config.embed, vocab_size=size))

    def _learnable(self, conversations: list[Conversation], name: str) -> Learnable:
        return learnable(self.written, conversations, self.config.embed.context_length, name)

    def _torn(self) -> list[str]:
        """A note where the tokens of prompts are not a prefix of those of their conversations."""
        few = [own for own in self.corpus.train if len(own) > 1][:FEW]
        torn = sum(map(self.written.torn, few))
        if not torn:
            return []
        what = f"the prompts of {torn} of {counted(len(few), 'conversation')} are not how those begin, in tokens"
        why = "the first word of an answer is then learnt elsewhere than it is asked for, or not at all"
        return [f"{what}; {why}: let the template end its generation prompt before a blank (data.template)"]

    def describe(self) -> str:
        learnt = self.texts.answers if isinstance(self.texts, StoredAnswers) else _answers(self.texts)
        sizes = f"{counted(len(self.texts), 'conversation')}, {counted(learnt, 'token')} of answers"
        return f"{sizes}, {self.tokenizer.size:,} in the vocabulary"

    def own_facts(self) -> dict[str, object]:
        texts = self.texts
        tokens = len(texts.ids) if isinstance(texts, StoredAnswers) else sum(len(text.ids) for text in texts)
        facts = {"tokens": tokens, "vocabulary": self.tokenizer.size, "new_tokens": self.new_tokens}
        return facts if self.prepared is None else facts | prepared_facts(self.prepared, self.corpus, self.unit)

    def spec(self) -> dict[str, Any]:
        """The content of task.json: that of a language model. Nothing comes before a text, and of the control tokens
        only the end of a turn may be generated."""
        around = {} if self.start is None else self.start.around
        own = [token for token in self.tokenizer.controls if token != self.written.end]
        forbidden = around.get("forbidden", own) if not self.tokenizer.ours else own
        return {"task": "generate", "chat": True, "before": [], "end": self.written.end, "forbidden": forbidden}

    def tokenizers(self) -> dict[str, bytes]:
        return super().tokenizers() | {CHAT: self.template.source.encode()}

    def begin(self, model: LM) -> None:
        if self.start:
            copy_weights(model, self.recipe.start_from, grown=GROWN)

    def new_heads(self) -> Collection[str]:
        return ("embed.tokens", "head") if self.new_tokens else ()

    def task(self, model: LM) -> ChatTask:
        return ChatTask(self.texts, self.recipe.train, context=self.config.embed.context_length)

    def chance(self) -> float:
        if isinstance(self.texts, StoredAnswers):
            return entropy(self.texts.counts())
        return entropy(token for text in self.texts for token, own in zip(text.ids, text.learnt, strict=True) if own)

    def measure(self, model: LM) -> Measurement:
        chat = ChatModel(model, self.tokenizer, self.spec(), template=self.template)
        found = chat.evaluate_answers(self.valid).scores
        asked = [own[: _asks(own)] for own in self.valid[:SHOWN]]
        said = chat.greedy_each(asked, tokens=max(1, chat.context // 2))
        pairs = [(own[-1]["content"], one.content) for own, one in zip(asked, said, strict=True) if one is not None]
        sample = "".join(f"{question}\n    {answer}\n" for question, answer in pairs)
        return Measurement(found["loss"], {"perplexity": found["perplexity"]}, -found["loss"], sample)

    def score(self, best: ChatModel, part: list[Conversation]) -> Mapping[str, Any]:
        found = best.evaluate_answers(part, answers=GENERATED).scores
        return {name: found[name] for name in ("loss", "perplexity", "chrf", "exact") if name in found}

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        rows = [
            f"| {name} | {own['loss']:.4f} | {own['perplexity']:.2f} | "
            + (f"{own['chrf']:.1f} | {100 * own['exact']:.1f} % |" if "chrf" in own else "- | - |")
            for name, own in scores.items()
        ]
        header = "| conversations | nats a token of answers | perplexity | chrF | exactly right |"
        return CardText(
            what="Answers in a conversation.",
            learnt_on=f"{counted(len(self.texts), 'conversation')}, from `{self.corpus.name}`",
            table=[header, "|---|---|---|---|---|", *rows],
            how=f"chrF and the share that is exactly right are of at most {GENERATED} answers, generated greedily.",
            kept=f"step {best['step']:,}, the best on the validation answers ({best['valid_loss']:.4f} nats a token)",
            use=[f"heed chat {folder}", f"heed eval {folder} --data more.jsonl"],
            limits="It has learnt the form of answers from the conversations above, and what it says may be false: "
            f"names, numbers and sources are made up as easily as they are remembered. {taught(self.corpus.train)}\n\n"
            + "\n".join(examples(ChatModel.load(folder), next(iter(self.corpus.scored().values())))),
        )


def _answers(texts: Sequence[Text]) -> int:
    """How many tokens are learnt."""
    return sum(sum(text.learnt[1:]) for text in texts)


def _asks(conversation: Conversation) -> int:
    """The number of messages up to and including the first question; 0 where there is none."""
    return next((i for i, one in enumerate(conversation, 1) if one["role"] == "user"), 0)
