"""The languages of a translator in a folder of the Hub: which tokens name them, and which direction is asked for."""

import re
from collections.abc import Mapping
from typing import Any

from heedful.data.lines import listed
from heedful.data.text.directions import ARROW
from heedful.data.text.headers import meaning
from heedful.errors import InputError
from heedful.exchange.hub import HubTokens
from heedful.exchange.lists import added_tokens
from heedful.tasks.translate.languages import Languages
from heedful.tasks.translate.spec import TranslatorSpec

MBART, FLORES = r"[a-z]{2,3}_[A-Z]{2}", r"[a-z]{3}_[A-Z][a-z]{3}"
# How the tokens of languages are spelled, by the model_type.
SPELLED = {"mbart": MBART, "m2m_100": rf"__[a-z]{{2,3}}__|{FLORES}", "marian": r">>\w+<<"}
# Of M2M-100, in the order of their ids, where a folder does not list them (Fan et al. 2020, table 1).
M2M100 = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
FIRST_MBART = 25  # languages: the first of its models ends a source with one, those of fifty begin one so
PARAMS = "task_specific_params"


def with_languages(numbers: Mapping[str, int], names: Mapping[str, Any], *, where: str) -> dict[str, int]:
    """The ids of pieces, and after them those of the languages, of which a vocab.json has none. Raises InputError."""
    languages = [name for name in added_tokens(names) if re.fullmatch(SPELLED["m2m_100"], name)]
    if not languages and names.get("language_codes", "m2m100") == "m2m100":
        languages = [f"__{name}__" for name in M2M100.split()]
    if not languages:
        fix = "get special_tokens_map.json, which lists them, from where the model is from"
        raise InputError("no languages among its special tokens", where=where, fix=fix)
    last = max(numbers.values())
    return {**numbers, **{name: last + 1 + i for i, name in enumerate(languages)}}


def read_languages(tokens: HubTokens, said: Mapping[str, Any]) -> Languages | None:
    """What the files say of languages; None of a model of one direction."""
    kind = str(said["model_type"])
    if kind in ("t5", "mt5"):
        prefixes = dict(_prefixes(said.get(PARAMS)))
        return Languages(prefixes=prefixes) if prefixes else None
    listed = sorted(tokens.vocabulary.items(), key=lambda item: item[1])
    found = {name.strip("_<>"): index for name, index in listed if re.fullmatch(SPELLED.get(kind, "(?!)"), name)}
    if not found:
        return None
    if kind == "marian":
        return Languages(tokens=found, target="before")
    reader = str(tokens.names.get("tokenizer_class") or said.get("tokenizer_class") or "")
    first = kind == "mbart" and (reader.startswith("MBartTokenizer") or (not reader and len(found) <= FIRST_MBART))
    behind = first or bool(tokens.names.get("legacy_behaviour"))
    return Languages(tokens=found, source="after" if behind else "before", target="start" if first else "begin")


def _prefixes(params: object) -> list[tuple[str, str]]:
    """Of every direction that `task_specific_params` has a prefix for: "en>de", "translate English to German: "."""
    found = []
    for name, own in (params if isinstance(params, dict) else {}).items():
        match = re.fullmatch(r"translation_([a-zA-Z-]+)_to_([a-zA-Z-]+)", str(name))
        if match and isinstance(own, dict) and isinstance(own.get("prefix"), str):
            found.append((f"{match[1]}{ARROW}{match[2]}", own["prefix"]))
    return found


def asked_for_alone(spec: TranslatorSpec) -> list[str]:
    """What is told of a folder that asks for one language, or one kind of translation, where the run has several."""
    languages = spec.languages
    several = [] if languages is None else [("to", spec.direction[1], languages.names("target"))]
    several += [("as", spec.tagged, [*(spec.tags or {})])] if spec.tagged else []
    told = []
    for way, own, names in several:
        others = [name for name in names if name != own]
        asked = f"{way} {own} alone" if own else "to a language of its own choice"
        told += [f"there it translates {asked}: ask the run itself for {listed(others)}"] if others else []
    return told


def params_of(languages: Languages) -> dict[str, Any]:
    """`task_specific_params`, from which `read_languages` reads the prefixes again."""
    named = ((each.replace(ARROW, "_to_"), prefix) for each, prefix in languages.prefixes.items())
    return {PARAMS: {f"translation_{name}": {"prefix": prefix} for name, prefix in named}} if languages.prefixes else {}


def direction_of(languages: Languages, tokens: HubTokens) -> tuple[str, str]:
    """What the files translate from and to: as they say, or else from English, and to "", which has to be asked for."""
    names = {index: name for name, index in languages.tokens.items()}
    source = str(tokens.names.get("src_lang") or "").strip("_")
    english = [name for name in languages.tokens if meaning(name.lower()) == "en"]
    target = str(tokens.names.get("tgt_lang") or "").strip("_")
    told = (tokens.searched.get("forced_bos_token_id"), tokens.values.get("decoder_start_token_id"))
    found = [names[index] for index in told if index in names]
    source = source if source in languages.tokens else (english or [*languages.tokens])[0]
    return source, target if target in languages.tokens else (found or [""])[0]


def reader_of(languages: Languages, source: str, target: str) -> dict[str, Any]:
    """What tokenizer_config.json says of a vocabulary with languages in it: the class of transformers that puts them
    around texts, and the direction."""
    first = next(iter(languages.tokens))
    if re.fullmatch(FLORES, first):
        reader = "NllbTokenizer"
    elif re.fullmatch(MBART, first):
        reader = "MBartTokenizer" if languages.target == "start" else "MBart50Tokenizer"
    else:
        reader = "M2M100Tokenizer"
    legacy = {"legacy_behaviour": True} if reader == "NllbTokenizer" and languages.source == "after" else {}
    return {"tokenizer_class": reader, "src_lang": source, "tgt_lang": target or None} | legacy
