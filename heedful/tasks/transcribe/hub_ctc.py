"""The files beside the weights of a model of CTC that hears samples, on the Hub (wav2vec 2.0): how it hears, and its
letters."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import to_json, unknown_key
from heedful.data.sound.features import Hearing
from heedful.data.sound.files import RATE
from heedful.data.tokenizer import SpecialTokens, Tokenizer
from heedful.data.vocabulary import letters
from heedful.errors import InputError
from heedful.exchange.hf.folder import read_object
from heedful.exchange.hub import Files
from heedful.exchange.lists import FIX, TOKENIZER_CONFIG, listed_tokens, spelled, token_names
from heedful.exchange.preprocessor import PREPROCESSOR
from heedful.models.speech import CTC, CTCConfig
from heedful.models.wave import WaveEncoderConfig
from heedful.run.task import HubFiles
from heedful.run.tokenizers import NUMBERS, read_piece_ids, tokenizer_files
from heedful.tasks.transcribe.use import Transcriber, TranscribeSpec

PROCESSOR = "processor_config.json"  # of newer folders: PREPROCESSOR is a part of it
SECONDS = 30  # that are heard at once, as their files name no length
# What their feature extractor must say.
FIXED = {
    "feature_extractor_type": "Wav2Vec2FeatureExtractor", "feature_size": 1, "padding_side": "right",
    "padding_value": 0.0, "sampling_rate": RATE,
}  # fmt: skip
OTHERS = ("do_normalize", "processor_class", "return_attention_mask")
ROLES = {"bos": "<s>", "eos": "</s>", "pad": "<pad>", "unk": "<unk>"}
BETWEEN = "word_delimiter_token"


def read_extractor(folder: Path, fixed: Mapping[str, Any], others: Collection[str]) -> tuple[str, dict[str, Any]]:
    """The file that says how sound is heard, and what it says. Raises InputError for a key that is in neither, and for
    another value than a fixed one."""
    path = folder / PREPROCESSOR
    if path.is_file():
        theirs = read_object(path)
    else:
        path = folder / PROCESSOR
        theirs = read_object(path).get("feature_extractor") or {}
    for key, value in theirs.items():
        if key not in fixed and key not in others:
            raise unknown_key(key, [*fixed, *others], where=str(path))
        if key in fixed and value not in (None, fixed[key]):
            raise InputError(f"{key} is {value!r}: only {fixed[key]!r} can be heard", where=str(path))
    return str(path), theirs


def read_ctc(folder: Path, config: CTCConfig) -> Files:
    """Raises InputError for sound that is heard, or letters that are listed, in another way."""
    assert isinstance(config.encoder, WaveEncoderConfig)
    _, theirs = read_extractor(folder, FIXED, OTHERS)
    hearing = Hearing(seconds=SECONDS, mels=0, step=config.encoder.step, scaled=theirs.get("do_normalize", True))
    names = token_names(folder)
    for key in ("do_lower_case", "target_lang"):
        if names.get(key):
            what = f"{key} is {names[key]!r}: only letters as they are listed can be read"
            raise InputError(what, where=str(folder / TOKENIZER_CONFIG))
    listed = {token.content: index for index, token in listed_tokens(folder, names).items()}
    numbers = read_piece_ids(folder / NUMBERS) | {n: index for n, index in listed.items() if index < config.vocab_size}
    if sorted(numbers.values()) != [*range(len(numbers))] or len(numbers) > config.vocab_size:
        what = f"{len(numbers)} tokens are not numbered from 0 to at most {config.vocab_size - 1}, as the model's"
        raise InputError(what, where=str(folder / NUMBERS), fix=FIX)
    control = {role: spelled(names, f"{role}_token", default) for role, default in ROLES.items()}
    ids = {role: numbers.get(name) for role, name in control.items()}
    if ids["pad"] != config.blank:
        what = f"{control['pad']!r} has the id {ids['pad']}, and nothing is said by {config.blank}"
        raise InputError(what, where=str(folder), fix=FIX)
    inner = letters(
        numbers,
        controls=[name for name in control.values() if name in numbers],
        between=spelled(names, BETWEEN, "|"),
        unknown=control["pad" if ids["unk"] is None else "unk"],
    )
    bos, eos = (config.blank if (index := ids[role]) is None else index for role in ("bos", "eos"))
    tokenizer = Tokenizer(inner, SpecialTokens(bos=bos, eos=eos, pad=config.blank, unk=ids["unk"], spelled=False))
    spec = TranscribeSpec(hearing=hearing)
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": {"task": "transcribe", **to_json(spec)}}


def write_ctc(run: Path, transcriber: Transcriber) -> HubFiles:
    """Raises InputError for a model of mel bands."""
    model, tokenizer, hearing = transcriber.model, transcriber.tokenizer, transcriber.spec.hearing
    assert isinstance(model, CTC)
    encoder = model.config.encoder
    if not isinstance(encoder, WaveEncoderConfig) or tokenizer.ours:
        raise InputError("a model of CTC with mel bands is of no family of the Hub", where=str(run), fix="use it here")
    names = tokenizer.names(model.config.vocab_size)
    ids = {"bos": tokenizer.bos, "eos": tokenizer.eos, "unk": tokenizer.unk}
    roles = {role: index for role, index in ids.items() if index not in (None, tokenizer.pad)} | {"pad": tokenizer.pad}
    decoder = json.loads(tokenizer.json())["decoder"]["decoders"][-1]
    files = {
        NUMBERS: {name: index for index, name in enumerate(names)},
        TOKENIZER_CONFIG: {f"{role}_token": names[index] for role, index in roles.items()}
        | {"tokenizer_class": "Wav2Vec2CTCTokenizer", BETWEEN: decoder["pattern"]["String"]},
        PREPROCESSOR: FIXED
        | {"do_normalize": hearing.scaled, "return_attention_mask": encoder.norm == "layer"}
        | {"processor_class": "Wav2Vec2Processor"},
    }
    return HubFiles(files, {"start": tokenizer.bos, "end": tokenizer.eos})
