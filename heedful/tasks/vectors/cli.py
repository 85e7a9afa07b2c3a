"""`heed vectors`."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.errors import InputError
from heedful.store import files
from heedful.tasks.shared.options import Run
from heedful.tasks.shared.terminal import PICTURES, Command, printable, refuse_unused, say

if TYPE_CHECKING:
    from heedful.tasks.vectors.use import WordVectors

TOP = 10
FREQUENT = 150  # words in a plane where none are given


class VectorQuestion(StrEnum):
    near = "near"
    analogy = "analogy"
    eval = "eval"
    plane = "plane"


class By(StrEnum):
    pca = "pca"
    tsne = "tsne"


def vectors(
    run: Run,
    what: Annotated[
        VectorQuestion, typer.Argument(help="near WORD ..., analogy A B C, eval FILE ..., or plane [WORD ...].")
    ],
    words: Annotated[list[str] | None, typer.Argument(help="Words; files of pairs or analogies for eval.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many words.")] = TOP,
    by: Annotated[By, typer.Option(help="plane: two principal components, or t-SNE.")] = By.pca,
    out: Annotated[Path | None, typer.Option(help="plane: a .svg or .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each answer.")] = False,
) -> None:
    """Ask vectors of words: neighbours, analogies, how they stand to what people say, or a plane of them.

    RUN may also be a file in word2vec's or GloVe's format (.txt, .vec, .bin). near and analogy print COSINE TAB WORD.

    Example: heed vectors runs/vectors near king
    """
    given = words or []
    _refuse(what, given, out)
    if what is not VectorQuestion.plane:
        refuse_unused(f"is of a plane, and not of {what.value}", {"--by": by is not By.pca, "--out": out is not None})
    if what not in (VectorQuestion.near, VectorQuestion.analogy):
        refuse_unused(f"is of near and analogy, and not of {what.value}", {"--top": top != TOP})
    from heedful.tasks.vectors.use import WordVectors

    known = WordVectors.load(run)
    match what:
        case VectorQuestion.near:
            for word, found in zip(given, known.near(given, top=top), strict=True):
                _tell({"word": word, "near": [near._asdict() for near in found]}, as_json)
        case VectorQuestion.analogy:
            best = known.analogy(given[0], given[1], given[2], top=top)
            _tell({"analogy": given, "near": [near._asdict() for near in best]}, as_json)
        case VectorQuestion.eval:
            for file in given:
                _evaluate(known, Path(file), as_json)
        case VectorQuestion.plane:
            assert out is not None
            _plane(known, given, by, out)
            say(str(out))
            if as_json:
                print(json.dumps({"out": str(out), "words": len(given) or min(FREQUENT, len(known.words))}))


def _refuse(what: VectorQuestion, given: list[str], out: Path | None) -> None:
    """Raises InputError or MissingError for invalid arguments, before anything is read."""
    needs = {VectorQuestion.near: "a word", VectorQuestion.analogy: "three words: A B C", VectorQuestion.eval: "a file"}
    right = len(given) == 3 if what is VectorQuestion.analogy else bool(given) or what is VectorQuestion.plane
    if not right:
        raise InputError(f"{what.value} needs {needs[what]}", fix=f"heed vectors RUN {what.value} ...")
    if what is not VectorQuestion.plane:
        return
    if out is None or out.suffix not in PICTURES:
        raise InputError("a plane is a .svg or .png file", where=str(out or "plane"), fix="--out x.svg")
    files.need_output(out)


def _tell(record: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(record, ensure_ascii=False))
        return
    if "word" in record:
        print(printable(record["word"]))
    for near in record["near"]:
        print(f"{near['score']:.3f}\t{printable(near['word'])}")


def _evaluate(known: "WordVectors", file: Path, as_json: bool) -> None:
    from heedful.data.lines import read_lines
    from heedful.tasks.vectors.judged import is_analogies, judged, read_pairs, solved

    lines = read_lines(file)
    if is_analogies(lines):
        for one in solved(known, lines, str(file)):
            if as_json:
                print(json.dumps({"file": str(file), **one._asdict()}))
            else:
                print(f"{one.accuracy:.4f}\t{one.known} of {one.analogies}\t{one.section}")
        return
    found = judged(known, read_pairs(file))
    if as_json:
        print(json.dumps({"file": str(file), **found._asdict()}))
    else:
        print(f"{found.spearman:.4f}\t{found.known} of {found.pairs} pairs\t{file.name}")


def _plane(known: "WordVectors", given: list[str], by: By, out: Path) -> None:
    from heedful.look.draw import to_bytes
    from heedful.look.plane import plane_figure, principal_plane, tsne_plane

    shown = given or list(known.words[:FREQUENT])
    rows = known.unit[[known.number(word) for word in shown]].double().numpy()
    at = principal_plane(rows) if by is By.pca else tsne_plane(rows)
    name = "two principal components" if by is By.pca else "t-SNE"
    figure = plane_figure(at, shown, title=f"{len(shown)} words, {name}")
    files.write_output(out, to_bytes(figure, PICTURES[out.suffix]))


COMMANDS = (Command("vectors", vectors),)
