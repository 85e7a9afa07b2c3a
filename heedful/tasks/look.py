"""Looking inside a translation, or a text that is read: which tokens looked at which, in every layer and head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.data.frame import Frame, rectangle
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.look.draw import heatmap, overview, to_bytes
from heedful.look.labels import summary
from heedful.look.page import attention_view, page
from heedful.look.record import record
from heedful.models import LM, Transducer
from heedful.tasks.answer import Answerer
from heedful.tasks.classify import TextClassifier
from heedful.tasks.embed import TextEncoder
from heedful.tasks.fill import Filler
from heedful.tasks.generate import LanguageModel
from heedful.tasks.tag import Tagger
from heedful.tasks.translate import Translator

Reads = Filler | TextEncoder | TextClassifier | Tagger | Answerer | LanguageModel


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


def look_within(served: Reads, text: str, *, pair: str | None = None, layers: str | Sequence[str] = "*") -> Looked:
    """Reads `text`, or a question and the `pair` that answers it, or two texts, and records who looked at whom on the
    way: queries and keys are its tokens, framed.

    `layers` chooses by name, such as "stack.blocks.0.*". Raises InputError for an empty text, for more tokens than the
    model can read at once, and for a pair where the model reads one text, or none where it reads two.
    """
    tokenizer = served.tokenizer
    match served:
        case Filler():
            encode = tokenizer.encode_masked
        case LanguageModel():
            encode = tokenizer.encode_whole
        case _:
            encode = tokenizer.encode
    first, *second = encode([text] if pair is None else [text, pair])
    if not first or second == [[]]:
        raise InputError("there is no text to look at", fix='heed look RUN "a sentence"')
    if pair is not None and not isinstance(served, TextClassifier | Answerer):
        raise InputError("this model reads one text", fix="leave out --pair")
    if pair is None and isinstance(served, Answerer):
        raise InputError("a question without a text to answer it from", fix='give --pair "the text"')
    body, frame = _body(served)
    framed = frame.put(first, *second)
    if len(framed.tokens) > body.config.embed.places.size:
        what = f"{len(framed.tokens)} tokens, but the model reads at most {body.config.embed.places.size}"
        raise InputError(what, where=f"{text[:40]}...", fix="give less text")
    tokens, _, types = (part.to(body.embed.tokens.weight.device) for part in rectangle([framed]))
    with torch.inference_mode(), record(body, layers) as recording:
        body.hidden(tokens) if isinstance(body, LM) else body.hidden(tokens, None, types)
    shown = _pieces(tokenizer, framed.tokens)
    return Looked(text, shown, shown, shown, {name: recording.weights(name)[0] for name in recording.names})


def _body(served: Reads) -> tuple[Any, Frame]:
    """What reads, and what it reads around a text."""
    model, tokenizer = served.model, served.tokenizer
    match served:
        case TextClassifier():
            return model.lm or model.encoder, served.layout.frame
        case Tagger() | Answerer():
            return model.encoder, Frame.of_encoder(tokenizer)
        case LanguageModel():
            return model, Frame(served.before, [], [])
        case TextEncoder():
            return model, served.frame
        case _:
            return model, Frame([tokenizer.bos], [], [tokenizer.eos])


def head_labels(looked: Looked) -> dict[str, list[str]]:
    """Of each layer of a text that was read: what its heads seem to do."""
    return {name: [str(label) for label in summary(each, same=True)] for name, each in looked.weights.items()}


def looked_at(looked: Looked, at: int) -> list[tuple[str, float]]:
    """What the token in this place looked at in the last layer: each token and its share, the heads' mean."""
    last = [*looked.weights.values()][-1]
    return list(zip(looked.read, last.mean(0)[at].tolist(), strict=True))


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
