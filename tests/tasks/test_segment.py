"""A segmenter from its masks to what it says of pixels; and how that is counted."""

from dataclasses import replace

import pytest
import torch
from PIL import Image

import heedful
from commands import heed
from heedful.data.images.masks import IGNORE, SHAPES, Classes, MaskedImages, MaskedPart, doubt
from heedful.data.made import shapes
from heedful.errors import InputError
from heedful.run.recipe import override
from heedful.tasks.recipes import build
from heedful.tasks.segment import use
from heedful.tasks.segment.train import SegmentJob
from heedful.tasks.segment.use import confusion, likeliest, overlaps, pixel_loss, upsampled
from heedful.verbs.train import train
from made import finished, goes_on_alike

SMALL = {"widths": [8, 16], "depths": [1, 1], "heads": [1, 2], "patches": [3, 3], "strides": [4, 2], "shorten": [2, 1]}
SMALL |= {"d_head": 16}


def part(name, count):
    scenes = shapes.scenes(name, count)
    pixels = torch.stack([torch.from_numpy(one.pixels).permute(2, 0, 1) for one in scenes])
    masks = torch.stack([torch.from_numpy(one.mask)[None] for one in scenes])
    return MaskedPart(pixels, masks, [str(i) for i in range(count)])


def corpus(classes=SHAPES):
    return MaskedImages(
        part("train", 10),
        part("valid", 4),
        {"test": part("test", 5)},
        "made",
        channels=3,
        size=(64, 64),
        classes=classes,
    )


def recipe(**changes):
    base = {
        "task": "segment",
        "model": SMALL,
        "images": {"size": 32, "batch": 4},
        "train": {"steps": 4, "eval_every": 4, "precision": "fp32"},
    }
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("segment") / "run"
    return out, finished(train(recipe(), out, corpus=corpus()))


def test_a_run_says_what_pixels_belong_to(run, tmp_path):
    out, done = run
    model = heedful.load(out)
    scores = model.measure(corpus().tests["test"])
    assert scores == pytest.approx(done.scores["test"], abs=1e-5)
    assert {"loss", "miou", "pixel_accuracy", "iou ground"} <= scores.keys()
    sizes = [(64, 64), (50, 30)]
    for i, size in enumerate(sizes):
        Image.new("RGB", size, (200, 30 * i, 30)).save(tmp_path / f"{i}.png")
    found = model.segment([tmp_path / "0.png", tmp_path / "1.png"])
    assert [tuple(one.shape) for one in found] == [(64, 64), (30, 50)]
    assert torch.equal(model.segment([tmp_path / "1.png"])[0], found[1])
    assert "every pixel" in (out / "README.md").read_text()


def test_masks_to_learn_from_are_not_written_over(run, tmp_path, monkeypatch):
    """In a folder of pictures and masks, by itself."""
    out = run[0].resolve()
    monkeypatch.chdir(tmp_path)
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
        Image.new("L", (32, 32), 1).save(tmp_path / folder / "0.png")
    before = (tmp_path / "masks" / "0.png").read_bytes()
    assert heed("segment", out, "images/0.png") == 0
    assert (tmp_path / "masks" / "0.png").read_bytes() == before
    assert (tmp_path / "segmented" / "0.png").is_file()
    assert heed("segment", out, "images/0.png", "--out", "images") == 2
    assert (tmp_path / "images" / "0.png").read_bytes() == before


def test_going_on_is_as_if_nothing_had_happened(tmp_path):
    plan = recipe(**{"train.steps": 4, "train.save_every": 2, "images.augment": "strong"})
    goes_on_alike(plan, corpus(), tmp_path, after=3)


def test_another_training_begins_with_it(run):
    named = corpus(Classes(("a", "b", "c", "d"), (0, 1, 2, 3)))
    plan = override(heedful.recipe("segment", start_from=str(run[0])), ["train.steps=1"])
    job, before = SegmentJob(plan, named), heedful.load(run[0]).model
    model = heedful.models.make_model(job.config)
    job.begin(model)
    assert torch.equal(model.head.fuse.weight, before.head.fuse.weight)
    assert not torch.equal(model.head.out.weight, before.head.out.weight)
    same = SegmentJob(plan, corpus())
    same.begin(model)
    assert torch.equal(model.head.out.weight, before.head.out.weight)


def test_pixels_that_say_nothing_count_nothing():
    logits, mask = torch.randn(2, 3, 4, 4), torch.randint(0, 3, (2, 8, 8), dtype=torch.uint8)
    mask[0, :, 2:] = IGNORE
    loss = pixel_loss(logits, mask)
    assert loss.count == 16 + 64
    chances = upsampled(logits, (8, 8)).log_softmax(1)
    by_hand = -sum(
        float(chances[b, int(mask[b, y, x]), y, x])
        for b in range(2)
        for y in range(8)
        for x in range(8)
        if mask[b, y, x] != IGNORE
    )
    assert float(loss.total) == pytest.approx(by_hand, rel=1e-5)
    other = logits.clone()
    other[0, :, :, 2:] = 9.0  # enlarged, this reaches the columns from 3 on alone
    torch.testing.assert_close(pixel_loss(other, mask).total, loss.total)


def test_overlaps_by_hand():
    mask = torch.tensor([[0, 0, 1, 1], [1, 255, 0, 0]], dtype=torch.uint8)
    said = torch.tensor([[0, 1, 1, 1], [0, 2, 0, 0]])
    counts = confusion(said, mask, 4)
    assert counts[:2, :2].tolist() == [[3, 1], [1, 2]]
    found = overlaps(counts, ("a", "b", "c", "d"))
    assert found == pytest.approx({"iou a": 3 / 5, "iou b": 2 / 4, "miou": 0.55, "pixel_accuracy": 5 / 7})
    with pytest.raises(InputError, match="no pixel"):
        overlaps(torch.zeros(2, 2, dtype=torch.int64), ("a", "b"))


def test_masks_without_a_class_are_refused_before_anything_is_learnt():
    made = corpus()
    part = made.tests["test"]
    nothing = replace(part, masks=torch.full_like(torch.stack([*part.masks]), IGNORE))
    with pytest.raises(InputError, match="no pixel of these masks"):
        SegmentJob(recipe(), replace(made, tests={"test": nothing}))


def test_one_class_is_enlarged_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """All classes of a photograph at once would be gigabytes."""
    torch.manual_seed(0)
    logits, enlarged = torch.randn(7, 5, 6), []
    logits[3] = logits[2]  # of two that are alike the first

    def counting(own: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        enlarged.append(own.shape[1])
        return upsampled(own, size)

    monkeypatch.setattr(use, "upsampled", counting)
    found = likeliest(logits, (23, 31))
    assert torch.equal(found.long(), upsampled(logits[None], (23, 31))[0].argmax(0))
    assert enlarged == [1] * 7


def test_a_picture_is_measured_a_class_at_a_time(run, monkeypatch: pytest.MonkeyPatch) -> None:
    part, model, enlarged = corpus().tests["test"], heedful.load(run[0]), []
    counts, total, count = 0, 0.0, 0
    for i in range(len(part)):
        (logits, size), mask = next(model._logits(part.images[i : i + 1])), part.masks[i]
        whole = pixel_loss(logits[None], mask)
        total, count = total + float(whole.total), count + whole.count
        counts = counts + confusion(upsampled(logits[None], size)[0].argmax(0), mask[0], len(model.spec.labels))

    def counting(own: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        enlarged.append(own.shape[1])
        return upsampled(own, size)

    monkeypatch.setattr(use, "upsampled", counting)
    found = model.measure(part)
    assert found.pop("loss") == pytest.approx(total / count, rel=1e-5)
    assert found == overlaps(counts, model.spec.labels)
    assert enlarged == [1] * (len(part) * len(model.spec.labels))


@pytest.mark.parametrize("values", [(0, 1), (0, 1, 2), (0, 255)])
def test_masks_of_255_that_would_leave_one_class_to_score_are_told(values: tuple[int, ...]) -> None:
    """Masks of 0 and 255 have the class 255 where a model has learnt from such, and elsewhere what is not known."""
    classes = Classes(tuple(f"c{value}" for value in values), values)
    masks = torch.zeros(2, 1, 4, 4, dtype=torch.uint8)
    half = masks.clone()
    half[:, :, 2:] = 1 if 255 in values else IGNORE
    told = doubt(MaskedPart(masks, half, ["a", "b"]), classes)
    assert bool(told) == (255 not in values)
    assert all("nothing but 'c0' is scored" in note for note in told)
    half[0, 0, 0] = 1
    assert doubt(MaskedPart(masks, half, ["a", "b"]), classes) == ()
    plan = replace(corpus(), valid=replace(part("valid", 4), masks=half.repeat(2, 1, 16, 16)))
    assert not any("is scored" in note for note in SegmentJob(recipe(), plan).notes)
    plan = replace(plan, valid=replace(plan.valid, masks=torch.where(plan.valid.masks == 1, IGNORE, plan.valid.masks)))
    assert any("nothing but 'ground' is scored" in note for note in SegmentJob(recipe(), plan).notes)
