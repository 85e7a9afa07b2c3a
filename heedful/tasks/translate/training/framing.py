"""The tokens around the texts of a pair, as a translator reads them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from heedful.data.text.directions import Direction
from heedful.data.tokenizer import Ids
from heedful.tasks.shared.lengths import at_most
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.tasks.translate.training.losses import framed_pairs

Kind = tuple[Direction, str]  # of a pair: its direction, where there are several, and its tag


@dataclass(frozen=True)
class Framing:
    """The tokens around the texts of each direction, and the longest texts including them."""

    arounds: Mapping[Direction, TranslatorSpec]
    longest: int  # tokens of a row
    cut: bool  # sources that are longer are cut

    @property
    def around(self) -> TranslatorSpec:
        """That of the first direction, which is meant where none is said."""
        return next(iter(self.arounds.values()))

    @property
    def longest_source(self) -> int | None:
        """How many tokens of a source are read; None: all."""
        before = len(self.around.before or ()) + bool(self.around.tags)
        return self.longest - 1 - before if self.cut else None

    def framed_alone(self, pair: tuple[Ids, Ids]) -> tuple[Ids, Ids]:
        """A pair of the first direction."""
        return framed_pairs([pair], self.around)[0]

    def framed(self, pairs: Iterable[tuple[Ids, Ids]], kinds: Sequence[Kind]) -> list[tuple[Ids, Ids]]:
        """As the model reads them, of these kinds where there are several: sources that are too long are cut, where
        they may be."""
        longest = self.longest_source
        cut = ((at_most(source, longest), target) for source, target in pairs)
        if not kinds:
            return framed_pairs(cut, self.around)
        arounds = self.arounds
        around = {(way, tag): arounds[way].with_tag(tag) if tag else arounds[way] for way, tag in {*kinds}}
        return [framed for pair, kind in zip(cut, kinds, strict=True) for framed in framed_pairs([pair], around[kind])]
