"""A few facts about a run or a preset. No model is made."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heedful.core.config import unknown_key
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.headers import SIDES, meaning
from heedful.errors import InputError
from heedful.models import class_of_config
from heedful.models.counts import PARAMETERS, VOCABULARY
from heedful.models.presets import TRANSLATORS
from heedful.run.folder import read_saved
from heedful.store import files
from heedful.store.files import is_folder, need_folder, read_json
from heedful.store.lock import run_lock
from heedful.store.model import replace_small
from heedful.tasks import TASKS, trained
from heedful.tasks.load import row_of_run, row_saved_as

FEWEST_ZEROS = 0.01  # of the parameters: fewer were not pruned, as a bias that began as zeros


def presets() -> dict[str, Any]:
    """The rows of all presets, each under the first task that has it."""
    found: dict[str, Any] = {}
    for row in trained().values():
        assert row.recipe is not None
        own: Mapping[str, Any] = row.recipe().PRESETS()
        found |= {name: size for name, size in own.items() if name not in found}
    return found


def describe(name: str) -> dict[str, Any]:
    """Facts about a run's folder or a preset."""
    known = presets()
    if name in known:
        facts = {"preset": name, "parameters": PARAMETERS[name]}
        return facts | ({"vocabulary": VOCABULARY} if name in TRANSLATORS else {}) | asdict(known[name])
    folder = Path(name)
    if len(folder.parts) > 1:
        need_folder(folder)
    if not is_folder(folder):
        raise unknown_key(name, [*known], where="heed info: neither a folder nor a preset")
    return describe_run(folder)


def name_languages(folder: Path, settings: Sequence[str]) -> None:
    """Gives a run of one direction other names of its languages: "source=en", "target=de" or both. Raises InputError,
    MissingError or StorageError; no file is changed then."""
    row = row_of_run(folder)
    about = read_json(folder / "task.json")
    known = row.languages()(about) if row.languages else None
    if row.renamed is None or known is None:
        raise InputError("not a translator, which has languages", where=str(folder), fix="leave out --set")
    if row.directions and row.directions()(about):
        what = "a model of several languages: their names are those of its tokens"
        raise InputError(what, where=str(folder), fix="leave out --set")
    names = dict(zip((SOURCE, TARGET), known, strict=True))
    for setting in settings:
        side, _, name = (part.strip() for part in setting.partition("="))
        if side not in names:
            raise unknown_key(side, [*names], where="--set", what="side")
        if (meaning(name) or meaning(name.lower())) in (None, *SIDES):
            fix = f"a code or an English name: --set {side}=de, {side}=pt-BR, {side}=German"
            raise InputError(f"{name!r} is no language", where=f"--set {side}", fix=fix)
        names[side] = name
    if names[SOURCE].lower() == names[TARGET].lower():
        raise InputError(f"source and target are both {names[SOURCE]!r}", where="--set", fix="name two")
    with run_lock(folder):
        for file, data in row.renamed()(folder, names[SOURCE], names[TARGET]).items():
            if file == "task.json":
                replace_small(folder, file, data)
            else:
                files.write_bytes(folder / file, data)


def describe_run(folder: Path) -> dict[str, Any]:
    """Facts about a run's folder. Raises MissingError, InputError or StorageError."""
    row_of_run(folder)  # raises where it is no run
    saved = read_saved(folder)
    row = row_saved_as(saved.about.get("task"), saved.about, where=folder)
    facts = {"model": class_of_config(saved.config).__name__, "parameters": saved.parameters}
    if saved.zeros >= FEWEST_ZEROS * saved.parameters:
        facts["zeros"] = f"{saved.zeros / saved.parameters:.1%} of the parameters"
    facts |= row.facts()(saved)
    if saved.tokenizers and saved.tokenizers[0].composes:
        facts["unicode"] = "NFC"
    if (folder / "scores.json").is_file():
        scores = read_json(folder / "scores.json")
        facts |= {"steps": scores["steps"], "minutes": scores["minutes"]}
    return facts | headlines(folder)


def headlines(folder: Path) -> dict[str, float]:
    """The main scores of a run, by test set; none before its training has ended."""
    if not (folder / "scores.json").is_file():
        return {}
    told = dict.fromkeys(key for each in TASKS.values() for key in each.headline)
    tests = read_json(folder / "scores.json")["scores"]
    return {f"{key} on {test}": own[key] for test, own in tests.items() for key in told if key in own}
