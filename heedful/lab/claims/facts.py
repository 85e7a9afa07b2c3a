"""Facts about the world that the decks quote: they cannot be computed here, and some are wrong."""

from heedful.lab.exhibit import Claim, Says, Shown, beside, holds
from heedful.lab.numbers.counted import MIX

# The correct values of the wrong ones.
RIGHT: dict[str, str | int] = {
    "teraflops of a card": "18.7 at its peak",
    "11000 is a number of": "tokens",
    "T-DMCA": "Transformer decoder with memory-compressed attention",
    "L of T-DMCA with 256 experts": 7500,
    "high likelihood answers are not always": "right",
    "top-1 accuracy of the 2020 paper is above 90 %": "88.55 %",
    "GPT-3 was trained with RLHF": "InstructGPT was",
    "safer in percent": "82 % fewer answers to disallowed requests",
}


def quoted(says: Says) -> Shown:
    """Each fact as in the deck: wrong if that is known, and otherwise quoted."""
    return Shown([fact(says, claim) for claim in says.values])


def fact(says: Says, claim: str) -> Claim:
    if claim in RIGHT:
        return holds(says, claim, RIGHT[claim], right=False)
    return Claim(claim, says[claim], None, "quoted")


def mix_of_data(says: Says) -> Shown:
    """The data of GPT-3: the printed sizes, and the sum of the weights."""
    computed = {
        "tokens, billions": [size for size, _ in MIX.values()],
        "weights in percent sum to": sum(weight for _, weight in MIX.values()),
    }
    return Shown(beside(says, computed))
