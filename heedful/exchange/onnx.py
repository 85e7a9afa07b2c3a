"""ONNX: an encoder-decoder Transformer as two graphs, for onnxruntime and other readers of the format.

    encoder.onnx   input_ids (B, S), attention_mask (B, S)  ->  memory.i.key, memory.i.value (B, G, S, D)
    decoder.onnx   input_ids (B), attention_mask (B, S), past.i.* (B, G, P, D), memory.i.* (B, G, S, D)
                   ->  logits (B, V), present.i.* (B, G, P + 1, D)

for each layer i of the decoder. The memory's keys and values are projected once, and the decoder reads one token a
step. torch's exporter makes the graphs from the model's own modules, with two exceptions: the cache concatenates tokens
instead of writing into a buffer, and positions come from a table.

B batch, S source tokens, P tokens before, G key heads, D head width, V vocabulary.
"""

import logging
import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.attention import KV
from heedful.core.block import Context, Memory
from heedful.core.cache import BlockCache, Past
from heedful.core.mask import Mask
from heedful.errors import InputError, MissingError, pip_install
from heedful.models.seq2seq import Seq2Seq

OPSET = 18
MIN_POSITIONS = 4096  # rows, at least, of a table of unlimited positions
MOST = 1_900_000_000  # bytes of weights: a file of the format holds at most 2 GiB


def refuse(model: nn.Module, where: str) -> None:
    """Raises MissingError where packages are missing, and InputError for a model that cannot be exported."""
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        fix = pip_install("'heedful[onnx]'")
        raise MissingError(f"not installed: {', '.join(missing)}", where="--to onnx", fix=fix)
    if not isinstance(model, Seq2Seq):
        what = f"a {type(model).__name__} is not exported to ONNX, but Transformers of an encoder and a decoder"
        raise InputError(what, where=where, fix="use it here")
    size = sum(parameter.numel() * 4 for parameter in model.parameters())
    if size > MOST:
        raise InputError(f"{size:,} bytes of weights, at most {MOST:,}", where=where, fix="--to ctranslate2")


def graphs(model: Seq2Seq) -> tuple[bytes, bytes]:
    """The encoder's and the decoder's graph."""
    model = with_tables(model)
    config = model.config.decoder.block.attention
    n_layers, n_heads = len(model.decoder.blocks), config.kv_heads or config.n_heads
    width = config.head_dim or model.config.d_model // config.n_heads
    source, mask = (torch.ones(2, 5, dtype=torch.int64) for _ in range(2))  # the same tensor would be one input
    with torch.no_grad():
        memory = [*EncoderGraph(model)(source, mask)]
        past = [torch.zeros(2, n_heads, 3, width) for _ in range(2 * n_layers)]
        DecoderGraph(model)(source[:, 0], mask, past, memory)  # fills caches, which then are constants of the graph
        names = [f"{i}.{what}" for i in range(n_layers) for what in ("key", "value")]
        rows, columns = {0: "batch"}, {0: "batch", 1: "source"}
        read, told = [f"memory.{name}" for name in names], [f"past.{name}" for name in names]
        encoder = _graph(
            EncoderGraph(model), (source, mask), ["input_ids", "attention_mask"], read, dynamic=(columns, columns)
        )
        dynamic = (rows, columns, [{0: "batch", 2: "past"}] * len(past), [{0: "batch", 2: "source"}] * len(memory))
        decoder = _graph(
            DecoderGraph(model),
            (source[:, 0].clone(), mask, past, memory),
            ["input_ids", "attention_mask", *told, *read],
            ["logits", *(f"present.{name}" for name in names)],
            dynamic=dynamic,
        )
    return encoder, decoder


def _graph(
    module: nn.Module,
    given: tuple[Any, ...],
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    dynamic: tuple[Any, ...],
) -> bytes:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns about libraries that are not needed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the exporter
        program = torch.onnx.export(
            module.eval(),
            given,
            input_names=[*inputs],
            output_names=[*outputs],
            dynamic_shapes=dynamic,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    return bytes(program.model_proto.SerializeToString())


def with_tables(model: Seq2Seq) -> Seq2Seq:
    """A copy of the model with tables of position embeddings instead of computed ones."""
    model = deepcopy(model).eval().requires_grad_(False)
    for embed, config in ((model.source, model.config.source), (model.target, model.config.target)):
        size = config.context_length if config.position_embeddings == "learned" else MIN_POSITIONS
        vectors = embed.position_embeddings(torch.arange(max(size, config.context_length))[None])[0]
        embed.position_embeddings = PositionTable(vectors.clone())  # type: ignore[assignment]
    return model


class PositionTable(nn.Module):
    def __init__(self, vectors: Float[Tensor, "P C"]) -> None:
        super().__init__()
        self.register_buffer("table", vectors)

    def forward(self, positions: Int[Tensor, "*B T"]) -> Float[Tensor, "*B T C"]:
        return F.embedding(positions, self.get_buffer("table"))


@dataclass(frozen=True)
class ConcatenatedPast(Past):
    """A past that concatenates new tokens to the old ones."""

    tokens: KV | None = None

    def kv(self) -> KV:
        assert self.tokens is not None
        return self.tokens

    @property
    def positions(self) -> Int[Tensor, "b S"] | None:
        return self.kv().positions

    def positions_with(self, newer: Int[Tensor, "#B T"]) -> Int[Tensor, "B U"]:
        positions = self.positions
        assert positions is not None
        return torch.cat([positions, newer], dim=1)

    def valid(self, more: int) -> None:
        return None

    def append(self, newer: KV) -> "ConcatenatedPast":
        key, value, positions = self.kv()
        assert positions is not None
        assert newer.positions is not None
        joined = torch.cat([key, newer.key], dim=2), torch.cat([value, newer.value], dim=2)
        return ConcatenatedPast(tokens=KV(*joined, torch.cat([positions, newer.positions], dim=1)))


class EncoderGraph(nn.Module):
    """The encoder, with the keys and values of the decoder's cross-attention."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Int[Tensor, "B S"], attention_mask: Int[Tensor, "B S"]) -> tuple[Tensor, ...]:
        positions, mask = torch.arange(input_ids.shape[1])[None], Mask(valid=attention_mask > 0)
        context = Context(mask=mask, positions=positions)
        memory = Memory(self.model.encoder(self.model.source(input_ids, positions), context), mask, positions)
        return tuple(part for kv in self.model.decoder.remembered(memory) if kv is not None for part in kv[:2])


class DecoderGraph(nn.Module):
    """One step of the decoder."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Int[Tensor, "B"],
        attention_mask: Int[Tensor, "B S"],
        past: list[Tensor],
        memory: list[Tensor],
    ) -> tuple[Tensor, ...]:
        before = past[0].shape[2]
        position, earlier = torch.arange(before, before + 1)[None], torch.arange(before)[None]
        positions = torch.arange(attention_mask.shape[1])[None]
        caches = tuple(
            BlockCache(
                ConcatenatedPast(tokens=KV(past[i], past[i + 1], earlier)), KV(memory[i], memory[i + 1], positions)
            )
            for i in range(0, len(past), 2)
        )
        mask = Mask(valid=attention_mask > 0)
        context = Context(mask=Mask(), memory=Memory(None, mask), positions=position)
        x, made = self.model.decoder.step(self.model.target(input_ids[:, None], position), context, caches)
        logits = self.model.head(x[:, 0] * self.model.scale)
        return logits, *(part for cache in made for part in cache.past.kv()[:2])
