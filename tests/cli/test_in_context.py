"""A language model that is asked: choices of `heed score`, and examples of `heed eval`."""

import json

import pytest

from commands import heed

KINDS = {"colour": ["red", "green", "blue", "pink"], "animal": ["dog", "cat", "cow", "fox"]}
ROWS = [{"input": word, "answer": kind} for kind, words in KINDS.items() for word in words]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def run(data):
    text = data / "book.txt"
    text.write_text("".join(f"{row['input']} {row['answer']}\n" for row in ROWS * 4))
    small = [
        "--set=model.d_model=16",
        "--set=model.n_layers=1",
        "--set=model.context_length=64",
        "--set=data.tokenizer=chars",
    ]
    assert heed("train", "generate", "--data", text, "--out", data / "run", *small, "--set=train.steps=2") == 0
    return data / "run"


@pytest.fixture(scope="module")
def task(data):
    return write(data / "task.jsonl", ROWS)


def test_choices_come_likeliest_first(run, capsys):
    words = ["score", run, "red ", "dog ", "--choice", "colour", "--choice", "animal", "--choice", "z"]
    assert heed(*words, "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["text"] for row in rows] == ["red ", "dog "]
    for row in rows:
        assert row.keys() == {"text", "choices"}
        assert {each["choice"] for each in row["choices"]} == {"colour", "animal", "z"}
        assert all(each.keys() == {"choice", "logprob", "tokens"} for each in row["choices"])
        logprobs = [each["logprob"] for each in row["choices"]]
        assert logprobs == sorted(logprobs, reverse=True)
    assert heed(*words) == 0
    told = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [choice for _, _, choice in told] == [each["choice"] for row in rows for each in row["choices"]]
    assert heed("score", run, "red ", "--json") == 0
    assert json.loads(capsys.readouterr().out).keys() == {"text", "logprob", "tokens"}


def test_examples_are_asked_with_shots(run, task, capsys):
    words = ["eval", run, "--data", task, "--shots", 3, "--delimiter", " -> ", "--seed", 2, "--json"]
    assert heed(*words) == 0
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    found = json.loads(line)
    expected = {"task": "in-context", "chance": 0.5, "examples": 8, "shots": 3, "by": "likelihood", "seed": 2}
    assert expected.items() <= found.items()
    assert list(found["accuracies"]) == ["sum", "per_token", "per_byte", "unconditional"]
    assert found["accuracy"] == found["accuracies"]["sum"]
    assert "8 examples, 3 shots" in err
    assert heed(*words, "--by", "match") == 0
    found = json.loads(capsys.readouterr().out)
    assert (expected | {"by": "match", "chance": None}).items() <= found.items()
    assert list(found["accuracies"]) == ["match"]


def test_shots_may_come_from_another_file(run, data, task, capsys):
    one = write(data / "one.jsonl", ROWS[:1])
    asked = ["eval", run, "--shots", 1, "--separator", r"\n\n", "--json"]
    assert heed(*asked, "--data", one, "--shots-from", task, "--by", "match") == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 1
    assert heed(*asked, "--data", task, "--shots-from", one) == 2
    assert "1 shot asked for, and there are 0 examples" in capsys.readouterr().err
    long = write(data / "long.jsonl", [row | {"input": row["input"] * 9} for row in ROWS])
    assert heed("eval", run, "--data", long, "--shots", 6, "--json") == 0
    out, err = capsys.readouterr()
    (note,) = json.loads(out)["notes"]
    assert err.splitlines()[0] == note
    assert note.startswith("the model's context holds 64 tokens: ")


def test_text_is_scored_as_text(run, data, capsys):
    for path in (data / "book.txt", write(data / "text.jsonl", [{"text": "red colour"}])):
        assert heed("eval", run, "--data", path, "--json") == 0
        assert json.loads(capsys.readouterr().out).keys() >= {"loss", "perplexity", "bits_per_byte"}


@pytest.mark.parametrize(
    ("rows", "words", "error"),
    [
        ([{"text": "red"}], ["--shots", "2"], 'task.jsonl:1: no "input" that is a text'),
        ([{"input": "red"}], [], 'task.jsonl:1: no "answer" that is a text'),
        (ROWS, ["--shots", "8"], "8 shots asked for, and there are 7 examples"),
        (ROWS, ["--by", "luck"], "'luck' is no way to answer"),
        ([{"input": str(i), "answer": str(i)} for i in range(60)], [], 'no "choices", and 60 different answers'),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, capsys, rows, words, error):
    assert heed("eval", run, "--data", write(tmp_path / "task.jsonl", rows), *words) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("error: ", "fix: "))]
    assert len(said) == 2
    assert error in said[0]
