"""The tokenizer in a folder of the Hub, its special tokens, and the settings of its search.

It is a tokenizer.json, or, in older folders, is made from lists (`heedful.exchange.lists`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import tokenizers
from tokenizers import Regex, decoders, normalizers, pre_tokenizers

from heedful.core.embed import EmbedConfig
from heedful.data.text.chat_template import ChatTemplate
from heedful.data.tokenizer import SpecialTokens, Tokenizer, read_inner
from heedful.errors import InputError
from heedful.exchange.hf.folder import CONFIG, read_object
from heedful.exchange.lists import (
    SPM_LIMIT,
    TOKENIZER_CONFIG,
    Ids,
    optional,
    set_around,
    spelled,
    token_names,
    tokenizer_of_lists,
)
from heedful.exchange.trial import refuse_harmful
from heedful.run.task import HubFiles
from heedful.store import files

GENERATION, TOKENIZER = "generation_config.json", "tokenizer.json"
CHAT, CHAT_SAID = "chat_template.jinja", "chat_template.json"  # the latter in a run: the template of TOKENIZER_CONFIG
CALLED = {"unk": ("<unk>", "[UNK]"), "mask": ("<mask>", "[MASK]")}  # where no file has their names
# Keys of tokenizer_config.json, and their names in tokenizer.json, which has them too; and the classes that use the
# latter.
TOLD = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
    "add_prefix_space": "add_prefix_space",
}
AS_WRITTEN = ("PreTrainedTokenizerFast", "PreTrainedTokenizer", "TokenizersBackend")

Files = dict[str, Any]  # bytes or a JSON value, by a file's name

# Settings that change a search, with their neutral values: any other value would give another search than ours.
NEUTRAL: dict[str, Any] = {
    "begin_suppress_tokens": None,
    "constraints": None,
    "diversity_penalty": 0.0,
    "do_sample": False,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "force_words_ids": None,
    "forced_decoder_ids": None,
    "guidance_scale": 1.0,
    "max_time": None,
    "num_beam_groups": 1,
    "penalty_alpha": None,
    "repetition_penalty": 1.0,
    "sequence_bias": None,
    "stop_strings": None,
}

# Settings of sampling: the default of transformers, and the neutral value.
DRAWS: dict[str, tuple[Any, Any]] = {
    "temperature": (1.0, 1.0),
    "top_k": (50, 0),
    "top_p": (1.0, 1.0),
    "min_p": (None, 0.0),
    "typical_p": (1.0, 1.0),
}
ALSO_NEUTRAL: dict[str, Any] = {
    "length_penalty": 1.0,
    "min_length": 0,
    "min_new_tokens": 0,
    "no_repeat_ngram_size": 0,
    "num_beams": 1,
    "renormalize_logits": False,
}


class HubTokens:
    """What a folder of the Hub says about tokens and the search. Tokens come from generation_config.json, then from
    config.json, whose content with its defaults is `config`, then from tokenizer_config.json. The search comes from
    generation_config.json or, without that file, from config.json. The model has `size` tokens."""

    def __init__(self, folder: Path, config: Mapping[str, Any], vocabulary: Mapping[str, int], *, size: int) -> None:
        self.folder, self.vocabulary, self.size = folder, vocabulary, size
        self.names = token_names(folder)
        given = {key: value for key, value in optional(folder / GENERATION).items() if value is not None}
        self.values = {**config, **given}
        self.searched = given if (folder / GENERATION).is_file() else dict(config)
        if not vocabulary:
            raise InputError("its tokenizer has no tokens", where=str(folder), fix="get the whole folder again")
        last = max(vocabulary, key=vocabulary.__getitem__)
        if vocabulary[last] >= size:
            what = f"{last!r} has the id {vocabulary[last]}, and the model {size} tokens"
            raise InputError(what, where=str(folder), fix="get the tokenizer that belongs to the model")

    def token(self, role: str) -> int | None:
        """The id of the "bos" token, or of another. Raises InputError where there are several."""
        value = self.values.get(f"{role}_token_id")
        if isinstance(value, list) and len(value) > 1:
            raise InputError(f"{role}_token_id is {value}: only one can be read", where=str(self.folder))
        value = value[0] if isinstance(value, list) and value else value
        if type(value) is int and 0 <= value < self.size:
            return value
        return self.named(role)

    def ends(self) -> Ids:
        """All tokens that end a text; the one that is named as such comes first."""
        value = self.values.get("eos_token_id")
        found = [index for index in value if type(index) is int] if isinstance(value, list) else []
        if any(not 0 <= index < self.size for index in found):
            raise InputError(f"eos_token_id is {value}: not all are tokens of {self.size}", where=str(self.folder))
        if len(found) < 2:
            one = self.token("eos")
            return [] if one is None else [one]
        name = self.named("eos")
        return sorted(dict.fromkeys(found), key=lambda index: (index != name, found.index(index)))

    def named(self, role: str) -> int | None:
        key = f"{role}_token"
        names = [spelled(self.names, key)] if key in self.names else CALLED.get(role, ())  # null: there is none
        return next((self.vocabulary[name] for name in names if name in self.vocabulary), None)

    def special(self, *, bos: int, eos: int) -> SpecialTokens:
        return SpecialTokens(
            bos=bos,
            eos=eos,
            pad=self.token("pad"),
            unk=self.named("unk"),
            mask=self.named("mask"),
            spelled=not self.names.get("split_special_tokens", False),
        )

    def forbidden(self) -> Ids:
        """The tokens that are never generated; from `bad_words_ids`, the words of one token."""
        bad, more = self.searched.get("bad_words_ids") or [], self.searched.get("suppress_tokens") or []
        if not isinstance(more, list) or not isinstance(bad, list) or not all(isinstance(ids, list) for ids in bad):
            raise InputError("bad_words_ids or suppress_tokens lists no tokens", where=str(self.folder / GENERATION))
        found = [*(ids[0] for ids in bad if len(ids) == 1), *more]
        return sorted({index for index in found if type(index) is int and 0 <= index < self.size})

    def begin(self) -> Ids:
        """The tokens that every target begins with. Raises InputError for an invalid one."""
        first = self.searched.get("forced_bos_token_id")
        if first is None and self.searched.get("force_bos_token_to_be_generated"):
            first = self.token("bos")
        if first is None:
            return []
        if type(first) is not int or not 0 <= first < self.size:
            raise InputError(f"forced_bos_token_id is {first!r}, which is no token", where=str(self.folder))
        return [first]

    def search(self, *, eos: int, context_length: int) -> dict[str, Any]:
        """The settings of the search, for `Decoding`. The longest target is that of the files, or the model's
        `context_length`; at the latter no end is forced.

        Raises InputError for settings that would change the search and are not supported.
        """
        said, where = self.searched, str(self.folder / GENERATION)
        for key, neutral in NEUTRAL.items():
            if said.get(key) not in (None, neutral, []):
                raise InputError(f"{key} is {said[key]!r}: only {neutral!r} can be followed", where=where)
        if (early := said.get("early_stopping")) not in (None, True, False):
            raise InputError(f"early_stopping is {early!r}: only True or False can be followed", where=where)
        bad = said.get("bad_words_ids")
        if isinstance(bad, list) and any(isinstance(ids, list) and len(ids) > 1 for ids in bad):
            raise InputError("bad_words_ids has words of several tokens, which cannot be followed", where=where)

        def number(key: str, default: Any) -> Any:
            return default if said.get(key) is None else said[key]

        found = {
            "beam": number("num_beams", 1),
            "length_penalty": number("length_penalty", 1.0),
            "no_repeat": number("no_repeat_ngram_size", 0),
        }
        try:  # their limits count the token that a target begins with
            longest = number("max_new_tokens", number("max_length", context_length) - 1)
            shortest = number("min_new_tokens", number("min_length", 0) - 1)
            found |= {"longest": longest}
            found |= {"shortest": shortest} if shortest > 0 else {}
        except TypeError:
            raise InputError("a length is no number", where=where) from None
        found |= {"renormalise": True} if said.get("renormalize_logits") else {}
        if number("early_stopping", False) is not True:  # their default
            found["early_stopping"] = False
        last = said.get("forced_eos_token_id")
        if last not in (None, eos, [eos]):
            raise InputError(f"forced_eos_token_id is {last!r}: only {eos} can be followed", where=where)
        if last is not None and longest < context_length - 1:
            return found | {"forced_eos": True}
        return found | ({} if "early_stopping" in found else {"finished_first": False})


def search_said(folder: Path, config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The file with the settings of search and sampling (generation_config.json or, without it, config.json), and those
    settings that are not neutral."""
    own = (folder / GENERATION).is_file()
    given = read_object(folder / GENERATION) if own else config
    file, said = GENERATION if own else CONFIG, {key: value for key, value in given.items() if value is not None}
    neutral = {key: value for key, value in NEUTRAL.items() if key != "do_sample"} | ALSO_NEUTRAL
    found = {key: said[key] for key in neutral if said.get(key) not in (None, neutral[key], [])}
    if not said.get("do_sample"):
        return file, found
    drawn = {key: said.get(key, theirs) for key, (theirs, _) in DRAWS.items()}
    return file, {key: value for key, value in drawn.items() if value not in (None, DRAWS[key][1])} | found


def read_tokenizer(folder: Path, *, framed: bool) -> tokenizers.Tokenizer:
    """The folder's tokenizer, with the tokens around a text that tokenizer_config.json asks for. A byte-level tokenizer
    that is made from bare lists puts "<s>" and "</s>" around a text if it is `framed`."""
    names = token_names(folder)
    if not (folder / TOKENIZER).is_file():
        return tokenizer_of_lists(folder, names, framed=framed)
    refuse_harmful(files.read_bytes(folder / TOKENIZER, limit=SPM_LIMIT), where=folder / TOKENIZER)
    inner = read_inner(folder / TOKENIZER)
    _set_as_told(inner, names)
    inner.no_truncation()
    inner.no_padding()
    if "add_bos_token" in names or "add_eos_token" in names:
        sides = []
        for role in ("bos", "eos"):
            index = inner.token_to_id(spelled(names, f"{role}_token"))
            sides.append([index] if names.get(f"add_{role}_token") and index is not None else [])
        set_around(inner, *sides)
    return inner


def _set_as_told(inner: tokenizers.Tokenizer, names: Mapping[str, Any]) -> None:
    """Sets lower case, accents and the first space as in tokenizer_config.json: if it names a tokenizer class of its
    own, it takes precedence over tokenizer.json."""
    if names.get("tokenizer_class") in AS_WRITTEN:
        return
    for part, kind in (("normalizer", normalizers.BertNormalizer), ("pre_tokenizer", pre_tokenizers.ByteLevel)):
        own = getattr(inner, part)
        if isinstance(own, kind):
            for key, ours in TOLD.items():
                if isinstance(names.get(key), bool) and hasattr(own, ours):
                    setattr(own, ours, names[key])
            setattr(inner, part, own)


def framed(tokenizer: Tokenizer, before: Ids, after: Ids, *, spaced: bool = True) -> tokenizers.Tokenizer:
    """A tokenizer of the library that puts these tokens around a text."""
    document = json.loads(tokenizer.json())
    if tokenizer.ours:  # its marks are recognised everywhere, including the space before them
        marks = {tokenizer.mask, *tokenizer.sentinels}
        document["added_tokens"] = [
            token | ({"special": False, "normalized": True, "lstrip": spaced} if token["id"] in marks else {})
            for token in document["added_tokens"]
        ]
    inner = tokenizers.Tokenizer.from_str(json.dumps(document))
    if tokenizer.ours or around(inner) != (before, after):
        set_around(inner, before, after)
    return inner


def around(inner: tokenizers.Tokenizer) -> tuple[Ids, Ids]:
    """The tokens that a tokenizer puts before a text, and after it."""
    found = inner.encode(_text_of_tokens(inner))
    own = [place for place, added in enumerate(found.special_tokens_mask) if not added] or [len(found.ids)]
    return found.ids[: own[0]], found.ids[own[-1] + 1 :]


def _text_of_tokens(inner: tokenizers.Tokenizer) -> str:
    """A text that has tokens: a vocabulary may lack the letter "a", and a token for unknown characters."""
    added = {token.content for token in inner.get_added_tokens_decoder().values()}
    texts = ("a", *(piece for piece in inner.get_vocab() if piece not in added))
    return next((text for text in texts if inner.encode(text, add_special_tokens=False).ids), "a")


def between(inner: tokenizers.Tokenizer) -> Ids:
    """The tokens that a tokenizer puts between two texts."""
    text = _text_of_tokens(inner)
    found = inner.encode(text, text)
    sides = found.sequence_ids
    first, second = max(place for place, own in enumerate(sides) if own == 0), sides.index(1)
    return found.ids[first + 1 : second]


def hub_tokenizer(
    tokenizer: Tokenizer,
    inner: tokenizers.Tokenizer,
    roles: Mapping[str, int | None],
    *,
    longest: int,
    types: bool = False,
    turns: bool = False,
) -> Files:
    """tokenizer.json and tokenizer_config.json. `roles` are the ids of the "bos" token and others. With `types`, the
    model gets the type of each token of a pair of texts; with `turns`, texts may be conversations as a template writes
    them.

    transformers recognises a mask only by its role, and a turn of a conversation only by its spelling: with either,
    every control token that a text spells is recognised.
    """
    spelled = tokenizer.special.spelled or roles.get("mask") is not None or (turns and bool(tokenizer.extra))
    names = {f"{role}_token": inner.id_to_token(index) for role, index in roles.items() if index is not None}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", *(["token_type_ids"] if types else []), "attention_mask"],
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": not spelled,
    }
    return {TOKENIZER: inner.to_str().encode(), TOKENIZER_CONFIG: settings | names}


def read_chat(folder: Path) -> Files:
    """The files of a run that keep the chat template of a folder of the Hub."""
    said = optional(folder / TOKENIZER_CONFIG).get("chat_template")
    return _chat_program(folder) | ({} if said is None else {CHAT_SAID: said})


def refuse_harmful_chat(kept: Files) -> None:
    """Tries the templates of `read_chat`, which are programs, on a word. Raises InputError for one that harms."""
    said = kept.get(CHAT_SAID)
    several = [one.get("template") for one in said if isinstance(one, dict)] if isinstance(said, list) else [said]
    for source in (kept.get(CHAT, b"").decode(errors="replace"), *several):
        if isinstance(source, str) and source:
            ChatTemplate(source).refuse_harmful()


def _chat_program(folder: Path) -> Files:
    file = folder / CHAT
    return {CHAT: files.read_bytes(file, limit=SPM_LIMIT)} if file.is_file() else {}


def chat_files(run: Path) -> Files:
    """The files of a run with its chat template."""
    found = _chat_program(run)
    if (run / CHAT_SAID).is_file():
        found[CHAT_SAID] = files.read_json(run / CHAT_SAID)
    return found


def write_chat(run: Path, beside: Files) -> Files:
    """The files beside the weights, with the run's chat template if it has one."""
    found = beside | chat_files(run)
    said = found.pop(CHAT_SAID, None)
    if said is not None:
        found[TOKENIZER_CONFIG] = {**found[TOKENIZER_CONFIG], "chat_template": said}
    return found


def read_framed(folder: Path, said: Mapping[str, Any], *, size: int) -> Tokenizer:
    """The tokenizer of an encoder. Raises InputError unless it puts one token before a text and one after it."""
    inner = read_tokenizer(folder, framed=True)
    tokens = HubTokens(folder, said, inner.get_vocab(), size=size)
    before, after = around(inner)
    if len(before) != 1 or len(after) != 1:
        what = f"its tokenizer puts the tokens {before} before a text and {after} after it, and not one on each side"
        raise InputError(what, where=str(folder))
    special = tokens.special(bos=before[0], eos=after[0])
    return Tokenizer(inner, replace(special, separators=len(between(inner))))


def write_framed(
    tokenizer: Tokenizer, embed: EmbedConfig, first: Literal["as is", "spaced", "one space"] = "as is"
) -> HubFiles:
    """The files of an encoder's tokenizer. `first`: whether our tokenizer puts a space before each text of this task,
    or only before one that has none."""
    bos, eos, pad = tokenizer.bos, tokenizer.eos, tokenizer.pad
    inner = framed(tokenizer, [bos], [eos], spaced=tokenizer.carries_spaces)
    if tokenizer.ours and first != "as is":
        one = [normalizers.Replace(Regex(r"\A {2,}"), " ")] if first == "one space" else []
        inner.normalizer = normalizers.Sequence([space_before(tokenizer), *one])
    roles = {"cls": bos, "sep": eos, "pad": pad, "unk": tokenizer.unk, "mask": tokenizer.mask}
    types = embed.types > 1 and embed.position_embeddings == "learned"  # not for ModernBERT
    made = hub_tokenizer(tokenizer, inner, roles, longest=embed.context_length, types=types)
    return HubFiles(made, {"start": bos, "end": eos, "pad": pad})


def space_before(tokenizer: Tokenizer) -> normalizers.Normalizer:
    """Puts a space before a text, but not before a mark alone: the library normalises the marks themselves too."""
    marks = _marks(tokenizer)
    alone = normalizers.Replace(Regex(rf"\A (?=({marks})\z)"), "")
    return normalizers.Sequence([normalizers.Prepend(" "), *([alone] if marks else [])])


def text_decoder(tokenizer: Tokenizer, decoder: decoders.Decoder) -> decoders.Decoder:
    """Our tokenizer's decoder, which keeps the space before a mark and drops that before the first word."""
    marks = _marks(tokenizer)
    spaced = [decoders.Replace(Regex(rf"\A(?=({marks})\z)"), " ")] if marks else []
    return decoders.Sequence([*spaced, decoder, decoders.Strip(" ", 1, 0)])


def _marks(tokenizer: Tokenizer) -> str:
    """A pattern for the marks of our tokenizer; "" where it has none."""
    marks = [*tokenizer.sentinels, *([] if tokenizer.mask is None else [tokenizer.mask])]
    return "|".join(tokenizer.pieces(marks))


def generation_config(search: Mapping[str, Any], forbidden: Sequence[int]) -> dict[str, Any]:
    given = {key: value for key, value in search.items() if value is not None}
    return given | ({"suppress_tokens": [*forbidden]} if forbidden else {})
