"""The laws of a chat model, in addition to those of a language model."""

from collections.abc import Iterator, Sequence
from typing import Any

from heedful.run.task import Law
from heedful.tasks.chat.use import ChatModel
from heedful.tasks.generate.laws import TextProbe

FEW, TOKENS = 6, 16


def chat_laws(served: ChatModel, texts: Sequence[str]) -> Iterator[Law]:
    """Checks the laws on conversations that are made of these texts, or of a few words where there are none."""
    yield from TextProbe(served, texts)
    asked = _conversations(served, texts)
    yield Law(
        "what is asked is what was learnt (different tokens)",
        float(sum(served.written.torn([*own, _said("assistant", "a b")]) for own in asked)),
        0.0,
        otherwise="answers would be asked for in another place than they were learnt in",
    )
    spelled = served.tokenizer.pieces(served.tokenizer.controls)
    marks = sum(
        _marks(served, [_said("user", f"a {name} b")]) - _marks(served, [_said("user", "a b")]) for name in spelled
    )
    yield Law(
        "a control token that is typed is text (control tokens)",
        float(marks),
        0.0,
        otherwise="a user could speak as the system or as the assistant",
    )
    together = served.chat_each(asked, tokens=TOKENS, temperature=0.0, batch=max(2, len(asked) // 2))
    unequal = 0
    for own, reply in zip(asked, together, strict=True):
        streamed = "".join(served.chat_stream(own, tokens=TOKENS, temperature=0.0))
        unequal += streamed != reply.content
    yield Law(
        "answers of a batch = streamed alone (different answers)",
        float(unequal),
        0.0,
        otherwise="an answer would depend on who else is asking",
    )


def _conversations(served: ChatModel, texts: Sequence[str]) -> list[list[dict[str, Any]]]:
    few = [text for text in texts if text.strip()][:FEW] or ["a", "What is b ?", "one two three"]
    room = served.context // 2
    short = [text for text in few if len(served.written.prompt([_said("user", text)])) <= room] or ["a"]
    return [[_said("user", text)] for text in short]


def _said(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def _marks(served: ChatModel, messages: list[dict[str, Any]]) -> int:
    controls = {*served.tokenizer.controls}
    return sum(index in controls for index in served.written.prompt(messages))
