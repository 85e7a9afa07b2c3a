"""Presets of the models that see, style times size as in `heedful.models.presets`: each row is guarded by its
parameter count (`tests/models/test_vision_presets.py`)."""

from dataclasses import dataclass
from typing import Literal

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import PatchesConfig
from heedful.models.vit import ViTConfig


@dataclass(frozen=True, kw_only=True)
class Vision:
    """A Vision Transformer's size. `size` (pixels of an edge) and `n_classes` are the published ones; data and recipe
    replace them."""

    d_model: int
    n_layers: int
    n_heads: int
    patch: int
    d_ff: int | None = None  # None: four times the width
    size: int = 224
    channels: int = 3
    n_classes: int = 1000
    readout: Literal["cls", "mean"] = "cls"
    places: Literal["learned", "sinusoidal"] = "learned"
    teacher: bool = False
    dropout: float = 0.0


CLASSIFIERS: dict[str, Vision] = {
    # For pictures of 28, 32 and 64 pixels: patches small enough to leave a grid of 7 or 8.
    "vit-nano28": Vision(d_model=64, n_layers=4, n_heads=4, patch=4, size=28, channels=1, n_classes=10),
    "vit-micro32": Vision(d_model=192, n_layers=6, n_heads=3, patch=4, size=32, n_classes=10, dropout=0.1),
    "vit-small64": Vision(d_model=384, n_layers=8, n_heads=6, patch=8, size=64, n_classes=200, dropout=0.1),
    # Dosovitskiy et al. 2021, table 1.
    "vit-b32": Vision(d_model=768, n_layers=12, n_heads=12, patch=32),
    "vit-b16": Vision(d_model=768, n_layers=12, n_heads=12, patch=16),
    "vit-l16": Vision(d_model=1024, n_layers=24, n_heads=16, patch=16),
    "vit-h14": Vision(d_model=1280, n_layers=32, n_heads=16, patch=14),
    # Touvron et al. 2021, table 1, without and with a teacher.
    "deit-tiny": Vision(d_model=192, n_layers=12, n_heads=3, patch=16),
    "deit-small": Vision(d_model=384, n_layers=12, n_heads=6, patch=16),
    "deit-base": Vision(d_model=768, n_layers=12, n_heads=12, patch=16),
    "deit-tiny-distilled": Vision(d_model=192, n_layers=12, n_heads=3, patch=16, teacher=True),
    "deit-small-distilled": Vision(d_model=384, n_layers=12, n_heads=6, patch=16, teacher=True),
    "deit-base-distilled": Vision(d_model=768, n_layers=12, n_heads=12, patch=16, teacher=True),
}


def classifier(row: Vision, *, n_classes: int | None = None, size: tuple[int, ...] | None = None) -> ViTConfig:
    """The configuration of a Vision Transformer of this size, for so many classes, and rows and columns of pixels."""
    block = BlockConfig(
        attention=AttentionConfig(n_heads=row.n_heads, dropout=row.dropout),
        d_ff=row.d_ff or 4 * row.d_model,
        order="pre",
        norm_eps=1e-6,
        activation="gelu",
        dropout=row.dropout,
    )
    patches = PatchesConfig(
        size=size or (row.size, row.size), patch=row.patch, channels=row.channels, places=row.places
    )
    return ViTConfig(
        d_model=row.d_model,
        patches=patches,
        stack=StackConfig(n_layers=row.n_layers, block=block, final_norm=True),
        n_classes=row.n_classes if n_classes is None else n_classes,
        readout=row.readout,
        teacher=row.teacher,
        dropout=row.dropout,
    )
