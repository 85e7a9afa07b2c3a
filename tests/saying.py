"""A translator that says what a test tells it to."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from heedful.tasks.translate import mend, pipeline
from heedful.tasks.translate.confidence import WordLikelihoods
from heedful.tasks.translate.searching import Asking, Translation, search_texts
from heedful.tasks.translate.use import Translator

Says = Callable[[str], list[str]]


def says_what_it_is_told(says: Says, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every translator's search finds these hypotheses, whose scores are 0, -1, ..., a word for each of their words.
    Returns the list of the texts that are searched."""
    asked = list[str]()

    def search(translator: Translator, texts: Sequence[str], *settings: Any, **more: Any) -> list[Translation]:
        asked.extend(texts)
        made = list[Translation]()
        for text in texts:
            hypotheses = [(said, -float(rank)) for rank, said in enumerate(says(text))]
            words = [tuple((word, -1.0) for word in said.split()) for said, _ in hypotheses]
            likelihoods = tuple(WordLikelihoods(own, -1.0, 1) for own in words)
            made.append(Translation(text, *hypotheses[0], hypotheses, said=likelihoods))
        return made

    for module in (mend, pipeline):
        monkeypatch.setattr(module, "search_texts", search)
    return asked


def searched_whole(translator: Translator, texts: Sequence[str], **settings: Any) -> list[str]:
    """What a translator's search finds for each text as it is: neither cut into sentences nor mended."""
    found = search_texts(translator, texts, Asking(translator.decoding(**settings)))
    return [one.text for one in found]
