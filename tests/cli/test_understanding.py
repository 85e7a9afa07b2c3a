"""`heed tag`, `answer` and `embed`: an object an input, and errors in one line."""

import json

import pytest

from commands import heed

SMALL = [f"--set=model.{key}={value}" for key, value in {"d_model": 16, "n_heads": 2, "n_layers": 1}.items()]
SMALL += ["--set=model.context_length=48", "--set=train.steps=1", "--set=data.tokenizer=chars"]
CONTEXTS = [f"ada{n} lives in rome{n}." for n in range(12)]


def objects(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("understanding")
    (folder / "tags.tsv").write_text("".join(f"the\tDET\ndog{n}\tNOUN\n\n" for n in range(12)))
    rows = [{"question": f"where is ada{n}?", "context": one, "answer": f"rome{n}"} for n, one in enumerate(CONTEXTS)]
    (folder / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "lines.txt").write_text("".join(f"{line}\n" for line in CONTEXTS))
    for task, name, more in (("tag", "tags.tsv", []), ("answer", "asked.jsonl", ["--preset", "encoder-tiny"])):
        assert heed("train", task, "--data", folder / name, "--out", folder / task, *more, *SMALL) == 0
    return folder


def test_tag(data, capsys):
    assert heed("tag", data / "tag", "the dog1", "dog2", "--json") == 0
    first, second = objects(capsys)
    assert first.keys() == {"text", "words"}
    assert [word["word"] for word in first["words"]] == ["the", "dog1"]
    assert second["words"][0].keys() == {"word", "label", "score"}
    assert heed("eval", data / "tag", "--data", data / "tags.tsv", "--json") == 0
    assert objects(capsys)[0].keys() == {"loss", "accuracy", "macro_f1"}


def test_answer(data, capsys):
    (data / "text.txt").write_text(CONTEXTS[3])
    for context in (CONTEXTS[3], data / "text.txt"):
        assert heed("answer", data / "answer", "where is ada3?", "--context", context, "--top", 2, "--json") == 0
        (found,) = objects(capsys)
        assert found["question"] == "where is ada3?"
        assert len(found["answers"]) == 2
        text, _, start, end = found["answers"][0].values()
        assert CONTEXTS[3][start:end] == text
    assert heed("eval", data / "answer", "--data", data / "asked.jsonl", "--json") == 0
    assert objects(capsys)[0].keys() == {"loss", "exact_match", "f1"}
    assert heed("answer", data / "answer", "where?") == 2
    assert "a question without a text" in capsys.readouterr().err


@pytest.mark.parametrize("run", ["tag", "answer"])
def test_embed(data, run, capsys):
    assert heed("embed", data / run, "ada1", "rome2 rome", "--json") == 0
    assert [(one["text"], len(one["vector"])) for one in objects(capsys)] == [("ada1", 16), ("rome2 rome", 16)]
    near = ["--near", data / "lines.txt", "--top", 3, "--json"]
    assert heed("embed", data / run, CONTEXTS[5], *near, "--pool", "first") == 0
    (found,) = objects(capsys)
    assert len(found["near"]) == 3
    assert {one["text"] for one in found["near"]} <= {*CONTEXTS}
    scores = [one["score"] for one in found["near"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(1, abs=1e-4)
    assert heed("embed", data / run, "ada", "--pool", "last") == 2
    assert "there is no pool 'last'" in capsys.readouterr().err
    assert heed("embed", data / run, "ada", "--top", 3) == 2
    assert "--top is of the lines that are near" in capsys.readouterr().err


def test_look(data, tmp_path, capsys):
    words = ["--out", tmp_path / "look.svg", "--json"]
    assert heed("look", data / "tag", "the dog1", *words) == 0
    (seen,) = objects(capsys)
    assert [token for token, _ in seen["first"]][:1] == ["<s>"]
    assert sum(share for _, share in seen["first"]) == pytest.approx(1, abs=1e-4)
    assert heed("look", data / "answer", "where is ada3?", "--pair", CONTEXTS[3], *words) == 0
    (seen,) = objects(capsys)
    tokens = [token for token, _ in seen["first"]]
    assert tokens.count("</s>") == 2
    assert (tmp_path / "look.svg").read_text().startswith("<?xml")
    for run, more, says in (
        ("answer", [], "give --pair"),
        ("tag", ["--pair", "a dog"], "is not used by this model"),
        ("tag", ["--text", "a dog"], "--text is not used by this model"),
    ):
        assert heed("look", data / run, "the dog1", *words, *more) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize("run", ["tag", "answer"])
def test_check_and_info(data, run, capsys):
    assert heed("check", data / run, "--json") == 0
    capsys.readouterr()
    assert heed("info", data / run, "--json") == 0
    assert objects(capsys)[0]["task"] == run
