"""What stands beside the weights of a text model: its tokenizer, and which tokens begin, end and pad a text.

`read_*` makes a run's small files from a folder of the Hub, task.json among them; `write_*` does the reverse.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from tokenizers import decoders, normalizers, processors

from heedful.core.config import from_json
from heedful.data.spm import from_spm, read_spm
from heedful.data.tokenizer import SpecialTokens, Tokenizer, read_inner
from heedful.errors import InputError, MissingError
from heedful.models.lm import LMConfig
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.store import files
from heedful.store.hf.folder import CONFIG, read_object
from heedful.tasks.folder import NUMBERS, read_numbers, tokenizer_files
from heedful.tasks.generate import LanguageModel
from heedful.tasks.translate import Decoding, Translator

GENERATION, TOKENIZER, TOKENIZER_CONFIG = "generation_config.json", "tokenizer.json", "tokenizer_config.json"
SPM = ("source.spm", "target.spm")
SPM_LIMIT = 1 << 28  # bytes

Files = dict[str, Any]  # bytes or a JSON value, by a file's name
Ids = list[int]


class Written(NamedTuple):
    """The files beside the weights, and the ids that the family's config.json repeats."""

    files: Files
    ids: dict[str, int]


class _Said:
    """What a folder of the Hub says of tokens: generation_config.json before config.json, whose content with its
    defaults is `config`, and tokenizer_config.json for what neither says. The model has `size` tokens."""

    def __init__(self, folder: Path, config: Mapping[str, Any], vocabulary: Mapping[str, int], *, size: int) -> None:
        self.folder, self.vocabulary, self.size = folder, vocabulary, size
        self.names = {"unk_token": "<unk>"} | _optional(folder / TOKENIZER_CONFIG)
        search = {key: value for key, value in _optional(folder / GENERATION).items() if value is not None}
        self.values = {**config, **search}
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

    def named(self, role: str) -> int | None:
        name = self.names.get(f"{role}_token")
        return self.vocabulary.get(str(name["content"] if isinstance(name, dict) else name))

    def special(self, *, bos: int, eos: int) -> SpecialTokens:
        spelled = not self.names.get("split_special_tokens", False)
        return SpecialTokens(bos=bos, eos=eos, pad=self.token("pad"), unk=self.named("unk"), spelled=spelled)

    def begin(self) -> Ids:
        """What every target begins with."""
        first = self.values.get("forced_bos_token_id")
        if first is None and self.values.get("force_bos_token_to_be_generated"):
            first = self.token("bos")
        if first is None:
            return []
        if type(first) is not int or not 0 <= first < self.size:
            raise InputError(f"forced_bos_token_id is {first!r}, which is no token", where=str(self.folder))
        return [first]

    def forbidden(self) -> Ids:
        """What is never generated. Of `bad_words_ids`, the words of one token."""
        bad, more = self.values.get("bad_words_ids") or [], self.values.get("suppress_tokens") or []
        if not isinstance(more, list) or not isinstance(bad, list) or not all(isinstance(ids, list) for ids in bad):
            raise InputError("bad_words_ids or suppress_tokens lists no tokens", where=str(self.folder / GENERATION))
        found = [*(ids[0] for ids in bad if len(ids) == 1), *more]
        return sorted({index for index in found if type(index) is int and 0 <= index < self.size})


def read_language_model(folder: Path, said: Mapping[str, Any], config: LMConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out."""
    inner = _read_inner(folder)
    tokens = _Said(folder, said, inner.get_vocab(), size=config.embed.vocab_size)
    bos, eos = tokens.token("bos"), tokens.token("eos")
    bos, eos = eos if bos is None else bos, bos if eos is None else eos
    if bos is None or eos is None:
        raise InputError("neither a bos_token_id nor an eos_token_id of its tokens", where=str(folder / CONFIG))
    tokenizer = Tokenizer(inner, tokens.special(bos=bos, eos=eos))
    about = {"task": "generate", "before": _around(inner)[0], "end": eos, "forbidden": tokens.forbidden()}
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": about}


def write_language_model(run: Path, model: LanguageModel) -> Written:
    tokenizer = model.tokenizer
    inner = _framed(tokenizer, model.before, [])
    search = {"bos_token_id": tokenizer.bos, "eos_token_id": model.end, "pad_token_id": tokenizer.special.pad}
    made = _hub_tokenizer(tokenizer, inner, eos=model.end, longest=model.context)
    return Written(
        made | {GENERATION: _generation(search, model.forbidden)}, {"start": tokenizer.bos, "end": model.end}
    )


def read_translator(folder: Path, said: Mapping[str, Any], config: Seq2SeqConfig) -> Files:
    """The tokenizer is a tokenizer.json for both sides; or a SentencePiece model a side, and their pieces' ids.

    `said`: their config.json, with the ids that it leaves out.
    """
    whole = (folder / TOKENIZER).is_file()
    inner = _read_inner(folder) if whole or not (folder / NUMBERS).is_file() else None
    numbers = read_numbers(folder / NUMBERS) if inner is None else inner.get_vocab()
    tokens = _Said(folder, said, numbers, size=min(config.source.vocab_size, config.target.vocab_size))
    bos, eos, values = tokens.token("decoder_start"), tokens.token("eos"), tokens.values
    if bos is None or eos is None:
        raise InputError("decoder_start_token_id or eos_token_id is none of its tokens", where=str(folder / CONFIG))
    if tokens.names.get("separate_vocabs"):
        raise InputError("separate_vocabs cannot be read yet", where=str(folder))
    special = tokens.special(bos=bos, eos=eos)
    kept: Files = {}
    if inner is not None:
        (before, after), source = _around(inner), Tokenizer(inner, special)
        target = source
    else:
        before, after = [], [eos]
        kept = {name: files.read_bytes(folder / name, limit=SPM_LIMIT) for name in SPM}
        controls = [name for name, index in numbers.items() if index in (bos, eos, special.pad, special.unk)]
        source, target = (
            Tokenizer(from_spm(read_spm(data, where=folder / name), numbers, controls), special, numbers)
            for name, data in kept.items()
        )
    decode = {
        "beam": values.get("num_beams") or 1,
        "length_penalty": values.get("length_penalty") or 1.0,
        "no_repeat": values.get("no_repeat_ngram_size") or 0,
    }
    from_json(Decoding, decode, where=str(folder / GENERATION))  # which looks at the type of every value
    about = {
        "task": "translate",
        "source": str(tokens.names.get("source_lang") or "source"),
        "target": str(tokens.names.get("target_lang") or "target"),
        "before": before,
        "after": after,
        "begin": tokens.begin(),
        "forbidden": tokens.forbidden(),
        "decode": decode,
    }
    return kept | tokenizer_files(source, target) | {"task.json": about}


def write_translator(run: Path, translator: Translator) -> Written:
    """Raises InputError for two tokenizers that did not come from SentencePiece."""
    source, target, about = translator.source, translator.target, translator.about
    eos, pad, decoding = target.eos, target.pad, translator.decoding()
    config: Any = translator.model.config
    longest = config.target.places.size
    if source.numbers is not None:
        made: Files = {name: files.read_bytes(run / name, limit=SPM_LIMIT) for name in (*SPM, NUMBERS)}
        made[TOKENIZER_CONFIG] = {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": about["source"],
            "target_lang": about["target"],
            "model_max_length": longest,
        }
        roles = {"eos": eos, "pad": pad, "unk": source.unk}
        made[TOKENIZER_CONFIG] |= {
            f"{role}_token": source.pieces([index])[0] for role, index in roles.items() if index is not None
        }
    elif source is target:
        before, after = translator.around
        inner = _framed(source, before, after)
        if source.ours:
            inner.normalizer = normalizers.Prepend(" ")
            inner.decoder = decoders.Sequence([inner.decoder, decoders.Strip(" ", 1, 0)])
        made = _hub_tokenizer(source, inner, eos=eos, longest=longest)
    else:
        raise InputError("its sides have a tokenizer each, for which the Hub has no words", where=str(run))
    search = {
        "decoder_start_token_id": target.bos,
        "forced_bos_token_id": next(iter(translator.begin), None),
        "eos_token_id": eos,
        "pad_token_id": pad,
        "num_beams": decoding.beam,
        "length_penalty": decoding.length_penalty,
        "no_repeat_ngram_size": decoding.no_repeat or None,
        "max_length": longest,
    }
    made[GENERATION] = _generation(search, translator.forbidden)
    return Written(made, {"start": target.bos, "end": eos, "pad": pad})


def _read_inner(folder: Path) -> tokenizers.Tokenizer:
    """Their tokenizer.json, with the tokens around a text that tokenizer_config.json asks for."""
    if not (folder / TOKENIZER).is_file():
        fix = "with transformers: AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        raise MissingError("no tokenizer", where=str(folder / TOKENIZER), fix=fix)
    inner = read_inner(folder / TOKENIZER)
    inner.no_truncation()
    inner.no_padding()
    names = _optional(folder / TOKENIZER_CONFIG)
    if "add_bos_token" in names or "add_eos_token" in names:
        sides = []
        for role in ("bos", "eos"):
            name = names.get(f"{role}_token")
            index = inner.token_to_id(str(name["content"] if isinstance(name, dict) else name))
            sides.append([index] if names.get(f"add_{role}_token") and index is not None else [])
        _set_around(inner, *sides)
    return inner


def _framed(tokenizer: Tokenizer, before: Ids, after: Ids) -> tokenizers.Tokenizer:
    """A tokenizer of the library that puts these tokens around a text."""
    inner = tokenizers.Tokenizer.from_str(tokenizer.json())
    if tokenizer.ours or _around(inner) != (before, after):
        _set_around(inner, before, after)
    return inner


def _around(inner: tokenizers.Tokenizer) -> tuple[Ids, Ids]:
    """The tokens that it puts before a text, and after it."""
    found = inner.encode("a")
    own = [place for place, added in enumerate(found.special_tokens_mask) if not added] or [len(found.ids)]
    return found.ids[: own[0]], found.ids[own[-1] + 1 :]


def _set_around(inner: tokenizers.Tokenizer, before: Ids, after: Ids) -> None:
    names = {index: str(inner.id_to_token(index)) for index in (*before, *after)}
    single = [*(names[index] for index in before), "$A", *(names[index] for index in after)]
    added = [(name, index) for index, name in names.items()]
    inner.post_processor = processors.TemplateProcessing(single=single, special_tokens=added)


def _hub_tokenizer(tokenizer: Tokenizer, inner: tokenizers.Tokenizer, *, eos: int, longest: int) -> Files:
    """tokenizer.json and tokenizer_config.json."""
    special = tokenizer.special
    roles = {"bos": special.bos, "eos": eos, "pad": special.pad, "unk": special.unk}
    names = {f"{role}_token": inner.id_to_token(index) for role, index in roles.items() if index is not None}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": not special.spelled,
    }
    return {TOKENIZER: inner.to_str().encode(), TOKENIZER_CONFIG: settings | names}


def _generation(search: Mapping[str, Any], forbidden: Sequence[int]) -> dict[str, Any]:
    given = {key: value for key, value in search.items() if value is not None}
    return given | ({"suppress_tokens": [*forbidden]} if forbidden else {})


def _optional(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}
