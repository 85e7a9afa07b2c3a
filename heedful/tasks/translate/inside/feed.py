"""Feeds a source, and the beginning of its translation, to a translator, for watching the forward pass."""

import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.run.task import Feed
from heedful.tasks.shared.pieces import labelled_pieces, named_after
from heedful.tasks.translate.use import Translator


def feed_translator(served: Translator, text: str, pair: str | None) -> Feed:
    """The source, and the beginning of its translation, `pair`. The answer is the next token. Raises InputError for an
    empty text."""
    ((ids,), _) = served.encode([text])
    if not ids:
        raise InputError("there is no text to trace", fix='heed trace RUN "a sentence"')
    served.refuse_too_long([text], [ids])
    served.refuse_untold_target()
    source, segments = served.padded([ids])
    said = [served.target.bos, *served.begin, *(served.target.encode([pair])[0] if pair else [])]
    target = torch.tensor([said])

    def run() -> Tensor:
        return served.model(source, target, segments, torch.ones_like(target))[0, -1]

    tokens = [*labelled_pieces(served.source, source[0].tolist()), "→", *labelled_pieces(served.target, said)]
    return Feed(tokens, run, named_after(served.target, said[-1]))
