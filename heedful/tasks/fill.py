"""Naming hidden words: `FillTask` is what the training loop needs, `Filler` what a person uses.

Of a text's tokens some are chosen, and hidden; the model sees all others, before and after, and says what stood there
(Devlin et al. 2019, section 3.1, task 1). Which are chosen is drawn anew in every epoch (Liu et al. 2019, section 4.1).
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from heedful.data.batches import by_length, pack_rows, shuffled
from heedful.data.tokenizer import BOS, EOS, MASK, PAD, SPECIALS, Tokenizer
from heedful.errors import InputError, NonFiniteError
from heedful.models.encoder import Encoder
from heedful.tasks.folder import read_run
from heedful.tasks.recipe import TrainRecipe
from heedful.train.loop import counter_seed
from heedful.train.loss import Loss, linear_cross_entropy

Ids = list[int]
SHARE = 0.15  # of the tokens are chosen
HIDDEN, OTHER = 0.8, 0.1  # of those are hidden, and replaced by another token; the rest stay, so that all are read
SHORT = 0.1  # of the pieces of a long text are shorter than they could be: the model meets short texts too
READ = 8192  # tokens that are read at a time


class Blanks(NamedTuple):
    """Rows of texts: `tokens` is what the model sees of `words`, and is to be named where `chosen`. Segment 0 is
    padding, and the texts of a row are numbered from 1."""

    tokens: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    words: Int[Tensor, "B T"]
    chosen: Bool[Tensor, "B T"]

    @property
    def rows(self) -> int:
        return len(self.tokens)

    def part(self, rank: int, ranks: int) -> "Blanks":
        """The rows that are `rank`'s of `ranks` that share this batch."""
        return Blanks(*(tensor[rank::ranks] for tensor in self))


class Hider:
    """Chooses tokens of a row and hides them. With `whole_words`, the tokens of a word are chosen together."""

    def __init__(self, tokenizer: Tokenizer, *, whole_words: bool = False) -> None:
        assert tokenizer.mask is not None
        self.mask = tokenizer.mask
        letters = [tokenizer.letters(index) for index in range(tokenizer.size)] if whole_words else []
        self.begins, self.ends = torch.tensor(letters or [(False, False)] * tokenizer.size).unbind(1)

    def choose(self, words: Int[Tensor, "T"], draw: torch.Generator) -> Int[Tensor, "N"]:
        """The places of SHARE of the tokens that are text, at least one; of whole words, those that fit in."""
        real = (words >= len(SPECIALS)).nonzero()[:, 0]
        if not len(real):
            return real
        joined = self.ends[words[real[:-1]]] & self.begins[words[real[1:]]] & (real.diff() == 1)
        word = pad((~joined).cumsum(0), (1, 0))
        order = torch.rand(len(real), generator=draw)[word].argsort(stable=True)  # by a number a word
        count = max(1, round(SHARE * len(real)))
        ends = pad(word[order].diff() != 0, (0, 1), value=True).nonzero()[:, 0] + 1
        whole = ends[ends <= count]
        return real[order[: int(whole[-1]) if len(whole) else count]]

    def hide(self, words: Int[Tensor, "T"], seed: int, *, mixed: bool) -> tuple[Int[Tensor, "T"], Bool[Tensor, "T"]]:
        """What is seen of a row, and which of its tokens are to be named; `mixed`: not all of those are hidden."""
        draw = torch.Generator().manual_seed(seed)
        places = self.choose(words, draw)
        tokens, chosen = words.clone(), torch.zeros_like(words, dtype=torch.bool)
        chosen[places], tokens[places] = True, self.mask
        if mixed:
            chance = torch.rand(len(places), generator=draw)
            others = torch.randint(len(SPECIALS), self.mask, (len(places),), generator=draw)
            tokens[places[chance >= HIDDEN]] = others[chance >= HIDDEN]
            kept = places[chance >= HIDDEN + OTHER]
            tokens[kept] = words[kept]
        return tokens, chosen

    def blanks(self, words: Int[Tensor, "B T"], segments: Int[Tensor, "B T"], *key: object, mixed: bool) -> Blanks:
        """Row i is drawn from the counter (*key, i) alone."""
        rows = [self.hide(row, counter_seed(*key, i), mixed=mixed) for i, row in enumerate(words)]
        tokens, chosen = (torch.stack(parts) for parts in zip(*rows, strict=True))
        return Blanks(tokens, segments, words, chosen)


def pieces(ids: Ids, longest: int, seed: int | None = None) -> Iterator[Ids]:
    """A text in pieces that the model can read. With a seed, a text that needs several is cut at other places: the
    first ends anywhere, and a few others early."""
    draw, begin = random.Random(seed), 0
    while begin < len(ids):
        early = seed is not None and len(ids) > longest and (begin == 0 or draw.random() < SHORT)
        end = begin + (draw.randint(1, longest) if early else longest)
        yield ids[begin:end]
        begin = end


def packed(texts: Sequence[Ids], order: Sequence[int], *, context: int, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of (tokens, segments), each text begun by BOS and ended by EOS: sources of pairs without targets."""
    pairs = [([BOS, *ids], Ids()) for ids in texts]
    for batch in pack_rows(pairs, order, row=context, rows=rows):
        yield batch.source, batch.source_segments


class FillTask:
    """Texts packed into rows of `context` tokens, and the cross-entropy of what was chosen in them."""

    def __init__(self, documents: Sequence[Ids], recipe: TrainRecipe, *, context: int, hider: Hider) -> None:
        self.documents, self.recipe, self.context, self.hider = documents, recipe, context, hider
        self._kept: tuple[int, list[Blanks]] | None = None

    def batches(self, epoch: int) -> list[Blanks]:
        if self._kept is None or self._kept[0] != epoch:
            seed, longest = self.recipe.seed, self.context - 2
            texts = [
                piece
                for i, ids in enumerate(self.documents)
                for piece in pieces(ids, longest, counter_seed(seed, "pieces", epoch, i))
            ]
            order, rows = shuffled(len(texts), seed, epoch), max(1, self.recipe.tokens // self.context)
            batches = packed(texts, order, context=self.context, rows=rows)
            made = [self.hider.blanks(*each, seed, "blanks", epoch, n, mixed=True) for n, each in enumerate(batches)]
            self._kept = epoch, made
        return self._kept[1]

    def loss(self, model: Encoder, batch: Blanks) -> Loss:
        assert model.transform is not None
        assert model.head is not None
        head = model.head
        tokens, segments, words, chosen = (part.to(head.weight.device) for part in batch)
        hidden = model.transform(model.hidden(tokens, segments)[chosen])
        smoothing = self.recipe.smoothing or 0.0
        total = linear_cross_entropy(hidden, head.weight, head.bias, words[chosen], smoothing=smoothing)
        return Loss(total, int(batch.chosen.sum()))


@dataclass(frozen=True)
class Named:
    """Hidden tokens of texts, and how a model named them: nats summed, and how many it named right."""

    nats: float
    right: int
    tokens: int

    @property
    def loss(self) -> float:
        """Nats a hidden token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 700.0))

    @property
    def accuracy(self) -> float:
        return self.right / self.tokens


class Candidate(NamedTuple):
    token: str  # what may stand in place of "<mask>", without the space before it
    score: float  # its probability


class Filled(NamedTuple):
    """What may stand at one mask of a text, the likeliest first, all its masks being hidden."""

    text: str
    mask: int  # which of the masks, from 0
    candidates: list[Candidate]


class Filler:
    """A trained encoder and its tokenizer."""

    def __init__(self, model: Encoder, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.tokenizer, self.about = tokenizer, about
        self.hider = Hider(tokenizer)

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Filler":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, tokenizer, _, about = read_run(Path(run))
        if about.get("task") != "fill":
            raise InputError(f"a model for {about.get('task')!r}, not for filling masks", where=str(run))
        return cls(model.to(device), tokenizer, about)

    @property
    def context(self) -> int:
        """How many tokens the model can read at once."""
        return self.model.config.embed.places.size

    def fill(self, texts: Sequence[str], *, top: int = 5) -> list[list[Filled]]:
        """For each text one answer a "<mask>" in it, each with the `top` likeliest tokens.

        Raises InputError for a text without a mask, or with more tokens than the model can read at once.
        """
        rows = [[BOS, *ids, EOS] for ids in self.tokenizer.encode_masked(texts)]
        for text, ids in zip(texts, rows, strict=True):
            if self.hider.mask not in ids:
                raise InputError(f"no {MASK} in {text!r}", fix=f"write {MASK} where a word is to be found")
            if len(ids) > self.context:
                what = f"{len(ids)} tokens, but the model reads at most {self.context}"
                raise InputError(what, where=f"{text[:40]}...", fix="give less text around the mask")
        made: list[list[Filled]] = [[] for _ in texts]
        for group in by_length(rows, READ):
            length = max(len(rows[i]) for i in group)
            tokens = torch.tensor([rows[i] + [PAD] * (length - len(rows[i])) for i in group])
            segments = torch.tensor([[1] * len(rows[i]) + [0] * (length - len(rows[i])) for i in group])
            hidden = tokens == self.hider.mask
            best = self._named(tokens, segments, hidden).exp().topk(min(top, self.hider.mask - len(SPECIALS)))
            owners = [group[row] for row in hidden.nonzero()[:, 0].tolist()]
            for i, scores, words in zip(owners, best.values.tolist(), best.indices.tolist(), strict=True):
                candidates = [Candidate(self._word(word), score) for word, score in zip(words, scores, strict=True)]
                made[i].append(Filled(texts[i], len(made[i]), candidates))
        return made

    def evaluate(self, texts: Sequence[str]) -> Named:
        """Hides SHARE of the tokens, the same ones each time, and names them."""
        longest = self.context - 2
        whole = [piece for ids in self.tokenizer.encode_whole(texts) for piece in pieces(ids, longest)]
        nats, right, count = 0.0, 0, 0
        rows = max(1, READ // self.context)
        for n, each in enumerate(packed(whole, range(len(whole)), context=self.context, rows=rows)):
            tokens, segments, words, chosen = self.hider.blanks(*each, "evaluate", n, mixed=False)
            named, true = self._named(tokens, segments, chosen), words[chosen]
            nats -= float(named.gather(1, true[:, None]).sum(dtype=torch.float64))
            right += int((named.argmax(1) == true).sum())
            count += len(named)
        if not count:
            raise InputError("no text to hide words of", fix="give some text")
        return Named(nats, right, count)

    def sample(self, text: str) -> str:
        """The beginning of a text, its hidden tokens each as "[what the model says|what it was]"."""
        words = torch.tensor([[BOS, *self.tokenizer.encode_whole([text])[0][: self.context - 2], EOS]])
        tokens, segments, _, chosen = self.hider.blanks(words, torch.ones_like(words), "sample", text, mixed=False)
        said = words.clone()
        said[chosen] = self._named(tokens, segments, chosen).argmax(1)
        shown = []
        for was, named, hidden in zip(words[0].tolist(), said[0].tolist(), chosen[0].tolist(), strict=True):
            whole, word = self.tokenizer.decode_whole([was]), self._word(was)
            shown.append(f"{whole.removesuffix(word)}[{self._word(named)}|{word}]" if hidden else whole)
        return "".join(shown)

    @torch.inference_mode()
    def _named(
        self, tokens: Int[Tensor, "B T"], segments: Int[Tensor, "B T"], chosen: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "N V"]:
        """The log-probability (nats) of every token at every chosen place; control tokens have no chance."""
        device = self.model.embed.tokens.weight.device
        hidden = self.model.hidden(tokens.to(device), segments.to(device))[chosen.to(device)]
        logits = self.model.words(hidden).float().cpu()
        logits[:, [*range(len(SPECIALS)), self.hider.mask]] = -torch.inf
        if logits.isnan().any():
            raise NonFiniteError("the model's answers are not finite", fix="train it with a lower train.lr")
        return logits.log_softmax(1)

    def _word(self, index: int) -> str:
        return self.tokenizer.decode_whole([index]).removeprefix(" " if self.tokenizer.carries_spaces else "")
