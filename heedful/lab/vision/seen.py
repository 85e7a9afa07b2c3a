"""Small models of ViT, DETR, SegFormer and later ones: what they attend to, what they find, what it costs."""

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from heedful.core import EVERYONE, AttentionConfig, BlockConfig, Mask, attention_weights
from heedful.data.made.shapes import KINDS, scene
from heedful.lab.attention.masks import shares_of_pairs
from heedful.lab.complexity.measured import operations
from heedful.lab.drawn import Drawing, curves, figure_of
from heedful.lab.exhibit import NOTHING_SAID, Few, Rows, Says, Shown, Side, Steps, Width, beside, holds, unsaid
from heedful.lab.vision.shapes import CLASSES, PATCH, SIDE, pictures, vit
from heedful.lab.whole_words import parameters
from heedful.look.record import record
from heedful.models import DETR, Pyramid
from heedful.models.counts import PARAMETERS
from heedful.models.pyramid import MixBlock
from heedful.models.vision_presets import DETECTORS, SEGMENTERS, VISION_TRANSFORMERS, detr_config, segformer_config
from heedful.training.detection import SetConfig, Target, corners, pair, set_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 400


def maps_of(steps: int, count: int) -> tuple[Tensor, list[str]]:
    """The class token's attention in the last block to the patches of the first `count` test pictures (count, g, g), as
    the mean over heads, and the classes that the model predicts."""
    model, test = vit(steps), pictures("test", 200)
    with record(model) as recording, torch.no_grad():
        said = model(test.pixels[:count]).argmax(-1)
    weights = recording.weights(recording.names[-1])[:, :, 0].mean(1)
    side = SIDE // PATCH
    return weights[:, 1:].view(count, side, side), [CLASSES[label] for label in said.tolist()]


def class_token(says: Says, *, steps: Steps = STEPS, shown: Few = 4) -> Shown:
    """A small ViT learns to name coloured shapes: does its class token attend to the shape?"""
    test = pictures("test", 200)
    maps, _ = maps_of(steps, 200)
    with torch.no_grad():
        right = float((vit(steps)(test.pixels).argmax(-1) == test.labels).float().mean())
    own = torch.nn.functional.avg_pool2d(test.masks.float()[:, None], PATCH)[:, 0] > 0.25
    share, area = float((maps * own).sum((1, 2)).mean() / maps.sum((1, 2)).mean()), float(own.float().mean())
    most = float(maps.sum((1, 2)).max())
    claim = "weights over patches sum to at most"
    lines = [holds(says, claim, round(most, 4), right=most <= 1.0001)] if says.values else []
    facts = {
        "named right": right,
        "share of its look that is on the shape": share,
        "share of the picture that is shape": area,
    }
    return Shown(lines + unsaid(facts), over_pictures(maps[:shown], test.pixels[:shown], maps_of(steps, shown)[1]))


def over_pictures(maps: Tensor, pixels: Tensor, names: list[str]) -> Drawing:
    """Pictures on top, and below them with their attention maps."""

    def fill(figure: "Figure") -> None:
        panels = figure.subplots(2, len(maps), squeeze=False)
        for upper, lower, each, picture, name in zip(*panels, maps, pixels, names, strict=True):
            shown = ((picture.permute(1, 2, 0) + 1) / 2).numpy()
            large = each.repeat_interleave(PATCH, 0).repeat_interleave(PATCH, 1) / each.max()
            upper.imshow(shown)
            upper.set_title(name, fontsize=9)
            lower.imshow(shown)
            lower.imshow(large.numpy(), cmap="magma", alpha=0.65, vmin=0, vmax=1)
            for axes in (upper, lower):
                axes.set(xticks=[], yticks=[])
        panels[0][0].set_ylabel("picture")
        panels[1][0].set_ylabel("class token looks at")

    return figure_of((1.9 * len(maps), 4.2), fill)


def a_sequence(says: Says, *, size: Width = 224, patch: Width = 16) -> Shown:
    """A picture is cut into square patches, which form a sequence as words do."""
    row = VISION_TRANSFORMERS["vit-b16"]
    count = (size // patch) ** 2
    own = says if (size, patch) == (224, 16) else NOTHING_SAID
    computed = {f"patches of {patch} in a picture of {size}": count}
    facts = {
        "numbers of a patch": 3 * patch * patch,
        "width of its vector": row.d_model,
        "tokens, with the class token": count + 1,
    }
    side = 32
    picture = torch.from_numpy(scene("test", 3, size=side).pixels)

    def fill(figure: "Figure") -> None:
        upper, lower = figure.subfigures(2, 1, height_ratios=(1.7, 1), squeeze=False)[:, 0]
        axes = upper.subplots()
        axes.imshow(picture.numpy())
        cuts = [at - 0.5 for at in range(0, side + 1, 8)]
        axes.set(xticks=cuts, yticks=cuts)
        axes.grid(color="white", linewidth=1.5)
        axes.tick_params(labelbottom=False, labelleft=False, length=0)
        axes.set_title("a picture", fontsize=10)
        for number, axes in enumerate(lower.subplots(2, 8).flat):
            row, column = (8 * at for at in divmod(number, 4))
            axes.imshow(picture[row : row + 8, column : column + 8].numpy(), vmin=0, vmax=255)
            axes.set(xticks=[], yticks=[])
            axes.set_title(str(number + 1), fontsize=8)
        lower.suptitle("its patches, in a row", fontsize=10)

    return Shown(beside(own, computed) + unsaid(facts), figure_of((5.2, 4.8), fill))


def detr(says: Says, *, seed: int = 0) -> Shown:
    """A set of answers has no order: objects are matched to queries at the least total cost, and permuting the queries
    does not change the loss. Shows one picture, and the pairs from which an untrained detector would learn."""
    torch.manual_seed(seed)
    model = DETR(detr_config(DETECTORS["detr-nano"], n_classes=len(KINDS))).eval()
    drawn = next(one for one in map(partial(scene, "test"), range(100)) if len(one.shapes) >= 3)
    pixels = torch.from_numpy(drawn.pixels).permute(2, 0, 1)[None].float() / 127.5 - 1
    edges = torch.tensor([shape.box for shape in drawn.shapes]) / drawn.pixels.shape[0]
    boxes = torch.cat([(edges[:, :2] + edges[:, 2:]) / 2, edges[:, 2:] - edges[:, :2]], dim=1)
    target = Target(torch.tensor([KINDS.index(shape.kind) for shape in drawn.shapes]), boxes)
    with torch.no_grad():
        found = model(pixels)
    order = torch.randperm(found.logits.shape[2])
    one, other = (
        set_loss(found.logits, found.boxes, [target]),
        set_loss(found.logits[:, :, order], found.boxes[:, :, order], [target]),
    )
    _, queries, things = pair(found.logits[-1], found.boxes[-1], [target], SetConfig())
    computed = {
        "name": "DETR",
        "queries": model.config.n_queries,
        "things in the picture": len(boxes),
        "pairs": len(queries),
    }
    computed["the order of queries changes the loss"] = not torch.allclose(one.total, other.total, rtol=1e-5)
    computed["parameters of detr-r50, millions"] = PARAMETERS["detr-r50"] / 1e6

    def fill(figure: "Figure") -> None:
        from matplotlib.patches import Rectangle

        axes, side = figure.add_subplot(), drawn.pixels.shape[0]
        axes.imshow(drawn.pixels)
        last = corners(found.boxes[-1, 0]) * side
        for query, thing in zip(queries.tolist(), things.tolist(), strict=True):
            for number, (left, upper, right, lower) in enumerate((edges[thing] * side, last[query])):
                size, line = (float(right - left), float(lower - upper)), "-" if number == 0 else "--"
                box = Rectangle((float(left), float(upper)), *size, fill=False, linewidth=2, linestyle=line)
                box.set_edgecolor(f"C{number}")
                axes.add_patch(box)
            middle = (edges[thing, :2] + edges[thing, 2:]) / 2 * side, (last[query, :2] + last[query, 2:]) / 2
            axes.plot(*zip(*(point.tolist() for point in middle), strict=True), ":", color="white", linewidth=2)
        axes.plot([], [], "-", color="C0", label="what is there")
        axes.plot([], [], "--", color="C1", label="the query that is paired with it, untrained")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), frameon=False)
        axes.set(xticks=[], yticks=[], xlim=(-0.5, side - 0.5), ylim=(side - 0.5, -0.5))

    return Shown(beside(says, computed), figure_of((4.6, 4.6), fill))


def segformer(says: Says, *, preset: str = "segformer-b0", size: Rows = 128) -> Shown:
    """A pyramid of four feature maps; keys are made from squares of positions, which makes attention cheaper."""
    row = SEGMENTERS[preset]
    model = Pyramid(segformer_config(row)).eval()
    with torch.no_grad():
        maps = [tuple(one.shape[1:]) for one in model.features(torch.randn(1, 3, size, size))]
    first = row.shorten[0]
    heads = AttentionConfig(n_heads=row.heads[0])
    block = BlockConfig(attention=heads, d_ff=4 * row.widths[0], order="pre", activation="gelu")
    made = [MixBlock(row.widths[0], block, shorten=by, drop_path=0.0) for by in (1, first)]
    sides = (size // 8, size // 4, size // 2)

    def cost(one: MixBlock, side: int) -> int:
        x = torch.randn(1, side * side, row.widths[0])
        keys = x if one.shorten is None else one.shorten(x, (side, side))
        q, k = one.self_attention.queries(x).query, one.self_attention.keys_values(keys).key
        return operations(lambda: attention_weights(q, k, mask=EVERYONE, scale=1.0))

    costs = {
        f"keys from {by} x {by} positions": [cost(one, side) for side in sides]
        for by, one in zip((1, first), made, strict=True)
    }
    positions = [side**2 for side in sides]
    full, fewer = (each[-1] for each in costs.values())
    computed: dict[str, object] = {
        "name": "SegFormer",
        "maps, channels by rows by columns": [list(one) for one in maps],
    }
    computed |= {"parameters, millions": parameters(model) / 1e6, "scores cost less by a factor of": full / fewer}
    drawn = {name: (positions, each) for name, each in costs.items()}
    x, y = "positions of the first map", "operations for its scores"
    return Shown(beside(says, computed), curves(drawn, x=x, y=y, logarithmic="xy"))


def after_vit(says: Says, *, side: Side = 6) -> Shown:
    """Three ways to read a picture: pixel by pixel (image GPT), all patches at once (ViT), and in windows that shift
    from layer to layer (Swin)."""
    count = side * side
    rows, columns = torch.arange(count) // side, torch.arange(count) % side

    def windows(shift: int) -> Tensor:
        own = ((rows + shift) // 3) * 100 + (columns + shift) // 3
        return own[:, None] == own

    masks = {
        "image GPT: causal": Mask(causal=True),
        "ViT: all": Mask(),
        "Swin: windows": Mask(allowed=windows(0)),
        "Swin: shifted": Mask(allowed=windows(1)),
    }
    return shares_of_pairs(says, masks, count, columns=2)
