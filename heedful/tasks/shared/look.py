"""Attention inside a model that reads a text: which tokens looked at which, in every layer and head."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.data.frame import rectangle
from heedful.errors import InputError
from heedful.look.draw import drawable, heatmap, overview, to_bytes, without_font
from heedful.look.labels import summary, token_label
from heedful.look.page import attention_view, page
from heedful.look.record import record
from heedful.models import LM
from heedful.run.task import Looked, NamedWeights
from heedful.tasks.shared.options import LayerOptions, TextPairOptions
from heedful.tasks.shared.served import TextReader
from heedful.tasks.shared.steps import StepsOptions, steps_of


@dataclass(frozen=True)
class TextLook:
    """A text, its tokens, and the weights (H, T, S) of each recorded attention layer.

    `read` is the last token that the decoder had read at each position, `said` the token that it predicted there. A row
    of cross-attention is what it looked at to predict `said`; so is a row of a decoder-only translator, whose keys are
    the source and the target so far. For a text that is only read, `source`, `read` and `said` are its tokens. `origin`
    is the source text, if there is one; `about` says which model it was and how sure; `steps` has the likeliest tokens
    of each step.
    """

    text: str
    source: list[str]
    read: list[str]
    said: list[str]
    weights: dict[str, Tensor]
    origin: str = ""
    about: str = ""
    steps: Sequence[Mapping[str, object]] = ()


def look_within(
    served: TextReader, text: str, *, pair: str | None = None, layers: str | Sequence[str] = "*"
) -> TextLook:
    """Records the attention weights while the model reads `text`, or a question and the `pair` that answers it, or two
    texts. Queries and keys are its framed tokens.

    `layers` selects layers by name, such as "stack.blocks.0.*". Raises InputError for an empty text, for more tokens
    than the model can read, for a pair where the model reads one text, and for no pair where it reads two.
    """
    reads, tokenizer = served.reads, served.tokenizer
    body, framed = reads.body, reads.framed(text, pair, "look at")
    tokens, _, types = (part.to(body.embed.tokens.weight.device) for part in rectangle([framed]))
    steps: Sequence[Mapping[str, object]] = ()
    with torch.inference_mode(), record(body, layers) as recording:
        if isinstance(body, LM) and reads.says:
            begin, said = framed.tokens[:1], framed.tokens[1:]
            steps = steps_of(body(tokens)[0, :-1].cpu(), said, tokenizer, StepsOptions(most=64), before=begin)
        elif isinstance(body, LM):
            body.hidden(tokens)
        else:
            body.hidden(tokens, None, types)
    shown = reads.pieces(tokenizer, framed.tokens)
    weights = {name: recording.weights(name)[0] for name in recording.called}
    return TextLook(text, shown, shown, shown, weights, about=type(body).__name__, steps=steps)


def look_reading(served: TextReader, text: str, kind: str, options: LayerOptions) -> Looked:
    """The attention weights of a text, and what the token that stands for the text looked at in the last layer."""
    pair = options.pair if isinstance(options, TextPairOptions) else None
    looked = look_within(served, text, pair=pair, layers=options.layer or "*")
    picture = draw_text(looked, kind, head=options.head, chosen=options.layer is not None)
    name = served.reads.sums_up
    at = 0 if name == "first" else -1
    row = looked_at(looked, at)
    likeliest = sorted(row, key=lambda pair: -pair[1])[:5]
    shares = ", ".join(f"{token_label(token)} {share:.2f}" for token, share in likeliest)
    told = f"{token_label(looked.read[at])} looks at {shares}"
    facts = {"source": text, "text": looked.text, "layers": list(looked.weights)}
    return Looked(picture, told + font_note(looked, kind), facts | {"heads": head_labels(looked), name: row})


def attention_reading(served: TextReader, text: str, options: LayerOptions) -> dict[str, NamedWeights]:
    """The weights that `look_reading` draws."""
    pair = options.pair if isinstance(options, TextPairOptions) else None
    return named_weights(look_within(served, text, pair=pair, layers=options.layer or "*"), options.head)


def named_weights(looked: TextLook, head: int | None = None) -> dict[str, NamedWeights]:
    """The weights of each layer, for all heads or for one, with the tokens of queries and keys."""
    found = {}
    for name, weights in looked.weights.items():
        rows, columns = _axis_tokens(looked, name)
        if head is not None and head >= len(weights):
            raise InputError(f"{name} has {len(weights)} heads, no head {head}", fix="they are counted from 0")
        chosen = weights if head is None else weights[head : head + 1]
        found[name] = NamedWeights(chosen, ("head", "query", "key"), {"query": rows, "key": columns})
    return found


def head_labels(looked: TextLook) -> dict[str, list[str]]:
    """For each layer: what its heads seem to do."""
    return {name: [str(label) for label in summary(each, same=True)] for name, each in looked.weights.items()}


def looked_at(looked: TextLook, at: int) -> list[tuple[str, float]]:
    """What the token at this position looked at in the last layer: each token and its weight, averaged over heads."""
    last = [*looked.weights.values()][-1]
    return list(zip(looked.read, last.mean(0)[at].tolist(), strict=True))


def draw_text(looked: TextLook, kind: str, *, head: int | None = None, chosen: bool = False) -> bytes:
    """The picture as the content of a .png, .svg or .html file; for the kind "json", the data that a page draws.

    html and json have every layer. A png or svg shows one map with its tokens: the mean over all layers and heads of
    the cross-attention, if there is one, otherwise the last layer's mean over heads; or a single `head`. If the layers
    were `chosen`, it shows all their heads, small. Raises InputError for a head that does not exist.
    """
    if kind in ("html", "json"):
        title, said = (looked.origin, looked.text) if looked.origin else (looked.text, "")
        shown = attention_view(looked.source, looked.read, looked.weights, produced=looked.said, title=title)
        view = shown | {"said": said, "about": looked.about}
        if looked.steps:
            view["steps"] = looked.steps
        return page(view).encode() if kind == "html" else json.dumps(view).encode()
    layers = looked.weights
    if not chosen:
        crossing = {name: each for name, each in layers.items() if not name.endswith("self_attention")}
        layers = crossing or {name: layers[name] for name in [*layers][-1:]}
    last = [*layers][-1]
    rows, columns = _axis_tokens(looked, last)
    if kind == "png":
        rows, columns = drawable(rows), drawable(columns)
    alike = {name: each for name, each in layers.items() if each.shape == layers[last].shape}
    if head is not None:
        if head >= len(alike[last]):
            raise InputError(f"{last} has {len(alike[last])} heads, no head {head}", fix="--head counts from 0")
        figure = heatmap(alike[last][head], rows, columns, title=f"{last}, head {head}")
    elif chosen and sum(len(each) for each in alike.values()) > 1:
        figure = overview(alike, rows, columns, same=rows == columns)
    else:
        figure = heatmap(torch.cat([*alike.values()]).mean(0), rows, columns, title=_mean_of(alike))
    return to_bytes(figure, "png" if kind == "png" else "svg")


def font_note(looked: TextLook, kind: str) -> str:
    """A line that names the characters that a .png cannot show, or ""."""
    lacking = without_font([*looked.source, *looked.read, *looked.said]) if kind == "png" else ""
    if not lacking:
        return ""
    return f"\nno font here has {lacking[:20]}, shown as ?: install Noto's fonts, or take --out x.html or x.svg"


def _mean_of(layers: Mapping[str, Tensor]) -> str:
    """The title of a map that is the mean of these layers."""
    heads = sum(len(each) for each in layers.values())
    name = [*layers][-1] if len(layers) == 1 else f"{[*layers][-1].rpartition('.')[2]} of {len(layers)} layers"
    return name if heads == 1 else f"{name}, mean over {heads} heads"


def _axis_tokens(looked: TextLook, layer: str) -> tuple[list[str], list[str]]:
    """The tokens of a layer's queries, and of its keys."""
    if layer.startswith("encoder"):
        return looked.source, looked.source
    if not layer.endswith("self_attention"):
        return looked.said, looked.source
    if looked.weights[layer].shape[2] > len(looked.read):
        return looked.said, [*looked.source, *looked.read]
    return looked.read, looked.read
