"""The files beside the weights of a model that turns speech into text on the Hub: how it hears, its tokenizer, and how
it searches."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.data.sound.features import FRAMES_A_POSITION, HOP, WINDOW, Hearing
from heedful.data.sound.files import RATE
from heedful.data.tokenizer import Tokenizer
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError
from heedful.exchange.hub import GENERATION, Files, HubTokens, framed, generation_config, hub_tokenizer, read_tokenizer
from heedful.exchange.preprocessor import PREPROCESSOR
from heedful.models import CTC
from heedful.models.speech import CTCConfig, SpeechToTextConfig
from heedful.run.task import Hub, HubFiles
from heedful.run.tokenizers import tokenizer_files
from heedful.tasks.transcribe.hub_ctc import read_ctc, read_extractor, write_ctc
from heedful.tasks.transcribe.use import Transcriber, TranscribeSpec

# What their feature extractor must say, since nothing else is heard here.
FIXED = {
    "dither": 0.0, "do_normalize": False, "feature_extractor_type": "WhisperFeatureExtractor", "hop_length": HOP,
    "n_fft": WINDOW, "padding_side": "right", "padding_value": 0.0, "return_attention_mask": False,
    "sampling_rate": RATE,
}  # fmt: skip
OTHERS = {"chunk_length", "feature_size", "mel_filters", "n_samples", "nb_max_frames", "processor_class"}
NO_TIMES = "no_timestamps_token_id"


def read_transcriber(folder: Path, theirs: Mapping[str, Any], config: SpeechToTextConfig | CTCConfig) -> Files:
    """`theirs`: their config.json, with the ids that it leaves out. Raises InputError for sound that is heard in
    another way, and for a search that cannot be followed."""
    if isinstance(config, CTCConfig):
        return read_ctc(folder, config)
    hearing = _hearing(folder, config)
    inner = read_tokenizer(folder, framed=True)
    tokens = HubTokens(folder, theirs, inner.get_vocab(), size=config.target.vocab_size)
    bos, eos = tokens.token("decoder_start"), tokens.token("eos")
    if bos is None or eos is None:
        raise InputError("decoder_start_token_id or eos_token_id is none of its tokens", where=str(folder))
    languages, begin = _prompt(tokens)
    first = tokens.searched.get("begin_suppress_tokens") or []
    followed = ("begin_suppress_tokens", "forced_decoder_ids")  # by the prompt here, and by no other search
    tokens.searched = {key: value for key, value in tokens.searched.items() if key not in followed}
    search = tokens.search(eos=eos, context_length=config.target.context_length)
    decode: DecodingOptions = {key: search[key] for key in ("beam", "length_penalty") if key in search}  # type: ignore[assignment]
    if "early_stopping" in search and decode["beam"] > 1:
        decode["early_stopping"] = search["early_stopping"]
    prompt = bool(languages) + len(begin)  # which their limit does not count
    most = tokens.searched.get("max_new_tokens") or search["longest"] + 1
    decode["longest"] = min(prompt + most, config.target.context_length - 1)
    spec = TranscribeSpec(
        hearing=hearing,
        decode=decode,
        languages=languages,
        begin=begin,
        forbidden=tuple(tokens.forbidden()),
        forbidden_first=tuple(index for index in first if 0 <= index < config.target.vocab_size),
    )
    tokenizer = Tokenizer(inner, tokens.special(bos=bos, eos=eos))
    return tokenizer_files(tokenizer, tokenizer) | {"task.json": {"task": "transcribe", **to_json(spec)}}


def _hearing(folder: Path, config: SpeechToTextConfig) -> Hearing:
    path, theirs = read_extractor(folder, FIXED, OTHERS)
    seconds = theirs.get("chunk_length", 30)
    if type(seconds) is not int:
        raise InputError(f"chunk_length is {seconds!r}, and no whole number", where=path)
    hearing = Hearing(seconds=seconds, mels=theirs.get("feature_size", 80))
    model = (config.encoder.context_length, config.encoder.mels)
    if (hearing.positions, hearing.mels) != model:
        heard = f"windows of {hearing.positions} positions in {hearing.mels} bands"
        what = f"{heard}, and the model has {model[0]} and {model[1]}"
        raise InputError(what, where=path, fix="get the whole folder from its source")
    return hearing


def _prompt(tokens: HubTokens) -> tuple[dict[str, int], tuple[int, ...]]:
    """The tokens of languages by their names, and those behind them: that of writing down what is said, and that of
    texts without times."""
    known, tasks = tokens.values.get("lang_to_id") or {}, tokens.values.get("task_to_id") or {}
    languages = {name.strip("<|>"): index for name, index in known.items()}
    if not languages and (forced := tokens.values.get("forced_decoder_ids")):  # as old files say it
        return {}, tuple(index for _, index in forced if index is not None)
    begin = [tasks["transcribe"]] if languages and "transcribe" in tasks else []
    times = tokens.values.get(NO_TIMES)
    return languages, (*begin, *([] if times is None else [times]))


def write_transcriber(run: Path, transcriber: Transcriber) -> HubFiles:
    """Raises InputError for a model of CTC with mel bands."""
    model, spec, tokenizer = transcriber.model, transcriber.spec, transcriber.tokenizer
    if isinstance(model, CTC):
        return write_ctc(run, transcriber)
    bos, eos, pad = tokenizer.bos, tokenizer.eos, tokenizer.pad
    longest = model.config.target.context_length
    hears = FIXED | {
        "chunk_length": spec.hearing.seconds,
        "feature_size": spec.hearing.mels,
        "n_samples": spec.hearing.samples,
        "nb_max_frames": FRAMES_A_POSITION * spec.hearing.positions,
        "processor_class": "WhisperProcessor",
    }
    inner = framed(tokenizer, [bos], [eos])
    roles = {"bos": bos, "eos": eos, "pad": pad, "unk": tokenizer.unk}
    search: dict[str, Any] = {
        "decoder_start_token_id": bos,
        "bos_token_id": bos,
        "eos_token_id": eos,
        "pad_token_id": pad,
        "num_beams": transcriber.decoding.beam,
        "length_penalty": transcriber.decoding.length_penalty,
        "max_length": transcriber.longest - bool(spec.languages) - len(spec.begin),
        "early_stopping": transcriber.decoding.early_stopping or None,
        "begin_suppress_tokens": [*spec.forbidden_first] or None,
    }
    search |= _prompt_to_hf(transcriber)
    files = hub_tokenizer(tokenizer, inner, roles, longest=longest) | {PREPROCESSOR: hears}
    files |= {GENERATION: generation_config(search, spec.forbidden)}
    # Of a config.json without them, their class knows tokens that another vocabulary has not.
    repeated = {"begin_suppress_tokens": search["begin_suppress_tokens"], "suppress_tokens": None}
    return HubFiles(files, {"pad": pad, "start": bos, "end": eos}, repeated)


def _prompt_to_hf(transcriber: Transcriber) -> dict[str, Any]:
    """The inverse of `_prompt`; of a model whose every text begins with some tokens, these."""
    spec = transcriber.spec
    if not spec.languages:
        forced = [[place, index] for place, index in enumerate(spec.begin, 1)]
        if len(forced) == 1:
            return {"is_multilingual": False, NO_TIMES: forced[0][1]}
        return {"is_multilingual": False} | ({"forced_decoder_ids": forced} if forced else {})
    *task, times = spec.begin
    return {
        "is_multilingual": True,
        "lang_to_id": {f"<|{name}|>": index for name, index in spec.languages.items()},
        "task_to_id": {"transcribe": task[0]} if task else {},
        NO_TIMES: times,
    }


HUB = Hub(read_transcriber, write_transcriber)
