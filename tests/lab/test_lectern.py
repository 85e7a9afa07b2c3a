"""The frame of the lab: verdicts, settings, the data file, the command."""

import json
from functools import cache
from pathlib import Path

import pytest

from commands import heed
from heedful.errors import InputError
from heedful.lab import EXHIBITS
from heedful.lab.exhibit import Says, Shown, Value, Verdict, beside, judge
from heedful.lab.lectern import by_topic, checked, deck, errata, settings_of, show


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert heed("lecture", *words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "found", "verdict"),
    [
        (0.38, 0.3824, "agrees"),
        (0.38, 0.3851, "rounded"),  # cut off
        (0.39, 0.3824, "wrong"),  # and not up
        (-0.46, -0.469, "rounded"),
        (0.01, 0.0002, "wrong"),
        ([0.20, 1.31], [0.2063, 1.3105], "rounded"),
        ([1, 2], [1, 2], "agrees"),
        ([1, 2], [1, 2, 3], "wrong"),
        ([[0.5, 1]], [[0.5, 1.0]], "agrees"),
        ("animal", "animal", "agrees"),
        (True, False, "wrong"),
        (None, 3.0, "open"),
    ],
)
def test_verdicts(said: Value, found: Value, verdict: Verdict):
    assert judge(said, found) == verdict


def test_a_claim_of_which_nothing_is_computed_is_an_error():
    with pytest.raises(KeyError, match="second"):
        beside(Says({"first": 1, "second": 2}, {}), {"first": 1})


@cache
def in_short(name: str) -> Shown:
    """An exhibit; those that train do so for two steps, and what they then find is not looked at."""
    return show(name, {"steps": "2"} if "steps" in settings_of(name) else {}, short=True)


def test_the_errata_are_all_claims_that_are_found_wrong():
    listed = errata()
    assert [one["number"] for one in listed] == list(range(1, len(listed) + 1))
    wrong = {
        (name, line.claim)
        for name in EXHIBITS
        if "steps" not in settings_of(name)
        for line in in_short(name).lines
        if line.verdict == "wrong"
    }
    assert {(one["exhibit"], one["claim"]) for one in listed} == wrong
    for one in listed:
        assert one["right"], one
        assert one["deck"] in deck().decks, one


def test_what_may_be_wrong_is_not_learnt():
    for name, one in deck().exhibits.items():
        assert not one.why or "steps" not in settings_of(name), name
        assert {*one.why, *one.of} <= {*one.says}, name
        assert {*one.of.values()} <= {*one.decks}, name


@pytest.mark.parametrize("name", EXHIBITS)
def test_an_exhibit_shows_all_claims_and_draws(name: str):
    shown = in_short(name)
    assert shown.lines
    assert {*deck().exhibits[name].says} <= {line.claim for line in shown.lines}
    json.dumps([(line.deck, line.computed) for line in shown.lines], allow_nan=False)
    if shown.draw:
        assert b"<svg" in shown.picture("svg", dark=True)


def test_every_id_of_the_data_file_has_an_exhibit():
    assert len(deck().exhibits) == 138
    assert EXHIBITS.keys() == deck().exhibits.keys()
    assert {name for _, names in by_topic() for name in names} == EXHIBITS.keys()


def test_settings_are_checked_by_their_annotations():
    assert settings_of("N1") == {"scale": 0.7}
    with pytest.raises(InputError, match="'x' is no float"):
        show("N1", {"scale": "x"})
    with pytest.raises(InputError, match="unknown key 'scal'") as told:
        show("N1", {"scal": "1"})
    assert "scale" in told.value.fix
    with pytest.raises(InputError, match="unknown key 'N77'"):
        show("N77")


@pytest.mark.parametrize(
    ("name", "key", "value", "what"),
    [
        ("N1", "scale", ".nan", "'.nan' is no float"),
        ("N5", "width", "0", "nothing can be computed with width=0"),
        ("A1", "query", "Müller", "'Müller' is no name in the letters a to z"),
        ("A1", "temperature", "0", "nothing can be computed with temperature=0"),
        ("A2", "keys", "-1", "nothing can be computed with keys=-1"),
        ("B6", "positions", "3", "nothing can be computed with positions=3"),
        ("B8", "side", "1", "nothing can be computed with side=1"),
        ("E9", "warmup", "-1", "nothing can be computed with warmup=-1"),
        ("A5", "d_key", "0", "nothing can be computed with d_key=0"),
    ],
)
def test_of_settings_that_cannot_be_nothing_is_computed(name: str, key: str, value: str, what: str):
    with pytest.raises(InputError, match=what):
        show(name, {key: value})


@pytest.mark.parametrize(("name", "key"), [("A11", "tokens"), ("B2", "digits"), ("A2", "keys"), ("B5", "width")])
def test_of_settings_that_cannot_be_nothing_is_drawn(name: str, key: str) -> None:
    shown = show(name, {key: "0"})
    with pytest.raises(InputError, match=f"--set of {name}: nothing can be drawn with {key}=0"):
        shown.picture("svg")


@pytest.mark.parametrize(
    ("name", "key", "value", "what"),
    [
        ("A2", "queries", "100000", "100000: more than 256 would take minutes, or gigabytes"),
        ("A8", "tokens", "100000", "more than 256 would"),
        ("A8", "width", "100000", "more than 4,096 would"),
        ("B2", "digits", "20", "more than 8 would"),
        ("J7", "side", "256", "more than 32 would"),
        ("L4", "count", "1000000", "more than 4,096 would"),
        ("D1", "steps", "1000000", "more than 62,500 would"),
        ("T4", "first", "a" * 5000, "5,000 characters"),
        *(
            (name, "steps", "10000000", "more than")
            for name in EXHIBITS
            if "steps" in settings_of(name) and name != "E9"
        ),
    ],
)
def test_settings_that_would_take_minutes_or_gigabytes_are_refused(name: str, key: str, value: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as told:
        show(name, {key: value})
    assert told.value.where == f"--set {key} of {name}"
    assert "give at most" in told.value.fix


@pytest.mark.parametrize("name", EXHIBITS)
def test_what_is_set_to_its_default_is_the_default(name):
    """As a page of the book gives it, and as it is typed."""
    known = settings_of(name)
    assert checked(name, EXHIBITS[name](), known) == known
    texts = {key: value for key, value in known.items() if isinstance(value, str)}
    assert checked(name, EXHIBITS[name](), texts) == texts


def test_the_command(capsys, tmp_path: Path):
    listed = [json.loads(line) for line in told(capsys, "--json").splitlines()]
    assert [one["id"] for one in listed] == [name for _, names in by_topic() for name in names]
    record = json.loads(told(capsys, "N1", "--json", "--out", str(tmp_path / "n1.svg")))
    assert record["id"] == "N1"
    assert record["verdict"] == "wrong"
    assert record["deck"]["output of q1"] == [0.38, 1.09, 1.01, 1.18]
    assert record["computed"]["output of q1"][2] == pytest.approx(0.0844, abs=1e-4)
    assert record["figure"] == str(tmp_path / "n1.svg")
    assert "<svg" in (tmp_path / "n1.svg").read_text()
    both = told(capsys, "N7", "E14", "--json", "--out", str(tmp_path)).splitlines()
    assert [json.loads(line)["figure"] for line in both] == [str(tmp_path / "N7.svg"), str(tmp_path / "E14.svg")]
    exact = told(capsys, "N1", "--set", "scale=0.5")
    assert "output of q1" in exact
    assert "settings: scale=0.5 (else 0.7)" in exact
    assert "may be right there" in exact
    plain = told(capsys, "N1")
    assert "rounded" in plain
    assert "settings: scale=0.7" in plain
    assert "may be right there" not in plain
    assert len([json.loads(line) for line in told(capsys, "errata", "--json").splitlines()]) == len(errata())


@pytest.mark.parametrize("words", [("--set", "scale=1"), ("errata", "--out", "x.svg"), ("--short",)])
def test_what_is_of_an_exhibit_is_not_taken_without_one(words: tuple[str, ...], capsys):
    assert heed("lecture", *words) == 2
    assert "fix: name one: heed lecture N1 --" in capsys.readouterr().err


def test_where_the_arrows_of_vectors_begin_is_seen():
    draw = show("A3").draw
    assert draw is not None
    (axes,) = draw().axes
    assert axes.get_xlim()[0] < 0 < axes.get_xlim()[1]
    assert axes.get_ylim()[0] < 0 < axes.get_ylim()[1]


def test_the_short_form_is_told(capsys: pytest.CaptureFixture[str]):
    assert "settings: steps=2 (else None), short=True (else False)" in told(capsys, "D1", "--short", "--set", "steps=2")
    assert "short" not in told(capsys, "N1", "--short")


def test_data_sets_are_told_without_the_dozens_of_pipes(capsys: pytest.CaptureFixture[str]):
    (line,) = (line for line in told(capsys, "E10").splitlines() if line.startswith("data sets of PyTorch"))
    assert "TensorDataset" in line
    assert "Pipe" not in line
