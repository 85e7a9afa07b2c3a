"""What a model makes of a protein: its contacts as a map, and its backbone in three dimensions."""

import io
import json

import numpy
from matplotlib.figure import Figure
from PIL import Image

from heedful.data.images.files import to_tensor
from heedful.look.draw import in_style, to_bytes
from heedful.look.overlay import each_page, picture_view
from heedful.metrics.structures import TOUCH, distances
from heedful.run.task import Looked, NoOptions
from heedful.tasks.fold.use import Prediction, StructurePredictor, folded_record

SHOWN = 5  # contacts that are told


def drawn(prediction: Prediction) -> Figure:
    """The probability of each contact, and below the diagonal dots where residues do touch, if the structure is known;
    and the chain of CAs, coloured by confidence."""
    with in_style():
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        axes = figure.add_subplot(1, 2, 1)
        R = len(prediction.contacts)
        image = axes.imshow(prediction.contacts, cmap="Greys", vmin=0, vmax=1, extent=(0.5, R + 0.5, R + 0.5, 0.5))
        if prediction.chain.backbone is not None:
            rows, columns = numpy.nonzero(numpy.tril(distances(prediction.chain.backbone) < TOUCH, -1))
            axes.scatter(columns + 1, rows + 1, s=3, color="tab:red")
        axes.set(xlabel="residue", ylabel="residue", title="contacts")
        figure.colorbar(image, ax=axes, label="probability", shrink=0.8)
        space = figure.add_subplot(1, 2, 2, projection="3d")
        x, y, z = (prediction.backbone[:, 1] - prediction.backbone[:, 1].mean(0)).T
        space.plot(x, y, z, color="0.6", linewidth=1)
        dots = space.scatter(x, y, z, c=prediction.confidence, cmap="viridis", vmin=0, vmax=100, s=18)
        half = float(numpy.abs([x, y, z]).max()) or 1.0
        space.set(xlim=(-half, half), ylim=(-half, half), zlim=(-half, half), title="backbone (angstroms)")
        figure.colorbar(dots, ax=space, label="confidence (lDDT)", shrink=0.8)
    return figure


def look_at_structure(predictor: StructurePredictor, text: str, kind: str, options: NoOptions) -> Looked:
    """A .svg or .png file, a page with the picture, or the JSON that the server's page draws."""
    prediction = predictor.fold(text)
    surest = [(f"{first}-{second}", chance) for first, second, chance in prediction.surest()[:SHOWN]]
    summary = (
        f"{prediction.chain.name}: {len(prediction.contacts)} residues, confidence {prediction.confidence.mean():.0f}"
    )
    summary += "; surest contacts " + ", ".join(f"{name} {chance:.2f}" for name, chance in surest) if surest else ""
    facts = {**folded_record(text, prediction)}
    if kind in ("svg", "png"):
        return Looked(to_bytes(drawn(prediction), "png" if kind == "png" else "svg"), summary, facts)
    with Image.open(io.BytesIO(to_bytes(drawn(prediction), "png"))) as image:
        pixels = to_tensor(image.convert("RGB"))
    if kind == "html":
        page = each_page(pixels, {}, title=prediction.chain.name, told=summary)
    else:
        page = json.dumps(picture_view(pixels, [], title=prediction.chain.name, said=surest))
    return Looked(page.encode(), summary, facts)
