"""All runs of a folder over HTTP, whole, broken, empty and live."""

import json
import os
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from heedful.run.folder import read_saved
from heedful.serve.app import make_app
from heedful.serve.engine import open_engine
from heedful.store.lock import is_held, run_lock
from heedful.verbs import runs as runs_verb
from heedful.verbs.runs import MOST_POINTS, thinned, timed


@pytest.fixture
def folder(runs: dict[str, Path], tmp_path: Path) -> Path:
    for name in ("transformer", "label"):
        shutil.copytree(runs[name], tmp_path / "runs" / name)
    return tmp_path / "runs"


@pytest.fixture
def client(folder: Path) -> TestClient:
    return TestClient(make_app({}, runs=folder), base_url="http://localhost", raise_server_exceptions=False)


def listed(client: TestClient) -> dict[str, dict]:
    return {one["name"]: one for one in client.get("/api/runs").json()["runs"]}


def test_runs_side_by_side(client: TestClient) -> None:
    found = listed(client)
    assert {name: one["task"] for name, one in found.items()} == {"label": "classify", "transformer": "translate"}
    assert all(one["parameters"] > 0 and not one["training"] for one in found.values())
    assert "bleu on test" in found["transformer"]["scores"]


def test_one_as_a_whole(client: TestClient, folder: Path) -> None:
    found = client.get("/api/runs/transformer").json()
    rows = [json.loads(line) for line in (folder / "transformer" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in found["curve"]] == [row["step"] for row in rows]
    assert found["card"].startswith("# ")
    assert "task: translate" in found["recipe"]


@pytest.mark.parametrize("name", ["nobody", "..", "%2e%2e", "..%2ftransformer", "transformer%00", "a" * 300])
def test_no_other_folder_is_read(client: TestClient, name: str) -> None:
    assert client.get(f"/api/runs/{name}").status_code in (404, 400)


def test_no_path_is_told(client: TestClient, folder: Path) -> None:
    assert str(folder.parent) not in client.get("/api/runs/nobody").text


@pytest.mark.parametrize("file", ["task.json", "config.json", "metrics.jsonl", "scores.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"scores": 3}\n', b"7\n"])
def test_a_broken_run_hides_no_other(client: TestClient, folder: Path, file: str, content: bytes) -> None:
    (folder / "label" / file).write_bytes(content)
    found = listed(client)
    assert set(found) == {"label", "transformer"}
    assert "trouble" not in found["transformer"]
    one = client.get("/api/runs/label")
    assert one.status_code == 200
    assert one.json()["card"].startswith("# ")
    assert one.json().get("trouble") == found["label"].get("trouble")
    assert file == "metrics.jsonl" or one.json()["trouble"]


def test_one_that_has_only_begun(client: TestClient, folder: Path) -> None:
    (folder / "new").mkdir()
    (folder / "new" / "metrics.jsonl").write_text('{"step": 3, "train_loss": 2.5}\n{"step": 4, "trai')
    (folder / "no run").mkdir()
    with run_lock(folder / "new"):
        found = listed(client)["new"]
    assert found["steps"] == 3
    assert found["training"]
    assert not listed(client)["new"]["training"]
    assert "no run" not in listed(client)


def test_a_name_that_is_no_text_hides_no_other(client: TestClient, folder: Path) -> None:
    odd = os.fsencode(folder) + b"/odd\xff"
    shutil.copytree(os.fsencode(folder / "label"), odd)
    found = listed(client)
    assert set(found) == {"label", "transformer", "odd\ufffd"}
    assert client.get("/api/runs/odd%EF%BF%BD").json()["curve"]


@pytest.mark.parametrize("name", ["a,b", "<b>", "100%", "q?x#y", "two words", "\u202ex"])
def test_any_name_of_a_folder(client: TestClient, folder: Path, name: str) -> None:
    (folder / "label").rename(folder / name)
    assert client.get(f"/api/runs/{quote(name, safe='')}").json()["name"] == name


def test_weights_are_read_again_only_when_they_are_others(
    client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(runs_verb, "read_saved", lambda run: read.append(run.name) or read_saved(run))
    before = listed(client)
    assert listed(client) == before
    assert sorted(read) == ["label", "transformer"]
    shutil.copytree(folder / "transformer", folder / "label", dirs_exist_ok=True)
    assert listed(client)["label"]["task"] == "translate"
    assert sorted(read) == ["label", "label", "transformer"]


def test_a_run_that_is_continued_tells_where_it_is(client: TestClient, folder: Path) -> None:
    before = listed(client)["label"]
    with (folder / "label" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 900000, "train_loss": 1.0, "seconds": 60000}\n')
    assert listed(client)["label"]["steps"] == before["steps"]
    with run_lock(folder / "label"):
        now = listed(client)["label"]
    assert (now["steps"], now["minutes"], now["finished"]) == (900000, 1000, False)


def test_rows_without_seconds_stand_between_those_that_have_some() -> None:
    rows = [{"step": 5.0}, {"step": 10.0, "seconds": 60.0}, {"step": 15.0}, {"step": 20.0, "seconds": 180.0}]
    assert [row["minutes"] for row in timed([*rows, {"step": 25.0}])] == [0.5, 1, 2, 3, 4]
    assert [row["minutes"] for row in timed([{"step": 2.0}, {"step": 8.0}], 4.0)] == [1, 4]
    assert [row["minutes"] for row in timed([{"step": 2.0}])] == [None]
    assert timed([]) == []


def test_looking_at_a_lock_takes_nothing(tmp_path: Path) -> None:
    assert not is_held(tmp_path)
    with run_lock(tmp_path):
        assert is_held(tmp_path)
    assert not is_held(tmp_path)


class Watched(float):
    """A number that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: float) -> bool:
        Watched.compared += 1
        return float(self) < other

    def __gt__(self, other: float) -> bool:
        Watched.compared += 1
        return float(self) > other

    def __ge__(self, other: float) -> bool:
        Watched.compared += 1
        return float(self) >= other


def test_the_minutes_of_a_long_training_are_found_at_once() -> None:
    rows = [{"step": Watched(step), **({"seconds": step / 2} if step % 2 else {})} for step in range(1, 4001)]
    minutes = [row["minutes"] for row in timed(rows)]
    assert minutes == pytest.approx([step / 120 for step in range(1, 4001)])
    assert Watched.compared < 20 * len(rows)


def test_long_curves_are_thinned() -> None:
    rows = [{"step": float(i), "train_loss": 1.0} for i in range(5000)]
    rows[2500] = {"step": 2500.0, "valid_loss": 1.0}
    kept = thinned(rows)
    assert len(kept) <= MOST_POINTS + 1
    assert kept[0]["step"] == 0
    assert kept[-1]["step"] == 4999
    assert {"step": 2500.0, "valid_loss": 1.0} in kept
    measured = [{"step": float(i), "valid_loss": 1.0} for i in range(5000)]
    assert len(thinned([*rows, *measured])) <= 2 * MOST_POINTS
    assert thinned(measured)[-1] == measured[-1]
    assert thinned(measured[:3]) == measured[:3]


def test_when_a_run_was_changed_last_and_what_its_loss_is_a_mean_over(client: TestClient, folder: Path) -> None:
    for file in (folder / "label").iterdir():
        os.utime(file, (1_000_000, 1_000_000))
    os.utime(folder / "label" / "metrics.jsonl", (2_000_000, 2_000_000))
    found = listed(client)
    assert (found["label"]["changed"], found["label"]["counted"]) == (2_000_000, "examples")
    assert found["transformer"]["changed"] > 2_000_000
    assert found["transformer"]["counted"] == "tokens"


def test_a_recipe_by_its_keys(client: TestClient, folder: Path) -> None:
    found = client.get("/api/runs/transformer").json()["settings"]
    assert found["task"] == "translate"
    assert found["train.seed"] == 0 or found["train.seed"]
    assert all(key in ("task", "preset", "start_from") or "." in key for key in found)
    (folder / "transformer" / "recipe.yaml").write_text("train: [")
    broken = client.get("/api/runs/transformer").json()
    assert broken["settings"] == {}
    assert "recipe.yaml" in broken["trouble"]
    aliases = "\n".join(f"a{i}: &a{i} {{b: *a{i - 1}, c: *a{i - 1}}}" for i in range(1, 40))
    (folder / "transformer" / "recipe.yaml").write_text(f"a0: &a0 {{x: {{}}}}\n{aliases}\n")
    assert len(client.get("/api/runs/transformer").json()["settings"]) < 1000


def test_the_task_of_one_that_has_no_model_yet(client: TestClient, folder: Path) -> None:
    (folder / "new").mkdir()
    (folder / "new" / "recipe.yaml").write_text("# a recipe\ntask: classify-images\npreset: x\n")
    found = listed(client)["new"]
    assert (found["task"], found["counted"], found["parameters"]) == ("classify-images", "pictures", None)


def test_every_served_run_is_listed(runs: dict[str, Path], tmp_path: Path) -> None:
    places = [tmp_path / folder / name for folder, name in (("one", "a"), ("two", "b"), ("two", "a"), ("three", "a"))]
    for place in places:
        shutil.copytree(runs["label"], place)
    models = {"a": open_engine(places[0]), "b": open_engine(places[1])}
    client = TestClient(make_app(models, runs=tmp_path / "one"), base_url="http://localhost")
    assert sorted(listed(client)) == ["a", "a (two)", "b"]
    (places[2] / "README.md").write_text("the other")
    assert client.get("/api/runs/a%20(two)").json()["card"] == "the other"
    assert client.get("/api/runs/a").json()["card"] != "the other"
    for model in models.values():
        model.close()
