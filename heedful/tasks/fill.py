"""Naming hidden words: `FillTask` is what the training loop needs, `Filler` what a person uses.

Of a text's tokens some are chosen, and hidden; the model sees all others, before and after, and says what stood there
(Devlin et al. 2019, section 3.1, task 1). Which are chosen is drawn anew in every epoch (Liu et al. 2019, section 4.1).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.data.batches import by_length, pad, shuffled
from heedful.data.tokenizer import MASK, Tokenizer
from heedful.errors import InputError, NonFiniteError
from heedful.models.encoder import Encoder
from heedful.models.inference import for_inference
from heedful.tasks.blanks import SHARE, WHOLE, Blanks, Hider, Joiner, Pairs, packed, pieces
from heedful.tasks.folder import read_run
from heedful.tasks.recipe import TrainRecipe
from heedful.train.loop import counter_seed
from heedful.train.loss import Loss, linear_cross_entropy

Ids = list[int]
READ = 8192  # tokens that are read at a time
LEAST = 8  # tokens of context


class FillTask:
    """Texts packed into rows of `context` tokens, and the cross-entropy of what was chosen in them; of pairs, that of
    telling them apart as well, which weighs as much."""

    def __init__(
        self, documents: Sequence[Ids], recipe: TrainRecipe, *, context: int, hider: Hider, joiner: Joiner
    ) -> None:
        if context < LEAST:
            raise InputError(f"{context} tokens are too few to read", fix=f"give model.context at least {LEAST}")
        if not any(documents):
            raise InputError("no text to learn from", fix="give training text")
        self.documents, self.recipe, self.context = documents, recipe, context
        self.hider, self.joiner, self.longest = hider, joiner, context - 2 - joiner.extra
        texts = sum(-(-len(ids) // self.longest) for ids in documents)
        self.weight = SHARE * sum(map(len, documents)) / ((1 - WHOLE) * texts)  # chosen tokens a pair
        self._kept: tuple[int, list[Blanks]] | None = None

    def batches(self, epoch: int) -> list[Blanks]:
        if self._kept is None or self._kept[0] != epoch:
            seed = self.recipe.seed
            texts = [
                piece
                for i, ids in enumerate(self.documents)
                for piece in pieces(ids, self.longest, counter_seed(seed, "pieces", epoch, i))
            ]
            told = self.joiner.join(texts, self.longest, seed, "pairs", epoch)
            order, rows = shuffled(len(told), seed, epoch), max(1, self.recipe.tokens // self.context)
            batches = packed(told, order, context=self.context, rows=rows, tokenizer=self.hider.tokenizer)
            made = [self.hider.hide_in(each, seed, "blanks", epoch, n, mixed=True) for n, each in enumerate(batches)]
            self._kept = epoch, made
        return self._kept[1]

    def loss(self, model: Encoder, batch: Blanks) -> Loss:
        assert model.transform is not None
        assert model.head is not None
        head = model.head
        tokens, segments, types, words, chosen, pairs = (part.to(head.weight.device) for part in batch)
        hidden = model.hidden(tokens, segments, types)
        named, smoothing = model.transform(hidden[chosen]), self.recipe.smoothing or 0.0
        total = linear_cross_entropy(named, head.weight, head.bias, words[chosen], smoothing=smoothing)
        if self.joiner.kind != "none":
            logits = model.follows(hidden[pairs >= 0]).float()
            total = total + self.weight * F.cross_entropy(logits, pairs[pairs >= 0], reduction="sum")
        return Loss(total, int(batch.chosen.sum()))


@dataclass(frozen=True)
class Named:
    """Hidden tokens of texts, and how a model named them: nats summed, and how many it named right."""

    nats: float
    right: int
    tokens: int
    pair_accuracy: float | None = None  # of a model of pairs: how often it told right from wrong ones

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

    def scores(self) -> dict[str, float]:
        found = {"loss": self.loss, "perplexity": self.perplexity, "accuracy": self.accuracy}
        return found if self.pair_accuracy is None else found | {"pair_accuracy": self.pair_accuracy}


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

    pairs: Pairs  # that it was trained to tell apart

    def __init__(self, model: Encoder, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.tokenizer, self.about = tokenizer, about
        self.hider, self.pairs = Hider(tokenizer), about.get("pairs", "none")
        self.space = " " if tokenizer.carries_spaces else ""  # part of a token, and before a mask

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Filler":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, tokenizer, _, about = read_run(Path(run))
        if about.get("task") != "fill":
            raise InputError(f"a model for {about.get('task')!r}, not for filling masks", where=str(run))
        return cls(for_inference(model.to(device)), tokenizer, about)

    @property
    def context(self) -> int:
        """How many tokens the model can read at once."""
        return self.model.config.embed.places.size

    def fill(self, texts: Sequence[str], *, top: int = 5) -> list[list[Filled]]:
        """For each text one answer a "<mask>" in it, each with the `top` likeliest tokens.

        Raises InputError for a text without a mask, or with more tokens than the model can read at once.
        """
        own = self.tokenizer
        rows = [[own.bos, *ids, own.eos] for ids in own.encode_masked(texts)]
        for text, ids in zip(texts, rows, strict=True):
            if self.hider.mask not in ids:
                raise InputError(f"no {MASK} in {text!r}", fix=f"write {MASK} where a word is to be found")
            if len(ids) > self.context:
                what = f"{len(ids)} tokens, but the model reads at most {self.context}"
                raise InputError(what, where=f"{text[:40]}...", fix="give less text around the mask")
        made: list[list[Filled]] = [[] for _ in texts]
        for group in by_length(rows, READ):
            tokens, segments = pad([rows[i] for i in group], after=(), filler=own.pad)
            hidden = tokens == self.hider.mask
            best = self._named(tokens, segments, hidden).exp().topk(min(top, len(self.hider.texts)))
            owners = [group[row] for row in hidden.nonzero()[:, 0].tolist()]
            for i, scores, words in zip(owners, best.values.tolist(), best.indices.tolist(), strict=True):
                candidates = [Candidate(self._word(word), score) for word, score in zip(words, scores, strict=True)]
                made[i].append(Filled(texts[i], len(made[i]), candidates))
        return made

    def evaluate(self, texts: Sequence[str]) -> Named:
        """Hides SHARE of the tokens, the same ones each time, and names them; of a model of pairs, makes such of the
        texts, and tells them apart."""
        nats, right, count = 0.0, 0, 0
        for n, rows in enumerate(self._rows(texts, Joiner(self.tokenizer, "none"))):
            tokens, segments, _, words, chosen, _ = self.hider.hide_in(rows, "evaluate", n, mixed=False)
            named, true = self._named(tokens, segments, chosen), words[chosen]
            nats -= float(named.gather(1, true[:, None]).sum(dtype=torch.float64))
            right += int((named.argmax(1) == true).sum())
            count += len(named)
        if not count:
            raise InputError("no text to hide words of", fix="give some text")
        return Named(nats, right, count, self._pair_accuracy(texts) if self.pairs != "none" else None)

    def sample(self, text: str) -> str:
        """The beginning of a text, its hidden tokens each as "[what the model says|what it was]"."""
        ids = self.tokenizer.encode_whole([text])[0][: self.context - 2]
        words = torch.tensor([self.tokenizer.bos, *ids, self.tokenizer.eos])
        tokens, chosen = self.hider.hide(words, counter_seed("sample", text), mixed=False)
        said = words.clone()
        said[chosen] = self._named(tokens[None], torch.ones_like(words)[None], chosen[None]).argmax(1)
        shown = []
        for was, named, hidden in zip(words.tolist(), said.tolist(), chosen.tolist(), strict=True):
            whole, word = self.tokenizer.decode_whole([was]), self._word(was)
            shown.append(f"{whole.removesuffix(word)}[{self._word(named)}|{word}]" if hidden else whole)
        return "".join(shown)

    @torch.inference_mode()
    def _pair_accuracy(self, texts: Sequence[str]) -> float:
        device, right, count = self.model.embed.tokens.weight.device, 0, 0
        for tokens, segments, types, _, _, pairs in self._rows(texts, Joiner(self.tokenizer, self.pairs)):
            hidden = self.model.hidden(tokens.to(device), segments.to(device), types.to(device))
            told = self.model.follows(hidden[pairs.to(device) >= 0]).argmax(1).cpu()
            right, count = right + int((told == pairs[pairs >= 0]).sum()), count + len(told)
        return right / max(1, count)

    def _rows(self, texts: Sequence[str], joiner: Joiner) -> Iterator[Blanks]:
        longest = self.context - 2 - joiner.extra
        whole = [piece for ids in self.tokenizer.encode_whole(texts) for piece in pieces(ids, longest)]
        told = joiner.join(whole, longest, "evaluate")
        rows = max(1, READ // self.context)
        return packed(told, range(len(told)), context=self.context, rows=rows, tokenizer=self.tokenizer)

    @torch.inference_mode()
    def _named(
        self, tokens: Int[Tensor, "B T"], segments: Int[Tensor, "B T"], chosen: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "N V"]:
        """The log-probability (nats) of every token at every chosen place; control tokens have no chance."""
        device, texts = self.model.embed.tokens.weight.device, self.hider.texts
        hidden = self.model.hidden(tokens.to(device), segments.to(device))[chosen.to(device)]
        logits = self.model.words(hidden).float().cpu()
        if logits.isnan().any():
            raise NonFiniteError("the model's answers are not finite", fix="train it with a lower train.lr")
        return torch.full_like(logits, -torch.inf).index_copy(1, texts, logits[:, texts]).log_softmax(1)

    def _word(self, index: int) -> str:
        return self.tokenizer.decode_whole([index]).removeprefix(self.space)
