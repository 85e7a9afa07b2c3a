"""Pairs that are other ones in each epoch: each switch does what it says, whatever was drawn before."""

import pytest
import torch
from torch import Tensor

from heedful.data.batches import PairBatch
from heedful.data.text.corpus import Corpus
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run.recipe import override
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.training.epochs import TranslationTask
from made import TRANSFORMER, backwards, made_recipe


def made_job(corpus: Corpus, *settings: str) -> TranslateJob:
    recipe = override(made_recipe(TRANSFORMER), settings)
    return TranslateJob(recipe, corpus)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def small() -> Corpus:
    """With something for each kind of noise to take away."""
    pairs = backwards(40, 1)
    source = [f"{text.capitalize()} moguda, ne." for text in pairs.source]
    part = type(pairs)(source, pairs.target, "made")
    return Corpus(part, backwards(4, 2), {"test": backwards(4, 3)}, "made", source="low", target="high")


def texts_of(job: TranslateJob, epoch: int) -> list[tuple[str, str]]:
    """The pairs of an epoch as the model gets them, read back."""
    batches = task_of(job).batches(epoch, None)
    sources = [ids for batch in batches for ids in parts(batch.source, batch.source_segments)]
    targets = [ids for batch in batches for ids in parts(batch.target_out, batch.target_segments)]
    return [*zip(job.source.decode_batch(sources), job.target.decode_batch(targets), strict=True)]


def parts(rows: Tensor, segments: Tensor) -> list[list[int]]:
    """The tokens of each sentence of each row."""
    return [
        row[own == k].tolist() for row, own in zip(rows, segments, strict=True) for k in range(1, int(own.max()) + 1)
    ]


def task_of(job: TranslateJob) -> TranslationTask:
    return job.task(make_model(job.config))


SWITCHES = {
    "noise.capitals=1": lambda source, target: source.isupper(),
    "noise.lower=1": lambda source, target: source.islower(),
    "noise.typos=1": lambda source, target: source.split()[0].istitle(),
    "noise.punctuation=1": lambda source, target: not {*",."} & {*source},
    "noise.urls=1": lambda source, target: "https://" in source and source.split()[-1] == target.split()[-1],
}


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_does_what_it_says_to_sources(small: Corpus, switch: str) -> None:
    plain = {*zip(small.train.source, small.train.target, strict=True)}
    job = made_job(small, switch, "train.row=96")
    made = texts_of(job, 0)
    assert len(made) == 40
    assert all(SWITCHES[switch](*pair) for pair in made)
    assert not {source for source, _ in made} & {source for source, _ in plain}
    if switch != "noise.urls=1":
        assert {target for _, target in made} == {target for _, target in plain}
    half = texts_of(made_job(small, switch.replace("=1", "=0.5"), "train.row=96"), 0)
    assert 8 < len({*half} - plain) < 32


@pytest.mark.parametrize("joint", ["true", "false"])
def test_the_vocabulary_has_pieces_of_words_in_capitals_where_sources_have_them(small: Corpus, joint: str) -> None:
    """Otherwise each letter of such a word is a token."""
    own = f"data.joint={joint}", "data.vocab_size=400"
    text = [line.upper() for line in small.train.source]
    plain, loud = (made_job(small, *own, *more).source.encode(text) for more in ((), ("noise.capitals=0.2",)))
    assert sum(map(len, loud)) < 0.8 * sum(map(len, plain))


@pytest.mark.parametrize(("side", "sides"), [("both", {0, 1}), ("source", {0}), ("target", {1})])
def test_merges_are_left_out_on_the_sides_that_are_named(small: Corpus, side: str, sides: set[int]) -> None:
    job = made_job(small, "data.bpe_dropout=0.3", f"data.bpe_dropout_side={side}")
    plain = made_job(small)
    assert sorted(texts_of(job, 0)) == sorted(texts_of(plain, 0))
    counts = [
        [sum(getattr(batch, name) for batch in task_of(one).batches(0, None)) for one in (plain, job)]
        for name in ("source_tokens", "target_tokens")
    ]
    assert {side for side, (few, many) in enumerate(counts) if many > few} == sides


def test_an_epoch_can_be_entered_anew(small: Corpus) -> None:
    settings = ("noise.typos=0.5", "noise.urls=0.2", "data.bpe_dropout=0.1")
    task = task_of(made_job(small, *settings))
    first, second = task.batches(0, None), task.batches(1, None)
    again = task_of(made_job(small, *settings)).batches(1, None)
    assert same(second, again)
    assert not same(first, second)
    assert not same(task_of(made_job(small, *settings, "train.seed=2")).batches(1, None), again)


def same(one: list[PairBatch], other: list[PairBatch]) -> bool:
    return len(one) == len(other) and all(
        torch.equal(a, b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right, strict=True)
    )


def test_what_would_not_fit_stays_as_it_is(small: Corpus) -> None:
    (batch,) = task_of(made_job(small, "noise.urls=1", "train.row=96", "train.tokens=4096")).batches(0, None)
    most = 1 + sorted(len(ids) for ids in parts(batch.source, batch.source_segments))[20]
    for limit in (f"train.row={most}", f"data.longest={most}"):
        job = made_job(small, "noise.urls=1", "train.row=96", "train.tokens=4096", limit)
        made = texts_of(job, 0)
        assert 0 < sum("https" in source for source, _ in made) < 40
        assert {source.partition(" https")[0] for source, _ in made} == {*small.train.source}


def test_bpe_dropout_needs_bpe(small: Corpus) -> None:
    with pytest.raises(InputError, match="only a BPE vocabulary"):
        made_job(small, "data.bpe_dropout=0.1", "data.tokenizer=unigram", "data.vocab_size=400")
