"""What a run records about itself: the machine that it ran on, and a model card that is made from facts."""

import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

import torch

from heedful.data.parts import Parts
from heedful.errors import HeedError
from heedful.run.recipe import read_yaml
from heedful.store import files

Scores = Mapping[str, Mapping[str, float | str]]  # of each test set, by name
LONGEST = 160  # characters of a text in a table
CURVE = "![loss and scores](plots/training.png)"
BESIDE = (
    " `recipe.yaml` is the whole recipe, `environment.json` the machine, `data.json` the data, `metrics.jsonl` every "
    "measurement."
)
CARD = "README.md"
QUOTED = re.compile(r"(?<=`)/[^`\n]*/([^`\n/]+)(?=`)")  # an absolute path as code
ABSOLUTE = re.compile(r"(?<![\w/:.<])/(?:[^\s/`'\"|:<>]+/)+(?=[^\s/])")  # the folders of one without blanks
LIBRARIES = ("heedful", "torch", "tokenizers", "safetensors", "sacrebleu", "numpy")


def environment(device: torch.device, precision: str) -> dict[str, Any]:
    """The machine, the libraries, and whatever else a run's results depend on."""
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "precision": precision,
        "versions": {name: _version(name) for name in LIBRARIES},
    }


_version = cache(metadata.version)  # reads and parses a file each time


@dataclass(frozen=True, kw_only=True)
class CardText:
    """A task's parts of a model card."""

    what: str  # what the model does
    learnt_on: str  # "1,000 pairs, from `x.tsv`"
    after: str = ""  # follows the sentence about the training
    table: Sequence[str]  # of scores, in Markdown
    how: str  # how the scores were made
    kept: str  # which step was kept
    use: Sequence[str]  # commands
    limits: str


def data_facts(data: Parts[Any], unit: str) -> dict[str, Any]:
    """For data.json: the files, whether they were trained on, and how many examples (named `unit`) each part has."""
    counts = {"train": len(data.train), "valid": len(data.valid)} | {name: len(own) for name, own in data.tests.items()}
    plain = (path for path in data.files if path.is_file())
    read: list[dict[str, object]] = [{"path": str(path), "sha256": files.size_and_sha256(path)[1]} for path in plain]
    if data.apart is not None:
        apart = {*map(str, data.apart)}
        read = [one | {"learnt": one["path"] not in apart} for one in read]
    return {"files": read, unit: counts}


def fingerprint(texts: Iterable[str], *, end: str = "\0") -> str:
    """A hexadecimal hash of all texts in their order, each followed by `end`."""
    digest = sha256()
    for text in texts:
        digest.update((text + end).encode())
    return digest.hexdigest()


def score_table(unit: str, scores: Scores) -> list[str]:
    """A Markdown table with a row for each test set; a missing score is a dash. `unit` heads the first column."""
    names = list(dict.fromkeys(name for each in scores.values() for name in each))
    header = f"| {unit} | {' | '.join(name.replace('_', ' ') for name in names)} |"
    rows = [
        f"| {test} | {' | '.join(_number(each[name]) if name in each else '-' for name in names)} |"
        for test, each in scores.items()
    ]
    return [header, "|---|" + "---|" * len(names), *rows]


def _number(score: int | float | str) -> str:
    return f"{score:,}" if isinstance(score, int) else f"{score:.4f}"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table of texts: each on one line, shortened if it is long, with Markdown escaped."""
    lines = [[_cell(text) for text in row] for row in (header, *rows)]
    return [f"| {' | '.join(row)} |" for row in (lines[0], ["---"] * len(header), *lines[1:])]


def _cell(text: str) -> str:
    plain = " ".join(text.split())
    cut = plain if len(plain) <= LONGEST else f"{plain[:LONGEST]} ..."
    return re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", cut)


def model_card(folder: Path, told: CardText, *, start: str, minutes: float, notes: Sequence[str]) -> str:
    """README.md of a run's folder, from the task's text. `start`: what the training began with, in words."""
    lines = [
        f"# {folder.name}",
        "",
        f"{told.what} Trained {start} by heedful on {told.learnt_on}.{told.after}",
        "",
        *told.table,
        "",
        told.how,
        "",
        f"The weights are those of {told.kept}; training took {minutes:.1f} minutes.{BESIDE}",
        "",
        CURVE,
        "",
        "## Use",
        "",
        "```",
        *told.use,
        "```",
        "",
        "## Limits",
        "",
        told.limits,
    ]
    if notes:
        lines += ["", "## Notes on the data", "", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"


def card_with(run: Path, use: str, notes: Iterable[str] = ()) -> bytes:
    """The run's card for an exported folder: with the run's present name, without the files that only the run's folder
    has, and with `use` and the `notes` on the export."""
    told = files.read_bytes(run / CARD, limit=files.JSON_LIMIT) if (run / CARD).is_file() else b"# A model"
    text = _renamed(told.decode(errors="surrogateescape"), run)
    for absent in (f"{CURVE}\n\n", BESIDE):
        text = text.replace(absent, "")
    whole = text.rstrip() + "\n" + use + "".join(f"\n{note[0].upper()}{note[1:]}.\n" for note in notes)
    return names_alone(whole, run).encode(errors="surrogateescape")


def _renamed(card: str, run: Path) -> str:
    """The card of a run that was moved since, of whose old name its title and its commands are."""
    title = card.partition("\n")[0].removeprefix("# ")
    commands = re.compile(rf"^(heed \S+) (?:.*?/)?{re.escape(title)}(?=\s|$)", re.MULTILINE)
    if title == run.resolve().name or not commands.search(card):
        return card
    return commands.sub(lambda found: f"{found[1]} {run}", card.replace(title, run.resolve().name, 1))


def names_alone(text: str, run: Path) -> str:
    """A text about a run, such as its card or recipe, with the names of files and folders in place of their paths,
    which may name people and clients. For what leaves this machine."""
    for folder in sorted(_folders(run), key=len, reverse=True):
        text = re.sub(rf"(?<![\w/.-]){_written(folder)}/+", "", text)
    return ABSOLUTE.sub("", QUOTED.sub(r"\1", text))


def _written(folder: str) -> str:
    """A pattern of a folder's path, also where YAML breaks its line at a blank or doubles its quotes."""
    return re.escape(folder).replace("\\ ", r"\s+").replace("'", "'{1,2}")


def _folders(run: Path) -> set[str]:
    """The folders above all that a run names: its data, the run that it began with, and itself."""
    named = [str(run), str(run.resolve()), str(Path.home() / "any")]
    with suppress(HeedError, OSError, KeyError, TypeError):
        named += [one["path"] for one in files.read_json(run / "data.json")["files"]]
    with suppress(HeedError, OSError):
        recipe = files.read_bytes(run / "recipe.yaml", limit=files.JSON_LIMIT).decode(errors="replace")
        named += filter(re.compile("[/~.]").match, _texts(read_yaml(recipe, where=str(run))))
    return {str(folder) for path in named for folder in PurePath(path).parents} - {"/", ".", "..", "~"}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts, value))
