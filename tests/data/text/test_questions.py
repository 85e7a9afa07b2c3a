"""Questions: both layouts say the same, and what is wrong is named."""

import json

import pytest

from heedful.data.text.questions import Question, Span, read_answered, read_questions
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError

TEXT = "Ada lives in Rome. Rome is old."
WANTED = [("Where?", (Span("Rome", 13),)), ("Since when?", ())]


def squad(answers=({"text": "Rome", "answer_start": 13},), articles=1):
    qas = [{"id": "1", "question": "Where?", "answers": [*answers]}, {"question": "Since when?", "answers": []}]
    return {"data": [{"title": "Ada", "paragraphs": [{"context": TEXT, "qas": qas}]}] * articles}


def test_layouts(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(squad(), indent=1))
    rows = [{"question": "Where?", "context": TEXT, "answer": "Rome"}, {"question": "Since when?", "context": TEXT}]
    rows[1]["answer"] = ""
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows[0] = {"question": "Where?", "context": TEXT, "answers": {"text": ["Rome"], "answer_start": [13]}}
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("a.json", "b.jsonl", "c.jsonl"):
        found = read_answered(tmp_path / name)
        assert [(one.question, one.answers) for one in found] == WANTED
        assert all(one.context == TEXT for one in found)


def test_whole_articles_are_held_out(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(squad(articles=20)))
    found = read_questions(tmp_path / "a.json")
    assert (len(found.train), len(found.valid)) == (36, 4)
    assert not {one.article for one in found.train} & {one.article for one in found.valid}


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("a.json", squad([{"text": "Rome", "answer_start": 12}]), "question 1: the answer 'Rome' does not stand there"),
        ("a.json", squad([{"text": " ", "answer_start": 3}]), "question 1: an answer is"),
        ("a.json", {"rows": []}, 'no "data" that is a list'),
        ("a.jsonl", {"question": "q", "context": "c", "answer": "d"}, "a.jsonl:1: the answer 'd' does not stand"),
        ("a.jsonl", {"question": "q"}, 'a.jsonl:1: no "context" that is a text'),
        ("a.jsonl", {"context": "q"}, 'a.jsonl:1: no "question" that is a text'),
        ("a.jsonl", [1], 'a.jsonl:1: no "context" that is a text'),
        ("a.tsv", [1], "not a kind of file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, data, what):
    (tmp_path / name).write_text(json.dumps(data))
    with pytest.raises(InputError, match=what):
        read_answered(tmp_path / name)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "chars", "bytes"])
def test_tokens_know_their_characters(kind):
    text = "Ünï, 42 größer  as\n漢字 🙂 end"
    tokenizer = train_tokenizer([text] * 3, kind=kind, size=400)
    ((ids, offsets),) = tokenizer.encode_placed([text])
    assert ids == tokenizer.encode([text])[0]
    assert {place for begin, end in offsets for place in range(begin, end)} == {*range(len(text))}
    for index, (begin, end) in zip(ids, offsets, strict=True):
        piece = tokenizer.decode_whole([index])
        if "\ufffd" not in piece:
            assert text[begin:end].strip() == piece.strip()


def test_a_question_is_plain():
    assert Question("q", "c", (), "a").answers == ()
