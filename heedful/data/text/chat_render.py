"""A program that renders chat templates: it reads requests from standard input, a JSON object a line, and writes an
answer for each. It needs only the standard library and Jinja.

A template is a program by whoever published a model. It runs in Jinja's sandbox, and an endless loop, or a string of
gigabytes, costs only this process: `heedful.data.text.chat_template` ends it after a few seconds, and the system limits
it to `MEMORY` bytes where that is supported (on Linux).
"""

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

from jinja2 import Template, nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

PATIENCE = 60  # seconds for one conversation; then it ends itself, in case its parent is gone
MEMORY = 512 << 20  # bytes
LONGEST = 1 << 24  # characters of a rendered text


class TooLongError(Exception):
    """A template writes more than LONGEST characters."""


class Generation(Extension):
    """Implements `{% generation %} ... {% endgeneration %}`, which encloses what the assistant said."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it
    written = 0  # number of blocks in the text so far

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_answer"), [], [], body).set_lineno(line)

    def _answer(self, caller: Macro) -> str:
        self.written += 1
        return GenerationBlock(caller())


class GenerationBlock(str):
    """The output of a `generation` block: its type marks its position among the pieces of a text."""

    __slots__ = ()


class PlainNamespace(Namespace):
    """Jinja's namespace, without names that begin with an underscore, which could leave the sandbox."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # no named parameters, so that a template may use the name `self`
        own, given = args[0], dict(*args[1:], **kwargs)
        for name in given:
            _check_name(name)
        Namespace.__init__(own, given)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"the name {name!r} of a namespace begins with an underscore")


class PlainDict:
    """The `dict` of templates: it can be called, but has no attributes of the type."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)


def _raise(message: object) -> None:
    raise TemplateError(str(message))


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Replaces Jinja's filter, which escapes HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@lru_cache(maxsize=8)
def compiled(source: str) -> tuple[Template, Generation]:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    own = {"raise_exception": _raise, "strftime_now": _now, "dict": PlainDict(), "namespace": PlainNamespace}
    environment.globals |= own
    marks = environment.extensions[Generation.identifier]
    assert isinstance(marks, Generation)
    return environment.from_string(source), marks


def render(source: str, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the text, and the spans (start, end) that `generation` blocks wrote; or the error, in one line, and
    whether it is `harmful`. `lost` counts blocks inside a macro or the like, whose position in the text is unknown."""
    try:
        template, marks = compiled(source)
        marks.written = 0
        text, answers = _joined(template.generate(values))
    except TooLongError:
        return {"error": f"it writes more than {LONGEST:,} characters", "harmful": True}
    except TemplateSyntaxError as error:
        return {"error": f"line {error.lineno}: {error.message}"}
    except RecursionError:
        return {"error": "it is nested too deeply"}
    except TemplateError as error:
        return {"error": error.message or type(error).__name__}
    except MemoryError:
        raise
    except Exception as error:  # its expressions may raise anything
        return {"error": f"{type(error).__name__}: {error}"}
    return {"text": text, "answers": answers, "lost": marks.written - len(answers)}


def _joined(pieces: Iterator[str]) -> tuple[str, list[tuple[int, int]]]:
    found, answers, length = [], [], 0
    for piece in pieces:
        if isinstance(piece, GenerationBlock):
            answers.append((length, length + len(piece)))
        length += len(piece)
        if length > LONGEST:
            raise TooLongError
        found.append(piece)
    return "".join(found), answers


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such module, macOS no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _end_after(seconds: int) -> None:
    """Ends this process after so many seconds; 0 cancels that."""
    if sys.platform != "win32":
        signal.alarm(seconds)


def main() -> None:
    _limit_memory()
    _tell({})  # ready
    for line in sys.stdin:
        _end_after(PATIENCE)
        request = json.loads(line)
        _tell(render(request["source"], request["values"]))
        _end_after(0)


if __name__ == "__main__":
    main()
