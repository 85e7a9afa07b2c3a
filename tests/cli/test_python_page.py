"""The scripts of docs/python.md run as they stand there, one after another in one folder."""

import re
import runpy
import warnings
from pathlib import Path

import pytest
import torch


def scripts(root: Path) -> dict[str, str]:
    parts = (root / "docs" / "python.md").read_text(encoding="utf-8").split("\n## ")[1:]
    found = {part.split("\n")[0]: re.search(r"```python\n(.*?)```", part, re.DOTALL) for part in parts}
    return {name: match[1] for name, match in found.items() if match}


def test_every_script_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = scripts(root)
    assert [name.split(".")[0] for name in found] == [*map(str, range(1, 14))]
    monkeypatch.chdir(tmp_path)
    told = {}
    for name, script in found.items():
        torch.manual_seed(0)
        (tmp_path / "script.py").write_text(script, encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of texts longer than were learnt from
            runpy.run_path("script.py", run_name=f"script {name}")
        told[name.split(".")[0]] = capsys.readouterr().out
    assert told["1"].startswith("150 steps, {'test': {")
    assert "causal: True" in told["4"]
    assert (tmp_path / "looked.svg").read_bytes().startswith(b"<?xml")
    assert "<table>" in (tmp_path / "card.html").read_text()
    assert "und" not in told["7"].splitlines()[1]
    assert told["12"].endswith("-> sechs und eins\n")
    assert [line for line in told["13"].splitlines() if "ends" in line] == [
        f"text {handle} ends after {4 + handle} tokens" for handle in range(3)
    ]
