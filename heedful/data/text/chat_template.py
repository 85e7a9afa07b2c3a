"""Chat templates: how a conversation is rendered as one text for a language model.

A template is a Jinja program that is published with a model (`chat_template.jinja`). The result equals that of
`apply_chat_template` of transformers, character for character. It is rendered in a process of its own
(`heedful.data.text.chat_render`), so that a hostile template that uses up memory or never ends does no harm to this
one.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from heedful.data.lines import sanitise
from heedful.errors import InputError

PROGRAM = Path(__file__).with_name("chat_render.py")
STARTING = 60  # seconds for its process to start
SECONDS = 5  # seconds for one conversation
LONGEST_SOURCE = 1 << 20  # characters of a template
DEEPEST = 64  # nested lists and objects
REASONING = (
    "reasoning_content",
    "thinking",
    "reasoning",
)  # names of the reasoning before an answer; the first that exists is used
FIX = "mend the template, or choose another"

# The simplest template: a question, <EOQ>, the answer, and the EOS token; a system message is the first line.
QUESTION_ANSWER = """\
{%- for message in messages -%}
    {%- if message.role == 'system' and loop.first -%}
        {{- message.content | trim + '\\n' -}}
    {%- elif message.role == 'user' -%}
        {{- message.content | trim + ' <EOQ>' -}}
    {%- elif message.role == 'assistant' -%}
        {%- generation -%}
            {{- ' ' + message.content | trim + eos_token -}}
        {%- endgeneration -%}
    {%- else -%}
        {{- raise_exception('a message of the role ' + message.role + ' cannot stand here') -}}
    {%- endif -%}
{%- endfor -%}
"""


@dataclass(frozen=True)
class Rendered:
    """A conversation as one text, and the spans of characters (begin, end) that the assistant said."""

    text: str
    answers: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ChatTemplate:
    """A template's `source`, and the special tokens that it may use (`bos_token`, `eos_token`, ...)."""

    source: str
    tokens: Mapping[str, str] = field(default_factory=dict)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> str:
        """Renders the conversation as one text; with `add_generation_prompt`, up to the beginning of the assistant's
        next turn.

        A message has a `role` and a `content`, and whatever else the template reads. Raises InputError for an invalid
        template, or one that refuses these messages, or takes too much time, memory or text.
        """
        return self._answer(messages, add_generation_prompt, tools)["text"]

    def mark(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] | None = None
    ) -> Rendered:
        """As `render`, with the spans that the template's `{% generation %}` blocks wrote: empty if it has no such
        blocks. Raises InputError also if the position of a block in the text is unknown."""
        answer = self._answer(messages, False, tools)
        if answer["lost"]:
            raise _refused("a generation block inside a macro or a filter, whose place in the text cannot be told")
        return Rendered(answer["text"], tuple((start, end) for start, end in answer["answers"]))

    def refuse_harmful(self) -> None:
        """Raises InputError for a template that takes too much time, memory or text for a word."""
        self._answer([{"role": "user", "content": "a"}], True, None, harm_only=True)

    def _answer(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        tools: Sequence[Mapping[str, Any]] | None,
        *,
        harm_only: bool = False,
    ) -> dict[str, Any]:
        if len(self.source) > LONGEST_SOURCE:
            raise _refused(f"{len(self.source):,} characters, more than the {LONGEST_SOURCE:,} that are read")
        values = {
            **_plain(self.tokens),
            "messages": [_with_reasoning(_plain(message)) for message in messages],
            "tools": _plain(tools),
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
        }
        answer = _renderer(os.getpid()).ask({"source": self.source, "values": values})
        if "error" in answer and (answer.get("harmful") or not harm_only):
            raise _refused(" ".join(sanitise(answer["error"]).split()))
        return answer


def _refused(what: str) -> InputError:
    return InputError(what if len(what) <= 500 else f"{what[:500]} ...", where="chat template", fix=FIX)


def _plain(value: Any, depth: int = 0) -> Any:
    """Converts a value to plain JSON types, with texts that are valid for UTF-8."""
    if depth > DEEPEST:
        raise InputError(f"a message has more than {DEEPEST} lists and objects inside one another", fix="flatten it")
    match value:
        case str():
            return sanitise(value)
        case None | bool() | int() | float():
            return value
        case Mapping():
            return {sanitise(str(key)): _plain(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, depth + 1) for item in value]
    fix = "give texts, numbers, lists and objects"
    raise InputError(f"a message has a {type(value).__name__}, which JSON cannot hold", fix=fix)


def _with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    """Adds the reasoning of a message under both names that templates use."""
    reasoning = next((message[name] for name in REASONING if message.get(name) is not None), None)
    return message if reasoning is None else {"thinking": reasoning, **message, "reasoning_content": reasoning}


class Renderer:
    """The process that renders templates. It starts with the first request, and again after it was ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._process is None:
                self._process = self._started()
            answer, late = None, False
            try:
                answer, late = self._exchange(self._process, json.dumps(request), SECONDS)
            finally:
                if answer is None:  # it ended, or this was interrupted and the answer is pending
                    self.end()
        if answer is not None:
            return answer
        limit = f"more than {SECONDS} s for one conversation" if late else "more memory than it may have"
        return {"error": f"it takes {limit}", "harmful": True}

    def _started(self) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="ascii",
            start_new_session=True,  # Ctrl-C in a terminal must reach only this process
        )
        if self._exchange(process, None, STARTING)[0] is None:
            process.kill()
            process.wait()
            raise InputError("the process that renders chat templates did not start", where=str(PROGRAM))
        return process

    @staticmethod
    def _exchange(
        process: "subprocess.Popen[str]", request: str | None, seconds: int
    ) -> tuple[dict[str, Any] | None, bool]:
        """Sends a request, and returns the answer (None: the process ended), and whether it was killed for taking too
        long."""
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            if request is not None:
                process.stdin.write(request + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        except OSError:  # the process ended before it read everything
            line = ""
        finally:
            timer.cancel()
        return (json.loads(line) if line.endswith("\n") else None), late.is_set()

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@lru_cache(maxsize=1)
def _renderer(process: int) -> Renderer:
    """The renderer of this process: a forked process gets its own."""
    renderer = Renderer()
    atexit.register(renderer.end)
    return renderer
