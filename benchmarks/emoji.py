"""Matching pictures and texts, learnt in minutes: emoji by their names, and coloured shapes by their captions.

    python -m benchmarks.emoji --data PATH/TO/emoji_captions --minutes 8

Emoji (a folder with captions.tsv and images_64x64.zip): a model learns from the training pictures, nine of ten, with
their names and keywords, and then looks for each test picture's name among all test pictures. Beside it: chance, and a
bag of words, which takes the pictures of the five training texts that are nearest to the name by tf-idf, and ranks by
how like their weighted sum a picture is, pixel by pixel.

Shapes: a model learns from generated scenes of one to four shapes, none of them a red square, and then names pictures
of one shape, asked for the twelve pairs of colour and shape. Beside it: chance, and who knows all colours and no shape.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor

import heedful
from heedful.data.images.captions import Captioned, CaptionedImages
from heedful.data.images.files import ImageFiles, members, resize
from heedful.data.lines import read_lines, tsv_cells
from heedful.data.made import shapes
from heedful.run.events import Measured, Note
from heedful.run.recipe import override
from heedful.tasks.match.use import RECALLS, Matcher, recalls
from heedful.verbs.train import train

SHARE = 10  # one of so many training pictures is to validate on
NEAREST, EDGE = 5, 16  # of the bag of words: training texts, and pixels of an edge of the pictures that are compared
NEVER = "red square"
TEMPLATE = "a {}"
ASKED = 600  # pictures of one shape


def emoji(folder: Path) -> CaptionedImages:
    """With the split that captions.tsv has; what is measured on has its name alone."""
    (_, header), *cells = tsv_cells(read_lines(folder / "captions.tsv"))
    rows = [dict(zip(header, row, strict=True)) for _, row in cells if row]
    files = {file.member: file for file in members(folder / "images_64x64.zip")}

    def part(own: Sequence[dict[str, str]], *columns: str) -> Captioned:
        texts = [[row[column].replace("|", " ") for column in columns if row[column]] for row in own]
        return Captioned(ImageFiles([files[row["file"]] for row in own]), texts)

    known = [row for row in rows if row["split"] == "train"]
    learnt = [row for number, row in enumerate(known) if number % SHARE]
    tests = {"test": part([row for row in rows if row["split"] == "test"], "name")}
    return CaptionedImages(
        part(learnt, "name", "keywords"), part(known[::SHARE], "name"), tests, "emoji", channels=3, size=(64, 64)
    )


def bag_of_words(corpus: CaptionedImages) -> dict[str, float]:
    """Recalls of the test pictures for their names."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    learnt, test = corpus.train, corpus.tests["test"]
    bags = TfidfVectorizer(sublinear_tf=True)
    known = bags.fit_transform([" ".join(own) for own in learnt.captions])
    like = torch.from_numpy((bags.transform([own[0] for own in test.captions]) @ known.T).toarray()).float()
    weights, best = like.topk(NEAREST)
    expected = (weights[:, :, None] * _small(learnt)[best]).sum(1)
    return recalls(expected, _small(test), torch.eye(len(test), dtype=torch.bool))


def _small(part: Captioned) -> Tensor:
    """Few pixels of each picture, how they differ from grey, of length 1."""
    pixels = [resize(part.images[i], (EDGE, EDGE)).float().flatten() - 255 / 2 for i in range(len(part))]
    return F.normalize(torch.stack(pixels), dim=1)


def chance(pictures: int) -> dict[str, float]:
    return {f"recall_{most}": most / pictures for most in RECALLS}


def shape_scenes(count: int, *, in_parts: bool) -> CaptionedImages:
    """Those with what is never seen are left out. `in_parts`: what is learnt from has two more captions, one without
    the kinds of shapes and one without their colours."""
    parts = {}
    for part in ("train", "valid"):
        made = [scene for scene in shapes.parts(count)[part] if NEVER not in map(str, scene.shapes)]
        told = [[scene.caption] for scene in made]
        if in_parts and part == "train":
            told = [[*own, scene.told(_coloured), scene.told(_kind)] for own, scene in zip(told, made, strict=True)]
        parts[part] = Captioned(_pixels(made), told)
    size = (shapes.SIZE, shapes.SIZE)
    return CaptionedImages(parts["train"], parts["valid"], {}, "shapes", channels=3, size=size)


def _coloured(shape: shapes.Shape) -> str:
    return f"{shape.colour} shape"


def _kind(shape: shapes.Shape) -> str:
    return shape.kind


def named(matcher: Matcher) -> dict[str, float]:
    """How many pictures of one shape get their right name, of pairs that were seen and of the one that was not; and
    of the latter how many get the right colour."""
    made = [shapes.scene("asked", number, most=1) for number in range(ASKED)]
    names = [f"{colour} {kind}" for colour in shapes.COLOURS for kind in shapes.KINDS]
    said = (matcher.image_vectors(_pixels(made)) @ matcher.embed_prompts(names, [TEMPLATE]).mT).argmax(1).tolist()
    both = [(names[i], str(scene.shapes[0])) for i, scene in zip(said, made, strict=True)]
    seen, unseen = ([pair for pair in both if (pair[1] == NEVER) == never] for never in (False, True))
    return {
        "seen": sum(a == b for a, b in seen) / len(seen),
        "never_seen": sum(a == b for a, b in unseen) / len(unseen),
        "never_seen_colour": sum(a.split()[0] == b.split()[0] for a, b in unseen) / len(unseen),
    }


def _pixels(scenes: Sequence[shapes.Scene]) -> Tensor:
    return torch.from_numpy(numpy.stack([scene.pixels for scene in scenes])).permute(0, 3, 1, 2)


def learnt(corpus: CaptionedImages, out: Path, settings: Sequence[str]) -> Matcher:
    for event in train(override(heedful.recipe("match"), settings), out, corpus=corpus):
        match event:
            case Note(text):
                print(f"  {text}", flush=True)
            case Measured():
                told = "  ".join(f"{name} {score:.3f}" for name, score in event.scores.items())
                print(f"  step {event.step:,}: loss {event.valid_loss:.3f}  {told}", flush=True)
    return Matcher.load(out)


def told(name: str, scores: dict[str, float]) -> None:
    print(f"{name:24}" + "  ".join(f"{key} {score:.3f}" for key, score in scores.items()), flush=True)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--data", type=Path, required=True, help="the folder with captions.tsv")
    reader.add_argument("--out", type=Path, default=Path("runs/emoji"), help="emoji and shapes, a run each, go in here")
    reader.add_argument("--minutes", type=float, default=8.0, help="of training, for emoji and for shapes")
    reader.add_argument("--scenes", type=int, default=shapes.MANY)
    reader.add_argument("--in-parts", action="store_true", help="shapes: captions also tell colours and kinds alone")
    reader.add_argument("--only", choices=["emoji", "shapes"])
    reader.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the recipe")
    given = reader.parse_args()
    settings = [f"train.minutes={given.minutes}", *given.set]
    if given.only != "shapes":
        corpus = emoji(given.data)
        matcher = learnt(corpus, given.out / "emoji", settings)
        test = corpus.tests["test"]
        told("emoji: chance", chance(len(test)))
        told("emoji: bag of words", bag_of_words(corpus))
        told("emoji: ours", matcher.measure(test))
    if given.only != "emoji":
        matcher = learnt(shape_scenes(given.scenes, in_parts=given.in_parts), given.out / "shapes", settings)
        kinds, colours = len(shapes.KINDS), len(shapes.COLOURS)
        told("shapes: chance", {"never_seen": 1 / (kinds * colours)})
        told("shapes: colours alone", {"never_seen": 1 / kinds})
        told("shapes: ours", named(matcher))


if __name__ == "__main__":
    main()
