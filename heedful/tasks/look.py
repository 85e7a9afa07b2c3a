"""Looking inside a translation, or a text that is read: which tokens looked at which, in every layer and head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.look.draw import heatmap, overview, to_bytes
from heedful.look.labels import summary
from heedful.look.page import attention_view, page
from heedful.look.record import record
from heedful.models import Classifier, Transducer
from heedful.tasks.classify import TextClassifier
from heedful.tasks.embed import TextEncoder
from heedful.tasks.fill import Filler
from heedful.tasks.translate import Translator


@dataclass(frozen=True)
class Looked:
    """One translation, its tokens, and the weights (H, T, S) of each attention layer that was watched.

    `read` is what the decoder had read at each place, `said` what it said there; a row of cross-attention is what
    it looked at to say `said`, and so is a row of a decoder alone, which looks at the source and at what it has read.
    """

    text: str
    source: list[str]
    read: list[str]
    said: list[str]
    weights: dict[str, Tensor]


def look(translator: Translator, text: str, *, target: str | None = None, layers: str | Sequence[str] = "*") -> Looked:
    """Translates `text` (or takes `target` as its translation) and records who looked at whom on the way.

    `layers` chooses by name, such as "decoder.*.cross_attention". Raises InputError for an empty text.
    """
    ((ids,), _) = translator.encode([text])
    if not ids:
        raise InputError("there is no text to look at", fix='heed look RUN "a sentence"')
    if target is None:
        said = list(translator.hypotheses([ids], translator.decoding())[0][0].tokens)
    else:
        said = [*translator.begin, *translator.target.encode([target])[0]]
    device = translator.model.head.weight.device
    source, segments = (part.to(device) for part in translator.padded([ids]))
    begin, end = translator.target.bos, translator.target.eos
    read = torch.tensor([[begin, *said]], device=device)
    alone = isinstance(translator.model, Transducer)
    queries = range(source.shape[1], source.shape[1] + read.shape[1]) if alone else None
    with torch.inference_mode(), record(translator.model, layers, queries=queries) as recording:
        translator.model(source, read, segments, torch.ones_like(read))
    return Looked(
        translator.target.decode(said),
        _pieces(translator.source, source[0].tolist()),
        _pieces(translator.target, [begin, *said]),
        _pieces(translator.target, [*said, end]),
        {name: recording.weights(name)[0] for name in recording.names},
    )


def look_within(
    served: Filler | TextEncoder | TextClassifier, text: str, *, layers: str | Sequence[str] = "*"
) -> Looked:
    """Reads `text` and records who looked at whom on the way: queries and keys are its tokens, framed.

    `layers` chooses by name, such as "stack.blocks.0.*". Raises InputError for an empty text, or more tokens than the
    model can read at once.
    """
    tokenizer, model = served.tokenizer, served.model
    (ids,) = tokenizer.encode_masked([text]) if isinstance(served, Filler) else tokenizer.encode([text])
    if not ids:
        raise InputError("there is no text to look at", fix='heed look RUN "a sentence"')
    body: Any = (model.lm or model.encoder) if isinstance(model, Classifier) else model
    match served:
        case Filler():
            row = [tokenizer.bos, *ids, tokenizer.eos]
        case TextEncoder():
            row = served.frame.put(ids).tokens
        case _:
            row = served.layout.frame.put(ids).tokens
    if len(row) > body.config.embed.places.size:
        what = f"{len(row)} tokens, but the model reads at most {body.config.embed.places.size}"
        raise InputError(what, where=f"{text[:40]}...", fix="give less text")
    tokens = torch.tensor([row], device=body.embed.tokens.weight.device)
    with torch.inference_mode(), record(body, layers) as recording:
        body.hidden(tokens)
    shown = _pieces(tokenizer, row)
    return Looked(text, shown, shown, shown, {name: recording.weights(name)[0] for name in recording.names})


def head_labels(looked: Looked) -> dict[str, list[str]]:
    """Of each layer of a text that was read: what its heads seem to do."""
    return {name: [str(label) for label in summary(each, same=True)] for name, each in looked.weights.items()}


def first_row(looked: Looked) -> list[tuple[str, float]]:
    """What the first token, which sums a text up, looked at in the last layer: each token and its share, the heads'
    mean."""
    last = [*looked.weights.values()][-1]
    return list(zip(looked.read, last.mean(0)[0].tolist(), strict=True))


def _pieces(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    """Pieces as people read them: where a word begins is marked by what is before it, so the mark of a space goes
    and what continues a word shows it."""
    shown = tokenizer.pieces(ids)
    return [
        piece.removeprefix("▁") if piece.startswith(("▁", "<")) or i == 0 else f"·{piece}"
        for i, piece in enumerate(shown)
    ]


def draw(looked: Looked, kind: str, *, head: int | None = None, chosen: bool = False) -> bytes:
    """The picture as the content of a .png, .svg or .html file.

    The html has every layer. A png or svg shows one map: layers by heads, or one `head` large; of the cross-attention,
    where there is any, unless layers were `chosen`. Raises InputError for a head that is not there.
    """
    if kind == "html":
        view = attention_view(looked.source, looked.read, looked.weights, produced=looked.said, title=looked.text)
        return page(view).encode()
    layers = looked.weights
    if not chosen:
        crossing = {name: each for name, each in layers.items() if not name.endswith("self_attention")}
        layers = crossing or layers
    first = next(iter(layers))
    rows, columns = _sides(looked, first)
    same = rows is columns
    alike = {name: each for name, each in layers.items() if each.shape == layers[first].shape}
    if head is not None or sum(len(each) for each in alike.values()) == 1:
        number = head or 0
        last = list(alike)[-1]
        if number >= len(alike[last]):
            raise InputError(f"{last} has {len(alike[last])} heads, no head {number}", fix="--head counts from 0")
        figure = heatmap(alike[last][number], rows, columns, title=f"{last}, head {number}")
    else:
        figure = overview(alike, rows, columns, same=same)
    return to_bytes(figure, "png" if kind == "png" else "svg")


def _sides(looked: Looked, layer: str) -> tuple[list[str], list[str]]:
    """The tokens of a layer's queries, and of its keys."""
    if layer.startswith("encoder"):
        return looked.source, looked.source
    if not layer.endswith("self_attention"):
        return looked.said, looked.source
    if looked.weights[layer].shape[2] > len(looked.read):
        return looked.said, [*looked.source, *looked.read]
    return looked.read, looked.read
