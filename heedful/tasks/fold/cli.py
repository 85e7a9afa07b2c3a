"""`heed fold`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError
from heedful.store import files as storage
from heedful.tasks.shared.line_by_line import answers_to_pictures
from heedful.tasks.shared.options import Device, Json, Run, Weights
from heedful.tasks.shared.terminal import PICTURES, Command, printable, say, tell

if TYPE_CHECKING:
    from heedful.tasks.fold.use import Prediction

SHOWN = 10  # contacts


def fold(
    run: Run,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files with a sequence each (FASTA), or it and its relatives, aligned to it (A3M); without any, lines "
            "of standard input."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the backbone: a .cif or .pdb file, for one protein.")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw contacts and backbone: a .svg or .png file, for one protein.")
    ] = None,
    device: Device = "auto",
    weights: Weights = "float32",
    as_json: Json = False,
) -> None:
    """Fold proteins: which residues touch, and where the backbone runs.

    Example: heed fold runs/fold protein.a3m --out protein.cif
    """
    from heedful.data.lines import read_bytes
    from heedful.data.proteins.structures import KINDS, structure_library, structure_text
    from heedful.tasks.fold.use import StructurePredictor, folded_record
    from heedful.tasks.shared.served import load_in_bits

    for path, kinds in ((out, KINDS), (picture, (*PICTURES,))):
        if path is not None and (path.suffix not in kinds or files is None or len(files) != 1):
            what = f"this is one {' or '.join(kinds)} file, of one protein"
            raise InputError(what, where=str(path), fix=f"--{'out' if path is out else 'picture'} protein{kinds[0]}")
        if path is not None:
            storage.need_output(path)
    if out is not None:
        structure_library(str(out))
    predictor = load_in_bits(StructurePredictor.load, run, device, weights)

    def folded(group: list[str]) -> "list[tuple[str, Prediction]]":
        texts = [read_bytes(Path(file)).decode(errors="replace") for file in group]
        return [(text, predictor.fold(text)) for text in texts]

    for _, (text, prediction) in answers_to_pictures(files, folded, as_json=as_json, together=1, noun="file"):
        chain, sure = prediction.chain, prediction.confidence
        heading = f"{printable(chain.name)}\t{len(sure)} residues\tconfidence {sure.mean():.1f}"
        lines = [f"{first}\t{second}\t{chance:.3f}" for first, second, chance in prediction.surest()[:SHOWN]]
        tell({**folded_record(text, prediction)}, [heading, *lines], as_json=as_json)
        if out is not None:
            written = structure_text(chain.name, chain.letters, prediction.backbone, sure.tolist(), out.suffix)
            storage.write_output(out, written.encode())
            say(str(out))
        if picture is not None:
            from heedful.look.draw import to_bytes
            from heedful.tasks.fold.look import drawn

            storage.write_output(picture, to_bytes(drawn(prediction), PICTURES[picture.suffix]))
            say(str(picture))


COMMANDS = (Command("fold", fold),)
