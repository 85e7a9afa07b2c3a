"""Reading parallel text: every layout gives the same corpus, every fault one line that says where it is."""

import codecs
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from heedful.data.lines import LONGEST_LINE, read_lines
from heedful.data.text.corpus import read_parallel
from heedful.data.text.pairs import read_pairs
from heedful.data.text.reading import read_whole
from heedful.errors import HeedError, InputError, MissingError

ENGLISH = [f"the number {n}" for n in range(40)]
GERMAN = [f"die Zahl {n}" for n in range(40)]
PARTS = {"train": (0, 30), "valid": (30, 35), "test": (35, 38), "test_2016": (38, 40)}


def lines(*texts: str) -> str:
    return "".join(text + "\n" for text in texts)


def tsv(start: int = 0, stop: int = 40) -> str:
    return lines(*(f"{ENGLISH[n]}\t{GERMAN[n]}" for n in range(start, stop)))


def comma(start: int, stop: int) -> str:
    return lines("id,DE,En", *(f'{n},"{GERMAN[n]}",{ENGLISH[n]}' for n in range(start, stop)))


def jsonl(start: int, stop: int) -> str:
    return lines(*(json.dumps({"de": GERMAN[n], "en": ENGLISH[n]}) for n in range(start, stop)))


def translations(start: int, stop: int) -> str:
    rows = ({"id": n, "translation": {"en": ENGLISH[n], "de": GERMAN[n]}} for n in range(start, stop))
    return lines(*map(json.dumps, rows))


def sides(valid: str = "valid", ending: str = "") -> dict[str, str]:
    return {
        f"{stem.replace('valid', valid)}.{name}{ending}": lines(*texts[start:stop])
        for stem, (start, stop) in PARTS.items()
        for name, texts in (("en", ENGLISH), ("de", GERMAN))
    }


def tables(kind: str, table: Callable[[int, int], str]) -> dict[str, str]:
    return {f"{stem}.{kind}": table(*part) for stem, part in PARTS.items()}


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


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
    assert (corpus.source, corpus.target, corpus.notes) == ("en", "de", ())
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


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("pairs.tsv", "Go.\tLos!\nHi.\tHallo!\nRun!\tLauf!\n", None),
        ("pairs.tsv", "de\tid\tEN\nLos!\t1\tGo.\nHallo!\t2\tHi.\nLauf!\t3\tRun!\n", None),
        ("pairs.tsv", "Go.\tLos!\tCC-BY\nHi.\tHallo!\nRun!\tLauf!\tCC-BY\tTom\n", (1, 2)),
        ("pairs.txt", "9\tLos!\tGo.\n9\tHallo!\tHi.\n9\tLauf!\tRun!\n", (3, 2)),
        ("pairs.csv", "Go.,Los!\nHi.,Hallo!\nRun!,Lauf!\n", None),
        ("pairs.csv", '"en","de"\n"Go.","Los!"\n"Hi.","Hallo!"\n"Run!","Lauf!"\n', None),
        ("PAIRS.TSV", "Go.\tLos!\nHi.\tHallo!\nRun!\tLauf!\n", None),
    ],
)
def test_the_columns_of_a_table(tmp_path: Path, name: str, content: str, columns: tuple[int, int] | None) -> None:
    path = write(tmp_path, {name: content}) / name
    corpus = read_parallel(path, source="en", target="de", columns=columns)
    parts = (corpus.train, corpus.valid, corpus.tests["test"])
    pairs = {pair for part in parts for pair in zip(part.source, part.target, strict=True)}
    assert pairs == {("Go.", "Los!"), ("Hi.", "Hallo!"), ("Run!", "Lauf!")}
    assert corpus.files == (path,)


def test_a_header_is_found_case_aside(tmp_path: Path) -> None:
    path = write(tmp_path, {"p.tsv": "De\tEn\n" + lines(*(f"{n}\t{n} en" for n in range(9)))}) / "p.tsv"
    corpus = read_parallel(path, source="eN", target="dE")
    assert len(corpus.train) == 7
    assert all(text.endswith(" en") for text in corpus.train.source)


def test_a_quoted_cell_holds_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    rows = 'en,de\n"a, b","say ""c"""\n"two\nlines",d\ne,f\nonly one\n'
    with pytest.raises(InputError, match=r"p\.csv:6: 1 column, expected 2 as in the header$"):
        read_parallel(write(tmp_path, {"p.csv": rows}) / "p.csv", source="en", target="de")
    path = write(tmp_path, {"p.csv": rows.removesuffix("only one\n")}) / "p.csv"
    corpus = read_parallel(path, source="en", target="de")
    parts = (corpus.train, corpus.valid, corpus.tests["test"])
    pairs = {pair for part in parts for pair in zip(part.source, part.target, strict=True)}
    assert pairs == {("a, b", 'say "c"'), ("two\nlines", "d"), ("e", "f")}


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    texts = ["a\u2028b", "c\x85d", "e\x0bf\x0c", "g\rh", "\x1c", " kept "]
    path = write(tmp_path, {"a.en": lines(*texts)}) / "a.en"
    assert read_lines(path) == texts
    pairs = read_pairs(path, path)
    assert (pairs.source, pairs.dropped) == ([*texts[:4], " kept "], 1)


def test_empty_lines_are_kept_for_the_caller_of_read_lines(tmp_path: Path) -> None:
    assert read_lines(write(tmp_path, {"a.en": "one\n\n\r\ntwo\n\n"}) / "a.en") == ["one", "", "", "two", ""]


def test_pairs_with_an_empty_side_are_dropped_and_counted(tmp_path: Path) -> None:
    train = {"train.tsv": tsv(0, 30) + "\n\t\nleft\t \n\tright\n", "valid.tsv": tsv(30, 35)}
    corpus = read_parallel(write(tmp_path, train))
    assert corpus.train.source == ENGLISH[:30]
    assert corpus.notes == (f"{tmp_path / 'train.tsv'}: 4 of 34 pairs dropped, a side is empty",)


def test_sources_that_were_trained_on_are_counted(tmp_path: Path) -> None:
    test = {"test.tsv": "  THE Number 3\tx\nthe number 3\ty\nnew\tz\n"}
    corpus = read_parallel(write(tmp_path, {"train.tsv": tsv(0, 30), "valid.tsv": tsv(30, 35), **test}))
    assert corpus.notes == (f"{tmp_path / 'test.tsv'}: 2 of 3 sources are in the training text too",)


def test_surrogates_of_json_never_come_through(tmp_path: Path) -> None:
    row = r'{"source": "\ud83d\ude00 \ud83d", "target": "x"}'
    pairs = read_parallel(write(tmp_path, {"train.jsonl": row, "valid.jsonl": row, "test.jsonl": row})).train
    assert pairs.source == ["😀 \ufffd"]


# Headers, numbers and directions


@pytest.mark.parametrize(
    ("header", "asked", "expected"),
    [
        ("English\tGerman", (None, None), ("English", "German", "--source German --target English")),
        ("en\tde", (None, None), ("en", "de", "--source de --target en")),
        ("en-GB\tdeu", (None, None), ("en-GB", "deu", "--source deu --target en-GB")),
        ("English\tDeutsch", ("en", "de"), ("en", "de", "--source de --target en")),
        ("src\ttrg", (None, None), ("src", "trg", "--source trg --target src")),
        ("source\tgerman", (None, None), ("source", "german", "--source german --target source")),
        ("en\tde", ("1", "2"), ("en", "de", "--source 2 --target 1")),
        (None, ("1", "2"), ("column 1", "column 2", "--source 2 --target 1")),
        (None, ("column 1", "column 2"), ("column 1", "column 2", "--source 2 --target 1")),
        (None, ("en", "de"), ("en", "de", "--source 2 --target 1")),
        (None, (None, None), ("source", "target", "--source 2 --target 1")),
    ],
)
def test_a_header_is_not_learnt_and_the_direction_is_known(
    tmp_path: Path, header: str | None, asked: tuple[str | None, str | None], expected: tuple[str, str, str]
) -> None:
    rows = tsv(0, 30) if header is None else f"{header}\n" + tsv(0, 30)
    corpus = read_parallel(write(tmp_path, {"p.tsv": rows}) / "p.tsv", source=asked[0], target=asked[1])
    texts = [text for part in (corpus.train, corpus.valid, corpus.tests["test"]) for text in part.source]
    assert sorted(texts) == sorted(ENGLISH[:30])
    assert (corpus.source, corpus.target, corpus.other_way) == expected


@pytest.mark.parametrize("header", [None, "English\tGerman", "en\tde"])
@pytest.mark.parametrize("asked", [("2", "1"), ("de", "en"), ("German", "English")])
def test_the_other_way(tmp_path: Path, header: str | None, asked: tuple[str, str]) -> None:
    """Numbers choose columns, and names do where a header has them: without one they are what the two are called."""
    rows = tsv(0, 30) if header is None else f"{header}\n" + tsv(0, 30)
    corpus = read_parallel(write(tmp_path, {"p.tsv": rows}) / "p.tsv", source=asked[0], target=asked[1])
    turned = header is not None or asked == ("2", "1")
    assert {*corpus.train.source} <= {*(GERMAN if turned else ENGLISH)}
    assert {*corpus.train.target} <= {*(ENGLISH if turned else GERMAN)}


@pytest.mark.parametrize("row", ["No\tNon", "The cat\tDie Katze", "My\tMi", "Hi\tde"])
def test_a_pair_of_texts_is_no_header(tmp_path: Path, row: str) -> None:
    corpus = read_parallel(write(tmp_path, {"p.tsv": f"{row}\n" + tsv(0, 30)}) / "p.tsv")
    assert len(corpus.train) + len(corpus.valid) + len(corpus.tests["test"]) == 31


def test_keys_that_name_languages_are_found(tmp_path: Path) -> None:
    corpus = read_parallel(write(tmp_path, {"p.jsonl": jsonl(0, 30)}) / "p.jsonl")
    assert (corpus.source, corpus.target, corpus.other_way) == ("de", "en", "--source en --target de")
    assert {*corpus.train.source} <= {*GERMAN}


@pytest.mark.parametrize("number", ["id", "nr", "no"])  # also Indonesian, South Ndebele and Norwegian
@pytest.mark.parametrize("kind", ["jsonl", "json", "tsv", "csv"])
def test_a_column_of_numbers_is_no_language(tmp_path: Path, number: str, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    names, rows = [number, "en", "de"], [[7 + i, f"a {i}", f"ein {i}"] for i in range(5)]
    if kind.startswith("json"):
        objects = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        path.write_text("\n".join(objects) if kind == "jsonl" else f"[{','.join(objects)}]")
    else:
        path.write_text("".join((";" if kind == "csv" else "\t").join(map(str, row)) + "\n" for row in [names, *rows]))
    for target in [None] if kind.startswith("json") else [None, "de"]:
        read = read_whole(path, target=target)
        assert (read.taken.source, read.taken.target) == ("en", "de")
        assert read.train.source == [row[1] for row in rows]


def test_the_attributions_of_tatoeba_are_left_out(tmp_path: Path) -> None:
    rows = lines(*(f"{ENGLISH[n]}\t{GERMAN[n]}\tCC-BY 2.0 (France) Attribution: tatoeba.org #{n}" for n in range(30)))
    corpus = read_parallel(write(tmp_path, {"p.tsv": rows}) / "p.tsv")
    assert {*corpus.train.target} <= {*GERMAN}


@pytest.mark.parametrize(
    ("header", "asked", "message"),
    [
        (None, ("2", "de"), "source '2' and target 'de'"),
        (None, ("0", "1"), "source '0' and target '1'"),
        ("en\tde\tfr", (None, None), "which two columns"),
        ("en\tde", ("en", "fr"), "no column 'fr' in the header; there are 'en', 'de'"),
    ],
)
def test_what_leaves_a_choice_is_asked_for(
    tmp_path: Path, header: str | None, asked: tuple[str | None, str | None], message: str
) -> None:
    rows = (f"{header}\n" if header else "") + tsv(0, 30)
    with pytest.raises(InputError, match=message):
        read_parallel(write(tmp_path, {"p.tsv": rows}) / "p.tsv", source=asked[0], target=asked[1])


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

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)  # a superuser may read everything
    with pytest.raises(InputError, match=r"p\.tsv: no permission to read it$") as caught:
        read_parallel(path)
    assert caught.value.fix == "chmod u+r p.tsv"


@pytest.mark.parametrize("columns", [(0, 1), (2, 2)])
def test_columns_are_two_different_numbers_from_1(tmp_path: Path, columns: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="expected two different numbers from 1"):
        read_parallel(write(tmp_path, {"p.tsv": GOOD}) / "p.tsv", columns=columns)


def test_a_row_without_the_column_that_a_number_names(tmp_path: Path) -> None:
    path = write(tmp_path, {"p.tsv": "a\tb\tc\nd\te\n"}) / "p.tsv"
    with pytest.raises(InputError, match=r"p\.tsv:2: 2 columns, expected at least 3$"):
        read_parallel(path, columns=(3, 1))


def test_a_header_without_the_column_that_a_number_names(tmp_path: Path) -> None:
    path = write(tmp_path, {"p.tsv": "en\tde\n" + GOOD}) / "p.tsv"
    with pytest.raises(InputError, match=r"p\.tsv:1: 2 columns, expected at least 3$"):
        read_parallel(path, source="1", target="3")
    with pytest.raises(InputError, match=r"p\.tsv:1: 2 columns, expected at least 3$"):
        read_whole(path, tag="3")


IN_ENGLISH = [
    "The cat is sleeping on the old chair.",
    "We will meet at the station tomorrow.",
    "She bought some bread.",
]
IN_GERMAN = ["Die Katze schläft auf dem alten Stuhl.", "Wir treffen uns morgen am Bahnhof.", "Sie kaufte etwas Brot."]


@pytest.mark.parametrize("kind", ["tsv", "csv"])
@pytest.mark.parametrize("order", ["eg", "ge", "#eg", "g#e", "#dge"])
@pytest.mark.parametrize("asked", [("en", "de"), ("German", "English"), (None, None)])
def test_columns_without_a_header_are_told_by_their_languages(
    tmp_path: Path, kind: str, order: str, asked: tuple[str | None, str | None]
) -> None:
    """In any order, beside numbers and words that say of which kind a pair is."""
    columns = {"e": IN_ENGLISH, "g": IN_GERMAN, "#": ["1", "2", "3"], "d": ["spoken", "travel", "spoken"]}
    path, between = tmp_path / f"pairs.{kind}", "\t" if kind == "tsv" else ";"
    path.write_text("".join(between.join(columns[key][i] for key in order) + "\n" for i in range(3)))
    read = read_whole(path, source=asked[0], target=asked[1])
    first = "g" if asked[0] == "German" or (asked[0] is None and order.index("g") < order.index("e")) else "e"
    assert read.train.source == columns[first]
    assert read.train.target == columns["e" if first == "g" else "g"]
    if len(order) > 2:
        assert "by their languages" in read.told[0]
        assert f"columns {order.index(first) + 1} and " in read.told[0]


def test_columns_that_no_language_tells_are_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{i}\t{text}\t{text}\n" for i, text in enumerate(IN_ENGLISH)))
    with pytest.raises(InputError, match="3 columns, expected 2"):
        read_whole(path, source="en", target="de")
    path.write_text("".join(f"{one}\t{other}\n" for one, other in zip(IN_GERMAN, IN_ENGLISH, strict=True)))
    assert read_whole(path).train.source == IN_GERMAN  # two alone are source and target, as they stand


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text("Go.\tLos!\n")
    with pytest.raises(InputError, match=r"^a\.tsv: named twice$"):
        read_whole(["*.tsv", "./a.tsv:2"])
    read = read_whole(["a.tsv:en>de", "a.tsv:de>en"])
    assert len(read.train) == 2, "once in each direction"


def test_a_tag_stands_beside_a_translation(tmp_path: Path) -> None:
    row = {"register": "formal", "translation": {"en": "Go.", "de": "Los!"}}
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    assert [*read_whole(tmp_path / "p.jsonl", tag="register").train.tags] == ["formal"]
