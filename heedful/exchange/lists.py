"""Tokenizers of older folders of the Hub, made from bare lists: vocab.txt (WordPiece, or single tokens), vocab.json
with merges.txt (byte-level BPE), or a .model (SentencePiece); and the names of a folder's special tokens."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tokenizers
from tokenizers import AddedToken, processors

from heedful.data.spm import Spm, as_fairseq, as_pegasus, read_spm, with_sentinels
from heedful.data.tokenizer import SENTINEL, Ids
from heedful.data.vocabulary import byte_merges, single_tokens, with_controls, word_pieces
from heedful.errors import InputError, MissingError, StorageError
from heedful.exchange.hf.folder import CONFIG, read_object
from heedful.exchange.trial import refuse_harmful, with_charsmap
from heedful.run.tokenizers import NUMBERS, read_piece_ids
from heedful.store import files

TOKENIZER_CONFIG, SPECIAL_MAP, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
WORD_PIECES, MERGES = "vocab.txt", "merges.txt"
PIECES, FAIRSEQ_PIECES = "spiece.model", "sentencepiece.bpe.model"
OF_WORD_PIECES = ("BertTokenizer", "DistilBertTokenizer")  # classes that need nothing but vocab.txt
OF_RESIDUES = "EsmTokenizer"  # whose vocab.txt lists single tokens
SPM_LIMIT = 1 << 28  # bytes
MOST_SENTINELS = 10_000
FIX = "get the tokenizer that belongs to the model"

T = TypeVar("T")


def token_names(folder: Path) -> dict[str, Any]:
    """The keys of special_tokens_map.json, in older folders, overridden by those of tokenizer_config.json."""
    return optional(folder / SPECIAL_MAP) | optional(folder / TOKENIZER_CONFIG)


def spelled(names: Mapping[str, Any], key: str, default: str = "") -> str:
    """The name of the token of a role; the default where there is none, or null."""
    name = names.get(key)
    return default if name is None else str(name["content"] if isinstance(name, dict) else name)


def optional(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}


def tokenizer_of_lists(folder: Path, names: Mapping[str, Any], *, framed: bool) -> tokenizers.Tokenizer:
    """The tokenizer of a folder with lists. `names`: from `token_names`. Raises MissingError where there are no lists,
    InputError or StorageError."""
    inner = _with_added(_of_lists(folder, names, framed=framed), folder, names)
    refuse_harmful(inner.to_str().encode(), where=folder)
    return inner


def read_pieces(path: Path) -> Spm:
    """The pieces of a .spm or .model file. Raises InputError, or StorageError, also for a table of normalisation that
    harms."""
    spm = read_spm(files.read_bytes(path, limit=SPM_LIMIT), where=path)
    if spm.charsmap:
        refuse_harmful(with_charsmap(spm.charsmap), where=path)
    return spm


def _of_lists(folder: Path, names: Mapping[str, Any], *, framed: bool) -> tokenizers.Tokenizer:
    said = optional(folder / CONFIG)
    if (folder / WORD_PIECES).is_file():
        return _of_word_pieces(folder, names, said)
    if (folder / NUMBERS).is_file() and (folder / MERGES).is_file():
        return _of_merges(folder, names, framed=framed)
    if (folder / FAIRSEQ_PIECES).is_file():
        spm = read_pieces(folder / FAIRSEQ_PIECES)
        inner = as_fairseq(spm, added_tokens(names), spelled(names, "mask_token", "<mask>"))
        return _with_frame(inner, ["<s>"], ["</s>"], ["</s>", "</s>"])
    if (folder / PIECES).is_file():
        spm = read_pieces(folder / PIECES)
        if said.get("model_type") == "pegasus":
            return _with_frame(as_pegasus(spm), [], ["</s>"])
        count = _told(names, "extra_ids", 100)
        if not 0 <= count <= MOST_SENTINELS:
            raise InputError(f"extra_ids is {count}, expected 0 to {MOST_SENTINELS:,}", where=TOKENIZER_CONFIG, fix=FIX)
        sentinels = [SENTINEL.format(n) for n in reversed(range(count))]
        last = spelled(names, "eos_token", "</s>")
        controls = [spelled(names, "pad_token", "<pad>"), last, spelled(names, "unk_token", "<unk>"), *sentinels]
        return _with_frame(with_controls(with_sentinels(spm, sentinels), controls), [], [last])
    fix = "with transformers: AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
    raise MissingError("no tokenizer", where=str(folder / "tokenizer.json"), fix=fix)


def _of_word_pieces(folder: Path, names: Mapping[str, Any], said: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """BERT's tokenizer. `said`: config.json."""
    reader = str(names.get("tokenizer_class") or said.get("tokenizer_class") or "").removesuffix("Fast")
    if reader == OF_RESIDUES or (not reader and said.get("model_type") == "esm"):
        return _of_residues(folder, names)
    if reader not in ("", *OF_WORD_PIECES):
        what = f"tokenizer_class is {reader!r}, which does more than look pieces up in {WORD_PIECES}"
        raise InputError(what, where=str(folder), fix="take a model that comes with a tokenizer.json")
    numbers = _numbered_lines(folder / WORD_PIECES)
    unknown = spelled(names, "unk_token", "[UNK]")
    inner = word_pieces(
        numbers,
        lower=_told(names, "do_lower_case", True),
        unknown=unknown,
        chinese=_told(names, "tokenize_chinese_chars", True),
        accents=None if names.get("strip_accents") is None else _told(names, "strip_accents", False),
    )
    first, last = spelled(names, "cls_token", "[CLS]"), spelled(names, "sep_token", "[SEP]")
    controls = [spelled(names, "pad_token", "[PAD]"), unknown, first, last, spelled(names, "mask_token", "[MASK]")]
    return _with_frame(with_controls(inner, [name for name in controls if name in numbers]), [first], [last])


def _numbered_lines(path: Path) -> dict[str, int]:
    lines = files.read_bytes(path, limit=SPM_LIMIT).decode(errors="replace").split("\n")
    return {line.removesuffix("\r"): index for index, line in enumerate(lines) if line or index + 1 < len(lines)}


def _of_residues(folder: Path, names: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """ESM-2's tokenizer."""
    numbers = _numbered_lines(folder / WORD_PIECES)
    roles = {"cls": "<cls>", "pad": "<pad>", "eos": "<eos>", "unk": "<unk>", "mask": "<mask>"}
    control = {role: spelled(names, f"{role}_token", default) for role, default in roles.items()}
    inner = single_tokens(numbers, unknown=control["unk"])
    inner = with_controls(inner, [name for name in control.values() if name in numbers])
    return _with_frame(inner, [control["cls"]], [control["eos"]])


def _of_merges(folder: Path, names: Mapping[str, Any], *, framed: bool) -> tokenizers.Tokenizer:
    """Byte-level BPE: GPT-2's, or, with frames around texts, RoBERTa's."""
    numbers = read_piece_ids(folder / NUMBERS)
    lines = files.read_bytes(folder / MERGES, limit=SPM_LIMIT).decode(errors="replace").splitlines()
    pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    spaced = _told(names, "add_prefix_space", False)
    try:
        merges = [(one, other) for one, other in pairs]
        inner = byte_merges(numbers, merges, prefix=spaced)
    except Exception as error:  # the library raises no narrower class
        raise StorageError(f"not merges of {NUMBERS}: {error}", where=str(folder / MERGES)) from None
    first, last = spelled(names, "cls_token", "<s>"), spelled(names, "sep_token", "</s>")
    mask = spelled(names, "mask_token", "<mask>")
    controls = [first, "<pad>", last, "<unk>", mask] if framed else ["<|endoftext|>"]
    inner = with_controls(inner, [name for name in controls if name in numbers], strips=[mask])
    return _with_frame(inner, [first], [last], [last, last]) if framed else inner


def _with_added(inner: tokenizers.Tokenizer, folder: Path, names: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """Adds the tokens that were added to the lists; texts are split at them. Raises InputError for an id that is
    neither in the lists nor the next one after them."""
    listed = inner.get_vocab()
    special = {listed[name]: AddedToken(name, special=True) for name in added_tokens(names) if name in listed}
    known = {token.content for token in inner.get_added_tokens_decoder().values()}
    for index, token in sorted((special | listed_tokens(folder, names)).items()):
        if token.content not in known:
            inner.add_tokens([token])
        if (own := inner.token_to_id(token.content)) != index:
            what = f"the added token {token.content!r} has the id {index}, and by the lists it would be {own}"
            raise InputError(what, where=str(folder), fix=FIX)
    return inner


def listed_tokens(folder: Path, names: Mapping[str, Any]) -> dict[int, AddedToken]:
    """The tokens that were added to the lists, by id: from a file of their own in older folders, from
    tokenizer_config.json in newer ones. Raises StorageError where these are invalid."""
    roles = {spelled(names, key) for key in names if key.endswith("_token")} | {*added_tokens(names)}
    sides = ("lstrip", "rstrip", "single_word")
    found = {}
    try:
        for name, index in optional(folder / ADDED).items():
            found[int(index)] = AddedToken(name, special=name in roles, normalized=name not in roles)
        for index, said in (names.get("added_tokens_decoder") or {}).items():
            kinds = {key: said.get(key, False) for key in (*sides, "special")}
            found[int(index)] = AddedToken(
                said["content"], normalized=said.get("normalized", not kinds["special"]), **kinds
            )
    except (AttributeError, KeyError, TypeError, ValueError):
        what = f"{ADDED} or {TOKENIZER_CONFIG} lists added tokens, which are none"
        raise StorageError(what, where=str(folder), fix="get the file again from its source") from None
    return found


def _told(names: Mapping[str, Any], key: str, default: T) -> T:
    """A value of tokenizer_config.json; the default where it is missing or null. Raises InputError for a value of
    another type."""
    value = default if names.get(key) is None else names[key]
    if type(value) is not type(default):
        raise InputError(f"{key} is {value!r}, expected {type(default).__name__}", where=TOKENIZER_CONFIG)
    return value


def added_tokens(names: Mapping[str, Any]) -> list[str]:
    """The further special tokens in `token_names`, in their order."""
    keys = ("additional_special_tokens", "extra_special_tokens")
    found: list[Any] = next((names[key] for key in keys if isinstance(names.get(key), list)), [])
    return [str(token["content"] if isinstance(token, dict) else token) for token in found]


def _with_frame(
    inner: tokenizers.Tokenizer, before: Sequence[str], after: Sequence[str], between: Sequence[str] | None = None
) -> tokenizers.Tokenizer:
    vocabulary = inner.get_vocab()
    for name in (*before, *after):
        if name not in vocabulary:
            raise InputError(f"no {name} in the vocabulary", fix="name the token in tokenizer_config.json")
    sides = (before, after, after if between is None else between)
    set_around(inner, *([vocabulary[name] for name in side] for side in sides))
    return inner


def set_around(inner: tokenizers.Tokenizer, before: Ids, after: Ids, between: Ids | None = None) -> None:
    """Makes the tokenizer put these tokens around texts; `between` two texts (None: the same as `after`)."""
    between = after if between is None else between
    names = {index: str(inner.id_to_token(index)) for index in (*before, *between, *after)}
    first, middle, last = ([names[index] for index in side] for side in (before, between, after))
    single = [*first, "$A", *last]
    pair = [*first, "$A", *middle, "$B:1", *(f"{name}:1" for name in last)]
    added = [(name, index) for index, name in names.items()]
    inner.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=added)
