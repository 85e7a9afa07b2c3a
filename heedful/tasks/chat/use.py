"""Answers in conversations, with a language model that was trained on some."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NotRequired, TypedDict, Unpack

import torch

from heedful.core.arguments import checks_arguments
from heedful.core.seeds import counter_seed
from heedful.data.batches import pack_texts
from heedful.data.frame import Frame
from heedful.data.text.chat_template import ChatTemplate
from heedful.data.text.chat_tokens import ChatTokens
from heedful.data.text.conversations import Conversation, Message, messages_of, read_asked
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.decode.settings import Sampling, SamplingOptions
from heedful.errors import InputError, TextError, counted
from heedful.metrics.nats import perplexity
from heedful.metrics.texts import score_bleu
from heedful.models.lm import LM
from heedful.run.device import Device
from heedful.run.task import Ask, Scored
from heedful.tasks.chat.layout import fitted_prompt, learnable
from heedful.tasks.chat.options import ChatOptions, ChatScoring
from heedful.tasks.chat.template import template_of
from heedful.tasks.generate.losses import next_token_loss
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.generate.writer import TextPiece, Writer
from heedful.tasks.shared.one_or_many import is_one
from heedful.tasks.shared.served import Reads

Spoken = Mapping[str, Any]  # a message, with further keys that a template may read
LOOKED_AT = 48  # the most tokens of an answer that is generated for inspection
READ = 4096  # tokens that are read at a time
LEAST = 4  # 1 / LEAST of the context is kept free for an answer, or less where `tokens` is less


class ChatRecord(TypedDict):
    """A reply as a record."""

    role: str
    content: str
    tokens: Ids
    warning: NotRequired[str]


class Reply(NamedTuple):
    """A model's answer, with one log-probability (nats) per token; `finish` is "stop" where the model ended its turn,
    and "length" at the limit. `forgotten`: the number of first turns that were not read, because they did not fit the
    context."""

    role: str
    content: str
    tokens: Ids
    logprobs: list[float]
    finish: str
    forgotten: int

    @property
    def message(self) -> Message:
        """The message to append to the conversation."""
        return {"role": "assistant", "content": self.content}

    @property
    def warning(self) -> str:
        if not self.forgotten:
            return ""
        return f"the context has no room for the first {counted(self.forgotten, 'turn')}, not read"

    def record(self) -> ChatRecord:
        made: ChatRecord = {"role": self.role, "content": self.content, "tokens": self.tokens}
        if self.forgotten:
            made["warning"] = self.warning
        return made


class ChatPrompt(NamedTuple):
    """A prompt as the model reads it, the most tokens of its answer, and the number of turns that were left out."""

    ids: Ids
    tokens: int
    forgotten: int


class ChatScores(NamedTuple):
    """The scores of a model's answers, and notes on conversations that were too long for it."""

    scores: dict[str, Any]
    notes: tuple[str, ...]


class ChatModel(LanguageModel):
    """A language model, its tokenizer, and its chat template."""

    purpose: ClassVar = "conversations"

    def __init__(
        self,
        model: LM,
        tokenizer: Tokenizer,
        about: dict[str, Any],
        draft: LM | None = None,
        *,
        template: ChatTemplate,
    ) -> None:
        super().__init__(model, tokenizer, about, draft)
        self.template = template

    @classmethod
    @checks_arguments
    def load(
        cls, run: str | Path, *, device: Device = "cpu", weights: str = "float32", draft: str = "none"
    ) -> "ChatModel":
        """Loads the model in a run's folder, like `LanguageModel.load`. Raises MissingError, InputError or
        StorageError, also for a language model without a chat template."""
        template = template_of(Path(run))
        plain = LanguageModel.load(run, device=device, weights=weights, draft=draft)
        return cls(plain.model, plain.tokenizer, plain.about, plain.draft, template=template)

    @cached_property
    def written(self) -> ChatTokens:
        """Converts conversations to tokens. Raises InputError for an invalid template."""
        return ChatTokens(self.tokenizer, self.template)

    @property
    def end(self) -> int:
        """The token that ends a turn and a text; with an invalid template, the one that ends a text."""
        try:
            return self.written.end
        except InputError:
            return super().end

    @property
    def forbidden(self) -> tuple[int, ...]:
        return tuple(token for token in super().forbidden if token != self.end)

    @property
    def reads(self) -> Reads:
        """A text is read as a conversation with its answer, so that what is inspected includes the turns and their
        ends."""
        return Reads(self.model, Frame([], [], []), self.conversations, sums_up="last", says=True)

    def conversations(self, texts: Sequence[str]) -> list[Ids]:
        """The tokens of each text (a user's message, or a JSON list of messages) as a conversation up to the end of its
        last answer, which is generated greedily where it is missing. Raises TextError."""
        return [self._conversation(messages_in(text)) for text in texts]

    def _conversation(self, messages: Sequence[Spoken]) -> Ids:
        if messages[-1]["role"] == "assistant":
            return self.written.learning(messages).ids
        asked, reply = self.asked(messages, LOOKED_AT), self.chat(messages, tokens=LOOKED_AT, temperature=0.0)
        return [*asked.ids, *reply.tokens, *([self.end] if reply.finish == "stop" else [])]

    def prompt(self, messages: Sequence[Spoken]) -> str:
        """The conversation as the template renders it, up to where the next answer begins. Raises InputError."""
        return self.template.render(messages, add_generation_prompt=True)

    @checks_arguments
    def chat(
        self,
        messages: str | Sequence[Spoken],
        *,
        tokens: int = 200,
        stop: str | Sequence[str] = (),
        **sampling: Unpack[SamplingOptions],
    ) -> Reply:
        """Answers the last message of a conversation; a string is a conversation of a single message. An answer has at
        most `tokens` tokens, drawn as described in `Sampling`. Where the conversation outgrows the model's context, its
        first turns are not read, except the system's. Raises InputError."""
        (reply,) = self.chat_each([as_messages(messages)], tokens=tokens, stop=stop, **sampling)
        return reply

    @checks_arguments
    def chat_each(
        self,
        conversations: Sequence[str | Sequence[Spoken]],
        *,
        tokens: int = 200,
        stop: str | Sequence[str] = (),
        batch: int = 32,
        **sampling: Unpack[SamplingOptions],
    ) -> list[Reply]:
        """Like `chat`, for several conversations, at most `batch` at a time; they do not influence each other. Raises
        InputError."""
        how, asked = Sampling(**sampling), [self.asked(as_messages(own), tokens) for own in conversations]
        made = [Reply("assistant", "", [], [], "", one.forgotten) for one in asked]
        if not asked:
            return []
        writer = self.answering(asked, how, stop, rows=batch)
        while len(writer):
            for piece in writer.step():
                made[piece.text] = longer(made[piece.text], piece)
        return [one._replace(content=one.content.removeprefix(self.written.lead)) for one in made]

    def greedy_each(self, conversations: Sequence[Sequence[Spoken]], *, tokens: int) -> list[Reply | None]:
        """The answers by greedy decoding; None where there is nothing to answer, or no room for the answer."""

        def fits(messages: Sequence[Spoken]) -> bool:
            try:
                return bool(self.asked(messages, tokens).ids)
            except TextError:
                return False

        able = [own for own in conversations if fits(own)]
        made = iter(self.chat_each(able, tokens=tokens, temperature=0.0))
        numbers = {id(own) for own in able}
        return [next(made) if id(own) in numbers else None for own in conversations]

    @checks_arguments
    def chat_stream(
        self,
        messages: str | Sequence[Spoken],
        *,
        tokens: int = 200,
        stop: str | Sequence[str] = (),
        **sampling: Unpack[SamplingOptions],
    ) -> Generator[str, None, Reply]:
        """Yields the content of the reply that `chat` returns, piece by piece as it is generated, and returns that
        reply."""
        asked = self.asked(as_messages(messages), tokens)
        return self._streamed(asked, self.answering([asked], Sampling(**sampling), stop, rows=1))

    def _streamed(self, asked: ChatPrompt, writer: Writer) -> Generator[str, None, Reply]:
        made, shown = Reply("assistant", "", [], [], "", asked.forgotten), 0
        lead = self.written.lead
        while len(writer):
            for piece in writer.step():
                made = longer(made, piece)
            content = made.content.removeprefix(lead)
            if len(content) > shown and not lead.startswith(made.content):
                yield content[shown:]
                shown = len(content)
        return made._replace(content=made.content.removeprefix(lead))

    @checks_arguments
    def asked(self, messages: Sequence[Spoken], tokens: int) -> ChatPrompt:
        """The prompt for the answer to a conversation, shortened so that there is room for `tokens` more tokens, or for
        a fourth of the context if that is less. Raises TextError where there is nothing to answer, or where it is too
        long."""
        if is_one(messages) or not all(isinstance(one, Mapping) for one in messages):
            what = "messages are a list of objects, each with a role and a content"
            raise InputError(what, fix='give a text, or [{"role": "user", "content": "..."}]')
        messages = messages_of([*map(dict, messages)]) if messages else []
        if not messages or messages[-1]["role"] in ("assistant", "system"):
            what = "the last message is not the user's: there is nothing to answer"
            raise TextError(what, fix='end with {"role": "user", "content": "..."}')
        if not (messages[-1].get("content") or "").strip():
            raise TextError("an empty turn: there is nothing to answer", fix="say something")
        if tokens < 1:
            raise InputError(f"at most {tokens} new tokens", fix="ask for 1 or more")
        free = max(2, min(tokens, self.context // LEAST))
        ids, forgotten = fitted_prompt(self.written, messages, self.context - free)
        return ChatPrompt(ids, min(tokens, self.context - len(ids)), forgotten)

    def answering(
        self, asked: Sequence[ChatPrompt], how: Sampling, stop: str | Sequence[str] = (), *, rows: int
    ) -> Writer:
        """A writer with these prompts, at most `rows` at a time, each with its own seed; they are numbered from 0."""
        writer = self.writer(rows=rows, size=max(len(one.ids) + one.tokens - 1 for one in asked))
        for i, one in enumerate(asked):
            seeded = replace(how, seed=counter_seed(how.seed, i, 0))
            writer.add(one.ids, seeded, tokens=one.tokens, stop=stop)
        return writer

    def evaluate_answers(self, conversations: Sequence[Conversation], *, answers: int = 0) -> "ChatScores":
        """The loss of all answers in nats per token; and, with `answers`, how greedily generated answers compare with
        the last answers of that many conversations, evenly spread: chrF, and the share that is equal."""
        found = learnable(self.written, conversations, self.context, "data")
        notes = [*found.notes]
        rows, order = max(1, READ // self.context), range(len(found.texts))
        nats, count = 0.0, 0
        with torch.inference_mode():
            for batch in pack_texts(found.texts, order, row=self.context, rows=rows):
                loss = next_token_loss(self.model, batch, across=False)
                nats, count = nats + float(loss.total), count + int(loss.count)
        scores: dict[str, Any] = {"loss": nats / count, "perplexity": perplexity(nats / count)}
        if number := min(answers, len(conversations)):
            own = [conversations[i * len(conversations) // number] for i in range(number)]
            made = self.greedy_each([one[:-1] for one in own], tokens=max(1, self.context // 2))
            pairs = [
                (reply.content.strip(), one[-1]["content"].strip())
                for reply, one in zip(made, own, strict=True)
                if reply is not None
            ]
            if pairs:
                compared = score_bleu([said for said, _ in pairs], [[right] for _, right in pairs])
                scores |= {"chrf": compared.chrf, "exact": compared.exact, "answers": len(pairs)}
            if len(pairs) < number:
                what = counted(number - len(pairs), "question")
                notes.append(f"no room for an answer is left by {what}, not compared")
        return ChatScores(scores | {"tokens": count}, tuple(notes))


def longer(reply: Reply, piece: TextPiece) -> Reply:
    """The reply with this piece appended."""
    if piece.token is not None:
        reply.tokens.append(piece.token)
        reply.logprobs.append(piece.logprob)
    return reply._replace(content=reply.content + piece.piece, finish=piece.finish or reply.finish)


def as_messages(given: str | Sequence[Spoken]) -> Sequence[Spoken]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def messages_in(line: str) -> Sequence[Spoken]:
    """Reads a line as a conversation: a JSON list of messages, or a user's message. Raises TextError as `listed_in`
    does."""
    return listed_in(line) or as_messages(line)


def listed_in(line: str) -> Sequence[Spoken] | None:
    """The messages of a line that is a JSON list of objects; None for any other line. Raises TextError for objects that
    are not messages."""
    try:
        found = json.loads(line) if line.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        return None
    try:
        return messages_of(found)
    except InputError as error:
        raise TextError(error.what, fix=error.fix) from None


def with_system(messages: Sequence[Spoken], system: str) -> Sequence[Spoken]:
    if not system or any(one["role"] == "system" for one in messages):
        return messages
    return [{"role": "system", "content": system}, *messages]


def answer_turns(model: ChatModel, texts: Sequence[str], options: ChatOptions) -> Iterator[ChatRecord]:
    """A reply to each text: a user's message, or a JSON list of messages."""
    turns = [with_system(messages_in(text), options.system) for text in texts]
    made = model.chat_each(turns, tokens=options.tokens, stop=options.stop, **options.sampling)
    yield from (reply.record() for reply in made)


def written_out(template: ChatTemplate, text: str, system: str) -> str:
    """The prompt for the answer to a line."""
    return template.render(with_system(messages_in(text), system), add_generation_prompt=True)


ASK = Ask(answer_turns, ChatOptions, gathers=lambda options: False)


def score_chat(model: ChatModel, options: ChatScoring) -> Iterator[Scored]:
    for name, conversations in read_asked(options.path).items():
        found = model.evaluate_answers(conversations, answers=options.answers)
        yield Scored(name, found.scores, None, found.notes, map(repr, conversations))
