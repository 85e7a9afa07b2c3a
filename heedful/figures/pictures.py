"""Figures of the families that read images."""

import math

from heedful.figures.sequences import writing
from heedful.figures.stacks import ACTIVATIONS, Sizes, embedding, head, named, softmax, stack
from heedful.look.architecture import Add, Architecture, Beside, Box, Column, DrawnResidual, Link, Part, Repeat
from heedful.models.clip import CLIPConfig
from heedful.models.detr import DETRConfig
from heedful.models.image_to_text import ImageToTextConfig
from heedful.models.pyramid import PyramidConfig, StageConfig
from heedful.models.resnet import ResNetConfig
from heedful.models.vit import ViTConfig


def vit_body(config: ViTConfig, sizes: Sizes, at: str = "") -> tuple[Part | Repeat, ...]:
    """The parts of a vision transformer, from the pixels to the stack's output."""
    C, patches = config.d_model, config.patches
    rows, columns = patches.grid
    pixels = math.prod(patches.shape) * patches.channels
    made: list[Part | Repeat] = []
    stem = f"{len(patches.stem)} convolutions before" if patches.stem else f"{pixels:,} → {C:,}"
    made.append(
        named(
            "Linear map of patches",
            "embed",
            sizes.of(f"{at}patches"),
            f"{rows} x {columns} of {patches.patch_in_words}",
            stem,
        )
    )
    for name, label in (("cls", "Class token before"), ("teacher", "Teacher token before")):
        if sizes.of(f"{at}{name}"):
            made.append(Box(label=label, kind="embed", parameters=sizes.of(f"{at}{name}")))
    size = sizes.of(f"{at}position_embeddings")
    kind = patches.position_embeddings
    if kind != "none":
        made.append(Add(label="positions", notes=(kind, f"{size:,}") if size else (kind,), parameters=size))
    if config.input_norm:
        made.append(Box(label="Norm", kind="norm", parameters=sizes.of(f"{at}input_norm")))
    made += stack(config.stack, C, sizes, f"{at}stack", causal=False)
    for i, stage in enumerate(config.stages):
        fewer, wider = f"{rows >> i + 1} x {columns >> i + 1}", f"{4 * C:,} → {2 * C:,}"
        made.append(named("Merge of 2 x 2 patches", "embed", sizes.of(f"{at}merges.{i}"), fewer, wider))
        C *= 2
        made += stack(stage, C, sizes, f"{at}stages.{i}", causal=False)
    return tuple(made)


def vit(config: ViTConfig, title: str, sizes: Sizes) -> Architecture:
    """Dosovitskiy et al. 2021, figure 1; with stages Liu et al. 2021, figure 3."""
    C, K = config.d_out, config.n_classes
    read = "of the class token" if config.readout == "cls" else "of the patches' mean"
    heads = [head("Linear", C, K, sizes.of("head"), read)] if K else []
    if K and config.teacher:
        heads.append(head("Linear", C, K, sizes.of("teacher_head"), "of the teacher token"))
    above: tuple[Part, ...] = (Beside(boxes=tuple(heads)),) if len(heads) > 1 else tuple(heads)
    if K:
        above = (*above, softmax("mean of both" if len(heads) > 1 else ""))
    height, width = config.patches.size
    column = Column(
        title="Vision Transformer",
        reads=f"{height} x {width} pixels, {config.patches.channels} channels",
        parts=(*vit_body(config, sizes), *above),
        gives=f"probabilities of {K:,} classes" if K else f"the read-out, {C:,}",
    )
    return Architecture(title=title, parameters=sizes.total, columns=(column,))


def clip(config: CLIPConfig, title: str, sizes: Sizes) -> Architecture:
    """Radford et al. 2021, figure 1 and section 2.4."""
    D, image, text = config.d_common, config.image, config.text
    height, width = image.patches.size
    pictures = Column(
        title="Image tower",
        reads=f"{height} x {width} pixels",
        parts=(
            *vit_body(image, sizes, "image."),
            head("Linear", image.d_out, D, sizes.of("image_out"), "class token"),
        ),
    )
    texts = Column(
        title="Text tower",
        reads="text tokens",
        parts=(
            *embedding(text.embed, text.d_model, sizes, "text.embed"),
            *stack(text.stack, text.d_model, sizes, "text.stack", causal=True),
            head("Linear", text.d_model, D, sizes.of("text_out"), "last token"),
        ),
    )
    near = Box(
        label="Cosine of every picture and text, divided by a learned temperature",
        kind="softmax",
        parameters=sizes.of("log_scale"),
    )
    return Architecture(
        title=title,
        parameters=sizes.total,
        columns=(pictures, texts),
        joined=near,
        gives="which text belongs to which picture",
    )


def image_to_text(config: ImageToTextConfig, title: str, sizes: Sizes) -> Architecture:
    """Li et al. 2023, figure 1."""
    height, width = config.encoder.patches.size
    encoder = Column(
        title="Encoder",
        reads=f"{height} x {width} pixels, {config.encoder.patches.channels} channels",
        parts=vit_body(config.encoder, sizes, "encoder."),
    )
    reads = "what is asked, and tokens so far"
    return writing(config, encoder, title, sizes, reads=reads, tied=config.tied)


def pyramid(config: PyramidConfig, title: str, sizes: Sizes) -> Architecture:
    """Xie et al. 2021, figure 2."""
    parts: list[Part | Repeat] = []
    step = 1
    for number, stage in enumerate(config.stages):
        step *= stage.stride
        parts += _stage(stage, config, sizes, f"stages.{number}", step)
    D, K = config.d_head, config.n_classes
    brought = tuple(
        named(f"Linear, stage {i + 1}", "linear", sizes.of(f"head.stages.{i}"), f"{own.d_model} → {D}", name=f"head{i}")
        for i, own in enumerate(config.stages)
    )
    joined = "Brought to one size, side by side"
    fused = named("1 x 1 convolution", "convolution", sizes.of("head.fuse"), f"{len(config.stages) * D:,} → {D}")
    normed = named("Norm, ReLU", "norm", sizes.of("head.norm"), config.head_norm)
    out = named("1 x 1 convolution", "convolution", sizes.of("head.out"), f"{D} → {K}")
    encoder = Column(title="Encoder", reads=f"H x W pixels, {config.channels} channels", parts=tuple(parts))
    decoder = Column(
        title="MLP head",
        reads="",
        parts=(*brought, Box(label=joined, kind="softmax"), fused, normed, out),
        gives=f"{K} classes, H/{config.stages[0].stride} x W/{config.stages[0].stride}",
    )
    links = tuple(Link(f"stages.{i}", f"head{i}") for i in range(len(config.stages)))
    return Architecture(title=title, parameters=sizes.total, columns=(encoder, decoder), links=links)


def _stage(stage: StageConfig, config: PyramidConfig, sizes: Sizes, at: str, step: int) -> tuple[Part | Repeat, ...]:
    """One stage: the first in detail; the blocks of the others are the same, so only their sizes are shown."""
    C, block = stage.d_model, f"{at}.blocks.0"
    patches = named(
        "Overlapping patches",
        "convolution",
        sizes.of(f"{at}.patches", f"{at}.patches_norm"),
        f"{stage.patch} x {stage.patch}, every {stage.stride}",
        f"H/{step} x W/{step}, {C} wide",
    )
    heads = f"{stage.n_heads} head{'s' if stage.n_heads > 1 else ''} of {C // stage.n_heads}"
    shortened = f"keys of {stage.shorten} x {stage.shorten} squares" if stage.shorten > 1 else ""
    widths = f"{C:,} → {stage.d_ff:,} → {C:,}"
    if at == "stages.0":
        looks, mixes = sizes.of(f"{block}.self_attention", f"{block}.shorten"), sizes.of(f"{block}.mlp")
        inside = f"3 x 3 inside, {ACTIVATIONS[config.activation]}"
        branches = (
            named("Multi-head attention", "attention", looks, heads, shortened),
            named("Feed forward, mixing", "mlp", mixes, widths, inside),
        )
        norms = (
            Box(label="LayerNorm", kind="norm", parameters=sizes.of(f"{block}.{part}_residual"))
            for part in ("self", "mlp")
        )
        parts: tuple[Part, ...] = tuple(DrawnResidual(branch=pair) for pair in zip(norms, branches, strict=True))
    else:
        parts = (named("Block as in stage 1", "attention", sizes.of(block), heads, shortened, widths),)
    layers = Repeat(times=stage.n_layers, parts=parts)
    return (patches, layers, Box(label="LayerNorm", kind="norm", parameters=sizes.of(f"{at}.norm"), name=at))


def resnet(config: ResNetConfig, sizes: Sizes, at: str) -> tuple[Part, ...]:
    """He et al. 2016, table 1."""
    made: list[Part] = [
        named(
            "7 x 7 convolution, pool", "convolution", sizes.of(f"{at}.stem"), f"{config.channels} → {config.stem}, H/4"
        )
    ]
    step = 4
    for number, (width, depth) in enumerate(zip(config.widths, config.depths, strict=True)):
        step *= 2 if number else 1
        size = sizes.of(f"{at}.stages.{number}")
        made.append(
            named(f"{depth} {config.kind} blocks", "convolution", size, f"{width:,} channels, H/{step} x W/{step}")
        )
    return tuple(made)


def detr(config: DETRConfig, title: str, sizes: Sizes) -> Architecture:
    """Carion et al. 2020, figure 2 and figure 10."""
    C, K = config.d_model, config.n_classes
    width = config.backbone.widths[-1]
    encoder = Column(
        title="Backbone and encoder",
        reads=f"H x W pixels, {config.backbone.channels} channels",
        parts=(
            *resnet(config.backbone, sizes, "backbone"),
            named("1 x 1 convolution", "convolution", sizes.of("input"), f"{width:,} → {C}"),
            *stack(config.encoder, C, sizes, "encoder", causal=False),
        ),
    )
    decoder = Column(
        title="Decoder",
        reads=f"{config.n_queries} zeros",
        parts=(
            named("Learned queries", "embed", sizes.of("queries"), f"{config.n_queries} x {C}", "their positions"),
            *stack(config.decoder, C, sizes, "decoder", causal=False),
            Beside(
                boxes=(
                    head("Class", C, K + 1, sizes.of("class_head")),
                    named("Box", "linear", sizes.of("box_head"), f"{C} → {C} → {C} → 4", "sigmoid"),
                )
            ),
        ),
        gives="a class, or none, and a box each",
    )
    return Architecture(
        title=title,
        parameters=sizes.total,
        columns=(encoder, decoder),
        links=(Link("Backbone and encoder", "cross", "keys, values"),),
        notes=("Sines of row and column are added to queries and keys at every layer.",),
    )
