"""The cross-entropy of the next token of running text."""

from torch import Tensor

from heedful.data.batches import TextBatch
from heedful.models.lm import LM
from heedful.run.teacher import Teacher
from heedful.training.distillation import Outputs
from heedful.training.loss import Loss, head_cross_entropy, with_auxiliary


def next_token_loss(
    model: LM, batch: TextBatch, *, across: bool, smoothing: float = 0.0, teacher: Teacher | None = None
) -> Loss:
    """The loss, summed over the tokens that are learnt, in nats. `across`: a token may attend to the documents before
    its own. In training, the auxiliary losses of blocks, such as the load balancing of experts, are added, and what
    there is to learn from a teacher."""
    device = model.head.weight.device
    auxiliary: list[Tensor] | None = [] if model.training else None
    tokens, segments = batch.tokens.to(device), None if across else batch.segments.to(device)
    learnt = None if batch.learnt is None else (batch.learnt & (batch.segments > 0)).to(device)

    def rows(part: Tensor) -> Tensor:
        return part.flatten(0, 1) if learnt is None else part[learnt]

    hidden = rows(model.hidden(tokens, segments, losses=auxiliary))
    following = rows(batch.following.to(device))
    total = head_cross_entropy(model.head, hidden, following, smoothing=smoothing, softcap=model.config.softcap)
    loss = with_auxiliary(Loss(total, len(following)), auxiliary)
    if teacher is None:
        return loss
    student = Outputs(hidden, model.logits)
    return teacher.mixed(loss, student, lambda other: Outputs(rows(other.hidden(tokens, segments)), other.logits))
