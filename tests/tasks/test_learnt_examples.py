"""Of what is scored it is told how much a run has learnt from, whatever file it stands in now."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases import CASES, TEXTS
from commands import heed
from heedful.data.images.files import to_image
from heedful.run.learnt import LEARNT, known_examples, write_learnt
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.translate.options import TranslationScoring
from heedful.verbs.evaluate import evaluate

Runs = Callable[[str], Path]


def notes(run: Path, data: Path, kind: Any = DataOptions) -> list[str]:
    return [note for found in evaluate(run, kind(data=str(data))) for note in found.notes]


def test_half_of_what_was_learnt_among_other_pairs(run_of: Runs, tmp_path: Path) -> None:
    pairs = CASES["transformer"].corpus.train
    rows = [f"{pairs.source[i]}\t{pairs.target[i]}\n" for i in range(30)]
    (tmp_path / "own.tsv").write_text("".join([*rows, *(f"{row.split(chr(9))[0]}\tother\n" for row in rows[:10])]))
    run = run_of("transformer")
    told = notes(run, tmp_path / "own.tsv", TranslationScoring)
    assert told == [f"own.tsv: 30 of 40 examples: {run} has learnt from them"]
    (tmp_path / "new.tsv").write_text("new one\tother\nnew two\tother\n")
    assert notes(run, tmp_path / "new.tsv", TranslationScoring) == []
    (tmp_path / "new.tsv").write_text("".join([rows[0], *(f"new {number}\tother\n" for number in range(10))]))
    assert notes(run, tmp_path / "new.tsv", TranslationScoring) == [], "one of eleven, as it may be by chance"
    older = Path(shutil.copytree(run, tmp_path / "older"))
    (older / LEARNT).unlink()
    assert notes(older, tmp_path / "own.tsv", TranslationScoring) == [], "a run that did not keep it"


def test_texts_with_labels(run_of: Runs, tmp_path: Path) -> None:
    rows = [{"text": TEXTS[0], "label": TEXTS[0][:2]}, {"text": "ba ba", "label": "ba"}]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert notes(run_of("label"), tmp_path / "own.jsonl") == [
        f"own.jsonl: 1 of 2 examples: {run_of('label')} has learnt from it"
    ]


@pytest.mark.parametrize("name", ["classify-images", "paint"])
def test_pictures_are_known_by_their_pixels(run_of: Runs, tmp_path: Path, name: str) -> None:
    part = CASES[name].corpus.train
    for i in range(4):
        (tmp_path / part.labels[i]).mkdir(exist_ok=True)
        pixels = part.images[i].clone()
        pixels[0, 0, 0] ^= i == 3
        to_image(pixels).save(tmp_path / part.labels[i] / f"another {i}.png")
    (told,) = notes(run_of(name), tmp_path)
    assert told == f"{tmp_path.name}: 3 of 4 examples: {run_of(name)} has learnt from them"


@pytest.mark.parametrize("name", CASES)
def test_every_run_keeps_it(run_of: Runs, tmp_path: Path, name: str) -> None:
    data = (run_of(name) / LEARNT).read_bytes()
    assert 8 <= len(data) <= 8 * len(CASES[name].corpus.train)
    assert len(data) % 8 == 0


def test_of_very_many_some_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.run.learnt.MOST", 100)
    (tmp_path / "data.json").write_text("{}")
    write_learnt(tmp_path, [*map(str, range(1000))] * 2)  # each of them twice
    assert (tmp_path / LEARNT).stat().st_size == 800
    count, of = known_examples(tmp_path, map(str, range(500, 1500)))
    assert 20 < count < 80
    assert 1.5 < of / count < 3, "of those that would be known, half were learnt from"


def test_what_a_run_began_with_has_learnt(run_of: Runs, tmp_path: Path) -> None:
    for name in ("begun", "tuned"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.json").write_text("{}")
    (tmp_path / "tuned" / "recipe.yaml").write_text(f"start_from: {tmp_path / 'begun'}\n")
    write_learnt(tmp_path / "begun", ["a", "b"])
    write_learnt(tmp_path / "tuned", ["c"])
    assert known_examples(tmp_path / "tuned", "abcd") == (3, 4)
    assert known_examples(None, "abcd") == (0, 0)


def test_the_command_tells_it(run_of: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = CASES["transformer"].corpus.train
    (tmp_path / "own.tsv").write_text(f"{pairs.source[0]}\t{pairs.target[0]}\nnew\tother\n")
    assert heed("eval", run_of("transformer"), "--data", tmp_path / "own.tsv") == 0
    assert "own.tsv: 1 of 2 examples: " in capsys.readouterr().err
