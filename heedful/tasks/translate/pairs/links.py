"""Which words of a text belong to which of its translation, by the model itself.

Two things tell it: what the model looked at, the cross-attention of a pass with the translation given; and what it
would miss, by how much each word of the translation becomes less likely where a word of the text is left out (Li et al.
2019, section 4.2). Their geometric mean is taken. What every step looks at, such as the full stop, says little, so rows
and columns are normalised by turns, until each word of the text is looked at as much as any other (Sinkhorn and Knopp
1967). Words at the same share of both lengths are likelier, as Dyer et al. 2013 (section 2) have it, and so is a link
beside links of the words before and after, as in a hidden Markov model's alignment (Vogel et al. 1996).

I source words, J target words.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.documents.tags import Alignment
from heedful.data.documents.words import Span
from heedful.data.lines import sanitise
from heedful.data.tokenizer import Ids
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.pairs.attended import attended_words
from heedful.tasks.translate.pairs.weigh import log_probabilities

TENSION = 1.0  # how soon a link is less likely off the diagonal; theirs is 4
BESIDE = 4.0  # how much likelier a link is where both words before it, and both after it, are linked
SURE = 3  # a power of shares: a word mostly belongs to one
LITTLE = 0.01  # of a share, so that neither of both can rule a link out
ANOTHER = 0.1  # how likely another sign is than the same
LEAST = 1e-6  # of a share
TURNS = 3


def aligned(translator: BaseTranslator, pairs: Sequence[tuple[str, str]]) -> list[Alignment]:
    """Of texts and their translations. Raises InputError for a model that another library holds and that is not here
    beside it, and TextError for a text that is too long for it."""
    translator = translator.with_own_search() or translator
    pairs = [(sanitise(text), sanitise(translation)) for text, translation in pairs]
    alignments, words = [], [*attended_words(translator, pairs)]
    losses = missed(translator, pairs, [(source, target) for source, target, _ in words])
    for pair, (source, target, looked), missing in zip(pairs, words, losses, strict=True):
        both = ((looked.double() + LITTLE) * (missing + LITTLE)).sqrt()
        shares = balanced((both + LEAST) * likely(*pair, source, target))
        shares = balanced(shares * (1 + BESIDE * beside(shares))) ** SURE
        shares = shares / shares.sum(1, keepdim=True).clamp(min=LEAST**SURE)
        rows = [{i: share for i, share in enumerate(row) if share} for row in shares.tolist()]
        alignments.append(Alignment(source, target, rows))
    return alignments


def missed(
    translator: BaseTranslator, pairs: Sequence[tuple[str, str]], words: Sequence[tuple[Sequence[Span], Sequence[Span]]]
) -> list[Float[Tensor, "J I"]]:
    """Of each text and its translation, whose words these are: by how many nats the words of the translation are less
    likely without each word of the text, as shares of what all of them together make."""
    heard = translator.source.encode_placed([translator.as_read(text) for text, _ in pairs])
    spoken = translator.target.encode_placed([translation for _, translation in pairs])
    rows = list[tuple[Ids, Ids]]()
    for (ids, heard_spans), (target_ids, _), (source, target) in zip(heard, spoken, words, strict=True):
        if ids and target_ids and source and target:
            word_of = [*zip(ids, owners(heard_spans, source), strict=True)]
            without = ([token for token, word in word_of if word != i] for i in range(len(source)))
            rows += [(row, [*translator.begin, *target_ids]) for row in (ids, *without)]
    scored, shares = iter(log_probabilities(translator, rows)), list[Tensor]()
    for (ids, _), (target_ids, spoken_spans), (source, target) in zip(heard, spoken, words, strict=True):
        lost = torch.zeros(len(target), len(source), dtype=torch.float64)
        if ids and target_ids and source and target:
            logs = torch.tensor([next(scored) for _ in range(1 + len(source))], dtype=torch.float64)
            chances = logs[:, len(translator.begin) :]
            fallen = (chances[0] - chances[1:]).clamp(min=0)
            for token, word in enumerate(owners(spoken_spans, target)):
                if word is not None:
                    lost[word] += fallen[:, token]
        shares.append(lost / lost.sum(1, keepdim=True).clamp(min=LEAST))
    return shares


def owners(tokens: Sequence[Span], words: Sequence[Span]) -> list[int | None]:
    """The first word that each token has a character of."""
    return [
        next((number for number, (begin, end) in enumerate(words) if begin < last and end > first), None)
        for first, last in tokens
    ]


def balanced(shares: Float[Tensor, "J I"]) -> Float[Tensor, "J I"]:
    """Rows that sum up to 1, or to nothing, of columns that sum up to about the same each."""
    for _ in range(TURNS):
        shares = shares / shares.sum(0, keepdim=True).clamp(min=LEAST**2)
        shares = shares / shares.sum(1, keepdim=True).clamp(min=LEAST**2)
    return shares


def beside(shares: Float[Tensor, "J I"]) -> Float[Tensor, "J I"]:
    """The mean of what the word before each has of the source word before, and the word after it of the one after."""
    made = torch.zeros_like(shares)
    made[1:, 1:] += shares[:-1, :-1] / 2
    made[:-1, :-1] += shares[1:, 1:] / 2
    return made


def likely(text: str, translation: str, source: Sequence[Span], target: Sequence[Span]) -> Float[Tensor, "J I"]:
    """How likely a link is by where both words stand, and by what they are: a sign belongs to a sign, and what has a
    digit, and is there once on both sides, to itself."""
    own, theirs = [text[slice(*span)] for span in source], [translation[slice(*span)] for span in target]
    t = torch.linspace(0, 1, len(theirs), dtype=torch.float64)[:, None]
    s = torch.linspace(0, 1, len(own), dtype=torch.float64)
    made = (-TENSION * (t - s).abs()).exp()
    signs = [torch.tensor([not any(map(str.isalnum, w)) for w in words], dtype=torch.bool) for words in (theirs, own)]
    made = made * (signs[0][:, None] == signs[1])
    same = torch.tensor([[word == other for other in own] for word in theirs], dtype=torch.bool).view(made.shape)
    made = torch.where(signs[0][:, None] & ~same, ANOTHER * made, made)
    counts = Counter(own), Counter(theirs)
    for number, word in enumerate(theirs):
        if counts[0][word] == counts[1][word] == 1 and any(map(str.isdigit, word)):
            at = own.index(word)
            made[number], made[:, at] = 0, 0
            made[number, at] = 1
    return made
