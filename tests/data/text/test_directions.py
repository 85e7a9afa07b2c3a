"""Data of several directions: said beside paths, in a memory of several languages, or row by row."""

import json
from collections import Counter
from pathlib import Path

import pytest

from heedful.data.text.corpus import Corpus, by_direction, read_parallel, with_synthetic
from heedful.data.text.directions import said_in
from heedful.data.text.quality.told import in_three_lines
from heedful.data.text.reading import read_whole
from heedful.errors import InputError
from written import tmx

MEMORY = """<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>"""


def memory(path: Path, count: int = 60) -> str:
    """Every unit in three languages, but every third without French."""
    units = []
    for i in range(count):
        texts = {"en": f"house {i}", "de": f"Haus {i}", **({} if i % 3 == 0 else {"fr": f"maison {i}"})}
        tuvs = "".join(f'<tuv xml:lang="{name}"><seg>{text}</seg></tuv>' for name, text in texts.items())
        units.append(f"<tu>{tuvs}</tu>")
    path.write_text(MEMORY.format("".join(units)))
    return str(path)


def ways_of(corpus: Corpus) -> Counter[tuple[str, str]]:
    """How many pairs there are of each direction, by what they say."""
    starts = {"house": "en", "Haus": "de", "maison": "fr"}
    found: Counter[tuple[str, str]] = Counter()
    for part in (corpus.train, corpus.valid, *corpus.tests.values()):
        for source, target, way in zip(part.source, part.target, part.ways, strict=True):
            said = starts[source.split()[0]], starts[target.split()[0]]
            assert corpus.directions[way] == said
            found[said] += 1
    return found


def test_what_is_said_beside_a_path() -> None:
    assert said_in("a.tmx:en>de") == ("a.tmx", [("en", "de")])
    assert said_in("a.tmx:en>de,de>en-GB:0.2") == ("a.tmx:0.2", [("en", "de"), ("de", "en-GB")])
    for plain in ("a.tmx", "a.tmx:2", "C:/a>b.tsv", "hf:wmt:de-en"):
        assert said_in(plain) == (plain, [])


def test_a_memory_of_several_languages(tmp_path: Path) -> None:
    path = memory(tmp_path / "m.tmx")
    corpus = read_parallel(f"{path}:en>de,en>fr,fr>de")
    assert corpus.directions == (("en", "de"), ("en", "fr"), ("fr", "de"))
    assert ways_of(corpus) == {("en", "de"): 60, ("en", "fr"): 40, ("fr", "de"): 40}
    held = {text for part in (corpus.valid, *corpus.tests.values()) for text in part.source}
    assert held
    assert not held & {*corpus.train.source}, "a source is on one side, in whatever direction"
    held |= {text for part in (corpus.valid, *corpus.tests.values()) for text in part.target}
    assert not held & {*corpus.train.source, *corpus.train.target}, "and so are its translations"
    turned = read_parallel(f"{path}:fr>de,en>fr,en>de")
    assert {*turned.valid.source} | {*turned.valid.target} == {*corpus.valid.source} | {*corpus.valid.target}
    assert (corpus.source, corpus.target) == ("en, fr", "de, fr")


def test_what_is_held_out_is_not_learnt_the_other_way_round(tmp_path: Path) -> None:
    corpus = read_parallel(f"{memory(tmp_path / 'm.tmx')}:en>de,de>en")
    learnt = {*zip(corpus.train.target, corpus.train.source, strict=True)}
    for part in (corpus.valid, *corpus.tests.values()):
        assert not learnt & {*zip(part.source, part.target, strict=True)}
    assert ways_of(corpus) == {("en", "de"): 60, ("de", "en"): 60}, "both ways of a pair are on one side"


def test_what_a_validation_file_has_is_not_learnt_the_other_way_round(tmp_path: Path) -> None:
    for part, numbers in (("train", range(60)), ("val", range(57, 63))):
        for name, word in (("en", "house"), ("de", "Haus")):
            (tmp_path / f"{part}.{name}").write_text("".join(f"{word} {i}\n" for i in numbers))
    (tmp_path / "val.de").write_text("".join(f"Haus {i if i != 58 else 'und Hof'}\n" for i in range(57, 63)))
    corpus = read_parallel([f"{tmp_path}:en>de,de>en"])
    assert ways_of(corpus) == {("en", "de"): 58 + 6, ("de", "en"): 58 + 6}
    assert any("4 pairs left out, held out the other way round" in note for note in corpus.notes)
    (tmp_path / "val.en").write_text("".join(f"{'HOUSE' if i == 59 else 'house'} {i} \n" for i in range(57, 63)))
    corpus = read_parallel([f"{tmp_path}:en>de,de>en"])
    assert any("4 pairs left out, held out the other way round" in note for note in corpus.notes), "capitals aside"


def test_a_test_in_a_folder_is_one_of_all_directions(tmp_path: Path) -> None:
    for part, numbers in (("train", range(60)), ("test", range(60, 66))):
        for name, word in (("en", "house"), ("de", "Haus")):
            (tmp_path / f"{part}.{name}").write_text("".join(f"{word} {i}\n" for i in numbers))
    corpus = read_parallel(f"{tmp_path}:en>de,de>en")
    assert {name: len(part) for name, part in corpus.tests.items()} == {"test": 12}
    assert {name: part.source[0] for name, part in by_direction(corpus.tests)} == {
        "test, en to de": "house 60",
        "test, de to en": "Haus 60",
    }
    assert len(read_parallel(f"{tmp_path}:de>en").tests["test"]) == 6


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_rows_that_say_their_languages(tmp_path: Path, kind: str) -> None:
    rows = [("house", "Haus", "en", "de"), ("house", "maison", "en", "fr"), ("maison", "Haus", "fr", "de")]
    names = ("source", "target", "source_lang", "target_lang")
    path = tmp_path / f"rows.{kind}"
    lines = []
    for i in range(90):
        one, other, left, right = rows[i % 3]
        cells = (f"{one} {i}", f"{other} {i}", left, right)
        own = json.dumps(dict(zip(names, cells, strict=True)))
        lines.append(own if kind == "jsonl" else {"tsv": "\t", "csv": ","}[kind].join(cells))
    header = [] if kind == "jsonl" else [{"tsv": "\t", "csv": ","}[kind].join(names)]
    path.write_text("\n".join([*header, *lines]) + "\n")
    corpus = read_parallel(path)
    assert ways_of(corpus) == {("en", "de"): 30, ("en", "fr"): 30, ("fr", "de"): 30}
    one = read_parallel(path, source="en", target="fr")
    assert not one.directions
    assert (one.source, one.target) == ("en", "fr")
    assert {text.split()[0] for text in one.train.target} == {"maison"}
    assert not len(one.train.ways)


def test_several_files_say_their_directions(tmp_path: Path) -> None:
    for name, one, other in (("a", "house", "Haus"), ("b", "maison", "house")):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{one} {i}\t{other} {i}\n" for i in range(50)))
    corpus = read_parallel([f"{tmp_path / 'a.tsv'}:en>de", f"{tmp_path / 'b.tsv'}:fr>en:0.5"])
    assert ways_of(corpus) == {("en", "de"): 50, ("fr", "en"): 50}
    assert corpus.weights == {(str(tmp_path / "b.tsv"), ("fr", "en")): 0.5}
    with pytest.raises(InputError, match="from which language to which"):
        read_parallel([f"{tmp_path / 'a.tsv'}:en>de", str(tmp_path / "b.tsv")])


def in_form(folder: Path, form: str, other: str) -> str:
    """English beside another language, which files of this form tell by themselves."""
    pairs = [(f"house {i}", f"{other} {i}") for i in range(30)]
    if form == "tmx":
        (folder / f"{other}.tmx").write_bytes(tmx(pairs, "en", other))
        return str(folder / f"{other}.tmx")
    if form == "tsv":
        (folder / f"{other}.tsv").write_text("\n".join(["\t".join(row) for row in [("en", other), *pairs]]) + "\n")
        return str(folder / f"{other}.tsv")
    (folder / other).mkdir()
    for name, texts in zip(("en", other), zip(*pairs, strict=True), strict=True):
        (folder / other / f"train.{name}").write_text("\n".join(texts) + "\n")
    return str(folder / other)


@pytest.mark.parametrize("second", ["tmx", "tsv", "folder"])
@pytest.mark.parametrize("first", ["tmx", "tsv", "folder"])
def test_files_of_other_languages_are_told_how_to_say_theirs(tmp_path: Path, first: str, second: str) -> None:
    one, other = in_form(tmp_path, first, "fr"), in_form(tmp_path, second, "de")
    with pytest.raises(InputError, match=r"en and de, but .* has en and fr") as refused:
        read_parallel([one, other])
    assert f"--data '{one}:en>fr' --data '{other}:en>de'" in refused.value.fix
    assert read_parallel([f"{one}:en>fr", f"{other}:en>de"]).directions == (("en", "fr"), ("en", "de"))


@pytest.mark.parametrize("second", ["tmx", "tsv"])
def test_the_first_says_which_language_is_the_source(tmp_path: Path, second: str) -> None:
    """A folder takes the first in the alphabet, a memory the language of its header."""
    folder = in_form(tmp_path, "folder", "de")
    corpus = read_parallel([folder, in_form(tmp_path, second, "de")])
    assert (corpus.source, corpus.target) == ("de", "en")
    assert {text.split()[0] for text in corpus.train.source} == {"de"}


def test_one_direction_alone_is_none_of_several(tmp_path: Path) -> None:
    read = read_whole(f"{memory(tmp_path / 'm.tmx')}:fr>de")
    assert not read.directions
    assert not len(read.train.ways)
    assert (read.taken.source, read.taken.target) == ("fr", "de")


def test_directions_that_are_not_asked_for_are_told(tmp_path: Path) -> None:
    path = memory(tmp_path / "m.tmx")
    read = read_whole(f"{path}:en>de,fr>de,en>fr", source="en", target="de")
    assert read.told[-1] == "not used, as pairs from en to de are asked for: fr to de, en to fr"
    assert (read.taken.source, read.taken.target) == ("en", "de")
    both = read_whole(f"{path}:en>de,fr>de", target="de")
    assert not any("not used" in line for line in both.told)
    with pytest.raises(InputError, match=r"no pairs from en to de: they are de to en, fr to en") as error:
        read_whole(f"{path}:de>en,fr>en", source="en", target="de")
    assert error.value.fix == "name one of these, or no languages at all: --source '' --target ''"


def test_directions_of_one_file_have_weights_of_their_own(tmp_path: Path) -> None:
    words = {"en": "house", "de": "Haus", "fr": "maison"}
    for name, word in words.items():
        (tmp_path / f"train.{name}").write_text("".join(f"{word} {i}\n" for i in range(60)))
    corpus = read_parallel([f"{tmp_path}:en>de:2", f"{tmp_path}:en>fr:0.5", f"{tmp_path}:fr>de"])
    file = str(tmp_path / "train.en")
    assert corpus.weights == {(file, ("en", "de")): 2, (file, ("en", "fr")): 0.5}
    told = {line.partition("pairs ")[2] for line in corpus.taken}
    assert told == {"(en to de), 2 times in each epoch", "(en to fr), 0.5 times in each epoch", "(fr to de)"}
    origins = Counter(corpus.train.origin_of(i).direction for i in range(len(corpus.train)))
    assert {*origins} == {("en", "de"), ("en", "fr"), ("fr", "de")}


def test_what_models_wrote_is_of_some_of_the_directions(tmp_path: Path) -> None:
    corpus = read_parallel(f"{memory(tmp_path / 'm.tmx')}:en>de,en>fr,fr>de")
    own, held = len(corpus.train), corpus.valid.source[0]
    path = tmp_path / "back.tsv"
    path.write_text(f"new house\tneues Haus\n{corpus.valid.target[0]}\tla la\nla la\t{held.upper()}\n")
    other = tmp_path / "many.tsv"
    other.write_text("source\ttarget\tsource_lang\ttarget_lang\nx\ty\tfr\tde\nv\tw\ten\tfr\n")
    found = with_synthetic(corpus, [f"{path}:en>de:0.5", str(other)], 2.0)
    added = found.train.rows(range(own, len(found.train)))
    assert [*zip(added.source, added.target, strict=True)] == [("new house", "neues Haus"), ("x", "y"), ("v", "w")]
    assert [corpus.directions[way] for way in added.ways] == [("en", "de"), ("fr", "de"), ("en", "fr")]
    assert f"{path} + {other}: 2 synthetic pairs left out, a side of theirs is held out" in found.notes
    assert any(
        line.startswith(f"written by models: {path}") and line.endswith("0.5 times in each epoch")
        for line in found.taken
    )
    weights = [found.weights.get(found.train.origin_of(i), 1.0) for i in range(len(found.train))]
    assert weights == [2.0] * own + [0.5, 1, 1]
    with pytest.raises(
        InputError, match="pairs from source to target, and the others are from en to de, en to fr"
    ) as error:
        with_synthetic(corpus, [str(path)])
    assert error.value.fix == f"say of which these are: --synthetic '{path}:en>de'"


def test_each_file_of_a_pattern_says_its_own_directions(tmp_path: Path) -> None:
    header = "source\ttarget\tsource_lang\ttarget_lang\n"
    (tmp_path / "a.tsv").write_text(f"{header}house\tHaus\ten\tde\n")
    (tmp_path / "b.tsv").write_text(f"{header}tree\tarbre\ten\tfr\nroof\tDach\ten\tde\n")
    read = read_whole(str(tmp_path / "*.tsv"))
    own = [read.directions[way] for way in read.train.ways]
    assert {*zip(read.train.target, own, strict=True)} == {
        ("Haus", ("en", "de")),
        ("Dach", ("en", "de")),
        ("arbre", ("en", "fr")),
    }


ROWS = [("house", "Haus", "en", "de"), ("house", "maison", "en", "fr")]
KEYS = "source", "target", "source_lang", "target_lang"


def test_a_list_of_objects_says_its_directions(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([dict(zip(KEYS, row, strict=True)) for row in ROWS], indent=1))
    assert read_whole(tmp_path / "a.json").directions == [("en", "de"), ("en", "fr")]


def test_several_directions_are_not_read_as_one(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("".join("\t".join(row) + "\n" for row in (KEYS, *ROWS)))
    with pytest.raises(InputError, match="tsv:3: from en to fr, and other rows are from en to de"):
        read_whole(tmp_path)
    assert read_whole(tmp_path, source="en", target="fr").train.target == ["maison"]


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl", "a.json"])
def test_a_row_without_its_languages_is_refused(tmp_path: Path, name: str) -> None:
    rows = [*ROWS, ("house", "casa", "", "it")]
    objects = [{key: cell for key, cell in zip(KEYS, row, strict=True) if cell} for row in rows]
    made = {
        "a.tsv": "".join("\t".join(row) + "\n" for row in (KEYS, *rows)),
        "a.jsonl": "".join(json.dumps(own) + "\n" for own in objects),
        "a.json": json.dumps(objects),
    }
    (tmp_path / name).write_text(made[name])
    with pytest.raises(InputError, match="does not say its languages"):
        read_whole(tmp_path / name)


def test_synthetic_pairs_of_several_directions_are_refused_beside_pairs_of_one(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"house {i}\tHaus {i}\n" for i in range(60)))
    rows = [
        f"{word} {i + 60}\tHaus {i + 60}\t{code}\tde\n"
        for i in range(9)
        for word, code in (("house", "en"), ("maison", "fr"))
    ]
    (tmp_path / "s.tsv").write_text("".join(["source\ttarget\tsource_lang\ttarget_lang\n", *rows]))
    corpus = read_parallel(tmp_path / "a.tsv")
    with pytest.raises(InputError, match=r"(?m)s\.tsv: pairs of several directions, and the others are of one$"):
        with_synthetic(corpus, [str(tmp_path / "s.tsv")])
    assert len(with_synthetic(corpus, [f"{tmp_path / 's.tsv'}:en>de"]).train) == len(corpus.train) + 9


SPOKEN = [
    ("the house is old and very small", "das Haus ist alt und sehr klein"),
    ("we have not seen them since then", "wir haben sie seitdem nicht gesehen"),
    ("where is the key of this door", "wo ist der Schlüssel zu dieser Tür"),
]


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl", "a.json", "more.tsv"])
def test_columns_that_are_called_source_and_target_are_of_the_languages_asked_for(tmp_path: Path, name: str) -> None:
    keys = ["source", "target", *(["id"] if name == "more.tsv" else [])]
    rows = [[*pair, str(i)][: len(keys)] for i, pair in enumerate(SPOKEN)]
    objects = [dict(zip(keys, row, strict=True)) for row in rows]
    text = "\n".join(["\t".join(keys), *map("\t".join, rows), ""])
    if name != "a.json" and name.endswith("jsonl"):
        text = "".join(json.dumps(own) + "\n" for own in objects)
    elif name == "a.json":
        text = json.dumps(objects)
    (tmp_path / name).write_text(text)
    read = read_whole(f"{tmp_path / name}:en>de,de>en")
    pairs = [*zip(read.train.source, read.train.target, strict=True)]
    assert pairs == [*SPOKEN, *((other, one) for one, other in SPOKEN)], "either way, by their languages"
    assert [read.directions[way] for way in read.train.ways] == [("en", "de")] * 3 + [("de", "en")] * 3
    one = read_whole(tmp_path / name, source="en", target="de")
    assert (one.taken.source, one.taken.target, one.train.source[0]) == ("en", "de", SPOKEN[0][0])
    with pytest.raises(InputError, match=r"no (column|key) 'column_a'"):
        read_whole(tmp_path / name, source="column_a", target="de")


def test_the_pairs_of_a_direction_are_told_to_be_in_its_languages(tmp_path: Path) -> None:
    read = read_whole(f"{memory(tmp_path / 'm.tmx')}:en>de,en>fr,fr>de")
    french = read.train.rows([i for i, way in enumerate(read.train.ways) if read.directions[way] == ("en", "fr")])
    assert in_three_lines(french)[0].endswith("in en and fr")
