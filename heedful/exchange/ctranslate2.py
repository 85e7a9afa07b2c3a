"""CTranslate2 (Klein et al. 2020): a run as a folder for that library.

The folder has everything that the model needs: CTranslate2's files, the tokenizers and task.json; and heedful.json,
with our configuration and the hashes of the files that it was made from.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from heedful.core.config import unknown_key
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError, StorageError
from heedful.exchange import ct2
from heedful.models import config_of
from heedful.run.card import CARD, card_with
from heedful.run.folder import filled_then_renamed
from heedful.run.tokenizers import NUMBERS, SPECIAL_TOKENS, tokenizer_files
from heedful.store import files
from heedful.store.model import CONFIG, MODEL

OURS, TASK = "heedful.json", "task.json"
SMALL = 1 << 26  # bytes of weights, below which each batch gets one thread
TOLERANCE = 1e-4  # of log-probabilities, relative to the largest
SCORES = 1e-3  # nats, between two engines


class Convertible(NamedTuple):
    """A model, and what CTranslate2 must know about it. `end` is the end token of the target."""

    model: Any
    source: Tokenizer
    target: Tokenizer
    end: int
    about: Mapping[str, Any]

    def words(self) -> ct2.VocabularyStrings:
        """The strings of its tokens."""
        sides, tokenizers = ct2.sides(self.model.config), (self.source, self.target)
        named = [own.names(side[0].vocab_size) for own, side in zip(tokenizers, (sides[0], sides[-1]), strict=True)]
        target = self.target
        unknown = "<unk>" if target.unk is None else named[1][target.unk]
        return ct2.VocabularyStrings(
            source=named[0], target=named[1], bos=named[1][target.bos], eos=named[1][self.end], unk=unknown
        )


# The log-probabilities of the tokens of two random texts, by the folder and by the model, in nats.
Compare = Callable[[Path, Convertible], tuple[Tensor, Tensor]]


def export_verified(
    run: Path, made: Convertible, compare: Compare, out: Path, *, use: Callable[[], str], quantize: str | None = None
) -> float:
    """Exports a run into the folder `out`, with `use` in its model card; returns the largest difference of a
    log-probability, in nats. Raises InputError, MissingError or StorageError."""
    ct2.library()
    if quantize not in (None, *ct2.QUANTIZATIONS):
        raise unknown_key(quantize, list(ct2.QUANTIZATIONS), where="--weights")
    ct2.refuse(made.model.config, where=str(run))
    with filled_then_renamed(out) as growing:
        files.write_bytes(growing / CARD, card_with(run, use()))
        return write(growing, made, compare, run, quantize=quantize)


def unserved(kind: str, run: Path) -> InputError:
    """The error for a model of a kind that the library does not have."""
    what = f"CTranslate2 serves translators and language models, and this is a {kind}"
    return InputError(what, where=str(run), fix="use it here, without another engine")


def write(growing: Path, made: Convertible, compare: Compare, run: Path, *, quantize: str | None = None) -> float:
    """Fills a folder from a run, and compares it with the model: returns the largest difference of a log-probability,
    in nats. Raises StorageError where that is more than rounding."""
    ct2.save(growing, ct2.specification(made.model, made.words(), quantize=quantize))
    ours = {"model": config_of(made.model), "made_of": made_of(run), "quantize": quantize}
    for name, value in {**tokenizer_files(made.source, made.target), TASK: dict(made.about), OURS: ours}.items():
        data = value if isinstance(value, bytes) else files.json_bytes(value, where=growing / name)
        files.write_bytes(growing / name, data)
    return largest_difference(*compare(growing, made), rounded=quantize is not None, run=run)


def largest_difference(theirs: Tensor, ours: Tensor, *, rounded: bool, run: Path) -> float:
    """The largest difference of a log-probability by a run and by what was made of it. Raises StorageError where that
    is more than rounding, unless the weights were `rounded`."""
    difference, largest = float((ours - theirs).abs().max()), float(ours.abs().max())
    if not difference < (torch.inf if rounded else TOLERANCE * max(1.0, largest)):
        what = f"log-probabilities that differ by {difference:.1e} from the run's"
        raise StorageError(what, where=f"what was made of {run}", fix="check the disk and run the same command again")
    return difference


def made_of(run: Path) -> dict[str, str]:
    """The sha256 of all files that an export is made from."""
    names = {CONFIG, MODEL, TASK, SPECIAL_TOKENS, NUMBERS}
    paths = (path for path in sorted(run.iterdir()) if path.name in names or path.name.startswith("tokenizer"))
    return {path.name: files.size_and_sha256(path)[1] for path in paths}


def random_rows(size: int, lengths: Sequence[int], draw: torch.Generator) -> list[Ids]:
    return [torch.randint(size, (n,), generator=draw).tolist() for n in lengths]


def row_log_probabilities(logits: Sequence[Tensor], rows: Sequence[Ids]) -> Tensor:
    """The log-probabilities of each row's tokens, except the first, from the model's logits for that row."""
    both = zip(logits, rows, strict=True)
    return torch.cat([own[0].log_softmax(-1).gather(1, torch.tensor(row[1:])[:, None])[:, 0] for own, row in both])


def as_words(rows: Sequence[Ids], names: Sequence[str]) -> list[list[str]]:
    return [[names[index] for index in row] for row in rows]


def library_model(folder: Path, kind: Literal["Translator", "Generator"]) -> Any:
    """The library's own model in a folder, with as many threads as torch has. For a small model each batch gets one
    thread: several would mostly wait for each other. Raises StorageError."""
    count = torch.get_num_threads()
    size = sum(path.stat().st_size for path in folder.glob("model.bin"))
    within, beside = (1, count) if size < SMALL else (count, 1)
    try:
        return getattr(ct2.library(), kind)(str(folder), inter_threads=beside, intra_threads=within)
    except (RuntimeError, ValueError) as error:
        what = f"CTranslate2 cannot read it: {' '.join(str(error).split())}"
        raise StorageError(what, where=str(folder), fix="remove this folder, and make it again") from error
