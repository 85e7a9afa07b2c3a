"""Word vectors, learnt: skip-gram with negative samples (Mikolov et al. 2013) on made sentences, in seconds."""

from collections.abc import Iterable
from functools import cache
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import embedding, logsigmoid, normalize

from heedful.lab.drawn import plane
from heedful.lab.exhibit import Says, Shown, Steps, holds, unsaid
from heedful.lab.toys.street import ANIMALS, OF_ANIMALS, OF_SPOTS, SPOTS, any_sentence
from heedful.lab.whole_words import Words

WIDTH, WINDOW, NEGATIVE, STEPS = 16, 4, 5, 600
GROUPS: dict[str, Iterable[str]] = {"animal": ANIMALS, "where": SPOTS, "of animals": OF_ANIMALS, "of streets": OF_SPOTS}


@cache
def vectors(steps: int, seed: int = 0) -> tuple[Words, Tensor]:
    """The vocabulary and a vector a word, of length 1."""
    draw = Random(seed)
    sentences = [any_sentence(draw)[0] for _ in range(1500)]
    words = Words(sentences)
    pairs = []
    for sentence in sentences:
        ids = words.ids(sentence)
        pairs += [
            (ids[at], ids[near])
            for at in range(len(ids))
            for near in range(max(0, at - WINDOW), min(len(ids), at + WINDOW + 1))
            if near != at
        ]
    both = torch.tensor(pairs)
    often = torch.bincount(both[:, 1], minlength=len(words)).float() ** 0.75
    torch.manual_seed(seed)
    inner, outer = (torch.randn(len(words), WIDTH).mul_(0.1).requires_grad_() for _ in range(2))
    optimizer = torch.optim.Adam([inner, outer], lr=0.02)
    for _ in range(steps):
        rows = both[torch.randint(len(both), (512,))]
        others = torch.multinomial(often, 512 * NEGATIVE, replacement=True).view(512, NEGATIVE)
        word = embedding(rows[:, 0], inner)
        near, far = (word * embedding(rows[:, 1], outer)).sum(-1), (word[:, None] * embedding(others, outer)).sum(-1)
        loss = -(logsigmoid(near) + logsigmoid(-far).sum(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return words, normalize(inner.detach(), dim=-1)


def alike(says: Says, *, word: str = "lion", steps: Steps = STEPS) -> Shown:
    """Words that stand in like company: is a word's nearest one of its own kind?"""
    words, found = vectors(steps)
    kinds = {name: kind for kind, group in GROUPS.items() for name in group if name in words.numbers}
    names = [*kinds]
    points = found[[words.numbers[name] for name in names]]
    cosines = points @ points.T
    cosines.fill_diagonal_(-1)
    nearest = [names[at] for at in cosines.argmax(1).tolist()]
    own = sum(kinds[one] == kinds[other] for one, other in zip(names, nearest, strict=True)) / len(names)
    good = own > 0.8
    near = (
        [words.words[at] for at in (found @ found[words.numbers[word]]).topk(4).indices.tolist()[1:]]
        if word in words.numbers
        else []
    )
    lines = [holds(says, "like words have like vectors", good)]
    lines += unsaid({"words whose nearest is of their kind": own, f"nearest to {word}": near})
    centred = points - points.mean(0)
    _, _, axes = torch.linalg.svd(centred, full_matrices=False)
    flat = (centred @ axes[:2].T).tolist()
    return Shown(
        lines,
        plane(dict(zip(names, flat, strict=True)), x="first principal axis", y="second", title="Words in a plane"),
    )
