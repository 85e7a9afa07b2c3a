"""Conversations that fit a model's context: one that is too long loses its first turns, but never the system's
messages."""

import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from heedful.data.stored import Text
from heedful.data.text.chat_tokens import ChatTokens
from heedful.data.text.conversations import Conversation
from heedful.data.tokenizer import Ids
from heedful.errors import InputError, TooLongError, are, counted

Message = Mapping[str, Any]
Read = TypeVar("Read")


class Learnable(NamedTuple):
    """Conversations as texts to train on, and notes on those that were too long."""

    texts: list[Text]
    notes: list[str]


def longest_end(
    messages: Sequence[Message], read: Callable[[Sequence[Message]], Read], fits: Callable[[Read], bool]
) -> tuple[Sequence[Message], Read]:
    """Shortens a conversation so that it fits: the whole, or the longest part that begins with one of its later
    questions, with the system messages before it. Where none fits, the part that begins with the last question. Returns
    the messages, and `read` of them. Searches by bisection: it assumes that where a part fits, shorter ones do too."""
    begins = [0, *[i for i, one in enumerate(messages) if one["role"] == "user"][1:]]
    found: dict[int, Read] = {}

    def end(begin: int) -> Sequence[Message]:
        said = [one for one in messages[:begin] if one["role"] == "system"]
        return [*said, *messages[begin:]] if begin else messages

    def fitting(begin: int) -> bool:
        found[begin] = read(end(begin))
        return fits(found[begin])

    place = 0 if fitting(0) else bisect.bisect_left(begins, True, lo=1, key=fitting)
    begin = begins[min(place, len(begins) - 1)]
    return end(begin), found[begin]


def fitted_prompt(tokens: ChatTokens, messages: Sequence[Message], room: int) -> tuple[Ids, int]:
    """The prompt for the next answer in at most `room` tokens, and the number of turns that were left out. Raises
    TooLongError where the last question alone is longer."""
    kept, ids = longest_end(messages, tokens.prompt, lambda ids: len(ids) <= room)
    if len(ids) <= room:
        return ids, len(messages) - len(kept)
    what = f"{len(ids):,} tokens of the last question, but the model reads at most {room:,} of them"
    raise TooLongError(what, fix="ask in fewer words")


def learnt_end(tokens: ChatTokens, conversation: Conversation, context: int) -> tuple[Text | None, bool]:
    """The conversation as a text to train on, or its end, and whether it is the end; None where the last exchange alone
    is longer than the context."""
    kept, text = longest_end(conversation, tokens.learning, lambda text: len(text.ids) - 1 <= context)
    return (None, False) if len(text.ids) - 1 > context else (text, kept is not conversation)


def learnable(tokens: ChatTokens, conversations: Sequence[Conversation], context: int, name: str) -> Learnable:
    """The conversations as texts to train on; of those that are longer than the context, the end. A conversation whose
    last exchange alone is longer is left out. Raises InputError where none is left."""
    texts, cut, left = [], 0, 0
    for conversation in conversations:
        text, is_cut = learnt_end(tokens, conversation, context)
        left += text is None
        cut += is_cut
        texts += [] if text is None else [text]
    notes = told_of_long(name, context, cut=cut, left=left)
    if not texts:
        raise nothing_fits(name, context)
    return Learnable(texts, notes)


def told_of_long(name: str, context: int, *, cut: int, left: int) -> list[str]:
    """Notes on conversations that are longer than the context, and on those that are left out."""
    notes = []
    if cut:
        what = f"{counted(cut, 'conversation')} longer than the context of {context:,} tokens, without the first turns"
        notes.append(f"{name}: {what}")
    if left:
        whose = f"whose last question and answer are longer than {context:,} tokens"
        what = f"{counted(left, 'conversation')} {whose} {are(left)} left out"
        notes.append(f"{name}: {what}")
    return notes


def nothing_fits(name: str, context: int) -> InputError:
    what = f"no conversation of at most {context:,} tokens"
    return InputError(what, where=name, fix="--set model.context_length=512")
