"""What a model looked at to say the words of translations that are given.

A token is aligned to what the model looked at to say it, the mean over the heads and layers that look at the source (as
Koehn and Knowles 2017, section 3.5); marks that begin and end texts are left out.

S source tokens, T target tokens, I source words, J target words, W words.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.documents.words import Span, words_in
from heedful.data.tokenizer import Ids
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import DecoderOnlyTranslator, Seq2Seq
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.pairs.weigh import batches_of, refuse_long_targets


def attended_words(
    translator: BaseTranslator, pairs: Sequence[tuple[str, str]]
) -> Iterator[tuple[list[Span], list[Span], Float[Tensor, "J I"]]]:
    """The words of each source and of its translation, and what share of each target word's attention each source word
    has; one that the model does not read, as its source is too long, has none. Raises InputError for a model that
    another library holds, and TextError for a text of more tokens than the model can read."""
    if translator.engine is not None:
        raise InputError("another library does not tell what was looked at", fix="leave out the engine")
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    longest, read = translator.spec.longest_source, [*map(translator.as_read, sources)]
    heard = [(ids[:longest], spans[:longest]) for ids, spans in translator.source.encode_placed(read)]
    spoken = translator.target.encode_placed(targets)
    translator.refuse_too_long(sources, [ids for ids, _ in heard])
    refuse_long_targets(translator, targets, [ids for ids, _ in spoken])
    looked = attended(translator, [(own[0], other[0]) for own, other in zip(heard, spoken, strict=True)])
    for (source, target), own, other, shares in zip(pairs, heard, spoken, looked, strict=True):
        words = words_in(source), words_in(target)
        hearing, saying = _of_words(words[0], own[1]), _of_words(words[1], other[1])
        # Added up over the tokens of a source word, the mean over those of a target word.
        yield *words, saying / saying.sum(1, keepdim=True).clamp(min=1) @ shares @ hearing.T


def _of_words(words: Sequence[Span], tokens: Sequence[Span]) -> Float[Tensor, "W T"]:
    """1 where a token has a character of a word."""
    both = torch.zeros(len(words), len(tokens))
    for row, (begin, end) in enumerate(words):
        for column, (first, last) in enumerate(tokens):
            both[row, column] = float(first < end and last > begin)
    return both


@torch.inference_mode()
def attended(translator: BaseTranslator, pairs: Sequence[tuple[Ids, Ids]]) -> list[Float[Tensor, "T S"]]:
    """What share each token of a source has of what was looked at to say each token of its translation."""
    model, begin, column = translator.model, len(translator.begin), len(translator.around[0])
    made = [torch.zeros(len(target), len(source)) for source, target in pairs]
    some = [number for number, pair in enumerate(pairs) if all(pair)]
    filled = [(pairs[n][0], [*translator.begin, *pairs[n][1]]) for n in some]
    alone = isinstance(model, DecoderOnlyTranslator)
    by_nearness = isinstance(model, DecoderOnlyTranslator) and model.lm.stack.by_nearness  # which moves padding
    for group, source, segments, read, real in batches_of(translator, filled, alone=by_nearness):
        queries = range(source.shape[1], source.shape[1] + read.shape[1]) if alone else None
        with record(model, "*cross_attention" if isinstance(model, Seq2Seq) else "*", queries=queries) as recording:
            model.hidden(source, read, segments, real)
        weights = crossing({name: recording.weights(name) for name in recording.names}, source.shape[1])
        for number, own in zip((some[i] for i in group), weights, strict=True):  # a row is of the token before it
            heard, spoken = map(len, pairs[number])
            made[number] = own[begin : begin + spoken, column : column + heard]
    return made


def crossing(weights: dict[str, Float[Tensor, "B H _ _"]], source: int) -> Float[Tensor, "B T S"]:
    """What each step looked at in the source, the mean over heads and layers; of a decoder alone, which looks at the
    source and at itself, the source's part."""
    layers = [each for name, each in weights.items() if not name.startswith("encoder")]
    across = [each for name, each in weights.items() if name.rpartition(".")[2] in ("cross_attention", "attention")]
    return torch.stack([each[..., :source].mean(1) for each in across or layers]).mean(0)
