"""A translation step by step, and the hypotheses that the search dropped on the way."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NotRequired

from heedful.decode.settings import setting
from heedful.decode.trace import Traced
from heedful.errors import InputError
from heedful.run.task import Ask
from heedful.tasks.shared.pieces import labelled_pieces
from heedful.tasks.shared.steps import Stepped, StepsOptions, steps_of
from heedful.tasks.translate.inside.look import watched
from heedful.tasks.translate.options import DirectionOptions
from heedful.tasks.translate.searching import Searched, search_batch
from heedful.tasks.translate.segment import sentence_of
from heedful.tasks.translate.use import Translator

WIDEST = 12


class SteppedTranslation(Stepped):
    """`tree` are the nodes of a beam search (`heedful.decode.trace.BeamNode`), each with its `piece`; the first is the
    root."""

    tree: NotRequired[list[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class TranslationSteps(StepsOptions, DirectionOptions):
    """The steps are those of one `sentence` of a text. With a `beam` the tree of such a search is told as well, for
    that many of the best beginnings."""

    sentence: int = setting(1, "The sentence of a text of several.", 1)
    beam: int | None = setting(None, "The width of a search whose tree is told, too.", 1)


def steps_translating(
    translator: Translator, texts: Sequence[str], options: TranslationSteps
) -> Iterator[SteppedTranslation]:
    """Without `chosen` it is the translation that is searched for; with them, their greedy continuation. Raises
    InputError for an empty text, and TextError for one that is too long."""
    if translator.engine is not None:
        raise InputError("another library does not tell each step", fix="leave out the engine")
    options.check(translator.target)
    if options.beam is not None and not 2 <= options.beam <= WIDEST:
        raise InputError(f"a tree of beam {options.beam}", fix=f"ask for 2 to {WIDEST}")
    translator = translator.directed(options.from_language, options.to, options.tag)
    for text in texts:
        yield _steps(translator, sentence_of(translator, text, options.sentence), options)


def _steps(translator: Translator, text: str, options: TranslationSteps) -> SteppedTranslation:
    ((ids,), _) = translator.encode([text])
    if not ids:
        raise InputError("there is no text to translate", fix="give one")
    translator.refuse_too_long([text], [ids])
    begun = [*options.chosen[len(translator.begin) :]] if options.chosen else None
    if begun is None:
        found = translator.search(text, confidence=True)
        tokens = [*found.tokens[0]] if found.tokens else [*translator.begin, *translator.target.encode([found.text])[0]]
        finished = not found.tokens or found.said[0].tokens > len(tokens)
    else:
        ((best, *_),) = translator.hypotheses([ids], translator.decoding(beam=1), [begun])
        tokens, finished = [*best.tokens], best.finished
    said = [*tokens, *([translator.target.eos] if finished else [])]
    _, logits, _ = watched(translator, ids, tokens, ())
    steps = steps_of(logits[: len(said)], said, translator.target, options, forbidden=translator.forbidden)
    made: SteppedTranslation = {"text": translator.target.decode(tokens), "steps": steps}
    if options.beam is not None:
        wide = translator.decoding(beam=options.beam, n_best=options.beam)
        through: Traced[Any] = Traced(translator.searched)
        prefix = None if begun is None else [[*translator.begin, *begun]]
        (beam,) = search_batch(translator, Searched([ids], wide, [0], prefix), through=through)
        nodes = through.tree(beam, eos=translator.target.eos)
        before = [nodes[node.parent or 0].token for node in nodes]
        pieces = [
            labelled_pieces(translator.target, [parent, node.token])[-1]
            for parent, node in zip(before, nodes, strict=True)
        ]
        made["tree"] = [{**asdict(node), "piece": piece} for node, piece in zip(nodes, pieces, strict=True)]
    return made


ASK = Ask(steps_translating, TranslationSteps)
