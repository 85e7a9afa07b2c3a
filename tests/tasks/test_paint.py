"""A painter from its pictures to those that it makes."""

import json
import math

import pytest
import torch
from PIL import Image

import heedful
from commands import heed
from heedful.data.images.files import to_image
from heedful.data.images.labelled import LabelledImages, Part
from heedful.errors import InputError
from heedful.run.recipe import override
from heedful.tasks.paint.train import PaintJob
from heedful.tasks.paint.use import Painter
from heedful.tasks.recipes import build
from heedful.verbs.exchange import export_model
from heedful.verbs.train import train
from made import finished, goes_on_alike

SIZE = 8


def part(n):
    """Pictures of another size than the model's."""
    return Part(torch.randint(0, 256, (n, 3, 10, 9)).to(torch.uint8), [""] * n)


@pytest.fixture(scope="module")
def corpus():
    torch.manual_seed(0)
    return LabelledImages(part(12), part(4), {"test": part(5)}, "made", channels=3, size=(10, 9))


def recipe(**changes):
    base = {
        "task": "paint",
        "model": {"n_layers": 2, "d_model": 16, "n_heads": 2},
        "images": {"size": SIZE, "colours": 6, "batch": 5},
        "train": {"steps": 4, "eval_every": 4, "precision": "fp32"},
    }
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


@pytest.fixture(scope="module")
def run(tmp_path_factory, corpus):
    out = tmp_path_factory.mktemp("paint") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.tasks.paint.train.SHOWN", 16)
        return out, finished(train(recipe(), out, corpus=corpus))


@pytest.fixture
def files(tmp_path):
    """Three pictures of three sizes."""
    places = [tmp_path / f"{i}.png" for i in range(3)]
    for i, place in enumerate(places):
        to_image(torch.randint(0, 256, (3, 9 + i, 12)).to(torch.uint8)).save(place)
    return places


def loud(run):
    """A painter that means what it says."""
    painter = heedful.load(run)
    for weight in painter.model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return painter


def test_a_run_paints(run, corpus):
    out, done = run
    painter = heedful.load(out)
    assert painter.measure(corpus.tests["test"].images) == pytest.approx(done.scores["test"], abs=1e-6)
    made = painter.paint(samples=3)
    assert (made.shape, made.dtype) == ((1, 3, 3, SIZE, SIZE), torch.uint8)
    colours = {tuple(pixel) for pixel in made.movedim(2, -1).reshape(-1, 3).tolist()}
    assert colours <= set(painter.spec.palette.colours)
    kept = [json.loads((out / name).read_text())["palette"] for name in ("data.json", "task.json")]
    assert kept[0] == kept[1]
    with Image.open(out / "samples" / "step-4.png") as sheet:
        assert sheet.size == (4 * (64 + 4), 4 * (64 + 4))
    assert "pixel by pixel in 6 colours" in (out / "README.md").read_text()


def test_the_loss_is_that_of_every_pixel_after_those_before(run, corpus):
    """By hand, a picture and a pixel at a time."""
    painter, images = loud(run[0]), corpus.tests["test"].images[:2]
    palette, nats = painter.spec.palette, 0.0
    for picture in images:
        numbers = palette.numbers(painter.spec.preparation([picture])).flatten().tolist()
        state = painter.model.start(torch.zeros(1, 0, dtype=torch.long))
        for before, number in zip([len(palette), *numbers], numbers, strict=False):
            with torch.no_grad():
                logits, state = painter.model.step(torch.tensor([before]), state)
            nats -= float(logits.log_softmax(-1)[0, number])
    found = painter.measure(images)
    assert found["loss"] == pytest.approx(nats / (2 * SIZE * SIZE), rel=1e-4)
    assert found["bits_per_pixel"] == pytest.approx(found["loss"] / math.log(2))


def test_a_batch_is_one_by_one_and_what_is_given_stays(run, files):
    painter = loud(run[0])
    begun = painter.begin(files, keep=0.75)
    made = painter.paint(begun, samples=2, seed=3)
    assert torch.equal(made, painter.paint(begun, samples=2, seed=3, batch=1))
    assert not torch.equal(made, painter.paint(begun, samples=2, seed=4))
    assert not torch.equal(made[:, 0], made[:, 1])
    given = painter.spec.palette.paint(begun.view(3, 6, SIZE))
    assert torch.equal(made[:, :, :, :6], given[:, None].expand(3, 2, 3, 6, SIZE))
    greedy = painter.paint(begun, temperature=0.0)
    assert torch.equal(greedy[1:2], painter.paint(begun[1:2], temperature=0.0))
    assert torch.equal(greedy, painter.paint(begun, top_k=1))
    for keep in (1.0, math.nan):
        with pytest.raises(InputError, match="leaves no row to paint"):
            painter.begin(files, keep=keep)
    with pytest.raises(InputError, match="no picture to complete"):
        painter.begin([])


def test_going_on_is_as_if_nothing_had_happened(tmp_path, corpus):
    plan = recipe(**{"train.save_every": 2, "images.augment": "strong"})
    goes_on_alike(plan, corpus, tmp_path, after=3)


def test_another_training_begins_with_it(run, corpus):
    plan = override(heedful.recipe("paint", start_from=str(run[0])), ["train.steps=1"])
    job, before = PaintJob(plan, corpus), heedful.load(run[0])
    model = heedful.models.make_model(job.config)
    job.begin(model)
    assert job.answers == before.spec
    assert torch.equal(model.embed.tokens.weight, before.model.embed.tokens.weight)
    with pytest.raises(InputError, match="cannot be chosen"):
        PaintJob(override(plan, ["images.size=9"]), corpus)


def test_greys_by_themselves(corpus):
    train, valid = (Part(each.images[:, :1], each.labels) for each in (corpus.train, corpus.valid))
    grey = LabelledImages(train, valid, {}, "made", channels=1, size=(10, 9))
    about = PaintJob(build({"task": "paint"}, where="test"), grey).answers
    assert (len(about.palette), about.palette.colours[1], about.pixels) == (16, (17,), 784)


def test_the_command_line(run, files, capsys, tmp_path):
    out = run[0]
    words = ["--keep", 0.25, "--samples", 2, "--json"]
    assert heed("paint", out, *files, *words, "--out", tmp_path / "made") == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told[1] == {"input": str(files[0]), "sample": 2, "picture": str(tmp_path / "made" / "0-2.png")}
    assert len(told) == 6
    painter = heedful.load(out)
    made = painter.paint(painter.begin(files, keep=0.25), samples=2)
    with Image.open(told[-1]["picture"]) as image:
        assert image.tobytes() == to_image(made[2, 1]).tobytes()
    assert heed("paint", out, *files, "--out", tmp_path / "sheet.png") == 0
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (64 + 4, 3 * (64 + 4))
    assert heed("paint", out, "--samples", 1, "--out", tmp_path / "new", "--json") == 0
    assert json.loads(capsys.readouterr().out)["input"] is None
    assert (tmp_path / "new" / "new-1.png").is_file()
    assert heed("eval", out, "--data", tmp_path / "made", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"loss", "bits_per_pixel", "pictures"}
    assert found["pictures"] == 6
    assert heed("info", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["colours"] == 6
    assert heed("check", out) == 0


def test_what_cannot_be_done_is_one_line(run, files, capsys, tmp_path):
    out = run[0]
    assert heed("paint", out, *files, "--out", tmp_path / "made.jpg") == 2
    assert heed("paint", out, tmp_path / "no.png", "--out", tmp_path / "x.png") == 3
    assert heed("paint", out, files[0], "--keep", 1.0, "--out", tmp_path / "x.png") == 2
    assert heed("look", out, files[0], "--out", tmp_path / "x.png") == 2
    before = files[0].read_bytes()
    assert heed("paint", out, files[0], "--out", files[0]) == 2
    assert files[0].read_bytes() == before
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(told) == 5
    with pytest.raises(InputError):
        export_model(out, tmp_path / "out", to="ctranslate2")
    task = json.loads((out / "task.json").read_text())
    task["palette"]["colours"].pop()
    with pytest.raises(InputError, match="the model was not made"):
        Painter(heedful.load(out).model, task)
