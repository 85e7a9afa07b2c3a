"""One search for a batch of sources: which of the searches, what they are told, and what rules they obey."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from heedful.core.seeds import counter_seed
from heedful.decode.constrained import Wish, constrained_beam
from heedful.decode.diverse import diverse_beam
from heedful.decode.rules import Certain, NoRepeat, RepetitionPenalty, Rule
from heedful.decode.search import Hypothesis, beam, greedy, sample
from heedful.decode.settings import Decoding
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.tasks.translate.use import Translator

Ids = list[int]


@runtime_checkable
class SearchEngine(Protocol):
    """What searches in place of the model: another library, that has it in a form of its own."""

    def search(
        self, sources: Sequence[Ids], *, limits: Sequence[int], decoding: Decoding, prefix: Sequence[Ids] | None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source, of at most so many tokens, as `decode.search` gives them."""

    def scored(
        self, sources: Sequence[Ids], listed: Sequence[Sequence[Hypothesis]], decoding: Decoding
    ) -> list[list[Hypothesis]]:
        """The same hypotheses with the log-probabilities of their tokens."""


class Searched(NamedTuple):
    """Sources that are searched for at once: how, with which numbers, and what their translations begin with, must have
    in them, and must not."""

    sources: list[Ids]
    decoding: Decoding
    numbers: list[int]
    prefix: list[Ids] | None = None
    wishes: list[list[Wish]] | None = None
    avoid: tuple[str, ...] = ()


def search_batch(translator: "Translator", batch: Searched, *, through: Any = None) -> list[list[Hypothesis]]:
    """`through`: what is asked in place of the model. Raises InputError for what cannot be searched so."""
    sentences, decoding, prefix = batch.sources, batch.decoding, batch.prefix
    if translator.about.get("target") == "":
        raise InputError("it has several languages: to which one?", fix='name it: --to de, or target="de"')
    model: Any = through or translator.searched  # a Transformer or an RNN: the search knows neither
    limits = [2 * len(ids) + 12 if decoding.longest is None else decoding.longest for ids in sentences]
    positions = translator.positions
    if batch.wishes is not None and decoding.longest is None:
        more = [sum((max(map(len, wish.phrases)) + 1) * wish.times for wish in own) for own in batch.wishes]
        limits = [limit + extra for limit, extra in zip(limits, more, strict=True)]
    limits = limits if positions is None else [min(limit, positions) for limit in limits]
    if (batch.wishes or batch.avoid) and (translator.engine is not None or decoding.samples):
        what = "words are required or avoided in what is searched for by heedful alone, and is not drawn"
        raise InputError(what, fix="leave out the engine, or the samples")
    if decoding.groups > 1 and (batch.wishes or translator.engine is not None):
        what = "a beam is searched in groups by heedful alone, and not held to words"
        raise InputError(what, fix="leave out the groups")
    if translator.engine is not None:
        if translator.begin or decoding.forced_eos:
            what = "this model's translations begin or end with certain tokens, which CTranslate2 would not know"
            raise InputError(what, fix="leave out the engine")
        whole = [translator.framed(ids) for ids in sentences]
        return translator.engine.search(whole, limits=limits, decoding=decoding, prefix=prefix)
    device = next(translator.model.parameters()).device
    source, segments = (part.to(device) for part in translator.padded(sentences))
    rules: list[Rule] = [] if prefix else [Certain(position, token) for position, token in enumerate(translator.begin)]
    if decoding.forced_eos and decoding.longest is not None:
        rules.append(Certain(decoding.longest - 1, translator.target.eos))
    rules += [NoRepeat(decoding.no_repeat)] if decoding.no_repeat else []
    if decoding.repetition_penalty != 1 and not decoding.samples:  # `sample` knows of it
        rules.append(RepetitionPenalty(decoding.repetition_penalty))
    rules += [translator.phrases.avoiding(batch.avoid)] if batch.avoid else []
    common: dict[str, Any] = {
        "bos": translator.target.bos,
        "eos": translator.target.eos,
        "longest": limits,
        "shortest": decoding.shortest,
        "forbidden": translator.forbidden,
        "rules": rules,
        "prefix": prefix,
        "length_penalty": decoding.length_penalty,
    }
    if decoding.samples:
        return sample(
            model,
            source,
            segments,
            sampling=decoding,
            seeds=[counter_seed(decoding.seed, i) for i in batch.numbers],
            samples=decoding.samples,
            **common,
        )
    n_best = min(decoding.n_best, decoding.beam)
    if batch.wishes is not None:
        held: dict[str, Any] = {"wishes": batch.wishes, "parting": translator.phrases.parting}
        return constrained_beam(model, source, segments, beam=decoding.beam, n_best=n_best, **held, **common)
    if decoding.groups > 1:
        apart: dict[str, Any] = {"groups": decoding.groups, "diversity": decoding.diversity}
        return diverse_beam(model, source, segments, beam=decoding.beam, n_best=n_best, **apart, **common)
    if decoding.beam == 1:
        return [[best] for best in greedy(model, source, segments, **common)]
    return beam(model, source, segments, beam=decoding.beam, n_best=n_best, **common)
