"""Fills masks with a trained encoder: all masks of a text are hidden, and all other tokens are visible, on both sides
(Devlin et al. 2019, section 3.1, task 1)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypedDict

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.core.seeds import counter_seed
from heedful.data.batches import of_like_length, pad
from heedful.data.blanks import MaskedRows, Masker, PairKind, PairSampler, packed, pieces
from heedful.data.frame import Frame
from heedful.data.text.documents import read_text
from heedful.data.tokenizer import MASK, Tokenizer
from heedful.errors import InputError, TextError
from heedful.metrics.nats import Nats
from heedful.models.encoder import Encoder
from heedful.run.task import Ask, Scored
from heedful.tasks.fill.options import FillOptions
from heedful.tasks.shared.asked import refuse_no_answers
from heedful.tasks.shared.lengths import shorten
from heedful.tasks.shared.one_or_many import listed, one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.reading import READ
from heedful.tasks.shared.served import Reads, TextModel, refuse_nan_answers

LOGITS = 2048  # that count as a token that is read


@dataclass(frozen=True)
class Named(Nats):
    """The likelihood of hidden tokens, and how many of them a model predicted correctly."""

    right: int
    pair_accuracy: float | None = None  # for a model of pairs: the accuracy of its pair classification

    @property
    def accuracy(self) -> float:
        return self.right / self.tokens

    def scores(self) -> dict[str, float]:
        found = {"loss": self.loss, "perplexity": self.perplexity, "accuracy": self.accuracy}
        return found if self.pair_accuracy is None else found | {"pair_accuracy": self.pair_accuracy}


class Candidate(NamedTuple):
    token: str  # a replacement for "<mask>", without the space before it
    score: float  # its probability among the whole vocabulary


class Filled(NamedTuple):
    """The most likely tokens for one mask of a text, while all its masks are hidden."""

    text: str
    mask: int  # the number of the mask, from 0
    candidates: list[Candidate]


class Filler(TextModel[Encoder]):
    """A trained encoder and its tokenizer."""

    task: ClassVar = "fill"
    purpose: ClassVar = "filling masks"

    pairs: PairKind  # the kind of pairs that it was trained to classify

    def __init__(self, model: Encoder, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        super().__init__(model, tokenizer, about)
        self.masker, self.pairs = Masker(tokenizer), about.get("pairs", "none")
        self.space = " " if tokenizer.carries_spaces else ""  # part of a token, and before a mask

    @property
    def reads(self) -> Reads:
        frame = Frame([self.tokenizer.bos], [], [self.tokenizer.eos])
        return Reads(self.model, frame, self.tokenizer.encode_masked)

    @property
    def context(self) -> int:
        """The number of tokens that the model can read at once."""
        return self.model.config.embed.context_length

    @one_or_many()
    def fill(self, texts: Sequence[str], *, top: int = 5) -> list[list[Filled]]:
        """Returns one answer per "<mask>" of each text, with the `top` most likely tokens that are not control tokens.

        Raises InputError for a text without a mask, or with more tokens than the model can read at once.
        """
        refuse_no_answers(top)
        own = self.tokenizer
        rows = [[own.bos, *ids, own.eos] for ids in own.encode_masked(texts)]
        for text, ids in zip(texts, rows, strict=True):
            if self.masker.mask not in ids:
                raise TextError(f"no {MASK} in {shorten(text)}", fix=f"write {MASK} where a word is to be found")
            if len(ids) > self.context:
                what = f"{len(ids)} tokens, but the model reads at most {self.context}"
                raise TextError(what, where=shorten(text), fix="give less text around the mask")
        made: list[list[Filled]] = [[] for _ in texts]
        logits = [ids.count(self.masker.mask) * own.size // LOGITS for ids in rows]
        for group in of_like_length([*map(max, map(len, rows), logits)], READ):
            tokens, segments = pad([rows[i] for i in group], after=(), filler=own.pad)
            hidden = tokens == self.masker.mask
            chances = self._logits(tokens, segments, hidden).softmax(1)
            best = self._of_text(chances, 0.0).topk(min(top, len(self.masker.texts)))
            owners = [group[row] for row in hidden.nonzero()[:, 0].tolist()]
            for i, scores, words in zip(owners, best.values.tolist(), best.indices.tolist(), strict=True):
                candidates = [Candidate(self._word(word), score) for word, score in zip(words, scores, strict=True)]
                made[i].append(Filled(texts[i], len(made[i]), candidates))
        return made

    @checks_arguments
    def measure(self, texts: str | Sequence[str]) -> Named:
        """Hides SHARE of the tokens, the same ones each time, and predicts them; a model of pairs also classifies pairs
        that are made from the texts."""
        nats, right, count = 0.0, 0, 0
        texts = listed(texts)
        for n, rows in enumerate(self._rows(texts, PairSampler(self.tokenizer, "none"))):
            tokens, segments, _, words, chosen, _ = self.masker.hide_in(rows, "evaluate", n, mixed=False)
            named, true = self._named(tokens, segments, chosen), words[chosen]
            nats -= float(named.gather(1, true[:, None]).sum(dtype=torch.float64))
            right += int((named.argmax(1) == true).sum())
            count += len(named)
        if not count:
            raise InputError("no text to hide words of", fix="give some text")
        return Named(nats, count, right, self._pair_accuracy(texts) if self.pairs != "none" else None)

    def sample(self, text: str) -> str:
        """The beginning of a text, with each hidden token as "[prediction|original]"."""
        ids = self.tokenizer.encode_whole([text])[0][: self.context - 2]
        words = torch.tensor([self.tokenizer.bos, *ids, self.tokenizer.eos])
        tokens, chosen = self.masker.hide(words, counter_seed("sample", text), mixed=False)
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
        for tokens, segments, types, _, _, pairs in self._rows(texts, PairSampler(self.tokenizer, self.pairs)):
            hidden = self.model.hidden(tokens.to(device), segments.to(device), types.to(device))
            told = self.model.next_sentence(hidden[pairs.to(device) >= 0]).argmax(1).cpu()
            right, count = right + int((told == pairs[pairs >= 0]).sum()), count + len(told)
        return right / max(1, count)

    def _rows(self, texts: Sequence[str], sampler: PairSampler) -> Iterator[MaskedRows]:
        longest = self.context - 2 - sampler.extra
        whole = [piece for ids in self.tokenizer.encode_whole(texts) for piece in pieces(ids, longest)]
        told = sampler.join(whole, longest, "evaluate")
        rows = max(1, READ // self.context)
        return packed(told, range(len(told)), context=self.context, rows=rows, tokenizer=self.tokenizer)

    def _named(
        self, tokens: Int[Tensor, "B T"], segments: Int[Tensor, "B T"], chosen: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "N V"]:
        """The log-probability (nats) of every token at every chosen position; that of control tokens is -inf."""
        return self._of_text(self._logits(tokens, segments, chosen), -torch.inf).log_softmax(1)

    def _of_text(self, values: Float[Tensor, "N V"], others: float) -> Float[Tensor, "N V"]:
        """The values, with those of control tokens replaced by `others`."""
        texts = self.masker.texts
        return torch.full_like(values, others).index_copy(1, texts, values[:, texts])

    @torch.inference_mode()
    def _logits(
        self, tokens: Int[Tensor, "B T"], segments: Int[Tensor, "B T"], chosen: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "N V"]:
        """The logits of every token at every chosen position."""
        device = self.model.embed.tokens.weight.device
        hidden = self.model.hidden(tokens.to(device), segments.to(device))[chosen.to(device)]
        logits = self.model.predict_tokens(hidden).float().cpu()
        refuse_nan_answers(logits)
        return logits

    def _word(self, index: int) -> str:
        return self.tokenizer.decode_whole([index]).removeprefix(self.space)


class FilledMask(TypedDict):
    """A mask's answer as a record."""

    text: str
    mask: int
    candidates: list[dict[str, Any]]  # of `Candidate`


def fill_texts(filler: Filler, texts: Sequence[str], options: FillOptions) -> Iterator[FilledMask]:
    for own in fill_each(filler, texts, options):
        yield from own


def fill_each(filler: Filler, texts: Sequence[str], options: FillOptions) -> Iterator[list[FilledMask]]:
    """Like `fill_texts`, with a list for each text."""
    for own in filler.fill(texts, top=options.top):
        yield [
            {"text": each.text, "mask": each.mask, "candidates": [one._asdict() for one in each.candidates]}
            for each in own
        ]


ASK = Ask(fill_texts, FillOptions, each=fill_each)


def score_filler(filler: Filler, options: DataOptions) -> Iterator[Scored]:
    found = filler.measure(read_text(options.path))
    yield Scored(options.path, {**found.scores(), "tokens": found.tokens})
