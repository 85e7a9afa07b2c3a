"""The tokenizers of a new translator."""

from collections.abc import Sequence

from heedful.data.parts import spread
from heedful.data.text.directions import Direction
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.tasks.translate.languages import token_of
from heedful.tasks.translate.recipe import TranslateRecipe


def train_tokenizers(
    recipe: TranslateRecipe, pairs: Pairs, directions: Sequence[Direction] = (), tags: Sequence[str] = ()
) -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers trained on both sides together, or on each side. They have a token for each target language, if there
    are several, the tokens `tags`, and pieces of words in capitals, if sources are to be capitalised."""
    kind, size = recipe.data.tokenizer, recipe.data.vocab_size
    asked = list(dict.fromkeys([*(token_of(target) for _, target in directions), *tags]))
    loud = spread(len(pairs), recipe.noise.capitals, fewest=0) if recipe.noise.capitals else []
    sources = [*pairs.source, *(pairs.source[i].upper() for i in loud)]
    if recipe.data.joint:
        tokenizer = train_tokenizer([*sources, *pairs.target], kind=kind, size=size, extra=asked)
        return tokenizer, tokenizer
    return (
        train_tokenizer(sources, kind=kind, size=size, extra=asked),
        train_tokenizer(pairs.target, kind=kind, size=size),
    )
