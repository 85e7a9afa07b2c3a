"""A detector from its boxes to what it finds; and what counts as found."""

import base64
import io
import json
import re

import numpy
import pytest
import torch
from PIL import Image

import heedful
from commands import heed
from heedful.data.images.boxes import BoxedImages, BoxedPart, Thing, read_boxed_images
from heedful.data.images.views import whole
from heedful.data.made import shapes
from heedful.errors import InputError
from heedful.metrics.boxes import ScoredBox, average_precision
from heedful.run.recipe import override
from heedful.run.task import NOTHING
from heedful.tasks.detect import look as look_detect
from heedful.tasks.detect.train import DetectJob
from heedful.tasks.detect.use import target_of
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished, goes_on_alike

SMALL = {
    "d_model": 16,
    "n_heads": 2,
    "d_ff": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "backbone": {"widths": [16], "depths": [1], "kind": "basic", "stem": 8, "norm": "group"},
}


def part(name, count):
    scenes = shapes.scenes(name, count)
    pixels = torch.stack([torch.from_numpy(one.pixels).permute(2, 0, 1) for one in scenes])
    things = [tuple(Thing(one.kind, one.box) for one in scene.shapes) for scene in scenes]
    return BoxedPart(pixels, things, [str(i) for i in range(count)])


def corpus():
    return BoxedImages(
        part("train", 12), part("valid", 6), {"test": part("test", 5)}, "made", channels=3, size=(64, 64)
    )


def recipe(**changes):
    base = {
        "task": "detect",
        "model": SMALL,
        "images": {"size": 32, "batch": 4},
        "train": {"steps": 4, "eval_every": 4, "precision": "fp32"},
    }
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("detect") / "run"
    return out, finished(train(recipe(), out, corpus=corpus()))


def test_a_run_says_what_it_finds(run, tmp_path):
    out, done = run
    model = heedful.load(out)
    assert done.scores["test"].keys() == {"loss", "map", "map50", "map75", "recall"}
    assert model.measure(corpus().tests["test"]) == pytest.approx(done.scores["test"], abs=1e-5)
    pixels = corpus().valid.images[0]
    large = Image.fromarray(pixels.permute(1, 2, 0).numpy()).resize((160, 64))
    large.save(tmp_path / "x.png")
    (found,) = model.detect([tmp_path / "x.png"], threshold=0.0)
    assert len(found) == model.model.config.n_queries
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for label, score, (left, upper, right, lower) in found:
        assert label in shapes.KINDS
        assert 0 <= score <= 1
        assert 0 <= left <= right <= 160
        assert 0 <= upper <= lower <= 64
    assert max(one.box[2] for one in found) > 64
    assert model.detect([tmp_path / "x.png"], threshold=1.0) == [[]]
    assert "Finds things" in (out / "README.md").read_text()
    assert json.loads((out / "data.json").read_text())["things"]["train"] == sum(map(len, corpus().train.things))


def test_pictures_are_found_in_one_by_one(run):
    model, images = heedful.load(run[0]), corpus().valid.images
    for i, own in enumerate(model.find(images)):
        (alone,) = model.find(images[i : i + 1])
        assert [one.label for one in alone] == [one.label for one in own]
        torch.testing.assert_close(torch.tensor([one.box for one in alone]), torch.tensor([one.box for one in own]))


def test_going_on_is_as_if_nothing_had_happened(tmp_path):
    plan = recipe(**{"train.steps": 5, "train.save_every": 2, "train.eval_every": 5, "images.augment": "strong"})
    goes_on_alike(plan, corpus(), tmp_path, after=4)


def test_another_training_begins_with_it(run, tmp_path):
    other = corpus()
    squares = [tuple(Thing("thing", one.box) for one in own) for own in other.train.things]
    named = BoxedPart(other.train.images, squares, other.train.names)
    own = BoxedImages(named, named, {}, "made", channels=3, size=(64, 64))
    plan = override(heedful.recipe("detect", start_from=str(run[0])), ["train.steps=1", "train.precision=fp32"])
    job, before = DetectJob(plan, own), heedful.load(run[0]).model
    model = heedful.models.make_model(job.config)
    job.begin(model)
    assert torch.equal(model.box_head.maps[0].weight, before.box_head.maps[0].weight)
    assert len(model.class_head.weight) == 2
    assert finished(train(plan, tmp_path / "run", corpus=own)).steps == 1


def test_targets_are_shares_of_what_is_seen():
    things = (Thing("b", (8.0, 16.0, 24.0, 48.0)), Thing("a", (0.0, 0.0, 4.0, 4.0)))
    target = target_of(things, whole((64, 64)), ("a", "b"))
    assert target.classes.tolist() == [1, 0]
    torch.testing.assert_close(target.boxes[0], torch.tensor([0.25, 0.5, 0.25, 0.5]))
    assert target_of((), whole((64, 64)), ("a",)).boxes.shape == (0, 4)


SQUARE, OTHER = (0.0, 0.0, 10.0, 10.0), (20.0, 20.0, 30.0, 30.0)
HALF = (0.0, 0.0, 10.0, 6.0)  # overlaps SQUARE by 0.6: right at 0.5, 0.55 and, just, 0.6


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([ScoredBox("a", 0.9, SQUARE), ScoredBox("a", 0.8, OTHER)], {"map": 1, "map50": 1, "map75": 1, "recall": 1}),
        ([], {"map": 0, "map50": 0, "map75": 0, "recall": 0}),
        ([ScoredBox("b", 0.9, SQUARE)], {"map": 0, "map50": 0}),
        # One of two: precision 1 up to a recall of a half, 51 of 101 points.
        ([ScoredBox("a", 0.9, SQUARE)], {"map": 51 / 101, "map50": 51 / 101, "recall": 0.5}),
        # A wrong one first: precisions 1/2 and 2/3, and so 2/3 everywhere.
        (
            [ScoredBox("a", 0.9, (50.0, 50.0, 60.0, 60.0)), ScoredBox("a", 0.8, SQUARE), ScoredBox("a", 0.7, OTHER)],
            {"map50": 2 / 3},
        ),
        # Found twice: the second counts as wrong, but stands behind all that is right.
        ([ScoredBox("a", 0.9, SQUARE), ScoredBox("a", 0.8, OTHER), ScoredBox("a", 0.1, SQUARE)], {"map50": 1}),
        ([ScoredBox("a", 0.9, HALF), ScoredBox("a", 0.8, OTHER)], {"map50": 1, "map75": 1 / 2 * 51 / 101}),
    ],
)
def test_average_precision_by_hand(found, expected):
    scores = average_precision([found, []], [(Thing("a", SQUARE), Thing("a", OTHER)), ()])
    for name, value in expected.items():
        assert scores[name] == pytest.approx(value, abs=1e-6), name


def test_what_is_found_in_a_crowd_is_not_wrong():
    """Of COCO's crowds pycocotools says so, by the share of the found box that is inside."""
    inside, around = (21.0, 21.0, 24.0, 24.0), ((Thing("a", OTHER), Thing("b", OTHER)),)
    found = [[ScoredBox("a", 0.9, inside), ScoredBox("a", 0.8, SQUARE)]]
    assert average_precision(found, [(Thing("a", SQUARE),)])["map"] == pytest.approx(0.5)
    assert average_precision(found, [(Thing("a", SQUARE),)], around)["map"] == pytest.approx(1)


def test_crowds_stay_with_their_pictures():
    made = corpus()
    crowds = [made.valid.things[0], *[()] * 5]
    crowded = BoxedPart(made.valid.images, made.valid.things, made.valid.names, crowds)
    job = DetectJob(recipe(), BoxedImages(made.train, crowded, {}, "made", channels=3, size=(64, 64)))
    assert job.portion(crowded, 1.0).crowds == crowds
    assert job.portion(made.valid, 0.5).crowds == []


def test_labels_that_were_not_learnt_and_options_that_say_nothing():
    named = corpus()
    strange = BoxedPart(named.valid.images, [(Thing("star", SQUARE),)] * 6, named.valid.names)
    with pytest.raises(InputError, match="0: the label 'star'"):
        DetectJob(recipe(), BoxedImages(named.train, strange, {}, "made", channels=3, size=(64, 64)))
    with pytest.raises(InputError, match="mixup"):
        DetectJob(recipe(**{"images.mixup": 0.2}), corpus())
    with pytest.raises(InputError, match="mirrored"):
        DetectJob(recipe(**{"images.mirrored": True}), corpus())
    with pytest.raises(InputError, match="no data"):
        DetectJob(recipe())
    with pytest.raises(InputError, match="no box in any"):
        average_precision([[]], [()])


def test_what_is_measured_on_has_boxes():
    made = corpus()
    empty = BoxedPart(made.valid.images, [()] * 6, made.valid.names)
    for valid, test, name in ((empty, made.valid, "valid"), (made.valid, empty, "test")):
        with pytest.raises(InputError, match=f"no box in any picture of the part {name}"):
            DetectJob(recipe(), BoxedImages(made.train, valid, {"test": test}, "made", channels=3, size=(64, 64)))
    scarce = BoxedPart(made.valid.images[[0] * 40], [(), made.valid.things[0], *[()] * 38], ["x"] * 40)
    job = DetectJob(recipe(), BoxedImages(made.train, scarce, {}, "made", channels=3, size=(64, 64)))
    some = job.portion(job.valid, 0.1)
    assert len(some) == len(some.images) == 17
    assert sum(map(len, some.things)) == len(made.valid.things[0])


def test_there_are_queries_for_all_things():
    crowded = corpus()
    things = (Thing("a", SQUARE),) * 20
    full = BoxedPart(crowded.train.images[:1], [things], ["x"])
    job = DetectJob(recipe(), BoxedImages(full, full, {}, "made", channels=3, size=(64, 64)))
    assert job.config.n_queries == 40
    few = DetectJob(recipe(**{"model.n_queries": 5}), BoxedImages(full, full, {}, "made", channels=3, size=(64, 64)))
    assert few.config.n_queries == 5
    assert "a picture has 20 things, but 5 queries" in few.notes[0]


def test_shapes_are_data(monkeypatch):
    monkeypatch.setattr(shapes, "VALID", 4)
    monkeypatch.setattr(shapes, "TEST", 5)
    read = read_boxed_images("shapes:3")
    assert (len(read.train), len(read.valid), len(read.tests["test"])) == (3, 4, 5)
    scene = shapes.scene("train", 2)
    assert numpy.array_equal(read.train.images[2].permute(1, 2, 0).numpy(), scene.pixels)
    assert [one.box for one in read.train.things[2]] == [one.box for one in scene.shapes]


def test_what_a_query_looked_at(run, tmp_path):
    """The boxes are those of `detect`, in the pixels that the model sees; a map has all that its query looked at."""
    model = heedful.load(run[0])
    Image.fromarray(corpus().valid.images[0].permute(1, 2, 0).numpy()).save(tmp_path / "scene.png")
    looked = look_detect.look_at_things(model, tmp_path / "scene.png", threshold=0.0)
    (found,) = model.detect([tmp_path / "scene.png"], threshold=0.0)
    assert len(looked.found) == min(look_detect.MOST, len(found))
    for ours, theirs in zip(looked.found, found, strict=False):
        assert (ours.label, ours.score) == (theirs.label, pytest.approx(theirs.score))
        assert ours.box == pytest.approx([edge / 2 for edge in theirs.box], abs=1e-4)  # 64 pixels are seen as 32
    for one in looked.maps:
        assert one.shape == (8, 8)
        assert float(one.sum()) == pytest.approx(1)
    assert not torch.equal(looked.maps[0], looked.maps[1])
    assert len(look_detect.look_at_things(model, tmp_path / "scene.png", threshold=2.0).found) == 1
    assert look_detect.draw_things(looked, "png").startswith(b"\x89PNG")
    for name, more, code in (("look.html", [], 0), ("look.svg", [], 0), ("one.svg", ["--head", 1], 2)):
        assert heed("look", run[0], tmp_path / "scene.png", "--out", tmp_path / name, *more) == code
    assert "1: " in (tmp_path / "look.svg").read_text()
    told = look_detect.look_things(model, str(tmp_path / "scene.png"), "png", NOTHING).facts["boxes"]
    assert told[0]["box"] == pytest.approx(found[0].box, abs=1e-3)  # of the file's own pixels
    pictures = re.findall(
        r'<img src="data:image/png;base64,([^"]+)" alt="([^"]+)"', (tmp_path / "look.html").read_text()
    )
    assert [name[:3] for _, name in pictures] == ["pic", *(f"{i}: " for i in range(1, len(pictures)))]
    with Image.open(io.BytesIO(base64.b64decode(pictures[1][0]))) as drawn:
        assert (0, 255, 255) in {drawn.getpixel((x, y)) for x in range(drawn.width) for y in range(drawn.height)}
