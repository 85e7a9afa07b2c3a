"""Which words of a source became which words of a translation: read off what the model looked at, for translations
that it made itself and for any that are given.

A token is aligned to what the model looked at to say it, the mean over the heads and layers that look at the source (as
Koehn and Knowles 2017, section 3.5); marks that begin and end texts are left out. Each word of a translation is linked
to the one word of the source that most was looked at.

S source tokens, T target tokens, I source words, J target words.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heedful.data.batches import grouped
from heedful.errors import InputError, TextError
from heedful.look.record import record
from heedful.models import DecoderOnlyTranslator, Seq2Seq
from heedful.tasks.shared.lengths import most_positions, shorten
from heedful.tasks.translate.searching import Ids
from heedful.tasks.translate.use import Translator

Span = tuple[int, int]  # of a text's characters, from the first to before the last
TOKENS = 2048  # in a batch on either side, padding included
WORD, PART = re.compile(r"\S+"), re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Alignment:
    """The words of both texts, what share of each target word's attention each source word has, and which belong
    together: (word of the source, word of the target), numbered from 0, in the order of the target."""

    source: tuple[Span, ...]
    target: tuple[Span, ...]
    shares: Float[Tensor, "J I"]
    links: tuple[tuple[int, int], ...]


def words(text: str) -> list[Span]:
    """What blanks part: the words as tools count them that read alignments."""
    return [found.span() for found in WORD.finditer(text)]


def parts(text: str) -> list[Span]:
    """Words, and each mark of punctuation by itself."""
    return [found.span() for found in PART.finditer(text)]


def alignments(
    translator: Translator, pairs: Sequence[tuple[str, str]], *, cut: Callable[[str], list[Span]] = words
) -> Iterator[Alignment]:
    """Of each source and its translation, whose words `cut` tells, `words` or `parts`. A word that the model does not
    read, as its source is too long, is in no link. Raises InputError for a model that another library holds, and
    TextError for a text of more tokens than the model can read."""
    if translator.engine is not None:
        raise InputError("another library does not tell what was looked at", fix="leave out the engine")
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    longest = translator.about.get("longest_source")
    heard = [(ids[:longest], spans[:longest]) for ids, spans in translator.source.encode_placed(sources)]
    spoken = translator.target.encode_placed(targets)
    translator.refuse_too_long(sources, [ids for ids, _ in heard])
    most = most_positions(translator.model.config)
    for target, (ids, _) in zip(targets, spoken, strict=True):
        if most is not None and len(translator.begin) + len(ids) > most - 1:
            what = f"{len(ids):,} tokens, but the model writes at most {most - 1:,}"
            raise TextError(what, where=shorten(target), fix="give it in shorter parts")
    looked = attended(translator, [(own[0], other[0]) for own, other in zip(heard, spoken, strict=True)])
    for (source, target), own, other, shares in zip(pairs, heard, spoken, looked, strict=True):
        yield _aligned((cut(source), cut(target)), (own[1], other[1]), shares)


def _aligned(
    texts: tuple[list[Span], list[Span]], tokens: tuple[list[Span], list[Span]], shares: Float[Tensor, "T S"]
) -> Alignment:
    """The shares of tokens as those of words: added up over the tokens of a source word, the mean over those of a
    target word."""
    source, target = texts
    heard, spoken = (_of_words(*side) for side in zip(texts, tokens, strict=True))
    made = spoken / spoken.sum(1, keepdim=True).clamp(min=1) @ shares @ heard.T
    best = [int(row.argmax()) if row.numel() and row.max() > 0 else None for row in made]
    links = tuple((i, j) for j, i in enumerate(best) if i is not None)
    return Alignment(tuple(source), tuple(target), made, links)


def _of_words(words: Sequence[Span], tokens: Sequence[Span]) -> Float[Tensor, "W T"]:
    """1 where a token has a character of a word."""
    both = torch.zeros(len(words), len(tokens))
    for row, (begin, end) in enumerate(words):
        for column, (first, last) in enumerate(tokens):
            both[row, column] = float(first < end and last > begin)
    return both


@torch.inference_mode()
def attended(translator: Translator, pairs: Sequence[tuple[Ids, Ids]]) -> list[Float[Tensor, "T S"]]:
    """What share each token of a source has of what was looked at to say each token of its translation."""
    model, around, begin = translator.model, translator.around, [translator.target.bos, *translator.begin]
    device = next(model.parameters()).device
    made = [torch.zeros(len(target), len(source)) for source, target in pairs]
    some = [number for number, pair in enumerate(pairs) if all(pair)]
    lengths = [max(map(len, pair)) + len(begin) + sum(map(len, around)) for pair in pairs]
    for group in grouped(sorted(some, key=lengths.__getitem__), lengths, TOKENS):
        source, segments = (part.to(device) for part in translator.padded([pairs[n][0] for n in group]))
        said = [torch.tensor([*begin, *pairs[n][1]]) for n in group]
        read = pad_sequence(said, batch_first=True, padding_value=translator.target.pad).to(device)
        real = pad_sequence([torch.ones_like(ids) for ids in said], batch_first=True).to(device)
        alone = isinstance(model, DecoderOnlyTranslator)
        queries = range(source.shape[1], source.shape[1] + read.shape[1]) if alone else None
        with record(model, "*cross_attention" if isinstance(model, Seq2Seq) else "*", queries=queries) as recording:
            model.hidden(source, read, segments, real)
        weights = crossing({name: recording.weights(name) for name in recording.names}, source.shape[1])
        for number, own in zip(group, weights, strict=True):
            row, column = len(begin) - 1, len(around[0])  # a row is of the token before it
            heard, spoken = map(len, pairs[number])
            made[number] = own[row : row + spoken, column : column + heard]
    return made


def crossing(weights: dict[str, Float[Tensor, "B H _ _"]], source: int) -> Float[Tensor, "B T S"]:
    """What each step looked at in the source, the mean over heads and layers; of a decoder alone, which looks at the
    source and at itself, the source's part."""
    layers = [each for name, each in weights.items() if not name.startswith("encoder")]
    across = [each for name, each in weights.items() if name.rpartition(".")[2] in ("cross_attention", "attention")]
    return torch.stack([each[..., :source].mean(1) for each in across or layers]).mean(0)
