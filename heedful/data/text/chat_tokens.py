"""Converts conversations to tokens: a chat template renders them, and each control token in the result becomes its id.

Control tokens in the text of a message do not: a user's "<|im_end|>" is ordinary characters wherever it occurs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heedful.data.stored import Text
from heedful.data.text.chat_template import ChatTemplate
from heedful.data.text.conversations import Message
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError

Span = tuple[int, int]  # characters, from `begin` to before `end`
GUARDS = range(0xFDD0, 0xFDF0)  # noncharacters, which no text contains (The Unicode Standard, 23.7)
FIX = "take a template that has {% generation %} around what the assistant says"


class ChatTokens:
    """Converts conversations to the tokens of exactly the text that the template renders.

    `end` is the token that ends each of the assistant's turns, and `lead` the white space that the template puts before
    them. Raises InputError for a template without such a token.
    """

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        self.tokenizer, self.template = tokenizer, template
        names = dict(zip(tokenizer.controls, tokenizer.pieces(tokenizer.controls), strict=True))
        self._controls = {name: index for index, name in names.items() if name}
        longest = sorted(self._controls, key=len, reverse=True)
        self._spelled = re.compile("|".join(map(re.escape, longest)))
        self._literal = tokenizer.literal()
        asked: Message = {"role": "user", "content": "a"}
        begun, whole = (
            template.render([asked], add_generation_prompt=True),
            template.render([asked, {"role": "assistant", "content": "b"}]),
        )
        between = whole.removeprefix(begun).partition("b")[0] if whole.startswith(begun) else ""
        self.lead = between if between.isspace() else ""
        self.end = self.learning([asked, {"role": "assistant", "content": "b"}]).ids[-1]
        if self.end not in names:
            what = "a chat template after whose answers no control token stands"
            raise InputError(what, fix="name one there, such as {{ eos_token }}")

    def prompt(self, messages: Sequence[Mapping[str, Any]]) -> Ids:
        """Returns the tokens up to the beginning of the assistant's next turn. Raises InputError if the template
        refuses the messages."""
        guard, guarded = self._guarded(messages)
        return self._encoded(self.template.render(guarded, add_generation_prompt=True), guard)[0]

    def learning(self, messages: Sequence[Mapping[str, Any]]) -> Text:
        """Returns the tokens of a conversation up to the end of its last answer, and which of them are the assistant's,
        including the ends of its turns. Raises InputError if that cannot be determined."""
        guard, guarded = self._guarded(messages)
        marked = self.template.mark(guarded)
        said = _weighed(marked.answers or self._said(marked.text, guarded), messages)
        ids, spans = self._encoded(marked.text, guard)
        learnt = [any(begin <= first < end for begin, end in said) for first, _ in spans]
        length = max((i for i, own in enumerate(learnt, 1) if own), default=0)
        if not length:
            raise InputError("a chat template that writes nothing of what the assistant says", fix=FIX)
        return Text(ids[:length], learnt[:length])

    def torn(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the prompt for the last answer is not a prefix of the whole conversation: a token may join its end
        and the answer's first word, so that generation would begin elsewhere than in training."""
        prompt = self.prompt(messages[:-1])
        return self.learning(messages).ids[: len(prompt)] != prompt

    def _guarded(self, messages: Sequence[Mapping[str, Any]]) -> tuple[str, Sequence[Mapping[str, Any]]]:
        """Inserts a guard character into each string of the messages that would be read as a control token. Returns the
        guard and the messages; "" if no message contains such a string."""
        texts = [text for one in messages for text in _texts(one)]
        if not any(map(self._spelled.search, texts)):
            return "", messages
        guard = next((sign for sign in map(chr, GUARDS) if not any(sign in text for text in texts)), "")
        if not guard:
            raise InputError("control tokens among characters that no text has", fix="leave them out")

        def apart(value: Any) -> Any:
            match value:
                case str():
                    return self._spelled.sub(lambda found: found[0][0] + guard + found[0][1:], value)
                case Mapping():
                    return {key: apart(item) for key, item in value.items()}
                case list() | tuple():
                    return [apart(item) for item in value]
            return value

        return guard, [apart(one) for one in messages]

    def _encoded(self, text: str, guard: str) -> tuple[Ids, list[Span]]:
        """Returns the tokens of a rendered text, and the span of characters of each."""
        if self.tokenizer.special.spelled and not guard:
            return self.tokenizer.encode_placed([text], whole=True)[0]
        ids: Ids = []
        spans: list[Span] = []
        begin = 0
        for found in self._spelled.finditer(text):
            self._add(text[begin : found.start()], begin, guard, ids, spans)
            ids.append(self._controls[found[0]])
            spans.append(found.span())
            begin = found.end()
        self._add(text[begin:], begin, guard, ids, spans)
        return ids, spans

    def _add(self, text: str, begin: int, guard: str, ids: Ids, spans: list[Span]) -> None:
        """Appends the tokens of a text between control tokens, without the guards."""
        at = [i for i, sign in enumerate(text) if sign != guard] + [len(text)]
        kept = text.replace(guard, "") if guard else text
        own, covered = self._literal.encode_placed([kept], whole=True)[0]
        ids += own
        spans += [(begin + at[first], begin + at[last]) for first, last in covered]

    def _said(self, text: str, messages: Sequence[Mapping[str, Any]]) -> list[Span]:
        """Finds the assistant's turns in a text whose template does not mark them. Each begins where the model would
        begin to generate it, or else at its first word, and ends after the next control token."""
        said, after = [], 0
        for i, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            before, content = self.template.render(messages[:i], add_generation_prompt=True), message["content"].strip()
            begins = len(before) if text.startswith(before) else self._place(text, messages, i)
            found = text.find(content, max(begins, after))
            if found < 0:
                raise InputError("a chat template that changes what the assistant says", fix=FIX)
            after = found + len(content)
            ended = self._spelled.search(text, after)
            after = ended.end() if ended else after
            said.append((begins if text.startswith(before) else found, after))
        return said

    def _place(self, text: str, messages: Sequence[Mapping[str, Any]], i: int) -> int:
        """Returns the position of a message in the rendered text: where another character appears if it is put in its
        place. Raises InputError if the text before it changes then."""
        sign = next((sign for sign in map(chr, GUARDS) if sign not in text), "")
        other = [*messages[:i], {**messages[i], "content": sign}, *messages[i + 1 :]]
        before, *found = self.template.render(other).split(sign) if sign else [""]
        if not found or not text.startswith(before):
            raise InputError("a chat template that changes what the assistant says", fix=FIX)
        return len(before)


def _weighed(said: Sequence[Span], messages: Sequence[Mapping[str, Any]]) -> Sequence[Span]:
    """Returns the spans of the assistant's turns that are trained on. Raises InputError if spans and turns cannot be
    matched."""
    weights = [one.get("weight", 1) for one in messages if one["role"] == "assistant"]
    if all(weights):
        return said
    if len(said) != len(weights):
        what = f"a chat template with {len(said)} marks for {len(weights)} answers, of which not all are learnt"
        raise InputError(what, fix="take a template that has one {% generation %} around each answer")
    return [span for span, weight in zip(said, weights, strict=True) if weight]


def _texts(value: Any) -> Iterator[str]:
    """Yields all strings in a message."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
