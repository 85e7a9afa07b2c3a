"""torch's optimizers without torch's compiler: they would import it in case they are compiled, which takes as long as
importing torch. For steps that are neither compiled nor `differentiable`."""

from inspect import unwrap
from typing import Any

import torch

add_param_group: Any = unwrap(torch.optim.Optimizer.add_param_group)


def _plain(step: Any) -> Any:
    return torch.no_grad()(unwrap(step))


class Adam(torch.optim.Adam):
    add_param_group = add_param_group
    step = _plain(torch.optim.Adam.step)


class AdamW(torch.optim.AdamW):
    add_param_group = add_param_group
    step = _plain(torch.optim.AdamW.step)


class LBFGS(torch.optim.LBFGS):
    add_param_group = add_param_group
    step = _plain(torch.optim.LBFGS.step)
