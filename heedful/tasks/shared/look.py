"""Looking inside a text that is read: which tokens looked at which, in every layer and head."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.data.frame import rectangle
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.look.draw import heatmap, overview, to_bytes
from heedful.look.labels import summary
from heedful.look.page import attention_view, page
from heedful.look.record import record
from heedful.models import LM
from heedful.run.task import Looked
from heedful.tasks.shared.cli import LayerOptions, PairOptions
from heedful.tasks.shared.served import TextReader


@dataclass(frozen=True)
class TextLook:
    """A text, its tokens, and the weights (H, T, S) of each attention layer that was watched.

    `read` is what the decoder had read at each position, `said` what it said there; a row of cross-attention is what
    it looked at to say `said`, and so is a row of a decoder alone, which looks at the source and at what it has read.
    Of a text that is only read all three are its tokens.
    """

    text: str
    source: list[str]
    read: list[str]
    said: list[str]
    weights: dict[str, Tensor]


def look_within(
    served: TextReader, text: str, *, pair: str | None = None, layers: str | Sequence[str] = "*"
) -> TextLook:
    """Reads `text`, or a question and the `pair` that answers it, or two texts, and records who looked at whom on the
    way: queries and keys are its tokens, framed.

    `layers` chooses by name, such as "stack.blocks.0.*". Raises InputError for an empty text, for more tokens than the
    model can read at once, and for a pair where the model reads one text, or none where it reads two.
    """
    tokenizer = served.tokenizer
    reads = served.reads
    first, *second = reads.encode([text] if pair is None else [text, pair])
    if not first or second == [[]]:
        raise InputError("there is no text to look at", fix='heed look RUN "a sentence"')
    if pair is not None and reads.texts == "one":
        raise InputError("this model reads one text", fix="leave out --pair")
    if pair is None and reads.texts == "two":
        raise InputError("a question without a text to answer it from", fix='give --pair "the text"')
    body = reads.body
    framed = reads.frame.put(first, *second)
    if len(framed.tokens) > body.config.embed.context_length:
        what = f"{len(framed.tokens)} tokens, but the model reads at most {body.config.embed.context_length}"
        raise InputError(what, where=f"{text[:40]}...", fix="give less text")
    tokens, _, types = (part.to(body.embed.tokens.weight.device) for part in rectangle([framed]))
    with torch.inference_mode(), record(body, layers) as recording:
        body.hidden(tokens) if isinstance(body, LM) else body.hidden(tokens, None, types)
    shown = readable_pieces(tokenizer, framed.tokens)
    return TextLook(text, shown, shown, shown, {name: recording.weights(name)[0] for name in recording.names})


def look_reading(served: TextReader, text: str, kind: str, options: LayerOptions) -> Looked:
    """The weights of a text that is read, and what the token that sums it up looked at in the last layer."""
    pair = options.pair if isinstance(options, PairOptions) else None
    looked = look_within(served, text, pair=pair, layers=options.layer or "*")
    picture = draw_text(looked, kind, head=options.head, chosen=options.layer is not None)
    name = served.reads.sums_up
    at = 0 if name == "first" else -1
    row = looked_at(looked, at)
    likeliest = sorted(row, key=lambda pair: -pair[1])[:5]
    told = f"{looked.read[at]} looks at {', '.join(f'{token} {share:.2f}' for token, share in likeliest)}"
    facts = {"source": text, "text": looked.text, "layers": list(looked.weights)}
    return Looked(picture, told, facts | {"heads": head_labels(looked), name: row})


def head_labels(looked: TextLook) -> dict[str, list[str]]:
    """Of each layer of a text that was read: what its heads seem to do."""
    return {name: [str(label) for label in summary(each, same=True)] for name, each in looked.weights.items()}


def looked_at(looked: TextLook, at: int) -> list[tuple[str, float]]:
    """What the token at this position looked at in the last layer: each token and its share, the heads' mean."""
    last = [*looked.weights.values()][-1]
    return list(zip(looked.read, last.mean(0)[at].tolist(), strict=True))


def readable_pieces(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    """Pieces as people read them: where a word begins is marked by what is before it, so the mark of a space goes
    and what continues a word shows it."""
    shown = tokenizer.pieces(ids)
    return [
        piece.removeprefix("▁") if piece.startswith(("▁", "<")) or i == 0 else f"·{piece}"
        for i, piece in enumerate(shown)
    ]


def draw_text(looked: TextLook, kind: str, *, head: int | None = None, chosen: bool = False) -> bytes:
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
    rows, columns = _axis_tokens(looked, first)
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


def _axis_tokens(looked: TextLook, layer: str) -> tuple[list[str], list[str]]:
    """The tokens of a layer's queries, and of its keys."""
    if layer.startswith("encoder"):
        return looked.source, looked.source
    if not layer.endswith("self_attention"):
        return looked.said, looked.source
    if looked.weights[layer].shape[2] > len(looked.read):
        return looked.said, [*looked.source, *looked.read]
    return looked.read, looked.read
