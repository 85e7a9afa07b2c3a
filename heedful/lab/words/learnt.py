"""Word vectors by skip-gram and CBOW with negative sampling (Mikolov et al. 2013), trained on synthetic sentences."""

from collections.abc import Iterable
from functools import cache
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, logsigmoid, normalize

from heedful.lab.drawn import plane
from heedful.lab.exhibit import Says, Shown, Steps, holds, unsaid
from heedful.lab.toys.street import ANIMALS, OF_ANIMALS, OF_SPOTS, SPOTS, any_sentence
from heedful.lab.whole_words import WordVocabulary
from heedful.training.optimizers import Adam

WIDTH, WINDOW, NEGATIVE, STEPS = 16, 4, 5, 600
METHODS = ("skip-gram", "CBOW")
GROUPS: dict[str, Iterable[str]] = {"animal": ANIMALS, "where": SPOTS, "of animals": OF_ANIMALS, "of streets": OF_SPOTS}


@cache
def vectors(steps: int, method: str, seed: int = 0) -> tuple[WordVocabulary, Tensor]:
    """The vocabulary, and a vector of length 1 for each word. In skip-gram, a word predicts each of its neighbours; in
    CBOW, the mean of the neighbours predicts the word."""
    draw = Random(seed)
    sentences = [any_sentence(draw)[0] for _ in range(1500)]
    words = WordVocabulary(sentences)
    nothing = len(words)
    given: list[list[int]] = []
    told: list[int] = []
    for sentence in sentences:
        ids = words.ids(sentence)
        for at, one in enumerate(ids):
            beside = ids[max(0, at - WINDOW) : at] + ids[at + 1 : at + 1 + WINDOW]
            if method == "CBOW":
                given.append(beside + [nothing] * (2 * WINDOW - len(beside)))
                told.append(one)
            else:
                given += [[one]] * len(beside)
                told += beside
    inputs, outputs = torch.tensor(given), torch.tensor(told)
    often = torch.bincount(outputs, minlength=len(words)).float() ** 0.75
    torch.manual_seed(seed)
    inner, outer = (torch.randn(len(words) + 1, WIDTH).mul_(0.1).requires_grad_() for _ in range(2))
    optimizer = Adam([inner, outer], lr=0.02)
    for _ in range(steps):
        rows = torch.randint(len(outputs), (512,))
        others = torch.multinomial(often, 512 * NEGATIVE, replacement=True).view(512, NEGATIVE)
        word = embedding_bag(inputs[rows], inner, mode="mean", padding_idx=nothing)
        near, far = (word * outer[outputs[rows]]).sum(-1), (word[:, None] * outer[others]).sum(-1)
        loss = -(logsigmoid(near) + logsigmoid(-far).sum(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return words, normalize(inner.detach()[:nothing], dim=-1)


def alike(says: Says, *, word: str = "lion", steps: Steps = STEPS) -> Shown:
    """Words in similar contexts: is the nearest neighbour of a word of the same kind? The picture shows skip-gram."""
    shares: dict[str, float] = {}
    nearest: dict[str, list[str]] = {}
    for method in METHODS:
        words, found = vectors(steps, method)
        kinds = {name: kind for kind, group in GROUPS.items() for name in group if name in words.numbers}
        names = [*kinds]
        points = found[[words.numbers[name] for name in names]]
        cosines = (points @ points.T).fill_diagonal_(-1)
        next_to = [names[at] for at in cosines.argmax(1).tolist()]
        own = [kinds[one] == kinds[other] for one, other in zip(names, next_to, strict=True)]
        shares[f"words whose nearest is of their kind, {method}"] = sum(own) / len(own)
        if word in words.numbers:
            closest = (found @ found[words.numbers[word]]).topk(4).indices.tolist()[1:]
            nearest[f"nearest to {word}, {method}"] = [words.words[at] for at in closest]
        if method == METHODS[0]:
            centred = points - points.mean(0)
            _, _, axes = torch.linalg.svd(centred, full_matrices=False)
            flat = dict(zip(names, (centred @ axes[:2].T).tolist(), strict=True))
    return Shown(
        [holds(says, "like words have like vectors", min(shares.values()) > 0.8), *unsaid({**shares, **nearest})],
        plane(flat, x="first principal axis", y="second", title="Words in a plane"),
    )
