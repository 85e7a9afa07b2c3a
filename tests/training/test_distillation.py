"""What a student learns of its teacher's logits and hidden states, against the formulas written out."""

import math

import pytest
import torch
from torch import nn

from heedful.training import distillation
from heedful.training.distillation import Outputs, cosine_distance, divergence, yes_or_no

N, V = 7, 5


def two(width: int = 6) -> tuple[Outputs, Outputs]:
    torch.manual_seed(0)
    student, teacher = torch.randn(N, 4, requires_grad=True), torch.randn(N, width)
    return Outputs(student, nn.Linear(4, V)), Outputs(teacher, nn.Linear(width, V))


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("rows", [2, 1024])
def test_its_gradient_is_that_of_hinton(temperature: float, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a logit T (q - p), where q and p are the softened probabilities (Hinton et al. 2015, equation 2, times T²)."""
    monkeypatch.setattr(distillation, "ROWS", rows)
    student, teacher = two()
    found = temperature**2 * divergence(student.softened(temperature), teacher.softened(temperature))
    with torch.no_grad():
        q, p = ((own.head(own.hidden) / temperature).softmax(1) for own in (student, teacher))
        value = temperature**2 * sum(
            p[n, v].item() * math.log(p[n, v].item() / q[n, v].item()) for n in range(N) for v in range(V)
        )
        by_logit = temperature * (q - p)
    assert found.item() == pytest.approx(value, rel=1e-5)
    (grad,) = torch.autograd.grad(found, student.hidden)
    torch.testing.assert_close(grad, by_logit @ student.head.weight.detach(), atol=1e-5, rtol=1e-5)


def test_nothing_is_learnt_of_an_equal_or_by_the_teacher() -> None:
    student, _ = two()
    same = Outputs(student.hidden.detach().clone(), student.head)
    assert divergence(student, same).item() == pytest.approx(0, abs=1e-6)
    assert cosine_distance(student.hidden, 3 * same.hidden).item() == pytest.approx(0, abs=1e-5)
    student, teacher = two()
    divergence(student, teacher).backward()
    assert teacher.head.weight.grad is None
    assert student.head.weight.grad is not None


def test_the_distance_of_what_heads_read_is_one_less_the_cosine() -> None:
    x, y = torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    assert cosine_distance(x, y).item() == pytest.approx(1 + 1 - math.sqrt(0.5))


def test_a_label_of_several_is_a_choice_of_yes_and_no() -> None:
    logits = torch.randn(3, 4)
    torch.testing.assert_close(yes_or_no(logits).softmax(-1)[..., 0], logits.sigmoid())
