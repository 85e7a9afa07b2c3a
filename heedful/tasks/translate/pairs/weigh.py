"""How likely a model finds translations that are given: to leave out pairs that do not belong together, and to choose
among translations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import torch
from torch.nn.utils.rnn import pad_sequence

from heedful.data.batches import grouped
from heedful.decode.search import refuse_nan
from heedful.errors import InputError, TextError
from heedful.run.task import Ask
from heedful.tasks.shared.lengths import cut_warning, most_positions, shorten
from heedful.tasks.translate.searching import Ids
from heedful.tasks.translate.use import Translator

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
class PairOptions:
    """`targets` has one for each text, its translation; without any, each text is a source, a TAB and a target."""

    targets: tuple[str, ...] = ()


def weigh_texts(translator: Translator, texts: Sequence[str], options: PairOptions) -> Iterator[ScoredPair]:
    """Raises InputError for another number of targets, and TextError for a text without one."""
    if options.targets and len(options.targets) != len(texts):
        what = f"{len(options.targets)} targets for {len(texts)} sources"
        raise InputError(what, fix="give one for each")
    if options.targets:
        return weigh(translator, [*zip(texts, options.targets, strict=True)])
    return weigh(translator, [in_a_pair(text) for text in texts])


def in_a_pair(line: str) -> tuple[str, str]:
    """A source and a target that a TAB is between. Raises TextError."""
    cells = line.split("\t")
    if len(cells) != 2:
        what = f"{len(cells)} column{'s' * (len(cells) > 1)}, expected 2 (source TAB target)"
        raise TextError(what, where=shorten(line), fix="give a source, a TAB and its translation")
    return cells[0], cells[1]


def weigh(translator: Translator, pairs: Sequence[tuple[str, str]]) -> Iterator[ScoredPair]:
    """Raises TextError for an empty side, and for one of more tokens than the model has positions."""
    if translator.engine is not None:
        raise InputError("another library searches, and does not weigh", fix="leave out the engine")
    for source, target in pairs:
        if not (source.strip() and target.strip()):
            raise TextError("a pair with an empty side", where=shorten(source or target), fix="give both sides")
    sources, beyond = translator.encode([source for source, _ in pairs])
    targets = [target for _, target in pairs]
    read = translator.target.encode_marked(targets) if translator.marked else translator.target.encode(targets)
    said = [[*translator.begin, *ids, translator.target.eos] for ids in read]
    translator.refuse_too_long([source for source, _ in pairs], sources)
    most = most_positions(translator.model.config)
    for target, ids in zip(targets, said, strict=True):
        if most is not None and len(ids) > most:
            what = f"{len(ids):,} tokens, but the model writes at most {most:,}"
            raise TextError(what, where=shorten(target), fix="give it in shorter parts")
    found = log_probabilities(translator, [*zip(sources, said, strict=True)])
    for (source, target), ids, cut, each in zip(pairs, sources, beyond, found, strict=True):
        total, tokens = sum(each), len(each)
        record: ScoredPair = {
            "source": source,
            "target": target,
            "logprob": total,
            "tokens": tokens,
            "per_token": total / tokens,
        }
        if warning := cut_warning(len(ids), len(ids) + cut):
            record["warning"] = warning
        yield record


@torch.inference_mode()
def log_probabilities(translator: Translator, pairs: Sequence[tuple[Ids, Ids]]) -> list[list[float]]:
    """Of each token of each target, given its source and the tokens before it, in nats: those that a search adds up.
    The targets have their ends. Raises NonFiniteError."""
    model = translator.model
    device, size = next(model.parameters()).device, max(1, LOGITS // translator.target.size)
    found: list[list[float]] = [[] for _ in pairs]
    lengths = [max(map(len, pair)) for pair in pairs]
    for group in grouped(sorted(range(len(pairs)), key=lengths.__getitem__), lengths, TOKENS):
        source, segments = (part.to(device) for part in translator.padded([pairs[i][0] for i in group]))
        said = [torch.tensor([translator.target.bos, *pairs[i][1]]) for i in group]
        target = pad_sequence(said, batch_first=True).to(device)
        real = pad_sequence([torch.ones(len(ids) - 1, dtype=torch.int64) for ids in said], batch_first=True).to(device)
        hidden = model.hidden(source, target[:, :-1], segments, real)[real > 0]
        parts = zip(hidden.split(size), target[:, 1:][real > 0].split(size), strict=True)
        logs = torch.cat([model.head(x).float().log_softmax(-1).gather(1, y[:, None])[:, 0] for x, y in parts])
        refuse_nan(logs)
        for i, own in zip(group, logs.split([len(pairs[i][1]) for i in group]), strict=True):
            found[i] = own.tolist()
    return found


ASK = Ask(weigh_texts, PairOptions, gathers=lambda options: not options.targets)
