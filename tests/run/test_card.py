"""The tables of a model card, and what of it leaves this machine."""

import json
from pathlib import Path

import heedful
from heedful.run.card import CardText, card_with, model_card, score_table
from heedful.run.recipe import read_yaml, to_yaml
from heedful.tasks.translate.training.card import _signatures
from heedful.verbs.runs import list_runs, read_one


def test_a_score_that_one_test_set_lacks_is_a_dash() -> None:
    scores = {"test_a": {"loss": 0.5, "accuracy_shorter": 1.0, "pairs": 1234}, "test_b": {"loss": 0.25, "pairs": 2}}
    assert score_table("judgements", scores) == [
        "| judgements | loss | accuracy shorter | pairs |",
        "|---|---|---|---|",
        "| test_a | 0.5000 | 1.0000 | 1,234 |",
        "| test_b | 0.2500 | - | 2 |",
    ]


def test_each_test_set_has_the_signature_that_it_was_scored_by() -> None:
    """Of Chinese words are others than of German."""
    german = {"bleu": 30.0, "signature": "tok:13a", "chrf_signature": "nc:6"}
    chinese = {**german, "signature": "tok:zh"}
    assert _signatures({"one": german, "other": german}) == "`tok:13a` and `nc:6`"
    told = "`tok:13a` and `nc:6` (de); `tok:zh` and `nc:6` (zh, zh 2)"
    assert _signatures({"de": german, "zh": chinese, "zh 2": chinese}) == told


PRIVATE = ("Anna", "Müller", "O'Brien", "acme", "secret", "home")  # in names of folders


def private_run(folder: Path) -> Path:
    """A run's files, as a training writes them, that name folders of people and clients."""
    above = (
        folder / "home Anna Müller" / "acme: O'Brien & secret client with a name that is longer than one line of YAML"
    )
    run, data = above / "runs" / "mine", above / "data"
    recipe = heedful.recipe(
        "translate",
        data={
            "path": str(data / "pairs.tsv"),
            "valid": [str(data / "held out.tsv")],
            "mix": [f"{data}/general.tsv:0.2"],
            "synthetic": ["../secret/made.tsv"],
        },
        start_from=str(above / "runs" / "first"),
    )
    told = CardText(
        what="Translates.",
        learnt_on=f"1 pair, from `{data / 'pairs.tsv'}`, with 20 % of each epoch from `{data / 'general.tsv'}`",
        after=" Others are from `secret/acme/made.tsv`, which `/secret/home Anna/teacher` wrote.",
        table=["| a/b | BLEU/chrF |"],
        how="See https://example.org/a/b/c.",
        kept="step 1",
        use=[f'heed translate {run} "and/or"', f"heed look {run} --out attention.html"],
        limits="It does 3 km/h.",
    )
    notes = [f"{data / 'pairs.tsv'}:3: no text", "/srv/acme/other.tsv: 1 pair", f"{Path.home()}/secret.tsv: 1 pair"]
    card = model_card(run, told, start=f"from the model in `{above / 'runs' / 'first'}`", minutes=1.0, notes=notes)
    run.mkdir(parents=True)
    (run / "recipe.yaml").write_text(to_yaml(recipe))
    paths = [str(data / "pairs.tsv"), "secret/acme/made.tsv"]
    (run / "data.json").write_text(json.dumps({"files": [{"path": path} for path in paths], "notes": notes}))
    (run / "README.md").write_text(card)
    return run


def leaks(text: str) -> list[str]:
    return [name for name in PRIVATE if name in text.replace("secret.tsv", "")]


def test_what_leaves_the_machine_has_names_and_no_paths(tmp_path: Path) -> None:
    run = private_run(tmp_path)
    assert len(leaks((run / "README.md").read_text())) == len(leaks((run / "recipe.yaml").read_text())) + 1 == 6
    card = card_with(run, "\n## Use elsewhere\n", ["it lost something"]).decode()
    assert leaks(card) == []
    for kept in (
        "from `pairs.tsv`, with 20 % of each epoch from `general.tsv`. Others are from `made.tsv`, which `teacher`",
        "Trained from the model in `first` by",
        "| a/b | BLEU/chrF |",
        "https://example.org/a/b/c.",
        'heed translate mine "and/or"\nheed look mine --out',
        "3 km/h",
        "- pairs.tsv:3: no text\n- other.tsv: 1 pair\n- secret.tsv: 1 pair\n",
        "It lost something.",
    ):
        assert kept in card
    moved = run.rename(tmp_path / "moved")
    assert leaks(card_with(moved, "").decode()) == []
    assert 'heed translate moved "and/or"' in card_with(moved, "").decode()


def test_what_is_told_of_a_run_has_names_and_no_paths(tmp_path: Path) -> None:
    run = private_run(tmp_path)
    told = read_one([run.parent], "mine")
    assert leaks(json.dumps(told, ensure_ascii=False)) == []
    recipe = read_yaml(told["recipe"], where="")
    assert recipe == read_yaml((run / "recipe.yaml").read_text(), where="") | {
        "start_from": "first",
        "data": recipe["data"]
        | {"path": "pairs.tsv", "valid": ["held out.tsv"], "mix": ["general.tsv:0.2"], "synthetic": ["made.tsv"]},
    }
    (run / "metrics.jsonl").write_text("broken\n")
    trouble = read_one([run.parent], "mine")["trouble"]
    assert trouble.startswith(("mine/metrics.jsonl", "metrics.jsonl"))
    assert [leaks(one["trouble"]) for one in list_runs([run.parent])] == [[]]
