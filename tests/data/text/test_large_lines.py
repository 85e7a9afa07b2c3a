"""Lines of a large file are read anew from the disk, and many pairs kept there: the same pairs, and the same errors, as
in memory."""

import gzip
import json
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data import large, tables
from heedful.data.text import pairs
from heedful.data.text.reading import read_whole
from heedful.errors import HeedError, StorageError

FILES: dict[str, bytes] = {
    "plain.tsv": "a b\tA B\n\nc é\tC É\r\nd\u2028e\tD".encode(),
    "mark.tsv": b"\xef\xbb\xbfsource\ttarget\nx\ty\n",
    "quoted.tsv": b'"say ""a"""\tb\n"c\nd"\te\n' * 3,
    "all-quoted.tsv": b'"a b"\t"b"\n"c"\t"d"\n' * 3,
    "half-quoted.tsv": b'"a" b\tb\n"c"\td\n"e\tf\n',
    "open-quote.tsv": b'"a "" b\tb\nc\td\n',
    "pairs.csv": b'source,target\n"a, b",c\nd,"e\nf"\n',
    "said.csv": b"sep=;\na;b\nc;d\n",
    "pairs.jsonl": b'{"en": "a", "fr": "b"}\n\n{"en": "c", "fr": "d"}\n',
    "returns.tsv": b"a\tb\rc\td\r",
    "not-utf8.tsv": "caf\xe9 du matin\tthe caf\xe9\n".encode("latin-1") * 20,
    "utf16.tsv": "a\tb\nc\td\n".encode("utf-16"),
    "nul.tsv": b"a\tb\nc\0\td\n",
    "cut.tsv": b"a\tb\nc\xc3",
    "blank.tsv": b"\n \n",
    "three.tsv": b"a\tb\tc\nd\te\n",
    "page.tsv": b"%PDF-1.4\nsome\tpage\n",
    "broken.jsonl": b'{"en": "a", "fr": "b"}\n{"en": \n',
}


def outcome(path: Path) -> object:
    """What was read, or the line that says why it was not."""
    try:
        read = read_whole(path)
    except HeedError as error:
        return str(error), error.__notes__
    return read.train.source, read.train.target, [*read.train.lines], read.taken, read.told


@pytest.mark.parametrize("name", [*FILES])
@pytest.mark.parametrize("packed", ["", ".gz", ".zip"])
def test_large_files_are_read_like_small_ones(
    name: str, packed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{name}{packed}"
    if packed == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, FILES[name])
    else:
        path.write_bytes(gzip.compress(FILES[name]) if packed else FILES[name])
    known = outcome(path)
    monkeypatch.setattr(large, "LARGE", 0)
    monkeypatch.setattr(large, "READ_AT_ONCE", 5)
    for at_once in (1, 2, 10_000):
        monkeypatch.setattr(tables, "LINES_AT_ONCE", at_once)
        assert outcome(path) == known


def test_two_large_files_of_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.en").write_text("a\n\nb\n")
    for target in ("A\n\nB\n", "A\n", "A\tx\nB\ty\nC\tz\n"):
        (tmp_path / "train.fr").write_text(target)
        known = outcome(tmp_path)
        with monkeypatch.context() as patched:
            patched.setattr(large, "LARGE", 0)
            assert outcome(tmp_path) == known


def test_a_large_file_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\nc\td\n")
    monkeypatch.setattr(large, "LARGE", 0)
    found = large.large_lines(tmp_path / "pairs.tsv")
    assert found is not None
    assert (len(found), found[1], found[:1], [*found]) == (2, "c\td", ["a\tb"], ["a\tb", "c\td"])
    monkeypatch.setattr(large, "LARGE", 9)
    assert large.large_lines(tmp_path / "pairs.tsv") is None


@given(
    texts=st.lists(st.text(st.characters(codec=None), max_size=4), max_size=12),
    more=st.lists(st.text(max_size=3), max_size=5),
    asked=st.slices(17),
)
def test_texts_in_a_file_are_those_in_memory(texts: list[str], more: list[str], asked: slice) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(large, "BLOCK", 3)
        kept = large.FileTexts(texts)
        assert [*kept] == texts
        assert kept == texts
        assert texts == kept == large.FileTexts(texts)
        assert kept != [*texts, "a"]
        kept.extend(more)
        known = texts + more
        assert (len(kept), [*kept], kept[asked]) == (len(known), known, known[asked])
        assert [kept[at] for at in reversed(range(len(known)))] == known[::-1]
        assert b"".join(kept.joined()) == "".join(known).encode("utf-8", "surrogatepass")
        with pytest.raises(IndexError):
            kept[len(known)]


def test_a_full_disk_for_texts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "r+b", buffering=0) as full:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
        with pytest.raises(StorageError, match="No space left on device") as caught:
            large.FileTexts(["a"] * large.BLOCK)
    assert "TMPDIR" in caught.value.fix


def test_many_pairs_are_kept_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same rows, places, references and reports; and so are those of several data sets together."""
    rows = [{"en": f"text {n}", "fr": [f"texte {n}", *["autre"] * (n % 3)]} for n in range(9)]
    rows += [{"en": "", "fr": "rien"}, {"en": "the end", "fr": " fin "}]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "b.tsv").write_text("fr\ten\nun\tone\ndeux\ttwo\n")
    for given_paths in (tmp_path / "a.jsonl", [tmp_path / "a.jsonl", tmp_path / "b.tsv"]):
        known = read_whole(given_paths)
        assert isinstance(known.train.source, list)
        with monkeypatch.context() as patched:
            patched.setattr(pairs, "HELD", 40)
            found = read_whole(given_paths)
        for side in ("source", "target"):
            assert isinstance(getattr(found.train, side), large.FileTexts)
            assert [*getattr(found.train, side)] == getattr(known.train, side)
        in_memory = {"source": known.train.source, "target": known.train.target}
        assert replace(found, train=replace(found.train, **in_memory)) == known
        assert [*found.train.lines] == [*known.train.lines]
        assert found.train.empty == known.train.empty
