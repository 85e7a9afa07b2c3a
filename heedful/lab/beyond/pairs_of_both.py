"""CLIP: classes are texts, so the model can be asked about classes that it was never trained on."""

from dataclasses import replace

import torch
from torch import Tensor

from heedful.data.made.shapes import COLOURS
from heedful.lab.drawn import weights_of
from heedful.lab.exhibit import Says, Shown, Steps, holds, unsaid
from heedful.lab.learning import learn
from heedful.lab.vision.shapes import PATCH, SIDE, Pictures, pictures
from heedful.lab.whole_words import END, WordVocabulary
from heedful.models.clip import CLIP
from heedful.models.vision_presets import ClipSize, clip_config
from heedful.training.loss import contrastive

STEPS = 250
CORNERS = ("top left", "top right", "bottom left", "bottom right")
TEXTS = [f"{colour} {corner}" for colour in COLOURS for corner in CORNERS]
NEW = [f"{colour} {corner}" for colour, corner in zip(COLOURS, CORNERS, strict=True)]  # not in the training data
CLEAR = 3  # the least distance in pixels from a shape's centre to the picture's, along each axis


def placed(part: str, count: int) -> tuple[Tensor, Tensor]:
    """Pictures (B, 3, S, S) of shapes that are clearly in a corner, and the indices of their TEXTS (B)."""
    made: Pictures = pictures(part, count)
    on, at = made.masks.float(), torch.arange(SIDE).float() + 0.5
    down, across = ((on.sum(axis) * at).sum(1) / on.sum((1, 2)) - SIDE / 2 for axis in (2, 1))
    told = made.labels // 3 * len(CORNERS) + 2 * (down > 0) + (across > 0)
    clear = (down.abs() > CLEAR) & (across.abs() > CLEAR)
    return made.pixels[clear], told[clear]


def zero_shot(says: Says, *, steps: Steps = STEPS, seed: int = 0) -> Shown:
    """Trains CLIP on pictures and texts such as "red top left". Four of the sixteen combinations are left out, and then
    classified among all sixteen, only by their texts."""
    torch.manual_seed(seed)
    words = WordVocabulary(TEXTS)
    size = ClipSize(
        d_common=32, image_width=32, image_layers=2, image_heads=4, patch=PATCH, size=SIDE,
        text_width=32, text_layers=1, text_heads=2, context_length=8,
    )  # fmt: skip
    config = clip_config(size, vocab_size=len(words), end=END)
    # A token before the picture begins as the same for all, and how long they take to part depends on the seed.
    model = CLIP(replace(config, image=replace(config.image, readout="mean")))
    texts, _ = words.rows(TEXTS, begin=True, end=True)
    is_new = torch.tensor([text in NEW for text in TEXTS])
    pixels, told = placed("train", 2000)
    shown = (~is_new[told]).nonzero()[:, 0]

    def loss(step: int) -> Tensor:
        rows = shown[torch.randint(len(shown), (32,), generator=generator)]
        found = contrastive(model(pixels[rows], texts[told[rows]]), told[rows, None] == told[rows])
        return found.total / found.count

    generator = torch.Generator().manual_seed(seed)
    learn(model, loss, steps=steps, lr=3e-3, weight_decay=0.1)
    pixels, told = placed("test", 400)
    with torch.no_grad():
        similarity = model(pixels, texts)
    right, new, chance = (similarity.argmax(-1) == told).float(), is_new[told], 1 / len(TEXTS)
    unseen = float(right[new].mean())
    lines = [holds(says, "classes are texts", unseen > 5 * chance)]
    facts = {"right of combinations that it has seen": float(right[~new].mean())}
    facts |= {"right of combinations that it has not": unseen, "right by chance": chance}
    mean = torch.stack([similarity[told == number].softmax(-1).mean(0) for number in range(len(TEXTS))])
    rows = [f"new: {text}" if text in NEW else text for text in TEXTS]
    title = "Pictures of each kind (down) and texts (across)"
    return Shown(lines + unsaid(facts), weights_of(mean, rows, TEXTS, title, value="probability"))
