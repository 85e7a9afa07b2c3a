"""Pairs that are other ones in each epoch: sources as people type them, and texts cut otherwise into tokens."""

from collections.abc import Callable, Iterable, Sequence
from random import Random

from heedful.core.seeds import random_stream
from heedful.data.bpe_dropout import BPEDropout
from heedful.data.text.rough import made_url, with_typos, without_punctuation
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.tasks.translate.recipe import NoiseSection, TranslateRecipe

Pair = tuple[Ids, Ids]


def roughened(source: str, target: str, noise: NoiseSection, draw: Random) -> tuple[str, str]:
    """The pair with what its noise draws; a URL is pasted at the end of both sides, all else is of the source."""
    capitals, lower, typos, punctuation, urls = (draw.random() for _ in range(5))
    if typos < noise.typos:
        source = with_typos(source, draw)
    if punctuation < noise.punctuation:
        source = without_punctuation(source)
    if capitals < noise.capitals:
        source = source.upper()
    elif lower < noise.lower:
        source = source.lower()
    if urls < noise.urls:
        url = made_url(draw)
        source, target = f"{source} {url}", f"{target} {url}"
    return source, target


class Variants:
    """Makes the pairs of an epoch, of their texts. What happens to a pair depends on the seed, the epoch and its place
    in the order of that alone."""

    def __init__(
        self,
        texts: Sequence[tuple[str, str]],
        sides: tuple[Tokenizer, Tokenizer],
        recipe: TranslateRecipe,
        *,
        framed: Callable[[Iterable[Pair], Sequence[int]], list[Pair]],
        longest: int,
    ) -> None:
        """`framed` makes of pairs' tokens, and of their numbers, what the model reads, of fewer than `longest` tokens a
        side. Raises InputError for BPE dropout of what is not BPE."""
        self.texts, self.sides, self.framed, self.longest = texts, sides, framed, longest
        self.noise, self.seed = recipe.noise, recipe.train.seed
        share, where = recipe.data.bpe_dropout, recipe.data.bpe_dropout_side
        self.dropouts = [
            BPEDropout(tokenizer, share) if share and where in ("both", side) else None
            for side, tokenizer in zip(("source", "target"), sides, strict=True)
        ]

    def of(self, pairs: Sequence[Pair], order: Sequence[int], epoch: int, *, row: int) -> list[Pair]:
        """The pairs of these numbers. `pairs` has their tokens as they are, and is taken where those of a variant would
        not fit in a row of so many, with their ends."""
        texts = [self.texts[i] for i in order]
        rough = [
            roughened(*own, self.noise, random_stream("noise", self.seed, epoch, place))
            for place, own in enumerate(texts)
        ]
        changed = [place for place in range(len(order)) if any(self.dropouts) or rough[place] != texts[place]]
        columns = [self._encoded(side, changed, [rough[place][side] for place in changed], epoch) for side in (0, 1)]
        made, most = [pairs[i] for i in order], min(row, self.longest) - 1
        numbers = [order[place] for place in changed]
        for place, pair in zip(changed, self.framed(zip(*columns, strict=True), numbers), strict=True):
            if max(map(len, pair)) <= most:
                made[place] = pair
        return made

    def _encoded(self, side: int, numbers: Sequence[int], texts: Sequence[str], epoch: int) -> list[Ids]:
        dropout = self.dropouts[side]
        if dropout is None:
            return self.sides[side].encode(texts)
        streams = (random_stream("merges", side, self.seed, epoch, place) for place in numbers)
        return [dropout.encode(text, draw) for text, draw in zip(texts, streams, strict=True)]


def varies(recipe: TranslateRecipe) -> bool:
    """Whether a recipe asks for variants."""
    return recipe.data.bpe_dropout > 0 or recipe.noise != NoiseSection()
