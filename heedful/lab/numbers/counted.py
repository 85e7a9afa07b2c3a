"""Counts of symbols, numbers, factors and epochs."""

import torch

from heedful.lab.drawn import bars
from heedful.lab.exhibit import Says, Shown, beside
from heedful.lab.words.rhymes import PASSAGE, symbols
from heedful.models.lm import LM
from heedful.models.presets import LANGUAGE_MODELS, lm_config

COURAGE = "It takes great courage to let yourself appear weak"
MIX = {"Common Crawl": (410, 60), "WebText2": (19, 22), "Books1": (12, 8), "Books2": (55, 8), "Wikipedia": (3, 3)}
TRAINED = 300  # billion tokens


def sailor_symbols(says: Says) -> Shown:
    """Counts the symbols of the rhyme, with one symbol for the end of each word."""
    counts = symbols()
    computed = {"symbols": sum(counts.values()), "kinds of symbols": len(counts)}
    return Shown(beside(says, computed), bars(counts, y="how often"))


def passage_numbers(says: Says, *, width: int = 1024) -> Shown:
    """Counts the numbers in a vector of this width for each word of the restaurant passage."""
    words = PASSAGE.split()
    text = f"{len(words)} words, {len({word.strip('.,').lower() for word in words})} of them different"
    return Shown(beside(says, {"37 words of width 1024": len(words) * width}), text=text)


def restaurant(says: Says, *, width: int = 1024) -> Shown:
    """The passage that motivates attention, and the number of values that a network gets for it."""
    words = len(PASSAGE.split())
    return Shown(beside(says, {"words": words, "numbers at 1024 a word": words * width}), text=PASSAGE)


def chain_rule(says: Says, *, seed: int = 0) -> Shown:
    """The probability of a sentence is a product with one factor for each word; here of an untrained model."""
    words = COURAGE.split()
    vocabulary = sorted(set(words))
    torch.manual_seed(seed)
    model = LM(lm_config(LANGUAGE_MODELS["gpt-nano"], vocab_size=len(vocabulary) + 1)).double().eval()
    ids = torch.tensor([[len(vocabulary), *(vocabulary.index(word) for word in words)]])
    with torch.inference_mode():
        log_probabilities = model(ids[:, :-1]).log_softmax(-1)[0]
    factors = log_probabilities[torch.arange(len(words)), ids[0, 1:]].exp()
    rows = [f"  P({word} | {' '.join(words[:i]) or 'nothing'}) = {factors[i]:.4f}" for i, word in enumerate(words)]
    whole = log_probabilities[torch.arange(len(words)), ids[0, 1:]].sum().exp()
    computed = {
        "factors": len(factors),
        "their product": float(factors.prod()),
        "the whole at once": float(whole),
    }
    return Shown(beside(says, computed), text="\n".join(rows))


def epochs(says: Says, *, tokens: float = TRAINED) -> Shown:
    """The epochs over each part of GPT-3's data, if 300 billion tokens were sampled by the printed weights."""
    read = [tokens * weight / 100 / size for size, weight in MIX.values()]
    computed = {
        "weights in percent sum to": sum(weight for _, weight in MIX.values()),
        "epochs: Common Crawl, WebText2, Books1, Books2, Wikipedia": read,
    }
    return Shown(beside(says, computed), bars(dict(zip(MIX, read, strict=True)), y="epochs"))
