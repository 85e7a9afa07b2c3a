"""What a model is not asked for from Python: fewer answers than one, and scores on nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import heedful
from cases import CASES, PIXELS
from heedful.data.images.files import to_image
from heedful.errors import InputError
from heedful.tasks.shared.picture_job import some_pictures

Runs = Callable[[str], Path]


@pytest.mark.parametrize("top", [0, -1])
def test_the_best_answers_are_one_or_more(run_of: Runs, tmp_path: Path, top: int) -> None:
    to_image(PIXELS[0]).save(tmp_path / "0.png")
    for name, ask in {
        "answer": lambda model: model.answer("ba?", "ba is de.", top=top),
        "fill": lambda model: model.fill("ba <mask>", top=top),
        "vectors": lambda model: model.near("ba", top=top),
        "match": lambda model: model.search("a", [str(tmp_path / "0.png")], top=top),
    }.items():
        with pytest.raises(InputError, match=r"the best -?[01] answers"):
            ask(heedful.load(run_of(name)))
    with pytest.raises(InputError, match=r"the best -?[01] answers"):
        heedful.load(run_of("vectors")).analogy("ba", "de", "gi", top=top)


@pytest.mark.parametrize("name", ["label", "labels", "score", "choice", "tag", "answer", "parse", "reward"])
def test_nothing_has_no_scores(run_of: Runs, name: str) -> None:
    with pytest.raises(InputError, match="nothing to be scored on"):
        heedful.load(run_of(name)).measure([])


@pytest.mark.parametrize("name", ["classify-images", "detect", "segment", "match", "describe", "questions"])
def test_no_pictures_have_no_scores(run_of: Runs, name: str) -> None:
    none = some_pictures(CASES[name].corpus.valid, [])
    with pytest.raises(InputError, match="nothing to be scored on"):
        heedful.load(run_of(name)).measure(none)
    with pytest.raises(InputError, match="nothing to be scored on"):
        heedful.load(run_of("paint")).measure(none.images)


def test_no_pairs_and_no_tokens_have_no_loss(run_of: Runs) -> None:
    with pytest.raises(InputError, match="nothing to be scored on"):
        heedful.load(run_of("transformer")).loss(CASES["transformer"].corpus.valid.rows([]))
    empty = heedful.load(run_of("gpt")).likelihood("")
    assert (empty.nats, empty.bits_per_byte) == (0, 0)
    for name in ("loss", "perplexity"):
        with pytest.raises(InputError, match="a text without a token has no loss"):
            getattr(empty, name)
    with pytest.raises(InputError, match="a text of -1 tokens"):
        list(heedful.load(run_of("gpt")).stream("ba", tokens=-1))


def test_of_no_texts_there_are_no_answers_and_no_vectors(run_of: Runs) -> None:
    assert heedful.load(run_of("answer")).answer([], []) == []
    assert torch.equal(heedful.load(run_of("vectors")).embed([]), torch.zeros(0, 8))
