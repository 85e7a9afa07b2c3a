"""Several pictures in one, side by side."""

import base64
import io

import torch
import torch.nn.functional as F
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

EDGE = 64  # pixels: smaller pictures are enlarged to about this size, by a whole number
GAP = 2  # pixels between them


def contact_sheet(pictures: UInt8[Tensor, "B N H W"], *, columns: int) -> Image.Image:
    """One picture of all B, with up to `columns` in a row, on white."""
    B, N, H, W = pictures.shape
    scale, columns = max(1, EDGE // max(H, W)), min(columns, B)
    large = pictures.repeat_interleave(scale, 2).repeat_interleave(scale, 3)
    tiles = F.pad(large, (GAP, GAP, GAP, GAP), value=255)
    tiles = torch.cat([tiles, tiles.new_full((-B % columns, *tiles.shape[1:]), 255)])
    sheet = tiles.unflatten(0, (-1, columns)).permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1)
    return Image.fromarray((sheet if N == 3 else sheet[..., 0]).numpy())


def data_url(image: Image.Image) -> str:
    """A picture as a PNG in a data URL."""
    return f"data:image/png;base64,{base64.b64encode(png(image)).decode()}"


def png(image: Image.Image) -> bytes:
    data = io.BytesIO()
    image.save(data, "png")
    return data.getvalue()
