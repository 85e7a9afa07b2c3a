"""Reading pairs from tables and JSON: which columns or keys they are in, and what of a row is kept."""

import json
from pathlib import Path

import pytest

from heedful.data.text.corpus import read_parallel
from heedful.data.text.reading import read_whole
from heedful.errors import InputError
from parallel import ENGLISH, GERMAN, jsonl, lines, tsv, write

GOOD = tsv(0, 30)


@pytest.mark.parametrize(
    ("name", "content", "asked"),
    [
        ("pairs.tsv", "Go.\tLos!\nHi.\tHallo!\nRun!\tLauf!\n", None),
        ("pairs.tsv", "de\tid\tEN\nLos!\t1\tGo.\nHallo!\t2\tHi.\nLauf!\t3\tRun!\n", None),
        ("pairs.tsv", "Go.\tLos!\tCC-BY\nHi.\tHallo!\nRun!\tLauf!\tCC-BY\tTom\n", ("1", "2")),
        ("pairs.txt", "9\tLos!\tGo.\n9\tHallo!\tHi.\n9\tLauf!\tRun!\n", ("3", "2")),
        ("pairs.csv", "Go.,Los!\nHi.,Hallo!\nRun!,Lauf!\n", None),
        ("pairs.csv", '"en","de"\n"Go.","Los!"\n"Hi.","Hallo!"\n"Run!","Lauf!"\n', None),
        ("PAIRS.TSV", "Go.\tLos!\nHi.\tHallo!\nRun!\tLauf!\n", None),
    ],
)
def test_the_columns_of_a_table(tmp_path: Path, name: str, content: str, asked: tuple[str, str] | None) -> None:
    path = write(tmp_path, {name: content}) / name
    source, target = asked or ("en", "de")
    corpus = read_parallel(path, source=source, target=target)
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
    with pytest.raises(InputError, match=r"(?m)p\.csv:6: 1 column, expected 2 as in the header$"):
        read_parallel(write(tmp_path, {"p.csv": rows}) / "p.csv", source="en", target="de")
    path = write(tmp_path, {"p.csv": rows.removesuffix("only one\n")}) / "p.csv"
    corpus = read_parallel(path, source="en", target="de")
    parts = (corpus.train, corpus.valid, corpus.tests["test"])
    pairs = {pair for part in parts for pair in zip(part.source, part.target, strict=True)}
    assert pairs == {("a, b", 'say "c"'), ("two\nlines", "d"), ("e", "f")}


LINE_ENDS = ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1e"]  # of Python's splitlines


@pytest.mark.parametrize("sign", LINE_ENDS)
@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "en"])
def test_a_sign_that_is_no_line_end_shifts_no_pair_and_is_told(tmp_path: Path, kind: str, sign: str) -> None:
    rows = [(f"one{sign if n == 1 else ' '}{n}", f"eins {n}") for n in range(4)]
    made = {
        "p.tsv": lines(*("\t".join(row) for row in rows)),
        "p.csv": lines(*(f'"{one}","{other}"' for one, other in rows)),
        "p.jsonl": lines(*(json.dumps({"en": one, "de": other}, ensure_ascii=False) for one, other in rows)),
        "p.en": lines(*(one for one, _ in rows)),
        "p.de": lines(*(other for _, other in rows)),
    }
    folder = write(tmp_path, made)
    paths = [folder / "p.en", folder / "p.de"] if kind == "en" else [folder / f"p.{kind}"]
    read = read_whole(paths)
    assert [*zip(read.train.source, read.train.target, strict=True)] == rows
    assert read.told[0].endswith("4 pairs, 1 with line breaks, which the model learns too")


@pytest.mark.parametrize("row", ['"say \\"a\\", b",c', '"\\"a\\"",c', '"a",c\n"5\\"",d', '"a \\", b","c"', "a,b\\, c"])
def test_a_row_that_an_escaped_quote_or_comma_tears_is_an_error(tmp_path: Path, row: str) -> None:
    path = write(tmp_path, {"p.csv": f"en,de\nx,y\n{row}\n"}) / "p.csv"
    with pytest.raises(InputError) as told:
        read_whole(path)
    assert told.value.where.startswith(f"{path}:")
    assert '"' in told.value.fix or "each line needs" in told.value.fix


@pytest.mark.parametrize("name", ["p.csv", "p.tsv"])
def test_escaped_quotes_that_stay_are_told(tmp_path: Path, name: str) -> None:
    rows = [('say \\"a\\"', "b"), ("c", 'd \\"'), ("e", "f")]
    between = "," if name == "p.csv" else "\t"
    read = read_whole(write(tmp_path, {name: lines(*(between.join(row) for row in rows))}) / name)
    assert [*zip(read.train.source, read.train.target, strict=True)] == rows
    assert read.told[0].endswith('3 pairs, 2 with \\" for a quote, which the model learns too')


def test_pairs_with_an_empty_side_are_dropped_and_counted(tmp_path: Path) -> None:
    train = {"train.tsv": tsv(0, 30) + "\n\t\nleft\t \n\tright\n", "valid.tsv": tsv(30, 35)}
    corpus = read_parallel(write(tmp_path, train))
    assert corpus.train.source == ENGLISH[:30]
    assert corpus.notes == (f"{tmp_path / 'train.tsv'}: 4 of 34 pairs dropped, a side is empty",)


def test_surrogates_of_json_never_come_through(tmp_path: Path) -> None:
    row = r'{"source": "\ud83d\ude00 \ud83d", "target": "x"}'
    pairs = read_parallel(write(tmp_path, {"train.jsonl": row, "valid.jsonl": row, "test.jsonl": row})).train
    assert pairs.source == ["😀 \ufffd"]


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


def test_a_row_without_the_column_that_a_number_names(tmp_path: Path) -> None:
    path = write(tmp_path, {"p.tsv": "a\tb\tc\nd\te\n"}) / "p.tsv"
    with pytest.raises(InputError, match=r"(?m)p\.tsv:2: 2 columns, expected at least 3$"):
        read_parallel(path, source="3", target="1")


def test_a_header_without_the_column_that_a_number_names(tmp_path: Path) -> None:
    path = write(tmp_path, {"p.tsv": "en\tde\n" + GOOD}) / "p.tsv"
    with pytest.raises(InputError, match=r"(?m)p\.tsv:1: 2 columns, expected at least 3$"):
        read_parallel(path, source="1", target="3")
    with pytest.raises(InputError, match=r"(?m)p\.tsv:1: 2 columns, expected at least 3$"):
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


def test_a_tag_stands_beside_a_translation(tmp_path: Path) -> None:
    row = {"register": "formal", "translation": {"en": "Go.", "de": "Los!"}}
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    assert [*read_whole(tmp_path / "p.jsonl", tag="register").train.tags] == ["formal"]
