"""Converts prompts and answers to the tokens that a language model reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from heedful.data.text.chat_template import ChatTemplate
from heedful.data.text.chat_tokens import ChatTokens
from heedful.data.text.conversations import Message
from heedful.data.text.judgements import is_conversation
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError, MissingError
from heedful.exchange.hub import CHAT
from heedful.tasks.chat.template import special_names, template_in
from heedful.tasks.chat.use import messages_in
from heedful.tasks.generate.likelihood import begun_alike


class Answered(NamedTuple):
    """The tokens of a prompt, its answer and the end token; the first `asked` belong to the prompt."""

    ids: Ids
    asked: int

    def prompt(self) -> Ids:
        return self.ids[: self.asked]

    def answer(self) -> Ids:
        return self.ids[self.asked :]


@dataclass(frozen=True)
class Prompting:
    """Prompting of a model that continues texts: a prompt is a text, and its answer is the continuation up to the end
    token.

    `about` is the content of the model's task.json.
    """

    tokenizer: Tokenizer
    about: Mapping[str, Any]

    @property
    def before(self) -> Ids:
        return list(self.about.get("before", [self.tokenizer.bos]))

    @property
    def end(self) -> int:
        return self.about.get("end", self.tokenizer.bos)

    @property
    def forbidden(self) -> tuple[int, ...]:
        """Tokens that the model never generates."""
        own = (index for index in self.tokenizer.controls if index != self.end)
        return tuple(self.about.get("forbidden", own))

    def prompts(self, prompts: Sequence[str]) -> list[Ids]:
        """The tokens of each prompt. Raises InputError for a conversation."""
        if any(map(is_conversation, prompts)):
            what = "a prompt that is a conversation, for a model that continues texts"
            raise InputError(what, fix="give prompts that are texts, or a model of heed train chat")
        return [[*self.before, *ids] for ids in self.tokenizer.encode_whole(prompts)]

    def answered(self, prompts: Sequence[str], answers: Sequence[str]) -> list[Answered]:
        """Encodes each prompt with its answer as one text; the tokens from the first that differs from the prompt's
        alone belong to the answer."""
        alone = self.prompts(prompts)
        whole = self.tokenizer.encode_whole([a + b for a, b in zip(prompts, answers, strict=True)])
        found = []
        for begun, ids in zip(alone, whole, strict=True):
            both = [*self.before, *ids]
            found.append(Answered([*both, self.end], max(1, begun_alike(begun, both))))
        return found

    def text(self, begun: Ids, made: Ids) -> str:
        """The text of an answer's tokens, which follow the prompt's."""
        return self.tokenizer.decode_after(begun, [index for index in made if index != self.end])

    def files(self) -> dict[str, bytes]:
        """The files in a run's folder that it needs besides the tokenizer and task.json."""
        return {}


@dataclass(frozen=True)
class ChatPrompting(Prompting):
    """Prompting of a chat model: a prompt is a conversation, or a user's message."""

    written: ChatTokens

    @property
    def end(self) -> int:
        return self.written.end

    def prompts(self, prompts: Sequence[str]) -> list[Ids]:
        """The tokens of each prompt. Raises InputError for a conversation that the template rejects."""
        return [self.written.prompt(messages_in(prompt)) for prompt in prompts]

    def answered(self, prompts: Sequence[str], answers: Sequence[str]) -> list[Answered]:
        found = []
        for prompt, answer in zip(prompts, answers, strict=True):
            said: Message = {"role": "assistant", "content": answer}
            text = self.written.learning([*messages_in(prompt), said])
            # Earlier answers belong to the prompt.
            asked = max((i for i, own in enumerate(text.learnt, 1) if not own), default=0)
            found.append(Answered(text.ids, max(1, asked)))
        return found

    def text(self, begun: Ids, made: Ids) -> str:
        return super().text(begun, made).removeprefix(self.written.lead)

    def files(self) -> dict[str, bytes]:
        return {CHAT: self.written.template.source.encode()}


def prompting_of(folder: Path, tokenizer: Tokenizer, about: Mapping[str, Any]) -> Prompting:
    """The prompting of the model in a folder, with this task.json. Raises MissingError where the chat template is
    missing."""
    if not about.get("chat"):
        return Prompting(tokenizer, about)
    source = template_in(folder)
    if source is None:
        what = "its chat template is gone"
        raise MissingError(what, where=str(folder), fix="get the whole folder from a copy")
    template = ChatTemplate(source, special_names(tokenizer))
    return ChatPrompting(tokenizer, about, ChatTokens(tokenizer, template))


def cut_to(row: Answered, most: int) -> Answered:
    """The last `most` tokens of the row, of which at least one counts as the prompt's."""
    beyond = max(0, len(row.ids) - most)
    return Answered(row.ids[beyond:], max(1, row.asked - beyond))
