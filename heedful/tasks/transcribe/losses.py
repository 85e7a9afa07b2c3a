"""The loss of a model that turns speech into text, per token of the text, its end included.

B windows, M mel bands, F frames.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.data.tokenizer import Ids, Tokenizer
from heedful.models import CTC, SpeechToText
from heedful.tasks.shared.writing import predicted
from heedful.training.loss import Loss, head_cross_entropy


def speech_loss(
    model: SpeechToText | CTC,
    sound: Float[Tensor, "B M F"],
    targets: Sequence[Ids],
    tokenizer: Tokenizer,
    *,
    begin: Sequence[int] = (),
    lengths: Int[Tensor, "B"] | None = None,
    longest: int | None = None,
) -> Loss:
    """Cross-entropy of the targets behind `begin`, or what CTC gives to all ways of saying them. `lengths` of the
    sounds: as in `CTC`; `longest`: as in `predicted`."""
    device = model.head.weight.device
    sound = sound.to(model.head.weight)
    if isinstance(model, CTC):
        lengths = None if lengths is None else lengths.to(device)
        logits = model(sound, lengths)
        counts = torch.tensor([len(ids) for ids in targets], device=device)
        tokens = torch.tensor([token for ids in targets for token in ids], device=device)
        logs, ends = logits.float().log_softmax(-1).transpose(0, 1), model.encoder.ends(logits, lengths)
        total = F.ctc_loss(logs, tokens, ends, counts, model.config.blank, "sum", zero_infinity=True)
        return Loss(total, int((counts + 1).sum()))
    memory = model.encode(sound)
    hidden, following = predicted(model, memory, [[*begin]] * len(targets), targets, tokenizer, longest=longest)
    return Loss(head_cross_entropy(model.head, hidden, following), len(following))
