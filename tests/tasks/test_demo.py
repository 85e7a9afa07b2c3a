"""The demonstration, in a few steps."""

import re
from functools import partial

import pytest

from heedful.cli import COMMANDS
from heedful.data.made.phrasebook import phrasebook
from heedful.run.events import Finished, Measured, Note
from heedful.tasks.translate import TRANSLATE
from heedful.tasks.translate.demo import SHOWN, _first_right, demo_recipe, train_demo


def test_it_trains_on_the_phrasebook_and_ends_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr("heedful.tasks.translate.demo.PAIRS", 3000)
    monkeypatch.setattr("heedful.tasks.translate.demo.phrasebook", partial(phrasebook, held_out=48))
    settings = ["train.steps=2", "train.eval_every=1", "train.eval_sentences=8", "model.d_model=48", "model.d_ff=64"]
    recipe = demo_recipe(settings)
    assert demo_recipe().train.minutes == recipe.train.minutes == 4
    events = list(train_demo(tmp_path / "run", recipe, "cpu"))
    assert isinstance(events[-1], Finished)
    assert [event.step for event in events if isinstance(event, Measured)] == [1, 2]
    assert not [event for event in events if isinstance(event, Note) and "the first that is right" in event.text]


def test_what_is_suggested_for_the_demonstration_is_made_of_words_that_it_learns():
    learnt = {word for english, _ in phrasebook(6000).train for word in words(english)}
    helped = [
        line
        for verb in (*COMMANDS, *TRANSLATE.commands())
        for line in (verb.run.__doc__ or "").splitlines()
        if "runs/demo" in line
    ]
    told = [text for line in helped for text in re.findall('"(.+?)"', line)]
    assert len(told) >= 2
    for text in (SHOWN, TRANSLATE.example, *told):
        assert words(text) <= learnt, text


def words(text):
    return set(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize("right", [0, 1, None])
def test_the_first_right_translation_is_found(right, tmp_path, monkeypatch):
    pairs = [("a cat", "un chat"), ("a dog", "un chien")]
    made = [target if i == right else "un" for i, (_, target) in enumerate(pairs)]
    shown = zip(made, pairs, strict=True)
    lines = [f"source     {source}\nmodel      {text}\nreference  {target}\n" for text, (source, target) in shown]
    assert _first_right("\n".join(lines)) == (None if right is None else pairs[right])
