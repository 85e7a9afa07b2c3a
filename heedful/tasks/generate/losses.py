"""The cross-entropy of what follows each token of a running text."""

from heedful.data.batches import TextBatch
from heedful.models.lm import LM
from heedful.training.loss import Loss, head_cross_entropy


def next_token_loss(model: LM, batch: TextBatch, *, across: bool, smoothing: float = 0.0) -> Loss:
    """Summed over the tokens that are learnt, in nats. `across`: a token may look at the documents before its own."""
    device = model.head.weight.device
    hidden = model.hidden(batch.tokens.to(device), None if across else batch.segments.to(device))
    following = batch.following.to(device)
    if batch.learnt is None:
        hidden, following = hidden.flatten(0, 1), following.flatten()
    else:
        learnt = (batch.learnt & (batch.segments > 0)).to(device)
        hidden, following = hidden[learnt], following[learnt]
    total = head_cross_entropy(model.head, hidden, following, smoothing=smoothing, softcap=model.config.softcap)
    return Loss(total, len(following))
