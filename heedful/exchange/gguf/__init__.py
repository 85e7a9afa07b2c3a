"""Models in GGUF, the file format of llama.cpp (and of Ollama and LM Studio): language models, there and back.

A file is read as the folder of the Hub that it could have been made from: its metadata become a config.json and the
files of a tokenizer, and its tensors have the names of the family's table. Exporting is the inverse.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heedful.core.config import unknown_key
from heedful.core.init import uninitialised
from heedful.errors import InputError
from heedful.exchange.ctranslate2 import largest_difference, random_rows, row_log_probabilities
from heedful.exchange.families import FAMILIES, family_for
from heedful.exchange.gguf import file, tokens
from heedful.exchange.gguf.architectures import (
    ARCHITECTURES,
    EMBEDDING,
    OTHER,
    OUTPUT,
    TRAINING,
    config_in,
    extra_tensors,
    metadata_of,
    rules_of,
)
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import nothing_lost
from heedful.exchange.hf.rules import to_ours, to_theirs
from heedful.exchange.hub import Files, write_chat
from heedful.models import make_model, outline
from heedful.models.lm import LMConfig
from heedful.run.folder import load_weights, parameters
from heedful.run.task import Hub, Served

SUFFIX, FILE = ".gguf", "model.gguf"
BLOCK = 32
# How the library names a type of weights, and that of an embedding or an output; and llama.cpp's number of such files.
WEIGHTS = {
    "float32": ("F32", "F32", 0),
    "f16": ("F16", "F16", 1),
    "int8": ("Q8_0", "Q8_0", 7),
    "int4": ("Q4_0", "Q8_0", 2),
}
WHOLE = ("position_embd", "ffn_gate_inp")  # in float32 always, as vectors are
APPROXIMATED = "llama.cpp computes GELU by its approximation: probabilities differ a little"

USE = """
## By llama.cpp

    llama-cli -m model.gguf

By Ollama, with `FROM ./model.gguf` in a file named Modelfile:

    ollama create NAME -f Modelfile
"""


def read_model(path: Path) -> tuple[Family[LMConfig], LMConfig, dict[str, Tensor], Files]:
    """The family, the configuration and the weights of a file, and the files of the Hub beside them. Raises
    MissingError; InputError for what is not read, by its name; StorageError for what is not sound."""
    where = str(path)
    metadata, stored = file.read(path)
    for key, value in (("general.type", "model"), ("split.count", 1)):
        if metadata.get(key, value) != value:
            fix = "take a file with a whole model (llama-gguf-split --merge makes one of several)"
            raise InputError(f"{key} is {metadata[key]!r:.80}", where=where, fix=fix)
    row, theirs = config_in(metadata, stored, where=where)
    beside = tokens.files_in(metadata, where=where)
    family = FAMILIES[theirs["model_type"]]
    config = family.config_from_hf(theirs, where=where)
    model = outline(config, most=1000 * len(stored) + 1000, where=where)
    wanted, rules = dict(model.named_parameters()), rules_of(row, family, config)
    shapes = {name: tensor.shape for name, tensor in to_theirs(rules, wanted, where=where).items()}
    for name, packed in stored.items():
        if name in shapes and packed.shape != shapes[name]:
            what = f"its tensor {name!r} has shape {packed.shape}, and should have {tuple(shapes[name])}"
            raise InputError(what, where=where, fix=OTHER)
    tensors = to_ours(rules, {name: packed.unpacked() for name, packed in stored.items()}, wanted, where=where)
    return family, config, tensors, beside


def write_model(
    path: Path,
    family: Family[LMConfig],
    config: LMConfig,
    ours: Mapping[str, Tensor],
    theirs: dict[str, Any],
    beside: Files,
    weights: str,
    *,
    name: str,
) -> list[str]:
    """Writes a model of this name, whose config.json would be `theirs` and the files beside it `beside`. Returns lines
    about what a file does not keep. Raises InputError for what llama.cpp cannot hold, or StorageError."""
    row, notes = ARCHITECTURES[theirs["model_type"]], list[str]()
    if theirs.get("activation_function") == "gelu":
        theirs, notes = {**theirs, "activation_function": "gelu_new"}, [APPROXIMATED]
    tensors = to_theirs(rules_of(row, family, config), ours) | extra_tensors(row, config)
    usual, ends, number = WEIGHTS[weights]

    def kind_of(name: str, tensor: Tensor) -> str:
        if tensor.dim() < 2 or any(part in name for part in WHOLE):
            return "F32"
        kind = ends if name in (EMBEDDING, OUTPUT) else usual
        return "F16" if kind.startswith("Q") and tensor.shape[-1] % BLOCK else kind

    metadata = metadata_of(row, theirs)
    spelled = tokens.metadata_of(beside, size=config.embed.vocab_size)
    notes += tokens.lost(beside, spelled)
    about: dict[str, Any] = {"general.type": "model", "general.name": name, "general.file_type": number}
    about |= {"general.quantization_version": 2} if usual.startswith("Q") else {}
    file.write(path, row.name, {**about, **metadata, **spelled}, tensors, kind_of)
    known, stored = file.read(path)
    _, back = config_in(known, stored, where=str(path))
    again = FAMILIES[back["model_type"]].config_from_hf(back | {key: theirs[key] for key in TRAINING if key in theirs})
    nothing_lost({}, family.config_from_hf(theirs), again, f"{row.name} in llama.cpp")
    return notes


class WrittenFile(NamedTuple):
    """What became of a run: llama.cpp's name of the architecture, the largest difference of a log-probability (nats),
    and what the file does not keep."""

    architecture: str
    difference: float
    notes: tuple[str, ...]


def write_run(folder: Path, run: Path, served: Served, hub: Hub, head: str, weights: str) -> WrittenFile:
    """Writes FILE into a folder, and compares it with the model. Raises InputError for a model that llama.cpp cannot
    hold, or StorageError."""
    if weights not in WEIGHTS:
        raise unknown_key(weights, [*WEIGHTS], where="--weights", what="type")
    family, recast, theirs, written = family_for(run, served, hub, head)
    row = ARCHITECTURES.get(theirs["model_type"])
    if row is None:
        known = ", ".join(FAMILIES[kind].name for kind in ARCHITECTURES)
        raise InputError(f"{family.name} is not exported to GGUF, but {known}", where=str(run), fix="use it here")
    tensors, beside = recast.tensors(parameters(served.model)), write_chat(run, written.files)
    path = folder / FILE
    notes = write_model(path, family, recast.config, tensors, theirs, beside, weights, name=run.resolve().name)
    rounded = weights != "float32" or APPROXIMATED in notes
    difference = largest_difference(*_log_probabilities(path, served.model), rounded=rounded, run=run)
    return WrittenFile(row.name, difference, (*written.notes, *notes))


@torch.inference_mode()
def _log_probabilities(path: Path, model: Any) -> tuple[Tensor, Tensor]:
    """Those of the tokens of two random texts, by a model that is read from a file and by this one, in nats. Raises as
    `read_model`."""
    _, config, tensors, _ = read_model(path)
    with uninitialised():
        other = make_model(config).eval()
    load_weights(other, tensors, where=str(path))
    lengths = (min(8, config.embed.context_length), 4)
    rows = random_rows(config.embed.vocab_size, lengths, torch.Generator().manual_seed(0))
    first, second = (
        row_log_probabilities([each(torch.tensor([row])) for row in rows], rows) for each in (other, model)
    )
    return first, second
