"""The search for translations: in batches of sources, by the search that the settings ask for, with required words."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch

from heedful.core.kernels import batch_scale
from heedful.core.seeds import counter_seed
from heedful.data.batches import by_length
from heedful.data.documents.words import Span
from heedful.data.tokenizer import Ids
from heedful.decode.constrained import Wish, constrained_beam
from heedful.decode.contract import Hypothesis, SearchOptions, with_attention
from heedful.decode.diverse import diverse_beam
from heedful.decode.draws import penalties
from heedful.decode.rows import in_halves
from heedful.decode.rules import Certain, NoRepeat, Rule
from heedful.decode.search import beam, greedy, sample
from heedful.decode.settings import Decoding
from heedful.errors import InputError
from heedful.tasks.shared.lengths import cut_warning, length_warning
from heedful.tasks.translate.confidence import WordLikelihoods, likelihood_of
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.placed import PlainRow, with_terms_placed
from heedful.tasks.translate.wishes import NO_WISHES, UsedTerm, WantedForms, Wishes

SEARCH_TOKENS = 8192  # source tokens in a batch, times the beam
NARROWEST = 5  # the narrowest beam of a search with required words
SLACK = 4  # tokens that a translation with required words may have beyond them and a quarter more than without
WISHED = 1 << 14  # tokens in wishes, times the wishes, that take as long as a step of the model
WORTH = 2048  # source tokens, times the beam, from which several processes pay

Number = int | tuple[int, int]  # of a text, or of a text and a segment of it; for sampling


class Searched(NamedTuple):
    """A batch of sources: the settings, the sources' numbers, how their translations begin, and which words they must
    have or must not have."""

    sources: list[Ids]
    decoding: Decoding
    numbers: list[Number]
    prefix: list[Ids] | None = None
    wishes: list[list[Wish]] | None = None
    plain: list[int] | None = None  # the lengths of the translations without the wishes
    avoid: tuple[str, ...] = ()

    def part(self, rows: Sequence[int]) -> "Searched":
        """The same of some of the sources."""
        return self._replace(
            sources=[self.sources[row] for row in rows],
            numbers=[self.numbers[row] for row in rows],
            prefix=None if self.prefix is None else [self.prefix[row] for row in rows],
            wishes=None if self.wishes is None else [self.wishes[row] for row in rows],
            plain=None if self.plain is None else [self.plain[row] for row in rows],
        )


class Translation(NamedTuple):
    """One source and its translations, the best first. A score is the log-probability (nats) divided by length **
    length_penalty; that of a text of several sentences is their mean. Of a source that was too long, the last `cut`
    tokens were not read. `terms` are the glossary's terms in the source, and `said` the words and probabilities of each
    hypothesis, where they were asked for. `parts`: a sentence was longer than all that the model was trained on, and
    was translated in so many. `spans`: where each segment of the source stands, and its translation in `text`.
    `tokens` are those of each hypothesis that the model said as it is. `unlike`: the source, or a sentence of it, is
    unlike all that the model was trained on."""

    source: str
    text: str
    score: float
    hypotheses: list[tuple[str, float]]
    cut: int = 0
    warnings: tuple[str, ...] = ()
    terms: tuple[UsedTerm, ...] = ()
    said: tuple[WordLikelihoods, ...] = ()
    parts: int = 1
    spans: tuple[tuple[Span, Span], ...] = ()
    tokens: tuple[tuple[int, ...], ...] = ()
    unlike: bool = False

    @property
    def warning(self) -> str:
        return "; ".join(self.warnings)

    def warned(self, warnings: Sequence[str]) -> "Translation":
        """The same with these warnings too."""
        return self._replace(warnings=tuple(dict.fromkeys([*self.warnings, *warnings])))

    def ordered(self, ranks: Sequence[int]) -> "Translation":
        """The same with these of its hypotheses, in this order."""
        hypotheses = [self.hypotheses[rank] for rank in ranks]
        text, score = hypotheses[0]
        said = tuple(self.said[rank] for rank in ranks if self.said)
        tokens = tuple(self.tokens[rank] for rank in ranks if self.tokens)
        return self._replace(text=text, score=score, hypotheses=hypotheses, said=said, tokens=tokens)

    def best(self, count: int) -> "Translation":
        """The same with its best hypotheses only."""
        kept = slice(count)
        return self._replace(hypotheses=self.hypotheses[kept], said=self.said[kept], tokens=self.tokens[kept])


class Asking(NamedTuple):
    """What is asked for every text: the search, words to have or to avoid, and with `confidence` also the words of each
    translation and their probabilities."""

    decoding: Decoding
    wishes: Wishes = NO_WISHES
    confidence: bool = False

    @property
    def kept(self) -> int:
        """The number of translations of each text."""
        return self.decoding.samples or self.decoding.n_best

    @property
    def whole_beam(self) -> "Asking":
        """The same, but for all that the search finds."""
        decoding = self.decoding
        return self._replace(decoding=replace(decoding, n_best=max(decoding.n_best, decoding.beam)))


def search_texts(
    translator: BaseTranslator,
    texts: Sequence[str],
    asking: Asking,
    *,
    prefix: Sequence[str] | None = None,
    numbers: Sequence[Number] | None = None,
    wanted: Sequence[Sequence[WantedForms]] | None = None,
) -> list[Translation]:
    """The translations of texts as they are, each searched as a whole. `prefix`: how each one must begin. `numbers` of
    the texts matter for sampling; `wanted` are further words for each text. Raises TextError for a text of more tokens
    than the model can read."""
    decoding, wishes, confidence = asking
    ids, beyond = translator.encode(texts)
    translator.refuse_too_long(texts, ids)
    if translator.engine is not None:
        refuse_engine(translator, decoding, prefix=prefix is not None, confidence=confidence)
    forced = None if prefix is None else translator.target.encode(prefix)
    extra = wanted or [()] * len(texts)
    wanted = [[*wishes.of(text), *more] if own else [] for text, own, more in zip(texts, ids, extra, strict=True)]
    letters = sum(len(form) for each in wanted for wish in each for form in wish.forms)
    translator.spend(letters, 0)  # each form becomes tokens, and is looked for
    found = hypotheses(translator, ids, decoding, forced, numbers=numbers, avoid=wishes.avoid)
    plain = [best for best, *_ in found]
    read = [translator.texts_of(best) for best in found]
    # Translations that have their wishes anyway are not searched for again.
    lacking = [n for n, own in enumerate(wanted) if not all(one.met(text) for one in own for text in read[n])]
    again = hypotheses(
        translator,
        [ids[n] for n in lacking],
        replace(decoding, beam=max(decoding.beam, NARROWEST)),
        None if forced is None else [forced[n] for n in lacking],
        wishes=[[translator.phrases.wish(one) for one in wanted[n]] for n in lacking],
        plain=[len(plain[n].tokens) for n in lacking],
        avoid=wishes.avoid,
    )
    if forced is None:
        limits = _limits(translator, Searched([ids[n] for n in lacking], decoding, []))
        rows = [
            PlainRow(texts[n], ids[n], plain[n], read[n][0], wanted[n], limit)
            for n, limit in zip(lacking, limits, strict=True)
        ]
        again = with_terms_placed(translator, decoding, rows, again)
    for n, best in zip(lacking, again, strict=True):
        found[n], read[n] = best, translator.texts_of(best)
    if confidence and translator.engine is not None:
        filled = [n for n, own in enumerate(ids) if own]
        framed = [translator.framed(ids[n]) for n in filled]
        for n, best in zip(filled, translator.engine.scored(framed, [found[n] for n in filled], decoding), strict=True):
            found[n] = best
    made = []
    for text, own, best, cut, said, asked in zip(texts, ids, found, beyond, read, wanted, strict=True):
        beyond_learnt = cut_warning(len(own), len(own) + cut) or length_warning(
            len(own), translator.spec.shortest_learnt, translator.spec.longest_learnt
        )
        warnings = [*filter(None, [beyond_learnt]), *(one.warning for one in asked if not one.met(said[0]))]
        listed = list(zip(said, (hypothesis.score for hypothesis in best), strict=True))
        terms = tuple(one.told(said[0]) for one in asked if one.source is not None)
        told = [likelihood_of(translator.target, one.tokens, one.token_log_probabilities) for one in best if confidence]
        made.append(
            Translation(
                text,
                *listed[0],
                listed,
                cut,
                tuple(warnings),
                terms,
                tuple(told),
                tokens=tuple(hypothesis.tokens for hypothesis in best),
                unlike=translator.is_unlike(own, text),
            )
        )
    return made


def hypotheses(
    translator: BaseTranslator,
    ids: Sequence[Ids],
    decoding: Decoding,
    forced: Sequence[Ids] | None = None,
    *,
    numbers: Sequence[Number] | None = None,
    wishes: Sequence[list[Wish]] | None = None,
    plain: Sequence[int] | None = None,
    avoid: tuple[str, ...] = (),
) -> list[list[Hypothesis]]:
    """The hypotheses of all sentences, in their order, searched in batches of similar length. Their `numbers` (from
    0) matter for sampling. `plain`: the lengths of their translations without wishes, to bound those with them."""
    out = [[Hypothesis((), 0.0, 0.0, (), True)] for _ in ids]  # the translation of a blank source
    filled = [i for i, sentence in enumerate(ids) if sentence]
    shared, batches = translator.processes, []
    device, count = next(translator.model.parameters()).device, 1 if shared is None else shared.count
    groups = [[filled[i] for i in own] for own in groups_of([ids[i] for i in filled], decoding, count, device)]
    for rows in groups:
        begin = None if forced is None else [[*translator.begin, *forced[i]] for i in rows]
        held = None if wishes is None else [wishes[i] for i in rows]
        usual = None if plain is None else [plain[i] for i in rows]
        named: list[Number] = [*rows] if numbers is None else [numbers[i] for i in rows]
        batches.append(Searched([ids[i] for i in rows], decoding, named, begin, held, usual, avoid))
    ask_leave(translator, batches)
    search = partial(search_in_memory, translator)
    found = map(search, batches) if shared is None or len(batches) < 2 else shared.map(batches)
    for rows, best in zip(groups, found, strict=True):
        for i, one in zip(rows, best, strict=True):
            out[i] = one
    return out


def groups_of(sources: Sequence[Ids], decoding: Decoding, processes: int, device: torch.device) -> list[list[int]]:
    """The numbers of the sources of each batch, of similar length. With several processes, all get equally many batches
    of about equally many tokens."""
    width = width_of(decoding)
    most = batch_scale(device) * max(256, SEARCH_TOKENS // width)
    groups, tokens = by_length(sources, most), sum(len(source) + 1 for source in sources)
    if processes > 1 and tokens * width >= WORTH:
        wanted = -(-len(groups) // processes) * processes
        tokens //= wanted
        while len(groups := by_length(sources, tokens)) > wanted:
            tokens += tokens // 20 + 1
    return groups


def width_of(decoding: Decoding) -> int:
    """How many hypotheses of a source there are at a time."""
    return max(decoding.beam, decoding.samples, 1)


def ask_leave(translator: BaseTranslator, batches: Sequence[Searched]) -> None:
    """Asks the budget before anything is searched for. Where no limit was asked for, translations count as about twice
    as long as their sources: those that are not are up to the clock. Raises TooMuchError."""
    if translator.budget is None:
        return
    tokens, at_once = 0, 0
    usual = translator.spec.longest_search
    for batch in batches:
        decoding, wishes = batch.decoding, batch.wishes or [[] for _ in batch.sources]
        unlimited = decoding.longest == usual and batch.wishes is None
        for source, limit, wanted in zip(batch.sources, _limits(translator, batch), wishes, strict=True):
            most = min(limit, max(2 * len(source) + 12, decoding.shortest)) if unlimited else limit
            weight, read = width_of(decoding) * weight_of(wanted), with_attention(len(source))
            tokens += read + round(weight * with_attention(most))
            at_once = max(at_once, read + round(weight * most))
    translator.spend(tokens, at_once)


def weight_of(wishes: Sequence[Wish]) -> float:
    """How many times as much a step with these wishes takes: it looks at each of their tokens for each wish."""
    return 1 + len(wishes) * sum(len(phrase) for wish in wishes for phrase in wish.phrases) / WISHED


def search_in_memory(translator: BaseTranslator, batch: Searched) -> list[list[Hypothesis]]:
    """`search_batch`, in parts if that needs too much memory. Raises TooMuchError where one source does."""
    return in_halves(lambda rows: search_batch(translator, batch.part(rows)), range(len(batch.sources)))


def search_batch(translator: BaseTranslator, batch: Searched, *, through: Any = None) -> list[list[Hypothesis]]:
    """Searches for one batch. `through` replaces the model. Raises InputError for settings that do not go together."""
    _refuse(translator, batch)
    decoding, limits = batch.decoding, _limits(translator, batch)
    if (engine := translator.engine) is not None:
        left = [row for row, limit in enumerate(limits) if not engine.takes(limit, decoding)]
        if left and (own := engine.own) is not None:
            return _search_with_both(translator, own, batch, left)
        whole = [translator.framed(ids) for ids in batch.sources]
        return engine.search(whole, limits=limits, decoding=decoding, prefix=batch.prefix)
    model: Any = through or translator.searched  # a Transformer or an RNN: the search knows neither
    device = next(translator.model.parameters()).device
    source, segments = (part.to(device) for part in translator.padded(batch.sources))
    options: SearchOptions = {
        "bos": translator.target.bos,
        "eos": translator.target.eos,
        "longest": limits,
        "shortest": decoding.shortest,
        "forbidden": translator.forbidden,
        "rules": _rules(translator, batch),
        "prefix": batch.prefix,
        "length_penalty": decoding.length_penalty,
        "renormalise": decoding.renormalise,
        "at_once": translator.at_once,
    }
    asked = (model, source, segments)
    if decoding.samples:
        seeds = [counter_seed(decoding.seed, i) for i in batch.numbers]
        return sample(*asked, sampling=decoding, seeds=seeds, samples=decoding.samples, **options)
    width, n_best = decoding.beam, decoding.n_best
    if batch.wishes is not None:
        parting = translator.phrases.parting
        return constrained_beam(*asked, beam=width, n_best=n_best, wishes=batch.wishes, parting=parting, **options)
    early = decoding.early_stopping
    if decoding.groups != 1:
        groups, diversity = decoding.groups, decoding.diversity
        return diverse_beam(
            *asked, beam=width, n_best=n_best, groups=groups, diversity=diversity, early_stopping=early, **options
        )
    if width == 1:
        return [[best] for best in greedy(*asked, **options)]
    first = decoding.finished_first
    return beam(*asked, beam=width, n_best=n_best, early_stopping=early, finished_first=first, **options)


def _search_with_both(
    translator: BaseTranslator, own: "BaseTranslator", batch: Searched, left: Sequence[int]
) -> list[list[Hypothesis]]:
    """By the model itself for the rows that are `left`, and by the engine for the others."""
    taken = sorted({*range(len(batch.sources))} - {*left})
    found = dict(zip(left, search_in_memory(own, batch.part(left)), strict=True))
    if taken:
        found |= zip(taken, search_batch(translator, batch.part(taken)), strict=True)
    return [found[row] for row in range(len(batch.sources))]


def refuse_engine(
    translator: BaseTranslator, decoding: Decoding, *, prefix: bool = False, confidence: bool = False
) -> None:
    """Raises InputError for what CTranslate2 cannot do with this model. Of renormalised probabilities it gives the
    score of a translation, but not with a prefix, and not of single words."""
    if translator.begin or decoding.forced_eos:
        what = "this model's translations begin or end with certain tokens, which CTranslate2 would not know"
        raise InputError(what, fix="leave out the engine")
    if decoding.renormalise and (prefix or confidence):
        told = "a prefix" if prefix else "each word, as confidence and records (--json) need them"
        what = f"this model renormalises over the allowed tokens: CTranslate2 gives no such probabilities for {told}"
        raise InputError(what, fix="leave out the engine")


def _refuse(translator: BaseTranslator, batch: Searched) -> None:
    decoding, engine = batch.decoding, translator.engine is not None
    translator.refuse_untold_target()
    if decoding.samples and decoding.n_best > 1:
        what = "samples and n_best cannot be combined"
        raise InputError(what, fix="leave out n_best, or samples")
    if (batch.wishes or batch.avoid) and (engine or decoding.samples):
        what = "words are required or avoided in what is searched for by heedful alone, and is not drawn"
        raise InputError(what, fix="leave out the engine, or the samples")
    if decoding.groups == 1 and decoding.diversity != Decoding.diversity:
        raise InputError("diversity is not used by a beam without groups", fix="leave it out, or ask for groups")
    if decoding.groups != 1 and (batch.wishes or engine or decoding.samples):
        what = "a beam is searched in groups by heedful alone, and neither held to words nor drawn"
        raise InputError(what, fix="leave out the groups")
    if engine:
        refuse_engine(translator, decoding, prefix=batch.prefix is not None)


def _limits(translator: BaseTranslator, batch: Searched) -> list[int]:
    """The most tokens of each source's translations: twice the source's and 12 more, unless a limit is given, and room
    for required words."""
    longest, positions = batch.decoding.longest, translator.positions
    limits = [2 * len(ids) + 12 if longest is None else longest for ids in batch.sources]
    if batch.wishes is not None and longest is None:
        if batch.plain is not None:  # a hypothesis that lacks a wish cannot end, and would repeat itself to the limit
            limits = [
                min(limit, 5 * max(own, len(ids) // 2) // 4 + SLACK)
                for limit, own, ids in zip(limits, batch.plain, batch.sources, strict=True)
            ]
        more = [sum((max(map(len, wish.phrases)) + 1) * wish.times for wish in own) for own in batch.wishes]
        limits = [limit + extra for limit, extra in zip(limits, more, strict=True)]
    return limits if positions is None else [min(limit, positions) for limit in limits]


def _rules(translator: BaseTranslator, batch: Searched) -> list[Rule]:
    """The rules on the next token. `sample` applies penalties for repetition itself."""
    decoding, begin = batch.decoding, () if batch.prefix else translator.begin
    rules: list[Rule] = [Certain(position, token) for position, token in enumerate(begin)]
    if decoding.forced_eos and decoding.longest is not None:
        rules.append(Certain(decoding.longest - 1, translator.target.eos))
    rules += [NoRepeat(decoding.no_repeat)] if decoding.no_repeat else []
    rules += () if decoding.samples else penalties(decoding)
    return [*rules, translator.phrases.avoiding(batch.avoid)] if batch.avoid else rules
