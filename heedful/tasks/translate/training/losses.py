"""Pairs of token ids: the tokens around them, and their cross-entropy."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from heedful.data.batches import OUR_ENDS, Ends, PairBatch, bucket_rows
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError
from heedful.models import DecoderOnlyTranslator, TranslationModel
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.training.loss import Loss, head_cross_entropy, linear_cross_entropy, with_auxiliary


def training_loss(model: TranslationModel, batch: PairBatch, *, smoothing: float, rdrop: float = 0.0) -> Loss:
    """`cross_entropy`; for a decoder-only model that learns the source's tokens too, with their gradient.

    With `rdrop`, alpha of Liang et al. 2021, each row passes twice, and the loss is the mean of both passes plus half
    of alpha times their divergence: half of equation 4, so that it compares with other losses.
    """
    if rdrop:  # a row beside itself: on a CPU both passes draw their dropout from the one generator of that row
        batch = PairBatch(*(part.repeat_interleave(2, 0) for part in batch))
    if isinstance(model, DecoderOnlyTranslator):
        loss = whole_cross_entropy(model, batch, smoothing=smoothing, rdrop=rdrop)
    else:
        loss = cross_entropy(model, batch, smoothing=smoothing, rdrop=rdrop)
    return Loss(loss.total / 2, loss.count // 2, extra=loss.extra / 2) if rdrop else loss


def ends_of(target: Tokenizer, spec: TranslatorSpec, *, where: str = "") -> Ends:
    """The tokens that begin a target and end each side. Raises InputError if sources have no end token."""
    after = spec.around(target)[1]
    if not after:
        raise InputError("nothing ends its sources", where=where, fix="start from another model")
    return Ends(target.bos, target.eos, None if after[-1] == target.eos else after[-1])


def framed_pairs(pairs: Iterable[tuple[Ids, Ids]], spec: TranslatorSpec) -> list[tuple[Ids, Ids]]:
    """The pairs with the tokens around every source, except its end token, and those that begin every target; the same
    lists where there are none."""
    before, after, begin = spec.before or (), (spec.after or ())[:-1], spec.begin or ()
    return [
        ([*before, *source, *after] if before or after else source, [*begin, *target] if begin else target)
        for source, target in pairs
    ]


def cross_entropy(model: TranslationModel, batch: PairBatch, *, smoothing: float = 0.0, rdrop: float = 0.0) -> Loss:
    """Summed over the target's tokens, in nats; padding is dropped before the logits are computed. With `rdrop` each
    row is followed by its second pass, whose loss and divergence are added."""
    device = model.head.weight.device
    source, target_in, target_out, source_segments, target_segments = (part.to(device) for part in batch)
    hidden = model.hidden(source, target_in, source_segments, target_segments)
    real = target_segments > 0
    return Loss(_summed(model, hidden, target_out, real, smoothing, rdrop), int(real.sum()))


def whole_cross_entropy(
    model: DecoderOnlyTranslator, batch: PairBatch, *, smoothing: float = 0.0, rdrop: float = 0.0
) -> Loss:
    """The same in value; its gradient is also that of the source's tokens but the first, by the model's weight for
    them (Liu et al. 2018, section 4.2.3). In training, the auxiliary losses of blocks are added."""
    device = model.head.weight.device
    source, target_in, target_out, source_segments, target_segments = (part.to(device) for part in batch)
    auxiliary: list[Tensor] | None = [] if model.training else None
    hidden = model.whole(source, target_in, source_segments, target_segments, auxiliary)
    S, real = source.shape[1], target_segments > 0
    total = _summed(model, hidden[:, S:], target_out, real, smoothing, rdrop)
    if not model.config.input_loss:
        return with_auxiliary(Loss(total, int(real.sum())), auxiliary)
    follows = (source_segments[:, 1:] == source_segments[:, :-1]) & (source_segments[:, 1:] > 0)
    of_source = _summed(model, hidden[:, : S - 1], source[:, 1:], follows, smoothing, rdrop)
    total = total + model.config.input_loss * (of_source - of_source.detach())
    return with_auxiliary(Loss(total, int(real.sum())), auxiliary)


def _summed(
    model: TranslationModel, hidden: Tensor, following: Tensor, counted: Tensor, smoothing: float, rdrop: float
) -> Tensor:
    """Over the positions that are `counted`."""
    if not rdrop:
        return head_cross_entropy(model.head, hidden[counted], following[counted], smoothing=smoothing)
    # both passes of a token side by side
    hidden, following, counted = (part.unflatten(0, (-1, 2)).movedim(1, 2) for part in (hidden, following, counted))
    return linear_cross_entropy(
        hidden[counted],
        model.head.weight,
        model.head.bias,
        following[counted],
        smoothing=smoothing,
        agreement=rdrop,
    )


@torch.inference_mode()
def target_nats(model: TranslationModel, pairs: Sequence[tuple[Ids, Ids]], ends: Ends = OUR_ENDS) -> tuple[float, int]:
    """The summed cross-entropy of the targets in nats, and their tokens with their ends; a pair of which a side is
    empty counts nothing."""
    filled = [pair for pair in pairs if all(pair)]
    longest = max((len(side) + 1 for pair in filled for side in pair), default=0)
    batches = bucket_rows(filled, range(len(filled)), tokens=max(4096, longest), ends=ends)
    losses = [cross_entropy(model, batch) for batch in batches]
    return sum(float(each.total) for each in losses), sum(each.count for each in losses)
