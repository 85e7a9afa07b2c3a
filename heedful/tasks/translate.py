"""Translation: pairs of sentences in, a translator out.

`TranslationTask` is what the training loop needs; `Translator` is what a person uses.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.data.batches import OUR_ENDS, Batch, Ends, bucket_rows, by_length, pack_rows, pad, shuffled
from heedful.data.text import Pairs
from heedful.data.tokenizer import Tokenizer
from heedful.decode.rules import Certain, NoRepeat, Rule
from heedful.decode.search import Hypothesis, beam, greedy, sample
from heedful.errors import InputError
from heedful.models import Transducer, TranslationModel
from heedful.models.inference import for_inference
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.tasks.folder import read_run
from heedful.tasks.processes import Processes
from heedful.tasks.recipe import TrainRecipe
from heedful.tasks.scores import METRICS, Metric, Rouge, Scores
from heedful.train.loop import counter_seed
from heedful.train.loss import Loss, linear_cross_entropy

Ids = list[int]
Searched = tuple[list[Ids], "Decoding", list[Ids] | None, list[int]]  # sources, how, prefixes, and their numbers
SMOOTHING = 0.1  # of the labels, unless the recipe says otherwise (Vaswani et al. 2017, section 5.4)
SEARCH_TOKENS = 8192  # source tokens in a batch that is searched, times the beam
WORTH = 2048  # source tokens, times the beam, that are worth being shared by processes


class TranslationTask:
    """Batches of sentence pairs, and the cross-entropy of the target's tokens.

    A decoder alone also learns from the source's, which its loss does not count: the losses of all models compare.
    A model that can keep sentences apart gets rows packed with several of them, of one shape all along; one that
    cannot gets a sentence a row, sorted by length.
    """

    def __init__(
        self, pairs: Sequence[tuple[Ids, Ids]], recipe: TrainRecipe, *, packs: bool, ends: Ends = OUR_ENDS
    ) -> None:
        self.recipe, self.packs, self.ends = recipe, packs, ends
        self.pairs = pairs
        longest = max(max(len(source), len(target)) + 1 for source, target in pairs)
        self.row = max(recipe.row, -(-longest // 16) * 16)
        self._kept: tuple[int, list[Batch]] | None = None

    def batches(self, epoch: int) -> list[Batch]:
        if self._kept is None or self._kept[0] != epoch:
            order = shuffled(len(self.pairs), self.recipe.seed, epoch)
            if self.packs:
                rows = max(1, self.recipe.tokens // self.row)
                made = list(pack_rows(self.pairs, order, row=self.row, rows=rows, ends=self.ends))
            else:
                made = bucket_rows(self.pairs, order, tokens=max(self.recipe.tokens, self.row), ends=self.ends)
                # The order in which lengths come is drawn too: long sentences last would be what is remembered.
                made = [made[i] for i in shuffled(len(made), self.recipe.seed + 1, epoch)]
            self._kept = epoch, made
        return self._kept[1]

    def loss(self, model: TranslationModel, batch: Batch) -> Loss:
        smoothing = SMOOTHING if self.recipe.smoothing is None else self.recipe.smoothing
        return training_loss(model, batch, smoothing=smoothing)


def training_loss(model: TranslationModel, batch: Batch, *, smoothing: float) -> Loss:
    """`cross_entropy`, whose gradient is that of the source's tokens as well where a decoder alone is to learn them."""
    if isinstance(model, Transducer) and model.config.input_loss:
        return whole_cross_entropy(model, batch, smoothing=smoothing)
    return cross_entropy(model, batch, smoothing=smoothing)


def ends_of(target: Tokenizer, around: Mapping[str, Any], *, where: str = "") -> Ends:
    """What begins a target and ends both sides. Raises InputError where a source ends otherwise."""
    after = around.get("after", [target.eos])
    if after != [target.eos]:
        what = f"its sources end with the tokens {after}, and its targets with {target.eos}"
        raise InputError(what, where=where, fix="start from another model")
    return Ends(target.bos, target.eos)


def framed(pairs: Iterable[tuple[Ids, Ids]], around: Mapping[str, Any]) -> list[tuple[Ids, Ids]]:
    """With what stands before every source and begins every target."""
    before, begin = around.get("before", []), around.get("begin", [])
    return [([*before, *source], [*begin, *target]) for source, target in pairs]


def cross_entropy(model: TranslationModel, batch: Batch, *, smoothing: float = 0.0) -> Loss:
    """Summed over the target's tokens, in nats; padding is left out before the vocabulary is met."""
    device = model.head.weight.device
    source, target_in, target_out, source_segments, target_segments = (part.to(device) for part in batch)
    hidden = model.hidden(source, target_in, source_segments, target_segments)
    real = target_segments > 0
    return Loss(_summed(model, hidden[real], target_out[real], smoothing), int(real.sum()))


def whole_cross_entropy(model: Transducer, batch: Batch, *, smoothing: float = 0.0) -> Loss:
    """The same in value; its gradient is also that of the source's tokens but the first, by the model's weight for
    them (Liu et al. 2018, section 4.2.3)."""
    device = model.head.weight.device
    source, target_in, target_out, source_segments, target_segments = (part.to(device) for part in batch)
    hidden = model.whole(source, target_in, source_segments, target_segments)
    S, real = source.shape[1], target_segments > 0
    follows = (source_segments[:, 1:] == source_segments[:, :-1]) & (source_segments[:, 1:] > 0)
    of_source = _summed(model, hidden[:, : S - 1][follows], source[:, 1:][follows], smoothing)
    total = _summed(model, hidden[:, S:][real], target_out[real], smoothing)
    return Loss(total + model.config.input_loss * (of_source - of_source.detach()), int(real.sum()))


def _summed(model: TranslationModel, hidden: Tensor, following: Tensor, smoothing: float) -> Tensor:
    return linear_cross_entropy(hidden, model.head.weight, model.head.bias, following, smoothing=smoothing)


@torch.inference_mode()
def target_nats(model: TranslationModel, pairs: Sequence[tuple[Ids, Ids]], ends: Ends = OUR_ENDS) -> tuple[float, int]:
    """The summed cross-entropy of the targets in nats, and their tokens with their ends; a pair of which a side is
    empty counts nothing."""
    filled = [pair for pair in pairs if all(pair)]
    longest = max((len(side) + 1 for pair in filled for side in pair), default=0)
    batches = bucket_rows(filled, range(len(filled)), tokens=max(4096, longest), ends=ends)
    losses = [cross_entropy(model, batch) for batch in batches]
    return sum(float(each.total) for each in losses), sum(each.count for each in losses)


def cut_at(sentences: Sequence[Ids], most: int | None) -> tuple[list[Ids], list[int]]:
    """The first `most` tokens of each (None: all), and how many there were beyond."""
    kept = [ids[:most] for ids in sentences]
    return kept, [len(ids) - len(own) for ids, own in zip(sentences, kept, strict=True)]


def most_places(config: object) -> int | None:
    """How many tokens a source and a target may have, ends included; None where any number."""
    sides = (config.source, config.target) if isinstance(config, Seq2SeqConfig) else ()
    return min((side.places.size for side in sides if side.places.kind == "learned"), default=None)


def check_places(sentences: Sequence[Ids], places: int, *, where: str) -> None:
    """Raises InputError where one of them has, with its end, more tokens than a model has places."""
    most = max(map(len, sentences), default=0) + 1
    if most > places:
        what = f"a text of {most} tokens, but the model has {places} places"
        raise InputError(what, where=where, fix="leave it out, or take a model with more places")


class Translation(NamedTuple):
    """One source sentence and what the model makes of it, the best first. A score is the log-probability (nats)
    divided by length ** length_penalty. Of a source that was too long, the last `cut` tokens were not read."""

    source: str
    text: str
    score: float
    hypotheses: list[tuple[str, float]]
    cut: int = 0


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How to search. `beam` 1 is greedy; with `samples`, tokens are drawn at random in place of searched for."""

    beam: int = 5
    length_penalty: float = 1.0
    n_best: int = 1
    longest: int | None = None  # new tokens; None: twice the source's and 12 more
    shortest: int = 0
    no_repeat: int = 0  # no n-gram of this size twice; 0: any may
    forced_eos: bool = False  # what reaches `longest` ends there, as if the model were sure of it
    samples: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0


@runtime_checkable
class Engine(Protocol):
    """What searches in place of the model: another library, that has it in a form of its own."""

    def search(
        self, sources: Sequence[Ids], *, limits: Sequence[int], decoding: Decoding, prefix: Sequence[Ids] | None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source, of at most so many tokens, as `decode.search` gives them."""


class Translator:
    """A trained model, its tokenizers, and how it searches unless told otherwise.

    With an `engine` it searches, and can nothing else: the model has a configuration then, and no weights.
    """

    def __init__(self, model: TranslationModel, source: Tokenizer, target: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.source, self.target, self.about = source, target, about
        self.engine: Engine | None = None
        self.processes: Processes | None = None

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Translator":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, source, target, about = read_run(Path(run))
        if about.get("task") != "translate":
            raise InputError(f"a model for {about.get('task')!r}, not for translation", where=str(run))
        return cls(for_inference(model.to(device)), source, target, about)

    def translate(self, texts: Sequence[str], *, prefix: Sequence[str] | None = None, **settings: Any) -> list[str]:
        """The best translation of each text. `settings` are those of `Decoding`."""
        return [translation.text for translation in self.search(texts, prefix=prefix, **settings)]

    def search(
        self, texts: Sequence[str], *, prefix: Sequence[str] | None = None, **settings: Any
    ) -> list[Translation]:
        """The translations of each text, with scores. `prefix`: how each one must begin."""
        decoding = self.decoding(**settings)
        ids, beyond = self.encode(texts)
        forced = None if prefix is None else self.target.encode(prefix)
        found = self.hypotheses(ids, decoding, forced)
        made = []
        for text, best, cut in zip(texts, found, beyond, strict=True):
            tokens = [hypothesis.tokens for hypothesis in best]
            read = [*map(self.target.decode_marked, tokens)] if self.marked else self.target.decode_batch(tokens)
            listed = list(zip(read, (hypothesis.score for hypothesis in best), strict=True))
            made.append(Translation(text, *listed[0], listed, cut))
        return made

    def encode(self, texts: Sequence[str]) -> tuple[list[Ids], list[int]]:
        """Each source's tokens, as many as were read in training where those were cut, and how many there are
        beyond."""
        ids = self.source.encode_marked(texts) if self.marked else self.source.encode(texts)
        return cut_at(ids, self.about.get("longest_source"))

    @property
    def marked(self) -> bool:
        """Whether it reads and says "<mask>" and the like as the marks that they name: a denoiser does."""
        return "noise" in self.about

    @property
    def metric(self) -> Metric:
        """What its translations are scored by."""
        return METRICS[self.about.get("scores", "bleu")]

    @property
    def around(self) -> tuple[Ids, Ids]:
        """What stands before a source, and after it."""
        return self.about.get("before", []), self.about.get("after", [self.source.eos])

    def padded(self, sentences: Sequence[Ids]) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B S"]]:
        """(ids, segments) of sources, as the model reads them."""
        before, after = self.around
        return pad(sentences, before=before, after=after, filler=self.source.pad)

    @property
    def begin(self) -> Ids:
        """What every target begins with."""
        return self.about.get("begin", [])

    @property
    def forbidden(self) -> tuple[int, ...]:
        """What is never said."""
        return tuple(self.about.get("forbidden", (self.target.pad, self.target.bos)))

    def decoding(self, **settings: Any) -> Decoding:
        return Decoding(**{**self.about.get("decode", {}), **settings})

    def hypotheses(
        self, ids: Sequence[Ids], decoding: Decoding, forced: Sequence[Ids] | None = None
    ) -> list[list[Hypothesis]]:
        """Searches for all sentences, in batches of like length, and hands the results back in the order given."""
        out = [[Hypothesis((), 0.0, 0.0, (), True)] for _ in ids]  # nothing said is translated by nothing
        filled = [i for i, sentence in enumerate(ids) if sentence]
        width = max(decoding.beam, decoding.samples, 1)
        sources, shared = [ids[i] for i in filled], self.processes
        groups = by_length(sources, max(256, SEARCH_TOKENS // width))
        tokens = sum(len(source) + 1 for source in sources)
        if shared is not None and tokens * width >= WORTH:  # as many batches for each, of about as many tokens
            wanted = -(-len(groups) // shared.count) * shared.count
            tokens //= wanted
            while len(groups := by_length(sources, tokens)) > wanted:
                tokens += tokens // 20 + 1
        batches = []
        for group in groups:
            rows = [filled[i] for i in group]
            begin = None if forced is None else [[*self.begin, *forced[i]] for i in rows]
            batches.append(([ids[i] for i in rows], decoding, begin, rows))
        found = shared.map(batches) if shared is not None and len(batches) > 1 else map(self._search, batches)
        for (*_, rows), best in zip(batches, found, strict=True):
            for i, one in zip(rows, best, strict=True):
                out[i] = one
        return out

    @contextmanager
    def in_processes(self, count: int) -> Iterator[None]:
        """Within it so many processes of one thread each search, on Linux and a CPU, where there is more than a batch:
        faster for files. The model is as it was when it began, and another thread must not hold a lock then."""
        on_cpu = next(self.model.parameters()).device.type == "cpu"
        if count < 2 or sys.platform != "linux" or self.engine is not None or not on_cpu:
            yield
            return
        self.processes = Processes(self._search, count)
        try:
            yield
        finally:
            self.processes.close()
            self.processes = None

    def _search(self, batch: Searched) -> list[list[Hypothesis]]:
        sentences, decoding, prefix, numbers = batch
        model: Any = self.model  # a Transformer or an RNN: the search knows neither
        limits = [2 * len(ids) + 12 if decoding.longest is None else decoding.longest for ids in sentences]
        places = most_places(model.config)
        limits = limits if places is None else [min(limit, places) for limit in limits]
        if self.engine is not None:
            if self.begin or decoding.forced_eos:
                what = "this model's translations begin or end with certain tokens, which CTranslate2 would not know"
                raise InputError(what, fix="leave out the engine")
            before, after = self.around
            whole = [[*before, *ids, *after] for ids in sentences]
            return self.engine.search(whole, limits=limits, decoding=decoding, prefix=prefix)
        device = next(model.parameters()).device
        source, segments = (part.to(device) for part in self.padded(sentences))
        rules: list[Rule] = [] if prefix else [Certain(place, token) for place, token in enumerate(self.begin)]
        if decoding.forced_eos and decoding.longest is not None:
            rules.append(Certain(decoding.longest - 1, self.target.eos))
        rules += [NoRepeat(decoding.no_repeat)] if decoding.no_repeat else []
        common: dict[str, Any] = {
            "bos": self.target.bos,
            "eos": self.target.eos,
            "longest": limits,
            "shortest": decoding.shortest,
            "forbidden": self.forbidden,
            "rules": rules,
            "prefix": prefix,
            "length_penalty": decoding.length_penalty,
        }
        if decoding.samples:
            return sample(
                model,
                source,
                segments,
                seed=[counter_seed(decoding.seed, i) for i in numbers],
                samples=decoding.samples,
                temperature=decoding.temperature,
                top_k=decoding.top_k or None,
                top_p=decoding.top_p,
                **common,
            )
        if decoding.beam == 1:
            return [[best] for best in greedy(model, source, segments, **common)]
        n_best = min(decoding.n_best, decoding.beam)
        return beam(model, source, segments, beam=decoding.beam, n_best=n_best, **common)

    def evaluate(
        self, pairs: Pairs, *, bootstrap: int = 0, **settings: Any
    ) -> tuple[Scores | Rouge, list[Translation]]:
        """The scores of the translations of `pairs`, and the translations."""
        made = self.search(pairs.source, **settings)
        texts = [translation.text for translation in made]
        return self.metric.score(texts, pairs.references, bootstrap=bootstrap), made

    def loss(self, pairs: Pairs) -> float:
        """Nats a token of the first references. Raises InputError for texts that the model has not the places for, or a
        model whose sources end otherwise than its targets."""
        sides = self.encode(pairs.source)[0], self.target.encode(pairs.target)
        whole = framed([pair for pair in zip(*sides, strict=True) if all(pair)], self.about)
        if (places := most_places(self.model.config)) is not None:
            check_places([ids for pair in whole for ids in pair], places, where=pairs.name)
        nats, tokens = target_nats(self.model, whole, ends_of(self.target, self.about))
        return nats / tokens
