"""`heed trace`: a record a step, of every kind of model, and errors in one line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from cases import SOUNDS
from commands import heed
from heedful.errors import InputError
from heedful.look.canvas import width_of
from heedful.look.passes_drawn import SIZE, cut_to
from heedful.tasks.shared.pieces import labelled_pieces
from heedful.verbs.trace import trace
from serving import opened, translator

# Of each family that reads, and each function that feeds one.
TRACED = {"transformer": None, "gpt": None, "fill": None, "label": None, "answer": "ba is de.", "parse": None}
TRACED |= dict.fromkeys(("match", "classify-images", "detect", "segment", "paint", "describe"))
TRACED["questions"] = "what is it?"
TRACED |= dict.fromkeys(("transcribe", "ctc", "sounds"))
PICTURES = ("classify-images", "detect", "segment", "paint", "describe", "questions")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("traced")
    Image.new("RGB", (64, 64), (90, 30, 200)).save(made / "a.png")
    return made


@pytest.mark.parametrize("name", TRACED)
def test_every_family(name: str, run_of: Callable[[str], Path], folder: Path) -> None:
    given = str(folder / "a.png") if name in PICTURES else "ba <mask> gi" if name == "fill" else "ba de gi"
    given = SOUNDS[0] if name in ("transcribe", "ctc", "sounds") else given
    traced = trace(run_of(name), given, TRACED[name])
    assert sum(step.parameters for step in traced.steps) + traced.unused == traced.parameters
    assert traced.unused == 0 or name in ("match", "detect", "classify-images")
    assert traced.operations > 0
    assert bool(traced.says) == (name != "match")
    assert sum(chance for _, chance in traced.says) <= 1.0001


def test_what_is_said_is_named_as_people_read_it(
    run_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the vocabulary, and not as it spells bytes: "ĠfÃ¼r" was the word "für"."""
    monkeypatch.setattr("heedful.verbs.trace.SAID", 300)
    for name, given in (("gpt", "ba"), ("transformer", "ba"), ("fill", "ba <mask>")):
        said = [word for word, _ in trace(run_of(name), given).says]
        assert {"·a", "·!", "␣", "·\\n"} <= {*said}
        assert not {"Ġ", "Ċ"} & {*"".join(said)}


@pytest.mark.parametrize("name", ["gpt", "transformer", "fill", "label", "parse", "match"])
def test_what_is_read_is_shown_token_by_token(name: str, run_of: Callable[[str], Path]) -> None:
    tokens = trace(run_of(name), "lu  za\nlu").tokens
    assert all(token.strip() and token.isprintable() for token in tokens)
    assert "␣" in tokens


def test_the_command(run_of: Callable[[str], Path], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of("gpt")
    assert heed("trace", run, "ba de", "--json") == 0
    first, *steps, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert first["tokens"][0] == "<s>"
    assert [step["step"] for step in steps] == [*range(1, len(steps) + 1)]
    assert sum(step["operation_share"] for step in steps) == pytest.approx(1)
    assert last["operations"] == sum(step["operations"] for step in steps)
    assert heed("trace", run, "ba de") == 0
    assert "stack.blocks.0.mlp.up" in capsys.readouterr().out
    for name in ("t.html", "t.svg"):
        assert heed("trace", run, "ba de", "--out", folder / name) == 0
        assert (folder / name).stat().st_size > 1000
    for words, said in (
        (("", "--json"), "no text to trace"),
        (("a", "--out", "x.pdf"), "is no trace"),
        (("a", "--out", "x.html", "--dark"), "--dark is of a picture"),
        (("a", "--dark"), "--dark is of a picture"),
    ):
        assert heed("trace", run, *words) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["score", "labels", "reward"])
def test_what_is_no_choice_has_no_shares(name: str, run_of: Callable[[str], Path]) -> None:
    """Of a number, and of labels of which several may hold, a softmax tells nothing."""
    traced = trace(run_of(name), "ba de gi")
    assert traced.steps
    assert traced.says == []


def test_a_classifier_of_a_language_model_reads_its_answer_off_the_last_token(
    run_of: Callable[[str], Path], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first one looks at itself alone, and was told; the last had no name."""
    assert trace(run_of("label"), "ba", "de").tokens[-1] == "<extract>"
    assert "<delimiter>" in trace(run_of("label"), "ba", "de").tokens
    assert heed("look", run_of("label"), "ba de", "--out", folder / "l.html") == 0
    assert capsys.readouterr().err.startswith("<extract> looks at ")
    assert "extract" in (folder / "l.html").read_text()


def test_a_line_is_cut_where_the_picture_ends() -> None:
    line = "ba de gi → ba · de · gi " * 40
    for width in (20.0, 200.0, 640.0):
        cut = cut_to(line, width)
        assert width_of(cut, SIZE) <= width < width_of(f"{line[: len(cut)]}…", SIZE)
        assert cut == f"{line[: len(cut) - 1]}…"


def test_what_does_not_fit_is_refused(run_of: Callable[[str], Path], folder: Path) -> None:
    with pytest.raises(InputError, match="reads one text"):
        trace(run_of("gpt"), "ba", "de")
    with pytest.raises(InputError, match="reads one picture"):
        trace(run_of("detect"), str(folder / "a.png"), "de")
    with pytest.raises(InputError, match="a question without a text"):
        trace(run_of("answer"), "ba?")


def test_a_translator_of_several_languages_is_followed_into_the_one_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    languages = {"tokens": {"de": 40, "fr": 91}, "target": "before", "directions": ["en>de", "en>fr"]}
    run = translator(tmp_path / "several", "en", "de", languages=languages, before=[40])
    whole = opened(run)
    read = {to: whole.directed(target=to).padded(whole.encode(["ko la"])[0])[0][0].tolist() for to in ("de", "fr")}
    for given, to in (([], "de"), (["--to", "fr"], "fr"), (["--to", "French", "--from-language", "en"], "fr")):
        assert heed("trace", run, "ko la", "--json", *given) == 0
        tokens = json.loads(capsys.readouterr().out.splitlines()[0])["tokens"]
        pieces = labelled_pieces(whole.source, read[to])
        assert tokens[: len(pieces)] == pieces
    assert heed("trace", run, "ko la", "--to", "it") == 2
    assert "--to: no language 'it': there are 'de', 'fr'" in capsys.readouterr().err


def test_a_model_that_translates_nothing_has_no_language(
    run_of: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert heed("trace", run_of("fill"), "ba de", "--to", "fr") == 2
    assert "--to is not used by a model for 'fill'" in capsys.readouterr().err
