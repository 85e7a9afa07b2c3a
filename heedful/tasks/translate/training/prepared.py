"""Prepares the pairs of a recipe, and finds those that are prepared."""

from typing import Any

from heedful.data.stored import Prepared, StoredPairs
from heedful.data.text.corpus import read_all_parts
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.tasks.shared.preparing.pairs import Preparation
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.training.tokenizers import train_tokenizers
from heedful.tasks.translate.training.variants import varies

FIRST = 20_000  # pairs of each file, by which columns and languages are recognised
DATA = "prepared data"
# Keys of the recipe's data that the prepared ones depend on; those that a training may leave out, and the others.
GIVEN = ("source", "target", "valid", "test")
KEYS = (*GIVEN, "tokenizer", "vocab_size", "joint")
LIKE = "tokenizers"  # the option that names those of the model that the training starts from


def preparation(recipe: TranslateRecipe) -> Preparation:
    """What is prepared of the recipe's pairs. Raises InputError or MissingError where they cannot be read."""
    data = recipe.data
    sides = {"source": data.source, "target": data.target}
    read = read_all_parts(data.path, **sides, tag=data.tag, valid=data.valid, test=data.test, most=FIRST)
    known = _start_tokenizers(recipe)

    def tokenizers(sample: Pairs) -> tuple[Tokenizer, Tokenizer]:
        return known or train_tokenizers(recipe, sample)

    return Preparation(read, _options(recipe) | {LIKE: _fingerprint(known)}, tokenizers, needs_texts(recipe))


def _start_tokenizers(recipe: TranslateRecipe) -> tuple[Tokenizer, Tokenizer] | None:
    """Those of the model that the training starts from."""
    if not recipe.start_from:
        return None
    from heedful.run.start import read_start  # with torch, which takes as much memory as preparing

    start = read_start(recipe, None, "translate")
    return (start.source, start.target) if start else None


def _options(recipe: TranslateRecipe) -> dict[str, Any]:
    return recipe.data.model_dump(mode="json", include={*KEYS})


def needs_texts(recipe: TranslateRecipe) -> str:
    """The first key of the recipe that prepared pairs cannot do; "" if there is none."""
    data = recipe.data
    keys = {"data.tag": data.tag, "data.mix": data.mix, "data.synthetic": data.synthetic, "noise": varies(recipe)}
    return next((key for key, value in keys.items() if value), "")


def refuse_unprepared(recipe: TranslateRecipe, prepared: Prepared[StoredPairs], start: Any) -> None:
    """Raises InputError where the recipe asks for other data than those that were prepared."""
    if needs := needs_texts(recipe):
        fix = "leave it out, or train on the texts, with less than 32 MB of them"
        raise InputError(f"{needs} needs the texts, of which prepared data have but the tokens", where=DATA, fix=fix)
    like = _fingerprint((start.source, start.target) if start else None)
    if prepared.options[LIKE] != like:
        what = "prepared with the vocabulary of another model than that which is trained"
        raise InputError(what, where=DATA, fix="prepare them with the same --from as the training")
    asked = _options(recipe)
    for key in GIVEN if like else KEYS:
        given, value = asked[key], prepared.options[key]
        if given != value and not (key in GIVEN and not given):
            what = f"prepared with data.{key} = {value!r}, not {given!r}"
            raise InputError(what, where=DATA, fix=f"--set data.{key}={value}, or prepare them again")


def _fingerprint(tokenizers: tuple[Tokenizer, Tokenizer] | None) -> str:
    return " ".join(tokenizer.fingerprint for tokenizer in tokenizers or ())
