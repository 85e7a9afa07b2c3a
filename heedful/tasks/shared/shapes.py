"""The shapes of batches, by recipe and configuration, before data are read: what `heed plan` counts on."""

from typing import Any

from heedful.models.vit import ViTConfig
from heedful.run.passes import BatchShape
from heedful.tasks.shared.sections import ImagesRecipe

WORDS = 28.0  # tokens of a side of a pair: of news, in a vocabulary of 32,000 pieces
FULL = 0.95  # of a packed row, about
MULTIPLE = 16  # rows that are longer than the recipe says have a multiple of so many tokens


def of_pairs(recipe: Any, config: object, words: float = WORDS) -> BatchShape:
    """Pairs packed into rows, of which the longest needs as many tokens as the recipe allows."""
    longest = -(-(recipe.data.longest + 1) // MULTIPLE) * MULTIPLE
    row = max(recipe.train.row, longest)
    rows = max(1, recipe.train.tokens // row)
    return BatchShape(rows, row, True, "pairs", rows * row * FULL / words, "train.tokens")


def of_passages(recipe: Any, config: object, words: float = WORDS) -> BatchShape:
    """Passages of running text, packed in the same way."""
    shape = of_pairs(recipe, config)
    return shape._replace(unit="tokens", examples=shape.rows * shape.length * FULL)


def of_text(recipe: Any, config: Any, words: float = WORDS) -> BatchShape:
    """Rows of as many tokens as the model has positions."""
    context = config.embed.context_length
    rows = max(1, recipe.train.tokens // context)
    packed = not getattr(recipe.data, "across", False)
    return BatchShape(rows, context, packed, "tokens", rows * context, "train.tokens")


def of_pictures(recipe: ImagesRecipe, config: ViTConfig, words: float = WORDS) -> BatchShape:
    """Pictures, a row of patches each."""
    rows, columns = config.patches.grid
    return BatchShape(recipe.images.batch, rows * columns + 1, False, "pictures", recipe.images.batch, "images.batch")
