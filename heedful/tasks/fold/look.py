"""What a model makes of a protein: its contacts as a map, and its backbone in three dimensions."""

from typing import Literal

import numpy
from matplotlib.figure import Figure

from heedful.errors import InputError
from heedful.look.draw import in_style, to_bytes
from heedful.run.task import Looked, NoOptions
from heedful.tasks.fold.use import Prediction, StructurePredictor, folded_record

SHOWN = 5  # contacts that are told


def drawn(found: Prediction) -> Figure:
    """The probability of each contact, with the chain's own where its structure is known (below the diagonal), and the
    chain of CAs, coloured by confidence."""
    with in_style():
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        axes = figure.add_subplot(1, 2, 1)
        R = len(found.contacts)
        image = axes.imshow(found.contacts, cmap="Greys", vmin=0, vmax=1, extent=(0.5, R + 0.5, R + 0.5, 0.5))
        axes.set(xlabel="residue", ylabel="residue", title="contacts")
        figure.colorbar(image, ax=axes, label="probability", shrink=0.8)
        space = figure.add_subplot(1, 2, 2, projection="3d")
        x, y, z = (found.backbone[:, 1] - found.backbone[:, 1].mean(0)).T
        space.plot(x, y, z, color="0.6", linewidth=1)
        dots = space.scatter(x, y, z, c=found.confidence, cmap="viridis", vmin=0, vmax=100, s=18)
        half = float(numpy.abs([x, y, z]).max()) or 1.0
        space.set(xlim=(-half, half), ylim=(-half, half), zlim=(-half, half), title="backbone (angstroms)")
        figure.colorbar(dots, ax=space, label="confidence (lDDT)", shrink=0.8)
    return figure


def look_at_structure(predictor: StructurePredictor, text: str, kind: str, options: NoOptions) -> Looked:
    """Raises InputError for a page, which this is not."""
    if kind not in ("svg", "png"):
        raise InputError("a structure is drawn as a picture", where=f"--out *.{kind}", fix="--out look.svg, or .png")
    found = predictor.fold(text)
    form: Literal["svg", "png"] = "png" if kind == "png" else "svg"
    surest = ", ".join(f"{one}-{other} {chance:.2f}" for one, other, chance in found.surest()[:SHOWN])
    told = f"{found.chain.name}: {len(found.contacts)} residues, confidence {found.confidence.mean():.0f}"
    told += f"; surest contacts {surest}" if surest else ""
    return Looked(to_bytes(drawn(found), form), told, {**folded_record(text, found)})
