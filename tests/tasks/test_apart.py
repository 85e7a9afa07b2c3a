"""Files to validate and to test on that are named, and lie wherever they lie."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import heedful
from commands import heed
from heedful.data.text.corpus import read_parallel
from heedful.errors import InputError, MissingError

LINES = [f"ba {word} {number}" for number in range(30) for word in ("de", "gi")]
TINY = [
    f"--set={setting}"
    for setting in (
        "model.d_model=16",
        "model.n_heads=2",
        "model.d_ff=16",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "data.vocab_size=300",
        "train.steps=2",
        "train.precision=fp32",
    )
]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., list[str]]:
    """Writes pairs as a table, with or without a header, or as two files; gives their paths."""

    def written(name: str, rows: range, *, ends: tuple[str, ...] = ("tsv",), header: str = "") -> list[str]:
        sides = [LINES[i] for i in rows], [LINES[i].upper() for i in rows]
        paths = [tmp_path / f"{name}.{end}" for end in ends]
        for path, side in zip(paths, sides, strict=False):
            table = header + "".join(f"{a}\t{b}\n" for a, b in zip(*sides, strict=True))
            path.parent.mkdir(exist_ok=True)
            path.write_text(table if len(paths) == 1 else "".join(f"{line}\n" for line in side))
        return [str(path) for path in paths]

    return written


FURTHER = "We walked {0} miles along the river to the old market, and then they told us where the {0} houses were."
AUTRES = "Nous avons marché {0} lieues le long du fleuve, et puis ils nous ont dit où se trouvaient les {0} maisons."


@pytest.mark.parametrize("header", [False, True])
def test_sides_in_the_wrong_order_are_read_in_that_of_the_training_texts(tmp_path: Path, header: bool) -> None:
    pairs = [(FURTHER.format(i), AUTRES.format(i)) for i in range(60)]
    train, tests = tmp_path / "p.tsv", [tmp_path / "t.tsv"] if header else [tmp_path / "a.fr", tmp_path / "a.en"]
    train.write_text("".join(f"{one}\t{other}\n" for one, other in pairs[:50]))
    if header:
        tests[0].write_text("fr\ten\n" + "".join(f"{other}\t{one}\n" for one, other in pairs[50:]))
    else:
        for file, side in zip(tests, (1, 0), strict=True):
            file.write_text("".join(f"{pair[side]}\n" for pair in pairs[50:]))
    corpus = read_parallel(str(train), test=[*map(str, tests)])
    (test,) = corpus.tests.values()
    assert [*zip(test.source, test.target, strict=True)] == pairs[50:]
    note = f"{' + '.join(map(str, tests[::-1]))}: read from en to fr, as the training texts are"
    assert note in corpus.notes
    straight = read_parallel(str(train), test=[*map(str, tests[::-1])])
    assert (note in straight.notes) == header


@pytest.mark.parametrize("part", ["valid", "test"])
def test_one_side_alone_is_refused_in_the_words_of_its_option(write: Callable[..., list[str]], part: str) -> None:
    train, sides = write("train", range(40)), write("a", range(40, 50), ends=("en", "fr"))
    with pytest.raises(InputError, match="one side of the pairs alone") as caught:
        read_parallel(train, **{part: sides[:1]})
    assert caught.value.fix == f"give the other side too: --{part} {sides[0]} --{part} {sides[1]}"


def test_they_take_the_place_of_what_is_held_out(write: Callable[..., list[str]]) -> None:
    train, held = write("train", range(40)), write("held/news", range(40, 50))
    first, second = write("test_a", range(50, 53)), write("b", range(53, 60))
    corpus = read_parallel(train, valid=held, test=[*first, *second])
    assert len(corpus.train) == 40
    assert corpus.valid.source == LINES[40:50]
    assert {name: part.source for name, part in corpus.tests.items()} == {"test_a": LINES[50:53], "b": LINES[53:60]}
    assert [*map(str, corpus.files)] == [*train, *held, *first, *second]
    assert [*map(str, corpus.apart)] == [*held, *first, *second]
    assert "held out" not in " ".join(corpus.notes)
    assert any(held[0] in line and "10 pairs" in line for line in corpus.taken)
    alone = read_parallel(train, test=first)
    assert (len(alone.train), len(alone.valid), list(alone.tests)) == (39, 1, ["test_a"])


def test_two_files_are_two_sides_in_whatever_order(write: Callable[..., list[str]]) -> None:
    train = write("t", range(40), ends=("en", "de"))
    held, tests = write("v", range(40, 50), ends=("en", "de")), write("x", range(50, 60), ends=("en", "de"))
    corpus = read_parallel(train, valid=held[::-1], test=tests[::-1])
    assert (corpus.valid.source, corpus.valid.target[0]) == (LINES[40:50], LINES[40].upper())
    assert {name: part.source for name, part in corpus.tests.items()} == {"x": LINES[50:60]}


def test_columns_are_those_of_the_training_text(write: Callable[..., list[str]], tmp_path: Path) -> None:
    train = write("t", range(40), header="low\thigh\n")
    (tmp_path / "v.tsv").write_text("id\thigh\tlow\n1\tBA\tba\n")
    corpus = read_parallel(train, source="low", target="high", valid=[str(tmp_path / "v.tsv")])
    assert (corpus.valid.source, corpus.valid.target) == (["ba"], ["BA"])


def test_their_column_of_tags_is_read(tmp_path: Path) -> None:
    for name in ("t", "v"):
        rows = "".join(f"ba {name} {i}\tBA {i}\t{'formal' if i % 2 else 'plain'}\n" for i in range(4))
        (tmp_path / f"{name}.tsv").write_text(f"en\tde\tkind\n{rows}")
    corpus = read_parallel(tmp_path / "t.tsv", tag="kind", valid=[str(tmp_path / "v.tsv")])
    assert [*corpus.valid.tags] == ["plain", "formal"] * 2


def test_what_cannot_be_read_so_is_refused(write: Callable[..., list[str]], tmp_path: Path) -> None:
    train, held = write("t", range(40)), write("v", range(40, 50))
    with pytest.raises(MissingError, match="nowhere"):
        read_parallel(train, valid=[str(tmp_path / "nowhere.tsv")])
    with pytest.raises(InputError, match="two tests of one name"):
        read_parallel(train, test=[*held, *write("other/v", range(3))])
    with pytest.raises(InputError, match="pairs of several directions, and files to validate"):
        read_parallel([f"{train[0]}:en>de,de>en"], valid=held)


def test_on_the_command_line_and_what_is_scored_later(
    write: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, held = write("t", range(40)), write("v", range(40, 50))
    tests = write("mine", range(50, 60), ends=("en", "de"))
    words = ["train", "translate", "--data", *train, "--valid", *held, "--test", *tests]
    out = tmp_path / "run"
    assert heed(*words, "--out", out, *TINY) == 0
    facts = json.loads((out / "data.json").read_text())
    assert facts["pairs"] == {"train": 40, "valid": 10, "mine": 10}
    languages = {"source": "en", "target": "de"}
    assert list(heedful.load(out).evaluate(tests[0].removesuffix(".en"), languages)) == ["mine.en"]
    capsys.readouterr()
    assert heed("eval", out, "--data", held[0]) == 0
    assert capsys.readouterr().out.startswith("v.tsv: 10 pairs, "), "all of it, as the run has not learnt from it"
    assert heed("eval", out, "--data", train[0]) == 0
    assert "has learnt from it" in capsys.readouterr().err
    assert heed(*words, "--out", out, *TINY, "--set=train.steps=3") == 0
