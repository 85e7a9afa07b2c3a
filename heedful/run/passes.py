"""What one training pass over a batch takes, counted on the model itself before there are any data.

On the device "meta" tensors have shapes and no content: a pass there counts the operations, and the bytes that are kept
for the gradients, of any model in about a second. On another device the same batches can be timed.

B rows, T tokens, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from heedful.core.block import Block
from heedful.core.embed import PositionEmbeddings
from heedful.core.init import uninitialised
from heedful.data.batches import PairBatch, TextBatch
from heedful.data.blanks import SHARE
from heedful.errors import InputError
from heedful.look.operations import counter
from heedful.models import LM, DecoderOnlyTranslator, Encoder, Seq2Seq, ViT, make_model
from heedful.training.loss import Loss, head_cross_entropy, linear_cross_entropy
from heedful.training.optim import block_matrices
from heedful.training.precision import DTYPES, Precision

SENTENCE = 32  # tokens of a sentence in a packed row


class BatchShape(NamedTuple):
    """The shape of a batch, and how much is in it: so many `examples` of a `unit`. `key` is what sets its size in a
    recipe."""

    rows: int
    length: int  # tokens of a row, on each side where there are two; of pictures, patches
    packed: bool  # whether the texts of a row are kept apart
    unit: str  # "pairs", "tokens" or "pictures"
    examples: float
    key: str = "train.tokens"


class PictureBatch(NamedTuple):
    pixels: Tensor  # float32, [B, channels, height, width]


class MadeBatches:
    """A task, for the loop, whose batches are of this shape and of random content: what its model computes for them is
    what it computes for data. Raises InputError for a kind of model that is not known here."""

    def __init__(self, model: nn.Module, shape: BatchShape, *, count: int = 1) -> None:
        self.count, self.packed = count, shape.packed
        rows, length = shape.rows, shape.length
        segments = (torch.arange(length) // SENTENCE + 1).expand(rows, length)
        self.batch: Any
        match model:
            case Seq2Seq():
                source, target = model.config.source.vocab_size, model.config.target.vocab_size
                first, second = (torch.randint(size, (rows, length)) for size in (source, target))
                self.batch = PairBatch(first, second, second, segments, segments)
            case DecoderOnlyTranslator():
                ids = torch.randint(model.config.lm.embed.vocab_size, (rows, length))
                self.batch = PairBatch(ids, ids, ids, segments, segments)
            case LM() | Encoder():
                ids = torch.randint(model.config.embed.vocab_size, (rows, length))
                self.batch = TextBatch(ids, ids, segments)
            case ViT():
                patches = model.config.patches
                self.batch = PictureBatch(torch.rand(rows, patches.channels, *patches.size))
            case _:
                what = f"no plan is made of a model of the kind {type(model).__name__}"
                raise InputError(what, fix="choose another preset")

    def batches(self, epoch: int, model: object) -> Sequence[Any]:
        return [self.batch] * self.count

    def loss(self, model: Any, batch: Any) -> Loss:
        like = next(model.parameters())
        moved = type(batch)(*(None if part is None else part.to(like.device) for part in batch))
        match moved:
            case PictureBatch(pixels):
                return Loss(model(pixels.to(like)).float().logsumexp(-1).sum(), len(pixels))
            case PairBatch() if isinstance(model, DecoderOnlyTranslator) and model.config.input_loss:
                hidden = model.whole(*moved[:2], *moved[3:])
                following = torch.cat([moved.source, moved.target_out], dim=1)
            case PairBatch():
                hidden, following = model.hidden(*moved[:2], *moved[3:]), moved.target_out
            case _:
                hidden = model.hidden(moved.tokens, moved.segments if self.packed else None)
                following = moved.following
        hidden, following = hidden.flatten(0, 1), following.flatten()
        if isinstance(model, Encoder):  # of the hidden tokens alone
            assert model.transform is not None
            assert model.head is not None
            chosen = max(1, round(SHARE * len(following)))
            named, head = model.transform(hidden[:chosen]), model.head
            return Loss(linear_cross_entropy(named, head.weight, head.bias, following[:chosen]), chosen)
        return Loss(head_cross_entropy(model.head, hidden, following), len(following))


@dataclass(frozen=True, kw_only=True)
class Pass:
    """What a pass over one batch takes, forward and backward. Bytes and operations grow with the rows."""

    shape: BatchShape
    parameters: int
    matrices: int  # parameters inside blocks, which Muon steps
    largest: int  # parameters of the largest block
    widest: int  # numbers of the largest parameter
    vocabulary: int  # logits of a position that a loss makes; 0: none
    operations: float  # multiplications and additions
    repeated: float  # operations more, at the most, where blocks are computed again (`train.checkpointing`)
    kept: float  # bytes that are kept for the gradients
    kept_inputs: float  # the same where blocks are computed again
    head: float  # bytes of the head's gradient, which the forward pass makes, however many rows there are

    def of_half(self) -> "Pass":
        """The same of half as many rows."""
        shape = self.shape._replace(rows=self.shape.rows // 2, examples=self.shape.examples / 2)
        halves = {key: getattr(self, key) / 2 for key in ("operations", "repeated", "kept", "kept_inputs")}
        return replace(self, shape=shape, **halves)


def weightless(config: object) -> Any:
    """The model of a configuration on the device "meta", where it takes no memory."""
    with uninitialised(), torch.device("meta"):
        return make_model(config)


def passed(config: object, shape: BatchShape, precision: Precision, *, explicit: bool) -> Pass:
    """Counts a pass over a batch of this shape. `explicit`: attention keeps its weights, as in training on a CPU; in
    torch's fused kernel, a causal mask halves the work. Raises InputError for a kind of model that is not known."""
    model = weightless(config)
    task = MadeBatches(model, shape)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    named = dict(model.named_parameters())
    matrices = sum(named[name].numel() for name in block_matrices(model))
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    largest = max((sum(parameter.numel() for parameter in block.parameters()) for block in blocks), default=0)
    for module in model.modules():
        if isinstance(module, PositionEmbeddings):  # which positions there are is content
            module.kind, module.table = "none", None
    widest = max(parameter.numel() for parameter in named.values())
    model = model.to(DTYPES[precision]).train()
    kept, attention, operations = Kept(model), Attention(explicit=explicit), counter()
    inside = list[tuple[float, float, float]]()  # of each block: operations, bytes kept, bytes of its input
    with ExitStack() as stack:
        for block in blocks:
            hook = BlockCount(inside, kept, attention, operations)
            stack.callback(block.register_forward_pre_hook(hook.begins).remove)
            stack.callback(block.register_forward_hook(hook.ends).remove)
        with operations, attention, kept:
            try:
                task.loss(model, task.batch).total.backward()
            except NotImplementedError:  # a shape that depends on content, such as how many tokens an expert gets
                what = "how much this model computes depends on its data, as where it has experts"
                raise InputError(what, fix="plan a model without") from None
    repeated, within, inputs = (sum(column) for column in zip(*inside, strict=True)) if inside else (0.0, 0.0, 0.0)
    most = max((count for _, count, _ in inside), default=0.0)
    vocabulary, width = (0, 0) if isinstance(model, ViT) else model.head.weight.shape
    head = 4.0 * vocabulary * width  # its gradient is float32
    return Pass(
        shape=shape,
        parameters=parameters,
        matrices=matrices,
        largest=largest,
        widest=widest,
        vocabulary=vocabulary,
        operations=operations.get_total_flops() + attention.operations,
        repeated=repeated,
        kept=kept.total - head,
        kept_inputs=kept.total - head - within + inputs + most,
        head=head,
    )


class Kept:
    """Inside this block, counts the bytes that are kept for gradients, each storage once, weights left out."""

    def __init__(self, model: nn.Module) -> None:
        self.known = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
        self.held = list[torch.UntypedStorage]()  # so that no address comes again
        self.total = 0.0
        self.hooks = saved_tensors_hooks(self._pack, lambda tensor: tensor)

    def _pack(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in self.known:
            self.known.add(storage._cdata)
            self.held.append(storage)
            self.total += storage.nbytes()
        return tensor

    def __enter__(self) -> "Kept":
        self.hooks.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.hooks.__exit__(*error)


class BlockCount:
    """Hooks of a block that note its operations and what it keeps."""

    def __init__(
        self, inside: list[tuple[float, float, float]], kept: Kept, attention: "Attention", operations: FlopCounterMode
    ) -> None:
        self.inside, self.kept, self.attention, self.operations = inside, kept, attention, operations
        self.before = 0.0, 0.0

    def _now(self) -> tuple[float, float]:
        # A third of attention's operations, which count all at once, are those of its forward pass.
        return self.operations.get_total_flops() + self.attention.operations / 3, self.kept.total

    def begins(self, block: nn.Module, inputs: tuple[Any, ...]) -> None:
        self.before = self._now()

    def ends(self, block: nn.Module, inputs: tuple[Any, ...], output: object) -> None:
        operations, kept = self._now()
        size = float(inputs[0].numel() * inputs[0].element_size())
        self.inside.append((operations - self.before[0], kept - self.before[1], size))


class Attention(TorchFunctionMode):
    """Inside this block torch's fused attention computes nothing: it is counted, forward and backward, with what it
    keeps."""

    def __init__(self, *, explicit: bool) -> None:
        super().__init__()
        self.explicit, self.operations = explicit, 0.0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return func(*args, **named)
        query, key, value = args[:3]
        B, H, T, D = query.shape
        share = 0.5 if named.get("is_causal") and not self.explicit else 1.0
        self.operations += 3 * 2 * B * H * T * key.shape[2] * (D + value.shape[3]) * share
        dropped = (args[4] if len(args) > 4 else named.get("dropout_p", 0.0)) > 0
        mask = args[3] if len(args) > 3 else None
        plain = not dropped and (mask is None or mask.dtype == torch.bool)
        explicit = self.explicit and not (plain and query.dtype == torch.float32)  # as `kernels.explicit_attention`
        return _Attended.apply(query, key, value, (1 + 2 * dropped) * key.shape[2] if explicit else 0)


class _Attended(torch.autograd.Function):
    """Attention's output and gradients without content. `weights`: numbers kept for each query of each head."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, weights: int) -> Tensor:
        out = query.new_empty(*query.shape[:3], value.shape[3])
        more = query.new_empty(*query.shape[:3], weights) if weights else out
        ctx.save_for_backward(query, key, value, more)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, _ = ctx.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), None
