"""Several models that search as one."""

from pathlib import Path

import pytest
import torch

from heedful.decode.ensemble import Ensemble
from heedful.errors import InputError
from heedful.tasks.translate.use import load_together, load_translator
from made import with_about

TEXTS = ["abba baab", "ab", "babab abab ba"]


def test_each_step_is_the_mean_of_the_probabilities(translators: tuple[Path, Path]) -> None:
    one, other = (load_translator(run).model for run in translators)
    source, tokens = torch.tensor([[5, 6, 7]]), torch.tensor([7])
    each = []
    for model in (one, other):
        logits, _ = model.step(tokens, model.start(source, None))
        each.append(logits.double().softmax(-1))
    ensemble = Ensemble([one, other])
    found, _ = ensemble.step(tokens, ensemble.start(source, None))
    assert (found.double().exp() - (each[0] + each[1]) / 2).abs().max() < 1e-6
    assert (each[0] - each[1]).abs().max() > 1e-4


def test_rows_are_picked_in_every_model(translators: tuple[Path, Path]) -> None:
    """A search whose rows change places finds what each source alone gives."""
    both = load_together(translators)
    together = [made.text for made in both.search(TEXTS, beam=3, longest=8)]
    alone = [both.search([text], beam=3, longest=8)[0].text for text in TEXTS]
    assert together == alone


def test_a_model_with_itself_is_itself(translators: tuple[Path, Path]) -> None:
    run = translators[0]
    twice = load_together([run, run]).search(TEXTS, beam=3)
    once = load_translator(run).search(TEXTS, beam=3)
    assert [made.text for made in twice] == [made.text for made in once]
    assert [made.score for made in twice] == pytest.approx([made.score for made in once], abs=1e-4)


def test_a_search_asks_both(translators: tuple[Path, Path]) -> None:
    texts = ["ab ab ab", *TEXTS, "abab", "bb aa"]
    both, *alone = (
        load_together(runs).search(texts, beam=2) for runs in (translators, translators[:1], translators[1:])
    )
    scores = [[made.score for made in each] for each in (both, *alone)]
    assert scores[0] != pytest.approx(scores[1], abs=1e-4)
    assert scores[0] != pytest.approx(scores[2], abs=1e-4)


def test_another_vocabulary_is_refused(translators: tuple[Path, Path]) -> None:
    mine, other = map(load_translator, translators)
    other = with_about(other, forbidden=[0])
    with pytest.raises(InputError, match="its vocabulary is not that of the first model"):
        mine.join(other, name="other")
    assert not mine.others
