"""Their `config.json`, key by key: each one is used, or has the only value that we can build, or says nothing about
the mathematics. Whatever else is in it stops the import, by name."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from heedful.core.config import to_json, unknown_key
from heedful.errors import InputError

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "swish": "silu",
    "silu": "silu",
}

# Where it came from, how to search, what their library prints.
EVERYWHERE = {
    "_name_or_path",
    "_num_labels",
    "architectures",
    "bos_token_id",
    "decoder_start_token_id",
    "dtype",
    "eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "label2id",
    "max_length",
    "num_beams",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "problem_type",
    "return_dict",
    "torch_dtype",
    "transformers_version",
    "use_cache",
}

# What old files repeat of every configuration that is inside another: of what it is not, in one value each, and of how
# to search, to models that write nothing.
FIXED_INSIDE: dict[str, Any] = {
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "pruned_heads": {},
    "use_bfloat16": False,
}
INSIDE = EVERYWHERE | {
    "bad_words_ids",
    "begin_suppress_tokens",
    "cross_attention_hidden_size",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "initializer_range",
    "length_penalty",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_return_sequences",
    "output_scores",
    "prefix",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tie_word_embeddings",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torchscript",
    "typical_p",
}


def understood(
    theirs: Mapping[str, Any],
    *,
    used: Mapping[str, Any],
    fixed: Mapping[str, Any],
    irrelevant: Collection[str],
    where: str,
) -> dict[str, Any]:
    """Every key of `used`, as theirs or as it is when they leave it out. Raises InputError for a key that is not
    known, or a value that we cannot build."""
    for key, value in theirs.items():
        if key not in used and key not in fixed and key not in irrelevant:
            raise unknown_key(key, [*used, *fixed, *irrelevant], where=where)
        if key in fixed and value != fixed[key]:
            raise InputError(f"{key} is {value!r}: only {fixed[key]!r} can be read", where=where)
    if "model_type" not in theirs:
        raise InputError("missing model_type", where=where)
    return {**used, **{key: value for key, value in theirs.items() if key in used}}


def activation(got: Mapping[str, Any], key: str, *, where: str) -> str:
    """Our name of the function that `key` of their configuration names."""
    if got[key] not in ACTIVATIONS:
        raise InputError(f"{key} {got[key]!r} is not one of {', '.join(ACTIVATIONS)}", where=where)
    return ACTIVATIONS[got[key]]


def activation_to_hf(name: str) -> str:
    return next(theirs for theirs, ours in reversed(ACTIVATIONS.items()) if ours == name)


def n_labels(got: Mapping[str, Any], *, where: str) -> int:
    """How many classes there are: they write down their names, and leave them out where there are two."""
    names = got["id2label"]
    if names is None:
        return 2
    if not isinstance(names, dict) or {str(key) for key in names} != {str(i) for i in range(len(names))}:
        raise InputError("id2label does not number the classes from 0", where=where)
    return len(names)


def labels_to_hf(labels: Sequence[str]) -> dict[str, Any]:
    return {
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
    }


def nothing_lost(config: Any, back: Any, family: str) -> None:
    """Raises InputError where `back`, read from what was written for `config`, is not the same: it names what."""
    lost = list(_differences(to_json(config), to_json(back), "model"))
    if lost:
        raise InputError(f"{family} has no words for {', '.join(lost)}")


def _differences(ours: Any, back: Any, where: str) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(back, dict):
        for key in ours:
            yield from _differences(ours[key], back[key], f"{where}.{key}")
    elif ours != back:
        yield f"{where} = {ours!r}"
