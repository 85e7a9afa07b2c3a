"""Inspects a model of pictures and texts: the similarity of each patch to a text."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from heedful.data.images.files import read_image
from heedful.errors import InputError
from heedful.look.draw import to_bytes
from heedful.look.overlay import each_page, map_view, over_each, picture_view, raised
from heedful.run.task import Looked
from heedful.tasks.match.options import MatchLook
from heedful.tasks.match.use import Matcher


@dataclass(frozen=True)
class CaptionLook:
    """A picture as the model reads it, h x w pixels of N channels in R rows and C columns of patches; and for each text
    its cosine with each patch."""

    file: str
    picture: UInt8[Tensor, "N h w"]
    cosines: dict[str, Float[Tensor, "R C"]]


def look_at_texts(matcher: Matcher, file: str | Path, texts: Sequence[str]) -> CaptionLook:
    """Projects each patch into the common space like the picture's own token: through the last norm and the output
    layer. The model was not trained to align single patches with texts, so any alignment is a side effect. Raises
    InputError or MissingError."""
    prepared, model = matcher.spec.preparation, matcher.model
    picture = prepared.fitted(read_image(file, channels=prepared.channels), where=str(file))
    pixels = prepared.normalised(prepared.scaled(picture[None])).to(model.image_out.weight.device)
    rows, columns = model.config.image.patches.grid_of(picture.shape[1:])
    with torch.inference_mode():
        patches = F.normalize(model.image_out(model.image.hidden(pixels)[0, -rows * columns :]), dim=-1).float().cpu()
    cosines = matcher.embed_texts(texts) @ patches.mT
    return CaptionLook(str(file), picture, dict(zip(texts, cosines.unflatten(1, (rows, columns)), strict=True)))


def draw_texts(looked: CaptionLook, kind: str) -> bytes:
    """The picture, and for each text its cosines over it, from the lowest, left grey, to the highest, as a .png, .svg
    or .html file, or the JSON that a page draws it from."""
    if kind == "json":
        views = [map_view("how near it is to", text, cosines) for text, cosines in looked.cosines.items()]
        said = [(text, float(cosines.max())) for text, cosines in looked.cosines.items()]
        return json.dumps(picture_view(looked.picture, views, title=Path(looked.file).name, said=said)).encode()
    maps = {f"{text}\n{cosines.min():.2f} to {cosines.max():.2f}": cosines for text, cosines in looked.cosines.items()}
    if kind == "html":
        drawn = {name: raised(looked.picture, cosines) for name, cosines in maps.items()}
        return each_page(
            looked.picture, drawn, title=Path(looked.file).name, told="how near each patch is to a text"
        ).encode()
    return to_bytes(over_each(looked.picture, maps, title=Path(looked.file).name), "png" if kind == "png" else "svg")


def look_for_texts(matcher: Matcher, file: str, kind: str, options: MatchLook) -> Looked:
    """Draws where the texts are in a picture. Raises InputError where there is no text."""
    if not options.shown:
        raise InputError("which texts are to be looked for in the picture?", fix="give --text")
    looked = look_at_texts(matcher, file, options.shown)
    told = [f"  {text}: {own.min():.3f} to {own.max():.3f}" for text, own in looked.cosines.items()]
    texts = [{"text": text, "cosines": own.tolist()} for text, own in looked.cosines.items()]
    return Looked(draw_texts(looked, kind), "\n".join([file, *told]), {"input": file, "texts": texts})
