"""Presets of the vision models, a style and a size each, as in `heedful.models.presets`. Each row is checked by its
parameter count (`tests/models/test_vision_presets.py`)."""

from dataclasses import dataclass, replace
from typing import Literal

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import EmbedConfig
from heedful.core.position import PositionConfig
from heedful.models.clip import CLIPConfig, TextConfig
from heedful.models.detr import DETRConfig
from heedful.models.image_to_text import ImageToTextConfig
from heedful.models.patches import PatchesConfig
from heedful.models.pyramid import PyramidConfig, StageConfig
from heedful.models.resnet import ResNetConfig
from heedful.models.vit import ViTConfig
from heedful.models.windows import WINDOWS


@dataclass(frozen=True, kw_only=True)
class ViTSize:
    """A Vision Transformer's size. `size` (pixels of an edge) and `n_classes` are the published ones; data and recipe
    replace them."""

    d_model: int
    n_layers: int
    n_heads: int
    patch: int
    patch_rows: int | None = None  # None: as many as columns
    d_ff: int | None = None  # None: four times the width
    size: int = 224
    channels: int = 3
    n_classes: int = 1000
    readout: Literal["cls", "mean"] = "cls"
    position_embeddings: Literal["learned", "sinusoidal", "none"] = "learned"
    window: int | None = None  # patches look at their own square of so many rows and columns; None: at all
    depths: tuple[int, ...] = ()  # blocks of further stages: a quarter of the patches, twice the width and heads each
    stem: tuple[int, ...] = ()
    teacher: bool = False
    dropout: float = 0.0


_SWIN = ViTSize(
    d_model=96, n_layers=2, n_heads=3, patch=4, readout="mean", position_embeddings="none", window=7, depths=(2, 6, 2)
)
VISION_TRANSFORMERS: dict[str, ViTSize] = {
    # For pictures of 28, 32 and 64 pixels: patches small enough to leave a grid of 7 or 8.
    "vit-nano28": ViTSize(d_model=64, n_layers=4, n_heads=4, patch=4, size=28, channels=1, n_classes=10),
    "vit-micro32": ViTSize(d_model=192, n_layers=6, n_heads=3, patch=4, size=32, n_classes=10, dropout=0.1),
    "vit-small64": ViTSize(d_model=384, n_layers=8, n_heads=6, patch=8, size=64, n_classes=200, dropout=0.1),
    # Dosovitskiy et al. 2021, table 1.
    "vit-b32": ViTSize(d_model=768, n_layers=12, n_heads=12, patch=32),
    "vit-b16": ViTSize(d_model=768, n_layers=12, n_heads=12, patch=16),
    "vit-l16": ViTSize(d_model=1024, n_layers=24, n_heads=16, patch=16),
    "vit-h14": ViTSize(d_model=1280, n_layers=32, n_heads=16, patch=14),
    # Touvron et al. 2021, table 1, without and with a teacher.
    "deit-tiny": ViTSize(d_model=192, n_layers=12, n_heads=3, patch=16),
    "deit-small": ViTSize(d_model=384, n_layers=12, n_heads=6, patch=16),
    "deit-base": ViTSize(d_model=768, n_layers=12, n_heads=12, patch=16),
    "deit-tiny-distilled": ViTSize(d_model=192, n_layers=12, n_heads=3, patch=16, teacher=True),
    "deit-small-distilled": ViTSize(d_model=384, n_layers=12, n_heads=6, patch=16, teacher=True),
    "deit-base-distilled": ViTSize(d_model=768, n_layers=12, n_heads=12, patch=16, teacher=True),
    # Liu et al. 2021, section 3.3.
    "swin-tiny": _SWIN,
    "swin-small": replace(_SWIN, depths=(2, 18, 2)),
    "swin-base": replace(_SWIN, d_model=128, n_heads=4, depths=(2, 18, 2)),
}


def vit_config(row: ViTSize, *, n_classes: int | None = None, size: tuple[int, ...] | None = None) -> ViTConfig:
    """The configuration of a Vision Transformer of this size, for this many classes, and rows and columns of pixels."""
    patches = PatchesConfig(
        size=size or (row.size, row.size),
        patch=row.patch,
        patch_rows=None if row.patch_rows == row.patch else row.patch_rows,
        channels=row.channels,
        position_embeddings=row.position_embeddings,
        stem=row.stem,
    )
    stack, *stages = (_stage(row, i, n_layers, patches.grid) for i, n_layers in enumerate((row.n_layers, *row.depths)))
    return ViTConfig(
        d_model=row.d_model,
        patches=patches,
        stack=stack,
        n_classes=row.n_classes if n_classes is None else n_classes,
        readout=row.readout,
        teacher=row.teacher,
        input_norm=bool(stages),
        dropout=row.dropout,
        stages=tuple(stages),
    )


def _stage(row: ViTSize, number: int, n_layers: int, grid: tuple[int, int]) -> StackConfig:
    """The blocks of a stage, by its number. Windows are not shifted where one is as large as the grid."""
    block = BlockConfig(
        attention=AttentionConfig(n_heads=row.n_heads << number, dropout=row.dropout),
        d_ff=(row.d_ff or 4 * row.d_model) << number,
        order="pre",
        norm_eps=1e-5 if row.depths else 1e-6,
        activation="gelu",
        dropout=row.dropout,
    )
    turns: tuple[BlockConfig, ...] = ()
    if row.window is not None:
        kinds = [*WINDOWS] if min(grid) >> number > row.window else ["windows"]
        turns = tuple(replace(block, kind=kind, window=row.window) for kind in kinds)
    return StackConfig(n_layers=n_layers, block=block, pattern=turns, final_norm=number == len(row.depths))


@dataclass(frozen=True, kw_only=True)
class ClipSize:
    """A row of table 20 of Radford et al. 2021."""

    d_common: int
    image_width: int
    image_layers: int
    image_heads: int
    patch: int
    text_width: int
    text_layers: int
    text_heads: int
    size: int = 224
    vocab_size: int = 49408
    context_length: int = 77


Tower = tuple[int, int, int]  # width, layers, heads


def clip_size(d_common: int, image: Tower, patch: int, text: Tower) -> ClipSize:
    return ClipSize(
        d_common=d_common,
        image_width=image[0],
        image_layers=image[1],
        image_heads=image[2],
        patch=patch,
        text_width=text[0],
        text_layers=text[1],
        text_heads=text[2],
    )


PAIRS: dict[str, ClipSize] = {
    "clip-nano32": replace(clip_size(64, (128, 4, 4), 4, (128, 3, 4)), size=32, vocab_size=2000, context_length=32),
    "clip-b32": clip_size(512, (768, 12, 12), 32, (512, 12, 8)),
    "clip-b16": clip_size(512, (768, 12, 12), 16, (512, 12, 8)),
    "clip-l14": clip_size(768, (1024, 24, 16), 14, (768, 12, 12)),
}


def clip_config(
    row: ClipSize,
    *,
    vocab_size: int | None = None,
    end: int | None = None,
    context_length: int | None = None,
    size: tuple[int, ...] | None = None,
    channels: int = 3,
) -> CLIPConfig:
    """The configuration of a CLIP of this size: both towers pre-norm, the picture's with a norm in front. `end` is the
    token that ends a text, by default the vocabulary's last."""

    def stack(n_layers: int, n_heads: int, d_model: int) -> StackConfig:
        attention = AttentionConfig(n_heads=n_heads)
        block = BlockConfig(attention=attention, d_ff=4 * d_model, order="pre", activation="quick_gelu")
        return StackConfig(n_layers=n_layers, block=block, final_norm=True)

    vocab_size = vocab_size or row.vocab_size
    embed = EmbedConfig(
        vocab_size=vocab_size,
        scaled=False,
        position_embeddings="learned",
        context_length=context_length or row.context_length,
    )
    image = ViTConfig(
        d_model=row.image_width,
        patches=PatchesConfig(size=size or (row.size, row.size), patch=row.patch, channels=channels, bias=False),
        stack=stack(row.image_layers, row.image_heads, row.image_width),
        n_classes=0,
        input_norm=True,
    )
    text = TextConfig(
        d_model=row.text_width,
        embed=embed,
        stack=stack(row.text_layers, row.text_heads, row.text_width),
        end=vocab_size - 1 if end is None else end,
    )
    return CLIPConfig(d_common=row.d_common, image=image, text=text)


@dataclass(frozen=True, kw_only=True)
class SegformerSize:
    """A row of table 6 of Xie et al. 2021. `n_classes` is ADE20K's; data and recipe replace it."""

    widths: tuple[int, ...] = (64, 128, 320, 512)
    depths: tuple[int, ...]
    heads: tuple[int, ...] = (1, 2, 5, 8)
    patches: tuple[int, ...] = (7, 3, 3, 3)
    strides: tuple[int, ...] = (4, 2, 2, 2)
    shorten: tuple[int, ...] = (8, 4, 2, 1)
    d_head: int = 768
    n_classes: int = 150
    head_norm: Literal["batch", "group"] = "batch"
    head_dropout: float = 0.1
    drop_path: float = 0.1


_SEGFORMER_MICRO = SegformerSize(
    widths=(32, 64, 128),
    depths=(2, 2, 2),
    heads=(1, 2, 4),
    patches=(7, 3, 3),
    strides=(4, 2, 2),
    shorten=(8, 4, 2),
    d_head=128,
    n_classes=21,
    head_dropout=0.0,
    drop_path=0.0,
)
SEGMENTERS: dict[str, SegformerSize] = {
    # For pictures from 32 pixels on: a class for every 2 x 2 of them.
    "segformer-nano": replace(_SEGFORMER_MICRO, patches=(3, 3, 3), strides=(2, 2, 2), shorten=(4, 2, 1)),
    # From 64 pixels on, a class for every 4 x 4.
    "segformer-micro": _SEGFORMER_MICRO,
    "segformer-b0": SegformerSize(widths=(32, 64, 160, 256), depths=(2, 2, 2, 2), d_head=256),
    "segformer-b1": SegformerSize(depths=(2, 2, 2, 2), d_head=256),
    "segformer-b2": SegformerSize(depths=(3, 4, 6, 3)),
    "segformer-b3": SegformerSize(depths=(3, 4, 18, 3)),
    "segformer-b4": SegformerSize(depths=(3, 8, 27, 3)),
    "segformer-b5": SegformerSize(depths=(3, 6, 40, 3)),
}


def segformer_config(row: SegformerSize, *, n_classes: int | None = None, channels: int = 3) -> PyramidConfig:
    """The configuration of a SegFormer of this size. MLPs are four times as wide as their stage, as in the published
    weights; the paper prints eight times for the first two stages."""
    sizes = zip(row.widths, row.depths, row.heads, row.patches, row.strides, row.shorten, strict=True)
    stages = tuple(
        StageConfig(d_model=C, n_layers=n, n_heads=heads, d_ff=4 * C, patch=patch, stride=stride, shorten=shorten)
        for C, n, heads, patch, stride, shorten in sizes
    )
    return PyramidConfig(
        stages=stages,
        d_head=row.d_head,
        n_classes=row.n_classes if n_classes is None else n_classes,
        channels=channels,
        head_norm=row.head_norm,
        head_dropout=row.head_dropout,
        drop_path=row.drop_path,
    )


@dataclass(frozen=True, kw_only=True)
class DetrSize:
    """A row of table 1 of Carion et al. 2020. `n_classes` is one more than COCO's highest number; data and recipe
    replace it."""

    backbone: ResNetConfig
    d_model: int = 256
    n_heads: int = 8
    d_ff: int = 2048
    encoder_layers: int = 6
    decoder_layers: int = 6
    n_queries: int = 100
    n_classes: int = 91
    dropout: float = 0.1


_DETR_NANO = DetrSize(
    backbone=ResNetConfig(widths=(64, 128), depths=(1, 1), kind="basic", stem=32, norm="group"),
    d_model=128,
    n_heads=4,
    d_ff=512,
    encoder_layers=3,
    decoder_layers=3,
    n_queries=16,
    n_classes=10,
    dropout=0.0,
)
DETECTORS: dict[str, DetrSize] = {
    # For pictures of 64 to 128 pixels, from nothing: norms that need no training before, a position for 8 x 8 pixels.
    "detr-nano": _DETR_NANO,
    # The same with norms that DETR has on the Hub; by Muon at twice the rate they learn as fast.
    "detr-nano-affine": replace(_DETR_NANO, backbone=replace(_DETR_NANO.backbone, norm="affine")),
    "detr-r50": DetrSize(backbone=ResNetConfig()),
    "detr-r101": DetrSize(backbone=ResNetConfig(depths=(3, 4, 23, 3))),
}


def detr_config(row: DetrSize, *, n_classes: int | None = None, n_queries: int | None = None) -> DETRConfig:
    """The configuration of a DETR of this size: post-norm, its positions added to queries and keys at every layer."""
    attention = AttentionConfig(n_heads=row.n_heads, dropout=row.dropout, position=PositionConfig(kind="added"))
    encoder = BlockConfig(attention=attention, d_ff=row.d_ff, dropout=row.dropout)
    decoder = replace(encoder, cross=attention)
    return DETRConfig(
        d_model=row.d_model,
        backbone=row.backbone,
        encoder=StackConfig(n_layers=row.encoder_layers, block=encoder),
        decoder=StackConfig(n_layers=row.decoder_layers, block=decoder, final_norm=True),
        n_queries=n_queries or row.n_queries,
        n_classes=row.n_classes if n_classes is None else n_classes,
    )


@dataclass(frozen=True, kw_only=True)
class DescribeSize:
    """The size of a model that describes pictures. Data and recipe replace `size`, `channels` and `vocab_size`."""

    style: Literal["gpt2", "trocr"] = "gpt2"
    d_model: int  # of the decoder
    n_heads: int
    encoder_layers: int
    decoder_layers: int
    d_encoder: int | None = None  # None: as wide as the decoder, with as many heads
    encoder_heads: int | None = None
    patch: int
    patch_rows: int | None = None  # None: as many as columns
    size: int = 384
    channels: int = 3
    stem: tuple[int, ...] = ()
    vocab_size: int = 50265
    context_length: int = 512  # tokens of a text, with what is asked
    dropout: float = 0.0


def trocr_size(encoder: Tower, decoder: Tower) -> DescribeSize:
    """A model of Li et al. 2023, section 4.1."""
    d_encoder, encoder_layers, encoder_heads = encoder
    d_model, decoder_layers, n_heads = decoder
    return DescribeSize(
        style="trocr",
        d_model=d_model,
        n_heads=n_heads,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        d_encoder=d_encoder,
        encoder_heads=encoder_heads,
        patch=16,
        dropout=0.1,
    )


_DESCRIBE = DescribeSize(
    d_model=128,
    n_heads=4,
    encoder_layers=4,
    decoder_layers=2,
    patch=8,
    size=64,
    vocab_size=2000,
    context_length=64,
    dropout=0.1,
)
DESCRIBERS: dict[str, DescribeSize] = {
    "describe-nano": _DESCRIBE,
    "describe-micro": replace(
        _DESCRIBE, d_model=192, encoder_layers=6, decoder_layers=3, patch=16, size=160, vocab_size=8000
    ),
    "trocr-base": trocr_size((768, 12, 12), (1024, 12, 16)),
    "trocr-large": trocr_size((1024, 24, 16), (1024, 12, 16)),
}


def describe_config(
    row: DescribeSize,
    *,
    vocab_size: int | None = None,
    size: tuple[int, ...] | None = None,
    channels: int | None = None,
) -> ImageToTextConfig:
    """The configuration of a model of this size, for pictures of so many rows and columns of pixels: its decoder
    pre-norm, as GPT-2's with cross-attention, or in the style of TrOCR post-norm, as BART's."""
    seen = ViTSize(
        d_model=row.d_encoder or row.d_model,
        n_layers=row.encoder_layers,
        n_heads=row.encoder_heads or row.n_heads,
        patch=row.patch,
        patch_rows=row.patch_rows,
        size=row.size,
        channels=channels or row.channels,
        stem=row.stem,
        dropout=row.dropout,
    )
    pre = row.style == "gpt2"
    attention = AttentionConfig(n_heads=row.n_heads, dropout=row.dropout)
    block = BlockConfig(
        attention=attention,
        cross=attention,
        d_ff=4 * row.d_model,
        order="pre" if pre else "post",
        activation="gelu",
        dropout=row.dropout,
    )
    target = EmbedConfig(
        vocab_size=vocab_size or row.vocab_size,
        scaled=False,
        position_embeddings="learned",
        context_length=row.context_length,
        norm_eps=None if pre else 1e-5,
        dropout=row.dropout,
    )
    return ImageToTextConfig(
        d_model=row.d_model,
        encoder=vit_config(seen, n_classes=0, size=size),
        target=target,
        decoder=StackConfig(n_layers=row.decoder_layers, block=block, final_norm=pre),
    )
