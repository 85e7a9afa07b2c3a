"""Conversations in every layout come out the same, and what is taken of a file, or left out, is said."""

import gzip
import json
from pathlib import Path

import pytest

from heedful.data.text.conversations import messages_of, read_asked, read_conversations
from heedful.errors import InputError

PAIRS = [("Who are you?", "A model."), ("Add 2 and 3.", "5"), ("Bye", "Goodbye, and take care.")] * 2 + [
    (f"Say {n}.", str(n)) for n in range(14)
]


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


LAYOUTS = {
    "messages": lambda q, a: {"messages": [user(q), assistant(a)]},
    "messages in parts": lambda q, a: {"messages": [user([{"type": "text", "text": q}]), assistant(a)]},
    "ShareGPT": lambda q, a: {"conversations": [{"from": "human", "value": q}, {"from": "gpt", "value": a}]},
    "Alpaca": lambda q, a: {"instruction": q, "input": "", "output": a},
    "self-instruct": lambda q, a: {"instruction": q, "instances": [{"input": "", "output": a}]},
    "Dolly": lambda q, a: {"instruction": q, "context": "", "response": a, "category": "open_qa"},
    "question and answer": lambda q, a: {"question": q, "answer": a},
    "prompt and completion": lambda q, a: {"prompt": [user(q)], "completion": [assistant(a)]},
    "prompt and response": lambda q, a: {"prompt": q, "response": a},
}


def written(path: Path, rows) -> Path:
    data = json.dumps(rows) if path.name.startswith("list") else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(data.encode()) if path.suffix == ".gz" else data.encode())
    return path


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["rows.jsonl", "list.json", "rows.jsonl.gz", "list.json.gz", "list.jsonl"])
def test_every_layout_gives_the_same(layout, name, tmp_path):
    path = written(tmp_path / name, [LAYOUTS[layout](*pair) for pair in PAIRS])
    parts = read_conversations(path)
    whole = [*parts.train, *parts.valid]
    assert sorted(map(json.dumps, whole)) == sorted(json.dumps([user(q), assistant(a)]) for q, a in PAIRS)
    assert {own[0]["content"] for own in parts.train}.isdisjoint(own[0]["content"] for own in parts.valid)
    assert f"{len(PAIRS)} conversations as {layout.split(' in ')[0]}" in parts.notes[0]


@pytest.mark.parametrize("header", ["", "question\tanswer\n", "Instruction\tOutput\n", "prompt\tresponse\n"])
def test_a_table_of_questions_and_answers(header, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(header + "".join(f"{q}\t{a}\n" for q, a in PAIRS))
    found = read_asked(path)["pairs.tsv"]
    assert found == [(user(q), assistant(a)) for q, a in PAIRS]


def test_the_parts_of_a_folder(tmp_path):
    for part in ("train", "valid", "test"):
        written(tmp_path / f"{part}.jsonl", [LAYOUTS["messages"](part, "yes")])
    parts = read_conversations(tmp_path)
    assert [own[0][0]["content"] for own in (parts.train, parts.valid, parts.tests["test"])] == [
        "train",
        "valid",
        "test",
    ]


def test_systems_inputs_and_several_turns(tmp_path):
    rows = [
        {"system": "Be kind.", "instruction": "Sort", "input": "b a", "output": "a b"},
        {"messages": [{"role": "developer", "content": "Be brief."}, user("a"), assistant("b"), user("c")]},
        {"conversations": [{"from": "system", "value": " "}, {"from": "human", "value": "x"}, assistant("y")]},
        {"instruction": "Do", "instances": [{"input": "1", "output": "2"}, {"input": "3", "output": "4"}]},
        {"instruction": "Who?", "context": "He came.", "response": "He"},
        {"instruction": "Where?", "input": "At home.", "response": "There"},
    ]
    found = read_asked(written(tmp_path / "rows.jsonl", rows))["rows.jsonl"]
    system = {"role": "system", "content": "Be kind."}
    assert found[0] == (system, user("Sort\n\nb a"), assistant("a b"))
    assert found[1] == ({"role": "system", "content": "Be brief."}, user("a"), assistant("b"))  # c has no answer
    assert found[2:] == [
        (user("x"), assistant("y")),
        (user("Do\n\n1"), assistant("2")),
        (user("Do\n\n3"), assistant("4")),
        (user("Who?\n\nHe came."), assistant("He")),
        (user("Where?\n\nAt home."), assistant("There")),
    ]


def test_what_alpaca_has_before_an_instruction_comes_first(tmp_path):
    rows = [
        {"instruction": "And 3?", "input": None, "output": "9", "history": [["2?", "4"], ["Why?", "By itself."]]},
        {"instruction": "Do", "input": "", "output": "Done", "history": None, "system": "Be kind."},
    ]
    found = read_asked(written(tmp_path / "rows.jsonl", rows))["rows.jsonl"]
    earlier = (user("2?"), assistant("4"), user("Why?"), assistant("By itself."))
    assert found[0] == (*earlier, user("And 3?"), assistant("9"))
    assert found[1] == ({"role": "system", "content": "Be kind."}, user("Do"), assistant("Done"))
    broken = written(tmp_path / "broken.jsonl", [rows[0] | {"history": [["2?"]]}])
    with pytest.raises(InputError, match="a history that is no list of questions with their answers"):
        read_asked(broken)


def test_an_answer_of_no_weight_is_kept_as_one(tmp_path):
    """As OpenAI's files have it: it is read, and not learnt."""
    poor, good = assistant("a") | {"weight": 0}, assistant("b") | {"weight": 1}
    rows = [{"messages": [user("x"), poor, user("y"), good, user("z"), poor]}, {"messages": [user("x"), poor]}]
    parts = read_asked(written(tmp_path / "rows.jsonl", rows))
    assert parts["rows.jsonl"] == [(user("x"), poor, user("y"), assistant("b"))]


def test_what_is_left_out_is_counted(tmp_path):
    rows = [LAYOUTS["messages"](q, a) for q, a in PAIRS]
    rows += [{"messages": [user("alone")]}, {"messages": [user(""), assistant("b")]}]
    rows += [{"messages": [user("a"), {"role": "tool", "content": "1"}, assistant("b")]}]
    rows += [{"messages": [user("a"), {"role": "assistant", "content": None, "tool_calls": [{}]}, assistant("b")]}]
    rows += [{"messages": [user("a"), assistant("b"), user("c")]}]
    path = written(tmp_path / "rows.jsonl", rows)
    notes = "\n".join(read_conversations(path).notes)
    assert f"{path}: 21 conversations as messages" in notes
    assert "1 conversation without an answer is left out" in notes
    assert "1 conversation with an empty turn is left out" in notes
    assert "2 conversations with calls of tools are left out" in notes
    assert "what follows the last answer is cut from 1 conversation" in notes


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"text": "a"}, "no conversation: there are keys 'text'"),
        (["a"], "a list, expected an object"),
        ({"messages": "a"}, "text, expected a list of messages"),
        ({"messages": []}, "no messages"),
        ({"messages": ["a"]}, "text, expected an object"),
        ({"messages": [{"role": "guest", "content": "a"}]}, "the role 'guest'"),
        ({"messages": [{"content": "a"}]}, "the role None"),
        ({"messages": [user(None)]}, "the content of a message is null, expected text"),
        ({"messages": [user([{"type": "image_url"}])]}, "the content of a message is a list, expected text"),
        ({"question": "a", "answer": 5}, "the content of a message is a number, expected text"),
        ({"instruction": "a", "instances": ["b"]}, "text, expected an object"),
    ],
)
def test_a_broken_row_is_told_by_its_line(row, what, tmp_path):
    path = written(tmp_path / "rows.jsonl", [LAYOUTS["messages"]("a", "b"), row])
    with pytest.raises(InputError) as caught:
        read_conversations(path)
    assert str(caught.value) == f"{path}:2: {what}"
    assert caught.value.fix


def test_broken_tables_and_files(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\nc\n")
    with pytest.raises(InputError, match=r"pairs\.tsv:2: 1 column, expected 2 \(question TAB answer\)"):
        read_conversations(path)
    with pytest.raises(InputError, match="not a kind of file that conversations are read from"):
        read_conversations(tmp_path.joinpath("a.png"))
    with pytest.raises(InputError, match="no conversation with an answer"):
        read_conversations(written(tmp_path / "rows.jsonl", [{"messages": [user("alone")]}]))


def test_messages_from_elsewhere():
    """Whatever a template may know of is handed on."""
    calls = {"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]}
    talk = [user("a"), calls, {"role": "tool", "content": "b", "name": "f"}, user([{"type": "text", "text": "c"}])]
    assert messages_of(talk) == [*talk[:3], user("c")]
    for wrong in ([{"content": "a"}], [user(None)], ["a"], [], {"role": "user"}):
        with pytest.raises(InputError):
            messages_of(wrong)
