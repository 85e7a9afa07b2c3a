"""Texts with line breaks and tags, as programs send them: what translators' tools and web pages ask a server for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NotRequired, TypedDict

from heedful.data.documents.hypertext import hypertext_parts
from heedful.data.documents.inline import Inline, passages_from
from heedful.data.documents.passages import Document, Passage, plain
from heedful.data.documents.plain import lines_of
from heedful.data.lines import sanitise
from heedful.data.text.glossary import Glossary, entries_in, glossary_of
from heedful.decode.settings import DecodingOptions, setting
from heedful.errors import InputError
from heedful.run.task import Ask
from heedful.tasks.translate.documents.passages import translate_passages
from heedful.tasks.translate.options import DirectionByEitherName
from heedful.tasks.translate.use import Translator
from heedful.tasks.translate.wishes import NO_WISHES, Wishes

MOST = 128  # translations of each


class Fragment(TypedDict):
    """`texts` are the best translations, the first of which is `text`, all different; `warning` says what in the first
    a person should look at."""

    source: str
    text: str
    texts: list[str]
    warning: NotRequired[str]


@dataclass(frozen=True, kw_only=True)
class FragmentOptions(DirectionByEitherName):
    """`lines`: a line is translated apart from the next, but in HTML, where a line end is a space; `sentences`: so is a
    sentence. In what has `markup`, all that is inside of elements of `ignored` names is kept, and tags of `breaking`
    names part texts, those of `inline` names do not. `n` translations of each. `glossary` has a term, a TAB and its
    translation in each line: a text, since one is sent with every request of a tool."""

    markup: Literal["text", "xml", "html"] = setting("text", "What of a text is markup, which stays.")
    lines: bool = setting(True, "Whether a line is translated apart from the next; in HTML it is not.")
    sentences: bool = setting(True, "Whether a sentence is translated apart from the next.")
    ignored: tuple[str, ...] = setting((), "Elements of which all that is inside stays as it is.")
    breaking: tuple[str, ...] = setting((), "Tags that part texts.")
    inline: tuple[str, ...] = setting((), "Tags that do not part texts.")
    n: int = setting(1, "Translations of each text.", 1)
    glossary: str = setting("", "A term, a TAB and its translation on each line.")
    decoding: DecodingOptions = setting(DecodingOptions, "How to search, where it is not as the model has it.")


def translate_fragments(translator: Translator, texts: Sequence[str], options: FragmentOptions) -> Iterator[Fragment]:
    """Raises InputError for a number of translations that is out of bounds, and a glossary that is none."""
    if not 1 <= options.n <= MOST:
        raise InputError(f"{options.n:,} translations of each", where="n", fix=f"ask for 1 to {MOST}")
    translator, texts = translator.directed(*options.asked()), [*map(sanitise, texts)]
    documents = [Document(parts_of_fragment(text, options), lambda parts: "".join(parts).encode()) for text in texts]
    passages = [passage for document in documents for passage in document.passages]
    wishes = Wishes(glossary=_glossary(options.glossary, translator.languages[0])) if options.glossary else NO_WISHES
    found = translate_passages(
        translator, passages, options.decoding, sentences=options.sentences, n=options.n, wishes=wishes
    )
    for text, document in zip(texts, documents, strict=True):
        own = [next(found) for _ in document.passages]
        made = [document.written(each[rank].placed for each in own).decode() for rank in range(options.n)]
        record: Fragment = {"source": text, "text": made[0], "texts": [*dict.fromkeys(made)]}
        if told := [what for each in own for what in each[0].told]:
            record["warning"] = "; ".join(dict.fromkeys(told))
        yield record


@lru_cache(maxsize=4)
def _glossary(entries: str, language: str) -> Glossary:
    """Its words are stemmed once."""
    return glossary_of(entries_in(entries, where="glossary"), language=language, where="glossary")


def parts_of_fragment(text: str, options: FragmentOptions) -> list[str | Passage]:
    if options.markup != "text":
        more = {"ignored": options.ignored, "breaking": options.breaking, "inline": options.inline}
        return hypertext_parts(text, options.markup, **more, lines=options.lines and options.markup == "xml")
    lines = lines_of(text) if options.lines else [text]
    return [part for line in lines for part in passages_from([Inline(line, line)], write=plain, blanks=False)]


ASK = Ask(translate_fragments, FragmentOptions, gathers=lambda options: not options.decoding.get("samples"))
