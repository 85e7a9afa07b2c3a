"""Keeps placeholders, addresses and numbers unchanged in translations.

Of a source that has some, the whole beam is looked at, and the best hypothesis that has them comes first. If none has
the placeholders, the source is translated again with numbers in their place (`documents.placeholders`). If none has the
numbers, it is translated again with small whole numbers in their place, which models copy better, and then by a search
that must say them. What is still wrong has a warning.
"""

from collections.abc import Callable, Sequence

from heedful.data.lines import quoted
from heedful.data.numbers import changed_numbers, forms_of_number, marked_numbers
from heedful.data.protected import lost_placeholders, protected_in
from heedful.tasks.translate.documents.placeholders import unmasked_translation, with_placeholders
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.searching import Asking, Number, Translation, search_texts
from heedful.tasks.translate.wishes import WantedForms

Choose = Callable[[Sequence[Translation]], list[Translation]]  # orders the hypotheses of each translation anew


def search_and_mend(
    translator: BaseTranslator,
    texts: Sequence[str],
    asking: Asking,
    *,
    prefix: Sequence[str] | None = None,
    numbers: Sequence[Number] | None = None,
    choose: Choose | None = None,
) -> list[Translation]:
    """The translations of segments. What is drawn at random stays as it is, and what has a prefix is not translated
    again. Raises InputError and TextError."""
    if asking.decoding.samples:
        drawn = search_texts(translator, texts, asking, prefix=prefix, numbers=numbers)
        return drawn if choose is None else choose(drawn)
    whole, found = asking.whole_beam, dict[int, Translation]()
    protected = [any(protected_in(text)) for text in texts]
    for careful in (True, False):
        rows = [row for row, own in enumerate(protected) if own == careful]
        begun = None if prefix is None else [prefix[row] for row in rows]
        asked = whole if careful or choose else asking
        found |= zip(rows, search_texts(translator, [texts[row] for row in rows], asked, prefix=begun), strict=True)
    made = [found[row] for row in range(len(texts))]
    free = [row for row, own in enumerate(protected) if own and prefix is None]
    harmed = [row for row in free if all(lost_placeholders(texts[row], text) for text, _ in made[row].hypotheses)]

    def search(some: Sequence[str]) -> list[Translation]:
        return search_texts(translator, some, whole)

    for row, one in zip(harmed, with_placeholders(translator, [made[row] for row in harmed], search), strict=True):
        made[row] = one
    languages = translator.languages
    made = [_unharmed_first(one, languages) if own else one for one, own in zip(made, protected, strict=True)]
    for again in (_with_marks, _with_required_numbers):
        wrong = [row for row in free if changed_numbers(texts[row], made[row].text, languages)]
        better = again(translator, [made[row] for row in wrong], whole) if wrong else []
        for row, one in zip(wrong, better, strict=True):
            made[row] = one
    if choose is not None:
        chosen = zip(choose(made), protected, strict=True)
        made = [_unharmed_first(one, languages) if own else one for one, own in chosen]
    return [one.best(asking.kept).warned(_warnings(one, languages)) for one in made]


def _unharmed_first(found: Translation, languages: tuple[str, str]) -> Translation:
    """Hypotheses with all placeholders, of which the first with all numbers comes first; all, where none has them."""
    texts = [text for text, _ in found.hypotheses]
    whole = [n for n, text in enumerate(texts) if not lost_placeholders(found.source, text)] or [*range(len(texts))]
    exact = next((n for n in whole if not changed_numbers(found.source, texts[n], languages)), whole[0])
    return found.ordered([exact, *(n for n in whole if n != exact)])


def _with_marks(translator: BaseTranslator, found: Sequence[Translation], asking: Asking) -> list[Translation]:
    """Translations of the sources with other numbers in place of those that changed, where these come out unchanged."""
    languages = translator.languages
    marked = [marked_numbers(one.source, changed_numbers(one.source, one.text, languages), languages) for one in found]
    again = search_texts(translator, [text for text, _ in marked], asking)
    made = [
        unmasked_translation(one, other, stands) for one, other, (_, stands) in zip(found, again, marked, strict=True)
    ]
    return [_better(one, other, languages) for one, other in zip(found, made, strict=True)]


def _with_required_numbers(
    translator: BaseTranslator, found: Sequence[Translation], asking: Asking
) -> list[Translation]:
    """Translations that must say the numbers that changed; none of a model that only another library has."""
    searching = translator.with_own_search()
    if searching is None:
        return [*found]
    languages = translator.languages
    wanted = [
        [WantedForms(forms_of_number(number, languages)) for number in changed_numbers(one.source, one.text, languages)]
        for one in found
    ]
    made = search_texts(searching, [one.source for one in found], asking, wanted=wanted)
    return [_better(one, other, languages) for one, other in zip(found, made, strict=True)]


def _better(found: Translation, other: Translation | None, languages: tuple[str, str]) -> Translation:
    """The other translation, where it has all numbers; what it has fewer hypotheses is filled up."""
    if other is None:
        return found
    other = _unharmed_first(other, languages)
    if lost_placeholders(found.source, other.text) or changed_numbers(found.source, other.text, languages):
        return found
    count = len(found.hypotheses)
    hypotheses, said = [*other.hypotheses, *found.hypotheses][:count], [*other.said, *found.said][: len(found.said)]
    return other._replace(hypotheses=hypotheses, said=tuple(said), tokens=())


def _warnings(found: Translation, languages: tuple[str, str]) -> list[str]:
    if found.source.strip() and not found.text.strip():
        return [f"the translation is empty: {quoted(found.source)}"]
    changed = changed_numbers(found.source, found.text, languages)
    return [f"the number {', '.join(changed)} is not in the translation: {quoted(found.text)}"] if changed else []
