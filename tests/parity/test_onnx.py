"""ONNX: what onnxruntime says by the exported graphs is what the model says."""

import io
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

from commands import heed
from heedful.errors import InputError, MissingError, StorageError
from heedful.exchange import onnx as ours
from heedful.models.presets import TransformerSize, translator_config
from heedful.run.card import BESIDE as FILES_BESIDE
from heedful.run.card import CURVE
from heedful.tasks.translate.exchange import onnx as engine
from heedful.tasks.translate.use import Translator
from heedful.verbs.exchange import export_model, import_model
from hub import marian_folder
from hub_languages import m2m100_folder, mt5_folder
from saved import save_run
from serving import PAIRS, language_model, loud, opened, tokenizer_of

TEXTS = ["ba de gi", "ko lu ma ne pi ro su ba de", "\u00e9", *PAIRS.source[:3]]


BESIDE = {"README.md", "task.json", "tokenizer.json"}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "learned": (
        {"order": "post", "position": "learned", "context_length": 44},
        {"begin": [7, 9], "before": [5], "after": [2, 6]},
    ),
    "rotary": ({"order": "pre", "position": "rotary"}, {"forbidden": [0, 1, 40], "longest_source": 9}),
    "buckets": ({"order": "pre", "position": "buckets"}, {}),
    "pairs": ({"order": "pre", "position": "rotary"}, {"decode": {"beam": 1, "no_repeat": 2, "shortest": 6}}),
    "once": (
        {"order": "pre", "position": "rotary"},
        {"decode": {"beam": 1, "no_repeat": 1}, "begin": [7, 9], "source_tokens": {"longest": 99, "centile_99": 99}},
    ),
}
IMPORTED: dict[str, Any] = {"marian": marian_folder, "m2m100": m2m100_folder, "mt5": mt5_folder}
# What differs in its settings alone has the graphs of the one before, which take seconds to make.
EXPORT = """
import sys
from heedful.tasks.translate.exchange import onnx
from heedful.verbs.exchange import export_model

made, graphs = {}, onnx.graphs

def once(model):
    key = str(model.config), *(bytes(one.detach().numpy()) for one in model.parameters())
    if key not in made:
        made[key] = graphs(model)
    return made[key]

onnx.graphs = once
for run in sys.argv[1:]:
    print(export_model(run, run + "-onnx", to="onnx").difference)
assert len(made) == len(sys.argv) - 3
"""


def run_of(folder: Path, about: dict[str, Any] | None = None, *, seed: int = 3, **size: Any) -> Path:
    own = tokenizer_of()
    row = TransformerSize(d_model=16, n_heads=2, d_ff=32, encoder_layers=1, decoder_layers=2, dropout=0.1, **size)
    config = translator_config(row, source_vocab=own.size, target_vocab=own.size, joint=True)
    told = {"task": "translate", "source": "low", "target": "high", "decode": {"beam": 1}} | (about or {})
    folder.mkdir()
    (folder / "README.md").write_text(f"# A card\n\nTrained.{FILES_BESIDE}\n\n{CURVE}\n\nIts text.\n")
    return save_run(folder, loud(config, seed=seed), own, own, told)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs, each with its export beside it. Another process makes those: a graph's sizes are no whole numbers, and the
    annotations are executed here."""
    folder = tmp_path_factory.mktemp("onnx")
    made = {name: run_of(folder / name, about, **size) for name, (size, about) in KINDS.items()}
    torch.manual_seed(0)
    for name, make in IMPORTED.items():
        make(folder / f"{name}-folder")
        made[name] = Path(import_model(folder / f"{name}-folder", folder / name).out)
    words = [sys.executable, "-c", EXPORT, *map(str, made.values())]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(float(line) < 1e-4 for line in done.stdout.splitlines() if line[:1].isdigit())
    return made


@pytest.mark.parametrize("name", KINDS)
def test_onnxruntime_says_what_the_model_says(runs: dict[str, Path], name: str) -> None:
    out = Path(f"{runs[name]}-onnx")
    files = {path.name for path in out.iterdir()}
    assert files == {"encoder.onnx", "decoder.onnx", "onnx.json", "translate.py"} | BESIDE
    card = (out / "README.md").read_text()
    assert card.startswith("# A card\n\nTrained.\n\nIts text.\n"), "without the files that are not there"
    assert f"Opset {ours.OPSET}" in card
    told = "\nThere a text is read as it stands: the run itself keeps addresses and placeholders"
    assert (told in card) == ("source_tokens" in KINDS[name][1])
    assert {each.version for each in onnx.load(out / "decoder.onnx").opset_import if not each.domain} == {ours.OPSET}
    theirs = runpy.run_path(str(out / "translate.py"))["Translator"](out)
    model: Translator = opened(runs[name])
    ids, _ = model.encode(TEXTS)
    for text, own, (best,) in zip(TEXTS, ids, model.hypotheses(ids, model.decoding(beam=1)), strict=True):
        assert theirs.encode(text) == [*model.around[0], *own, *model.around[1]]
        found = theirs.search(theirs.encode(text))
        assert found == list(best.tokens), "token for token"
        assert theirs.decode(found) == model.target.decode(found)
        assert theirs.translate(text) == model.translate(text, beam=1)
    assert theirs.translate(" ") == ""


@pytest.mark.parametrize("name", IMPORTED)
def test_what_a_vocabulary_of_the_hub_lacks_is_unknown_there_too(runs: dict[str, Path], name: str) -> None:
    out = Path(f"{runs[name]}-onnx")
    theirs, model = runpy.run_path(str(out / "translate.py"))["Translator"](out), opened(runs[name])
    for text in ["The small cat is sleeping.", "D\u00e9j\u00e0 \u2603 x", "don't \u4e8c 9"]:
        ((own,), _) = model.encode([text])
        ((best,),) = model.hypotheses([own], model.decoding(beam=1))
        assert theirs.encode(text) == [*model.around[0], *own, *model.around[1]]
        assert theirs.search(theirs.encode(text)) == list(best.tokens)
        said = [*best.tokens, model.model.config.target.vocab_size - 1]  # which may have no name
        assert theirs.decode(said) == model.target.decode(said)


def test_it_ends_where_the_positions_do(runs: dict[str, Path]) -> None:
    out = Path(f"{runs['learned']}-onnx")
    theirs, model = runpy.run_path(str(out / "translate.py"))["Translator"](out), opened(runs["learned"])
    source = [5, *[40, 41] * 20, 2, 6]
    ((best,),) = model.hypotheses([source[1:-2]], model.decoding(beam=1))
    assert len(best.tokens) == 44
    assert theirs.search(source) == list(best.tokens)
    with pytest.raises(ValueError, match="45 tokens, and the model reads at most 44"):
        theirs.search([*source, 2, 6])


@pytest.mark.parametrize("words", [["info"], ["translate", "--beam", "1"], ["export", "--out", "never"], ["check"]])
def test_its_folder_is_no_run(runs: dict[str, Path], words: list[str], capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("ba\n"))
    out = Path(f"{runs['learned']}-onnx")
    assert heed(words[0], out, *words[1:]) == 2
    told = f"error: {out}: a translator of ONNX\nfix: python {out / 'translate.py'}"
    assert capsys.readouterr().err.startswith(told)


def test_what_is_not_exported_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path / "run")
    with pytest.raises(InputError, match="no int8 weights in ONNX"):
        export_model(run, tmp_path / "out", to="onnx", quantize="int8")
    with pytest.raises(InputError, match="translators are exported to ONNX, and this is a LanguageModel"):
        export_model(language_model(tmp_path / "lm"), tmp_path / "out", to="onnx")
    monkeypatch.setattr(ours, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match="not installed: onnx, onnxscript, onnxruntime") as raised:
        export_model(run, tmp_path / "out", to="onnx")
    assert "heedful[onnx]" in raised.value.fix
    assert not (tmp_path / "out").exists()


def test_a_folder_that_says_something_else_is_not_left(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tuple((Path(f"{runs['rotary']}-onnx") / f"{side}.onnx").read_bytes() for side in ("encoder", "decoder"))
    monkeypatch.setattr(engine, "graphs", lambda model: other)
    with pytest.raises(StorageError, match="log-probabilities that differ by"):
        export_model(run_of(tmp_path / "run", seed=4, order="pre", position="rotary"), tmp_path / "out", to="onnx")
    assert not (tmp_path / "out").exists()
