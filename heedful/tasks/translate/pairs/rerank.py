"""Choosing among a model's best translations by what other models say of them too: of the same direction, or of the
other way, which are asked how well a translation tells its source (Li and Jurafsky 2016; Yee et al. 2019)."""

from collections.abc import Sequence
from typing import NamedTuple

from heedful.errors import InputError
from heedful.tasks.translate.pairs.weigh import takes, weigh
from heedful.tasks.translate.searching import Translation
from heedful.tasks.translate.use import Translator

UNJUDGED = "too long for a model of --rerank, which had no say"


class Judge:
    """Another model, and whether it reads what is to be judged, in place of saying it: it then says the source as the
    first one read it. Its scores are made as those of the first: by the length to the power `length_penalty`."""

    def __init__(self, translator: Translator, own: Translator, *, length_penalty: float = 1.0) -> None:
        """Raises InputError for models of other languages."""
        ours = own.spec.language_pair
        if ours is not None and (ways := translator.spec.directions):
            translator = translator.directed(*(ours if ours in ways else ours[::-1]))
        theirs = translator.spec.language_pair
        self.translator, self.backwards = translator, theirs is not None and theirs[::-1] == ours
        self.as_read, self.length_penalty = own.as_read, length_penalty
        if theirs != ours and not self.backwards:
            both = (" to ".join(each) if each else "texts to summaries" for each in (theirs, ours))
            what = "the second model is for {}, the first for {}".format(*both)
            raise InputError(what, where="--rerank", fix="take one of the same two languages")

    def scores(self, sources: Sequence[str], listed: Sequence[Sequence[str]]) -> list[list[float | None] | None]:
        """Of each translation of each source, or of the source given each; None of an empty one. In place of all of a
        source None, where that or one of them is too long for the model."""
        pairs: dict[tuple[int, int], tuple[str, str]] = {}
        for row, (source, texts) in enumerate(zip(sources, listed, strict=True)):
            read = self.as_read(source) if self.backwards else source
            for column, text in enumerate(texts):
                if source.strip() and text.strip():
                    pairs[row, column] = (text, read) if self.backwards else (read, text)
        beyond = {row for (row, _), pair in pairs.items() if not takes(self.translator, *pair)}
        pairs = {place: pair for place, pair in pairs.items() if place[0] not in beyond}
        weighed = weigh(self.translator, [*pairs.values()])
        scores = (one["logprob"] / one["tokens"] ** self.length_penalty for one in weighed)
        found = dict(zip(pairs, scores, strict=True))
        return [
            None if row in beyond else [found.get((row, column)) for column in range(len(texts))]
            for row, texts in enumerate(listed)
        ]


class Ranked(NamedTuple):
    """The translations of a source by their numbers, the best first, each with the mean of the scores that it has; and
    whether a judge had no say, as they were too long for it."""

    order: list[tuple[int, float]]
    unjudged: bool


def ranked(
    sources: Sequence[str], listed: Sequence[Sequence[tuple[str, float]]], judges: Sequence[Judge]
) -> list[Ranked]:
    """Of each source the translations in the order of the mean of all models' scores, the list's own and the judges';
    without empty ones, unless all are, which keep their scores."""
    texts = [[text for text, _ in own] for own in listed]
    scores = [[[score] for _, score in own] for own in listed]
    unjudged = set[int]()
    for judge in judges:
        for row, given in enumerate(judge.scores(sources, texts)):
            if given is None:
                unjudged.add(row)
                continue
            for each, score in zip(scores[row], given, strict=True):
                each.extend([] if score is None else [score])
    found = []
    for row, own in enumerate(scores):
        kept = [number for number, text in enumerate(texts[row]) if text.strip()] or range(len(own))
        means = [(number, sum(own[number]) / len(own[number])) for number in kept]
        found.append(Ranked(sorted(means, key=lambda one: -one[1]), row in unjudged))
    return found


def chosen_by(judges: Sequence[Judge], found: Sequence[Translation], *, most: int | None = None) -> list[Translation]:
    """Each translation with its hypotheses as `ranked` orders them, `most` of them."""
    orders = ranked([one.source for one in found], [one.hypotheses for one in found], judges)
    made = []
    for one, (order, unjudged) in zip(found, orders, strict=True):
        better = one.ordered([number for number, _ in order[:most]])
        hypotheses = [(text, score) for (text, _), (_, score) in zip(better.hypotheses, order, strict=False)]
        made.append(
            better._replace(score=hypotheses[0][1], hypotheses=hypotheses).warned([UNJUDGED] if unjudged else [])
        )
    return made
