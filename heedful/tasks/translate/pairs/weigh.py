"""The log-probabilities of given translations: to find wrong pairs, and to choose among translations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.core.kernels import batch_scale
from heedful.data.batches import of_like_length, pad
from heedful.data.tokenizer import Ids
from heedful.decode.rows import refuse_nan
from heedful.decode.settings import setting
from heedful.errors import InputError, TextError
from heedful.run.task import Ask
from heedful.tasks.shared.lengths import cut_warning, most_positions, refuse_longer, shorten
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.options import DirectionOptions

TOKENS = 2048  # in a batch on either side, padding included
LOGITS = 1 << 24  # that exist at a time


class ScoredPair(TypedDict):
    """An answer as a record: the log-probability (nats) of the target given the source, in all and by token. The end
    token counts as one of `tokens`."""

    source: str
    target: str
    logprob: float
    tokens: int
    per_token: float
    warning: NotRequired[str]


@dataclass(frozen=True, kw_only=True)
class PairOptions(DirectionOptions):
    """`targets` has one for each text, its translation; without any, each text is a source, a TAB and a target."""

    targets: tuple[str, ...] = setting((), "A translation for each text; without any, a text has it behind a TAB.")


def weigh_texts(translator: BaseTranslator, texts: Sequence[str], options: PairOptions) -> Iterator[ScoredPair]:
    """Raises InputError for another number of targets, and TextError for a text without one."""
    if options.targets and len(options.targets) != len(texts):
        what = f"{len(options.targets)} targets for {len(texts)} sources"
        raise InputError(what, fix="give one for each")
    translator = translator.directed(options.from_language, options.to, options.tag)
    if options.targets:
        return weigh(translator, [*zip(texts, options.targets, strict=True)])
    return weigh(translator, [in_a_pair(text) for text in texts])


def in_a_pair(line: str) -> tuple[str, str]:
    """A source and a target that a TAB is between. Raises TextError."""
    cells = line.split("\t")
    if len(cells) != 2:
        what = f"{len(cells)} column{'s' * (len(cells) > 1)}, expected 2 (source TAB target)"
        raise TextError(what, where=shorten(line), fix="give a source, a TAB and its translation")
    return cells[0].strip(), cells[1].strip()


def weigh(translator: BaseTranslator, pairs: Sequence[tuple[str, str]]) -> Iterator[ScoredPair]:
    """Raises TextError for an empty side, and for one of more tokens than the model has positions."""
    if translator.engine is not None:
        raise InputError("another library searches, and does not weigh", fix="leave out the engine")
    refuse_empty_sides(pairs)
    sources, beyond = translator.encode([source for source, _ in pairs])
    targets = [target for _, target in pairs]
    read = translator.target.encode_marked(targets) if translator.marked else translator.target.encode(targets)
    translator.refuse_too_long([source for source, _ in pairs], sources)
    refuse_long_targets(translator, targets, read)
    said = [[*translator.begin, *ids, translator.target.eos] for ids in read]
    found = log_probabilities(translator, [*zip(sources, said, strict=True)])
    for (source, target), ids, cut, each in zip(pairs, sources, beyond, found, strict=True):
        total, tokens = sum(each), len(each)
        record = ScoredPair(source=source, target=target, logprob=total, tokens=tokens, per_token=total / tokens)
        if warning := cut_warning(len(ids), len(ids) + cut):
            record["warning"] = warning
        yield record


def takes(translator: BaseTranslator, source: str, target: str) -> bool:
    """Whether neither has more tokens than the model has positions."""
    if translator.room is None and most_positions(translator.model.config) is None:
        return True
    try:
        translator.refuse_too_long([source], translator.encode([source])[0])
        refuse_long_targets(translator, [target], translator.target.encode([target]))
    except TextError:
        return False
    return True


def refuse_empty_sides(pairs: Sequence[tuple[str, str]]) -> None:
    """Raises TextError."""
    for source, target in pairs:
        if not (source.strip() and target.strip()):
            raise TextError("a pair with an empty side", where=shorten(source or target), fix="give both sides")


def refuse_long_targets(translator: BaseTranslator, targets: Sequence[str], ids: Sequence[Ids]) -> None:
    """Raises TextError for a target, of these tokens, of more of them than the model can write."""
    positions = most_positions(translator.model.config)
    room = None if positions is None else positions - len(translator.begin) - 1
    refuse_longer(targets, ids, room, does="writes")


@torch.inference_mode()
def log_probabilities(translator: BaseTranslator, pairs: Sequence[tuple[Ids, Ids]]) -> list[list[float]]:
    """Of each token of each target, given its source and the tokens before it, in nats: those that a search adds up.
    The targets have their ends. Raises NonFiniteError."""
    model = translator.model
    size = max(1, batch_scale(next(model.parameters()).device) * LOGITS // translator.target.size)
    found: list[list[float]] = [[] for _ in pairs]
    for group, source, segments, read, real in batches_of(translator, pairs):
        hidden = model.hidden(source, read, segments, real)[real > 0]
        said = torch.tensor([token for i in group for token in pairs[i][1]], device=source.device)
        parts = zip(hidden.split(size), said.split(size), strict=True)
        logs = torch.cat([model.head(x).float().log_softmax(-1).gather(1, y[:, None])[:, 0] for x, y in parts])
        refuse_nan(logs)
        for i, own in zip(group, logs.cpu().split([len(pairs[i][1]) for i in group]), strict=True):
            found[i] = own.tolist()
    return found


def batches_of(
    translator: BaseTranslator, pairs: Sequence[tuple[Ids, Ids]], *, alone: bool = False
) -> Iterator[tuple[list[int], Int[Tensor, "B S"], Int[Tensor, "B S"], Int[Tensor, "B T"], Int[Tensor, "B T"]]]:
    """Pairs of like length on the model's device: their numbers; the sources and their segments; and what is read to
    say the targets, one token before each, with its segments. `alone`: one pair at a time, without padding."""
    translator.refuse_untold_target()
    device, own = next(translator.model.parameters()).device, translator.target
    lengths = [max(map(len, pair)) for pair in pairs]
    for group in of_like_length(lengths, 1 if alone else batch_scale(device) * TOKENS):
        source, segments = translator.padded([pairs[i][0] for i in group])
        read, real = pad([[own.bos, *pairs[i][1][:-1]] for i in group], after=(), filler=own.pad)
        yield group, source.to(device), segments.to(device), read.to(device), real.to(device)


ASK = Ask(weigh_texts, PairOptions, gathers=lambda options: not options.targets)
