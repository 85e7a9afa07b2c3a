"""The cross-entropy of the next token of running text."""

from torch import Tensor

from heedful.data.batches import TextBatch
from heedful.models.lm import LM
from heedful.training.loss import Loss, head_cross_entropy, with_auxiliary


def next_token_loss(model: LM, batch: TextBatch, *, across: bool, smoothing: float = 0.0) -> Loss:
    """The loss, summed over the tokens that are learnt, in nats. `across`: a token may attend to the documents before
    its own. In training, the auxiliary losses of blocks, such as the load balancing of experts, are added."""
    device = model.head.weight.device
    auxiliary: list[Tensor] | None = [] if model.training else None
    segments = None if across else batch.segments.to(device)
    hidden = model.hidden(batch.tokens.to(device), segments, losses=auxiliary)
    following = batch.following.to(device)
    if batch.learnt is None:
        hidden, following = hidden.flatten(0, 1), following.flatten()
    else:
        learnt = (batch.learnt & (batch.segments > 0)).to(device)
        hidden, following = hidden[learnt], following[learnt]
    total = head_cross_entropy(model.head, hidden, following, smoothing=smoothing, softcap=model.config.softcap)
    return with_auxiliary(Loss(total, len(following)), auxiliary)
