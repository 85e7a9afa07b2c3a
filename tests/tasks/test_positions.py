"""How attention is told positions, and how far it looks, are for a recipe to say: a model of each kind learns, and is
the same when it is loaded; what cannot be is refused in one line that says what to do."""

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from PIL import Image

import heedful
from heedful.data.images.files import read_image
from heedful.data.images.labelled import LabelledImages, Part
from heedful.data.text.documents import Documents
from heedful.errors import InputError
from heedful.exchange.ct2 import refuse
from heedful.look.record import record
from heedful.models.positions import EMBEDDED, Positions
from heedful.models.presets import LMSize, lm_config
from heedful.run.events import Finished, Measured, Trained
from heedful.run.recipe import override
from heedful.tasks.classify_images.look import draw_picture, look_at_picture
from heedful.tasks.recipes import build
from heedful.verbs.check import check
from heedful.verbs.info import describe
from heedful.verbs.train import train
from made import made_corpus

PAIRS = made_corpus(80)
TEXTS = [f"{source} > {target}\n" for source, target in zip(PAIRS.train.source, PAIRS.train.target, strict=True)]
DOCUMENTS = Documents(TEXTS[:70], TEXTS[70:], {"test": TEXTS[:8]}, "made", (), ())
SMALL = {"d_model": 16, "n_heads": 2}
TRAIN = {"steps": 12, "eval_every": 12, "precision": "fp32", "lr": 0.01, "warmup": 1}
BASES: dict[str, dict[str, Any]] = {
    "generate": {
        "preset": "gpt-nano",
        "model": SMALL | {"n_layers": 2, "context_length": 24},
        "data": {"tokenizer": "chars"},
        "train": TRAIN | {"tokens": 240},
    },
    "translate": {
        "preset": "transformer-tiny",
        "model": SMALL | {"d_ff": 32, "encoder_layers": 2, "decoder_layers": 2},
        "data": {"vocab_size": 300},
        "train": TRAIN | {"tokens": 512, "row": 32, "eval_sentences": 60},
    },
    "fill": {
        "preset": "encoder-tiny",
        "model": SMALL | {"n_layers": 2, "context_length": 48},
        "data": {"vocab_size": 300},
        "train": TRAIN | {"tokens": 240},
    },
    "classify-images": {
        "preset": "vit-nano28",
        "model": SMALL | {"n_layers": 2, "patch": 3},
        "images": {"batch": 16, "augment": "none"},
        "train": TRAIN,
    },
}
WINDOW = 4
# Every scheme for the two that write, with a window or without one.
CASES: list[tuple[str, dict[str, Any]]] = [
    *(("generate", {"position": position}) for position in ("sinusoidal", "binary", "alibi", "shaw")),
    *(("generate", {"position": position, "window": WINDOW}) for position in ("learned", "rotary", "buckets")),
    *(("translate", {"position": position}) for position in ("learned", "binary", "rotary", "buckets")),
    *(("translate", {"position": position, "window": WINDOW}) for position in ("sinusoidal", "alibi", "shaw")),
    ("translate", {"position": "none"}),
    *(("fill", {"position": position, "window": WINDOW}) for position in ("learned", "buckets")),
    ("fill", {"position": "shaw"}),
    ("classify-images", {"readout": "mean", "window": 2}),
    ("classify-images", {"readout": "mean", "window": 2, "position_embeddings": "sinusoidal"}),
]
CHECKED = ({"generate", "rotary"}, {"translate", "shaw"}, {"fill", "buckets"}, {"classify-images"})


def pictures() -> LabelledImages:
    """Of two classes, of which one is brighter on the left."""
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(0, 128, (48, 1, 12, 12), generator=draw, dtype=torch.uint8)
    images[::2, :, :, :6] += 120
    part = Part(images, ["left", "right"] * 24)
    few = Part(images[:8], part.labels[:8])
    return LabelledImages(part, few, {"test": few}, "made", channels=1, size=(12, 12))


def corpus_of(task: str) -> Any:
    match task:
        case "translate":
            return PAIRS
        case "classify-images":
            return pictures()
        case _:
            return DOCUMENTS


def recipe(task: str, **model: Any) -> Any:
    base = build({"task": task, **BASES[task]}, where="test")
    return override(base, [f"model.{key}={json.dumps(value)}" for key, value in model.items()])


def loss_of(served: Any, task: str) -> float:
    """Of what it is measured with while it trains."""
    match task:
        case "translate":
            return served.loss(PAIRS.valid)
        case "classify-images":
            return served.measure(pictures().valid)["loss"]
        case _:
            more = {"stride": served.context} if task == "generate" else {}
            return served.measure(DOCUMENTS.valid, **more).loss


@pytest.mark.parametrize(("task", "chosen"), CASES, ids=str)
def test_it_learns_and_comes_back(task, chosen, tmp_path):
    out = tmp_path / "run"
    events = list(train(recipe(task, **chosen), out, corpus=corpus_of(task)))
    assert isinstance(events[-1], Finished)
    losses = [event.step.loss for event in events if isinstance(event, Trained)]
    assert max(losses[-3:]) < min(losses[:3])
    config = json.loads((out / "config.json").read_text())["model"]
    position, window = chosen.get("position"), chosen.get("window")
    for stack in (config[name] for name in ("stack", "encoder", "decoder") if name in config):
        blocks = stack["pattern"] or [stack["block"]]
        assert {block["window"] for block in blocks} == {window}
        told = {stack["shared_position"]["kind"], *(block["attention"]["position"]["kind"] for block in blocks)}
        assert told == {"none"} | ({position} - {*EMBEDDED, None})
    embeds = [config[name] for name in ("embed", "source", "target") if name in config]
    assert {embed["position_embeddings"] for embed in embeds} <= {position if position in EMBEDDED else "none"}
    served = heedful.load(out)
    measured = {event.valid_loss for event in events if isinstance(event, Measured) and event.best}
    assert loss_of(served, task) == pytest.approx(measured.pop(), abs=1e-4)
    assert not measured, "measured once, at the end"
    assert describe(str(out))["parameters"] == sum(weight.numel() for weight in set(served.model.parameters()))
    if window is not None and any(case <= {task, position} for case in CHECKED):
        assert [law for law in check(out) if not law.holds] == []


def test_every_scheme_is_tried() -> None:
    for task in ("generate", "translate"):
        tried = {chosen["position"] for own, chosen in CASES if own == task}
        assert tried | {"none"} == set(get_args(Positions))


def test_what_cannot_be_says_what_to_do(tmp_path):
    cases = (
        ("generate", {"position": "shaws"}, "'shaws' is not one of 'none', 'sinusoidal'", None),
        ("generate", {"window": 0}, "a window of 0 keys", "1 or more"),
        ("translate", {"position": "rotary", "d_model": 6}, "in pairs, and a head has 3", "even width"),
        ("classify-images", {"window": 2}, "in none of its windows", 'readout = "mean"'),
        ("classify-images", {"window": 3, "readout": "mean"}, "4 x 4 patches in windows of 3", "that divides both"),
        ("classify-images", {"position": "alibi"}, "unknown key 'position'", "position_embeddings"),
    )
    for i, (task, chosen, says, fix) in enumerate(cases):
        with pytest.raises(InputError, match=says) as error:
            list(train(recipe(task, **chosen), tmp_path / str(i), corpus=corpus_of(task)))
        assert fix is None or fix in (error.value.fix or "")
    rnn = {"task": "translate", "preset": "rnn-small", "model": {"window": 2}}
    with pytest.raises(InputError, match="unknown key 'window'"):
        list(train(build(rnn, where="test"), tmp_path / "run", corpus=PAIRS))


def test_another_engine_is_told_of_no_windows() -> None:
    """It would leave them out."""
    config = lm_config(LMSize(**SMALL, n_layers=2, position="rotary"))
    refuse(config)
    block = config.stack.block
    turns = (block, replace(block, window=WINDOW))
    for stack, lacking in (
        (replace(config.stack, block=turns[1]), "attention in windows"),
        (replace(config.stack, pattern=turns), "attention in windows, nor of blocks that take turns"),
    ):
        with pytest.raises(InputError, match=f"(?m)cannot be told of {lacking}$"):
            refuse(replace(config, stack=stack))


def test_what_patches_in_windows_look_at(tmp_path):
    out, file = tmp_path / "run", tmp_path / "picture.png"
    for _ in train(
        override(recipe("classify-images", readout="mean", window=2), ["train.steps=1"]), out, corpus=pictures()
    ):
        pass
    Image.new("L", (12, 12)).save(file)
    model = heedful.load(out)
    side = model.model.config.patches.grid[0]
    for patch in (0, side + 1):
        maps = look_at_picture(model, file, patch=patch, layers="stack.blocks.0.*").maps
        (heads,) = maps.layers.values()
        first, across = (at // 2 * 2 for at in divmod(patch, side))
        inside = torch.zeros(side, side, dtype=torch.bool)
        inside[first : first + 2, across : across + 2] = True
        assert torch.equal(heads > 0, inside.expand_as(heads))
        torch.testing.assert_close(heads.flatten(1).sum(1), torch.ones(len(heads)))
    whole = look_at_picture(model, file).maps
    torch.testing.assert_close(whole.together.sum(), torch.tensor(1.0))


def test_what_patches_of_later_stages_look_at(tmp_path):
    """A grid of 4 x 4 in windows of 2, then 2 x 2, of twice the width: each of those is a window's four."""
    out, file = tmp_path / "run", tmp_path / "picture.png"
    swin = recipe("classify-images", readout="mean", position_embeddings="none", window=2, depths=[1])
    for _ in train(override(swin, ["train.steps=1"]), out, corpus=pictures()):
        pass
    Image.new("L", (12, 12)).save(file)
    model = heedful.load(out)
    looked = look_at_picture(model, file, patch=6)  # in the second window, of which all is the second merged patch
    first, _, later = looked.maps.layers.values()
    assert (first.shape, later.shape) == ((2, 4, 4), (4, 2, 2))
    torch.testing.assert_close(first[:, :2, 2:].flatten(1).sum(1), torch.ones(2))
    torch.testing.assert_close(later.flatten(1).sum(1), torch.ones(4))
    assert looked.maps.together.shape == (4, 4)
    torch.testing.assert_close(looked.maps.together.sum(), torch.tensor(1.0))
    with torch.no_grad(), record(model.model) as recording:
        model.model(model.spec.preparation([read_image(file, channels=1)]))
    torch.testing.assert_close(later.flatten(1), recording.weights("stages.0.blocks.0.self_attention")[0, :, 1])
    for kind in ("png", "html", "json"):
        assert draw_picture(looked, kind)
