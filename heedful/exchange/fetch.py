"""Downloads models of the Hugging Face Hub by name, once, into the cache that all its libraries share."""

import re
from pathlib import Path

from heedful.errors import InputError, MissingError, pip_install

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# The files of a model; no weights in other formats than safetensors.
WANTED = ("*.json", "*.safetensors", "*.model", "*.spm", "*.txt", "*.jinja")
UNWANTED = ("*/*", "*.index.json.bak", "flax_*", "tf_*", "onnx*", "consolidated*")


def is_name(text: str) -> bool:
    """Whether it may be a model's name on the Hub, ORG/NAME, and no local path."""
    return NAME.fullmatch(text) is not None and not text.startswith((".", "/", "~")) and ".." not in text


def fetched(name: str) -> Path:
    """The folder of a model, from the cache or downloaded from the Hub. `HF_HOME` is the cache's folder,
    `HF_HUB_OFFLINE=1` forbids downloads, `HF_TOKEN` is for private models. Raises MissingError or InputError."""
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError:
        what = f"{name} is no folder here, and huggingface_hub, which would fetch it, is not installed"
        raise MissingError(what, fix=f"{pip_install('huggingface_hub')}, or give the path of a folder") from None
    try:
        found = Path(snapshot_download(name, allow_patterns=[*WANTED], ignore_patterns=[*UNWANTED]))
    except errors.GatedRepoError:
        fix = f"accept its terms at https://huggingface.co/{name}, and set HF_TOKEN"
        raise InputError("its owner wants to know who reads it", where=name, fix=fix) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        what = "no such folder here, and no such model on the Hub"
        raise MissingError(what, where=name, fix="check the name; for one that is not public set HF_TOKEN") from None
    except errors.LocalEntryNotFoundError:
        what = "no such folder here, not in the cache, and the Hub cannot be asked (HF_HUB_OFFLINE, or no network)"
        raise MissingError(what, where=name, fix="fetch it where there is a network, or give a folder's path") from None
    except (errors.HfHubHTTPError, OSError) as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise MissingError(f"could not be fetched ({told[0][:200]})", where=name, fix="try again later") from None
    if not any(found.glob("*.safetensors")):
        fix = f"hf download {name} --local-dir DIR, and heed import DIR, which says how to turn a pickle into them"
        raise MissingError("it has no weights as safetensors", where=name, fix=fix)
    return found
