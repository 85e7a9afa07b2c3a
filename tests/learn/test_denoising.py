"""A denoiser learns how its text goes on, and a translator that starts from it is ahead of one that starts from
nothing."""

import random

import heedful
from heedful.data.text.corpus import Corpus
from heedful.data.text.documents import Documents
from heedful.data.text.pairs import Pairs
from heedful.run.events import Measured
from heedful.run.recipe import override
from heedful.tasks.denoise.noise import make_noise, read_passages
from heedful.tasks.recipes import build
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.verbs.train import train
from made import SYLLABLES, finished

MODEL = {"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
TRAIN = {"optimizer": "muon", "lr": 4e-3, "warmup": 30, "average": 0.9, "tokens": 512, "precision": "fp32"}


def circles(count: int, seed: int) -> list[list[str]]:
    """The syllables in their order, again and again, from anywhere on: what is hidden follows from what is not."""
    draw = random.Random(seed)
    return [
        [SYLLABLES[(begin + i) % len(SYLLABLES)] for i in range(length)]
        for begin, length in ((draw.randrange(10), draw.randint(6, 18)) for _ in range(count))
    ]


def going_on(count: int, seed: int) -> Pairs:
    """A circle's beginning, and its next three syllables."""
    found = circles(count, seed)
    return Pairs([" ".join(own[:-3]) for own in found], [" ".join(own[-3:]) for own in found], "circles")


def test_it_learns_and_is_a_start(tmp_path):
    texts = [" ".join(own) for own in circles(3000, 1)]
    corpus = Documents(texts[100:], texts[:100], {}, "circles", (), ())
    data = {"vocab_size": 300, "longest": 40, "objective": "spans"}
    recipe = build(
        {"task": "denoise", "preset": "transformer-tiny", "model": MODEL, "data": data, "train": TRAIN}, where="test"
    )
    finished(train(override(recipe, ["train.steps=250", "train.eval_every=250"]), tmp_path / "start", corpus=corpus))
    model = heedful.load(tmp_path / "start")
    passages = read_passages([" ".join(own) for own in circles(200, 2)], model.source, 39)
    noise = make_noise("spans", model.source, TranslatorSpec())
    pairs = [noise.pair(passage, "test", i) for i, passage in enumerate(passages)]
    found = model.hypotheses([source for source, _ in pairs], model.decoding(beam=1))
    right = sum(list(best[0].tokens) == target for (_, target), best in zip(pairs, found, strict=True))
    assert right >= 0.9 * len(pairs)

    losses = {}
    tests = Corpus(going_on(1000, 3), going_on(100, 4), {"test": going_on(10, 5)}, "made", source="begin", target="end")
    plan = build({"preset": "transformer-tiny", "data": {"vocab_size": 300}, "train": TRAIN}, where="test")
    plan = override(plan, ["train.steps=20", "train.eval_every=20", "train.warmup=5"])
    for name, settings in (
        ("tuned", [f"start_from={tmp_path / 'start'}"]),
        ("scratch", [f"model.{key}={value}" for key, value in MODEL.items()]),
    ):
        events = train(override(plan, settings), tmp_path / name, corpus=tests)
        losses[name] = [event.valid_loss for event in events if isinstance(event, Measured)][-1]
    assert losses["tuned"] < 0.5 * losses["scratch"]
