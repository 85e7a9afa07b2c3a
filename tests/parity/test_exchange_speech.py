"""Whisper from and to folders of the Hub: what a run made of one hears and writes is what transformers does.

Weights are loud; logits agree to 1e-5 of the largest, texts exactly.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest
import soundfile
import torch
from transformers import (
    AutoFeatureExtractor,
    AutoModelForSpeechSeq2Seq,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedTokenizerFast,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

import heedful
from heedful.data.sound.features import Hearing
from heedful.data.sound.files import RATE
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.exchange.hub import framed
from heedful.exchange.preprocessor import PREPROCESSOR
from heedful.store.model import read_model
from heedful.tasks.transcribe.use import Transcriber
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from loud import make_loud
from nearly import close
from sounds import LETTERS, texts, tones

EXTRA = ["<|en|>", "<|fr|>", "<|transcribe|>", "<|notimestamps|>"]
SIZES: dict[str, Any] = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 28,
    "num_mel_bins": 80,
    "max_source_positions": 100,
    "max_target_positions": 16,
}


class Pair(NamedTuple):
    theirs: WhisperForConditionalGeneration
    features: WhisperFeatureExtractor
    tokenizer: PreTrainedTokenizerFast
    folder: Path
    run: Path
    ours: Transcriber


def theirs_in(folder: Path, *, multilingual: bool) -> WhisperForConditionalGeneration:
    torch.manual_seed(2)
    own = train_tokenizer(texts(50), kind="chars", size=300)
    inner = framed(own, [own.bos], [own.eos])
    if multilingual:
        inner.add_special_tokens(EXTRA)
    ids = {name: inner.token_to_id(name) for name in EXTRA}
    special = {
        "decoder_start_token_id": own.bos,
        "bos_token_id": own.bos,
        "eos_token_id": own.eos,
        "pad_token_id": own.pad,
    }
    config = WhisperConfig(**SIZES, **special, vocab_size=inner.get_vocab_size(), begin_suppress_tokens=None)
    theirs = make_loud(WhisperForConditionalGeneration(config)).eval()
    with torch.no_grad():  # what is heard decides, and letters alone are said
        for norm in (theirs.model.encoder.layer_norm, theirs.model.decoder.layer_norm):
            norm.weight.fill_(1)
            norm.bias.zero_()
        for layer in theirs.model.decoder.layers:
            layer.encoder_attn.out_proj.weight *= 10
    letters = {own.eos, *(ids[-1] for ids in own.encode([*LETTERS]))}
    never = [index for index in range(config.vocab_size) if index not in letters]
    more: dict[str, Any] = {"is_multilingual": False}
    if multilingual:
        more = {
            "is_multilingual": True,
            "lang_to_id": {name: ids[name] for name in EXTRA[:2]},
            "task_to_id": {"transcribe": ids["<|transcribe|>"]},
            "no_timestamps_token_id": ids["<|notimestamps|>"],
            "begin_suppress_tokens": [min(letters - {own.eos}), own.eos],
        }
    theirs.generation_config = GenerationConfig(**special, max_length=12, suppress_tokens=never, **more)
    theirs.save_pretrained(folder)
    WhisperFeatureExtractor(feature_size=80, chunk_length=2).save_pretrained(folder)
    roles = {"bos_token": inner.id_to_token(own.bos), "eos_token": inner.id_to_token(own.eos)}
    PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token=inner.id_to_token(own.pad), unk_token=inner.id_to_token(own.unk), **roles
    ).save_pretrained(folder)
    return theirs


@pytest.fixture(scope="module", params=[False, True], ids=["one language", "several"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("hub")
    theirs = theirs_in(folder / "theirs", multilingual=request.param)
    import_model(folder / "theirs", folder / "run")
    features = AutoFeatureExtractor.from_pretrained(folder / "theirs")
    tokenizer = AutoTokenizer.from_pretrained(folder / "theirs")
    return Pair(theirs, features, tokenizer, folder / "theirs", folder / "run", heedful.load(folder / "run"))


def waves() -> list[numpy.ndarray]:
    return [tones(text, shift=0.7 + 0.1 * number) for number, text in enumerate(("abc", "de fa", "ccb", "f ab edc"))]


@pytest.mark.parametrize(("mels", "seconds"), [(80, 2), (128, 3)])
def test_sound_is_heard_as_by_them(mels: int, seconds: int) -> None:
    theirs = WhisperFeatureExtractor(feature_size=mels, chunk_length=seconds)
    expected = theirs(waves(), sampling_rate=RATE, return_tensors="pt").input_features
    heard = Hearing(seconds=seconds, mels=mels)([torch.from_numpy(wave) for wave in waves()])
    torch.testing.assert_close(heard, expected, rtol=0, atol=1e-5)


def test_logits_are_theirs(pair: Pair) -> None:
    sound = pair.features(waves(), sampling_rate=RATE, return_tensors="pt").input_features
    tokens = torch.randint(0, len(pair.tokenizer), (4, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = pair.theirs(input_features=sound, decoder_input_ids=tokens).logits
        close(pair.ours.model(sound, tokens), expected)


def generated(model: Any, pair: Pair, **options: Any) -> list[str]:
    sound = pair.features(waves(), sampling_rate=RATE, return_tensors="pt").input_features
    with torch.no_grad():
        found = model.generate(input_features=sound, do_sample=False, **options)
    return [" ".join(text.split()) for text in pair.tokenizer.batch_decode(found, skip_special_tokens=True)]


def written(served: Transcriber, tmp_path: Path, language: str = "") -> list[str]:
    made = []
    for number, wave in enumerate(waves()):
        soundfile.write(tmp_path / f"{number}.wav", wave, RATE, subtype="FLOAT")
        made.append(served.transcribe(tmp_path / f"{number}.wav", language=language).text)
    return made


def test_texts_are_theirs(pair: Pair, tmp_path: Path) -> None:
    several = bool(pair.ours.spec.languages)
    for language in ("en", "fr") if several else ("",):
        options = {"language": f"<|{language}|>", "task": "transcribe"} if several else {}
        expected = generated(pair.theirs, pair, **options)
        assert len({*expected}) > 1
        assert written(pair.ours, tmp_path, language) == expected


def test_the_language_is_told(pair: Pair, tmp_path: Path) -> None:
    if not pair.ours.spec.languages:
        with pytest.raises(InputError, match="fr: this model has one language"):
            written(pair.ours, tmp_path, "fr")
        return
    sound = pair.features(waves(), sampling_rate=RATE, return_tensors="pt").input_features
    with torch.no_grad():
        expected = [pair.tokenizer.decode([index]) for index in pair.theirs.detect_language(sound).tolist()]
    written(pair.ours, tmp_path)
    told = [pair.ours.transcribe(tmp_path / f"{number}.wav").language for number in range(len(expected))]
    assert [f"<|{language}|>" for language in told] == expected
    with pytest.raises(InputError, match="unknown language 'de'"):
        written(pair.ours, tmp_path, "de")


def test_what_is_exported_is_what_was_imported(pair: Pair, tmp_path: Path) -> None:
    made = export_model(pair.run, tmp_path / "hub")
    assert {"config.json", "model.safetensors", PREPROCESSOR, "generation_config.json"} < {*made.files}
    theirs = AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path / "hub").eval()
    several = bool(pair.ours.spec.languages)
    options = {"language": "<|fr|>", "task": "transcribe"} if several else {}
    assert generated(theirs, pair, **options) == generated(pair.theirs, pair, **options)
    import_model(tmp_path / "hub", tmp_path / "again")
    (config, tensors), (other, back) = read_model(pair.run), read_model(tmp_path / "again")
    assert config == other
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)
    again = heedful.load(tmp_path / "again")
    assert again.about == pair.ours.about
    sound = AutoFeatureExtractor.from_pretrained(tmp_path / "hub")(waves(), sampling_rate=RATE).input_features
    assert numpy.array_equal(sound, pair.features(waves(), sampling_rate=RATE).input_features)


def test_laws_hold(pair: Pair) -> None:
    assert [law.name for law in check(pair.run) if not law.holds] == []


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("n_fft", 512, "n_fft is 512: only 400 can be heard"),
        ("chunk_length", 30, "windows of 1500 positions in 80 bands, and the model has 100 and 80"),
        ("chunk_length", 1.5, "chunk_length is 1.5, and no whole number"),
        ("hop", 1, "unknown key 'hop'"),
    ],
)
def test_sound_that_is_heard_in_another_way_is_refused(tmp_path: Path, key: str, value: object, told: str) -> None:
    theirs_in(tmp_path / "theirs", multilingual=False)
    path = tmp_path / "theirs" / PREPROCESSOR
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(InputError, match=told):
        import_model(tmp_path / "theirs", tmp_path / "run")
    assert not (tmp_path / "run").exists()
