"""ViT (Dosovitskiy et al. 2021) and DeiT (Touvron et al. 2021) that tell classes, as the Hub holds them.

DeiT is read with its teacher's token and both heads (DeiTForImageClassificationWithTeacher). The Hub calls DeiT
without them "vit".
"""

from collections.abc import Collection, Sequence
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, LABELS, PICTURE, WORDLESS, How, Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, inside, modules
from heedful.models.patches import PatchesConfig
from heedful.models.vit import ViTConfig


def _teacher(key: str, kind: Any, where: str) -> bool:
    if kind not in ("vit", "deit"):
        raise InputError(f"{key} is {kind!r}: only 'vit' and 'deit' can be read", where=where)
    return kind == "deit"


TABLE = KeyTable(
    # With what each is where a file leaves it out (their ViTConfig and DeiTConfig).
    keys={
        "attention_probs_dropout_prob": Key(0.0, "stack.block.attention.dropout"),
        "hidden_act": Key("gelu", "stack.block.activation", ACTIVATION),
        "hidden_dropout_prob": Key(0.0, "dropout stack.block.dropout"),
        "hidden_size": Key(768, "d_model"),
        "id2label": Key(None, "n_classes", LABELS),
        "image_size": Key(224, "patches.size", PICTURE),
        "intermediate_size": Key(3072, "stack.block.d_ff"),
        "layer_norm_eps": Key(1e-12, "stack.block.norm_eps"),
        "model_type": Key("vit", "teacher", How(_teacher, lambda teacher: "deit" if teacher else "vit")),
        "num_attention_heads": Key(12, "stack.block.attention.n_heads"),
        "num_channels": Key(3, "patches.channels"),
        "num_hidden_layers": Key(12, "stack.n_layers"),
        "patch_size": Key(16),
    },
    always={"stack.block.order": "pre", "stack.final_norm": True},
    fixed=keys.FIXED | {"qkv_bias": True},  # another value would make another model
    # Of models that fill in pixels, or that end in a pooler.
    irrelevant=WORDLESS | {"encoder_stride", "pooler_act", "pooler_output_size"},
)
_HEADS = ("classifier.", "cls_classifier.", "distillation_classifier.")

BLOCK = {
    "attention.attention.query": "self_attention.query",
    "attention.attention.key": "self_attention.key",
    "attention.attention.value": "self_attention.value",
    "attention.output.dense": "self_attention.out",
    "layernorm_before": "self_residual.in_norm",
    "layernorm_after": "mlp_residual.in_norm",
    "intermediate.dense": "mlp.up",
    "output.dense": "mlp.down",
}


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> ViTConfig:
    """Raises InputError for tensors, by their `names`, of a model that tells no classes too."""
    if names and not any(name.startswith(_HEADS) for name in names):
        fix = "take one that was trained to tell classes (ViTForImageClassification)"
        raise InputError("a vision Transformer without a head that tells classes", where=where, fix=fix)
    read = TABLE.understood(theirs, where)
    return keys.built(ViTConfig, TABLE.in_ours(read, where) | patch_from_hf(read["patch_size"], where), where)


def patch_from_hf(size: Any, where: str, inside: str = "") -> dict[str, Any]:
    """Our values, by their paths in a configuration that may be `inside` another, of their patch_size: the edge of a
    square, or rows and columns. Raises InputError for a list of another length."""
    if not isinstance(size, list | tuple):
        return {f"{inside}patches.patch": size}
    if len(size) != 2:
        raise InputError(f"patch_size is {size!r}: only one number, or rows and columns, can be read", where=where)
    rows, columns = size
    return {f"{inside}patches.patch": columns, f"{inside}patches.patch_rows": None if rows == columns else rows}


def patch_to_hf(patches: PatchesConfig) -> int | list[int]:
    return patches.patch if patches.patch_rows is None else [*patches.shape]


def rules(config: ViTConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration: with a teacher it is DeiT's."""
    name = "deit" if config.teacher else "vit"
    heads = {"classifier": "head"}
    teacher: tuple[Rule, ...] = ()
    if config.teacher:
        heads = {"cls_classifier": "head", "distillation_classifier": "teacher_head"}
        teacher = (Rule("deit.embeddings.distillation_token", "teacher", "token"),)
    maps = {
        **inside(f"{name}.encoder.layer.{{i}}", "stack.blocks.{i}", BLOCK),
        f"{name}.embeddings.patch_embeddings.projection": "patches.map",
        f"{name}.layernorm": "stack.norm",
        **(heads if config.n_classes else {}),
    }
    return (
        *modules(maps),
        Rule(f"{name}.embeddings.cls_token", "cls", "token"),
        Rule(f"{name}.embeddings.position_embeddings", "position_embeddings.table.weight", "row"),
        *teacher,
    )


def config_to_hf(config: ViTConfig, *, labels: Sequence[str]) -> dict[str, Any]:
    """`labels` are the names of the classes."""
    kind = "DeiTForImageClassificationWithTeacher" if config.teacher else "ViTForImageClassification"
    theirs = TABLE.in_theirs(config) | keys.labels_to_hf(labels) | {"architectures": [kind]}
    theirs["patch_size"] = patch_to_hf(config.patches)
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "ViT")


FAMILY = Family(
    "ViT",
    ViTConfig,
    always("AutoModelForImageClassification"),
    config_from_hf,
    config_to_hf,
    rules,
    suits=lambda config: not config.stages,
)
