"""Linear maps for inference on a CPU, by faster kernels and with weights in fewer bits. A model knows nothing of it:
its maps are swapped from outside. For one token every weight is read once, so the time of a step goes with their bytes.

B inputs, K input width, N output width, G weights of a group.
"""

from typing import TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.errors import InputError

Model = TypeVar("Model", bound=nn.Module)
WEIGHTS = ("float32", "int8", "int4")
TINY = 1e-12  # keeps what is all zeros from being divided by zero
SMALL = 1 << 17  # products up to which a kernel's start costs more than it saves
GROUP = 32  # weights side by side that share a scale and an offset, in four bits


class Float32Linear(nn.Linear):
    """The same map with the same parameters, where no gradient is wanted by other kernels than torch's own choice.

    Of 768 x 3072 weights that come from memory, that one (MKL) took 590 us for one row and 920 us for eight, on an AMD
    EPYC (Zen 5) with two threads: it multiplies a matrix and a vector with one. As a batch of parts one row took
    170 us, and oneDNN took 430 us for eight. Of a thousand rows MKL makes 190 GFLOP/s there, and oneDNN 430.
    """

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        self.parts = next((parts for parts in range(2, 65) if linear.out_features % parts == 0), None)

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        N, K = self.weight.shape
        rows = x.numel() // K
        if torch.is_grad_enabled() or x.dtype != torch.float32 or not x.is_cpu or rows * N * K < SMALL:
            return F.linear(x, self.weight, self.bias)
        if rows > 1 or self.parts is None:
            return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        column = x.reshape(1, K).t().expand(self.parts, K, 1)  # turned: MKL is fast where its stride is K, not 1
        out = torch.bmm(self.weight.view(self.parts, -1, K), column).view(*x.shape[:-1], N)
        return out if self.bias is None else out.add_(self.bias)


class Int8Linear(nn.Module):
    """A linear map whose weights are integers of 8 bits with a scale for each output, and whose inputs are rounded to
    such with a scale for each input (Dettmers et al. 2022, section 3.1, without the outliers of 3.2).

    Integers add up exactly, so what an input gets does not depend on its neighbours, to the last bit.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        peak = weight.abs().amax(1).clamp(min=TINY)
        bias = torch.zeros_like(peak) if linear.bias is None else linear.bias.detach()
        self.register_buffer("weight", (weight * 127 / peak[:, None]).round().to(torch.int8).t())
        self.register_buffer("scale", peak / 127**2)
        self.register_buffer("bias", bias)
        self.register_buffer("zero", torch.zeros(()))
        self.weight: Tensor
        self.scale: Tensor
        self.bias: Tensor
        self.zero: Tensor

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        rows = x.reshape(-1, x.shape[-1])
        peak = rows.abs().amax(1, keepdim=True).clamp_(min=TINY)
        level = torch.addcdiv(self.zero, rows, peak, value=127).round_().to(torch.int8)
        out = torch.addcmul(self.bias, torch._int_mm(level, self.weight) * self.scale, peak)
        return out.view(*x.shape[:-1], len(self.scale))


class Int4Linear(nn.Module):
    """A linear map whose weights have 4 bits: of 32 side by side, the least is 0 and the greatest 15. Its inputs and
    outputs are rounded to bfloat16. Raises InputError for an input width that is no multiple of 32."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        N, K = linear.weight.shape
        if K % GROUP:
            raise InputError(f"a width of {K} is no multiple of {GROUP}", fix="take int8 weights")
        self.n_outputs = N
        groups = F.pad(linear.weight.detach(), (0, 0, 0, -N % 16)).unflatten(1, (-1, GROUP))  # (N, K / G, G)
        least, most = groups.amin(2), groups.amax(2)
        scale = ((most - least) / 15).clamp(min=TINY).bfloat16()
        middle = (least + 8 * scale).bfloat16()  # the kernel takes the offset of level 8
        level = ((groups - middle[:, :, None]) / scale[:, :, None]).round() + 8
        packed = torch._convert_weight_to_int4pack_for_cpu(level.clamp(0, 15).int().flatten(1), 2)
        self.register_buffer("weight", packed)
        self.register_buffer("scale", torch.stack([scale, middle], dim=2).transpose(0, 1).contiguous())
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())
        self.weight: Tensor
        self.scale: Tensor
        self.bias: Tensor | None

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        rows = x.reshape(-1, x.shape[-1]).bfloat16()
        out = torch._weight_int4pack_mm_for_cpu(rows, self.weight, GROUP, self.scale)[:, : self.n_outputs].float()
        return (out if self.bias is None else out.add_(self.bias)).view(*x.shape[:-1], self.n_outputs)


def for_inference(model: Model, weights: str = "float32") -> Model:
    """The model with its linear maps swapped: float32 keeps the parameters, int8 and int4 replace those of the maps
    (not the embeddings), so that the model can no longer be trained or saved.

    Away from a CPU float32 changes nothing. Raises InputError for other words, and for int8 and int4 there.
    """
    if weights not in WEIGHTS:
        raise InputError(f"no weights {weights!r}", fix=f"choose {', '.join(WEIGHTS)}")
    if any(parameter.device.type != "cpu" for parameter in model.parameters()):
        if weights != "float32":
            raise InputError(f"{weights} weights are for a CPU", fix="take float32")
        return model
    kind = {"float32": Float32Linear, "int8": Int8Linear, "int4": Int4Linear}[weights]
    if kind is Float32Linear and not torch.backends.mkldnn.is_available():
        return model
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear) and not isinstance(child, kind):
                setattr(module, name, kind(child))
    return model
