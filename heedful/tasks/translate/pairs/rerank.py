"""Choosing among a model's best translations by what another model says of them too: one of the same direction, or of
the other way, which is asked how well a translation tells its source (Li and Jurafsky 2016; Yee et al. 2019)."""

from collections.abc import Iterable, Iterator

from heedful.errors import InputError
from heedful.tasks.translate.languages import directions_of, languages_of
from heedful.tasks.translate.pairs.weigh import weigh
from heedful.tasks.translate.records import Hypothetical, Translated
from heedful.tasks.translate.use import Translator


class Judge:
    """The other model, and whether it reads what is to be judged, in place of saying it: it then says the source as the
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

    def scores(self, source: str, texts: list[str]) -> list[float | None]:
        """Of each translation, or of the source given each; None of an empty one."""
        filled = [text for text in texts if text.strip()] if source.strip() else []
        pairs = [(text, self.as_read(source)) if self.backwards else (source, text) for text in filled]
        weighed = weigh(self.translator, pairs)
        found = iter([one["logprob"] / one["tokens"] ** self.length_penalty for one in weighed])
        return [next(found) if text in filled else None for text in texts]


def reranked(records: Iterable[Translated], judge: Judge, *, n_best: int) -> Iterator[Translated]:
    """Each record with its translations in the order of the mean of both models' scores, the `n_best` of them; without
    empty ones, unless all are."""
    for record in records:
        listed = record["hypotheses"]
        if len(listed) > 1:
            theirs = judge.scores(record["source"], [one["text"] for one in listed])
            both: list[Hypothetical] = [
                {**one, "score": (one["score"] + score) / 2}
                for one, score in zip(listed, theirs, strict=True)
                if score is not None
            ]
            listed = sorted(both or listed, key=lambda one: -one["score"])[:n_best]
        yield {**record, **listed[0], "hypotheses": listed}
