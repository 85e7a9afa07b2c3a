"""Positions as vectors: sines, bits and learned ones; their distances, and the positions of patches."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import normalize

from heedful.core import Embed, EmbedConfig, PositionConfig, sinusoidal
from heedful.core.embed import binary, sinusoidal_2d
from heedful.lab.drawn import Drawing, curves, one_panel
from heedful.lab.drawn_words import maps
from heedful.lab.exhibit import Few, Rows, Says, Shown, Width, beside, holds, unsaid
from heedful.models.patches import GridPositionEmbeddings, PatchesConfig

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def table_of(positions: int, width: int) -> Tensor:
    """The sinusoidal table (positions, width) in float64."""
    return sinusoidal(torch.arange(positions, dtype=torch.float64), width)


def sines(says: Says, *, positions: Rows = 8, width: Width = 8) -> Shown:
    """Compares the formula, term by term, with the project's table."""
    found = table_of(positions, width)
    t = torch.arange(positions, dtype=torch.float64)[:, None]
    two_i = torch.arange(0, width, 2, dtype=torch.float64)
    angle = t / 10_000 ** (two_i / width)
    lines = [
        holds(says, "PE(t, 2i)", "the same", right=torch.allclose(found[:, 0::2], angle.sin())),
        holds(says, "PE(t, 2i + 1)", "the same", right=torch.allclose(found[:, 1::2], angle.cos())),
    ]
    return Shown(lines + unsaid({"PE(1)": found[1]}), heat(found))


def bits(says: Says, *, digits: Few = 4) -> Shown:
    """Positions as binary numbers, with the highest bit first, as they are written."""
    codes = binary(torch.arange(2**digits), digits).flip(-1).int()
    written = ["".join(map(str, row.tolist())) for row in codes]
    own = written[1:5] if digits == 4 else []
    names = [str(i) for i in range(len(codes))], [str(2**i) for i in reversed(range(digits))]
    drawn = maps({"Bits of each position": codes}, *names, value="bit")
    return Shown(beside(says, {"positions 1 to 4": own}) if own else unsaid({"codes": written}), drawn)


def learned(says: Says, *, positions: Rows = 16, width: Width = 32) -> Shown:
    """A learned table before training: all positions differ, and near ones are no more alike than far ones."""
    torch.manual_seed(0)
    embed = Embed(
        width, EmbedConfig(vocab_size=4, position_embeddings="learned", context_length=positions, scaled=False)
    )
    with torch.no_grad():
        zeros = torch.zeros(1, positions, dtype=torch.long)
        vectors = embed(zeros, torch.arange(positions)[None])[0] - embed.tokens.weight[0]
    unique = len(torch.unique(vectors, dim=0)) == positions
    lines = [holds(says, "columns of the position matrix are unique", unique)]
    both = {"learned, before training": likeness(vectors.double()), "sinusoidal": likeness(table_of(positions, width))}
    drawn = {name: (range(positions), row.tolist()) for name, row in both.items()}
    return Shown(lines, curves(drawn, x="distance from position 0", y="cosine", title="How alike positions are"))


def likeness(vectors: Tensor) -> Tensor:
    """The cosine of each position with the first."""
    unit = normalize(vectors, dim=-1)
    return unit @ unit[0]


def heat(vectors: Tensor, *, x: str = "feature", y: str = "position", value: str = "value") -> Drawing:
    def fill(axes: "Axes") -> None:
        drawn = axes.imshow(vectors.numpy(), cmap="RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        axes.set(xlabel=x, ylabel=y)
        axes.figure.colorbar(drawn, ax=axes, shrink=0.8, label=value)

    return one_panel(fill)


def heat_map(says: Says, *, positions: Rows = 50, width: Width = 128) -> Shown:
    """The sinusoidal table: a row for each position, a column for each feature."""
    found = table_of(positions, width)
    return Shown(beside(says, {"positions": len(found), "width": found.shape[1]}), heat(found))


def distances(says: Says, *, positions: Rows = 200, width: Width = 128, near: int = 5) -> Shown:
    """PE(t).PE(t + k) by k at every t, and whether nearby words get closer once positions are added."""
    found = table_of(positions, width)
    products = found @ found.T
    spread = max(float(products.diagonal(k).std()) for k in range(1, positions // 2))
    depends = spread < 1e-9
    torch.manual_seed(0)
    words = torch.randn(positions, width, dtype=torch.float64)
    before, after = (normalize(each, dim=-1) @ normalize(each, dim=-1).T for each in (words, words + found))
    closer = float((after - before).diagonal(near).mean())
    farther = float((after - before).diagonal(positions // 2).mean())
    lines = [
        holds(says, "PE(t).PE(t + k) depends on k alone", depends),
        holds(says, "nearby words get closer", closer > farther > -1, right=closer > farther),
        *unsaid(
            {f"gain in cosine {near} apart": closer, f"gain in cosine {positions // 2} apart": farther},
        ),
    ]
    by_distance = {"PE(t).PE(t + k)": (range(positions), products[0].tolist())}
    return Shown(lines, curves(by_distance, x="k", y="dot product", marker=""))


def added(says: Says, *, width: Width = 16) -> Shown:
    """The input of a transformer is the sum of a word's vector and its position's."""
    torch.manual_seed(0)
    embed = Embed(width, EmbedConfig(vocab_size=8, scaled=False)).eval()
    ids = torch.tensor([[3, 1, 3]])
    with torch.no_grad():
        found = embed(ids, torch.arange(3)[None])
        by_hand = embed.tokens.weight[ids] + sinusoidal(torch.arange(3), width)
    same = torch.allclose(found, by_hand, atol=1e-6)
    lines = [holds(says, "x_i", "Emb(x_i) + p_i" if same else "something else", right=same)]
    differs = not torch.allclose(found[0, 0], found[0, 2])
    return Shown(lines + unsaid({"the same word at 0 and 2 enters as two vectors": differs}))


def patches(says: Says, *, side: Rows = 14, width: Width = 192, row: int = 6, column: int = 6) -> Shown:
    """The position of a patch in a picture as a vector, and its cosines with those of the other patches."""
    lines = torch.arange(side, dtype=torch.float64)
    rows, columns = torch.meshgrid(lines, lines, indexing="ij")
    vectors = normalize(sinusoidal_2d(rows.flatten(), columns.flatten(), width), dim=-1)
    alike = (vectors @ vectors[row * side + column]).view(side, side)
    found = GridPositionEmbeddings(width, PatchesConfig(size=(16 * side, 16 * side), patch=16), first=1).table
    learnt = found is not None and tuple(found.weight.shape) == (1 + side * side, width)
    shown = [holds(says, "patches have position embeddings", learnt)]
    nearest = alike.flatten().topk(5).indices.tolist()
    told = [[patch // side, patch % side] for patch in nearest]
    return Shown(
        shown + unsaid({"the five likest patches, (row, column)": told}),
        heat(alike, x="column of patches", y="row of patches", value="cosine"),
    )


def relative(says: Says, *, tokens: Rows = 12, n_heads: Rows = 4, seed: int = 0) -> Shown:
    """Two schemes that add a number to each score, which depends only on the distance of query and key."""
    torch.manual_seed(seed)
    biases: dict[str, Tensor] = {}
    positions = torch.arange(tokens)[None]
    for kind in ("alibi", "buckets"):
        scheme = PositionConfig(kind=kind).make(n_heads=n_heads, head_dim=8, scale=1.0)
        if kind == "buckets":
            torch.nn.init.normal_(next(scheme.parameters()))
        bias = scheme.bias(None, positions, positions)
        assert bias is not None
        biases[kind] = bias[0].detach()
    same = all(torch.equal(bias[:, 1:, 1:], bias[:, :-1, :-1]) for bias in biases.values())
    shown = [holds(says, "weights depend on the distance alone", same)]
    by_distance = {
        f"{kind}, head {head}": (range(tokens), bias[head, 0].tolist())
        for kind, bias in biases.items()
        for head in (0, n_heads - 1)
    }
    return Shown(shown, curves(by_distance, x="distance", y="added to the score"))
