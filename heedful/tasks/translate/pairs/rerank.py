"""Choosing among a model's best translations by what other models say of them too: of the same direction, or of the
other way, which are asked how well a translation tells its source (Li and Jurafsky 2016; Yee et al. 2019)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from heedful.errors import InputError
from heedful.tasks.translate.languages import directions_of, languages_of
from heedful.tasks.translate.pairs.weigh import takes, weigh
from heedful.tasks.translate.records import Hypothetical, Translated
from heedful.tasks.translate.use import Translator

UNJUDGED = "too long for a model of --rerank, which had no say"


class Judge:
    """Another model, and whether it reads what is to be judged, in place of saying it: it then says the source as the
    first one read it. Its scores are made as those of the first: by the length to the power `length_penalty`."""

    def __init__(self, translator: Translator, own: Translator, *, length_penalty: float = 1.0) -> None:
        """Raises InputError for models of other languages."""
        ours = languages_of(own.about)
        if ours is not None and (ways := directions_of(translator.about)):
            translator = translator.directed(*(ours if ours in ways else ours[::-1]))
        theirs = languages_of(translator.about)
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


def reranked(records: Iterable[Translated], judges: Sequence[Judge], *, n_best: int) -> Iterator[Translated]:
    """Each record with its translations as `ranked` orders them, the `n_best` of them."""
    records = [*records]
    listed = [[(one["text"], one["score"]) for one in record["hypotheses"]] for record in records]
    found = ranked([record["source"] for record in records], listed, judges)
    for record, (order, unjudged) in zip(records, found, strict=True):
        chosen: list[Hypothetical] = [{**record["hypotheses"][number], "score": score} for number, score in order]
        made: Translated = {**record, **chosen[0], "hypotheses": chosen[:n_best]}
        if unjudged:
            made["warning"] = "; ".join(filter(None, [record.get("warning"), UNJUDGED]))
        yield made
