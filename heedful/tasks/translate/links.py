"""Which words of a text belong to which of its translation, by what the model itself looked at.

The cross-attention of one pass over both, with the translation given: the mean over all heads and layers. What every
step looks at, such as the full stop, says little, so rows and columns are normalised by turns, until each word of the
text is looked at as much as any other (Sinkhorn and Knopp 1967); and words at the same share of both lengths are
likelier, as Dyer et al. 2013 (section 2) have it.

I source words, J target words.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.documents.tags import Alignment
from heedful.data.documents.words import Span, words_in
from heedful.data.lines import sanitise
from heedful.tasks.translate.alignment import alignments
from heedful.tasks.translate.use import Translator

TENSION = 4.0  # how soon a link is less likely off the diagonal, as theirs
ANOTHER = 0.1  # how likely another sign is than the same
LEAST = 1e-6  # of a share
TURNS = 3


def aligned(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[Alignment]:
    """Of texts and their translations. Raises InputError for a model that another library holds and that is not here
    beside it, and TextError for a text that is too long for it."""
    if translator.engine is not None:
        from heedful.tasks.translate.ctranslate2 import CTranslate2

        translator = (isinstance(translator.engine, CTranslate2) and translator.engine.own) or translator
    pairs = [(sanitise(text), sanitise(translation)) for text, translation in pairs]
    return [
        _as_rows(found.source, found.target, balanced(found.shares.double(), likely(*pair, found.source, found.target)))
        for pair, found in zip(pairs, alignments(translator, pairs, cut=words_in), strict=True)
    ]


def _as_rows(source: Sequence[Span], target: Sequence[Span], shares: Float[Tensor, "J I"]) -> Alignment:
    return Alignment(source, target, [{i: one for i, one in enumerate(row) if one} for row in shares.tolist()])


def balanced(shares: Float[Tensor, "J I"], likely: Float[Tensor, "J I"]) -> Float[Tensor, "J I"]:
    """Rows that sum up to 1, or to nothing, of columns that sum up to about the same each."""
    shares = (shares + LEAST) * likely
    for _ in range(TURNS):
        shares = shares / shares.sum(0, keepdim=True).clamp(min=LEAST**2)
        shares = shares / shares.sum(1, keepdim=True).clamp(min=LEAST**2)
    return shares


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


def owners(text: str, words: Sequence[Span], tokens: Sequence[Span]) -> Float[Tensor, "T W"]:
    """How much of each token is in each word, by characters that are no blanks."""
    made = torch.zeros(len(tokens), len(words), dtype=torch.float64)
    word_at = [-1] * len(text)
    for number, (begin, end) in enumerate(words):
        word_at[begin:end] = [number] * (end - begin)
    for token, (begin, end) in enumerate(tokens):
        covered = [word_at[at] for at in range(begin, end) if word_at[at] >= 0]
        for word in covered:
            made[token, word] += 1 / len(covered)
    return made
