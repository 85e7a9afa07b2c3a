"""CLIP: classes are texts, so that a class that was never shown can be asked for."""

import torch

from heedful.lab.drawn import weights_of
from heedful.lab.exhibit import NOTHING_SAID, Says, Shown, beside, holds
from heedful.lab.vision.shapes import CLASSES, NEW, clip, pictures, tokens

STEPS = 300


def zero_shot(says: Says, *, steps: int = STEPS) -> Shown:
    """Pictures of coloured shapes and their texts are brought together; three of twelve combinations are left out, and
    then asked for among all twelve, by text alone."""
    model, test = clip(steps), pictures("test", 300)
    with torch.no_grad():
        similarity = model(test.pixels, tokens(CLASSES))
    said, new = similarity.argmax(-1), torch.tensor([CLASSES[label] in NEW for label in test.labels.tolist()])
    right = (said == test.labels).float()
    shares = {
        "combinations that it has seen": float(right[~new].mean()),
        "combinations that it has not": float(right[new].mean()),
    }
    texts = shares["combinations that it has not"] > 3 / len(CLASSES)
    lines = [holds(says, "classes are texts", texts, right=texts)]
    lines += beside(
        NOTHING_SAID, {f"right of {name}": share for name, share in shares.items()} | {"by chance": 1 / len(CLASSES)}
    )
    mean = torch.stack([similarity[test.labels == label].softmax(-1).mean(0) for label in range(len(CLASSES))])
    rows = [f"{name} (new)" if name in NEW else name for name in CLASSES]
    return Shown(lines, weights_of(mean, rows, CLASSES, "Pictures of each class (down) and texts (across)"))
