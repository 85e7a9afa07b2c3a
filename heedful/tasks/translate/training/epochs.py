"""The epochs of a translator's training: pairs in random order, in batches, and their loss."""

from collections.abc import Sequence

from heedful.core.seeds import shuffled
from heedful.data.batches import OUR_ENDS, Ends, PairBatch, bucket_rows, pack_rows
from heedful.data.stored import StoredPairs, longest_of
from heedful.data.tokenizer import Ids
from heedful.models import TranslationModel
from heedful.tasks.shared.sections import PackedTrain
from heedful.tasks.translate.training.losses import training_loss
from heedful.tasks.translate.training.variants import Variants
from heedful.training.loss import Loss

SMOOTHING = 0.1  # of the labels, unless the recipe says otherwise (Vaswani et al. 2017, section 5.4)


class TranslationTask:
    """Batches of sentence pairs, and the cross-entropy of the target's tokens.

    A decoder-only model also learns from the source's tokens, but its loss does not count them, so that the losses of
    all models compare. A model that can keep sentences apart gets rows packed with several sentences, all of the same
    shape; another gets one sentence in each row, sorted by length.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Ids, Ids]],
        plan: PackedTrain,
        *,
        packs: bool,
        ends: Ends = OUR_ENDS,
        weights: Sequence[float] = (),
        mixes: Sequence[tuple[Sequence[int], float]] = (),
        variants: Variants | None = None,
    ) -> None:
        """`weights`: how often an epoch has each pair (empty: once). `mixes`: the numbers of pairs, after all others,
        from which this share of each epoch is drawn. `variants` makes other forms of the pairs in each epoch."""
        self.plan, self.packs, self.ends = plan, packs, ends
        self.weights, self.mixes, self.variants = weights, mixes, variants
        self.pairs = pairs
        self.row = max(plan.row, -(-longest_of(pairs) // 16) * 16)

    def batches(self, epoch: int, model: object) -> Sequence[PairBatch]:
        plan, pairs = self.plan, self.pairs
        order = self.order(epoch)
        if self.variants is not None:
            pairs = self.variants.of(pairs, order, epoch, row=self.row)
            order = range(len(pairs))
        if self.packs:
            rows = max(1, plan.tokens // self.row)
            return pack_rows(pairs, order, row=self.row, rows=rows, ends=self.ends)
        made = bucket_rows(pairs, order, tokens=max(plan.tokens, self.row), ends=self.ends)
        # The order of the lengths is random too: long sentences at the end would be remembered best.
        return made.ordered(shuffled(len(made), plan.seed + 1, epoch))

    def order(self, epoch: int) -> Sequence[int]:
        """The numbers of an epoch's pairs; of stored pairs, those of a turn."""
        if isinstance(self.pairs, StoredPairs):
            return self.pairs.turn(self.plan.seed, epoch)
        seed, mixed = self.plan.seed, sum(len(rows) for rows, _ in self.mixes)
        count = len(self.pairs) - mixed
        if not self.mixes:
            return weighted_order(self.weights, seed, epoch) if self.weights else shuffled(count, seed, epoch)
        own = weighted_order(self.weights[:count], seed, epoch) if self.weights else range(count)
        return mixed_order(own, self.mixes, seed, epoch)

    def loss(self, model: TranslationModel, batch: PairBatch) -> Loss:
        smoothing = SMOOTHING if self.plan.smoothing is None else self.plan.smoothing
        return training_loss(model, batch, smoothing=smoothing, rdrop=self.plan.rdrop)


def weighted_order(weights: Sequence[float], seed: int, epoch: int) -> list[int]:
    """The numbers of an epoch's pairs, in random order. Pairs with a weight of 2.2 come twice, and another fifth of
    them once more, others in each epoch; of pairs with a weight above 0, at least one comes."""
    groups: dict[float, list[int]] = {}
    for i, weight in enumerate(weights):
        groups.setdefault(weight, []).append(i)
    chosen: list[int] = []
    for number, (weight, rows) in enumerate(sorted(groups.items()), 1):
        chosen += rows * int(weight)
        drawn = shuffled(len(rows), seed + number, epoch)
        chosen += [rows[i] for i in drawn[: max(int(0 < weight < 1), round(weight % 1 * len(rows)))]]
    return [chosen[i] for i in shuffled(len(chosen), seed, epoch)]


def mixed_order(own: Sequence[int], mixes: Sequence[tuple[Sequence[int], float]], seed: int, epoch: int) -> list[int]:
    """The numbers of an epoch's pairs, in random order: `own`, and from each mix, given by its pairs' numbers and its
    share, as many as make up that share of the epoch."""
    whole = len(own) / (1 - sum(share for _, share in mixes))
    chosen = [*own]
    for number, (rows, share) in enumerate(mixes, 1):
        chosen += [rows[i] for i in drawn(max(1, round(share * whole)), len(rows), seed + number, epoch)]
    return [chosen[i] for i in shuffled(len(chosen), seed, epoch)]


def drawn(count: int, size: int, seed: int, epoch: int) -> list[int]:
    """The numbers of `count` of `size` pairs. Successive epochs draw them from a random order of all pairs, and then
    from another one: every pair comes before any comes again."""
    first = count * epoch
    last, chosen = first + count, list[int]()
    for turn in range(first // size, -(-last // size)):
        begin = turn * size
        chosen += shuffled(size, seed, turn)[max(0, first - begin) : last - begin]
    return chosen
