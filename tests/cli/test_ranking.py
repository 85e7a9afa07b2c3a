"""Answers that people put in order: in the terminal, and what is kept of it."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from heedful.cli import app
from heedful.data.text.judgements import judgements_in
from heedful.errors import InputError
from heedful.tasks.shared.ranking import Item, Ranking, order_in
from heedful.tasks.shared.terminal import user_name
from serving import language_model

PROMPTS = ["Ba", "De", "Gi"]


def answers(prompt: str) -> tuple[str, ...]:
    return (prompt,) if prompt == "alone" else (f"{prompt} a", f"{prompt} b", f"{prompt} c")


def test_an_order_is_typed() -> None:
    assert order_in("213\n", 3) == ((1,), (0,), (2,))
    assert order_in(" 2 1=3 ", 3) == ((1,), (0, 2))
    assert order_in("2=1", 3) == ((1, 0),)
    assert order_in("2 = 1 3", 3) == ((1, 0), (2,))
    assert order_in("10 2", 12) == ((9,), (1,))
    for wrong in ("", "4", "1 1", "1=", "a", "1-2", "0", "12=2"):
        with pytest.raises(InputError):
            order_in(wrong, 3)


def test_what_is_decided_is_kept_and_not_asked_again(tmp_path: Path) -> None:
    out = tmp_path / "j.jsonl"
    ranking = Ranking(out, ["alone", *PROMPTS, "Ba"], answers)
    first = ranking.next("ada")
    assert first == Item("Ba", answers("Ba"))
    ranking.judge("ada", first, ((2,), (0, 1)))
    assert ranking.next("bo") == first
    again = Ranking(out, ["alone", *PROMPTS], answers)
    second = again.next("ada")
    assert second == Item("De", answers("De"))
    again.judge("ada", second, ())
    assert [one.order for one in judgements_in(out)] == [((2,), (0, 1)), ()]
    assert again.count("ada") == 2
    again.judge("bo", first, ((2,), (1,), (0,)))
    assert again.undo("ada")
    assert [(one.who, one.prompt) for one in judgements_in(out)] == [("ada", "Ba"), ("bo", "Ba")]
    assert again.next("ada") == second
    assert not again.undo("cy")
    assert again.agreement()["items"] == 1
    assert again.agreement()["same_order"] == 1.0
    assert judgements_in(out)[0].when
    for wrong in (((0, 0),), ((3,),), ((0,), (0,))):
        with pytest.raises(InputError):
            again.judge("ada", second, wrong)


def test_what_others_decide_meanwhile_is_kept(tmp_path: Path) -> None:
    """Two commands on one file: whoever takes a decision back takes only their own."""
    out = tmp_path / "j.jsonl"
    ada, bo = Ranking(out, PROMPTS, answers), Ranking(out, PROMPTS, answers)
    item = Item("Ba", answers("Ba"))
    ada.judge("ada", item, ((0,), (1,)))
    bo.judge("bo", item, ((1,), (0,)))
    bo.judge("bo", Item("De", answers("De")), ((2,), (0,)))
    assert ada.undo("ada")
    assert [(one.who, one.prompt) for one in judgements_in(out)] == [("bo", "Ba"), ("bo", "De")]
    assert bo.judgements == ada.judgements == judgements_in(out)
    assert bo.undo("bo")
    ada.judge("ada", item, ((0,), (1,)))
    assert [(one.who, one.prompt) for one in bo.judgements] == [("bo", "Ba"), ("ada", "Ba")]


def test_many_who_decide_and_take_back_at_once_lose_nothing(tmp_path: Path, full: bool) -> None:
    """Each thread has the file open for itself, as a process has."""
    out, rounds, people = tmp_path / "j.jsonl", 40 if full else 8, [f"person {number}" for number in range(4)]

    def decide(who: str) -> None:
        own = Ranking(out, PROMPTS, answers)
        for number in range(rounds):
            own.judge(who, Item(f"{number}", answers("Ba")), ((0,), (1,)))
            own.judge(who, Item("wrong", answers("Ba")), ((1,), (0,)))
            assert own.undo(who)

    with ThreadPoolExecutor(len(people)) as pool:
        assert not any(pool.map(decide, people))
    kept = judgements_in(out)
    for who in people:
        assert [one.prompt for one in kept if one.who == who] == [str(number) for number in range(rounds)]


def test_a_link_is_the_file_that_it_leads_to(tmp_path: Path) -> None:
    out, link = tmp_path / "j.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(out)
    item = Item("Ba", answers("Ba"))
    Ranking(out, PROMPTS, answers).judge("ada", item, ((0,), (1,)))
    linked = Ranking(link, PROMPTS, answers)
    linked.judge("bo", item, ((0,), (1,)))
    assert linked.undo("bo")
    assert [one.who for one in judgements_in(out)] == ["ada"]
    assert link.is_symlink()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rank")
    language_model(folder / "run", context=48)
    (folder / "prompts.txt").write_text("".join(f"{prompt}\n" for prompt in PROMPTS))
    return folder


def test_one_answer_alone_is_no_order() -> None:
    """It would be a judgement that prefers none, and that no reward learns from."""
    with pytest.raises(InputError, match="'3' is one answer alone, before no other"):
        order_in("3\n", 3)


def rank(run: Path, out: Path, given: str, *words: str) -> Any:
    plain = ["rank", str(run / "run"), "--prompts", str(run / "prompts.txt"), "--out", str(out), "--tokens", "5"]
    made = CliRunner().invoke(app, [*plain, *words, "--device", "cpu", "--json"], input=given, catch_exceptions=False)
    assert made.exit_code == 0, made.output
    return json.loads(made.stdout.splitlines()[-1]), made.stderr


def test_lines_of_standard_input_are_judgements(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "j.jsonl"
    told, shown = rank(run, out, "nothing\n21\nu\n12\n4 3\ns\n", "--who", "ada")
    assert told["judgements"] == told["done"] == told["prompts"] == 3
    assert "'nothing' is no order of 4 answers" in shown
    assert "[1 of 3] Ba" in shown
    kept = judgements_in(out)
    assert [one.order for one in kept] == [((0,), (1,)), ((3,), (2,)), ()]
    assert {one.who for one in kept} == {"ada"}
    assert all(len(one.candidates) == 4 for one in kept)
    told, _ = rank(run, out, "", "--who", "ada")
    assert told["judgements"] == 3
    told, shown = rank(run, out, "1234\n", "--who", "bo")
    assert told["done"] == 1
    assert judgements_in(out)[3].candidates == kept[0].candidates  # the same answers for all
    agreed = told["agreement"]
    assert (agreed["items"], agreed["comparisons"]) == (1, 1)  # of what ada has put in order too


def test_agreement_is_told(run: Path, tmp_path: Path) -> None:
    rank(run, tmp_path / "j.jsonl", "1234\n1234\nq\n", "--who", "ada")
    told, shown = rank(run, tmp_path / "j.jsonl", "1234\n4321\n", "--who", "bo")
    assert told["agreement"]["kendall_tau"] == pytest.approx(0.0)
    assert "agreement on 2 prompts: Kendall's tau 0.00, 50% of pairs alike" in shown


def test_a_model_that_answers_nothing_is_refused(run: Path, run_of: Callable[[str], Path], tmp_path: Path) -> None:
    words = ["rank", str(run_of("label")), "--prompts", str(run / "prompts.txt"), "--out", str(tmp_path / "j.jsonl")]
    with pytest.raises(InputError, match="answers no prompts"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_a_port_is_of_a_page(run: Path, tmp_path: Path) -> None:
    words = ["rank", str(run / "run"), "--prompts", str(run / "prompts.txt"), "--out", str(tmp_path / "j.jsonl")]
    with pytest.raises(InputError, match="--port is of a page"):
        CliRunner().invoke(app, [*words, "--port", "9000"], catch_exceptions=False)


def test_where_judgements_cannot_be_kept_nothing_is_asked(run: Path, tmp_path: Path) -> None:
    for out, what in ((tmp_path / "none" / "x.jsonl", "no such folder"), (tmp_path, "is a folder")):
        words = ["rank", str(run / "run"), "--prompts", str(run / "prompts.txt"), "--out", str(out), "--who", "ada"]
        found = CliRunner().invoke(app, words)
        assert what in str(found.exception)
        assert "[1 of 2]" not in found.output


def test_a_user_without_a_name_is_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", unknown)
    with pytest.raises(InputError, match="--who: this user has no name") as caught:
        user_name()
    assert caught.value.fix == "give --who NAME"
