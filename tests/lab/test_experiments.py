"""What experiments are made of, computed again by another way; and those that are learnt in a second or two."""

from random import Random

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from heedful.errors import InputError
from heedful.lab.alone.experts import routed
from heedful.lab.alone.repeated import repeated
from heedful.lab.beyond.decisions import GOAL, LONGEST, SIDE, moved, walks
from heedful.lab.beyond.proteins import KINDS, families
from heedful.lab.decoding.sampled import kept_and_not
from heedful.lab.language.book import any_text, book, references
from heedful.lab.language.exam import score
from heedful.lab.language.scaling import fitted
from heedful.lab.lectern import show
from heedful.lab.recurrent.lists import things
from heedful.lab.toys import evened
from heedful.lab.toys.evened import on_pair
from heedful.lab.toys.pronouns import shares_of
from heedful.lab.toys.reader import about_it
from heedful.lab.toys.shapes_1d import LENGTH, NOISE, Net, Pairs, TrainedNet, pictures
from heedful.lab.toys.street import crossing, feeling
from heedful.lab.whole_words import BEGIN, END, WordVocabulary, parameters


@pytest.mark.parametrize("pairs", ["shape", "side"])
def test_heights_are_averaged_within_pairs(pairs: Pairs) -> None:
    """Read off the pictures: the highest point of each shape, in what goes in and in what should come out."""
    made = pictures(40, pairs, torch.Generator().manual_seed(3))
    assert made.source.shape == made.target.shape == (40, 1, LENGTH)
    rows = (made.source[:, 0].numpy(), made.target[:, 0].numpy(), made.shapes.numpy())
    for source, target, shapes in zip(*rows, strict=True):
        centres, heights = shapes[:, 0], shapes[:, 1]
        order = np.argsort(centres) if pairs == "side" else np.arange(4)
        for two in (order[:2], order[2:]):
            for one in two:
                at = round(float(centres[one]))
                assert abs(source[at] - heights[one]) <= NOISE + 1e-4
                assert abs(target[at] - heights[two].mean()) <= NOISE + 1e-4


def test_weight_on_two_shapes_is_counted_once() -> None:
    shapes = torch.tensor([[20.0, 9.0, 5.0], [26.0, 3.0, 5.0]])  # 18 to 22 and 24 to 28
    weights = torch.full((LENGTH, LENGTH), 1 / LENGTH)
    assert on_pair(weights, shapes) == pytest.approx(10 / LENGTH)
    weights = torch.zeros(LENGTH, LENGTH)
    weights[20, 22], weights[26, 23] = 1, 1  # in the mate, and between the two
    assert on_pair(weights, shapes) == pytest.approx(0.5)


def test_nets_of_the_toys_have_the_sizes_of_the_deck() -> None:
    nets = Net(attention=False), Net(attention=True), Net(attention=True, positions=True)
    assert [parameters(net) for net in nets] == [62_337, 54_081, 56_321]
    rows = pictures(2, "shape", torch.Generator().manual_seed(0)).source
    for net in nets:
        assert net(rows).shape == rows.shape
    assert torch.allclose(nets[2].weights(rows).sum(-1), torch.ones(2, LENGTH))


def test_a_gate_chooses_the_two_best_experts_by_their_shares() -> None:
    x, gate = torch.randn(7, 4), torch.randn(4, 5)
    chosen, shares = routed(x, gate)
    for own, best, share in zip((x @ gate).tolist(), chosen.tolist(), shares, strict=True):
        assert best == sorted(range(5), key=lambda n: -own[n])[:2]
        torch.testing.assert_close(share, torch.tensor([own[n] for n in best]).softmax(-1))


def test_repetition() -> None:
    assert repeated(["a", "b", "a", "b", "a", "b"], 2) == pytest.approx(1 - 2 / 5)
    assert repeated(["a", "b", "c", "d"], 2) == 0
    assert repeated([], 3) == 0


def test_random_walks_end_at_the_goal_and_count_what_is_left() -> None:
    drawn = walks(Random(0), 50)
    for returns, cells, actions, valid in zip(*drawn, strict=True):
        length = int(valid.sum())
        cell = int(cells[0])
        for at in range(length):
            assert cell == int(cells[at]) != GOAL
            cell = moved(cell, int(actions[at]))
        if cell == GOAL:
            np.testing.assert_allclose(returns[:length].numpy() * LONGEST, -np.arange(length, 0, -1), atol=1e-5)
        else:
            assert length == LONGEST
            assert float(returns[0]) * LONGEST < -LONGEST
    assert moved(0, 0) == 0  # at the edge one stays
    assert moved(0, 1) == SIDE


def test_residues_that_touch_are_mates_in_every_relative() -> None:
    sequences, touch = families(5, torch.Generator().manual_seed(1))
    assert torch.equal(touch, touch.mT)
    for family, one, other in touch.nonzero().tolist():
        assert (sequences[family, :, one] + sequences[family, :, other] == KINDS - 1).all()


def test_french_agrees() -> None:
    assert (
        crossing("giraffe", "bridge", "tired")[1] == "la girafe n' a pas traversé le pont car elle était trop fatiguée"
    )
    assert crossing("giraffe", "bridge", "long")[1] == "la girafe n' a pas traversé le pont car il était trop long"
    assert feeling("child", "scared", "alone") == (
        "the child was scared since it was alone",
        "l' enfant était effrayé car il était seul",
    )
    english, french = things(Random(0), 3)
    assert len(english.split()) == len(french.split()) == 11
    draw = Random(1)
    for _ in range(50):
        sentence, asked = about_it(draw)
        ((at, noun),) = asked.items()
        words = sentence.split()
        assert words[at] == "it"
        assert noun in words[1:8]


def test_rows_of_words() -> None:
    words = WordVocabulary(["b a", "c"])
    tokens, segments = words.rows(["a b", "c"], begin=True, end=True)
    assert tokens.tolist() == [[BEGIN, *words.ids("a b"), END], [BEGIN, *words.ids("c"), END, 0]]
    assert segments.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert words.text(words.ids("c a")) == "c a"


def test_a_power_law_is_found() -> None:
    sizes = [10, 100, 1000]
    power, fit = fitted(sizes, [5 * size**-0.3 for size in sizes])
    assert power == pytest.approx(0.3)
    assert fit == pytest.approx(1)


def test_keeping_keys_and_values_changes_no_word_and_saves_work() -> None:
    kept, anew, cost, more = kept_and_not(book(2), "a chapter about", 4)
    assert kept == anew
    assert cost < more


def test_made_references_are_some_of_all() -> None:
    draw = Random(0)
    said = {text for text in (any_text(draw) for _ in range(500)) if text.startswith("see")}
    assert said <= references()


def test_scores_of_an_exam() -> None:
    assert score("ADABC", "ADABC") == 1
    assert score("AAAAA", "ADABC") == pytest.approx(0.4)
    assert score("AD", "ADABC") == pytest.approx(0.4)


@pytest.mark.parametrize(
    "name", ["A9", "D9", "T5", "C1", "C6", "E2", "E3", "E8", "E9", "E13", "E14", "E15", "I1", "J5", "O2"]
)
def test_what_is_learnt_in_a_second_agrees(name: str) -> None:
    assert show(name, short=True).verdict == "agrees"


def test_a_class_that_was_never_shown_is_found_by_its_text() -> None:
    assert show("K1").verdict == "agrees"


def test_all_words_of_the_database_are_drawn_or_counted() -> None:
    for words, last in ((12, b">value 12<"), (20, b">8 more<")):
        drawn = show("E13", {"words": words}).picture("svg")
        assert b">key 12<" in drawn
        assert last in drawn


def test_a_sum_of_both_orders_is_not_said_of_choices() -> None:
    """A softmax over the answers chooses one (Radford et al. 2018, figure 1): their scores are not summed."""
    drawn = show("G1b").picture("svg")
    assert b">Both orders are summed; a softmax is over the choices<" in drawn


def test_what_is_cut_off_says_so() -> None:
    assert b"In 1840 Britain sold a ...<" in show("G1c").picture("svg")


def test_both_looks_of_the_cues_are_drawn() -> None:
    drawn = show("A15").picture("svg")
    assert b">without a query<" in drawn
    assert b">with one for a book<" in drawn


def test_a_temperature_that_is_set_is_shown() -> None:
    lines = {line.claim: line.computed for line in show("A1", {"temperature": 0.5}).lines}
    assert sum(lines["weights at temperature 0.5"]) == pytest.approx(1)
    with pytest.raises(InputError, match="nothing can be computed with temperature=-1"):
        show("A1", {"temperature": -1})


def test_all_words_that_are_looked_at_are_told() -> None:
    words = ["the", "cat", "saw", "the", "dog"]
    found = shares_of(torch.tensor([0.30, 0.411, 0.02, 0.05, 0.219]), words)
    assert found == "cat 0.411, the (1) 0.300, dog 0.219, the (4) 0.050"


def test_small_maps_have_their_numbers() -> None:
    drawn = show("N2").picture("svg")
    assert b">0.89<" in drawn  # a weight of q2
    assert drawn.count(b">0.00<") == 1  # of q4; what a mask hides has none


def answers_of(query: str) -> tuple[object, object]:
    lines = {line.claim: line.computed for line in show("A1", {"query": query}).lines}
    return lines[query], lines[f"nearest to {query}"]


def test_a_name_that_is_not_in_the_database_has_no_value() -> None:
    assert answers_of("Smith") == ("null", "null")
    assert answers_of("Barro") == ("null", "Barros: Luis")
    assert answers_of("Chen") == ("Li", "Chen: Li")


def test_an_apostrophe_within_a_name_is_no_clitic() -> None:
    lines = {line.claim: line.computed for line in show("T2", {"words": "O'Neill aren't dog's"}).lines}
    assert lines["clitics apart"] == "O'Neill | are | n't | dog | 's"
    assert lines["apostrophes dropped"] == "ONeill | arent | dogs"


def test_gradients_vanish_along_a_sentence() -> None:
    lines = {line.claim: line.computed for line in show("C1").lines}
    thought, looking = (
        lines[f"gradient of the first word over the last's, {kind}"] for kind in ("thought vector", "attention")
    )
    assert thought == sorted(thought, reverse=True)
    assert thought[-1] < 1e-3 < 0.5 < min(looking)


@pytest.mark.parametrize("left", [0.1, 0.24])
@pytest.mark.parametrize("name", ["D1", "D2", "D3"])
def test_only_the_full_form_says_that_a_toy_is_not_solved(
    name: str, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = TrainedNet(Net(attention=True), [1.0] * 40, left, pictures(1, "side", torch.Generator().manual_seed(0)))
    monkeypatch.setattr(evened, "toy", lambda *_: trained)
    for short in (True, False):
        lines = [line for line in show(name, short=short).lines if "solved" in line.claim]
        assert lines
        for line in lines:
            if left > 0.15 and short:
                assert (line.computed, line.verdict) == (evened.NOT_YET, "open")
            else:
                assert line.computed == (left <= 0.15)
                assert line.verdict == ("agrees" if line.computed == line.deck else "wrong")


def test_vectors_of_all_signs_are_in_the_picture() -> None:
    shown = show("P19", {"query": "[-3, 1]", "key": "[1, 2]"})
    assert shown.draw is not None
    figure = shown.draw()
    assert isinstance(figure, Figure)
    low, high = figure.axes[0].get_xlim()
    assert low < -3 < 1 < high
    with pytest.raises(InputError, match="nothing can be computed with query=\\[1, 2, 3\\]"):
        show("P19", {"query": "[1, 2, 3]"})


def test_t5_is_counted_with_its_own_vocabulary() -> None:
    computed = {line.claim: line.computed for line in show("P17").lines}
    assert computed["T5-large, millions"] == 737.668096  # of the published weights
