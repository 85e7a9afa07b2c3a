"""Reading parallel text: every layout gives the same corpus, every fault one line that says where it is."""

import bz2
import codecs
import gzip
import json
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from heedful.data.lines import LONGEST_LINE, read_lines
from heedful.data.text.corpus import read_parallel
from heedful.data.text.pairs import read_pairs
from heedful.data.text.reading import read_whole
from heedful.errors import HeedError, InputError, MissingError
from parallel import ENGLISH, GERMAN, PARTS, comma, jsonl, lines, sides, tables, translations, tsv, write

LAYOUTS: dict[str, Mapping[str, str | bytes]] = {
    "sides": sides(),
    "sides val": sides("val"),
    "sides dev": sides("dev"),
    "sides gz": sides(ending=".gz"),
    "sides beside a table": sides() | {"train.tsv": "of\tanother\nkind\tof data\n"},
    "a third language": sides() | {"train.fr": "le nombre\n"},
    "tsv": tables("tsv", tsv),
    "tsv gz": tables("tsv.gz", tsv),
    "txt": tables("txt", tsv),
    "csv": tables("csv", comma),
    "jsonl": tables("jsonl", jsonl),
    "jsonl translation": tables("jsonl.gz", translations),
    "BOM": {name: codecs.BOM_UTF8 + data.encode() for name, data in tables("tsv", tsv).items()},
    "CRLF": {name: data.replace("\n", "\r\n") for name, data in sides().items()},
    "no last line end": {name: data.removesuffix("\n") for name, data in sides().items()},
}


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_of_a_folder_gives_the_same_corpus(tmp_path: Path, files: Mapping[str, str | bytes]) -> None:
    corpus = read_parallel(write(tmp_path, files), source="en", target="de")
    parts = {"train": corpus.train, "valid": corpus.valid, **corpus.tests}
    assert list(parts) == list(PARTS)
    for stem, (start, stop) in PARTS.items():
        assert parts[stem].source == ENGLISH[start:stop]
        assert parts[stem].target == GERMAN[start:stop]
        assert len(parts[stem]) == stop - start
    table = tmp_path / "train.tsv"
    told = "train.en" in files and table.name in files
    assert (corpus.source, corpus.target, len(corpus.notes)) == ("en", "de", told)
    assert all(note.startswith(f"{table}: left out, ") for note in corpus.notes)
    assert all(path.exists() for path in corpus.files)
    assert len(corpus.files) == (8 if "test.en" in files or "test.en.gz" in files else 4)


def test_the_direction_is_the_callers(tmp_path: Path) -> None:
    corpus = read_parallel(write(tmp_path, sides()), source="de", target="en")
    assert corpus.train.source[0] == GERMAN[0]
    assert corpus.train.target[0] == ENGLISH[0]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [(None, None, ("de", "en")), ("en", None, ("en", "de")), (None, "de", ("en", "de"))],
)
def test_two_languages_are_inferred_in_the_order_of_the_alphabet(
    tmp_path: Path, source: str | None, target: str | None, expected: tuple[str, str]
) -> None:
    corpus = read_parallel(write(tmp_path, sides()), source=source, target=target)
    assert (corpus.source, corpus.target) == expected
    assert corpus.train.source[0] == {"en": ENGLISH, "de": GERMAN}[expected[0]][0]


def test_plain_files_come_before_packed_ones(tmp_path: Path) -> None:
    corpus = read_parallel(write(tmp_path, sides() | {"train.en.gz": "old\n"}), source="en", target="de")
    assert corpus.train.source[0] == ENGLISH[0]


def test_a_test_set_in_one_language_only_is_left_out_and_noted(tmp_path: Path) -> None:
    corpus = read_parallel(write(tmp_path, sides() | {"test_coco.en": "A cat.\n"}), source="en", target="de")
    assert list(corpus.tests) == ["test", "test_2016"]
    assert corpus.notes == (f"{tmp_path / 'test_coco.en'}: left out, it is there in one of the two languages only",)


def test_validation_data_that_is_not_read_is_noted(tmp_path: Path) -> None:
    more = {
        "valid.en": "A\n",
        "valid.de": "B\n",
        "valid1.en": "C\n",
        "valid1.de": "D\n",
        "dev.en": "E\n",
        "dev.de": "F\n",
    }
    corpus = read_parallel(write(tmp_path, sides() | more), source="en", target="de")
    assert corpus.valid.source == ["A"]
    assert [note.partition(",")[0] for note in corpus.notes] == [
        f"{tmp_path / name}.*: left out" for name in ("dev", "valid1")
    ]
    assert corpus.notes[0].endswith(
        ", validation data is what is called valid, val, dev or validation, the first of them alone"
    )


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    texts = ["a\u2028b", "c\x85d", "e\x0bf\x0c", "g\rh", "\x1c", " kept "]
    path = write(tmp_path, {"a.en": lines(*texts)}) / "a.en"
    assert read_lines(path) == texts
    pairs = read_pairs(path, path)
    assert (pairs.source, pairs.dropped) == ([*(text.strip() for text in texts[:4]), "kept"], 1)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_blanks_around_a_text_are_none_of_it(tmp_path: Path, name: str) -> None:
    rows = [(" one  two ", "eins\u00a0"), ("three", "  drei"), ("  ", "vier")]
    made = {
        "a.tsv": lines(*("\t".join(row) for row in rows)),
        "a.csv": lines(*(f"{one} ; {other} " for one, other in rows)),
        "a.jsonl": lines(*(json.dumps({"source": one, "target": other}) for one, other in rows)),
    }
    read = read_whole(write(tmp_path, {name: made[name]}) / name).train
    assert (read.source, read.target, read.dropped) == (["one  two", "three"], ["eins", "drei"], 1)


def test_empty_lines_are_kept_for_the_caller_of_read_lines(tmp_path: Path) -> None:
    assert read_lines(write(tmp_path, {"a.en": "one\n\n\r\ntwo\n\n"}) / "a.en") == ["one", "", "", "two", ""]


def test_sources_that_were_trained_on_are_counted(tmp_path: Path) -> None:
    test = {"test.tsv": "  THE Number 3\tx\nthe number 3\ty\nnew\tz\n"}
    corpus = read_parallel(write(tmp_path, {"train.tsv": tsv(0, 30), "valid.tsv": tsv(30, 35), **test}))
    assert corpus.notes == (f"{tmp_path / 'test.tsv'}: 2 of 3 sources are in the training text too",)


# Holding out


def held(corpus_path: Path) -> tuple[list[str], list[str], list[str]]:
    corpus = read_parallel(corpus_path)
    return corpus.train.source, corpus.valid.source, corpus.tests["test"].source


def test_what_one_file_lacks_is_held_out_of_it(tmp_path: Path) -> None:
    rows = [f"Word {n % 700}\tWort {n}" for n in range(1000)]  # 300 sources come twice
    rows += [f"WORD {n}\tein Wort {n}" for n in range(50)]  # and 50 of them three times, in capitals
    path = write(tmp_path, {"p.tsv": lines(*rows)}) / "p.tsv"
    train, valid, test = held(path)
    assert len(train) + len(valid) + len(test) == 1050
    assert len(valid) == 21
    assert len(test) == 21
    keys = [{text.lower() for text in part} for part in (train, valid, test)]
    assert sum(map(len, keys)) == len(keys[0] | keys[1] | keys[2]) == 700
    assert held(path) == (train, valid, test)
    assert [n for n in range(700) if f"word {n}" in keys[1]][:4] == [55, 90, 110, 180]  # on every machine
    assert read_parallel(path).notes == (
        f"{path}: 21 pairs held out for validation",
        f"{path}: 21 pairs held out for a test",
    )


def test_more_data_moves_few_sentences(tmp_path: Path) -> None:
    rows = [f"word {n}\tWort {n}" for n in range(1100)]
    small = held(write(tmp_path, {"p.tsv": lines(*rows[:1000])}) / "p.tsv")[1]
    large = held(write(tmp_path, {"p.tsv": lines(*rows)}) / "p.tsv")[1]
    assert len(set(small) & set(large)) >= 0.75 * len(small)


def test_three_pairs_are_enough_and_many_hold_out_no_more_than_the_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = held(write(tmp_path, {"p.tsv": tsv(0, 3)}) / "p.tsv")
    assert [len(part) for part in few] == [1, 1, 1]
    monkeypatch.setattr("heedful.data.text.corpus.HELD_MOST", 7)
    many = held(write(tmp_path, {"p.tsv": lines(*(f"{n}\t{n}" for n in range(1000)))}) / "p.tsv")
    assert [len(part) for part in many] == [986, 7, 7]


def test_a_source_with_too_many_translations_is_held_out_whole_if_there_is_no_other(tmp_path: Path) -> None:
    rows = [f"{word}\t{n}" for word, count in (("a", 100), ("b", 90), ("c", 80)) for n in range(count)]
    train, valid, test = held(write(tmp_path, {"p.tsv": lines(*rows)}) / "p.tsv")
    assert (set(train), set(valid), set(test)) == ({"a"}, {"c"}, {"b"})


def test_a_folder_with_validation_text_keeps_all_its_training_text(tmp_path: Path) -> None:
    files = {name: data for name, data in sides().items() if not name.startswith("test")}
    corpus = read_parallel(write(tmp_path, files))
    assert (len(corpus.train), len(corpus.valid), corpus.tests) == (30, 5, {})


def test_a_folder_with_a_test_holds_out_the_validation_only(tmp_path: Path) -> None:
    files = {name: data for name, data in sides().items() if not name.startswith("valid")}
    corpus = read_parallel(write(tmp_path, files))
    assert (len(corpus.train), len(corpus.valid), len(corpus.tests["test"])) == (29, 1, 3)


# Faults


class Fault(NamedTuple):
    """The files, what the error says of them, and how they are given (by default the only file)."""

    files: Mapping[str, str | bytes]
    says: str
    given: str = ""
    source: str | None = None
    target: str | None = None
    kind: type[HeedError] = InputError


GOOD = tsv(0, 30)
PACKED = gzip.compress(GOOD.encode())
FAULTS = {
    "empty": Fault({"p.tsv": ""}, "p.tsv: empty"),
    "only a BOM": Fault({"p.tsv": codecs.BOM_UTF8}, "p.tsv: empty"),
    "only line ends": Fault({"p.tsv": "\r\n\n"}, "p.tsv: empty"),
    "empty inside": Fault({"p.tsv.gz": ""}, "p.tsv.gz: empty"),
    "one row": Fault(
        {"p.tsv": "a\tb\n"},
        "p.tsv: 1 different source sentence, expected at least 3, as some are held out",
    ),
    "two rows": Fault(
        {"p.tsv": "a\tb\nc\td\n"},
        "p.tsv: 2 different source sentences, expected at least 3, as some are held out",
    ),
    "unequal sides": Fault(
        {"train.en": "a\nb\nc\n", "train.de": "a\nb\n"},
        "train.de:2: the last line, but train.en has 3 lines, expected as many",
        ".",
    ),
    "three columns": Fault({"p.tsv": GOOD + "a\tb\tc\n"}, "p.tsv:31: 3 columns, expected 2 (source TAB target)"),
    "one column": Fault({"p.tsv": GOOD + "a b\n"}, "p.tsv:31: 1 column, expected 2 (source TAB target)"),
    "commas and semicolons": Fault({"p.csv": "a;b\nc,d,e\n"}, "p.csv:1: 1 column, expected 2 (source comma target)"),
    "fewer than the header": Fault(
        {"p.tsv": "id\tsource\ttarget\n1\ta\n"}, "p.tsv:2: 2 columns, expected 3 as in the header"
    ),
    "a column that is not there": Fault(
        {"p.csv": "source,other\na,b\n"},
        "p.csv:1: no column 'target' in the header; there are 'source', 'other'",
    ),
    "an open quote": Fault({"p.csv": 'a,b\n"c,d\ne,f\n'}, "p.csv:2: not CSV: unexpected end of data"),
    "UTF-16": Fault({"p.tsv": codecs.BOM_UTF16_LE + b"a\0b"}, "p.tsv: not UTF-16, as its first bytes say"),
    "Latin-1": Fault(
        {"p.tsv": codecs.BOM_UTF8 + GOOD.encode() + "Größe\tsize\n".encode("latin-1")},
        "p.tsv:31: byte 3 of the line (0xf6) is not UTF-8",
    ),
    "a surrogate": Fault({"p.tsv": b"\xed\xa0\x80\tb"}, "p.tsv:1: byte 1 of the line (0xed) is not UTF-8"),
    "a NUL": Fault({"p.tsv": GOOD + "a\0\tb\n"}, "p.tsv:31: a NUL byte, expected text"),
    "a very long line": Fault(
        {"p.tsv": GOOD + "a\t" + "b" * LONGEST_LINE},
        "p.tsv:31: 1,000,002 characters in one line, at most 1,000,000 are read",
    ),
    "not JSON": Fault(
        {"p.jsonl": '{"source": "a", "target": "b"}\n' * 9 + "{'source': 1}\n"},
        "p.jsonl:10: not JSON at character 2: Expecting property name enclosed in double quotes",
    ),
    "deep JSON": Fault({"p.jsonl": "[" * LONGEST_LINE}, "p.jsonl:1: not JSON: nested too deeply"),
    "a list": Fault({"p.jsonl": '["a", "b"]\n'}, "p.jsonl:1: a list, expected an object"),
    "a number for a text": Fault(
        {"p.jsonl": '{"source": "a", "target": 7}\n'}, "p.jsonl:1: 'target' is a number, expected text"
    ),
    "null for a text": Fault(
        {"p.jsonl": '\n{"translation": {"en": null, "de": "b"}}\n'},
        "p.jsonl:2: 'en' is null, expected text",
        source="en",
        target="de",
    ),
    "a key that is not there": Fault(
        {"p.jsonl": '{"source": "a", "other": "b"}\n'},
        "p.jsonl:1: no key 'target'; there are 'source', 'other'",
    ),
    "every pair empty": Fault({"p.tsv": "a\t\n\tb\n"}, "p.tsv: every pair has an empty side"),
    "not gzip": Fault({"p.tsv.gz": b"RAW" + b"a\tb\n"}, "p.tsv.gz: not a gzip file, or damaged"),
    "a cut gzip": Fault({"p.tsv.gz": b"RAW" + PACKED[:-12]}, "p.tsv.gz: a gzip file that is cut short"),
    "another sum": Fault({"p.tsv.gz": b"RAW" + PACKED[:-8] + bytes(8)}, "p.tsv.gz: not a gzip file, or damaged"),
    "xz": Fault({"p.tsv.xz": b"RAW" + lzma.compress(b"a\tb\n")}, "p.tsv.xz: packed by xz"),
    "bzip2": Fault({"p.tsv.bz2": b"RAW" + bz2.compress(b"a\tb\n")}, "p.tsv.bz2: packed by bzip2"),
    "zstd": Fault({"p.tsv.zst": b"RAW\x28\xb5\x2f\xfd\x04\x08!\0\0a\tb\n"}, "p.tsv.zst: packed by zstd"),
    "a folder for a file": Fault(
        {"train.en": "a\n", "train.dir": b"FOLDER"},
        "train.dir: a folder, expected a file",
        ".",
        "en",
        "dir",
    ),
    "a link loop": Fault({"a.tsv": b"LINK a.tsv"}, "a.tsv: a link that leads back to itself"),
    "a link to nothing": Fault(
        {"a.tsv": b"LINK b.tsv"}, "a.tsv: a link to a file that is not there", kind=MissingError
    ),
    "a missing file": Fault({"train.tsv": GOOD}, "trian.tsv: no such file or folder", "trian.tsv", kind=MissingError),
    "a missing folder": Fault({"data": b"FOLDER"}, "dota: no such file or folder", "dota/train.tsv", kind=MissingError),
    "a file for a folder": Fault(
        {"p.tsv": GOOD}, "p.tsv/train.tsv: cannot be read: Not a directory", "p.tsv/train.tsv"
    ),
    "another kind of file": Fault(
        {"p.docx": b"RAWPK\x03\x04\xff\0"}, "p.docx: not text, but perhaps a picture or a packed file"
    ),
    "no training file": Fault(
        {"valid.en": "a\n", "notes.md": "b\n"},
        ".: no training file; it holds 'notes.md', 'valid.en'",
        ".",
        kind=MissingError,
    ),
    "three languages": Fault(
        {"train.en": "a\n", "train.de": "b\n", "train.fr": "c\n"},
        ".: which two languages? the training files there are train.de, train.en, train.fr",
        ".",
    ),
    "a language that is not there": Fault(
        {"train.en": "a\n", "train.de": "b\n"},
        ".: no train.it; the training files there are train.de, train.en",
        ".",
        "en",
        "it",
        MissingError,
    ),
    "half a validation set": Fault(
        {"train.en": "a\n", "train.de": "b\n", "valid.de": "c\n"},
        ".: no valid.en beside valid.de",
        ".",
        kind=MissingError,
    ),
    "one language twice": Fault({"p.tsv": GOOD}, "source and target are both 'en'", "", "en", "en"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_one_line_that_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, tally: Callable[[str, int], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in fault.files.items():
        if content == b"FOLDER":
            Path(name).mkdir()
        elif isinstance(content, bytes) and content.startswith(b"LINK "):
            Path(name).symlink_to(content.removeprefix(b"LINK ").decode())
        elif isinstance(content, bytes) and content.startswith(b"RAW"):
            Path(name).write_bytes(content.removeprefix(b"RAW"))
        else:
            write(Path(), {name: content})
    with pytest.raises(HeedError) as caught:
        read_parallel(fault.given or next(iter(fault.files)), source=fault.source, target=fault.target)
    assert str(caught.value) == fault.says
    assert type(caught.value) is fault.kind
    assert caught.value.fix
    assert "\n" not in str(caught.value) + caught.value.fix
    tally("R10 bad data", 1)


def test_a_missing_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, {"train.tsv": GOOD})
    with pytest.raises(MissingError) as caught:
        read_parallel(tmp_path / "trian.tsv")
    assert caught.value.fix == f"did you mean {tmp_path / 'train.tsv'}?"
    with pytest.raises(MissingError) as caught:
        read_parallel(tmp_path / "what" / "train.tsv")
    assert caught.value.fix == "check the path"


def test_no_permission_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {"p.tsv": GOOD}) / "p.tsv"

    def refuse(self: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # a superuser may read everything
    with pytest.raises(InputError, match=r"(?m)p\.tsv: no permission to read it$") as caught:
        read_parallel(path)
    assert caught.value.fix == "chmod u+r p.tsv"


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text("Go.\tLos!\n")
    with pytest.raises(InputError, match=r"(?m)^a\.tsv: named twice$"):
        read_whole(["*.tsv", "./a.tsv:2"])
    read = read_whole(["a.tsv:en>de", "a.tsv:de>en"])
    assert len(read.train) == 2, "once in each direction"
