"""Laws of a model: different ways of computing the same result, with and without padding, in a batch and one by one, at
once and step by step. Each task checks its laws by a probe.

A law must hold exactly (0), or up to float32 rounding (TOLERANCE, relative to the largest logit).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.data.batches import pad
from heedful.data.frame import Frame, Framed, rectangle
from heedful.data.tokenizer import Tokenizer
from heedful.decode.search import beam, greedy
from heedful.look.record import Watched, record
from heedful.models import DETR, LM, RNN, Pyramid, TokenClassifier, ViT
from heedful.run.task import Law
from heedful.tasks.shared.pictures import Prepared
from heedful.tasks.shared.served import on_device
from heedful.tasks.shared.writing import Numbered, Writer

M = TypeVar("M", bound=nn.Module)
TOLERANCE = 1e-5
WRITTEN = 12  # tokens of a text about noise, at most


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def random_sentences(size: int, *, least: int = 4) -> list[list[int]]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randint(least, size, (n,), generator=draw).tolist() for n in (3, 9, 5, 14)]


def a_few(sentences: Sequence[list[int]], size: int) -> list[list[int]]:
    """The first sentences that are not empty; without any, random ones from a vocabulary of this size."""
    return [ids for ids in sentences if ids][:8] or random_sentences(size)


def framed_rows(tokenizer: Tokenizer, frame: Frame, context: int, texts: Sequence[str]) -> list[Framed]:
    """The texts, or random ones, as at most `context` tokens; every second row is a pair with the next text."""
    sentences = a_few(tokenizer.encode(list(texts)), tokenizer.size)
    half, others = (context - frame.extra(pair=True)) // 2, [*sentences[1:], sentences[0]]
    return [
        frame.put(one[:half], other[:half] if n % 2 else None)
        for n, (one, other) in enumerate(zip(sentences, others, strict=True))
    ]


class Probe(Generic[M]):
    """A few rows of different lengths, and a model's logits on them; `real` marks the positions that are not padding.
    Iterating over a probe checks its laws.

    `inputs` are those of the model: tokens, then segments (and types), each [..., positions]. They and the logits are
    on the CPU, wherever the model is.
    """

    def __init__(self, model: M, inputs: tuple[Tensor, ...], real: Tensor) -> None:
        self.model, self.inputs, self.real = model, inputs, real
        self.device = device_of(model)
        with torch.no_grad():
            self.full = self.read(*inputs)

    def __iter__(self) -> Iterator[Law]:
        yield Law(
            "padding changes nothing",
            self.difference(self.padded()),
            TOLERANCE,
            otherwise="a shorter text would get another answer beside a longer one",
        )
        yield Law(
            "a batch = one by one",
            self.one_by_one(),
            TOLERANCE,
            otherwise="an answer would depend on what else is asked at the same time",
        )
        if not isinstance(self.model, RNN):
            yield Law(
                "fused attention = explicit",
                self.difference(self.explicit()),
                TOLERANCE,
                otherwise="the model in use would not be the one that was trained",
            )
        if any(isinstance(module, Watched) for module in self.model.modules()):
            yield Law(
                "recording changes nothing",
                self.recorded(),
                0.0,
                otherwise="a picture would show another computation than that of the answer",
            )

    def read(self, *inputs: Tensor) -> Tensor:
        return self.model(*on_device(inputs, self.device)).cpu()

    def alone(self, row: int) -> Tensor:
        """The logits of one row without its padding."""
        raise AssertionError

    @torch.no_grad()
    def padded(self) -> Tensor:
        """Seven more positions of padding, filled with a real token that no query may look at."""
        half = len(self.inputs) // 2
        wider = [torch.nn.functional.pad(part, (0, 7), value=4) for part in self.inputs[:half]]
        segments = [torch.nn.functional.pad(part, (0, 7)) for part in self.inputs[half:]]
        return self.read(*wider, *segments)[:, : self.full.shape[1]]

    @torch.no_grad()
    def one_by_one(self) -> float:
        worst = 0.0
        for row, length in enumerate(self.real.sum(1).tolist()):
            worst = max(worst, float((self.alone(row)[0] - self.full[row, :length]).abs().max()))
        return worst / float(self.full.abs().max())

    def explicit(self) -> Tensor:
        """With the explicit weights that training and recording use, instead of the fused kernel."""
        with torch.enable_grad():
            return self.read(*self.inputs).detach()

    @torch.no_grad()
    def recorded(self) -> float:
        with record(self.model):
            seen = self.read(*self.inputs)
        return float((seen - self.full).abs().max())

    def difference(self, logits: Tensor) -> float:
        return float((logits - self.full)[self.real].abs().max() / self.full[self.real].abs().max())


class CausalProbe(Probe[M]):
    """A probe of a model that generates: `target` is what it generates, and `embedding` the module that embeds it."""

    def __init__(
        self, model: M, inputs: tuple[Tensor, ...], target: Tensor, real: Tensor, embedding: nn.Module
    ) -> None:
        self.target, self.embedding = target, embedding
        super().__init__(model, inputs, real)

    def __iter__(self) -> Iterator[Law]:
        yield Law(
            "cached = uncached",
            self.difference(self.cached()),
            TOLERANCE,
            otherwise="what is written token by token would not be what the model thinks likely",
        )
        yield Law(*self.searched(), 0.0, otherwise="searches that must agree would give different answers")
        yield Law(
            "causal: gradient from the future",
            self.leak(),
            0.0,
            otherwise="training would show the model the words that it is to learn to say",
        )
        yield from super().__iter__()

    def cached(self) -> Tensor:
        """The logits, computed one token at a time."""
        raise AssertionError

    def stepped(self, state: Any, tokens: Int[Tensor, "B T"]) -> list[Tensor]:
        """The logits behind each of these tokens, read one by one from a state."""
        model: Any = self.model  # which generates
        steps = []
        for column in tokens.to(self.device).unbind(1):
            logits, state = model.step(column, state)
            steps.append(logits.cpu())
        return steps

    def searched(self) -> tuple[str, float]:
        """Two searches that must agree: their names, and the number of differences."""
        raise AssertionError

    def leak(self) -> float:
        """The gradient of each position's logits with respect to the embeddings of later target tokens."""
        made: list[Tensor] = []

        def keep(module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
            made.append(output.detach().requires_grad_())
            return made[-1]

        handle = self.embedding.register_forward_hook(keep)
        logits = self.read(*self.inputs)
        handle.remove()
        worst, T = 0.0, self.target.shape[1]
        for position in range(T - 1):
            (gradient,) = torch.autograd.grad(logits[:, position].square().sum(), made[-1], retain_graph=True)
            later = gradient[:, -T:][:, position + 1 :]  # the target is last, alone or after its source
            worst = max(worst, float(later.abs().max()))
        return worst


class RowsProbe(CausalProbe[LM]):
    """A probe of a language model."""

    def __init__(self, model: LM, rows: Sequence[list[int]], *, filler: int) -> None:
        self.rows = rows
        tokens, segments = pad(rows, after=(), filler=filler)
        super().__init__(model, (tokens, segments), tokens, segments > 0, model.embed.tokens)

    @torch.no_grad()
    def cached(self) -> Tensor:
        """Reads the first token as a prompt, and the others one by one."""
        state = self.model.start(self.target[:, :1].to(self.device))
        return torch.stack([self.full[:, 0], *self.stepped(state, self.target[:, 1:])], 1)

    def alone(self, row: int) -> Tensor:
        return self.read(torch.tensor([self.rows[row]]))


class WritingProbe(CausalProbe[Writer]):
    """A probe on greedy texts about noise: of sound, or of pixels."""

    def __init__(self, model: Writer, tokenizer: Tokenizer, noise: Tensor, *, longest: int) -> None:
        self.numbered = Numbered(model, noise.to(device_of(model)))
        self.source = torch.arange(len(noise), device=device_of(model))[:, None]
        longest = min(WRITTEN, longest)
        self.options: dict[str, Any] = {
            "bos": tokenizer.bos,
            "eos": tokenizer.eos,
            "longest": longest,
            "shortest": longest // 2,
        }
        texts = greedy(self.numbered, self.source, **self.options)
        self.targets = [[tokenizer.bos, *text.tokens[: longest - 2 * n]] for n, text in enumerate(texts)]
        target, segments = pad(self.targets, after=(), filler=tokenizer.pad)
        super().__init__(model, (noise, target), target, segments > 0, model.target.tokens)

    def padded(self) -> Tensor:
        """Four more tokens behind each text."""
        noise, target = self.inputs
        more = target.new_full((len(target), min(4, self.model.config.target.context_length - target.shape[1])), 4)
        return self.read(noise, torch.cat([target, more], 1))[:, : target.shape[1]]

    @torch.no_grad()
    def cached(self) -> Tensor:
        return torch.stack(self.stepped(self.numbered.start(self.source, None), self.target), 1)

    def searched(self) -> tuple[str, float]:
        greedily = greedy(self.numbered, self.source, **self.options)
        by_beam = beam(self.numbered, self.source, beam=1, **self.options)
        unequal = sum(a.tokens != b[0].tokens for a, b in zip(greedily, by_beam, strict=True))
        return "beam 1 = greedy (different tokens)", float(unequal)

    def alone(self, row: int) -> Tensor:
        return self.read(self.inputs[0][row][None], torch.tensor([self.targets[row]]))


class FramedProbe(Probe[M]):
    """A probe of a model that reads framed texts; without `real`, it has an answer for each token."""

    def __init__(self, model: M, rows: Sequence[Framed], real: Tensor | None = None) -> None:
        self.rows, inputs = rows, self.inputs_of(rows)
        super().__init__(model, inputs, inputs[1] > 0 if real is None else real)

    @staticmethod
    def inputs_of(rows: Sequence[Framed]) -> tuple[Tensor, ...]:
        return rectangle(rows)

    def alone(self, row: int) -> Tensor:
        return self.read(*self.inputs_of([self.rows[row]]))


@runtime_checkable
class TokenServed(Protocol):
    """A finished encoder that has an answer for each token."""

    model: TokenClassifier
    tokenizer: Tokenizer

    @property
    def context(self) -> int: ...


class TokenProbe(FramedProbe[TokenClassifier]):
    """A token classifier's logits [rows, positions, answers]; every second row is a pair of texts."""

    def __init__(self, served: TokenServed, texts: Sequence[str]) -> None:
        frame = Frame.of_encoder(served.tokenizer)
        super().__init__(served.model, framed_rows(served.tokenizer, frame, served.context - 7, texts))


@runtime_checkable
class PictureServed(Protocol):
    """A finished model that reads whole pictures."""

    @property
    def model(self) -> ViT | Pyramid | DETR: ...
    @property
    def spec(self) -> Prepared: ...


class PictureProbe(Probe[nn.Module]):
    """A probe on random pixels: nothing is padded."""

    def __init__(self, served: PictureServed, texts: Sequence[str]) -> None:
        prepared, model = served.spec.preparation, served.model
        size = prepared.size if len(prepared.crop or prepared.resize) == 2 else (64, 96)
        draw = torch.Generator().manual_seed(0)
        pixels = torch.randn(5, prepared.channels, *size, generator=draw)
        parts = model.config.n_queries if isinstance(model, DETR) else model.config.n_classes
        asked = LastLayer(model) if isinstance(model, DETR) else model
        super().__init__(asked, (pixels,), torch.ones(5, parts, dtype=torch.bool))

    def __iter__(self) -> Iterator[Law]:
        yield from (law for law in super().__iter__() if not law.name.startswith("padding"))

    def padded(self) -> Tensor:
        return self.full

    def alone(self, row: int) -> Tensor:
        return self.read(self.inputs[0][row][None])


class LastLayer(nn.Module):
    """A detector's last layer: classes and boxes, concatenated."""

    def __init__(self, model: DETR) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B Q A"]:
        found = self.model(pixels)
        return torch.cat([found.logits[-1], found.boxes[-1]], dim=-1)
