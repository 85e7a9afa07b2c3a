"""Imports models of the Hugging Face Hub as runs, and exports runs as folders for other libraries."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor

from heedful.apply.lora import merged
from heedful.core.config import to_json, unknown_key
from heedful.errors import InputError, StorageError
from heedful.exchange import gguf
from heedful.exchange.ctranslate2 import unserved
from heedful.exchange.families import FAMILIES, family_for, family_of, none_like
from heedful.exchange.fetch import fetched, is_name
from heedful.exchange.hf import peft
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.folder import CONFIG, WEIGHTS, packed, read_object, read_weights
from heedful.exchange.hf.peft import adapters_to_peft, config_to_peft
from heedful.exchange.hf.rules import to_ours, to_theirs
from heedful.exchange.hub import read_chat, refuse_harmful_chat, search_said, write_chat
from heedful.models import kind_of_config, outline
from heedful.models.image_to_text import ImageToTextConfig
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.models.speech import CTCConfig, SpeechToTextConfig
from heedful.run.card import CARD, card_with
from heedful.run.folder import filled_then_renamed, need_empty, parameters, read_adapters
from heedful.run.task import Hub, Served
from heedful.store import files
from heedful.store.model import read_model, save_model
from heedful.tasks import TASKS
from heedful.tasks.load import row_of_run
from heedful.tasks.recipes import saved_recipe

TARGETS = ("hf", "peft", "ctranslate2", "onnx", "gguf")
EMBEDDINGS = "embed.tokens.weight"  # of a language model: trained completely if it has new tokens

USE = """
## By transformers

    pip install transformers

```python
import transformers

model = transformers.{model}.from_pretrained(".")  # this folder
{reader}```
"""


@dataclass(frozen=True)
class Imported:
    """The result of an import. `vocab_size` is None for a model that reads no text; `notes` say what a run does not
    keep."""

    family: str
    task: str
    parameters: int
    vocab_size: int | None
    out: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exported:
    """The result of an export, its files, and how to load it. `difference`: the largest difference of a log-probability
    (nats) between the run and the folder; None where the weights are the same bits. `notes` say what the folder does
    not keep."""

    family: str
    to: str
    out: str
    files: tuple[str, ...]
    loads: str
    difference: float | None = None
    notes: tuple[str, ...] = ()


def import_model(folder: str | Path, out: str | Path) -> Imported:
    """Makes the run `out` from a model's folder in the format of the Hub: config.json, safetensors, and the files of
    its tokenizer or image processor; or from a file of llama.cpp (.gguf). A name of the Hub (ORG/NAME) that is no local
    folder is downloaded first.

    Everything in the files is accounted for: an unknown key or tensor is an error that names it. Raises InputError,
    MissingError or StorageError; `out` is then as it was.
    """
    folder, out = Path(folder), files.with_proper_name(Path(out))
    need_empty(out)
    if not folder.exists() and is_name(str(folder)):
        folder = fetched(str(folder))
    if folder.suffix == gguf.SUFFIX and not folder.is_dir():
        family, config, ours, small = gguf.read_model(folder)
        with TemporaryDirectory() as temporary:
            for name, value in small.items():
                data = value if isinstance(value, bytes) else files.json_bytes(value, where=folder)
                files.write_bytes(Path(temporary) / name, data)
            return _kept(Path(temporary), {}, family, config, ours, out)
    files.need_folder(folder, fix="check the path; or give a name of the Hub, ORG/NAME (openai-community/gpt2)")
    where = str(folder / CONFIG)
    if (folder / peft.CONFIG).is_file() and not (folder / CONFIG).is_file():
        fix = "add them to it with PEFT, save what merge_and_unload gives with its tokenizer, and import that folder"
        raise InputError("adapters alone, without the model that they change", where=str(folder), fix=fix)
    theirs = read_object(folder / CONFIG)
    if "model_type" not in theirs:
        raise InputError("no model_type: not a model of the Hub", where=where, fix="give the folder of such a model")
    kind = theirs["model_type"]
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise unknown_key(str(kind)[:80], [*FAMILIES], where=f"{where}: model_type")
    found = read_weights(folder)
    family = family_of(theirs, found)
    tensors = family.whole(found)
    config = family.config_from_hf(theirs, tensors.keys(), where=where)
    model = outline(config, most=1000 * len(tensors) + 1000, where=where)  # one tensor may be all experts of a layer
    ours = to_ours(family.rules(config), tensors, dict(model.named_parameters()), where=str(folder))
    return _kept(folder, {**family.tokens, **theirs}, family, config, ours, out)


def _kept(
    folder: Path, theirs: dict[str, Any], family: Family[Any], config: Any, ours: dict[str, Tensor], out: Path
) -> Imported:
    """Makes the run `out` of a model and the files beside it in a folder."""
    chat = read_chat(folder)
    refuse_harmful_chat(chat)
    beside = _hub_of(folder, config, family).read(folder, theirs, config) | chat
    if family.alias:
        beside["task.json"]["family"] = family.alias
    with filled_then_renamed(out) as growing:
        save_model(growing, {"kind": kind_of_config(config), "model": to_json(config)}, ours, beside)
    size = sum(tensor.numel() for tensor in ours.values())
    about = beside["task.json"]
    file, told = search_said(folder, theirs)
    told = {} if "decode" in about else told  # `decode` has the settings of the search already
    notes = [f"{key}={value}" for key, value in told.items()]
    notes = [f"{file} says {' '.join(notes)}: a run does not keep that, say it when you ask"] if notes else []
    vocab_size = _vocab_size(config) if any(name.startswith("tokenizer") for name in beside) else None
    return Imported(family.name, about["task"], size, vocab_size, str(out), tuple(notes))


def export_model(run: str | Path, out: str | Path, *, to: str = "hf", quantize: str | None = None) -> Exported:
    """Exports a run into the folder `out`, for other libraries, and verifies it before `out` appears.

    `quantize`: the type of the weights for CTranslate2 or GGUF; None: float32. Raises InputError for a model that the
    target cannot hold, which names the obstacle; MissingError or StorageError; `out` is then as it was.
    """
    run, out = Path(run), files.with_proper_name(Path(out))
    if to not in TARGETS:
        raise unknown_key(to, list(TARGETS), where="--to")
    if to in ("hf", "peft") and quantize is not None:
        raise InputError(f"no {quantize} weights on the Hub", where="--weights", fix="--to ctranslate2, or gguf")
    need_empty(out)
    row = row_of_run(run)
    served = row.served().load(run)
    if to in ("hf", "peft", "gguf"):
        if row.hub is None:
            raise InputError(row.hub_lacks or none_like(served), where=str(run), fix="use it here")
        if to == "gguf":
            return _to_gguf(run, out, served, row.hub(), row.hub_head, quantize or "float32")
        moved = _to_hub if to == "hf" else _to_peft
        return moved(run, out, served, row.hub(), row.hub_head)
    if to not in row.engines and to == "onnx":
        what = f"translators are exported to ONNX, and this is a {type(served).__name__}"
        raise InputError(what, where=str(run), fix="use it here")
    if to not in row.engines:
        raise unserved(type(served).__name__, run)
    engine = row.engines[to]()
    difference = engine.export(run, served, out, quantize=quantize)
    names = tuple(sorted(path.name for path in out.iterdir()))
    told = f"ctranslate2.{engine.kind}({str(out)!r}), given texts as {out / CARD} says"
    loads = told if to == "ctranslate2" else f"python {out / 'translate.py'}"
    return Exported(engine.library, to, str(out), names, loads, difference, tuple(engine.lost(served)))


def _hub_of(folder: Path, config: object, family: Family[Any]) -> Hub:
    """The `Hub` for models with this configuration and this head: that of the task which the folder belongs to, or else
    of the first task."""
    kind, heads = kind_of_config(config), ("", family.head)
    rows = (row for row in TASKS.values() if kind in row.hub_kind.split() and row.hub_head in heads)
    hubs = [row.hub() for row in rows if row.hub is not None]
    return next((hub for hub in hubs if hub.told_by is not None and hub.told_by(folder)), hubs[0])


def _to_hub(run: Path, out: Path, served: Served, hub: Hub, head: str) -> Exported:
    family, recast, theirs, written = family_for(run, served, hub, head)
    config, own = recast.config, recast.tensors(parameters(served.model))
    tensors = to_theirs(family.rules(config), own, where=str(run)) | family.made(config)
    with filled_then_renamed(out) as growing:
        for name, value in {**write_chat(run, written.files), CONFIG: theirs}.items():
            data = value if isinstance(value, bytes) else files.json_bytes(value, where=out / name)
            files.write_bytes(growing / name, data)
        files.write_bytes(growing / WEIGHTS, packed(tensors))
        _verify(growing, family, theirs, own)
        names = {path.name for path in growing.iterdir()}
        sees, reads_text = (name in names for name in ("preprocessor_config.json", "tokenizer.json"))
        reads = "AutoProcessor" if sees and reads_text else "AutoImageProcessor" if sees else "AutoTokenizer"
        reads = reads if sees or reads_text else ""  # numbers alone
        if isinstance(config, SpeechToTextConfig):
            reads = "AutoFeatureExtractor"  # and AutoTokenizer: their processor takes no tokenizer but Whisper's
        elif isinstance(config, CTCConfig):
            reads = "AutoProcessor"
        if (run / CARD).is_file():
            reader = f'reader = transformers.{reads}.from_pretrained(".")\n' if reads else ""
            use = USE.format(model=family.loads(config), reader=reader)
            files.write_bytes(growing / CARD, card_with(run, use, written.notes))
            names.add(CARD)
    loads = f"transformers.{family.loads(config)}.from_pretrained({str(out)!r})"
    loads += f", and {reads} likewise" if reads else ""
    return Exported(family.name, "hf", str(out), tuple(sorted(names)), loads, notes=tuple(written.notes))


def _to_peft(run: Path, out: Path, served: Served, hub: Hub, head: str) -> Exported:
    """Exports only the adapters; they fit the exported form of the model that the training started from."""
    learnt, config = read_adapters(run)
    base = Path(saved_recipe(run).start_from)
    own = parameters(served.model)
    _, begun = read_model(base)
    heads = [name for name in learnt if name in own and EMBEDDINGS not in learnt]
    if heads:
        what = f"it has a head of its own ({heads[0]}), without which its adapters are no model"
        raise InputError(what, where=str(run), fix="heed export --to hf, which has the adapters added to the weights")
    whole = merged({**{name: begun[name] for name in own if name in begun}, **learnt}, config)
    wrong = [name for name in {**own, **begun} if not (name in whole and name in own and whole[name].equal(own[name]))]
    if wrong:
        what = f"{wrong[0]} is not that of {base} and the adapters: more was learnt, or one of them has changed"
        raise InputError(what, where=str(run), fix="heed export --to hf, which has the adapters added to the weights")
    family, recast, *_ = family_for(run, served, hub, head)
    tensors = recast.tensors({**own, **learnt})
    rules = family.rules(recast.config)
    found = adapters_to_peft({name: tensors[name] for name in learnt}, rules, family=family.name)
    told = config_to_peft(config, found, base=base.resolve().name, kind=family.loads(recast.config))
    with filled_then_renamed(out) as growing:
        files.write_bytes(growing / peft.CONFIG, files.json_bytes(told, where=out / peft.CONFIG))
        files.write_bytes(growing / peft.WEIGHTS, packed(found.tensors))
    loads = f"peft.PeftModel.from_pretrained(model, {str(out)!r}), model being that of heed export {base} --to hf"
    if found.whole:
        loads += f" after model.resize_token_embeddings({len(own[EMBEDDINGS])})"
    return Exported(family.name, "peft", str(out), (peft.CONFIG, peft.WEIGHTS), loads)


def _to_gguf(run: Path, out: Path, served: Served, hub: Hub, head: str, weights: str) -> Exported:
    with filled_then_renamed(out) as growing:
        made = gguf.write_run(growing, run, served, hub, head, weights)
        if (run / CARD).is_file():
            files.write_bytes(growing / CARD, card_with(run, gguf.USE, made.notes))
        names = tuple(sorted(each.name for each in growing.iterdir()))
    loads = f"llama-cli -m {out / gguf.FILE}, or any program that reads GGUF"
    return Exported(made.architecture, "gguf", str(out), names, loads, made.difference, made.notes)


def _verify(folder: Path, family: Family[Any], theirs: dict[str, Any], own: Mapping[str, Tensor]) -> None:
    """Raises StorageError where an import of the folder would not give the model that was written."""
    tensors = family.whole(read_weights(folder))
    config = family.config_from_hf(read_object(folder / CONFIG), tensors.keys(), where=str(folder / CONFIG))
    back = to_ours(family.rules(config), tensors, own, where=str(folder))
    wrong = [name for name, tensor in own.items() if not back[name].equal(tensor)]
    if wrong or read_object(folder / CONFIG) != theirs:
        what = f"{wrong[0] if wrong else CONFIG} reads back as something else"
        raise StorageError(what, where=str(folder), fix="check the disk and run the same command again")


def _vocab_size(config: object) -> int | None:
    """The vocabulary size; None for a model that reads no text."""
    if isinstance(config, CTCConfig):
        return config.vocab_size
    if isinstance(config, Seq2SeqConfig | SpeechToTextConfig | ImageToTextConfig):
        return config.target.vocab_size
    embed = getattr(config, "embed", None)
    return None if embed is None else embed.vocab_size
