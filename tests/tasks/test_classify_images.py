"""A classifier of pictures from its files to its answers, and one that begins with the weights of another."""

import json

import pytest
import torch
from PIL import Image

import heedful
from commands import heed
from heedful.data.images.augment import Augment
from heedful.data.images.files import Preparation, read_image
from heedful.data.images.labelled import LabelledImages, Part, read_labelled_images
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import make_model
from heedful.models.patches import interpolated_positions
from heedful.run.recipe import override
from heedful.tasks.classify_images.look import draw_picture, look_at_picture
from heedful.tasks.classify_images.train import ClassifyImagesJob, ClassifyImagesTask, MixedBatch
from heedful.tasks.classify_images.use import ImageClassifier, ImageLabelSpec, targets_of
from heedful.tasks.recipes import build
from heedful.training.loop import rows_of
from heedful.verbs.check import check
from heedful.verbs.train import train
from made import finished, goes_on_alike

SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1}
LABELS = [*"abcdefg"]


def corpus(n=70, channels=3, edge=12):
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (n, channels, edge, edge), generator=draw, dtype=torch.uint8)
    part = Part(images, [LABELS[i % 7] for i in range(n)])
    few = Part(images[:14], part.labels[:14])
    return LabelledImages(part, few, {"test": few}, "made", channels=channels, size=(edge, edge))


def recipe(**changes):
    base = {
        "task": "classify-images",
        "model": SMALL,
        "images": {"batch": 16, "mixup": 0.2},
        "train": {"steps": 4, "eval_every": 2, "precision": "fp32"},
    }
    return override(build(base, where="test"), [f"{key}={json.dumps(value)}" for key, value in changes.items()])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("images") / "run"
    return out, finished(train(recipe(), out, corpus=corpus()))


def printed(capsys, *words):
    """What a command that succeeds says on standard output, line by line."""
    assert heed(*words) == 0
    return capsys.readouterr().out.splitlines()


def test_a_run_says_what_it_has_learnt(run):
    out, done = run
    model = heedful.load(out)
    assert done.scores["test"].keys() == {"loss", "accuracy", "macro_f1", "top5"}
    test = corpus().tests["test"]
    assert model.measure(test) == pytest.approx(done.scores["test"], abs=1e-5)
    logits = model._logits(test)
    target = targets_of(test.labels, LABELS)
    assert done.scores["test"]["loss"] == pytest.approx(float(-logits.log_softmax(1)[range(14), target].mean()))
    assert done.scores["test"]["top5"] == float((logits.argsort(1)[:, -5:] == target[:, None]).any(1).float().mean())
    assert "top5" not in ClassifyImagesJob(recipe(), few_labels()).measure(tiny(few_labels())).scores
    assert model.classify([]) == []
    assert "Says what a picture shows" in (out / "README.md").read_text()


def few_labels():
    whole = corpus()
    part = Part(whole.train.images, [label if label in "ab" else "c" for label in whole.train.labels])
    return LabelledImages(part, part, {}, "made", channels=3, size=(12, 12))


def tiny(data):
    return make_model(ClassifyImagesJob(recipe(), data).config).eval()


def test_what_was_looked_at(run, tmp_path, capsys):
    model = heedful.load(run[0])
    Image.new("RGB", (30, 20), "red").save(tmp_path / "a.png")
    looked = look_at_picture(model, tmp_path / "a.png", layers="*.0.*")
    assert looked.labels == model.classify([tmp_path / "a.png"])[0]
    (heads,) = looked.maps.layers.values()
    grid = model.model.config.patches.grid
    assert heads.shape == (2, *grid)
    assert looked.maps.together.shape == grid
    pixels = model.spec.preparation([read_image(tmp_path / "a.png")])
    with torch.no_grad(), record(model.model) as recording:
        model.model(pixels)
    weights = recording.weights(recording.names[0])[0]
    torch.testing.assert_close(heads.flatten(1), weights[:, 0, 1:])
    for name in ("x.png", "x.html", "x.svg"):
        words = ["look", run[0], tmp_path / "a.png", "--out", tmp_path / name, "--head", 1, "--json"]
        (line,) = printed(capsys, *words)
        assert json.loads(line)["label"] == looked.labels[0][0]
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(InputError, match="2 heads, no head 2"):
        draw_picture(looked, "png", head=2)


def test_laws_hold_on_a_run(run):
    laws = list(check(run[0]))
    assert all(law.holds for law in laws), laws
    assert {"a batch = one by one", "fused attention = explicit", "save then load"} <= {law.name for law in laws}


def test_going_on_is_as_if_nothing_had_happened(tmp_path):
    """Cut off after five of six steps; then gone on with from the fourth."""
    plan = recipe(**{"train.steps": 6, "train.save_every": 2, "images.augment": "strong"})
    goes_on_alike(plan, corpus(), tmp_path, after=5)
    other = corpus()
    other.train.images[69, 0, 0, 0] ^= 1
    with pytest.raises(InputError, match="the training data is not the data"):
        finished(train(override(plan, ["train.steps=7"]), tmp_path / "cut", corpus=other))


def test_shares_of_a_batch_add_up_to_it():
    job = ClassifyImagesJob(recipe(**{"images.augment": "strong"}), corpus())
    model = make_model(job.config)
    task = job.task(model)
    batch = task.batches(3, None)[1]
    assert len(batch.pictures) == 16
    whole = task.loss(model, batch)
    parts = [task.loss(model, rows_of(batch, rank, 3)) for rank in range(3)]
    assert sum(part.count for part in parts) == whole.count == 16
    assert float(sum(part.total.detach() for part in parts)) == pytest.approx(float(whole.total.detach()), rel=1e-5)


def test_a_mixture_counts_for_both_labels():
    data = corpus(2)
    about = ImageLabelSpec(labels=("a", "b"), preparation=Preparation(resize=(12, 12)))
    task = ClassifyImagesTask(data.train, about, Augment(), recipe(**{"images.mixup": 1.0}))
    model = tiny(few_labels())
    seen = []
    model.register_forward_hook(lambda module, inputs, output: seen.append((inputs[0], output)))
    total = task.loss(model, MixedBatch(0, [0, 1], [1, 0])).total
    (pixels, logits), one, other = seen[0], task.pixels([0], 0), task.pixels([1], 0)
    shares = ((pixels - other) / (one - other)).nanmedian(dim=3).values.flatten(1).median(1).values
    first, second = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    wanted = shares[:, None] * first + (1 - shares[:, None]) * second
    expected = -(wanted * logits.log_softmax(1)[:, :2]).sum()
    assert float(total.detach()) == pytest.approx(float(expected.detach()), rel=1e-3)
    assert 0 < float(shares[0]) < 1


def test_a_picture_and_its_mirror_image_have_one_answer(tmp_path):
    data = corpus()
    done = finished(train(recipe(**{"images.mirrored": True}), tmp_path / "run", corpus=data))
    model, test = heedful.load(tmp_path / "run"), data.tests["test"]
    assert model.spec.mirrored
    assert model.measure(test) == pytest.approx(done.scores["test"], abs=1e-5)
    mirrored = Part(test.images.flip(-1), test.labels)
    torch.testing.assert_close(model._logits(mirrored), model._logits(test))
    single = ImageClassifier(model.model, {**model.about, "mirrored": False})
    both = single._logits(test).softmax(1) + single._logits(mirrored).softmax(1)
    torch.testing.assert_close(model._logits(test).exp(), both / 2)


def test_the_model_fits_the_pictures():
    for edge, patch in ((28, 4), (32, 4), (64, 8), (300, 8), (20, 2)):
        config = ClassifyImagesJob(recipe(), corpus(7, 1, edge)).config
        assert (config.patches.patch, config.patches.channels) == (patch, 1)
        assert config.patches.size == (min(edge, 64),) * 2
    own = recipe(**{"images.size": 24, "model.patch": 3})
    assert ClassifyImagesJob(own, corpus()).config.patches.grid == (8, 8)
    published = recipe(preset="vit-b16", model={})
    assert ClassifyImagesJob(published, corpus()).config.patches.grid == (14, 14)
    assert heedful.recipe("classify-images").preset == "vit-nano28"


def test_it_begins_with_another_model(run, tmp_path):
    out, _ = run
    plan = build({"task": "classify-images", "start_from": str(out), "images": {"size": 24}}, where="test")
    job = ClassifyImagesJob(plan, few_labels())
    model, before = make_model(job.config), heedful.load(out).model
    fresh = model.head.weight.clone()
    job.begin(model)
    own = dict(model.named_parameters())
    for name, tensor in before.named_parameters():
        if name == "position_embeddings.table.weight":
            between = interpolated_positions(tensor, before.position_embeddings.grid, (12, 12), first=1)
            assert torch.equal(own[name], between)
            assert len(between) == 145
        elif not name.startswith("head"):
            assert torch.equal(own[name], tensor), name
    assert torch.equal(model.head.weight, fresh)
    assert len(model.head.weight) == 3
    same = ClassifyImagesJob(plan, corpus())
    same.begin(model := make_model(same.config))
    assert torch.equal(model.head.weight, before.head.weight)
    plan = override(plan, ["train.steps=1", "train.precision=fp32"])
    finished(train(plan, tmp_path / "run", corpus=few_labels()))
    (out / "config.json").rename(out / "hidden.json")  # once begun, a run holds all that it needs
    assert finished(train(override(plan, ["train.steps=2"]), tmp_path / "run", corpus=few_labels())).steps == 2
    (out / "hidden.json").rename(out / "config.json")
    with pytest.raises(InputError, match=r"model\.d_model cannot be chosen"):
        ClassifyImagesJob(override(plan, ["model={d_model: 8}"]), corpus())


def test_by_hand_on_the_command_line(tmp_path, capsys):
    """Black or white, from a folder of files."""
    for number in range(24):
        label = ["black", "white"][number % 2]
        (tmp_path / "data" / label).mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 200 * (number % 2) + number).save(tmp_path / "data" / label / f"{number}.png")
    small = [f"--set=model.{key}={value}" for key, value in SMALL.items()]
    words = ["--data", tmp_path / "data", "--out", tmp_path / "run", *small, "--set", "train.steps=30", "--json"]
    (line,) = printed(capsys, "train", "classify-images", *words)
    assert json.loads(line)["scores"]["valid"]["accuracy"] == 1
    files = [str(tmp_path / "data" / "black" / "0.png"), str(tmp_path / "data" / "white" / "1.png")]
    found = [json.loads(line) for line in printed(capsys, "classify", tmp_path / "run", *files, "--json")]
    assert [row["input"] for row in found] == files
    assert [row["labels"][0]["label"] for row in found] == ["black", "white"]
    assert [one["label"] for one in found[0]["labels"]] == ["black", "white"]
    assert printed(capsys, "classify", tmp_path / "run", files[0])[0].startswith("black\t0.")
    assert heed("classify", tmp_path / "run", files[0], "--choice", "a", "--choice", "b") == 2
    assert "--choice is not used by a model of pictures" in capsys.readouterr().err
    assert heed("classify", tmp_path / "run", files[0], "--weights", "int8") == 2
    assert "--weights is not used by a model of pictures" in capsys.readouterr().err
    (line,) = printed(capsys, "eval", tmp_path / "run", "--data", tmp_path / "data", "--json")
    assert json.loads(line)["accuracy"] == 1
    (line,) = printed(capsys, "info", tmp_path / "run", "--json")
    assert json.loads(line)["answers"] == "black, white"
    assert json.loads(line)["pictures"] == "8 x 8 pixels, 1 channel"


def test_what_is_wrong_is_said_before_the_first_step(tmp_path):
    for number in range(8):
        (tmp_path / "ab"[number % 2]).mkdir(exist_ok=True)
        Image.new("L", (8, 8), number).save(tmp_path / "ab"[number % 2] / f"{number}.png")
    whole = (tmp_path / "a" / "2.png").read_bytes()
    (tmp_path / "a" / "2.png").write_bytes(whole[:-30])
    with pytest.raises(InputError, match=r"a/2\.png: a damaged picture"):
        next(train(recipe(**{"data.path": str(tmp_path)}), tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    (tmp_path / "a" / "2.png").write_bytes(whole)
    read = read_labelled_images(tmp_path)
    strange = LabelledImages(
        read.train, Part(read.valid.images, ["z"] * len(read.valid)), {}, "made", channels=1, size=(8, 8)
    )
    with pytest.raises(InputError, match="the label 'z' was not among those"):
        ClassifyImagesJob(recipe(), strange)


def test_of_very_many_labels_a_few_are_told() -> None:
    with pytest.raises(InputError, match="the label 'z' was not among those") as told:
        targets_of(["z"], [str(number) for number in range(1000)])
    assert told.value.fix == "it learnt 1,000 labels, such as '0', '1', '2', '3', '4', '5', '6', '7'"
