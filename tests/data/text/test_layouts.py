"""Pairs as people have them: each way to keep the same pairs is read as the same, and it is told what was taken."""

import gzip
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import written
from heedful.data.text.corpus import Corpus, read_parallel
from heedful.errors import HeedError, InputError, MissingError

ENGLISH = [f"number {n}, counted" for n in range(40)]
GERMAN = [f"Zahl {n}, gezählt" for n in range(40)]
EN, DE = ("".join(f"{text}\n" for text in side) for side in (ENGLISH, GERMAN))
PAIRS = [*zip(ENGLISH, GERMAN, strict=True)]
OBJECTS = [{"en": one, "de": other} for one, other in zip(ENGLISH, GERMAN, strict=True)]


def table(separator: str, header: str = "", quote: str = "") -> str:
    rows = (f"{quote}{o['en']}{quote}{separator}{quote}{o['de']}{quote}\n" for o in OBJECTS)
    return f"{header}\n" * bool(header) + "".join(rows)


def packed(files: Mapping[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def put(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def pairs(corpus: Corpus) -> set[tuple[str, str]]:
    parts = (corpus.train, corpus.valid, *corpus.tests.values())
    return {pair for part in parts for pair in zip(part.source, part.target, strict=True)}


OPUS = {"Europarl.de-en.de": DE, "Europarl.de-en.en": EN, "README": "words\n", "LICENSE": "CC-BY\n"}
NO_HEADER = "no header, columns 1 and 2"
HEADER = "columns 'en' and 'de' of its header"
READ: dict[str, tuple[Mapping[str, str | bytes], str, str]] = {
    "semicolons": ({"p.csv": table(";")}, "p.csv", f"separated by semicolon, {NO_HEADER}, 40 pairs"),
    "semicolons and a header": ({"p.csv": table(";", "en;de")}, "p.csv", f"semicolon, {HEADER}, 40 pairs"),
    "quoted semicolons": ({"p.csv": table(";", "en;de", '"')}, "p.csv", f"semicolon, {HEADER}"),
    "TABs in .csv": ({"p.csv": table("\t")}, "p.csv", f"separated by TAB, {NO_HEADER}"),
    "bars": ({"p.csv": table("|")}, "p.csv", f"separated by |, {NO_HEADER}"),
    "bars with spaces": ({"p.txt": table(" | ", "en | de")}, "p.txt", f"separated by |, {HEADER}"),
    "commas": ({"p.csv": table(",", "", '"')}, "p.csv", f"separated by comma, {NO_HEADER}"),
    "commas in .txt": ({"p.txt": table(",", "en,de", '"')}, "p.txt", f"separated by comma, {HEADER}"),
    "semicolons in .tsv": ({"p.tsv": table(";")}, "p.tsv", f"separated by semicolon, {NO_HEADER}"),
    "CR ends the lines": (
        {"p.csv": table(";", "en;de").replace("\n", "\r")},
        "p.csv",
        f"semicolon, {HEADER}, 40 pairs",
    ),
    "CR ends the lines of sides": (
        {"c.de": DE.replace("\n", "\r"), "c.en": EN.replace("\n", "\r")},
        ".",
        "line by line",
    ),
    "semicolons, packed": ({"p.csv.gz": gzip.compress(table(";").encode())}, "p.csv.gz", "semicolon"),
    "a list": ({"p.json": json.dumps(OBJECTS, indent=1)}, "p.json", "JSON, keys 'en' and 'de', 40 pairs"),
    "translations": ({"p.json": json.dumps([{"translation": each} for each in OBJECTS])}, "p.json", "'en' and 'de'"),
    "data": ({"p.json": json.dumps({"version": "1", "data": OBJECTS})}, "p.json", "'en' and 'de'"),
    "another name": ({"p.json": json.dumps({"train": OBJECTS})}, "p.json", "'en' and 'de'"),
    "lines in .json": ({"p.json": "\n".join(map(json.dumps, OBJECTS))}, "p.json", "'en' and 'de'"),
    "OPUS": (OPUS, ".", "Europarl.de-en.en + Europarl.de-en.de: line by line, en and de, 40 pairs"),
    "Moses": ({"corpus.de": DE, "corpus.en": EN, "notes.md": "x\n"}, ".", "corpus.en + corpus.de: line by line"),
    "packed sides": ({"c.de": DE, "c.en.gz": gzip.compress(EN.encode())}, ".", "c.en.gz + c.de: line by line"),
    "a prefix": ({"corpus.de": DE, "corpus.en": EN, "other.de": EN}, "corpus", "corpus.en + corpus.de"),
    "a prefix of OPUS": (OPUS, "Europarl.de-en", "Europarl.de-en.en + Europarl.de-en.de"),
    "one table": ({"mine.csv": table(";"), "README.txt": "words\n"}, ".", "mine.csv: separated by semicolon"),
    "sides in .txt": ({"corpus.en.txt": EN, "corpus.de.txt": DE}, ".", "corpus.en.txt + corpus.de.txt: line by line"),
    "languages in .txt": ({"en.txt": EN, "de.txt": DE}, ".", "en.txt + de.txt: line by line, en and de"),
    "sides in capitals": ({"c.EN.GZ": gzip.compress(EN.encode()), "c.de": DE}, ".", "c.EN.GZ + c.de: line by line"),
    "a table in capitals": ({"P.TSV.GZ": gzip.compress(table("\t").encode())}, ".", "P.TSV.GZ: separated by TAB"),
    "a memory in capitals": ({"M.TMX": written.tmx(PAIRS)}, ".", "M.TMX: TMX, en and de, 40 pairs"),
    "memoQ": ({"m.mqxliff": written.xliff(PAIRS)}, ".", "m.mqxliff: XLIFF"),
    "Phrase": ({"m.mxliff": written.xliff(PAIRS)}, ".", "m.mxliff: XLIFF"),
    "a zip of OPUS": ({"de-en.zip": packed(OPUS)}, "de-en.zip", "de-en.zip/Europarl.de-en.en + "),
    "a zip of a folder": (
        {"z.zip": packed({"a/train.csv": table(";"), "__MACOSX/a/train.csv": "?", "a/.x": "?"})},
        "z.zip",
        "z.zip/a/train.csv: separated by semicolon",
    ),
    "a zip of JSON": ({"z.zip": packed({"p.json": json.dumps(OBJECTS)})}, "z.zip", "z.zip/p.json: JSON"),
    "gzip in zip": ({"z.zip": packed({"p.csv.gz": gzip.compress(table(";").encode())})}, "z.zip", "z.zip/p.csv.gz"),
}


@pytest.mark.parametrize(("files", "path", "told"), READ.values(), ids=READ.keys())
def test_pairs_are_read_however_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str | bytes], path: str, told: str
) -> None:
    monkeypatch.chdir(put(tmp_path, files))
    corpus = read_parallel(path, source="en", target="de")
    assert pairs(corpus) == set(zip(ENGLISH, GERMAN, strict=True))
    assert len(corpus.taken) == 1
    assert told in corpus.taken[0]
    assert all(file.is_file() for file in corpus.files)
    assert corpus.files


def test_without_names_the_languages_are_those_of_the_files(tmp_path: Path) -> None:
    corpus = read_parallel(put(tmp_path, OPUS))
    assert (corpus.source, corpus.target, corpus.other_way) == ("de", "en", "--source en --target de")


@pytest.mark.parametrize("given", [("a.en", "b.de"), ("en.txt", "de.txt")])
def test_two_files_are_source_and_target_unless_names_say_otherwise(tmp_path: Path, given: tuple[str, str]) -> None:
    one, other = (put(tmp_path, {name: text}) / name for name, text in zip(given, (EN, DE), strict=True))
    corpus = read_parallel([one, other])
    assert (corpus.source, corpus.target, corpus.files) == ("en", "de", (one, other))
    assert pairs(corpus) == set(zip(ENGLISH, GERMAN, strict=True))
    assert read_parallel([other, one]).source == "de"
    assert pairs(read_parallel([other, one], source="en", target="German")) == pairs(corpus)


def test_all_tables_of_a_folder_are_read_and_their_names_say_the_part(tmp_path: Path) -> None:
    files = {
        "a.csv": "en;de\none;eins\ntwo;zwei\n",
        "b.tsv": "de\ten\ndrei\tthree\nvier\tfour\n",
        "b.dev.tsv": "en\tde\nfive\tfünf\n",
        "newstest2013.jsonl": '{"de": "sechs", "en": "six"}\n',
    }
    corpus = read_parallel(put(tmp_path, files))
    assert corpus.train.source == ["one", "two", "three", "four"]
    assert corpus.train.target == ["eins", "zwei", "drei", "vier"]
    assert (corpus.valid.source, corpus.tests["newstest2013"].target) == (["five"], ["sechs"])
    assert (corpus.source, corpus.target, len(corpus.taken)) == ("en", "de", 4)


def test_several_pairs_of_files_are_read_and_their_names_say_the_part(tmp_path: Path) -> None:
    files = {"a.de": "eins\n", "a.en": "one\n", "b.de-en.de": "zwei\n", "b.de-en.en": "two\n", "c.en": "alone\n"}
    files |= {"newstest2013.de": "drei\n", "newstest2013.en": "three\n", "x.dev.de": "vier\n", "x.dev.en": "four\n"}
    corpus = read_parallel(put(tmp_path, files), source="en", target="de")
    assert (corpus.train.source, corpus.train.target) == (["one", "two"], ["eins", "zwei"])
    assert (corpus.valid.source, corpus.tests["newstest2013"].source) == (["four"], ["three"])
    assert corpus.notes == (f"{tmp_path / 'c.en'}: left out, it is there in one of the two languages only",)


@pytest.mark.parametrize("names", [("a.tsv", "a.tmx"), ("a.tsv", "B.TMX"), ("a.txt", "a.tmx"), ("de.txt", "en.txt")])
def test_all_tables_are_read_however_they_are_called(tmp_path: Path, names: tuple[str, str]) -> None:
    kinds = {"tsv": table("\t"), "txt": table("\t"), "tmx": written.tmx(PAIRS)}
    corpus = read_parallel(put(tmp_path, {name: kinds[name.lower()[-3:]] for name in names}))
    assert sorted(path.name for path in corpus.files) == sorted(names)


SIDES_OF = {"a.en": EN, "a.de": DE}
ONLY = {"a.tsv": table("\t")}
MEMORY = written.tmx(PAIRS)
LEFT_OUT: dict[str, tuple[Mapping[str, str | bytes], str]] = {
    "a table": ({**SIDES_OF, "big.tmx": MEMORY, "README.md": "x", ".x": "x", "a.png": b"x"}, "{0}/big.tmx"),
    "a folder": ({**ONLY, "in/b.tsv": table("\t")}, "{0}/in"),
    "a zip file": ({**ONLY, "b.zip": packed(ONLY)}, "{0}/b.zip"),
    "one side": ({**ONLY, "mono.en": EN}, "{0}/mono.en"),
    "a packed copy": ({**ONLY, "a.tsv.gz": gzip.compress(table("\t").encode())}, "{0}/a.tsv.gz"),
    "beside train": (
        {"train.tsv": table("\t"), "more.tsv": table("\t"), "train.jsonl": ""},
        "{0}/more.tsv, {0}/train.jsonl",
    ),
    "many": (
        {**SIDES_OF, **{f"{n}.tsv": table("\t") for n in range(6)}},
        "{0}/0.tsv, {0}/1.tsv, {0}/2.tsv and 3 more",
    ),
}


@pytest.mark.parametrize(("files", "told"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_what_else_may_be_data_is_told_once(tmp_path: Path, files: Mapping[str, str | bytes], told: str) -> None:
    corpus = read_parallel(put(tmp_path, files), source="en", target="de")
    (note,) = (note for note in corpus.notes if "left out" in note)
    assert note.startswith(f"{told.format(tmp_path)}: left out, as the data are {tmp_path}/")
    first = told.format(tmp_path).split(",")[0]
    asked = f"; --data {tmp_path} --data {first} reads that too"
    assert note.endswith(asked) == (not first.endswith(".en"))


def test_so_is_a_table_beside_two_sides_in_a_zip_file(tmp_path: Path) -> None:
    put(tmp_path, {"z.zip": packed({**SIDES_OF, "other.tsv": table("\t")})})
    (note,) = (note for note in read_parallel(tmp_path / "z.zip").notes if "left out" in note)
    assert note.startswith(f"{tmp_path}/z.zip/other.tsv: left out, as the data are {tmp_path}/z.zip/a.de and ")
    assert note.endswith("; unpack the zip file, and name its files, to read others")


def test_what_is_given_too_is_not_told(tmp_path: Path) -> None:
    files = {**SIDES_OF, "b.tmx": MEMORY, "in/c.tsv": "six\tsechs\n", "t.csv": "en,de\nseven,sieben\n"}
    put(tmp_path, files)
    corpus = read_parallel(
        [str(tmp_path), str(tmp_path / "b.tmx"), str(tmp_path / "in")],
        source="en",
        target="de",
        test=[str(tmp_path / "t.csv")],
    )
    assert len(corpus.files) == 5
    assert not [note for note in corpus.notes if "left out" in note]


@pytest.mark.parametrize("name", ["in/b.tsv", "b.zip"])
def test_without_training_files_it_says_what_holds_some(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingError, match="no training file; it holds") as caught:
        read_parallel(put(tmp_path, {name: packed(ONLY)}))
    assert caught.value.fix == f"name what is in it: --data {tmp_path / name.partition('/')[0]}"


def test_of_many_files_a_few_are_told(tmp_path: Path) -> None:
    corpus = read_parallel(put(tmp_path, {f"{n}.tsv": f"{n}\t{n}\n" for n in range(20)}))
    assert len(corpus.train) + len(corpus.valid) + len(corpus.tests["test"]) == 20
    assert corpus.taken[8:] == ("and 12 more files",)


FAULTS: dict[str, tuple[Mapping[str, str | bytes], str | tuple[str, ...], str, type[HeedError]]] = {
    "a test alone": ({"newstest2013.de": DE, "newstest2013.en": EN}, ".", "no training file; it holds", MissingError),
    "three languages": ({"c.de": DE, "c.en": EN, "c.fr": EN}, ".", "which two languages", InputError),
    "one side": ({"corpus.de": DE, "corpus.en": EN}, "corpus.de", "corpus.de: one side of the pairs alone", InputError),
    "three files": ({"a": EN}, ("a", "a", "a"), "a:1: 1 column, expected 2", InputError),
    "a side and a table": (
        {"a.en": EN, "b.csv": DE},
        ("a.en", "b.csv"),
        "a.en: one side of the pairs alone",
        InputError,
    ),
    "a pattern of nothing": ({"a.csv": EN}, ("*.tmx",), "*.tmx: no file of this pattern", MissingError),
    "a weight of nothing": ({"a.csv": EN}, ("a.csv:0",), "a.csv:0: a weight of 0", InputError),
    "unequal files": ({"a.en": EN, "b.de": DE + "x\n"}, ("a.en", "b.de"), "a.en:40: the last line", InputError),
    "no zip": ({"z.zip": "PK?"}, "z.zip", "z.zip: not a zip file, or damaged", InputError),
    "a zip without data": ({"z.zip": packed({"README": "x"})}, "z.zip", "z.zip: no training file", MissingError),
    "a fault in a zip": ({"z.zip": packed({"p.tsv": "a\tb\nc\n"})}, "z.zip", "z.zip/p.tsv:2: 1 column", InputError),
    "a header alone": ({"p.tsv": "en\tde\n"}, "p.tsv", "p.tsv: a header and no pair", InputError),
    "a picture": ({"p.tsv": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"}, "p.tsv", "p.tsv: not text", InputError),
    "a JPEG": ({"p.tsv": b"\xff\xd8\xff\xe0"}, "p.tsv", "p.tsv: not text", InputError),
    "a number": ({"p.json": "7"}, "p.json", "p.json: a number, expected a list", InputError),
    "an empty list": ({"p.json": "[]"}, "p.json", "p.json: an empty list", InputError),
    "a list of texts": ({"p.json": '["a"]'}, "p.json", "p.json: item 1: text, expected an object", InputError),
    "not JSON": ({"p.json": '[\n{"a": 1,}\n]'}, "p.json", "p.json:2: not JSON: ", InputError),
    "deep JSON": ({"p.json": "[" * 200_000}, "p.json", "p.json:1: not JSON: nested too deeply", InputError),
}


@pytest.mark.parametrize(("files", "path", "says", "kind"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: Mapping[str, str | bytes],
    path: str | tuple[str, ...],
    says: str,
    kind: type[HeedError],
) -> None:
    monkeypatch.chdir(put(tmp_path, files))
    with pytest.raises(kind) as caught:
        read_parallel(path)
    assert says in str(caught.value)
    assert caught.value.fix
    assert "\n" not in str(caught.value) + caught.value.fix


def test_a_zip_file_is_not_unpacked_beyond_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"z.zip": packed({"p.tsv": table("\t"), "zeros": bytes(1_000_000)})})
    monkeypatch.setattr("heedful.data.lines.ALWAYS_UNPACKED", 100_000)
    with pytest.raises(InputError, match=r"z\.zip: 1,00\d,\d{3} bytes when unpacked, at most \d{3},\d{3} are read"):
        read_parallel(tmp_path / "z.zip")


def test_a_damaged_member_of_a_zip_file_is_named(tmp_path: Path) -> None:
    data = bytearray(packed({"p.tsv": table("\t")}))
    data[60] ^= 0xFF
    put(tmp_path, {"z.zip": bytes(data)})
    with pytest.raises(InputError, match=r"z\.zip/p\.tsv: damaged in the zip file"):
        read_parallel(tmp_path / "z.zip")


def test_so_is_one_that_is_packed_by_lzma(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("p.tsv", table("\t"))
    data = bytearray((tmp_path / "z.zip").read_bytes())
    data[39] = 0xFF  # which says how it is packed, behind a header of 30 bytes, the name, and 4 bytes
    (tmp_path / "z.zip").write_bytes(data)
    with pytest.raises(InputError, match=r"z\.zip/p\.tsv: damaged in the zip file"):
        read_parallel(tmp_path / "z.zip")


def test_files_of_one_name_in_several_folders_of_a_zip_file(tmp_path: Path) -> None:
    files = {f"{part}/data.tsv": f"en\tde\n{EN[:8]}\t{DE[:6]}\n" for part in ("test", "train", "valid")}
    (tmp_path / "p.zip").write_bytes(packed(files))
    with pytest.raises(InputError, match=r"two files of one name: test/data\.tsv and train/data\.tsv"):
        read_parallel(tmp_path / "p.zip")


def test_columns_that_a_run_saved_by_number_are_those(tmp_path: Path) -> None:
    """Also where the languages of the texts are in two others."""
    english = ["the cat sat on the mat and looked at us", "we are going home now because it is late"]
    german = ["die Katze sass auf der Matte und sah uns an", "wir gehen jetzt nach Hause weil es spät ist"]
    rows = [f"{i} {i}\t{one}\t{other}\n" for i, (one, other) in enumerate(zip(english * 3, german * 3, strict=True))]
    (tmp_path / "a.tsv").write_text("".join(rows), encoding="utf-8")
    asked = [("1", "2"), ("column 1", "column 2")]
    read = [read_parallel(tmp_path / "a.tsv", source=one, target=other) for one, other in asked]
    assert read[0].held_out == read[1].held_out
    assert read[1].train.source[0].split()[0].isdigit()
