"""The laws that a translator must keep, checked on the user's own model, each with its figure.

A law is exact (0 is demanded) or holds to float32 rounding (TOLERANCE, relative to the largest logit).
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from heedful.data.batches import pad
from heedful.data.tokenizer import BOS, EOS, PAD
from heedful.decode.search import beam, greedy
from heedful.errors import MissingError
from heedful.look.record import record
from heedful.models.seq2seq import Seq2Seq
from heedful.store.checkpoint import verify
from heedful.tasks.folder import parameters, write_run
from heedful.tasks.translate import Translator

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Law:
    name: str
    figure: float  # the largest difference, relative for what is not exact
    limit: float
    notes: tuple[str, ...] = ()  # what is broken, a line each

    @property
    def holds(self) -> bool:
        return self.figure <= self.limit


def check(run: Path, texts: Sequence[str] = ()) -> Iterator[Law]:
    """Checks the folder and its model, law by law. `texts` are sources to check on; without any, random tokens are."""
    if not run.is_dir():
        raise MissingError("no such folder", where=str(run), fix="check the path")
    folders = sorted(run.glob("checkpoints/step-*"))
    damaged = tuple(f"{path / problem}" for path in folders for problem in verify(path))
    yield Law(f"{len(folders)} checkpoints verify (damaged files)", float(len(damaged)), 0.0, damaged)
    translator = Translator.load(run)
    probe = Probe(translator, texts)
    yield from probe.laws()
    yield Law("save then load", _saved_and_loaded(translator), 0.0)


class Probe:
    """A few sentences of different lengths, and the model's full logits on them."""

    def __init__(self, translator: Translator, texts: Sequence[str]) -> None:
        self.translator = translator
        self.model: Any = translator.model
        sentences = [ids for ids in translator.source.encode(list(texts)) if ids][:8]
        if not sentences:
            draw = torch.Generator().manual_seed(0)
            size = translator.source.size
            sentences = [torch.randint(4, size, (n,), generator=draw).tolist() for n in (3, 9, 5, 14)]
        found = translator.hypotheses(sentences, translator.decoding(beam=1, longest=30))
        self.targets = [torch.tensor([BOS, *best[0].tokens]) for best in found]
        self.source, self.segments = pad(sentences)
        self.target = pad_sequence(self.targets, batch_first=True, padding_value=PAD)
        self.target_segments = pad_sequence([torch.ones_like(ids) for ids in self.targets], batch_first=True)
        self.full = self.logits()

    def laws(self) -> Iterator[Law]:
        checks: list[tuple[str, Callable[[], float], float]] = [
            ("cached = uncached", self.cached, TOLERANCE),
            ("beam 1 = greedy (different tokens)", self.beam_one, 0.0),
            ("padding changes nothing", self.padding, TOLERANCE),
            ("a batch = one by one", self.one_by_one, TOLERANCE),
            ("causal: gradient from the future", self.leak, 0.0),
            ("recording changes nothing", self.recorded, 0.0),
        ]
        if isinstance(self.model, Seq2Seq):
            checks.insert(5, ("fused attention = explicit", self.fused, TOLERANCE))
        for name, law, limit in checks:
            yield Law(name, law(), limit)

    @torch.no_grad()
    def logits(self) -> Tensor:
        return self.model(self.source, self.target, self.segments, self.target_segments)

    @torch.no_grad()
    def cached(self) -> float:
        state = self.model.start(self.source, self.segments)
        steps = []
        for tokens in self.target.unbind(1):
            logits, state = self.model.step(tokens, state)
            steps.append(logits)
        return self._difference(torch.stack(steps, 1))

    def beam_one(self) -> float:
        options: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 30, "forbidden": (PAD, BOS)}
        one = greedy(self.model, self.source, self.segments, **options)
        other = beam(self.model, self.source, self.segments, beam=1, **options)
        return float(sum(a.tokens != b[0].tokens for a, b in zip(one, other, strict=True)))

    @torch.no_grad()
    def padding(self) -> float:
        """Seven more places of padding on both sides, filled with a real token that nobody may look at."""
        wider = [torch.nn.functional.pad(part, (0, 7), value=4) for part in (self.source, self.target)]
        segments = [torch.nn.functional.pad(part, (0, 7)) for part in (self.segments, self.target_segments)]
        return self._difference(self.model(*wider, *segments)[:, :-7])

    @torch.no_grad()
    def one_by_one(self) -> float:
        worst = 0.0
        for i, target in enumerate(self.targets):
            alone = self.model(self.source[i, self.segments[i] > 0][None], target[None])
            worst = max(worst, float((alone[0] - self.full[i, : len(target)]).abs().max()))
        return worst / float(self.full.abs().max())

    def leak(self) -> float:
        """The gradient of each place's logits with respect to the embeddings of later target tokens."""
        embedding = self.model.target if isinstance(self.model.target, nn.Embedding) else self.model.target.tokens
        made: list[Tensor] = []

        def keep(module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
            if arguments[0].shape == self.target.shape:
                made.append(output.detach().requires_grad_())
                return made[-1]
            return output

        handle = embedding.register_forward_hook(keep)
        logits = self.model(self.source, self.target, self.segments, self.target_segments)
        handle.remove()
        worst = 0.0
        for place in range(self.target.shape[1] - 1):
            (gradient,) = torch.autograd.grad(logits[:, place].square().sum(), made[-1], retain_graph=True)
            worst = max(worst, float(gradient[:, place + 1 :].abs().max()))
        return worst

    def fused(self) -> float:
        """The kernel of inference against the explicit weights that training and pictures use."""
        with torch.enable_grad():
            explicit = self.model(self.source, self.target, self.segments, self.target_segments)
        return self._difference(explicit.detach())

    @torch.no_grad()
    def recorded(self) -> float:
        with record(self.model):
            seen = self.model(self.source, self.target, self.segments, self.target_segments)
        return float((seen - self.full).abs().max())

    def _difference(self, logits: Tensor) -> float:
        real = self.target_segments > 0
        return float((logits - self.full)[real].abs().max() / self.full[real].abs().max())


def _saved_and_loaded(translator: Translator) -> float:
    own = parameters(translator.model)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        write_run(folder, translator.model, own, translator.source, translator.target, translator.about)
        other = parameters(Translator.load(folder).model)
    return max(float((own[name] - other[name]).abs().max()) for name in own)
