"""Where a command writes: checked before the work, and what is there keeps its mode, its owner and its links."""

import io
import json
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from cases import LINES, PIXELS, SOUNDS
from commands import heed
from heedful import cli
from heedful.data.images.files import to_image
from heedful.run.folder import need_empty
from heedful.verbs import data as heedful_data
from made import TRANSFORMER, made_corpus, random_translator
from saved import save_run

# The words before --out, with the names of runs in braces, and the ending of a file that is written there.
FILES = {
    "look": (["{transformer}", "ba de"], ".svg"),
    "draw": (["transformer-tiny"], ".svg"),
    "trace": (["{transformer}", "ba de"], ".html"),
    "lecture": (["N1"], ".svg"),
    "data": (["check", "pairs.tsv"], ".tsv"),
    "eval": (["{transformer}", "--data", "pairs.tsv"], ".txt"),
    "translate": (["{transformer}", "--file", "a.txt"], ".txt"),
    "summarise": (["{transformer}", "--file", "a.txt"], ".txt"),
    "back-translate": (["{teacher}", "texts.txt"], ".tsv"),
    "vectors": (["{vectors}", "plane"], ".svg"),
    "detect": (["{detect}", "0.png"], ".png"),
    "paint": (["{paint}", "0.png"], ".png"),
    "transcribe": (["{transcribe}", SOUNDS[0]], ".srt"),
    "fold": (["{fold}", "chain.fasta"], ".cif"),
    "rank": (["{chat}", "--prompts", "prompts.txt", "--who", "a", "--tokens", "3"], ".jsonl"),
}
MAKE_FOLDERS = {"back-translate", "paint"}  # for their files
FOLDERS = [
    ["train", "translate", "--data", "pairs.tsv"],
    ["demo"],
    ["distil", "{teacher}", "--data", "pairs.tsv", "--preset", "transformer-tiny"],
    ["prune", "{gpt}"],
    ["loop", "{chat}", "--prompts", "prompts.txt", "--ranker", "rules.py:value"],
    ["export", "{gpt}"],
    ["import", "hub"],
    ["segment", "{segment}", "0.png"],
    ["detect", "{detect}", "0.png", "1.png"],
    ["paint", "{paint}", "0.png"],
    ["lecture", "N1", "N2"],
    ["translate", "{transformer}", "--file", "a.txt", "--file", "b.txt"],
]
WORK = [  # what must not have begun when an output is refused; and no model may have been called
    "heedful.lab.lectern.show",
    "heedful.verbs.data.examine",
    "heedful.verbs.draw.drawn",
    "heedful.verbs.exchange.read_weights",
    "heedful.verbs.exchange.row_of_run",
    "heedful.tasks.translate.train.TranslateJob.first_look",
    "heedful.tasks.translate.demo.phrasebook",
]


@pytest.fixture
def place(run_of: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with all that the commands read."""
    monkeypatch.chdir(tmp_path)
    for number, pixels in enumerate(PIXELS[:2]):
        to_image(pixels).save(f"{number}.png")
    Path("pairs.tsv").write_text("".join(f"{i} ba de\tDE BA {i}\n" for i in range(60)))
    Path("texts.txt").write_text("".join(LINES[:5]))
    Path("prompts.txt").write_text("ba\nko\n")
    Path("rules.py").write_text("def value(prompt, answer):\n    return float(len(answer))\n")
    Path("chain.fasta").write_text(">a\nGIVEQCCTSICSLYQLENYCN\n")
    for name in ("a.txt", "b.txt", "file"):
        Path(name).write_text("ba de gi\n")
    for name in (
        "hub",
        "folder.svg",
        "folder.html",
        "folder.tsv",
        "folder.txt",
        "folder.png",
        "folder.srt",
        "folder.cif",
        "folder.jsonl",
    ):
        Path(name).mkdir()
    Path("hub/config.json").write_text(json.dumps({"model_type": "gpt2"}))
    return tmp_path


def words_of(words: Sequence[str], run_of: Callable[[str], Path], place: Path) -> list[str]:
    if "{teacher}" in words:
        loud = random_translator(made_corpus(60), TRANSFORMER)
        save_run(place / "teacher", loud.model, loud.source, loud.target, loud.about)
    runs = {"{teacher}": place / "teacher"}
    return [str(runs.get(word) or run_of(word[1:-1])) if word.startswith("{") else word for word in words]


def refused(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line in which this ends, before the work."""
    fail: Any = AssertionError("the work has begun")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.Module, "__call__", property(lambda self: (_ for _ in ()).throw(fail)))
        for name in WORK:
            patch.setattr(name, lambda *given, **more: (_ for _ in ()).throw(fail))
        code = heed(*words)
    told = capsys.readouterr()
    assert code in (2, 3, 4), told.err
    errors = [line for line in told.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, told.err
    assert told.err.splitlines()[-1].startswith("fix: ")
    return errors[0]


def test_each_command_that_writes_is_here() -> None:
    writing = {name for name, command in cli.heed.commands.items() if any(own.name == "out" for own in command.params)}
    assert writing == {*FILES, *(words[0] for words in FOLDERS)}


@pytest.mark.parametrize("verb", FILES)
def test_a_file_that_cannot_be_written_is_told_before_the_work(
    verb: str, run_of: Callable[[str], Path], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, ending = FILES[verb]
    words = [verb, *words_of(plain, run_of, place), "--out"]
    before = sorted(place.rglob("*"))
    assert "a name of 256 bytes" in refused([*words, "x" * (256 - len(ending)) + ending], capsys)
    assert "byte 1 of '\\udce9" in refused([*words, f"\udce9{ending}"], capsys)
    assert "file: " in refused([*words, f"file/x{ending}"], capsys)
    if verb not in MAKE_FOLDERS:
        assert "none: no such folder" in refused([*words, f"none/x{ending}"], capsys)
    if verb not in ("translate", "summarise", "detect"):  # each has a folder for several files
        assert f"folder{ending}: is a folder" in refused([*words, f"folder{ending}"], capsys)
    Path(f"kept{ending}").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: mode != os.W_OK or Path(path).name != f"kept{ending}")
        assert "write-protected" in refused([*words, f"kept{ending}"], capsys)
        patch.setattr(os, "access", lambda path, mode: mode != os.W_OK or Path(path).resolve() != place)
        assert "cannot be written into" in refused([*words, f"x{ending}"], capsys)
    Path(f"kept{ending}").unlink()
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("words", FOLDERS, ids=lambda words: words[0])
def test_a_folder_that_cannot_be_made_is_told_before_the_work(
    words: list[str], run_of: Callable[[str], Path], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*words_of(words, run_of, place), "--out"]
    before = sorted(place.rglob("*"))
    assert " bytes, at most 255 can be" in refused([*words, "x" * 256], capsys)
    assert "byte 1 of '\\udce9" in refused([*words, "\udce9"], capsys)
    assert "file: " in refused([*words, "file/x"], capsys)
    assert "file: " in refused([*words, "file"], capsys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: mode != os.W_OK or Path(path).resolve() != place)
        assert "cannot be written into" in refused([*words, "new/run"], capsys)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("verb", FILES)
def test_what_is_written_over_keeps_its_mode_its_owner_and_its_links(
    verb: str, run_of: Callable[[str], Path], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the longest name that there is."""
    plain, ending = FILES[verb]
    out = place / ("x" * (255 - len(ending) - (5 if verb in ("data", "back-translate") else 0)) + ending)
    if verb == "data":
        out = out.with_name(out.name[8:])  # what is left out goes into NAME.left-out.tsv
    link = place / f"link{ending}"
    link.symlink_to(out.name)
    if verb == "rank":
        out.write_text("")
    elif verb != "back-translate":  # which writes over nothing
        out.write_text("before")
    if out.exists():
        out.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(out, 12, 34)
    monkeypatch.setattr("sys.stdin", io.StringIO("1 2\n" * 2))  # the ranks
    assert heed(verb, *words_of(plain, run_of, place), "--out", link) == 0
    assert link.is_symlink()
    found = out.lstat()
    assert found.st_size
    assert out.read_bytes() != b"before"
    if verb != "back-translate":
        assert stat.S_IMODE(found.st_mode) == 0o600
        assert (found.st_uid, found.st_gid) == ((12, 34) if os.geteuid() == 0 else (os.getuid(), os.getgid()))
    assert not list(place.glob(".tmp-*"))


def test_a_run_is_imported_to_a_way_up_and_to_the_longest_name(
    run_of: Callable[[str], Path], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub, longest = place / "exported", "x" * 255
    assert heed("export", run_of("gpt"), "--out", "none/../exported") == 0
    assert heed("import", hub, "--out", "none/../run") == 0
    assert heed("import", hub, "--out", longest) == 0
    assert not Path("none").exists()
    capsys.readouterr()
    said = []
    for run in ("run", longest):
        assert heed("generate", run, "ba", "--tokens", "3", "--temperature", "0") == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_a_folder_of_one_s_own_stays_so(run_of: Callable[[str], Path], place: Path) -> None:
    out = place / "out"
    out.mkdir(mode=0o700)
    need_empty(out)
    assert heed("export", run_of("gpt"), "--out", out) == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["eval", "{transformer}", "--data", "pairs.tsv"], "pairs.tsv"),
        (["eval", "{transformer}", "--source", "a.txt", "--target", "b.txt"], "a.txt"),
        (["eval", "{transformer}", "--source", "a.txt", "--target", "b.txt"], "b.txt"),
        (["data", "check", "pairs.tsv"], "pairs.tsv"),
        (["translate", "{transformer}", "--file", "a.txt"], "a.txt"),
        (["detect", "{detect}", "0.png"], "0.png"),
        (["paint", "{paint}", "0.png"], "0.png"),
        (["look", "{detect}", "0.png"], "0.png"),
        (["rank", "{chat}", "--prompts", "prompts.jsonl", "--who", "a"], "prompts.jsonl"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_read_is_not_written_over(
    words: list[str],
    out: str,
    linked: bool,
    run_of: Callable[[str], Path],
    place: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("prompts.jsonl").write_text('{"prompt": "ba"}\n{"prompt": "ko"}\n')
    named = f"link{Path(out).suffix}" if linked else out
    if linked:
        Path(named).symlink_to(out)
    before = Path(out).read_bytes()
    with pytest.MonkeyPatch.context() as patch:  # the data that are written over are read first
        patch.setattr(heedful_data, "examine", lambda *given, **more: pytest.fail("the work has begun"))
        assert heed(*words_of(words, run_of, place), "--out", named) == 2
    assert f"{named}: is read, and would be written over" in capsys.readouterr().err
    assert Path(out).read_bytes() == before
