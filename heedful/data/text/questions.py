"""Questions whose answers are spans of a text."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from heedful.data.lines import LONGEST_LINE, json_line, json_lines, read_lines, sanitise
from heedful.data.parts import Parts, kind_of, read_parts
from heedful.errors import InputError

KINDS = (".json", ".jsonl")
EXAMPLE = 'write {"question": "...", "context": "...", "answer": "..."} on each line'


class Span(NamedTuple):
    """A span of characters in a context, from `begin` up to but not including `begin + len(text)`."""

    text: str
    begin: int


class Question(NamedTuple):
    """`answers` are alternatives; empty: the context does not contain the answer."""

    question: str
    context: str
    answers: tuple[Span, ...]
    article: str  # the context's source; questions from one article are held out together


def read_questions(path: str | Path) -> Parts[list[Question]]:
    """Reads questions as `read_answered`, in parts as `read_parts`; without validation data, whole articles are held
    out. Raises InputError or MissingError."""
    return read_parts(path, read_answered, kinds=KINDS, key=lambda one: one.article)


def read_answered(path: str | Path) -> list[Question]:
    """Reads the questions of one file.

    .json: as SQuAD (Rajpurkar et al. 2016, 2018), whose answers have their positions. .jsonl: objects with "question",
    "context" and "answer" or "answers", texts that are found in the context, at their first occurrence; or as in SQuAD.
    No answer, or an empty one: the context does not contain it. Raises InputError or MissingError.
    """
    path = Path(path)
    if kind_of(path) not in KINDS:
        raise InputError("not a kind of file that questions are read from", where=str(path), fix="give .json or .jsonl")
    lines = read_lines(path, longest=None if kind_of(path) == ".json" else LONGEST_LINE)
    if kind_of(path) == ".json":
        found = [*_squad(json_line("\n".join(lines), where=str(path)), str(path))]
    else:
        rows = [*json_lines(path, lines)]
        found = [_question(row, _text(row, "context", where), None, where) for where, row in rows]
    if not found:
        raise InputError("no question", where=str(path), fix=EXAMPLE)
    return found


def _squad(data: Any, where: str) -> Iterator[Question]:
    for n, article in enumerate(_list(data, "data", where)):
        place = f"{where}: article {n}"
        for paragraph in _list(article, "paragraphs", place):
            context = _text(paragraph, "context", place)
            if len(context) > LONGEST_LINE:
                what = f"a context of {len(context):,} characters, at most {LONGEST_LINE:,} are read"
                raise InputError(what, where=place, fix="give a paragraph or an article as a context")
            for row in _list(paragraph, "qas", place):
                own = f"{place}, question {row.get('id')}" if isinstance(row, dict) else place
                yield _question(row, context, f"{n} {article.get('title', '')}", own)


def _question(row: Any, context: str, article: str | None, where: str) -> Question:
    question, answers = _text(row, "question", where), row.get("answers", row.get("answer", []))
    if isinstance(answers, dict) and isinstance(answers.get("text"), list):  # as in Hugging Face's data sets
        begins = answers.get("answer_start") or [None] * len(answers["text"])
        answers = [{"text": text, "answer_start": b} for text, b in zip(answers["text"], begins, strict=False)]
    listed = answers if isinstance(answers, list) else [answers]
    spans = tuple(_span(one, context, where) for one in listed if one not in ("", None))
    return Question(question, context, spans, context if article is None else article)


def _span(answer: Any, context: str, where: str) -> Span:
    text, begin = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (answer, None)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"an answer is {json.dumps(answer)}, no text", where=where, fix=EXAMPLE)
    text = sanitise(text)
    begin = context.find(text) if begin is None else begin
    if type(begin) is not int or begin < 0 or not context.startswith(text, begin):
        raise InputError(f"the answer {text[:40]!r} does not stand there in its context", where=where)
    return Span(text, begin)


def _list(data: Any, key: str, where: str) -> list[Any]:
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise InputError(f'no "{key}" that is a list', where=where, fix="give a file like SQuAD's, or .jsonl")
    return found


def _text(data: Any, key: str, where: str) -> str:
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, str) or not found.strip():
        raise InputError(f'no "{key}" that is a text', where=where, fix=EXAMPLE)
    return sanitise(found)
