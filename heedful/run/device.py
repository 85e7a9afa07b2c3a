"""Which device a model is put on. Only this module decides it."""

import re

import torch

from heedful.errors import InputError

Device = str | torch.device  # as it is given from Python


def best_device() -> torch.device:
    """CUDA where there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def chosen_device(word: str, *, weights: str = "float32", engine: str | None = None, cpu_only: str = "") -> str:
    """The device that "auto", "cpu", "cuda" or "cuda:1" means here, as `load_model` takes it. "auto" is the best
    device, or the CPU where something is asked for that only a CPU can do: weights in fewer bits, another library, or
    what `cpu_only` names.

    Raises InputError for another word, for a device that is not here, and for such a request on another device.
    """
    cpu_only = f"--weights {weights}" if weights != "float32" else cpu_only
    cpu_only = cpu_only if engine in (None, "own", "auto") else f"--engine {engine}"
    if word == "auto":
        return "cpu" if cpu_only else str(best_device())
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,2})?", word):
        raise InputError(f"no device {word!r}", where="--device", fix=f"choose {', '.join(_here())}")
    if word == "cpu":
        return word
    if cpu_only:
        raise InputError(f"{cpu_only} is for a CPU", fix="leave it out, or take --device cpu")
    if not torch.cuda.is_available():
        raise InputError("no CUDA device is here", where="--device", fix="take --device cpu")
    count = torch.cuda.device_count()
    if int(word.partition(":")[2] or 0) >= count:
        what = f"no {word} is here, but cuda:0" + (f" to cuda:{count - 1}" if count > 1 else "")
        raise InputError(what, where="--device", fix="take --device cuda")
    return word


def known_device(device: object, *, weights: str = "float32", engine: str | None = None) -> str:
    """The name of a device that was given from Python: one that `chosen_device` takes, or any other that torch has
    here. Raises InputError."""
    name = str(device)
    if name in ("auto", "cpu") or name.startswith("cuda"):
        return chosen_device(name, weights=weights, engine=engine)
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError):  # torch does not know it, or was made without it
        raise InputError(f"no device {name!r} is here", where="device", fix=f"choose {', '.join(_here())}") from None
    return name


def _here() -> list[str]:
    return ["auto", "cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
