"""`heed fold`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.errors import InputError
from heedful.store import files as storage
from heedful.tasks.shared.options import Device, Json, Run, Weights
from heedful.tasks.shared.terminal import Command, printable, say, tell

SHOWN = 10  # contacts


def fold(
    run: Run,
    file: Annotated[Path, typer.Argument(help="A sequence (FASTA), or it and its relatives, aligned to it (A3M).")],
    out: Annotated[Path | None, typer.Option(help="Write the backbone: a .cif or .pdb file.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw contacts and backbone: a .svg or .png file.")] = None,
    device: Device = "auto",
    weights: Weights = "float32",
    as_json: Json = False,
) -> None:
    """Fold a protein: which residues touch, and where its backbone runs.

    Example: heed fold runs/fold protein.a3m --out protein.cif
    """
    from heedful.data.lines import read_bytes
    from heedful.data.proteins.structures import KINDS, structure_library, structure_text
    from heedful.look.draw import to_bytes
    from heedful.tasks.fold.look import drawn
    from heedful.tasks.fold.use import StructurePredictor, folded_record
    from heedful.tasks.shared.served import load_in_bits
    from heedful.tasks.shared.terminal import PICTURES

    for path, kinds in ((out, KINDS), (picture, tuple(PICTURES))):
        if path is not None and path.suffix not in kinds:
            raise InputError(f"not {' or '.join(kinds)}", where=str(path), fix="give a name that ends so")
        if path is not None:
            storage.need_output(path)
    if out is not None:
        structure_library(str(out))
    text = read_bytes(file).decode(errors="replace")
    predictor = load_in_bits(StructurePredictor.load, run, device, weights)
    found = predictor.fold(text)
    lines = [f"{printable(found.chain.name)}\t{len(found.contacts)} residues\tconfidence {found.confidence.mean():.1f}"]
    lines += [f"{one}\t{other}\t{chance:.3f}" for one, other, chance in found.surest()[:SHOWN]]
    tell({**folded_record(text, found)}, "\n".join(lines), as_json=as_json)
    if out is not None:
        chain, sure = found.chain, found.confidence.tolist()
        written = structure_text(chain.name, chain.letters, found.backbone, sure, out.suffix)
        storage.write_output(out, written.encode())
        say(str(out))
    if picture is not None:
        storage.write_output(picture, to_bytes(drawn(found), PICTURES[picture.suffix]))
        say(str(picture))


COMMANDS = (Command("fold", fold),)
