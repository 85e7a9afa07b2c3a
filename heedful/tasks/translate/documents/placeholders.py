"""Keeps placeholders and addresses unchanged in translations.

If a translation lacks one, the source is translated again with a number in its place, which models learn to copy, and
finally without it: it is then put next to the translations of its neighbours, with a warning.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from heedful.data.documents.passages import Mark, Role, with_pairs
from heedful.data.documents.tags import Alignment, moved
from heedful.data.documents.words import words_in
from heedful.data.protected import PLACEHOLDER, lost_placeholders, masked, unmasked, without
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.searching import Translation

TAG = re.compile(r"<(/?)([A-Za-z0-9][\w:-]*)(?![^<>]*/>)")


def with_placeholders(
    translator: BaseTranslator, found: Sequence[Translation], search: Callable[[Sequence[str]], list[Translation]]
) -> list[Translation]:
    """The same translations, but with the placeholders of their sources, which none of their hypotheses has. Each has
    as many hypotheses as before."""
    made, left = [*found], list[int]()
    several = {i: numbered for i, one in enumerate(found) if (numbered := masked(one.source)) is not None}
    again = dict(zip(several, search([text for text, _ in several.values()]) if several else [], strict=True))
    for i, before in enumerate(found):
        whole = unmasked_translation(before, again[i], several[i][1]) if i in again else None
        if whole is None:
            left.append(i)
        else:
            made[i] = whole
    bare = [without(found[i].source) for i in left]
    for i, (_, out), best in zip(left, bare, search([text for text, _ in bare]) if bare else [], strict=True):
        said = [(put_back(translator, found[i].source, own), score) for own, score in best.hypotheses]
        whole = best._replace(source=found[i].source, text=said[0][0], hypotheses=said, tokens=())
        made[i] = whole.warned([not_copied(out)])
    return made


def unmasked_translation(before: Translation, found: Translation, stands: dict[str, str]) -> Translation | None:
    """Of a source with numbers in it the hypotheses that have all of these; what is missing of them is as it was
    `before`. None where none has."""
    texts = [unmasked(own, stands) for own, _ in found.hypotheses]
    whole = [rank for rank, own in enumerate(texts) if own is not None and not lost_placeholders(before.source, own)]
    if not whole:
        return None
    said = [(texts[rank] or "", found.hypotheses[rank][1]) for rank in whole]
    hypotheses = [*said, *before.hypotheses][: len(before.hypotheses)]
    told = (
        tuple(
            replace(own, words=tuple((_named(word, stands), logprob) for word, logprob in own.words))
            for own in (found.said[rank] for rank in whole)
        )
        if found.said
        else ()
    )
    return found._replace(
        source=before.source,
        text=said[0][0],
        score=said[0][1],
        hypotheses=hypotheses,
        said=(*told, *before.said)[: len(before.said)],
        tokens=(),
    )


def _named(word: str, stands: dict[str, str]) -> str:
    for mark, name in stands.items():
        word = word.replace(mark, name)
    return word


def not_copied(out: Sequence[tuple[int, str]]) -> str:
    """What is told of placeholders that were put back."""
    names = ", ".join(name for _, name in out)
    return f"{names}: the model does not copy it; it stands where the words beside it went"


def put_back(translator: BaseTranslator, source: str, translation: str) -> str:
    """A translation of a source without its placeholders, with them, by the model's alignment; at the same share of its
    length where only another library has the model. What touches its neighbour in the source touches it here."""
    from heedful.tasks.translate.pairs.links import aligned

    text, out = without(source)
    if translator.with_own_search() is None:
        alignment = _even(text, translation)
    else:
        (alignment,) = aligned(translator, [(text, translation)])
    marks = _marks(out)
    spans = [found.span() for found in PLACEHOLDER.finditer(source)]
    touched = {
        (mark.at, mark.raw): (source[begin - 1 : begin], source[end : end + 1])
        for mark, (begin, end) in zip(marks, spans, strict=True)
    }
    made, last, behind = "", "", ""
    for part in moved(text, marks, translation, alignment):
        own, role = (part, "") if isinstance(part, str) else (part.raw, part.role)
        apart = made and not made[-1].isspace() and last != "opens"
        if isinstance(part, str):
            spaced = apart and own[:1].isalnum() and not behind.isalnum()
        else:
            before, behind = touched[part.at, part.raw]
            beside = role == "alone" or (role == "opens" and last == "alone")
            spaced = beside and apart and made[-1] not in "([{\"'" and not _alike(before, made[-1])
        made += f" {own}" if spaced else own
        last = role
    return made


def _alike(sign: str, other: str) -> bool:
    return sign == other or (sign.isalnum() and other.isalnum())


def _marks(out: Sequence[tuple[int, str]]) -> list[Mark]:
    """Placeholders as marks, of which tags that belong together are pairs."""
    tags = [TAG.match(name) for _, name in out]
    roles: list[Role] = ["alone" if tag is None else "closes" if tag[1] else "opens" for tag in tags]
    marks = [Mark(at, name, role) for (at, name), role in zip(out, roles, strict=True)]
    return with_pairs(marks, [tag[2] if tag else "" for tag in tags])


def _even(text: str, translation: str) -> Alignment:
    source, target = words_in(text), words_in(translation)
    last = len(source) - 1
    nearest = (round(t * last / max(1, len(target) - 1)) for t in range(len(target)))
    return Alignment(source, target, [{word: 1.0} if source else {} for word in nearest])
