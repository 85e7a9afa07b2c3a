"""Translations as records, which a terminal prints, a server sends and Python returns."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from heedful.run.folder import Saved
from heedful.run.task import Ask
from heedful.tasks.translate import pipeline
from heedful.tasks.translate.confidence import (
    UNLIKE,
    Calibration,
    WordConfidence,
    doubtful,
    sentence_confidence,
    word_confidences,
)
from heedful.tasks.translate.languages import in_a_line
from heedful.tasks.translate.options import TranslateOptions
from heedful.tasks.translate.searching import Translation
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.tasks.translate.wishes import UsedTerm

if TYPE_CHECKING:
    from heedful.tasks.translate.mend import Choose
    from heedful.tasks.translate.pairs.pharaoh import WordLinks
    from heedful.tasks.translate.use import Translator


class Hypothetical(TypedDict):
    """One hypothesis of a record."""

    text: str
    score: float
    confidence: NotRequired[float]
    words: NotRequired[list[WordConfidence]]


class Translated(TypedDict):
    """A translation as a record. `confidence` and `words` are those of the first hypothesis; if not `calibrated`, they
    are the model's plain probabilities. `alignment` has pairs of words, of the source and of `text`, as they are
    between blanks. `unlike`: the source is unlike all that the model was trained on."""

    source: str
    text: str
    score: float
    hypotheses: list[Hypothetical]
    confidence: NotRequired[float]
    words: NotRequired[list[WordConfidence]]
    calibrated: NotRequired[bool]
    flagged: NotRequired[bool]
    warning: NotRequired[str]
    terms: NotRequired[list[UsedTerm]]
    alignment: NotRequired[list[tuple[int, int]]]
    unlike: NotRequired[bool]


def translate_texts(
    translator: "Translator", texts: Sequence[str], options: TranslateOptions, choose: "Choose | None" = None
) -> Iterator[Translated]:
    """`choose` orders the hypotheses of each sentence anew. Raises InputError."""
    settings, told = options.decoding, options.confidence or options.flag is not None
    translator = translator.directed(*options.asked())
    forced = None if options.prefix is None else [options.prefix] * len(texts)
    wishes = options.wishes(translator.languages)
    found = pipeline.translate_texts(
        translator,
        texts,
        prefix=forced,
        wishes=wishes,
        first=options.first,
        confidence=told,
        choose=choose,
        **settings,
    )
    links = iter(_links(translator, found) if options.align else ())
    for one in found:
        made = as_record(one, translator.calibration)
        made = made if options.flag is None else flagged(made, options.flag)
        yield {**made, "alignment": next(links)} if options.align else made


def _links(translator: "Translator", found: Sequence[Translation]) -> "Iterator[WordLinks]":
    from heedful.tasks.translate.pairs.pharaoh import linked_translations

    return linked_translations(translator, found)


def as_record(found: Translation, calibration: Calibration | None) -> Translated:
    listed: list[Hypothetical] = [{"text": text, "score": score} for text, score in found.hypotheses]
    for one, said in zip(listed, found.said, strict=False):
        one["confidence"], one["words"] = sentence_confidence(said, calibration), word_confidences(said, calibration)
    made: Translated = {"source": found.source, **listed[0], "hypotheses": listed}
    if found.said:
        made["calibrated"] = calibration is not None
    if found.terms:
        made["terms"] = [*found.terms]
    if found.unlike:
        made["unlike"] = True
    if found.warning:
        made["warning"] = found.warning
    return made


def flagged(record: Translated, flag: float) -> Translated:
    """The record with "flagged": whether its confidence is below `flag`, or its source is unlike all that was learnt;
    its warning says so too."""
    doubt = doubtful(record["confidence"], record["words"], flag) or (UNLIKE if record.get("unlike") else "")
    made: Translated = {**record, "flagged": bool(doubt)}
    if doubt:
        made["warning"] = "; ".join(filter(None, [record.get("warning", ""), doubt]))
    return made


ASK = Ask(translate_texts, TranslateOptions, gathers=lambda options: not options.decoding.get("samples"))


def translator_facts(saved: Saved) -> dict[str, Any]:
    assert saved.tokenizers is not None
    spec = TranslatorSpec.read(saved.about)
    way = " to ".join(spec.direction) if spec.languages is None else in_a_line(spec.languages)
    facts = {
        "task": f"translate {way}",
        "vocabulary": saved.tokenizers[1].size,
        "search": " ".join(f"{key}={value:g}" for key, value in (spec.decode or {}).items() if value is not None),
    }
    if spec.tags:
        default = f", {spec.tagged} unless asked" if spec.tagged else ""
        facts["tags"] = f"{', '.join(spec.tags)}{default}"
    if known := spec.source_tokens:
        fewest = f", none of fewer than {known.shortest:,}" if known.shortest > 1 else ""
        most = f"sources of at most {known.longest:,} tokens, 99 % of at most {known.centile_99:,}"
        facts["trained on"] = f"{most}{fewest}"
    return facts
