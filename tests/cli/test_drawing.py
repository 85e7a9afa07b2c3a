"""`heed draw`: a preset or a run as figure 1, on the terminal and in files."""

import json
from pathlib import Path

import pytest

from commands import heed
from heedful.data.tokenizer import train_tokenizer
from heedful.models import make_model, preset
from saved import save_run

SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 2}


def test_a_preset_and_a_run_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = train_tokenizer(["ba de gi"], kind="chars", size=300)
    model = make_model(preset("gpt-nano", vocab_size=tokenizer.size, changes=SMALL))
    run = save_run(tmp_path / "run", model, tokenizer, tokenizer, {"task": "generate"})
    assert heed("draw", run) == 0
    assert "2 x" in (told := capsys.readouterr().out)
    for name in ("a.svg", "a.png", "a.txt"):
        assert heed("draw", run, "--out", tmp_path / name, "--dark") == 0
    assert (tmp_path / "a.txt").read_text() == told
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "--dark is not used by a drawing in letters",
        str(tmp_path / "a.txt"),
    ]
    assert b"#16181d" in (tmp_path / "a.svg").read_bytes()
    capsys.readouterr()
    assert heed("draw", "gpt-nano", "--json", "--out", tmp_path / "b.svg") == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert sum(part["times"] * part["parameters"] for part in found["parts"]) == found["parameters"] == 834_304
    assert found["out"] == str(tmp_path / "b.svg")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gpt-nanu",), "did you mean 'gpt-nano'?"),
        (("gpt-nano", "--out", "x.pdf"), ".pdf is not a drawing"),
        (("gpt-nano", "--out", "none/x.svg"), "no such folder"),
    ],
)
def test_what_is_wrong_is_one_line(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert heed("draw", *words) in (2, 3, 4)
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""
