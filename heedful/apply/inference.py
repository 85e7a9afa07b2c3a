"""Linear maps for inference on a CPU, with faster kernels and with weights in fewer bits. They are swapped from
outside, and the model does not change. For one token every weight is read once, so the time of a step grows with their
bytes.

B inputs, K input width, N output width, G weights of a group.
"""

import copy
import functools
import math
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int8
from torch import Tensor, nn

from heedful.apply.lora import LowRankLinear
from heedful.core.block import MLP, Block
from heedful.core.dropout import Dropout
from heedful.core.kernels import onednn_knows
from heedful.core.norm import OffsetRMSNorm
from heedful.core.position import Added
from heedful.errors import InputError

Model = TypeVar("Model", bound=nn.Module)
WEIGHTS = ("float32", "int8", "int4")
SMALLEST_PEAK = 1e-12  # keeps what is all zeros from being divided by zero
FEWEST_PRODUCTS = 1 << 21  # products up to which oneDNN's start costs more than it saves
FEWEST_WEIGHTS_PACKED = 1 << 16  # weights from which on they are laid out for oneDNN, once for all
MOST_WEIGHTS_KEPT_TWICE = 1 << 20  # weights up to which they are kept as they are too
MOST_TIED_KEPT = 1 << 22  # weights up to which those of an embedding are, without AVX-512
AVX2 = torch.backends.cpu.get_cpu_capability() == "AVX2"
FEWEST_ROWS_FOR_MKL = 512  # rows from which on MKL is faster than oneDNN where there is no AVX-512
VNNI = torch.cpu._is_vnni_supported()
FOR_TRAINING = "heedful.load(RUN).trainable() gives one that does, and .save(it, OUT) makes a run of it"
by_onednn = torch.ops.mkldnn._linear_pointwise.default  # without a choice between overloads: 2 us
GROUP = 32  # weights side by side that share a scale and an offset, in four bits


class Float32Linear(nn.Linear):
    """The same map with the same parameters, by oneDNN where no gradient is wanted: of a thousand rows it makes 430
    GFLOP/s on an AMD EPYC (Zen 5) with two threads, and torch's own choice (MKL) 190. Without AVX-512 (Zen 3) it makes
    150 and MKL 178; of less than some hundred rows it is the faster one there too."""

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        small = x.numel() * self.out_features < FEWEST_PRODUCTS
        if small or torch.is_grad_enabled() or x.dtype != torch.float32 or not x.is_cpu or _for_mkl(x):
            return F.linear(x, self.weight, self.bias)
        return by_onednn(x, self.weight, self.bias, "none", [], "")


class PackedLinear(Float32Linear):
    """A map in float32 or bfloat16 whose weights lie in memory as oneDNN reads them. Others it lays out at each call.

    Of 768 x 3072 weights that come from memory, four rows in float32 take 240 us so and one takes no less; plain
    weights take 350 us by oneDNN and, but for one row, more by MKL. Of a thousand rows in bfloat16 they take 0.9 of
    the time of plain ones. `weight` is opaque; `weight.to_dense()` are the numbers. It can no longer be trained. Where
    the weights are `tied` to an embedding they stay that one's parameter, and this a copy that is none.

    Small ones in float32 are kept twice, and `weight` is plain: a small model's stay in the cache, from where one row
    takes 17 us of 256 x 1024 by MKL and 27 by oneDNN. Without AVX-512 one row takes 190 us of 256 x 6000 by MKL and
    390 by oneDNN, so that those of an embedding are kept once more there.
    """

    def __init__(self, linear: nn.Linear, *, tied: bool = False) -> None:
        super().__init__(linear)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
        self.twice = (
            not tied and linear.weight.numel() < MOST_WEIGHTS_KEPT_TWICE and linear.weight.dtype == torch.float32
        )
        self.tied_for_one_row: Tensor | None = None
        if self.twice:
            _by_inputs(self)
        elif tied:
            if AVX2 and linear.weight.numel() < MOST_TIED_KEPT and linear.weight.dtype == torch.float32:
                self.tied_for_one_row = linear.weight.detach().t().contiguous().t()
            del self.weight
            self.weight = self.packed
        else:
            self.weight = nn.Parameter(self.packed, requires_grad=False)

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        many, one = _for_mkl(x), x.numel() == self.in_features
        if self.twice and one:
            return self._one_row(x)
        if self.twice and many:
            return F.linear(x, self.weight, self.bias)
        if one and self.tied_for_one_row is not None:
            return F.linear(x, self.tied_for_one_row, self.bias)
        if many or torch.is_grad_enabled() or x.numel() == 0:
            return F.linear(x, self.weight.to_dense(), self.bias)
        return by_onednn(x, self.packed, self.bias, "none", [], "")

    def _one_row(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        """MKL multiplies one row by one thread alone. So each thread gets a part of the weights, which lie side by
        side: of the inputs, whose products are then added up, or of the outputs."""
        by_inputs = not self.weight.is_contiguous()
        rows = self.weight.t() if by_inputs else self.weight
        n = math.gcd(torch.get_num_threads(), len(rows))
        if n == 1:
            return F.linear(x, self.weight, self.bias)
        if by_inputs:
            out = torch.bmm(x.view(n, 1, -1), rows.view(n, -1, self.out_features)).sum(0)
        else:
            out = torch.bmm(x.view(1, 1, -1).expand(n, -1, -1), rows.view(n, -1, self.in_features).mT)
        out = out.view(*x.shape[:-1], self.out_features)
        return out if self.bias is None else out.add_(self.bias)


class QuickRMSNorm(nn.RMSNorm):
    """The same norm by fewer operations where no gradient is wanted: of one token of 576 features it takes 9 us, and
    torch's own 37."""

    def __init__(self, norm: nn.RMSNorm) -> None:
        nn.Module.__init__(self)
        self.normalized_shape, self.eps, self.elementwise_affine = norm.normalized_shape, norm.eps, True
        self.weight, self.offset = norm.weight, isinstance(norm, OffsetRMSNorm)
        self.least = torch.tensor(torch.finfo(torch.float32).eps if norm.eps is None else norm.eps)

    def forward(self, x: Float[Tensor, "*B C"]) -> Float[Tensor, "*B C"]:
        weight = self.weight + 1.0 if self.offset else self.weight
        plain = x.dtype == torch.float32 and self.weight.dtype == torch.float32 and x.is_cpu
        if torch.is_grad_enabled() or not plain:
            return F.rms_norm(x, self.normalized_shape, weight, self.eps)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        root = torch.addcmul(self.least, length, length, value=1 / x.shape[-1]).rsqrt_()
        return (x * weight).mul_(root)


def _for_mkl(x: Tensor) -> bool:
    return AVX2 and x.numel() >= FEWEST_ROWS_FOR_MKL * x.shape[-1]


def _by_inputs(linear: nn.Linear) -> None:
    """Lays the weights of one input side by side: for one row MKL takes 0.7 of the time, and without AVX-512 0.5, but
    twice the time where there are more inputs than outputs."""
    if not AVX2 or linear.in_features <= linear.out_features:
        linear.weight.data = linear.weight.data.t().contiguous().t()


class Int8Linear(nn.Module):
    """A linear map whose weights are integers of 8 bits with a scale for each output, and whose inputs are rounded to
    such with a scale for each input (Dettmers et al. 2022, section 3.1, without the outliers of 3.2).

    Integers add up exactly, so what an input gets does not depend on its neighbours, to the last bit. A CPU that adds
    up four products at once (VNNI) is given weights of 127 steps to a side. Any other adds up two in 16 bits, and so is
    given 63, by FBGEMM: there one row of 768 x 3072 weights takes 90 us, and by the other kernel 880. (Inputs of 63
    steps would cost more: a few of them are often far larger than the others.)
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().to_dense()
        peak = weight.abs().amax(1).clamp_(min=SMALLEST_PEAK)
        self.fbgemm = not VNNI and _fbgemm_is_there()
        steps = 63 if self.fbgemm else 127
        level = (weight * steps / peak[:, None]).round_().to(torch.int8)
        self.register_buffer("scale", peak / steps)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())
        self.register_buffer("zero", torch.zeros(()))
        self.scale: Tensor
        self.bias: Tensor | None
        self.zero: Tensor
        self.weight: Tensor
        if self.fbgemm:
            self.packed = _for_fbgemm(level, self.scale)
            self.register_buffer("weight", level[:0])  # says where the map is, as every other's does
        else:
            self.register_buffer("weight", level.t())
            self.scale /= 127

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        rows = x.reshape(-1, x.shape[-1])
        peak = torch.linalg.vector_norm(rows, torch.inf, 1, keepdim=True).clamp_(min=SMALLEST_PEAK)
        if self.fbgemm:
            sums = _by_fbgemm(torch.div(rows, peak), self.packed)
        else:
            level = torch.addcdiv(self.zero, rows, peak, value=127).round_().to(torch.int8)
            sums = torch._int_mm(level, self.weight) * self.scale
        out = sums.mul_(peak) if self.bias is None else torch.addcmul(self.bias, sums, peak)
        return out.view(*x.shape[:-1], out.shape[1])


def _by_fbgemm(share: Float[Tensor, "R K"], weight: Any) -> Float[Tensor, "R N"]:
    """`share`, within -1 and 1, by weights that `_for_fbgemm` laid out."""
    multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default
    return multiply(share.contiguous(), 1 / 127, 128, weight)


def _for_fbgemm(level: Int8[Tensor, "N K"], scale: Float[Tensor, "N"]) -> Any:
    none = torch.zeros(len(scale), dtype=torch.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a later torch will not have it
        whole = torch._make_per_channel_quantized_tensor(level, scale.double(), none, 0)
    return torch.ops.quantized.linear_prepack(whole, None)


@functools.cache
def _fbgemm_is_there() -> bool:
    """It is for x86 alone, and a later torch may be without it."""
    try:
        _by_fbgemm(torch.ones(1, 1), _for_fbgemm(torch.ones(1, 1, dtype=torch.int8), torch.ones(1)))
    except (AttributeError, RuntimeError):
        return False
    return True


class Int4Linear(nn.Module):
    """A linear map whose weights have 4 bits: of 32 side by side, the least is 0 and the greatest 15. Its inputs and
    outputs are rounded to bfloat16. Raises InputError for an input width that is no multiple of 32."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        N = linear.weight.shape[0]
        _refuse_width(linear)
        self.n_outputs = N
        groups = F.pad(linear.weight.detach().to_dense(), (0, 0, 0, -N % 16)).unflatten(1, (-1, GROUP))  # (N, K / G, G)
        least, most = groups.amin(2), groups.amax(2)
        scale = ((most - least) / 15).clamp(min=SMALLEST_PEAK).bfloat16()
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
        rows = x.reshape(-1, x.shape[-1]).bfloat16().contiguous()
        out = torch._weight_int4pack_mm_for_cpu(rows, self.weight, GROUP, self.scale)[:, : self.n_outputs].float()
        return (out if self.bias is None else out.add_(self.bias)).view(*x.shape[:-1], self.n_outputs)


def _refuse_width(linear: nn.Linear) -> None:
    if linear.in_features % GROUP:
        raise InputError(f"a width of {linear.in_features} is no multiple of {GROUP}", fix="take int8 weights")


def for_inference(model: Model, weights: str = "float32", *, fixed: bool = True) -> Model:
    """The model with its linear maps swapped. int8 and int4 replace the weights of the maps (not the embeddings), and
    so does float32 where they are `fixed`: for reading by oneDNN. Such a model can no longer be trained, moved or
    saved; one that is not fixed keeps its parameters, whoever changes them.

    Away from a CPU float32 swaps nothing. Raises InputError for other words, for int8 and int4 there, and for int4
    where a width is no multiple of 32: the model is then as it was.
    """
    if weights not in WEIGHTS:
        raise InputError(f"no weights {weights!r}", fix=f"choose {', '.join(WEIGHTS)}")
    on_cpu = all(parameter.device.type == "cpu" for parameter in model.parameters())
    if not on_cpu and weights != "float32":
        raise InputError(f"{weights} weights are for a CPU", fix="take float32")
    if weights == "int4":
        for each in model.modules():
            linear = each.joint.linear if isinstance(each, JointPart) else each
            if isinstance(linear, nn.Linear):
                _refuse_width(linear)
    for module in model.modules():
        _forget_attributes(module)
    if on_cpu and (weights != "float32" or torch.backends.mkldnn.is_available()):
        for module in model.modules() if fixed else ():
            if isinstance(module, Block) and not isinstance(module.self_attention.position, Added):
                _join(module.self_attention, ("query", "key", "value"), weights)
            if isinstance(module, MLP) and module.gate is not None:
                _join(module, ("gate", "up"), weights)
        modules = list(model.modules())
        uses = Counter(id(parameter) for module in modules for parameter in module.parameters(recurse=False))
        for module in modules:
            for name, child in module.named_children():
                if isinstance(child, nn.RMSNorm) and not isinstance(child, QuickRMSNorm):
                    setattr(module, name, QuickRMSNorm(child))
                if isinstance(child, nn.Linear):
                    setattr(module, name, _swapped(child, weights, fixed, tied=uses[id(child.weight)] > 1))
    if fixed:
        _refuse_changes(model)
        _cache_attributes(model)
    return model


def inference_copy(model: Model) -> Model:
    """A copy `for_inference` of a model that will be trained further; a model whose weights are replaced already is
    returned itself."""
    if any(isinstance(module, PackedLinear | Int8Linear | Int4Linear) for module in model.modules()):
        return model
    return for_inference(copy.deepcopy(model).eval())


class _Joint:
    """Maps of the same input by one product instead of several, for short steps. They are asked for in their order:
    the first computes all, and the last releases them."""

    def __init__(self, linear: nn.Module, sizes: Sequence[int]) -> None:
        self.linear, self.sizes = linear, list(sizes)
        self._computed: tuple[Tensor, tuple[Tensor, ...]] | None = None

    def part(self, x: Float[Tensor, "*B K"], number: int) -> Float[Tensor, "*B N"]:
        computed = self._computed  # read once: another thread may use the model too
        if number == 0 or computed is None or computed[0] is not x:
            self._computed = computed = x, self.linear(x).split_with_sizes(self.sizes, -1)
        if number == len(self.sizes) - 1:
            self._computed = None
        return computed[1][number]


class JointPart(nn.Module):
    """One of the maps of a `_Joint`, in place of it. In float32 its parameters are parts of the joint map's; in fewer
    bits it has none."""

    def __init__(self, joint: _Joint, number: int, linear: nn.Linear | None) -> None:
        super().__init__()
        self.joint, self.number = joint, number
        if linear is not None:
            self.weight, self.bias = linear.weight, linear.bias

    def __call__(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        """Past the hooks of a module, for which a short step has no time."""
        return self.joint.part(x, self.number)


def _join(module: nn.Module, names: Sequence[str], weights: str) -> None:
    """Replaces maps of the same input by one map: in float32 if they are small, so that calling them takes longer than
    reading their weights; in fewer bits always."""
    whole = weights == "float32"
    maps = [getattr(module, name) for name in names]
    if isinstance(maps[0], JointPart):
        joined, sizes = maps[0].joint.linear, maps[0].joint.sizes
        if whole or not isinstance(joined, nn.Linear):
            return
    else:
        large = sum(part.weight.numel() for part in maps) >= MOST_WEIGHTS_KEPT_TWICE
        if whole and large:
            return
        joined, sizes = _side_by_side(maps), [part.out_features for part in maps]
        if whole:
            for part, weight in zip(maps, joined.weight.split(sizes), strict=True):
                part.weight.data = weight
            if joined.bias is not None:
                for part, bias in zip(maps, joined.bias.split(sizes), strict=True):
                    if part.bias is not None:
                        part.bias.data = bias
    joint = _Joint(_swapped(joined, weights, fixed=True, tied=False), sizes)
    for number, (name, part) in enumerate(zip(names, maps, strict=True)):
        setattr(module, name, JointPart(joint, number, part if whole else None))


def _side_by_side(maps: Sequence[nn.Linear]) -> nn.Linear:
    """One map for several with the same input. It has no parameters: its weights belong to others."""
    joint = nn.Linear(maps[0].in_features, sum(part.out_features for part in maps), device="meta")
    del joint.weight, joint.bias
    weight = torch.cat([part.weight.data.to_dense().t() for part in maps], dim=1).t()
    biased = any(part.bias is not None for part in maps)  # of Whisper the key alone is not
    zeros = (part.weight.new_zeros(part.out_features) if part.bias is None else part.bias.data for part in maps)
    bias = torch.cat([*zeros]) if biased else None
    joint.weight, joint.bias = weight, bias  # type: ignore[assignment]
    return joint


def _swapped(linear: nn.Linear, weights: str, fixed: bool, *, tied: bool) -> nn.Module:
    if weights == "int8":
        return Int8Linear(linear)
    if weights == "int4":
        return Int4Linear(linear)
    if isinstance(linear, Float32Linear | LowRankLinear):
        return linear
    if fixed and linear.weight.numel() >= FEWEST_WEIGHTS_PACKED and onednn_knows(linear.weight.dtype):
        return PackedLinear(linear, tied=tied)
    if fixed and not tied and linear.weight.dtype == torch.float32:
        _by_inputs(linear)
    return Float32Linear(linear)


def _cache_attributes(model: nn.Module) -> None:
    """Makes every part of a module a plain attribute too, and identities plain functions. torch looks for parts only
    where it finds no attribute: 0.6 us for each, and as much again for calling a module."""
    modules = list(model.modules())
    joints = {id(part.joint): part.joint.linear for part in modules if isinstance(part, JointPart)}
    for module in (*modules, *joints.values()):
        for name, part in (*module._modules.items(), *module._parameters.items(), *module._buffers.items()):
            module.__dict__[name] = _same if isinstance(part, nn.Identity | Dropout) else part


def _refuse_changes(model: nn.Module) -> None:
    """Refuses training the model or loading other weights: that would only reach a part of it."""
    for module in model.eval().modules():
        if module is not model:  # `eval` of the model calls its parts, and returns itself
            module.__dict__["train"] = _refuse_training
    model.register_load_state_dict_pre_hook(_refuse_loading)
    model.requires_grad_(False)


def _refuse_training(mode: bool = True) -> None:
    if mode:
        raise InputError("a model that was loaded for use does not train", fix=FOR_TRAINING)


def _refuse_loading(*_: object) -> None:
    raise InputError("a model that was loaded for use takes no other weights", fix=FOR_TRAINING)


def _forget_attributes(module: nn.Module) -> None:
    for name in (*module._modules, *module._parameters, *module._buffers, "train"):
        module.__dict__.pop(name, None)


def _same(x: Tensor) -> Tensor:
    return x


def draft_model(model: Model, weights: str) -> Model:
    """A copy of the model with its linear maps in fewer bits, sharing everything else: for drafting tokens. Raises as
    `for_inference` does."""
    return for_inference(_apart(model), weights)


def _apart(module: Model) -> Model:
    """Another tree of modules, of the same parameters."""
    made = copy.copy(module)
    _forget_attributes(made)
    made._modules = {name: None if child is None else _apart(child) for name, child in module._modules.items()}
    return made
