"""The tokenizer in a file's metadata: byte-level BPE, where the way to split texts has a name, or BPE of SentencePiece,
where pieces have scores instead of merges."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy
import tokenizers

from heedful.core.config import unknown_key
from heedful.data.spm import LONGEST_PIECE, merges_by
from heedful.data.tokenizer import BYTE
from heedful.errors import InputError, StorageError
from heedful.exchange.hub import CHAT, GENERATION, TOKENIZER, Files, around
from heedful.exchange.lists import TOKENIZER_CONFIG
from heedful.exchange.trial import TEXTS
from heedful.store import files
from heedful.store.refusals import AGAIN

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE_PIECE = range(1, 7)  # types of tokens
KEY = "tokenizer.ggml."
TEMPLATE, WHOLE = "tokenizer.chat_template", "tokenizer.huggingface.json"
ROLES = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}  # ours, and in the keys
KNOWN = (
    *("model", "pre", "tokens", "token_type", "scores", "merges", "add_bos_token", "add_eos_token", "add_space_prefix"),
    *("suppress_tokens", "eot_token_id", "eom_token_id", *(f"{role}_token_id" for role in ROLES.values())),
)
# Which have no effect on texts by these two kinds of tokenizers.
IRRELEVANT = {"add_sep_token", "remove_extra_whitespaces", "token_type_count"}
IRRELEVANT |= {f"{role}_token_id" for role in ("seperator", "cls", "mask", "prefix", "suffix", "middle")}
IRRELEVANT |= {f"fim_{role}_token_id" for role in ("pre", "suf", "mid", "pad", "rep", "sep")}
# Tokens that end a text in llama.cpp, whatever a file says of them.
ENDS = (
    *("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>"),
    *("<|end_of_text|>", "<eos>", "<end_of_utterance>"),
)

_WORDS, _DIGITS = "words", "digits"  # GPT-2's way, and each digit alone
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BEHIND = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_CUT = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}%s| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_BEHIND}"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_BEHIND}"
)
# By their names in llama.cpp: how texts are split, and whether a word that is a token is not merged of others.
SPLITS: dict[str, tuple[tuple[str, ...], bool]] = {
    "gpt-2": ((_WORDS,), False),
    "smollm": ((_DIGITS, _WORDS), False),
    "qwen2": ((_CUT % "",), False),
    "llama-bpe": ((_CUT % "{1,3}",), True),
    "smaug-bpe": ((_CUT % "{1,3}",), False),
    "tekken": ((_TEKKEN,), True),
}
SAME = {"llama3": "llama-bpe", "llama-v3": "llama-bpe", "deepseek-r1-qwen": "qwen2", "megrez": "qwen2"}
COMPOSED = ("qwen2",)  # whose models learnt composed texts (Unicode's NFC)
BEGUN = ("llama-bpe", "tekken")  # where the BOS token is put before a text unless a file says otherwise
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
SPACE = "\u2581"


def metadata_of(beside: Files, *, size: int) -> dict[str, Any]:
    """What a file says of a model of `size` tokens with these files of the Hub beside it. Raises InputError for a
    tokenizer that llama.cpp does not have."""
    document = json.loads(beside[TOKENIZER])
    model = document["model"]
    if model["type"] != "BPE":
        raise InputError(f"a tokenizer of {model['type']}: llama.cpp reads BPE here", fix="train one of the kind bpe")
    merges = [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model["merges"]]
    if not merges:
        raise InputError("a tokenizer without merges: llama.cpp reads none", fix="train one of the kind bpe")
    pieces = bool(model["byte_fallback"])
    tokens, types = _tokens_of(document, size, pieces)
    metadata: dict[str, Any] = {"tokens": tokens, "token_type": types}
    if pieces:
        ranks = {a + b: -number for number, (a, b) in reversed([*enumerate(merges)])}
        metadata |= {"model": "llama", "scores": [float(ranks.get(token, -len(merges))) for token in tokens]}
        metadata |= {"add_space_prefix": _puts_space(document)}
    else:
        metadata |= {"model": "gpt2", "pre": _name_of(document), "merges": [" ".join(merge) for merge in merges]}
    metadata |= _controls_of(document, beside[GENERATION] | beside[TOKENIZER_CONFIG], tokens)
    whole = {WHOLE: json.dumps(document, ensure_ascii=False)}
    return {f"{KEY}{name}": value for name, value in metadata.items()} | whole | _template_of(beside)


def _tokens_of(document: Mapping[str, Any], size: int, pieces: bool) -> tuple[list[str], list[int]]:
    """The strings and the types of so many tokens."""
    added = {token["id"]: token for token in document["added_tokens"]}
    spelled = {index: piece for piece, index in document["model"]["vocab"].items()}
    spelled |= {index: token["content"] for index, token in added.items()}

    def kind(index: int) -> int:
        if index not in spelled:
            return UNUSED
        if pieces and spelled[index] == document["model"]["unk_token"]:
            return UNKNOWN
        if index in added:
            return CONTROL if added[index]["special"] else USER_DEFINED
        return BYTE_PIECE if pieces and BYTE.fullmatch(spelled[index]) else NORMAL

    return [spelled.get(index, f"[PAD{index}]") for index in range(size)], [kind(index) for index in range(size)]


def _controls_of(document: Mapping[str, Any], roles: Mapping[str, Any], tokens: Sequence[str]) -> dict[str, Any]:
    """The ids of tokens with a role, as the files beside the tokenizer say. Raises InputError for more of them than a
    file has room for."""
    before, after = around(tokenizers.Tokenizer.from_str(json.dumps(document)))
    if len(before) > 1 or after:
        raise InputError(f"a tokenizer that puts the tokens {before} before a text and {after} after it")
    ends = roles["eos_token_id"] if isinstance(roles["eos_token_id"], list) else [roles["eos_token_id"]]
    others = [index for index in ends[1:] if tokens[index] not in ENDS]
    if len(others) > 2:
        raise InputError(f"{len(ends)} tokens that end a text: llama.cpp has room for three")
    unknown = roles.get("unk_token")
    ids = {
        "bos": before[0] if before else roles.get("bos_token_id"),
        "eos": ends[0],
        "padding": roles.get("pad_token_id"),
        "unknown": tokens.index(unknown) if unknown in tokens else None,
        **dict(zip(("eot", "eom"), others, strict=False)),
    }
    metadata = {f"{role}_token_id": index for role, index in ids.items() if index is not None}
    metadata |= {"suppress_tokens": roles["suppress_tokens"]} if roles.get("suppress_tokens") else {}
    return metadata | {"add_bos_token": bool(before), "add_eos_token": False}


def lost(beside: Files, metadata: Mapping[str, Any]) -> list[str]:
    """Lines about texts that llama.cpp reads as other tokens. Raises InputError where it does so with plain ones."""
    plain = {key: value for key, value in metadata.items() if key != WHOLE}
    theirs = json.loads(files_in(plain, where="")[TOKENIZER])
    if metadata[f"{KEY}model"] == "gpt2":
        theirs["normalizer"] = None  # there is none in llama.cpp
    other = tokenizers.Tokenizer.from_str(json.dumps(theirs))
    tokenizer = tokenizers.Tokenizer.from_str(beside[TOKENIZER].decode())
    unequal = [
        text
        for text in TEXTS
        if tokenizer.encode(text, add_special_tokens=False).ids != other.encode(text, add_special_tokens=False).ids
    ]
    if {*unequal} & {*TEXTS[1:4]}:
        raise InputError("a tokenizer that llama.cpp does not have: it reads plain texts as other tokens")
    shown = ", ".join(repr(text[:20]) for text in unequal[:2])
    return [f"llama.cpp reads some texts as other tokens ({shown})"] if unequal else []


def files_in(metadata: Mapping[str, Any], *, where: str) -> Files:
    """The files of the Hub that a file's tokenizer could have been made from. Raises InputError for another kind of
    tokenizer or an unknown key, StorageError for one that is not sound."""
    for key in metadata:
        short = key.removeprefix(KEY)
        if short != key and short not in KNOWN and short not in IRRELEVANT:
            raise unknown_key(key[:80], [f"{KEY}{each}" for each in KNOWN], where=where)
    given = {name: metadata.get(f"{KEY}{name}") for name in KNOWN}
    if given["model"] not in ("gpt2", "llama"):
        what = f"{KEY}model is {given['model']!r:.80}: only 'gpt2' and 'llama' can be read"
        raise InputError(what, where=where, fix="take a model of another family")
    try:
        return _files_in(given, metadata, where)
    except (LookupError, TypeError, ValueError) as error:
        reason = str(error).encode("unicode_escape").decode()[:200]
        raise StorageError(f"no sound tokenizer: {reason}", where=where, fix=AGAIN) from None


def _files_in(given: Mapping[str, Any], metadata: Mapping[str, Any], where: str) -> Files:
    tokens, pieces, pre = _listed(given, "tokens"), given["model"] == "llama", str(given["pre"])
    pre = SAME.get(pre, pre)
    kinds = [NORMAL] * len(tokens) if given["token_type"] is None else _listed(given, "token_type", len(tokens))
    types = [*map(int, kinds)][: len(tokens)]
    if len({*tokens}) < len(tokens):
        raise ValueError("two tokens are spelled alike")
    if max(map(len, tokens), default=0) > LONGEST_PIECE:
        raise ValueError(f"a token of more than {LONGEST_PIECE:,} characters")
    if not pieces and pre not in SPLITS:
        what = f"{KEY}pre is {pre[:80]!r}: only {', '.join(SPLITS)} can be read"
        raise InputError(what, where=where, fix="take a model of another family")
    while types and types[-1] == UNUSED:
        types.pop()
    defaults = {"bos": 1, "eos": 2, "unk": 0} if pieces else {}
    ids = {role: given[f"{key}_token_id"] for role, key in ROLES.items()}
    ids = {role: defaults.get(role) if index is None else index for role, index in ids.items()}
    ids = {role: index for role, index in ids.items() if type(index) is int and 0 <= index < len(types)}
    names = {role: tokens[index] for role, index in ids.items()}
    model = _pieces(given, tokens, types, names.get("unk")) if pieces else _merged(given, tokens, types, pre)
    document = str(metadata.get(WHOLE) or json.dumps(model, ensure_ascii=False))
    if WHOLE in metadata:
        _refuse_other_tokens(files.parse_json(document.encode(), where=where), tokens)
    ends = [ids.get("eos"), given["eot_token_id"], given["eom_token_id"]]
    ends += [index for index, token in enumerate(tokens) if token in ENDS]
    adds = pieces or pre in BEGUN if given["add_bos_token"] is None else given["add_bos_token"]
    config: dict[str, Any] = {f"{role}_token": names.get(role) for role in ROLES}
    config |= {"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": bool(adds)}
    config |= {"add_eos_token": bool(given["add_eos_token"])}
    search: dict[str, Any] = {f"{role}_token_id": ids.get(role) for role in ("bos", "pad")}
    search["eos_token_id"] = [*dict.fromkeys(index for index in ends if type(index) is int and index < len(types))]
    if given["suppress_tokens"] is not None:
        search["suppress_tokens"] = [*map(int, given["suppress_tokens"])]
    beside: Files = {TOKENIZER: document.encode(), TOKENIZER_CONFIG: config, GENERATION: search}
    template = metadata.get(TEMPLATE)
    return beside | ({CHAT: str(template).encode()} if template else {})


def _merged(given: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int], pre: str) -> dict[str, Any]:
    """A tokenizer.json of byte-level BPE."""
    splits, whole_words = SPLITS[pre]
    steps = [
        {"type": "Digits", "individual_digits": True}
        if split == _DIGITS
        else {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False}
        for split in splits
        if split != _WORDS
    ]
    steps.append({**BYTE_LEVEL, "use_regex": _WORDS in splits})
    cuts = [(merge, merge.find(" ", 1)) for merge in _listed(given, "merges")]
    merges = [[merge[:cut], merge[cut + 1 :]] for merge, cut in cuts if cut > 0]
    vocabulary = {token: index for index, token in enumerate(tokens[: len(types)])}
    parts = {
        "normalizer": {"type": "NFC"} if pre in COMPOSED else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "decoder": {**BYTE_LEVEL, "use_regex": True},
    }
    model = {"ignore_merges": whole_words, "vocab": vocabulary, "merges": merges}
    return _document(tokens, types, model, parts)


def _pieces(
    given: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int], unknown: str | None
) -> dict[str, Any]:
    """A tokenizer.json of SentencePiece's BPE."""
    scores = _listed(given, "scores", len(tokens))
    best = {tokens[i]: float(scores[i]) for i, kind in enumerate(types) if kind == NORMAL}
    spaced = given["add_space_prefix"] is None or bool(given["add_space_prefix"])
    read, written = (
        {"type": "Replace", "pattern": {"String": old}, "content": new} for old, new in ((" ", SPACE), (SPACE, " "))
    )
    decoders: list[dict[str, Any]] = [written, {"type": "ByteFallback"}, {"type": "Fuse"}]
    decoders += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if spaced else []
    prefix = [{"type": "Prepend", "prepend": SPACE}] if spaced else []
    vocabulary = {token: index for index, token in enumerate(tokens[: len(types)])}
    model = {"unk_token": unknown, "fuse_unk": True, "byte_fallback": True, "vocab": vocabulary}
    parts = {
        "normalizer": {"type": "Sequence", "normalizers": [*prefix, read]},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
    }
    return _document(tokens, types, {**model, "merges": merges_by(best)}, parts)


def _document(
    tokens: Sequence[str], types: Sequence[int], model: Mapping[str, Any], parts: Mapping[str, Any]
) -> dict[str, Any]:
    added = [
        {
            "id": index,
            "content": tokens[index],
            "special": kind != USER_DEFINED,
            **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False),
        }
        for index, kind in enumerate(types)
        if kind in (CONTROL, UNKNOWN, USER_DEFINED)
    ]
    return {"version": "1.0", "added_tokens": added, **parts, "post_processor": None, "model": {"type": "BPE", **model}}


def _listed(given: Mapping[str, Any], name: str, size: int = 0) -> Any:
    """A list, of at least so many."""
    value = given[name]
    if not isinstance(value, list | numpy.ndarray) or len(value) < size:
        raise ValueError(f"{KEY}{name} is no list of {size:,} or more")
    if name in ("tokens", "merges") and not all(isinstance(text, str) for text in value):
        raise ValueError(f"{KEY}{name} has numbers")
    return value


def _refuse_other_tokens(document: Any, tokens: Sequence[str]) -> None:
    spelled = {**document["model"]["vocab"]} | {token["content"]: token["id"] for token in document["added_tokens"]}
    for token, index in spelled.items():
        if tokens[index] != token:
            raise ValueError(f"{WHOLE} has other tokens than {KEY}tokens")


def _name_of(document: Mapping[str, Any]) -> str:
    """The name of the way in which texts are split. Raises InputError for another one."""
    splits, whole_words = tuple(_splits_of(document["pre_tokenizer"])), bool(document["model"].get("ignore_merges"))
    for name, each in SPLITS.items():
        if each == (splits, whole_words):
            return name
    raise InputError("a tokenizer that splits texts into words in a way that llama.cpp has no name for")


def _splits_of(step: Mapping[str, Any]) -> Iterator[str]:
    match step:
        case {"type": "Sequence", "pretokenizers": steps}:
            for each in steps:
                yield from _splits_of(each)
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": words}:
            yield from [_WORDS] if words else []
        case {"type": "Digits", "individual_digits": True}:
            yield _DIGITS
        case {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}:
            yield pattern
        case _:
            yield ""


def _puts_space(document: Mapping[str, Any]) -> bool:
    """Whether a space is put before a text."""
    normalizer, splits = document["normalizer"] or {}, document["pre_tokenizer"] or {}
    steps = normalizer.get("normalizers", [normalizer])
    scheme = splits.get("prepend_scheme", "never")
    return scheme != "never" or any(step.get("type") == "Prepend" and step["prepend"] == SPACE for step in steps)


def _template_of(beside: Files) -> dict[str, Any]:
    template = beside[CHAT].decode() if CHAT in beside else beside[TOKENIZER_CONFIG].get("chat_template")
    if isinstance(template, list):
        template = next((each.get("template") for each in template if each.get("name") == "default"), None)
    return {TEMPLATE: template} if template else {}
