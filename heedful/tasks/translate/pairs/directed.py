"""A translator of several languages in the direction that pairs say: by columns or names, or behind their path."""

from heedful.data.text.layouts import languages_of_files
from heedful.errors import InputError
from heedful.tasks.translate.languages import refuse_untold
from heedful.tasks.translate.use import Translator


def directed_by_data(translator: Translator, source: str, target: str, where: str) -> Translator:
    """In the direction of data whose sides are called so. Raises InputError where they say none of its."""
    if (languages := translator.spec.languages) is None:
        return translator
    refuse_untold(languages, source, target, where=where)
    return translator.directed(source, target)


def refuse_named(data: str, *, to: str, from_language: str) -> None:
    """Raises InputError where languages are named beside data, which say theirs."""
    if to or from_language:
        fix = "leave it out; a direction is named behind the path: --data PATH:SOURCE>TARGET"
        raise InputError(f"{data} says its languages", where="--to" if to else "--from-language", fix=fix)


def directed_by_files(
    translator: Translator, source: str, target: str, *, named: tuple[str, str] = ("", "")
) -> tuple[Translator, list[str]]:
    """In the direction that the names of two files say, or that is `named` in place of that, and a line of what they
    leave open. Raises InputError."""
    if translator.spec.languages is None:
        return translator.directed(*named), []
    by_names = languages_of_files(source, target)
    said = tuple(own or other for own, other in zip(named, by_names, strict=True))
    directed = translator.directed(*said)
    one, other = directed.languages
    otherwise = f"--to and --from-language, or by names such as test.{one} and test.{other}"
    what = f"{source}: taken as {one} to {other}; another direction is said by {otherwise}"
    return directed, [] if all(said) else [what]
