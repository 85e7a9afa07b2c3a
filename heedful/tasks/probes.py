"""A model of each task, asked in ways that must come to the same: with padding and without, at once and one by one,
whole and step by step.

A law is exact (0 is demanded), or holds to float32 rounding (TOLERANCE, relative to the largest logit).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from heedful.data.batches import pad
from heedful.data.frame import Frame, Framed, rectangle
from heedful.data.tokenizer import BOS, EOS, PAD, Tokenizer
from heedful.decode.search import beam, greedy
from heedful.look.record import record
from heedful.models import DETR, RNN, Transducer
from heedful.tasks.answer import Answerer
from heedful.tasks.classify import TextClassifier
from heedful.tasks.classify_images import ImageClassifier
from heedful.tasks.detect import Detector
from heedful.tasks.embed import TextEncoder
from heedful.tasks.fill import Filler
from heedful.tasks.generate import LanguageModel
from heedful.tasks.match import Matcher
from heedful.tasks.paint import Painter
from heedful.tasks.parse import Parser
from heedful.tasks.segment import Segmenter
from heedful.tasks.tag import Tagger
from heedful.tasks.translate import Translator

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Law:
    name: str
    figure: float | None  # the largest difference, relative for what is not exact; None: not measured
    limit: float
    notes: tuple[str, ...] = ()  # what is broken, or why nothing was measured, a line each

    @property
    def holds(self) -> bool:
        return self.figure is None or self.figure <= self.limit


def random_sentences(size: int, *, least: int = 4) -> list[list[int]]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randint(least, size, (n,), generator=draw).tolist() for n in (3, 9, 5, 14)]


def framed_rows(tokenizer: Tokenizer, frame: Frame, context: int, texts: Sequence[str]) -> list[Framed]:
    """The texts, or random ones, as at most `context` tokens; every other one with the next as a second text."""
    sentences = [ids for ids in tokenizer.encode(list(texts)) if ids][:8] or random_sentences(tokenizer.size)
    half, others = (context - frame.extra(pair=True)) // 2, [*sentences[1:], sentences[0]]
    return [
        frame.put(one[:half], other[:half] if n % 2 else None)
        for n, (one, other) in enumerate(zip(sentences, others, strict=True))
    ]


class Probe:
    """A few rows of different lengths, and a model's full logits on them, which are `real` at some places.

    `inputs` are what the model takes: tokens, then segments (and types), each [..., places].
    """

    def __init__(self, model: Any, inputs: tuple[Tensor, ...], real: Tensor) -> None:
        self.model, self.inputs, self.real = model, inputs, real
        with torch.no_grad():
            self.full = self.read(*inputs)

    def laws(self) -> Iterator[Law]:
        yield Law("padding changes nothing", self.difference(self.padded()), TOLERANCE)
        yield Law("a batch = one by one", self.one_by_one(), TOLERANCE)
        if not isinstance(self.model, RNN):
            yield Law("fused attention = explicit", self.difference(self.explicit()), TOLERANCE)
        yield Law("recording changes nothing", self.recorded(), 0.0)

    def read(self, *inputs: Tensor) -> Tensor:
        return self.model(*inputs)

    def alone(self, row: int) -> Tensor:
        """The logits of one row without its padding."""
        raise AssertionError

    @torch.no_grad()
    def padded(self) -> Tensor:
        """Seven more places of padding, filled with a real token that nobody may look at."""
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
        """By the explicit weights that training and pictures use, in place of the kernel of inference."""
        with torch.enable_grad():
            return self.read(*self.inputs).detach()

    @torch.no_grad()
    def recorded(self) -> float:
        with record(self.model):
            seen = self.read(*self.inputs)
        return float((seen - self.full).abs().max())

    def difference(self, logits: Tensor) -> float:
        return float((logits - self.full)[self.real].abs().max() / self.full[self.real].abs().max())


class CausalProbe(Probe):
    """Of a model that writes: `target` is what it goes on with, and `embedding` where that enters."""

    def __init__(self, model: Any, inputs: tuple[Tensor, ...], target: Tensor, real: Tensor, embedding: Any) -> None:
        self.target, self.embedding = target, embedding
        super().__init__(model, inputs, real)

    def laws(self) -> Iterator[Law]:
        yield Law("cached = uncached", self.difference(self.cached()), TOLERANCE)
        yield Law(*self.searched(), 0.0)
        yield Law("causal: gradient from the future", self.leak(), 0.0)
        yield from super().laws()

    def cached(self) -> Tensor:
        """The logits, made a token at a time."""
        raise AssertionError

    def searched(self) -> tuple[str, float]:
        """Two searches that must agree: what they are, and how often they do not."""
        raise AssertionError

    def leak(self) -> float:
        """The gradient of each place's logits with respect to the embeddings of later target tokens."""
        made: list[Tensor] = []

        def keep(module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
            made.append(output.detach().requires_grad_())
            return made[-1]

        handle = self.embedding.register_forward_hook(keep)
        logits = self.model(*self.inputs)
        handle.remove()
        worst, T = 0.0, self.target.shape[1]
        for place in range(T - 1):
            (gradient,) = torch.autograd.grad(logits[:, place].square().sum(), made[-1], retain_graph=True)
            later = gradient[:, -T:][:, place + 1 :]  # the target comes last, be it alone or behind its source
            worst = max(worst, float(later.abs().max()))
        return worst


class Translations(CausalProbe):
    """`options` are those of `greedy`, of searches that are to agree; it says the targets of the probe."""

    def __init__(self, model: Any, source: Tensor, segments: Tensor, *, pad: int, options: dict[str, Any]) -> None:
        self.source, self.segments, self.options = source, segments, options
        found = greedy(model, source, segments, **options)
        self.targets = [torch.tensor([options["bos"], *one.tokens]) for one in found]
        target = pad_sequence(self.targets, batch_first=True, padding_value=pad)
        segments = pad_sequence([torch.ones_like(ids) for ids in self.targets], batch_first=True)
        match model:
            case Transducer():
                embedding = model.lm.embed.tokens
            case RNN():
                embedding = model.target
            case _:
                embedding = model.target.tokens
        inputs = (self.source, target, self.segments, segments)
        super().__init__(model, inputs, target, segments > 0, embedding)

    @torch.no_grad()
    def cached(self) -> Tensor:
        state = self.model.start(self.source, self.segments)
        steps = []
        for tokens in self.target.unbind(1):
            logits, state = self.model.step(tokens, state)
            steps.append(logits)
        return torch.stack(steps, 1)

    def searched(self) -> tuple[str, float]:
        one = greedy(self.model, self.source, self.segments, **self.options)
        other = beam(self.model, self.source, self.segments, beam=1, **self.options)
        unequal = sum(a.tokens != b[0].tokens for a, b in zip(one, other, strict=True))
        return "beam 1 = greedy (different tokens)", float(unequal)

    def alone(self, row: int) -> Tensor:
        return self.model(self.source[row, self.segments[row] > 0][None], self.targets[row][None])


def translations(translator: Translator, texts: Sequence[str]) -> Translations:
    sentences = [ids for ids in translator.encode(list(texts))[0] if ids][:8]
    source, segments = translator.padded(sentences or random_sentences(translator.source.size))
    own = translator.target
    options = {"bos": own.bos, "eos": own.eos, "longest": 30, "forbidden": translator.forbidden}
    return Translations(translator.model, source, segments, pad=own.pad, options=options)


def parses(parser: Parser, texts: Sequence[str]) -> Translations:
    """The model alone: whatever it says, the search makes trees of it."""
    sentences = [ids for ids in parser.tokenizer.encode(list(texts)) if ids][:8]
    source, segments = pad(sentences or random_sentences(parser.tokenizer.size))
    options = {"bos": BOS, "eos": EOS, "longest": 30, "forbidden": (PAD, BOS)}
    return Translations(parser.model, source, segments, pad=PAD, options=options)


class Rows(CausalProbe):
    """Of a language model."""

    def __init__(self, model: Any, rows: Sequence[Tensor], *, pad: int) -> None:
        self.rows = rows
        tokens = pad_sequence([*rows], batch_first=True, padding_value=pad)
        segments = pad_sequence([torch.ones_like(ids) for ids in rows], batch_first=True)
        super().__init__(model, (tokens, segments), tokens, segments > 0, model.embed.tokens)

    @torch.no_grad()
    def cached(self) -> Tensor:
        """The first token is read as a prompt, and the others come one by one."""
        state = self.model.start(self.target[:, :1])
        steps = [self.full[:, 0]]
        for tokens in self.target[:, 1:].unbind(1):
            logits, state = self.model.step(tokens, state)
            steps.append(logits)
        return torch.stack(steps, 1)

    def alone(self, row: int) -> Tensor:
        return self.model(self.rows[row][None])


class Texts(Rows):
    def __init__(self, language_model: LanguageModel, texts: Sequence[str]) -> None:
        self.language_model = language_model
        sentences = [ids for ids in language_model.tokenizer.encode_whole(list(texts)) if ids][:8]
        sentences = sentences or random_sentences(language_model.tokenizer.size)
        room = language_model.context - 8
        own = language_model.tokenizer
        rows = [torch.tensor([own.bos, *ids[: room - 1]]) for ids in sentences]
        super().__init__(language_model.model, rows, pad=own.pad)

    def searched(self) -> tuple[str, float]:
        """Prompts of unequal length in a batch that is too small for all, so that they come and go, and each alone."""
        prompts = [self.language_model.tokenizer.decode_whole(ids.tolist()[1:]) for ids in self.rows]
        together = self.language_model.generate(prompts, tokens=20, temperature=0.0, batch=max(2, len(prompts) // 2))
        unequal = 0
        for prompt, (one,) in zip(prompts, together, strict=True):
            ((other,),) = self.language_model.generate([prompt], tokens=20, temperature=0.0)
            unequal += one.tokens != other.tokens
        return "prompts of a batch = alone (different tokens)", float(unequal)


class Paintings(Rows):
    """Random pixels: the beginnings of pictures."""

    def __init__(self, painter: Painter, texts: Sequence[str]) -> None:
        self.painter, begin = painter, len(painter.says.palette)
        rows = [torch.tensor([begin, *ids]) for ids in random_sentences(begin, least=0)]
        super().__init__(painter.model, rows, pad=begin)

    def searched(self) -> tuple[str, float]:
        """Pictures that lack their last pixels, in batches that are too small for all, and each alone."""
        draw, painter = torch.Generator().manual_seed(0), self.painter
        begun = torch.randint(len(painter.says.palette), (4, painter.says.pixels - 20), generator=draw)
        together = painter.paint(begun, temperature=0.0, batch=3)
        alone = torch.cat([painter.paint(one[None], temperature=0.0) for one in begun])
        return "pictures of a batch = alone (different values)", float((together != alone).sum())


class Fillings(Probe):
    def __init__(self, filler: Filler, texts: Sequence[str]) -> None:
        sentences = [ids for ids in filler.tokenizer.encode_whole(list(texts)) if ids][:8]
        sentences = sentences or random_sentences(filler.tokenizer.size)
        own = filler.tokenizer
        self.rows = [torch.tensor([own.bos, *ids[: filler.context - 9], own.eos]) for ids in sentences]
        tokens = pad_sequence(self.rows, batch_first=True, padding_value=own.pad)
        segments = pad_sequence([torch.ones_like(ids) for ids in self.rows], batch_first=True)
        super().__init__(filler.model, (tokens, segments), segments > 0)

    def alone(self, row: int) -> Tensor:
        return self.model(self.rows[row][None])


class Vectors(Probe):
    """An encoder without a head: its hidden states."""

    def __init__(self, encoder: TextEncoder, texts: Sequence[str]) -> None:
        context = encoder.model.config.embed.places.size
        self.rows = framed_rows(encoder.tokenizer, encoder.frame, context - 7, texts)
        tokens, segments, types = rectangle(self.rows)
        super().__init__(encoder.model, (tokens, segments, types), segments > 0)

    def read(self, *inputs: Tensor) -> Tensor:
        return self.model.hidden(*inputs)

    def alone(self, row: int) -> Tensor:
        return self.read(*rectangle([self.rows[row]]))


class Tokens(Probe):
    """A token classifier's logits [rows, places, answers]; every other row is a pair of texts."""

    def __init__(self, served: Tagger | Answerer, texts: Sequence[str]) -> None:
        self.rows = framed_rows(served.tokenizer, Frame.of_encoder(served.tokenizer), served.context - 7, texts)
        tokens, segments, types = rectangle(self.rows)
        super().__init__(served.model, (tokens, segments, types), segments > 0)

    def alone(self, row: int) -> Tensor:
        return self.model(*rectangle([self.rows[row]]))


class Answers(Probe):
    """A classifier's logits [rows, answers]; every other row is a pair of texts."""

    def __init__(self, classifier: TextClassifier, texts: Sequence[str]) -> None:
        layout = classifier.layout
        self.rows = framed_rows(classifier.tokenizer, layout.frame, layout.context - 7, texts)
        real = torch.ones(len(self.rows), classifier.model.out.out_features, dtype=torch.bool)
        super().__init__(classifier.model, self._read(self.rows), real)

    def alone(self, row: int) -> Tensor:
        return self.model(*self._read([self.rows[row]]))

    @staticmethod
    def _read(rows: Sequence[Framed]) -> tuple[Tensor, ...]:
        """Each is the only sequence of its example."""
        return tuple(part[:, None] for part in rectangle(rows))


class Pictures(Probe):
    """Random pixels; all that is said of each picture is real, and nothing is padded."""

    def __init__(self, served: ImageClassifier | Detector | Segmenter, texts: Sequence[str]) -> None:
        prepared = served.says.preparation
        size = prepared.size if len(prepared.crop or prepared.resize) == 2 else (64, 96)
        draw = torch.Generator().manual_seed(0)
        pixels = torch.randn(5, prepared.channels, *size, generator=draw)
        model: Any = served.model
        parts = model.config.n_queries if isinstance(model, DETR) else model.config.n_classes
        if isinstance(model, DETR):
            model = LastLayer(model)
        super().__init__(model, (pixels,), torch.ones(5, parts, dtype=torch.bool))

    def laws(self) -> Iterator[Law]:
        yield from (law for law in super().laws() if not law.name.startswith("padding"))

    def padded(self) -> Tensor:
        return self.full

    def alone(self, row: int) -> Tensor:
        return self.model(self.inputs[0][row][None])


class LastLayer(nn.Module):
    """What a detector's last layer says of classes and boxes, side by side."""

    def __init__(self, model: DETR) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B Q A"]:
        found = self.model(pixels)
        return torch.cat([found.logits[-1], found.boxes[-1]], dim=-1)


class Matches(Probe):
    """Random pixels, and texts: how much each picture is like each text."""

    def __init__(self, matcher: Matcher, texts: Sequence[str]) -> None:
        self.layout, prepared = matcher.layout, matcher.says.preparation
        room = self.layout.context - 9
        sentences = matcher.layout.encode(list(texts)[:8]) or random_sentences(matcher.tokenizer.size)
        self.rows = [ids[:room] for ids in sentences]
        draw = torch.Generator().manual_seed(0)
        pixels = torch.randn(4, prepared.channels, *prepared.size, generator=draw)
        real = torch.ones(len(pixels), len(self.rows), dtype=torch.bool)
        super().__init__(matcher.model, (pixels, self.layout.rows(self.rows)), real)

    @torch.no_grad()
    def padded(self) -> Tensor:
        pixels, tokens = self.inputs
        return self.model(pixels, torch.nn.functional.pad(tokens, (0, 7), value=4))

    def alone(self, row: int) -> Tensor:
        pixels, alone = self.inputs[0][row][None], [self.layout.rows([ids]) for ids in self.rows]
        return torch.cat([self.model(pixels, tokens) for tokens in alone], dim=1)


PROBES: dict[type, Callable[[Any, Sequence[str]], Probe]] = {
    Translator: translations,
    LanguageModel: Texts,
    Filler: Fillings,
    TextClassifier: Answers,
    TextEncoder: Vectors,
    Parser: parses,
    ImageClassifier: Pictures,
    Detector: Pictures,
    Matcher: Matches,
    Tagger: Tokens,
    Answerer: Tokens,
    Segmenter: Pictures,
    Painter: Paintings,
}
