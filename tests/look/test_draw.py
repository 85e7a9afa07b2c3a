"""Figures show what they are given: labels, values, what is not allowed; and equal figures give equal bytes."""

from collections.abc import Callable
from xml.etree import ElementTree

import numpy
import pytest
import torch
from matplotlib.figure import Figure

from heedful.errors import InputError
from heedful.look.draw import curves, heatmap, overview, score_by_length, to_bytes

HOSTILE = ["$x_1$", "{$", "مرحبا", "猫", "👩\u200d👧", "</text>&<b>", "\n", "\ud800", "%d", "x" * 10_000]
ROWS = [{"step": step, "train_loss": 5 / step} for step in range(1, 60)]
ROWS += [{"step": step, "valid_loss": 6 / step, "bleu": float(step)} for step in (20, 40)]


def example() -> Figure:
    return heatmap(torch.eye(3), list("abc"), list("xyz"), title="layer 0, head 1")


FIGURES: list[Callable[[], Figure]] = [
    example,
    lambda: heatmap(torch.eye(10), HOSTILE, HOSTILE, title="$", mask=torch.ones(10, 10).tril().bool()),
    lambda: overview({"$a": torch.eye(3)[None], "b": torch.rand(2, 3, 3)}, HOSTILE[:3], list("xyz"), same=True),
    lambda: curves(ROWS, title="$run$"),
    lambda: score_by_length({"$a$": [1.0, 2.0], "b": [2.0, 1.0]}, ["1-10", "11-20"], [5, 7]),
]


def written(figure: Figure) -> list[str]:
    """All words of a figure, as its svg holds them."""
    tree = ElementTree.fromstring(to_bytes(figure, "svg"))
    return ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("make", FIGURES)
def test_equal_figures_give_equal_bytes(make: Callable[[], Figure]) -> None:
    for kind, begin in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        torch.manual_seed(0)
        first = to_bytes(make(), kind)
        torch.manual_seed(0)
        assert to_bytes(make(), kind) == first
        assert first.startswith(begin)
        assert b"Matplotlib" not in first


def test_a_heatmap_names_its_tokens_and_holds_its_weights() -> None:
    weights = torch.rand(2, 3)
    figure = heatmap(weights, ["ein", "Hund"], ["a", "big", "dog"], title="layer 0, head 1")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ein", "Hund"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "big", "dog"]
    assert axes.get_title(loc="left") == "layer 0, head 1"
    image = axes.get_images()[0]
    numpy.testing.assert_array_equal(image.get_array(), weights.numpy())
    assert image.get_clim() == (0, 1)
    assert {"ein", "Hund", "a", "big", "dog", "layer 0, head 1", "attention weight"} <= set(written(figure))


def test_what_is_not_allowed_is_hatched_and_not_zero() -> None:
    mask = torch.ones(3, 3).tril().bool()
    figure = heatmap(torch.eye(3), list("abc"), list("abc"), title="causal", mask=mask)
    array = figure.axes[0].get_images()[0].get_array()
    numpy.testing.assert_array_equal(numpy.ma.getmaskarray(array), ~mask.numpy())
    assert figure.axes[0].patch.get_hatch()
    assert "not allowed" in written(figure)
    assert "not allowed" not in written(example())


def test_dollars_are_dollars() -> None:
    words = written(heatmap(torch.eye(2), ["$x_1$", "b"], ["$", "\\alpha"], title="$\\frac$"))
    assert {"$x_1$", "$", "\\alpha", "$\\frac$"} <= set(words)


def test_an_overview_has_every_head_with_its_label() -> None:
    previous = torch.cat([torch.eye(8)[:1], torch.eye(8)[:-1]])
    layers = {"one": torch.stack([previous, torch.eye(8)]), "two": torch.eye(8)[None]}
    words = written(overview(layers, list("abcdefgh"), list("abcdefgh"), same=True))
    assert {"one", "two", "head 0", "head 1", "previous 1.00", "self 1.00"} <= set(words)
    assert sum(word.startswith("self") for word in words) == 2


def test_curves_leave_out_what_was_not_measured() -> None:
    figure = curves(ROWS)
    losses, scores = figure.axes
    assert [len(line.get_xdata()) for line in losses.get_lines()] == [59, 2]
    assert list(scores.get_lines()[0].get_ydata()) == [20, 40]
    assert len(curves(ROWS[:59]).axes) == 1
    with pytest.raises(InputError, match="accuracy"):
        curves(ROWS, losses=(), scores=("accuracy",))


def test_scores_by_length_tell_how_many_sentences() -> None:
    words = written(score_by_length({"a": [30.0, 20.0]}, ["1-10", "11-20"], [123, 45], measure="chrF"))
    assert {"1-10", "11-20", "123", "45", "chrF"} <= set(words)
    with pytest.raises(InputError, match="a: 1 values for 2 bins"):
        score_by_length({"a": [30.0]}, ["1-10", "11-20"], [123, 45])


def test_tokens_must_fit_the_weights() -> None:
    with pytest.raises(InputError, match=r"\(3, 3\) for 3 rows and 2 columns"):
        heatmap(torch.eye(3), list("abc"), list("ab"), title="")
    with pytest.raises(InputError, match="2 rows and 3 columns"):
        overview({"a": torch.eye(3)[None]}, list("ab"), list("abc"), same=True)
    with pytest.raises(InputError, match="no layers"):
        overview({}, [], [], same=True)
