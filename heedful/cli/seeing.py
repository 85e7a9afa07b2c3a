"""Models that see: `heed detect`, `segment`, `match` and `paint`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.common import Device, Json, Run, app, input_lines, say
from heedful.errors import InputError, MissingError

Pictures = Annotated[list[str] | None, typer.Argument(help="Files of pictures; without any, lines of standard input.")]


@app.command()
def detect(
    run: Run,
    pictures: Pictures = None,
    threshold: Annotated[float, typer.Option(min=0.0, max=1.0, help="The least probability of a box.")] = 0.5,
    out: Annotated[Path | None, typer.Option(help="Draw them: a .png file, or a folder for several pictures.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Find things in pictures: their labels and boxes (left, upper, right and lower edge, in pixels).

    Example: heed detect runs/detect street.jpg --out found.png
    """
    from heedful.data.images import read_image, to_image
    from heedful.look.marks import draw_boxes
    from heedful.tasks.detect import Detector
    from heedful.tasks.device import chosen_device

    model = Detector.load(run, device=chosen_device(device))
    places = _places(pictures, out)
    for files in _groups(pictures):
        for file, found in zip(files, model.detect(files, threshold=threshold), strict=True):
            if as_json:
                boxes = [{**one._asdict(), "box": [round(edge, 2) for edge in one.box]} for one in found]
                print(json.dumps({"input": file, "boxes": boxes}, ensure_ascii=False), flush=True)
            else:
                for one in found:
                    edges = " ".join(f"{edge:.0f}" for edge in one.box)
                    print(f"{one.label}\t{one.score:.3f}\t{edges}\t{file}", flush=True)
            if out is not None:
                marks = [(f"{one.label} {one.score:.2f}", one.box, model.says.labels.index(one.label)) for one in found]
                _write_png(places(file), draw_boxes(to_image(read_image(file)), marks))


@app.command()
def segment(
    run: Run,
    pictures: Pictures = None,
    out: Annotated[Path, typer.Option(help="A folder for the masks: NAME.png of each picture.")] = Path("masks"),
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Also NAME.overlay.png, colours over the picture.")
    ] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Say what every pixel of a picture belongs to: a mask as large as the picture, of the numbers that the masks had
    which were learnt from.

    Example: heed segment runs/segment street.jpg --out masks --overlay
    """
    import torch

    from heedful.data.images import read_image, to_image
    from heedful.look.marks import mask_image
    from heedful.look.marks import overlay as laid_over
    from heedful.tasks.device import chosen_device
    from heedful.tasks.segment import Segmenter

    model = Segmenter.load(run, device=chosen_device(device))
    classes = model.says.classes
    values = torch.tensor(classes.values, dtype=torch.uint8)
    places = _places(pictures, out, folder=True)
    for files in _groups(pictures):
        for file, found in zip(files, model.segment(files), strict=True):
            place = places(file)
            _write_png(place, mask_image(values[found.long()].numpy()))
            if overlay:
                picture = to_image(read_image(file))
                _write_png(place.with_name(f"{place.stem}.overlay.png"), laid_over(picture, found.numpy()))
            shares = found.flatten().long().bincount(minlength=len(classes.labels)) / found.numel()
            labels = [
                {"label": label, "value": value, "share": round(share, 4)}
                for label, value, share in zip(classes.labels, classes.values, shares.tolist(), strict=True)
                if share
            ]
            if as_json:
                print(json.dumps({"input": file, "mask": str(place), "labels": labels}, ensure_ascii=False), flush=True)
            else:
                listed = ", ".join(f"{each['label']} {each['share']:.3f}" for each in labels)
                print(f"{place}\t{listed}\t{file}", flush=True)


@app.command()
def match(
    run: Run,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Files of pictures; with --images, texts. Without any, lines of standard input."),
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="What a picture may show; give it twice or more.")] = None,
    images: Annotated[Path | None, typer.Option(help="Find the pictures in this folder that belong to a text.")] = None,
    template: Annotated[
        list[str] | None, typer.Option(help='Say each text as in "a picture of {}"; of several, the mean.')
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="With --images, how many pictures.")] = 10,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Say which of some texts belongs to a picture, with probabilities; or find pictures for a text.

    Example: heed match runs/match cat.png --text "a cat" --text "a dog"
    """
    from heedful.data.captions import pictures_in
    from heedful.tasks.device import chosen_device
    from heedful.tasks.match import TEMPLATE, Matcher

    if (images is None) == (text is None):
        raise InputError("which texts, for which pictures?", fix="give --text for pictures, or --images for texts")
    matcher, templates = Matcher.load(run, device=chosen_device(device)), template or [TEMPLATE]
    if images is not None:
        pictures = pictures_in(images)
        vectors = matcher.embed_images(pictures)
        for texts in [inputs] if inputs else input_lines():
            found = matcher.search(texts, pictures, vectors=vectors, top=top, templates=templates)
            for own, best in zip(texts, found, strict=True):
                _tell_found(own, best, as_json=as_json)
        return
    for files in [inputs] if inputs else input_lines():
        for file, scores in zip(files, matcher.match(files, text or [], templates=templates), strict=True):
            if as_json:
                listed = [{"text": each, "score": score} for each, score in scores]
                print(json.dumps({"input": file, "texts": listed}, ensure_ascii=False), flush=True)
            else:
                print(f"{scores[0][0]}\t{scores[0][1]:.3f}\t{file}", flush=True)


@app.command()
def paint(
    run: Run,
    pictures: Annotated[
        list[str] | None, typer.Argument(help="Files of pictures to complete; without any, from nothing.")
    ] = None,
    keep: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of a picture's rows that stay.")] = 0.5,
    samples: Annotated[int | None, typer.Option(min=1, help="How many of each.", show_default="1; new, 16")] = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 takes the most probable colours.")] = 1.0,
    top_k: Annotated[int, typer.Option(min=0)] = 0,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 1.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    batch: Annotated[int, typer.Option(min=1, help="How many pictures are made at a time.")] = 32,
    out: Annotated[
        Path, typer.Option(help="A .png file for all side by side, or a folder: NAME-1.png and so on of each picture.")
    ] = Path("painted"),
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Make new pictures, or complete the upper part of given ones, pixel by pixel.

    Example: heed paint runs/paint digit.png --keep 0.5 --samples 4 --out completed.png
    """
    from heedful.data.images import to_image
    from heedful.look.sheet import contact_sheet
    from heedful.tasks.device import chosen_device
    from heedful.tasks.paint import Painter

    painter = Painter.load(run, device=chosen_device(device))
    whole, samples = out.suffix == ".png", samples or (1 if pictures else 16)
    names = pictures or ["new"]
    files = [out] * len(names) if whole else list(map(_places(names, out, folder=True), names))
    begun = painter.begin(pictures, keep=keep) if pictures else None
    made = painter.paint(
        begun, samples=samples, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed, batch=batch
    )
    if whole:
        _write_png(out, contact_sheet(made.flatten(0, 1), columns=samples if pictures else 4))
    for name, file, own in zip(names, files, made, strict=True):
        for number, picture in enumerate(own, 1):
            place = file if whole else file.with_stem(f"{file.stem}-{number}")
            if not whole:
                _write_png(place, to_image(picture))
            if as_json:
                record = {"input": name if pictures else None, "sample": number, "picture": str(place)}
                print(json.dumps(record, ensure_ascii=False))


def _tell_found(text: str, found: list[Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"text": text, "images": [each._asdict() for each in found]}, ensure_ascii=False), flush=True)
    else:
        for each in found:
            print(f"{each.score:.3f}\t{each.input}\t{text}", flush=True)


def _groups(pictures: Sequence[str] | None) -> Iterator[list[str]]:
    """One picture at a time, so that each answer comes at once."""
    for files in [pictures] if pictures else input_lines():
        yield from ([file] for file in files)


class _places:
    """Where the pictures go that are drawn: one file, or a folder with one for each."""

    def __init__(self, pictures: Sequence[str] | None, out: Path | None, *, folder: bool = False) -> None:
        self.out, self.taken = out, set[Path]()
        self.folder = out is not None and (folder or out.is_dir() or pictures is None or len(pictures) > 1)
        if out is None:
            return
        if self.folder and out.suffix:
            raise InputError("not a folder's name", where=str(out), fix="name a folder")
        if not self.folder and out.suffix != ".png":
            raise InputError(f"{out.suffix or 'no suffix'} is not .png", where=str(out), fix="--out found.png")
        if not self.folder and not out.parent.is_dir():
            raise MissingError("no such folder", where=str(out.parent), fix="make it first, or change --out")

    def __call__(self, file: str) -> Path:
        assert self.out is not None
        if not self.folder:
            return self.out
        place = self.out / f"{Path(file).stem}.png"
        if place in self.taken:
            raise InputError("two pictures of one name", where=file, fix="do them one by one")
        self.taken.add(place)
        return place


def _write_png(place: Path, image: Any) -> None:
    from heedful.look.sheet import png
    from heedful.store import files

    files.make_folder(place.parent)
    files.write_bytes(place, png(image))
    say(str(place))
