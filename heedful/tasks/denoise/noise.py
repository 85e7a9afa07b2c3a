"""Denoising: makes pairs of corrupted text and target from plain text, anew in every epoch.

A trained denoiser is a translator from marked text, and a start for other translators.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal

from heedful.core.seeds import random_stream
from heedful.data.stored import StoredTexts
from heedful.data.text.noise import hide_spans, infill, passages, permuted, sentences_of, words_of
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError
from heedful.tasks.translate.spec import TranslatorSpec

Passage = list[Ids]  # consecutive sentences
LONGEST_WORD = 24  # tokens per word, on average: more means that the text has no spaces between words


@dataclass(frozen=True)
class Noise:
    """How a passage is corrupted. "spans": the source has sentinels for spans, and the target consists of these spans
    (Raffel et al. 2020). "infill": the source has its sentences permuted and spans of words replaced by masks, and the
    target is the whole text (Lewis et al. 2020)."""

    objective: Literal["spans", "infill"]
    sentinels: Sequence[int]
    mask: int
    begins: frozenset[int]  # tokens that begin a word
    before: Sequence[int] = ()  # tokens before every source
    begin: Sequence[int] = ()  # tokens at the beginning of every target

    def pair(self, passage: Passage, *key: object) -> tuple[Ids, Ids]:
        """The source and target of a passage, drawn from this key alone."""
        draw, text = random_stream(*key), [token for sentence in passage for token in sentence]
        if self.objective == "spans":
            source, target = hide_spans(text, self.sentinels, draw)
        else:
            shuffled = [token for sentence in permuted(passage, draw) for token in sentence]
            source, target = infill(words_of(shuffled, self.begins), self.mask, draw), text
        return [*self.before, *source], [*self.begin, *target]


def make_noise(
    objective: Literal["spans", "infill"], tokenizer: Tokenizer, spec: TranslatorSpec, *, where: str = ""
) -> Noise:
    """Makes the noise for an objective. `spec` has the tokens around texts. Raises InputError
    for a vocabulary without the marks of this objective."""
    mask, sentinels = tokenizer.mask, tokenizer.sentinels
    if len(sentinels) < 2 if objective == "spans" else mask is None:
        what = f"its vocabulary has no marks for data.objective = {objective}"
        raise InputError(what, where=where, fix="choose another objective, or another model to start from")
    begins = frozenset(i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.size))) if piece.startswith("▁"))
    hidden = -1 if mask is None else mask
    return Noise(objective, sentinels, hidden, begins, spec.before or (), spec.begin or ())


def read_passages(texts: Iterable[str], tokenizer: Tokenizer, longest: int) -> list[Passage]:
    """Splits the texts into passages of whole sentences, at most `longest` tokens each."""
    split = [sentences_of(text) for text in texts]
    encoded = iter(tokenizer.encode([sentence for own in split for sentence in own]))
    return [passage for own in split for passage in passages(islice(encoded, len(own)), longest)]


@dataclass(frozen=True)
class StoredPassages:
    """The passages of prepared documents, whose sentences have a token between them."""

    documents: StoredTexts
    longest: int

    def turn(self, seed: int, number: int) -> Iterator[Passage]:
        """Those of a turn of `documents`, in their order."""
        between = self.documents.apart
        for ids in self.documents.turn(seed, number):
            split = (list(some) for is_between, some in groupby(ids, between.__eq__) if not is_between)
            yield from passages(split, self.longest)


def fixed(passages: Sequence[Passage], noise: Noise) -> list[tuple[Ids, Ids]]:
    """The pairs for measurements: the same noise each time."""
    return [noise.pair(passage, "measure", i) for i, passage in enumerate(passages)]


def check_words(passages: Sequence[Passage], noise: Noise) -> None:
    """Raises InputError for texts without spaces between words, of which whole sentences would be hidden."""
    texts = [[token for sentence in passage for token in sentence] for passage in passages[:1000]]
    tokens, words = sum(map(len, texts)), sum(len(words_of(text, noise.begins)) for text in texts)
    if noise.objective == "infill" and tokens > LONGEST_WORD * words:
        what = f"{tokens / words:.0f} tokens stand between two spaces, so that there are no words to hide"
        raise InputError(what, where="data.objective = infill", fix="--set data.objective=spans")
