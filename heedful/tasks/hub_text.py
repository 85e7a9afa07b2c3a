"""What stands beside the weights of a text model: its tokenizer, and which tokens begin, end and pad a text.

`read_*` makes a run's small files from a folder of the Hub, task.json among them; `write_*` does the reverse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Regex, decoders, normalizers

from heedful.core.config import from_json, to_json
from heedful.core.embed import EmbedConfig
from heedful.data.labelled import Answer
from heedful.data.spm import from_spm, read_spm
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.models.classifier import ClassifierConfig
from heedful.models.encoder import EncoderConfig
from heedful.models.lm import LMConfig
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.store import files
from heedful.store.hf.folder import CONFIG
from heedful.tasks.classify import About, TextClassifier
from heedful.tasks.embed import TextEncoder
from heedful.tasks.fill import Filler
from heedful.tasks.folder import NUMBERS, read_numbers, tokenizer_files
from heedful.tasks.generate import LanguageModel
from heedful.tasks.hub_tokenizer import (
    GENERATION,
    MERGES,
    SPM_LIMIT,
    TOKENIZER,
    TOKENIZER_CONFIG,
    Files,
    Said,
    around,
    framed,
    hub_tokenizer,
    read_tokenizer,
    separators,
)
from heedful.tasks.translate import Decoding, Translator

SPM = ("source.spm", "target.spm")
PROBLEMS: dict[Answer, str] = {
    "label": "single_label_classification",
    "labels": "multi_label_classification",
    "score": "regression",
}


class Written(NamedTuple):
    """The files beside the weights, and the ids and names that the family's config.json repeats."""

    files: Files
    ids: dict[str, Any]


def read_language_model(folder: Path, said: Mapping[str, Any], config: LMConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out."""
    inner = read_tokenizer(folder, framed=False)
    tokens = Said(folder, said, inner.get_vocab(), size=config.embed.vocab_size)
    bos, eos = tokens.token("bos"), tokens.token("eos")
    bos, eos = eos if bos is None else bos, bos if eos is None else eos
    if bos is None or eos is None:
        raise InputError("neither a bos_token_id nor an eos_token_id of its tokens", where=str(folder / CONFIG))
    tokenizer = Tokenizer(inner, tokens.special(bos=bos, eos=eos))
    about = {"task": "generate", "before": around(inner)[0], "end": eos, "forbidden": tokens.forbidden()}
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": about}


def write_language_model(run: Path, model: LanguageModel) -> Written:
    tokenizer = model.tokenizer
    inner = framed(tokenizer, model.before, [])
    special = tokenizer.special
    search = {"bos_token_id": special.bos, "eos_token_id": model.end, "pad_token_id": special.pad}
    roles = {"bos": special.bos, "eos": model.end, "pad": special.pad, "unk": special.unk}
    made = hub_tokenizer(tokenizer, inner, roles, longest=model.context)
    return Written(
        made | {GENERATION: _generation(search, model.forbidden)}, {"start": tokenizer.bos, "end": model.end}
    )


def read_translator(folder: Path, said: Mapping[str, Any], config: Seq2SeqConfig) -> Files:
    """The tokenizer is a tokenizer.json for both sides; or a SentencePiece model a side, and their pieces' ids.

    `said`: their config.json, with the ids that it leaves out.
    """
    apart = (folder / NUMBERS).is_file() and not any((folder / name).is_file() for name in (TOKENIZER, MERGES))
    inner = None if apart else read_tokenizer(folder, framed=True)
    numbers = read_numbers(folder / NUMBERS) if inner is None else inner.get_vocab()
    tokens = Said(folder, said, numbers, size=min(config.source.vocab_size, config.target.vocab_size))
    bos, eos = tokens.token("decoder_start"), tokens.token("eos")
    if bos is None or eos is None:
        raise InputError("decoder_start_token_id or eos_token_id is none of its tokens", where=str(folder / CONFIG))
    if tokens.names.get("separate_vocabs"):
        raise InputError("separate_vocabs cannot be read yet", where=str(folder))
    special = tokens.special(bos=bos, eos=eos)
    kept: Files = {}
    if inner is not None:
        (before, after), source = around(inner), Tokenizer(inner, special)
        target = source
    else:
        before, after = [], [eos]
        kept = {name: files.read_bytes(folder / name, limit=SPM_LIMIT) for name in SPM}
        controls = [name for name, index in numbers.items() if index in (bos, eos, special.pad, special.unk)]
        source, target = (
            Tokenizer(from_spm(read_spm(data, where=folder / name), numbers, controls), special, numbers)
            for name, data in kept.items()
        )
    decode = tokens.search(eos=eos, places=config.target.places.size)
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
    if "early_stopping" in tokens.searched:  # what is found is final when a beam is full: kept for the way back
        about["early_stopping"] = tokens.searched["early_stopping"]
    return kept | tokenizer_files(source, target) | {"task.json": about}


def write_translator(run: Path, translator: Translator) -> Written:
    """Raises InputError for two tokenizers that did not come from SentencePiece."""
    source, target, about = translator.source, translator.target, translator.about
    eos, pad, decoding = target.eos, target.pad, translator.decoding()
    config: Any = translator.model.config
    places = config.target.places.size
    if source.numbers is not None:
        made: Files = {name: files.read_bytes(run / name, limit=SPM_LIMIT) for name in (*SPM, NUMBERS)}
        made[TOKENIZER_CONFIG] = {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": about["source"],
            "target_lang": about["target"],
            "model_max_length": places,
        }
        roles = {"eos": eos, "pad": pad, "unk": source.unk}
        made[TOKENIZER_CONFIG] |= {
            f"{role}_token": source.pieces([index])[0] for role, index in roles.items() if index is not None
        }
    elif source is target:
        before, after = translator.around
        inner = framed(source, before, after)
        if source.ours:
            inner.normalizer = _space_before(source)
            inner.decoder = decoders.Sequence([inner.decoder, decoders.Strip(" ", 1, 0)])
        special = source.special
        roles = {"bos": [*before, special.bos][0], "eos": eos, "pad": special.pad, "unk": special.unk}
        made = hub_tokenizer(source, inner, roles | {"mask": special.mask}, longest=places)
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
        "min_length": decoding.shortest + 1 if decoding.shortest else None,
        "max_length": places if decoding.longest is None else decoding.longest + 1,
        "forced_eos_token_id": eos if decoding.forced_eos else None,
        "early_stopping": about.get("early_stopping", True if source.ours else None),
    }
    made[GENERATION] = _generation(search, translator.forbidden)
    return Written(made, {"start": target.bos, "end": eos, "pad": pad})


def read_encoder(folder: Path, said: Mapping[str, Any], config: EncoderConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out. Raises InputError for a head over the vocabulary
    without a mask, and as `_read_framed`."""
    tokenizer = _read_framed(folder, said, size=config.embed.vocab_size)
    if config.words and tokenizer.mask is None:
        raise InputError("no mask in its vocabulary", where=str(folder), fix="get the tokenizer of the model")
    about: dict[str, Any] = {"task": "fill" if config.words else "encode"}
    about |= {"pairs": "next"} if config.words and config.pairs else {}
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": about}


def read_classifier(folder: Path, said: Mapping[str, Any], config: ClassifierConfig) -> Files:
    """`said`: their config.json, with the ids that it leaves out. Raises InputError for a problem that is none of
    theirs, and as `_read_framed`."""
    tokenizer = _read_framed(folder, said, size=config.body.embed.vocab_size)
    names = said.get("id2label") or {str(i): f"LABEL_{i}" for i in range(config.answers or 1)}
    problem = said.get("problem_type") or ("regression" if config.answers == 1 else PROBLEMS["label"])
    answer = next((answer for answer, name in PROBLEMS.items() if name == problem), None)
    if answer is None or (answer == "score" and config.answers != 1):
        raise InputError(f"problem_type is {problem!r} of {config.answers} answers", where=str(folder / CONFIG))
    labels = () if answer == "score" else tuple(str(names[key]) for key in sorted(names, key=int))
    about = {"task": "classify", **to_json(About(answer=answer, labels=labels))}
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": about}


def _read_framed(folder: Path, said: Mapping[str, Any], *, size: int) -> Tokenizer:
    """The tokenizer of an encoder. Raises InputError where a text has not one token before it and one after it."""
    inner = read_tokenizer(folder, framed=True)
    tokens = Said(folder, said, inner.get_vocab(), size=size)
    before, after = around(inner)
    if len(before) != 1 or len(after) != 1:
        what = f"its tokenizer puts the tokens {before} before a text and {after} after it, and not one on each side"
        raise InputError(what, where=str(folder))
    special = tokens.special(bos=before[0], eos=after[0])
    return Tokenizer(inner, replace(special, separators=separators(inner)))


def write_encoder(run: Path, served: Filler | TextEncoder) -> Written:
    return _write_framed(served.tokenizer, served.model.config.embed)


def write_classifier(run: Path, served: TextClassifier) -> Written:
    """Raises InputError for answers that they have no words for."""
    says = served.says
    if says.answer not in PROBLEMS or says.symmetric or (says.mean, says.deviation) != (0.0, 1.0):
        what = f"answers ({says.answer}) that are choices, of pairs in both orders, or standard scores"
        raise InputError(f"BERT and RoBERTa have no words for {what}", where=str(run))
    made = _write_framed(served.tokenizer, served.model.config.body.embed)
    labels = says.labels or ("LABEL_0",)
    return Written(made.files, made.ids | {"labels": labels, "problem": PROBLEMS[says.answer]})


def _write_framed(tokenizer: Tokenizer, embed: EmbedConfig) -> Written:
    bos, eos, pad = tokenizer.bos, tokenizer.eos, tokenizer.pad
    inner = framed(tokenizer, [bos], [eos], spaced=tokenizer.carries_spaces)
    roles = {"cls": bos, "sep": eos, "pad": pad, "unk": tokenizer.unk, "mask": tokenizer.mask}
    made = hub_tokenizer(tokenizer, inner, roles, longest=embed.places.size, types=embed.types > 1)
    return Written(made, {"start": bos, "end": eos, "pad": pad})


def _space_before(tokenizer: Tokenizer) -> normalizers.Normalizer:
    """Puts a space before a text. Their library normalises the marks that it looks for too: they stay as they are."""
    marks = [*tokenizer.sentinels, *([] if tokenizer.mask is None else [tokenizer.mask])]
    alone = normalizers.Replace(Regex(rf"\A (?=({'|'.join(tokenizer.pieces(marks))})\z)"), "")
    return normalizers.Sequence([normalizers.Prepend(" "), *([alone] if marks else [])])


def _generation(search: Mapping[str, Any], forbidden: Sequence[int]) -> dict[str, Any]:
    given = {key: value for key, value in search.items() if value is not None}
    return given | ({"suppress_tokens": [*forbidden]} if forbidden else {})
