"""A translator of several languages in the direction that pairs say: by columns or names, or behind their path."""

from heedful.data.text.layouts import languages_of_files
from heedful.tasks.translate.languages import languages_in, refuse_untold
from heedful.tasks.translate.use import Translator


def directed_by_data(translator: Translator, source: str, target: str, where: str) -> Translator:
    """In the direction of data whose sides are called so. Raises InputError where they say none of its."""
    if (languages := languages_in(translator.about)) is None:
        return translator
    refuse_untold(languages, source, target, where=where)
    return translator.directed(source, target)


def directed_by_files(translator: Translator, source: str, target: str) -> tuple[Translator, list[str]]:
    """In the direction that the names of two files say, and a line of what they leave open. Raises InputError."""
    if languages_in(translator.about) is None:
        return translator, []
    said = languages_of_files(source, target)
    directed = translator.directed(*said)
    one, other = directed.languages
    what = (
        f"{source}: taken as {one} to {other}; another direction is said by names such as test.{one} and test.{other}"
    )
    return directed, [] if all(said) else [what]
