"""Whatever a model says, through its brackets it says a tree of the sentence, by every search and in every batch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from heedful.data.text.trees import LEAF, BracketVocabulary, Leaf, linearise
from heedful.data.tokenizer import BOS, EOS
from heedful.decode.brackets import Bracketed, Grammar
from heedful.decode.contract import Hypothesis
from heedful.decode.search import beam, greedy, sample
from heedful.decode.settings import Sampling

BRACKETS = BracketVocabulary(["NP", "S", "VP"])
LEAVES = [1, 7, 2, 40, 3]
SEARCHES: dict[str, Callable[..., list[list[Hypothesis]]]] = {
    "greedy": lambda *given, **options: [[one] for one in greedy(*given, **options)],
    "beam": lambda *given, **options: beam(*given, beam=4, n_best=3, **options),
    "sample": lambda *given, **options: sample(*given, sampling=Sampling(seed=1), samples=3, **options),
}


class Walk(NamedTuple):
    place: Tensor

    def pick(self, rows: Tensor) -> "Walk":
        return Walk(self.place[rows])


class Babbler:
    """A model whose logits are a table's, entered by all that was said; `bias` is added to some tokens'."""

    def __init__(self, seed: int, bias: dict[int, float]) -> None:
        self.table = torch.randn(997, BRACKETS.size, generator=torch.Generator().manual_seed(seed)) * 2
        for token, more in bias.items():
            self.table[:, token] += more

    def start(self, source: Tensor, segments: Tensor | None) -> Walk:
        return Walk(source.sum(1) % 997)

    def step(self, tokens: Tensor, state: Walk) -> tuple[Tensor, Walk]:
        place = (state.place * 31 + tokens * 17 + 5) % 997
        return self.table[place], Walk(place)


def said(search: str, leaves: list[int], longest: list[int], seed: int, bias: dict[int, float], run: int = 3) -> Any:
    grammar = Grammar(leaf=BRACKETS.ids[LEAF], eos=EOS, opening=BRACKETS.ids["(NP"], labels=3, run=run)
    limits = torch.tensor(longest)
    model = Bracketed(Babbler(seed, bias), grammar, leaves=torch.tensor(leaves), longest=limits)
    source = torch.tensor(leaves)[:, None]
    return SEARCHES[search](model, source, bos=BOS, eos=EOS, longest=longest)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("bias", [{}, {5: 9.0, 6: 9.0}, {8: 9.0, 9: 9.0, EOS: 9.0}, {4: 9.0}, {0: 30.0, 1: 30.0}])
def test_a_tree_of_exactly_the_leaves(search: str, bias: dict[int, float]) -> None:
    for seed in range(2):
        longest = [(2 * 3 + 1) * n + 1 for n in LEAVES]
        for n, own in zip(LEAVES, said(search, LEAVES, longest, seed, bias), strict=True):
            leaves = [Leaf("NN", f"w{i}") for i in range(n)]
            assert own
            for one in own:
                assert one.finished
                tree = BRACKETS.decode(one.tokens, leaves)  # refuses all but one tree of these leaves
                opened = 0
                for token in linearise(tree):
                    opened = 0 if token == LEAF else opened + token.startswith("(")
                    assert opened <= 3


def test_it_ends_in_the_room_that_it_has() -> None:
    for n in (1, 5, 12):
        for room in (n + 3, n + 4, n + 9):
            ((one,),) = said("greedy", [n], [room], 0, {5: 50.0, 6: 50.0, 7: 50.0}, run=100)
            assert len(one.tokens) < room
            assert len(one.tokens) >= room - 2, "brackets are what it likes best: they take all room there is"
            BRACKETS.decode(one.tokens, [Leaf("NN", "w")] * n)


def test_a_batch_is_its_sentences_one_by_one() -> None:
    longest = [7 * n + 1 for n in LEAVES]
    for search in ("greedy", "beam"):
        together = said(search, LEAVES, longest, 3, {})
        for n, limit, own in zip(LEAVES, longest, together, strict=True):
            (alone,) = said(search, [n], [limit], 3, {})
            assert [one.tokens for one in alone] == [one.tokens for one in own]


def test_probabilities_are_those_among_what_may_come() -> None:
    ((one,),) = said("greedy", [2], [30], 0, {})
    for token, chance in zip((*one.tokens, EOS), one.token_log_probabilities, strict=True):
        forced = token == EOS
        assert chance <= 0.0
        assert not forced or chance == 0.0


class Reciter:
    """A model that says one thing."""

    def __init__(self, tokens: list[int]) -> None:
        self.logits = 50 * torch.nn.functional.one_hot(torch.tensor(tokens), BRACKETS.size).float()

    def start(self, source: Tensor, segments: Tensor | None) -> Walk:
        return Walk(torch.zeros(len(source), dtype=torch.int64))

    def step(self, tokens: Tensor, state: Walk) -> tuple[Tensor, Walk]:
        return self.logits[state.place], Walk(state.place + 1)


@pytest.mark.parametrize(
    "tree",
    [
        "(S # )S",
        "(S (NP # )NP (VP # # )VP )S",
        "(S (NP (NP # )NP # )NP (VP # (S (VP # )VP )S )VP # )S",
        "(S (S (S # )S )S # )S",
    ],
)
def test_whatever_tree_a_model_would_say_it_may(tree: str) -> None:
    words = tree.replace("#", LEAF).split()
    wanted = [*(BRACKETS.ids[word] for word in words), EOS]
    grammar = Grammar(leaf=BRACKETS.ids[LEAF], eos=EOS, opening=BRACKETS.ids["(NP"], labels=3, run=3)
    model = Bracketed(Reciter(wanted), grammar, leaves=torch.tensor([tree.count("#")]), longest=torch.tensor([40]))
    (found,) = greedy(model, torch.tensor([[1]]), bos=BOS, eos=EOS, longest=[40])
    assert [*found.tokens, EOS] == wanted
    assert found.finished
