"""Low-rank adapters as the library PEFT keeps them: adapter_config.json, and the thin matrices under the names that
their maps have in the family of the model that was tuned."""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from heedful.apply.lora import DOWN, UP, LoRAConfig
from heedful.errors import InputError
from heedful.exchange.hf.rules import Rule, layer_of

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BASE = "base_model.model."  # before the names of all tensors
KINDS = {"AutoModelForCausalLM": "CAUSAL_LM", "AutoModelForSeq2SeqLM": "SEQ_2_SEQ_LM"}


def adapters_to_peft(
    adapters: Mapping[str, Tensor], rules: Iterable[Rule], *, family: str
) -> tuple[dict[str, Tensor], list[str]]:
    """The tensors under their names, and the names of the adapted maps. Raises InputError where the family keeps a map
    in another form than a matrix of its own."""
    rules = [rule for rule in rules if rule.ours is not None and rule.written]
    found: dict[str, Tensor] = {}
    targets: set[str] = set()
    for name in (name.removesuffix(DOWN) for name in adapters if name.endswith(DOWN)):
        matches = [(rule, layer) for rule in rules if (layer := layer_of(str(rule.ours), f"{name}.weight")) is not None]
        rule, layer = matches[0]
        if rule.how != "copy" or rule.part[1] != 1:
            what = f"{family} keeps {name.split('.')[-1]} in one matrix with others, or turned"
            raise InputError(what, fix="heed export --to hf, which has the adapters added to the weights")
        module = rule.theirs.replace("{i}", layer).removesuffix(".weight")
        targets.add(module.rsplit(".", 1)[1])
        found[f"{BASE}{module}.lora_A.weight"] = adapters[name + DOWN].contiguous()
        found[f"{BASE}{module}.lora_B.weight"] = adapters[name + UP].contiguous()
    return found, sorted(targets)


def config_to_peft(config: LoRAConfig, targets: list[str], *, base: str, kind: str) -> dict[str, Any]:
    """adapter_config.json. `kind` is the class of transformers that loads the base."""
    return {
        "peft_type": "LORA",
        "task_type": KINDS.get(kind),
        "base_model_name_or_path": base,
        "r": config.rank,
        "lora_alpha": config.alpha,
        "lora_dropout": 0.0,
        "target_modules": targets,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
