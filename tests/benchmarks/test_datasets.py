"""The published files of each set become examples, and what is written of them is read back the same."""

from pathlib import Path

import pytest

from benchmarks.baselines import window
from benchmarks.datasets import FOLDS, copa, mctest, sick, sst2, trec, write
from heedful.data.text.labelled import Example, Labelled, read_labelled

STORY = "Jessie had a cake.\\newline\\newlineThen Lion came over\\newlineto eat the cake."


def questions(number: int) -> str:
    cells = [f"mc160.{number}", "Author: 1", STORY]
    cells += ["one: Who came over?", "no one", "Lion", "Jessie", "a cake"]
    cells += ["multiple: Who had it?", "Lion", "nobody: never", "Jessie", "Tiger"]
    return "\t".join(cells) + "\r\n"


def items() -> str:
    made = ""
    for number in range(1, 11):
        for twin, right in ((0, 1), (1000, 2)):
            made += f'<item id="{number + twin}" asks-for="{"cause" if number % 2 else "effect"}"'
            made += f' most-plausible-alternative="{right}">\n<p>Text {number}. </p><a1>One.</a1><a2>Two.</a2></item>\n'
    return f'<?xml version="1.0"?>\n<!DOCTYPE copa-corpus SYSTEM "copa.dtd">\n<copa-corpus>{made}</copa-corpus>'


FILES = {
    "sst2.train.txt": "1 a fine film\n0 dull .\n",
    "sst2.dev.txt": "0 0 stars\n",
    "train_fine.txt": "NUM:dist How far ?\nHUM:ind Who : he ?\n",
    "test_fine.txt": "LOC:city Where ?\n",
    **{
        f"{name}.tsv": "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"
        f"1\tA {name} runs\tIt runs\t4.5\tENTAILMENT\r\n2\tA {name} runs\tIt stands\t3\tCONTRADICTION\r\n"
        for name in ("train", "dev", "test")
    },
    "balanced-copa-dev-all.xml": items(),
    **{f"mc160.{part}.tsv": questions(0) + questions(1).replace("Then", "So") for part in ("train", "dev", "test")},
    **{f"mc160.{part}.ans": "B\tC\r\nB\tC\r\n" for part in ("train", "dev", "test")},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def test_texts(folder: Path) -> None:
    data = sst2(folder)
    assert data.train == [Example("a fine film", label="positive"), Example("dull .", label="negative")]
    assert data.tests == {"test": [Example("0 stars", label="negative")]}
    assert [one.label for one in trec(folder).train] == ["NUM", "HUM"]
    assert trec(folder).tests["test"] == [Example("Where ?", label="LOC")]


def test_pairs(folder: Path) -> None:
    data = sick(folder, "label")
    assert data.train[0] == Example("A train runs", "It runs", label="entailment")
    assert (data.valid[1].text, data.tests["test"][1].label) == ("A dev runs", "contradiction")
    assert [one.score for one in sick(folder, "score").train] == [4.5, 3.0]


def test_choices(folder: Path) -> None:
    data = mctest(folder, 160)
    story = "Jessie had a cake. Then Lion came over to eat the cake."
    assert data.train[0] == Example(story, "Who came over?", choices=("no one", "Lion", "Jessie", "a cake"), choice=1)
    assert data.train[1].choices == ("Lion", "nobody: never", "Jessie", "Tiger")
    assert len(data.train) == len(data.tests["test"]) == 4


def test_folds_keep_twins_together_and_test_each_once(folder: Path) -> None:
    folds = [copa(folder, fold=fold) for fold in range(FOLDS)]
    tested = [one for data in folds for one in data.tests["test"]]
    assert len(tested) == len(set(tested)) == 20
    for data in folds:
        trained, test = ({one.text for one in part} for part in (data.train, data.tests["test"]))
        assert not trained & test
        assert len(data.train) == 16
    assert tested[1].pair != tested[3].pair


@pytest.mark.parametrize("name", ["sst2", "trec", "sick", "score", "copa", "mctest"])
def test_what_is_written_is_read_back(name: str, folder: Path, tmp_path: Path) -> None:
    made: dict[str, Labelled] = {
        "sst2": sst2(folder),
        "trec": trec(folder),
        "sick": sick(folder, "label"),
        "score": sick(folder, "score"),
        "copa": copa(folder, fold=0),
        "mctest": mctest(folder, 160),
    }
    data = made[name]
    write(tmp_path / "out", data)
    found = read_labelled(tmp_path / "out")
    assert (found.answer, found.tests) == (data.answer, data.tests)
    known = [*found.train, *found.valid]
    assert sorted(known, key=repr) == sorted([*data.train, *data.valid], key=repr)
    assert not data.valid or found.valid == data.valid


def test_a_window_over_a_story() -> None:
    story = "The bear had a party in the old wood. Lion brought a drum. Then all of them ate the cake."
    asked = Example(story, "What did Lion bring?", choices=("cake", "party", "drum", "nothing"), choice=2)
    assert window(asked, {"a", "the", "did", "of"}) == 2
    # Of choices equally dense, the one that stands closer to the question.
    near = Example("one two three four five six", "which is three again", choices=("five", "four"), choice=1)
    assert window(near, set()) == 1
    # A rare word counts more than a frequent one, and what the question asks with is no answer.
    rare = Example("tea tea tea cake tea", "when", choices=("tea", "cake"), choice=1)
    assert window(rare, set()) == 1
