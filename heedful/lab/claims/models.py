"""The decks' one-sentence claims about models, tested on small models with random weights."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset

from heedful.core.norm import make_norm
from heedful.lab.decoding.student import STEPS, STUDENT, learnt
from heedful.lab.drawn import bars
from heedful.lab.exhibit import Rows, Says, Shown, Width, holds, unsaid
from heedful.models.presets import TransformerSize, transformer_config
from heedful.models.seq2seq import Seq2Seq

WORDS = ("<end>", "I", "am", "a", "student", "you", "are", "the")


def small_translator(seed: int) -> Seq2Seq:
    """A Transformer with two blocks on each side, width 16 and a vocabulary of eight words, in eval mode."""
    torch.manual_seed(seed)
    row = TransformerSize(d_model=16, n_heads=2, d_ff=32, encoder_layers=2, decoder_layers=2, dropout=0.0)
    size = len(WORDS)
    return Seq2Seq(transformer_config(row, source_vocab=size, target_vocab=size, joint=True)).eval()


def output_of_a_decoder(says: Says, *, seed: int = 0) -> Shown:
    """Counts the words with a probability above zero in the softmax of the last layer's output."""
    with torch.inference_mode():
        logits = small_translator(seed)(torch.tensor([[1, 2, 3]]), torch.tensor([[0]]))[0, -1]
    probabilities = logits.softmax(-1)
    one_hot = bool((probabilities > 1e-6).sum() == 1)
    claim = "the output of a decoder is one-hot"
    lines = [holds(says, claim, one_hot)]
    lines += unsaid({"words with a probability": int((probabilities > 0).sum()), "sum": probabilities.sum()})
    drawn = bars(dict(zip(WORDS, probabilities.tolist(), strict=True)), y="probability of the next word")
    return Shown(lines, drawn)


def logits_to_a_word(says: Says, *, seed: int = 0) -> Shown:
    """Shows logits, their log-softmax, the likeliest word, and the loss if that word is the target."""
    with torch.inference_mode():
        logits = small_translator(seed)(torch.tensor([[1, 2, 3]]), torch.tensor([[0, 1]]))[0, -1]
    logs = logits.log_softmax(-1)
    best = int(logits.argmax())
    same = best == int(logs.argmax())
    lines = [holds(says, "the likeliest word of both is the same", same)]
    facts = {"logits": logits, "log-probabilities": logs, "word": WORDS[best]}
    facts["its loss"] = cross_entropy(logits[None], torch.tensor([best]))
    return Shown(lines + unsaid(facts), bars(dict(zip(WORDS, logs.exp().tolist(), strict=True)), y="probability"))


def widths_and_norms(says: Says, *, tokens: Rows = 7, width: Width = 512) -> Shown:
    """The numbers of input and output vectors; and whether a layer norm depends on the rest of the batch."""
    torch.manual_seed(0)
    norm = make_norm("layer", width, 1e-5)
    x = torch.randn(2, tokens, width)
    with torch.no_grad():
        apart = torch.equal(norm(x)[:1], norm(x[:1]))
        batch = torch.nn.BatchNorm1d(width)(x.flatten(0, 1)).view_as(x)[:1]
        batch_apart = torch.allclose(batch, torch.nn.BatchNorm1d(width)(x[:1].flatten(0, 1)).view_as(batch))
        shape = list(norm(x[:1]).shape[1:])
    return Shown(
        [
            holds(says, "words in an input", f"any: {shape[0]} of width {shape[1]} here", right=False),
            holds(says, "layer norm works like batch norm", not apart, right=apart == batch_apart),
            *unsaid({"a layer norm is changed by other rows": not apart}),
            *unsaid({"a batch norm is changed by other rows": not batch_apart}),
        ]
    )


def who_generates(says: Says, *, sentence: str = STUDENT[0]) -> Shown:
    """An encoder-decoder that learnt some French generates a sentence, one word after another."""
    (said,) = learnt(STEPS).translate([sentence])
    claim = "only decoders are generative"
    return Shown([holds(says, claim, f"an encoder-decoder makes {said!r} of {sentence!r}", right=not said)])


def parts_of_a_program(says: Says, *, name: str = "BilingualDataset") -> Shown:
    """Looks for a name among the data set classes of PyTorch."""
    kinds: list[type] = [Dataset]
    waiting: list[type] = [Dataset]
    while waiting:
        below: list[type] = waiting.pop().__subclasses__()
        kinds, waiting = kinds + below, waiting + below
    theirs = [kind for kind in kinds if kind.__module__.startswith("torch.")]
    lines = [holds(says, "BilingualDataset is a class of PyTorch", name in [kind.__name__ for kind in theirs])]
    told = sorted({kind.__name__ for kind in theirs if kind.__module__ == Dataset.__module__})  # leaves out the pipes
    return Shown(lines + unsaid({"data sets of PyTorch": " ".join(told)}))
