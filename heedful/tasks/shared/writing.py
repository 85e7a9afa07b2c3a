"""Shared by models that write a text about something that is no text: sound, a picture.

B inputs, S positions of each with D features, T tokens, N of them that are predicted, R running rows, V vocabulary,
C model width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.data.batches import pad
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.decode.contract import Rule, SearchOptions
from heedful.decode.rows import in_halves, limits_of
from heedful.decode.search import beam as beam_search
from heedful.decode.search import greedy
from heedful.decode.settings import Decoding
from heedful.models import ImageToText, SpeechToText
from heedful.models.seq2seq import Seq2SeqState

Writer = SpeechToText | ImageToText


@dataclass(frozen=True)
class Numbered:
    """Inputs as the sources of a search, which names each by its number."""

    model: Writer
    inputs: Float[Tensor, "B ..."]

    def start(self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None) -> Seq2SeqState:
        return self.model.start(self.inputs[source[:, 0]])

    def step(self, tokens: Int[Tensor, "R"], state: Seq2SeqState) -> tuple[Float[Tensor, "R V"], Seq2SeqState]:
        return self.model.step(tokens, state)


def written(
    model: Writer,
    inputs: Float[Tensor, "B ..."],
    begins: Sequence[Ids],
    tokenizer: Tokenizer,
    decoding: Decoding,
    *,
    longest: int | Sequence[int],
    at_once: int | None = None,
    forbidden: tuple[int, ...] = (),
    rules: Sequence[Rule] = (),
) -> list[Ids]:
    """The tokens of the text of each input, behind those in `begins` that it begins with. `longest`: tokens at most, of
    all or of each, with those at the beginning."""
    limits = limits_of(longest, len(inputs))
    numbered = Numbered(model, inputs)

    def search(rows: Sequence[int]) -> list[Ids]:
        source = torch.tensor([*rows], device=inputs.device)[:, None]
        options: SearchOptions = {
            "bos": tokenizer.bos,
            "eos": tokenizer.eos,
            "longest": [limits[i] for i in rows],
            "length_penalty": decoding.length_penalty,
            "forbidden": forbidden,
            "rules": rules,
            "prefix": [begins[i] for i in rows],
            "at_once": at_once,
        }
        if decoding.beam == 1:
            found = greedy(numbered, source, **options)
        else:
            early, first = decoding.early_stopping, decoding.finished_first
            listed = beam_search(
                numbered, source, beam=decoding.beam, early_stopping=early, finished_first=first, **options
            )
            found = [best for best, *_ in listed]
        return [[*best.tokens[len(begins[i]) :]] for i, best in zip(rows, found, strict=True)]

    return in_halves(search, range(len(inputs)))


def predicted(
    model: Writer,
    memory: Float[Tensor, "B S D"],
    begins: Sequence[Ids],
    texts: Sequence[Ids],
    tokenizer: Tokenizer,
    *,
    longest: int | None = None,
) -> tuple[Float[Tensor, "N C"], Int[Tensor, "N"]]:
    """The hidden states from which the tokens of each text and its end are predicted, and these tokens, but not those
    that a text begins with. `memory`: what the model makes of that which each text is about. `longest`: the tokens of
    the longest text, with its beginning, where that is none of these."""
    device, length = model.head.weight.device, None if longest is None else longest + 1
    rows, filler = [[*begin, *ids] for begin, ids in zip(begins, texts, strict=True)], tokenizer.pad
    read, _ = (part.to(device) for part in pad(rows, before=[tokenizer.bos], after=(), filler=filler, length=length))
    following, real = (part.to(device) for part in pad(rows, after=[tokenizer.eos], filler=filler, length=length))
    counted = real > 0
    for row, begin in enumerate(begins):
        counted[row, : len(begin)] = False
    return model.hidden(memory, read)[counted], following[counted]
