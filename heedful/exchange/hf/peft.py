"""Low-rank adapters as the library PEFT keeps them: adapter_config.json, and the thin matrices, and what was learnt as
a whole beside them, under the names that these have in the family of the model that was tuned."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from torch import Tensor

from heedful.apply.lora import DOWN, UP, LoRAConfig
from heedful.errors import InputError
from heedful.exchange.hf.rules import Rule, layer_of

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BASE = "base_model.model."  # before the names of all tensors
HEAD = "lm_head"  # the output matrix of all causal language models there
KINDS = {"AutoModelForCausalLM": "CAUSAL_LM", "AutoModelForSeq2SeqLM": "SEQ_2_SEQ_LM"}


class AdapterTensors(NamedTuple):
    """What PEFT keeps of a training: the tensors under their names, the names of the maps that have an adapter, and of
    the modules that are kept as a whole."""

    tensors: dict[str, Tensor]
    targets: list[str]
    whole: list[str]
    tied: bool  # the output matrix is the table of vectors, and learnt


def adapters_to_peft(adapters: Mapping[str, Tensor], rules: Iterable[Rule], *, family: str) -> AdapterTensors:
    """A table of vectors that is the output matrix too is written twice, as PEFT wants it. Raises InputError where the
    family keeps a map in another form than a matrix of its own."""
    rules = [rule for rule in rules if rule.ours is not None and rule.written]
    found: dict[str, Tensor] = {}
    targets: set[str] = set()
    whole: set[str] = set()

    def theirs(name: str) -> str:
        matches = [(rule, layer) for rule in rules if (layer := layer_of(str(rule.ours), name)) is not None]
        rule, layer = matches[0]
        if rule.how != "copy" or rule.part[1] != 1:
            what = f"{family} keeps {name.split('.')[-2]} in one matrix with others, or turned"
            raise InputError(what, fix="heed export --to hf, which has the adapters added to the weights")
        return rule.theirs.replace("{i}", layer)

    for name, tensor in sorted(adapters.items()):
        path, kind = name.rsplit(".", 1)
        own = theirs(f"{path}.weight" if f".{kind}" in (DOWN, UP) else name)
        module, _, part = own.rpartition(".")
        within = {DOWN: "lora_A.weight", UP: "lora_B.weight"}.get(f".{kind}")
        (whole if within is None else targets).add(module.rsplit(".", 1)[-1])
        found[f"{BASE}{module}.{within or part}"] = tensor.contiguous()
    tied = bool(whole) and HEAD not in whole
    if tied:
        found[f"{BASE}{HEAD}.weight"] = adapters["embed.tokens.weight"].clone()
    return AdapterTensors(found, sorted(targets), sorted(whole), tied)


def config_to_peft(config: LoRAConfig, learnt: AdapterTensors, *, base: str, kind: str) -> dict[str, Any]:
    """adapter_config.json. `kind` is the class of transformers that loads the base."""
    kept = {"modules_to_save": learnt.whole, "ensure_weight_tying": learnt.tied} if learnt.whole else {}
    return {
        "peft_type": "LORA",
        "task_type": KINDS.get(kind),
        "base_model_name_or_path": base,
        "r": config.rank,
        "lora_alpha": config.alpha,
        "lora_dropout": 0.0,
        "target_modules": learnt.targets,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        **kept,
    }
