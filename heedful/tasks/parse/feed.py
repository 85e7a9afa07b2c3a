"""One sentence through a parser, for watching the forward pass: its words, and the begin of its tree."""

import torch
from torch import Tensor

from heedful.data.batches import pad
from heedful.data.text.trees import Leaf
from heedful.data.tokenizer import BOS
from heedful.errors import InputError
from heedful.run.task import Feed
from heedful.tasks.parse.use import Parser, words_in
from heedful.tasks.shared.pieces import labelled_pieces


def feed_parser(served: Parser, text: str, pair: str | None) -> Feed:
    """What is said in the end is the tree's first bracket. Raises InputError for a sentence without a word."""
    if pair is not None:
        raise InputError("this model reads one sentence", fix="leave out --pair")
    words = words_in(text)
    if not words:
        raise InputError("there is no word to trace", fix='heed trace RUN "a sentence"')
    source, segments = pad(served.encode([[Leaf("", word) for word in words]]))
    target = torch.tensor([[BOS]])
    labels = {number: label for label, number in served.brackets.ids.items()}

    def run() -> Tensor:
        return served.model(source, target, segments, torch.ones_like(target))[0, -1]

    tokens = labelled_pieces(served.tokenizer, source[0].tolist())
    return Feed([*tokens, "→"], run, lambda index: labels.get(index, f"<{index}>"))
