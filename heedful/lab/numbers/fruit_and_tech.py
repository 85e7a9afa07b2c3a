"""Words as points with coordinates for tech and fruit, which are pulled by the words around them (S2)."""

import torch
from torch import Tensor

from heedful.core import EVERYONE, attend
from heedful.lab.drawn import Drawing, plane
from heedful.lab.exhibit import Says, Shown, beside, table

APPLE, ORANGE, PHONE = table([[1, 4], [0, 3], [3, 0]])  # tech, fruitness
WORDS = {"Orange": [0, 3, 0], "Phone": [4, 0, 0], "Apple": [2, 2, 0], "And": [0, 0, 2], "An": [0, 0, 3]}
PLANE = {"Orange": [0.0, 3.0], "Phone": [4.0, 0.0], "Apple": [2.0, 2.0]}


def cosines(rows: Tensor, columns: Tensor) -> Tensor:
    return torch.nn.functional.normalize(rows, dim=-1) @ torch.nn.functional.normalize(columns, dim=-1).T


def similar(says: Says, *, scale: float = 2**-0.5) -> Shown:
    """Dot products, cosines, scaled dot products, and their softmax."""
    pairs = [(APPLE, ORANGE), (APPLE, PHONE), (ORANGE, PHONE)]
    dots = torch.stack([one @ other for one, other in pairs])
    angles = torch.cat([cosines(one[None], other[None]) for one, other in pairs])[:, 0]
    named = dict(zip(WORDS, table([*WORDS.values()]), strict=True))

    def cosine(one: str, other: str) -> Tensor:
        return cosines(named[one][None], named[other][None])[0, 0]

    sentence = torch.stack([named[word] for word in ("Orange", "Apple", "And", "An")])
    phrase = torch.stack([named[word] for word in ("An", "Apple", "Phone")])
    phrase_weights = cosines(phrase, phrase).softmax(-1)
    near = cosine("Apple", "Orange")
    printed = near.round(decimals=2)  # the rounded value, with which the deck computes
    computed = {
        "dot products": dots,
        "cosines": angles,
        "angles in degrees": angles.clamp(-1, 1).acos().rad2deg(),
        "dot products over root 2": dots * scale,
        "cosines, apple and orange, apple and phone, and and an": torch.stack(
            [near, cosine("Apple", "Phone"), cosine("And", "An")]
        ),
        "shares of 1 and 0.71": torch.stack([1 / (1 + printed), printed / (1 + printed)]),
        "sum of 1 and -1, by which shares would be divided": table([[1, -1]]).sum(),
        "softmax of 1 and 0.71": torch.stack([torch.ones_like(near), near]).softmax(-1),
        "softmax of 1 and -1": table([[1, -1]])[0].softmax(-1),
        "softmax of 1, 0.71, 0, 0": cosines(sentence[1:2], sentence)[0].sort(descending=True).values.softmax(-1),
        "row of And in the value matrix": cosines(sentence[2:3], sentence)[0].softmax(-1),
        "an apple phone: row of An": phrase_weights[0][[2, 1, 0]],
        "an apple phone: row of Phone": phrase_weights[2][[2, 1, 0]],
    }
    return Shown(beside(says, computed), pulled_picture())


def pulled(beside_word: str, scale: float = 1.0) -> Tensor:
    """The point (tech, fruitness) of Apple after attention by cosines over itself and one other word."""
    words = table([PLANE["Apple"], PLANE[beside_word]])
    looking = torch.nn.functional.normalize(words, dim=-1)[None, None]
    return attend(looking, looking, words[None, None], mask=EVERYONE, scale=scale)[0, 0, 0]


def context_pulls(says: Says, *, scale: float = 1.0) -> Shown:
    """Apple beside orange, and beside phone: which of the two does attention move it towards?"""
    before = table([PLANE["Apple"]])[0]
    computed: dict[str, object] = {}
    for other in ("Orange", "Phone"):
        after = pulled(other, scale)
        nearer = {
            name: float((before - table([at])[0]).norm() - (after - table([at])[0]).norm())
            for name, at in PLANE.items()
            if name != "Apple"
        }
        computed[f"apple beside {other.lower()} moves towards"] = max(nearer, key=lambda name: nearer[name])
        computed[f"apple beside {other.lower()} is at"] = after
    return Shown(beside(says, computed), pulled_picture(scale))


def pulled_picture(scale: float = 1.0) -> Drawing:
    moved = {f"Apple, beside {name}": pulled(name, scale).tolist() for name in ("Orange", "Phone")}
    return plane(PLANE, moved, x="tech", y="fruitness", title="Apple, pulled by what stands beside it")
