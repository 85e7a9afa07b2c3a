"""Which words of a text belong to which of its translation, by what the model itself looked at.

The cross-attention of one pass over both, with the translation given: the mean over all heads and layers. What every
step looks at, such as the full stop, says little, so rows and columns are normalised by turns, until each word of the
text is looked at as much as any other (Sinkhorn and Knopp 1967); and words at the same share of both lengths are
likelier, as Dyer et al. 2013 (section 2) have it.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.documents.tags import Alignment
from heedful.data.documents.words import Span, words_in
from heedful.data.lines import sanitise
from heedful.errors import InputError
from heedful.tasks.translate.align import crossing
from heedful.tasks.translate.look import watched
from heedful.tasks.translate.use import Translator

TENSION = 4.0  # how soon a link is less likely off the diagonal, as theirs
ANOTHER = 0.1  # how likely another sign is than the same
LEAST = 1e-6  # of a share
TURNS = 3


def aligned(translator: Translator, text: str, translation: str) -> Alignment:
    """Raises InputError for a model that another library holds."""
    if translator.engine is not None:
        raise InputError("another library does not tell what was looked at", fix="leave out the engine")
    text, translation = sanitise(text), sanitise(translation)
    source, target = words_in(text), words_in(translation)
    ((ids, from_text),) = translator.source.encode_placed([text])
    ((said, from_translation),) = translator.target.encode_placed([translation])
    if not ids or not said or not source or not target:
        return Alignment(source, target, [{} for _ in target])
    begin = translator.begin
    read, _, weights = watched(translator, ids, [*begin, *said])
    before = len(translator.around[0])
    shares = crossing(weights, len(read))[len(begin) : len(begin) + len(said), before : before + len(ids)]
    rows, columns = owners(translation, target, from_translation), owners(text, source, from_text)
    words = rows.T @ shares.double().cpu() @ columns
    words = balanced(words / rows.sum(0)[:, None].clamp(min=1), likely(text, source, translation, target))
    return Alignment(source, target, [{word: one for word, one in enumerate(row) if one} for row in words.tolist()])


def balanced(shares: Float[Tensor, "T S"], likely: Float[Tensor, "T S"]) -> Float[Tensor, "T S"]:
    """Rows that sum up to 1, or to nothing, of columns that sum up to about the same each."""
    shares = (shares + LEAST) * likely
    for _ in range(TURNS):
        shares = shares / shares.sum(0, keepdim=True).clamp(min=LEAST**2)
        shares = shares / shares.sum(1, keepdim=True).clamp(min=LEAST**2)
    return shares


def likely(text: str, source: Sequence[Span], translation: str, target: Sequence[Span]) -> Float[Tensor, "T S"]:
    """How likely a link is by where both words stand, and by what they are: a sign belongs to a sign, and what has a
    digit, and is there once on both sides, to itself."""
    own, theirs = [text[slice(*span)] for span in source], [translation[slice(*span)] for span in target]
    t = torch.linspace(0, 1, len(theirs), dtype=torch.float64)[:, None]
    s = torch.linspace(0, 1, len(own), dtype=torch.float64)
    made = (-TENSION * (t - s).abs()).exp()
    signs = [torch.tensor([not any(map(str.isalnum, word)) for word in words]) for words in (theirs, own)]
    made = made * (signs[0][:, None] == signs[1])
    same = torch.tensor([[word == other for other in own] for word in theirs])
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
