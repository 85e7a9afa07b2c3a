"""Conversations that fit a model's context: what is too long loses its first turns, and never what the system said."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from heedful.data.batches import Text
from heedful.data.text.chat_tokens import ChatTokens
from heedful.data.text.conversations import Conversation
from heedful.errors import InputError, TextError

Ids = list[int]
Message = Mapping[str, Any]


class Learnable(NamedTuple):
    """Conversations as texts to learn from, and notes on those that were too long."""

    texts: list[Text]
    notes: list[str]


def later(messages: Sequence[Message]) -> Sequence[Message] | None:
    """A conversation from its next question on, with what the system said; None where no other question follows."""
    own = [i for i, one in enumerate(messages) if one["role"] == "user"]
    if len(own) < 2:
        return None
    said = [one for one in messages[: own[1]] if one["role"] == "system"]
    return [*said, *messages[own[1] :]]


def fitted_prompt(tokens: ChatTokens, messages: Sequence[Message], room: int) -> tuple[Ids, int]:
    """The prompt for the next answer in at most so many tokens, and how many of the turns it left out. Raises
    TextError where the last question alone is longer."""
    kept: Sequence[Message] | None = messages
    ids: Ids = []
    while kept:
        ids = tokens.prompt(kept)
        if len(ids) <= room:
            return ids, len(messages) - len(kept)
        kept = later(kept)
    what = f"{len(ids):,} tokens of the last question, but the model reads at most {room:,} of them"
    raise TextError(what, fix="ask in fewer words")


def learnable(tokens: ChatTokens, conversations: Sequence[Conversation], context: int, name: str) -> Learnable:
    """Whole conversations, and the ends of those that are longer than the context; an exchange that is longer alone is
    left out. Raises InputError where none is left."""
    texts, cut, left = [], 0, 0
    for conversation in conversations:
        kept: Sequence[Message] | None = conversation
        text = tokens.learning(conversation)
        while len(text.ids) - 1 > context and (kept := later(kept or ())) is not None:
            text = tokens.learning(kept)
        if len(text.ids) - 1 > context:
            left += 1
            continue
        cut += kept is not conversation
        texts.append(text)
    notes = []
    if cut:
        what = f"{cut:,} conversations longer than the context of {context:,} tokens lose their first turns"
        notes.append(f"{name}: {what}")
    if left:
        what = f"{left:,} conversations whose last question and answer are longer than {context:,} tokens are left out"
        notes.append(f"{name}: {what}")
    if not texts:
        what = f"no conversation of at most {context:,} tokens"
        raise InputError(what, where=name, fix="--set model.context_length=512")
    return Learnable(texts, notes)
