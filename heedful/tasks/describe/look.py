"""Inside a model that writes texts about pictures: which patches each token looked at.

H heads, T tokens, R rows and C columns of patches, h x w pixels of N channels.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from heedful.data.images.files import read_image
from heedful.errors import InputError
from heedful.look.draw import to_bytes
from heedful.look.overlay import each_page, heat_overlay, map_view, over_each, picture_view
from heedful.look.record import record
from heedful.run.task import Feed, Looked, NamedWeights
from heedful.tasks.describe.options import DescribeLook
from heedful.tasks.describe.use import Describer
from heedful.tasks.shared.pieces import labelled_pieces
from heedful.tasks.shared.served import opened

CROSS = "decoder.*.cross_attention"


@dataclass(frozen=True)
class TextOverPicture:
    """A picture as the model sees it, the text, its tokens with their probabilities, and the weights of each layer:
    those of a row are what the model looked at to write the token."""

    file: str
    text: str
    picture: UInt8[Tensor, "N h w"]
    tokens: list[tuple[str, float]]
    weights: dict[str, Float[Tensor, "H T R C"]]

    def maps(self, head: int | None = None) -> dict[str, Float[Tensor, "R C"]]:
        """The mean over all layers and heads, or over those of one number, of each token, which is numbered. Raises
        InputError for a head that does not exist."""
        every = [heads if head is None else heads[head : head + 1] for heads in self.weights.values()]
        if any(not len(heads) for heads in every):
            most = min(map(len, self.weights.values()))
            raise InputError(f"{most} heads, no head {head}", fix="--head counts from 0")
        mean = torch.cat(every).mean(0)
        return {f"{n} {token}": grid for n, ((token, _), grid) in enumerate(zip(self.tokens, mean, strict=True), 1)}


def look_at_text(
    describer: Describer, file: str | Path, *, question: str = "", layers: str | Sequence[str] = ""
) -> TextOverPicture:
    """The attention to the picture while a text about it is written. `layers` chooses by name among those of the
    decoder that look at the picture. Raises InputError or MissingError."""
    prepared, model, tokenizer = describer.spec.preparation, describer.model, describer.tokenizer
    picture = prepared.fitted(read_image(file, channels=prepared.channels), where=str(file))
    pixels = describer.spec.shown(prepared.normalised(prepared.scaled(picture[None]))).to(model.head.weight.device)
    (begin,), (ids,) = describer.encoded([question]), describer.ids(opened([file], prepared), [question])
    read = torch.tensor([[tokenizer.bos, *begin, *ids][: model.config.target.context_length]], device=pixels.device)
    rows, columns = model.config.encoder.patches.grid_of(picture.shape[1:])
    with torch.inference_mode(), record(model, layers or CROSS) as recording:
        logits = model(pixels, read)[0, len(begin) :]
    if others := [name for name in recording.names if not name.endswith("cross_attention")]:
        raise InputError(f"{others[0]} does not look at the picture", fix=f"choose among {CROSS}")
    weights = {
        name: recording.weights(name)[0, :, len(begin) :, -rows * columns :].unflatten(-1, (rows, columns))
        for name in recording.names
    }
    predicted = [*ids, tokenizer.eos][: len(logits)]
    chances = logits.float().softmax(-1)[range(len(predicted)), predicted].tolist()
    pieces = labelled_pieces(tokenizer, [*begin, *predicted])[len(begin) :]
    text = describer.read(ids)
    return TextOverPicture(str(file), text, picture, list(zip(pieces, chances, strict=True)), weights)


def draw_text_over(looked: TextOverPicture, kind: str, *, head: int | None = None) -> bytes:
    """The picture, and over it what each token looked at, as a .png, .svg or .html file, or the JSON that a page draws
    it from, which has each layer too. Raises InputError for a head that does not exist."""
    maps, title = looked.maps(head), f"{Path(looked.file).name}: {looked.text}"
    if kind == "json":
        views = [map_view("", name, grid) for name, grid in maps.items()]
        for layer, weights in looked.weights.items():
            shown = weights if head is None else weights[head : head + 1]
            views += [map_view(layer, name, grid) for name, grid in zip(maps, shown.mean(0), strict=True)]
        return json.dumps(picture_view(looked.picture, views, title=title, said=looked.tokens)).encode()
    if kind == "html":
        drawn = {name: heat_overlay(looked.picture, grid) for name, grid in maps.items()}
        return each_page(looked.picture, drawn, title=title, told="what each token of the text looked at").encode()
    return to_bytes(over_each(looked.picture, maps, title=title), "png" if kind == "png" else "svg")


def look_describing(describer: Describer, file: str, kind: str, options: DescribeLook) -> Looked:
    looked = look_at_text(describer, file, question=options.question or "", layers=options.layer or "")
    facts = {"input": file, "text": looked.text, "layers": list(looked.weights)}
    return Looked(draw_text_over(looked, kind, head=options.head), f"{file}\n  -> {looked.text}", facts)


def attention_describing(describer: Describer, file: str, options: DescribeLook) -> dict[str, NamedWeights]:
    """The weights that `look_describing` draws."""
    looked = look_at_text(describer, file, question=options.question or "", layers=options.layer or "")
    labels = {"query": [token for token, _ in looked.tokens]}
    return {
        name: NamedWeights(weights, ("head", "query", "row", "column"), labels)
        for name, weights in looked.weights.items()
    }


def feed_describing(describer: Describer, file: str, pair: str | None) -> Feed:
    """A picture's file, and in `pair` what is asked about it. What is said in the end is the first token of the text.
    Raises InputError or MissingError."""
    model, tokenizer, prepared = describer.model, describer.tokenizer, describer.spec.preparation
    (begin,) = describer.encoded([pair or ""])
    pixels = describer.spec.shown(prepared([read_image(file, channels=prepared.channels)], [file]))
    _, channels, height, width = pixels.shape
    shown = [f"{height} x {width} pixels, {channels} channels", *labelled_pieces(tokenizer, begin)]
    read = torch.tensor([[tokenizer.bos, *begin]])
    return Feed(shown, lambda: model(pixels, read)[0, -1], lambda index: labelled_pieces(tokenizer, [index])[0])
