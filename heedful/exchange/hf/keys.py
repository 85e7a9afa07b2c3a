"""Their `config.json`, key by key: a family has one table of keys, and this engine applies it both ways.

    TABLE = KeyTable(keys={"n_embd": Key(768, "d_model"), "resid_pdrop": Key(0.1, "stack.block.dropout")}, ...)

Whatever else is in a file stops the import, by name; whatever of ours does not come back stops the export.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from heedful.core.config import from_json, to_json, unknown_key
from heedful.errors import InputError

PARAMS = "task_specific_params"  # where a file may say, by a task's name, how a model is used for it

C = TypeVar("C")
Made = TypeVar("Made", covariant=True)

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "swish": "silu",
    "silu": "silu",
}

# Another value would make another model: of models of one stack, and of two.
FIXED: dict[str, Any] = {"chunk_size_feed_forward": 0, "is_decoder": False, "is_encoder_decoder": False}
FIXED_SEQ2SEQ = FIXED | {"is_encoder_decoder": True}

# Keys that old files repeat of what a model is not: where a family does not name them, with the only value that we can
# build.
UNSAID: dict[str, Any] = {
    "add_cross_attention": False,
    "pruned_heads": {},
    "tie_encoder_decoder": False,
    "use_bfloat16": False,
}

# Where it came from and who has changed it, how to search, what their library prints.
EVERYWHERE = {
    "_name_or_path", "_num_labels", "architectures", "bad_words_ids", "begin_suppress_tokens", "bos_token_id",
    "cross_attention_hidden_size", "decoder_start_token_id", "diversity_penalty", "do_sample", "dtype",
    "early_stopping", "encoder_no_repeat_ngram_size", "eos_token_id", "eos_token_ids",
    "exponential_decay_length_penalty", "finetuning_task", "forced_bos_token_id", "forced_eos_token_id",
    "gradient_checkpointing", "id2label", "initializer_range", "label2id", "language", "length_penalty", "max_length",
    "min_length", "name", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_labels",
    "num_return_sequences", "output_attentions", "output_hidden_states", "output_past", "output_scores",
    "pad_token_id", "prefix", "problem_type", "remove_invalid_values", "repetition_penalty", "return_dict",
    "return_dict_in_generate", "sbert_ce_default_activation_function", "sentence_transformers", "sep_token_id",
    "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss", "tokenizer_class", "top_k", "top_p",
    "torch_dtype", "torchscript", "transformers.js_config", "transformers_version", "typical_p", "unsloth_fixed",
    "unsloth_version", "use_cache",
}  # fmt: skip
WORDLESS = EVERYWHERE | {"tie_word_embeddings"}  # of models that name no words, and of what is nested in others


class How(NamedTuple):
    """A value's way here and back."""

    ours: Callable[[str, Any, str], Any]  # from their key, its value, and where it stands; raises InputError
    theirs: Callable[[Any], Any] | None  # None: the family writes it itself


COPY = How(lambda key, value, where: value, lambda value: value)


@dataclass(frozen=True)
class Key:
    """A key of theirs, and the paths of its value in our configuration: "{a,b}.c d" is a.c, b.c and d. All of them get
    the value, and the first is written. Without a path, the family reads and writes it itself."""

    default: Any  # what it is where a file leaves it out
    ours: str = ""
    how: How = COPY


@dataclass(frozen=True, kw_only=True)
class KeyTable:
    """What a config.json may say, and what it means here."""

    keys: dict[str, Key]  # with what each is where a file leaves it out
    always: dict[str, Any] = field(default_factory=dict)  # ours, by its path, which no key of theirs says
    fixed: dict[str, Any]  # theirs with the only value that we can build: another would make another model
    irrelevant: Set[str]  # theirs that have no effect on the mathematics

    def understood(self, theirs: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Every one of `keys`, as theirs or as it is when they leave it out. Raises InputError for a key that is not
        known, or a value that we cannot build."""
        fixed = UNSAID | self.fixed
        for key, value in theirs.items():
            if key not in self.keys and key not in fixed and key not in self.irrelevant:
                raise unknown_key(key, [*self.keys, *fixed, *self.irrelevant], where=where)
            if key in fixed and value != fixed[key]:
                raise InputError(f"{key} is {value!r}: only {fixed[key]!r} can be read", where=where)
        if "model_type" not in theirs:
            raise InputError("missing model_type", where=where)
        return {name: theirs.get(name, key.default) for name, key in self.keys.items()}

    def in_ours(self, got: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Our values by their paths. Raises InputError for one that has no way here."""
        found = {key.ours: key.how.ours(name, got[name], where) for name, key in self.keys.items() if key.ours}
        return self.always | found

    def in_theirs(self, config: Any) -> dict[str, Any]:
        """What the table writes of our configuration."""
        found = dict(self.fixed)
        for name, key in self.keys.items():
            if key.ours and key.how.theirs is not None:
                value = config
                for part in next(paths(key.ours)).split("."):
                    value = getattr(value, part)
                found[name] = key.how.theirs(value)
        return found


def built(kind: type[C], values: Mapping[str, Any], where: str) -> C:
    """Our configuration of values by their paths. Raises InputError for one of another type."""
    tree: dict[str, Any] = {}
    for pattern, value in values.items():
        for path in paths(pattern):
            *parents, last = path.split(".")
            inner = tree
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = value
    order = list(kind.__annotations__)  # of several wrong values, the first by our fields is told
    return from_json(kind, {name: tree[name] for name in sorted(tree, key=order.index)}, where)


@runtime_checkable
class KeyReader(Protocol[Made]):
    def __call__(self, theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> Made:
        """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
        build."""


def reader(kind: type[C], table: KeyTable) -> KeyReader[C]:
    """That of a family whose table says all."""

    def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> C:
        return built(kind, table.in_ours(table.understood(theirs, where), where), where)

    return config_from_hf


def paths(patterns: str) -> Iterator[str]:
    """Those that the patterns of a `Key` stand for."""
    return (path for pattern in patterns.split() for path in _choices(pattern))


def _choices(pattern: str) -> Iterator[str]:
    before, brace, rest = pattern.partition("{")
    if not brace:
        yield pattern
        return
    choices, _, behind = rest.partition("}")
    yield from (f"{before}{choice}{end}" for choice in choices.split(",") for end in _choices(behind))


def activation(key: str, value: Any, where: str) -> str:
    """Our name of the function that `key` of their configuration names."""
    if value not in ACTIVATIONS:
        raise InputError(f"{key} {value!r} is not one of {', '.join(ACTIVATIONS)}", where=where)
    return ACTIVATIONS[value]


def activation_to_hf(name: str) -> str:
    return next(theirs for theirs, ours in reversed(ACTIVATIONS.items()) if ours == name)


def n_labels(key: str, names: Any, where: str) -> int:
    """How many classes there are: they write down their names, and leave them out where there are two."""
    if names is None:
        return 2
    if not isinstance(names, dict) or {str(name) for name in names} != {str(i) for i in range(len(names))}:
        raise InputError(f"{key} does not number the classes from 0", where=where)
    return len(names)


def refuse_other_head(theirs: Mapping[str, Any], head: str, kind: str, where: str) -> None:
    """Raises InputError where a model's class does not end like those (`kind`) whose head of this name is read."""
    for name in theirs.get("architectures") or ():
        if not str(name).endswith(kind):
            raise InputError(f"architectures is {name!r}: its `{head}` is for something else", where=where)


ACTIVATION = How(activation, activation_to_hf)
LABELS = How(n_labels, None)
PICTURE = How(  # rows and columns of pixels, which they write once where they are as many
    lambda key, size, where: size if isinstance(size, list | tuple) else [size, size],
    lambda size: size[0] if size[0] == size[1] else list(size),
)


def params_of(said: Mapping[str, Any], task: str) -> dict[str, Any]:
    """What their config.json says of how the model is used for a task, one of their names."""
    found = said.get(PARAMS) or {}
    own = found.get(task) if isinstance(found, dict) else None
    return own if isinstance(own, dict) else {}


def labels_to_hf(labels: Sequence[str]) -> dict[str, Any]:
    return {
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
    }


def nothing_lost(theirs: dict[str, Any], config: Any, back: Any, family: str) -> dict[str, Any]:
    """`theirs`, which was written for `config`. Raises InputError where `back`, read from it, is not the same: it names
    what."""
    lost = list(_differences(to_json(config), to_json(back), "model"))
    if lost:
        raise InputError(f"{family} cannot hold {', '.join(lost)}")
    return theirs


def _differences(ours: Any, back: Any, where: str) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(back, dict):
        for key in ours:
            yield from _differences(ours[key], back[key], f"{where}.{key}")
    elif ours != back:
        yield f"{where} = {ours!r}"
