"""Shared by models with an answer for each token: reading sequences in batches of similar length."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.batches import of_like_length
from heedful.data.frame import Framed, rectangle
from heedful.errors import NonFiniteError
from heedful.models.token_classifier import TokenClassifier

READ = 8192  # tokens that are read at a time


@torch.inference_mode()
def token_logits(model: TokenClassifier, sequences: Sequence[Framed]) -> list[Float[Tensor, "_ L"]]:
    """The logits for each token of each sequence. Raises NonFiniteError."""
    lengths = [len(one.tokens) for one in sequences]
    found: list[Tensor] = [torch.empty(0)] * len(sequences)
    for group in of_like_length(lengths, READ):
        batch = (part.to(model.out.weight.device) for part in rectangle([sequences[i] for i in group]))
        logits = model(*batch).float().cpu()
        if not logits.isfinite().all():
            raise NonFiniteError("the model's answers are not finite", fix="train it with a lower train.lr")
        for i, own in zip(group, logits, strict=True):
            found[i] = own[: lengths[i]]
    return found
