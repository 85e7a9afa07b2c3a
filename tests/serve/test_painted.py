"""Pictures that models make or colour, over HTTP: completed ones, new ones, and masks."""

import base64
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from heedful.serve.app import make_app
from serving import hosted, opened


@pytest.fixture(scope="module")
def made(run_of: Callable[[str], Path]) -> dict[str, Path]:
    return {name: run_of(name) for name in ("paint", "segment", "detect")}


@pytest.fixture(scope="module")
def client(made: dict[str, Path]) -> Iterator[TestClient]:
    with TestClient(make_app(hosted(*made.values())), base_url="http://localhost") as client:
        yield client


def image_of(url: str) -> numpy.ndarray:
    kind, _, data = url.partition(",")
    assert kind == "data:image/png;base64"
    return numpy.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def sent(client: TestClient, verb: str, pictures: list[bytes], **options: object) -> list[dict]:
    files = [("file", (f"{i}.png", each, "image/png")) for i, each in enumerate(pictures)]
    found = client.post(f"/api/{verb}", files=files, data={"json": json.dumps({"options": options})})
    assert found.status_code == 200, found.text
    return found.json()["answers"]


def test_pictures_are_completed_as_from_a_file(client: TestClient, made, picture: bytes, tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(picture)
    painter = opened(made["paint"])
    wanted = painter.paint(painter.begin([tmp_path / "p.png"], keep=0.5), samples=3, seed=5)[0]
    (answer,) = sent(client, "paint", [picture], samples=3, keep=0.5, sampling={"seed": 5})
    assert answer["input"] == "0.png"
    assert len(answer["pictures"]) == 3
    for url, own in zip(answer["pictures"], wanted, strict=True):
        pixels = image_of(url)
        assert (pixels == (own[0] if len(own) == 1 else own.permute(1, 2, 0)).numpy()).all()


def test_new_pictures_need_no_file(client: TestClient, made) -> None:
    asked = {"inputs": ["", ""], "options": {"samples": 2, "sampling": {"seed": 1}}}
    answers = client.post("/api/paint", json=asked).json()["answers"]
    assert [answer["input"] for answer in answers] == ["", ""]
    wanted = opened(made["paint"]).paint(samples=2, seed=1)[0]
    for url, own in zip(answers[0]["pictures"], wanted, strict=True):
        assert (image_of(url) == (own[0] if len(own) == 1 else own.permute(1, 2, 0)).numpy()).all()
    assert answers[0]["pictures"] != answers[1]["pictures"]
    other = client.post("/api/paint", json={**asked, "options": {"samples": 2, "sampling": {"seed": 2}}}).json()
    assert other["answers"][0]["pictures"] != answers[0]["pictures"]


@pytest.mark.parametrize("inputs", ["/etc/passwd", ["", "/etc/passwd"], ["p.png", ""], " "])
def test_no_file_of_the_server_is_read_by_its_name(client: TestClient, inputs: object) -> None:
    assert client.post("/api/paint", json={"inputs": inputs}).status_code == 415


def test_only_what_makes_pictures_does_without_one(client: TestClient) -> None:
    for verb in ("segment", "detect"):
        assert client.post(f"/api/{verb}", json={"inputs": ""}).status_code == 415


def test_too_many_at_once(client: TestClient, picture: bytes) -> None:
    many = {"samples": 64}
    found = client.post("/api/paint", json={"inputs": [""] * 5, "options": many})
    assert (found.status_code, "320 answers at once" in found.json()["error"]["message"]) == (400, True)
    files = [("file", ("p.png", picture, "image/png"))] * 5
    found = client.post("/api/paint", files=files, data={"json": json.dumps({"options": many})})
    assert (found.status_code, "320 answers at once" in found.json()["error"]["message"]) == (400, True)


def test_a_mask_only_where_it_is_wanted(client: TestClient, picture: bytes) -> None:
    (plain,) = sent(client, "segment", [picture])
    assert "mask" not in plain
    (found,) = sent(client, "segment", [picture], mask=True)
    mask = image_of(found["mask"])
    assert mask.shape == (30, 40)  # that of the picture
    values, counts = numpy.unique(mask, return_counts=True)
    shares = dict(zip(values.tolist(), (counts / mask.size).tolist(), strict=True))
    assert {one["value"]: one["share"] for one in found["labels"]} == pytest.approx(shares, abs=1e-4)
    assert found["labels"] == plain["labels"]
