"""Looking inside a model: `heed look`, one function a kind of task."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.common import Json, Run, app, say
from heedful.errors import InputError, MissingError

KINDS = ("png", "svg", "html")
Options = Mapping[str, Any]
Looked = tuple[bytes, str, dict[str, Any]]  # a picture, what a person reads, and what a machine does


@app.command()
def look(
    run: Run,
    text: Annotated[str, typer.Argument(help="The sentence to translate, or to read, or the file of a picture.")],
    out: Annotated[Path, typer.Option(help="A .png, .svg or .html file.")] = Path("look.html"),
    target: Annotated[str | None, typer.Option(help="Watch this translation in place of the model's own.")] = None,
    layer: Annotated[str | None, typer.Option(help='Names, such as "decoder.*.cross_attention".')] = None,
    head: Annotated[int | None, typer.Option(min=0, help="One head, large (png and svg), from 0.")] = None,
    pair: Annotated[
        str | None, typer.Option(help="The second of two texts; for a question, the text that answers it.")
    ] = None,
    shown: Annotated[
        list[str] | None, typer.Option("--text", help="Where in a picture is this near? May be given again.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw who looked at whom while a sentence was translated, or a text read for whatever is asked of it; or what was
    looked at in a picture, for what was found in it, or where in it a text is near.

    Example: heed look runs/demo "The small cat is sleeping." --out look.html
    """
    from heedful.store import files
    from heedful.tasks.load import load_model, task_of

    kind = out.suffix.removeprefix(".")
    if kind not in KINDS:
        raise InputError(
            f"{out.suffix or 'no suffix'} is not a picture", where=str(out), fix="--out x.png, x.svg or x.html"
        )
    if not out.parent.is_dir():
        raise MissingError("no such folder", where=str(out.parent), fix="make it first, or change --out")
    task = task_of(run)
    if task not in LOOKS:
        raise InputError(f"a model for {task!r}", where=str(run), fix=f"look at one for {', '.join(LOOKS)}")
    if target is not None and task != "translate":
        raise InputError("--target says nothing to a model that does not translate", where=str(run), fix="leave it out")
    if pair is not None and LOOKS[task] is not _reading:
        raise InputError("--pair is for texts that are read in twos", where=str(run), fix="leave it out")
    if (shown is not None) != (task == "match"):
        what, fix = "--text says nothing to a model that does not match pictures and texts", "leave it out"
        if shown is None:
            what, fix = "which texts are to be looked for in the picture?", "give --text"
        raise InputError(what, where=str(run), fix=fix)
    options = {
        "texts": shown,
        "pair": pair,
        "kind": kind,
        "target": target,
        "layers": layer or "*",
        "chosen": layer is not None,
        "head": head,
    }
    picture, told, facts = LOOKS[task](load_model(run), text, options)
    files.write_bytes(out, picture)
    say(f"{told}\n{out}")
    if as_json:
        print(json.dumps(facts | {"out": str(out)}))


def _translation(translator: Any, text: str, options: Options) -> Looked:
    from heedful.tasks.look import draw, look

    looked = look(translator, text, target=options["target"], layers=options["layers"])
    picture = draw(looked, options["kind"], head=options["head"], chosen=options["chosen"])
    facts = {"source": text, "text": looked.text, "layers": list(looked.weights)}
    return picture, f"{text}\n  -> {looked.text}", facts


def _reading(served: Any, text: str, options: Options) -> Looked:
    from heedful.tasks.generate import LanguageModel
    from heedful.tasks.look import draw, head_labels, look_within, looked_at

    looked = look_within(served, text, pair=options["pair"], layers=options["layers"])
    picture = draw(looked, options["kind"], head=options["head"], chosen=options["chosen"])
    name, at = ("last", -1) if isinstance(served, LanguageModel) else ("first", 0)  # the token that sums a text up
    row = looked_at(looked, at)
    likeliest = sorted(row, key=lambda pair: -pair[1])[:5]
    told = f"{looked.read[at]} looks at {', '.join(f'{token} {share:.2f}' for token, share in likeliest)}"
    facts = {"source": text, "text": looked.text, "layers": list(looked.weights)}
    return picture, told, facts | {"heads": head_labels(looked), name: row}


def _image(served: Any, file: str, options: Options) -> Looked:
    from heedful.tasks.look_images import draw, look

    seen = look(served, file, layers=options["layers"])
    label, chance = seen.labels[0]
    facts = {"input": file, "label": label, "layers": list(seen.maps.layers)}
    return draw(seen, options["kind"], head=options["head"]), f"{file}\n  -> {label} {chance:.3f}", facts


def _detect(served: Any, file: str, options: Options) -> Looked:
    from heedful.tasks.look_detect import draw, look

    _refuse_choices(options, "thing that was found")
    looked = look(served, file)
    told = [f"  {one.label} {one.score:.3f}" for one in looked.found]
    boxes = [one._asdict() for one in looked.found]
    return draw(looked, options["kind"]), "\n".join([file, *told]), {"input": file, "boxes": boxes}


def _refuse_choices(options: Options, each: str) -> None:
    if options["chosen"] or options["head"] is not None:
        raise InputError(f"one picture for each {each} is all there is", fix="leave out --layer and --head")


def _match(served: Any, file: str, options: Options) -> Looked:
    from heedful.tasks.look_match import draw, look

    _refuse_choices(options, "text")
    looked = look(served, file, options["texts"])
    told = [f"  {text}: {own.min():.3f} to {own.max():.3f}" for text, own in looked.cosines.items()]
    texts = [{"text": text, "cosines": own.tolist()} for text, own in looked.cosines.items()]
    return draw(looked, options["kind"]), "\n".join([file, *told]), {"input": file, "texts": texts}


LOOKS: dict[str, Callable[[Any, str, Options], Looked]] = {
    "translate": _translation,
    "fill": _reading,
    "encode": _reading,
    "classify": _reading,
    "tag": _reading,
    "answer": _reading,
    "generate": _reading,
    "classify-images": _image,
    "match": _match,
    "detect": _detect,
}
