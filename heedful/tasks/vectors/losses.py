"""The losses of word vectors.

B rows, P words of a row, W words with those around them, K negative samples, D width.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heedful.models.vectors import Vectors
from heedful.tasks.vectors.batches import WindowBatch, WordPairBatch
from heedful.tasks.vectors.words import GAP
from heedful.training.loss import Loss

ALPHA = 0.75  # the exponent of GloVe's weights (Pennington et al. 2014, equation 9)


def near(batch: WindowBatch) -> Float[Tensor, "B P W"]:
    """1 where a word is in the window of a word of the middle, except for the word itself and for gaps."""
    at = torch.arange(batch.words.shape[1], device=batch.words.device)
    apart = (at - batch.middle(at[None]).mT).abs()
    real = batch.words != GAP
    seen = (apart <= batch.reach[..., None]) & (apart > 0) & real[:, None]
    return (seen & batch.middle(real)[..., None]).float()


def skipgram(model: Vectors, batch: WindowBatch, negatives: int) -> Loss:
    """Negative sampling: -log s(v'_c v_w) for each word w and each c in its window, and -log s(-v'_n v_w) for
    `negatives` sampled words n each (Mikolov et al. 2013b, equation 4). The K samples of a row stand for those of all
    its pairs. The count is in words."""
    mask, words = near(batch), batch.words.clamp(min=0)
    centre = model.words(batch.middle(words))
    scores = centre @ model.contexts(words).mT
    against = centre @ model.contexts(batch.drawn).mT
    pairs = mask.sum(-1)
    total = -(F.logsigmoid(scores) * mask).sum() - (F.logsigmoid(-against).sum(-1) * pairs).sum() * _each(
        batch, negatives
    )
    return Loss(total, int((pairs > 0).sum()))


def cbow(model: Vectors, batch: WindowBatch, negatives: int) -> Loss:
    """Negative sampling for each word and the mean vector of its window, which predicts it (Mikolov et al. 2013a,
    section 3.1)."""
    mask, words = near(batch), batch.words.clamp(min=0)
    counts = mask.sum(-1, keepdim=True)
    around = (mask / counts.clamp(min=1)) @ model.words(words)
    known = (counts[..., 0] > 0).float()
    scores = (around * model.contexts(batch.middle(words))).sum(-1)
    against = around @ model.contexts(batch.drawn).mT
    total = -(F.logsigmoid(scores) * known).sum() - (F.logsigmoid(-against).sum(-1) * known).sum() * _each(
        batch, negatives
    )
    return Loss(total, int(known.sum()))


def _each(batch: WindowBatch, negatives: int) -> float:
    """The weight of each negative sample."""
    return negatives / batch.drawn.shape[1]


def glove(model: Vectors, batch: WordPairBatch, x_max: float) -> Loss:
    """f(x) (w v' + b + b' - log x)^2, summed over the pairs (Pennington et al. 2014, equation 8). The count is in
    pairs."""
    assert model.word_biases is not None
    assert model.context_biases is not None
    said = (model.words(batch.words) * model.contexts(batch.contexts)).sum(-1)
    said = said + model.word_biases[batch.words] + model.context_biases[batch.contexts]
    weight = (batch.counts / x_max).clamp(max=1) ** ALPHA
    return Loss((weight * (said - batch.counts.log()) ** 2).sum(), len(batch.words))
