"""Small examples of attention that can be followed with a pencil, from lectures and tutorials. Where what is often
printed is wrong, the right value stands here, and a comment says what is printed."""

import pytest
import torch
from torch import Tensor

from heedful.core.attention import attend, attention_weights
from heedful.core.mask import EVERYONE, Mask

ROOT = 2**-0.5  # exact, where many print 0.7
KEYS = torch.tensor([[1.0, 2.0], [2.0, 5.0], [0.0, 1.0]])
VALUES = torch.tensor([[5.0, 2.0, 1.0, 4.0], [0.0, 1.0, 0.0, 1.0], [8.0, 4.0, 2.0, 1.0]])
QUERIES = torch.tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [1.0, 2.0]])


def weights_and_output(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float, mask: Mask = EVERYONE
) -> tuple[Tensor, Tensor]:
    """For one head of one sentence, by both functions."""
    q, k, v = q[None, None], k[None, None], v[None, None]
    weights = attention_weights(q, k, mask=mask, scale=scale)
    out = attend(q, k, v, mask=mask, scale=scale)
    torch.testing.assert_close(weights @ v, out)
    return weights[0, 0], out[0, 0]


def near(found: Tensor, expected: list, digits: int = 4) -> None:
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=0.51 * 10**-digits)


def test_five_queries() -> None:
    assert (QUERIES @ KEYS.T).tolist() == [[3, 7, 1], [2, 5, 1], [1, 2, 0], [6, 14, 2], [5, 12, 2]]
    weights, out = weights_and_output(QUERIES, KEYS, VALUES, scale=0.7)
    near(
        weights,
        [
            [0.0565, 0.9295, 0.0139],
            [0.1035, 0.8451, 0.0514],
            [0.2849, 0.5737, 0.1415],
            [0.0037, 0.9961, 0.0002],
            [0.0074, 0.9917, 0.0009],
        ],
    )
    near(
        out,
        [
            [0.3941, 1.0983, 0.0844, 1.1696],  # a published worked example prints 1.01 third; the sum is .0844
            [0.9286, 1.2577, 0.2063, 1.3105],
            [2.5561, 1.7093, 0.5678, 1.8546],
            [0.0202, 1.0044, 0.0041, 1.0111],
            [0.0442, 1.0101, 0.0092, 1.0222],
        ],
    )


def test_five_queries_with_the_exact_scale() -> None:
    _, out = weights_and_output(QUERIES, KEYS, VALUES, scale=ROOT)
    near(
        out,
        [
            [0.3824, 1.0952, 0.0818, 1.1652],
            [0.9094, 1.2521, 0.2019, 1.3050],
            [2.5402, 1.7041, 0.5641, 1.8520],
            [0.0190, 1.0041, 0.0039, 1.0104],
            [0.0419, 1.0096, 0.0087, 1.0211],
        ],
    )


def test_five_queries_that_may_not_see_everything() -> None:
    seen = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]]).bool()
    weights, out = weights_and_output(QUERIES, KEYS, VALUES, scale=0.7, mask=Mask(allowed=seen))
    near(
        weights,
        [
            [1, 0, 0.0],
            [0.1091, 0.8909, 0],
            [0.2849, 0.5737, 0.1415],
            [0, 0.9998, 0.0002],  # often printed as .99 and .01
            [0, 0, 1.0],
        ],
    )
    assert (weights[~seen] == 0).all()
    near(
        out,
        [
            [5, 2, 1, 4.0],
            [0.5455, 1.1091, 0.1091, 1.3273],  # often printed with 1.11 third and 1.31 last
            [2.5561, 1.7093, 0.5678, 1.8546],
            [0.0018, 1.0007, 0.0004, 1.0000],
            [8, 4, 2, 1.0],
        ],
    )


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (0.7, [[0.7509, 0.5017, 0.7509, 1.0], [0.8199, 0.7304, 0.9106, 1.0]]),
        (ROOT, [[0.7517, 0.5035, 0.7517, 1.0], [0.8216, 0.7337, 0.9121, 1.0]]),
    ],
)
def test_an_exercise_with_two_queries(scale: float, expected: list) -> None:
    keys = torch.tensor([[1.0, 2.0], [-1.0, 1.0], [0.0, 1.0]])
    values = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    _, out = weights_and_output(torch.tensor([[0.0, 1.0], [1.0, 1.0]]), keys, values, scale=scale)
    out[:, 3] = out[:, 3].round(decimals=6)
    near(out, expected)


def test_two_words_of_an_illustrated_guide() -> None:
    """Products 112 and 96 between vectors of width 64, divided by 8: 14 and 12, of which the softmax is .88, .12."""
    q = torch.zeros(1, 64)
    q[0, 0] = 1.0
    k = torch.zeros(2, 64)
    k[:, 0] = torch.tensor([112.0, 96.0])
    weights, _ = weights_and_output(q, k, torch.eye(2), scale=64**-0.5)
    near(weights, [[0.8808, 0.1192]])
    same, _ = weights_and_output(torch.ones(1, 1), torch.tensor([[1.0], [-1.0]]), torch.eye(2), scale=1.0)
    torch.testing.assert_close(same, weights, rtol=0, atol=1e-5)  # only the gap of 2 counts


def test_one_query_of_width_three() -> None:
    keys = torch.tensor([[0.9, 0.4, -1.1], [0.2, -1.0, 0.5], [-1.0, 0.0, 1.0]])
    q = torch.tensor([[1.0, 0.5, -1.0]])
    near(q @ keys.T, [[2.2, -0.8, -2.0]])
    weights, out = weights_and_output(q, keys, torch.diag(torch.tensor([1.0, 2.0, 1.0])), scale=3**-0.5)
    near(q @ keys.T * 3**-0.5, [[1.27, -0.46, -1.15]], digits=2)
    near(weights, [[0.79, 0.14, 0.07]], digits=2)
    near(out, [[0.79, 0.28, 0.07]], digits=2)
