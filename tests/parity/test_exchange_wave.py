"""wav2vec 2.0 from and to folders of the Hub: what a run made of one hears and writes is what transformers does.

Weights are loud; logits agree to 1e-5 of the largest, texts exactly.
"""

import json
from pathlib import Path
from shutil import copytree
from typing import Any, NamedTuple

import numpy
import pytest
import soundfile
import torch
from safetensors.torch import save_file
from transformers import (
    AutoModelForCTC,
    AutoProcessor,
    Wav2Vec2Config,
    Wav2Vec2CTCTokenizer,
    Wav2Vec2FeatureExtractor,
    Wav2Vec2ForCTC,
    Wav2Vec2Processor,
)

import heedful
from heedful.data.sound.features import Hearing
from heedful.data.sound.files import RATE
from heedful.data.sound.utterances import read_utterances
from heedful.errors import InputError
from heedful.exchange.preprocessor import PREPROCESSOR
from heedful.models import CTC
from heedful.store.model import read_model
from heedful.tasks.recipes import build
from heedful.tasks.transcribe.use import Transcriber
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from heedful.verbs.train import train
from loud import make_loud
from made import finished
from nearly import close
from sounds import LETTERS, texts, tones, utterances

VOCABULARY = {name: index for index, name in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", *LETTERS.upper(), "'"])}
SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "conv_dim": [8, 12, 8],
    "conv_kernel": [10, 3, 4],
    "conv_stride": [5, 4, 8],
    "num_conv_pos_embeddings": 6,
    "num_conv_pos_embedding_groups": 4,
    "vocab_size": len(VOCABULARY),
}
KINDS: dict[str, dict[str, Any]] = {
    "group norm": {},
    "layer norm": {
        "feat_extract_norm": "layer", "do_stable_layer_norm": True, "conv_bias": True, "num_conv_pos_embeddings": 5
    },
}  # fmt: skip


class Pair(NamedTuple):
    theirs: Wav2Vec2ForCTC
    processor: Wav2Vec2Processor
    folder: Path
    run: Path
    ours: Transcriber


def theirs_in(folder: Path, **more: Any) -> tuple[Wav2Vec2ForCTC, Wav2Vec2Processor]:
    torch.manual_seed(2)
    theirs = make_loud(Wav2Vec2ForCTC(Wav2Vec2Config(**(SIZES | more)))).eval()
    encoder = theirs.wav2vec2.encoder
    with torch.no_grad():  # what is heard decides, and letters alone are said
        for norm in (encoder.layers[-1].final_layer_norm, encoder.layer_norm):
            norm.weight.fill_(1)
            norm.bias.zero_()
        sounds = [torch.from_numpy(wave / wave.std())[None] for wave in waves()]
        theirs.lm_head.bias -= torch.cat([theirs(sound).logits[0] for sound in sounds]).mean(0)
        theirs.lm_head.bias[1:4] = -1000
    theirs.save_pretrained(folder)
    (folder / "made.json").write_text(json.dumps(VOCABULARY))
    tokenizer = Wav2Vec2CTCTokenizer(str(folder / "made.json"))
    layered = more.get("feat_extract_norm") == "layer"
    processor = Wav2Vec2Processor(Wav2Vec2FeatureExtractor(return_attention_mask=layered), tokenizer)
    processor.save_pretrained(folder)
    return theirs, processor


@pytest.fixture(scope="module", params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("hub")
    theirs, processor = theirs_in(folder / "theirs", **KINDS[request.param])
    import_model(folder / "theirs", folder / "run")
    return Pair(theirs, processor, folder / "theirs", folder / "run", heedful.load(folder / "run"))


def waves() -> list[numpy.ndarray]:
    return [tones(text, shift=0.7 + 0.1 * number) for number, text in enumerate(("abc", "de fa", "ccb", "f ab edc"))]


def heard_alone(theirs: Wav2Vec2ForCTC, processor: Wav2Vec2Processor) -> list[torch.Tensor]:
    """Their logits of each sound, which of a model with a group norm depend on what it is padded with."""
    with torch.no_grad():
        return [
            theirs(processor(wave, sampling_rate=RATE, return_tensors="pt").input_values).logits[0] for wave in waves()
        ]


@pytest.mark.parametrize("scaled", [False, True])
def test_sound_is_heard_as_by_them(scaled: bool) -> None:
    theirs = Wav2Vec2FeatureExtractor(do_normalize=scaled, return_attention_mask=True)
    expected = theirs(waves(), sampling_rate=RATE, return_tensors="pt", padding=True).input_values
    hearing, sounds = Hearing(seconds=2, mels=0, scaled=scaled), [torch.from_numpy(wave) for wave in waves()]
    torch.testing.assert_close(hearing(sounds)[:, 0], expected, rtol=0, atol=1e-5)
    lengths = hearing.lengths(sounds)
    assert lengths is not None
    assert lengths.tolist() == [len(wave) for wave in waves()]


def test_logits_are_theirs_alone_and_padded(pair: Pair) -> None:
    sounds, hearing, model = [torch.from_numpy(wave) for wave in waves()], pair.ours.spec.hearing, pair.ours.model
    assert isinstance(model, CTC)
    with torch.no_grad():
        together = model(hearing(sounds), hearing.lengths(sounds))
        for row, (sound, theirs) in enumerate(zip(sounds, heard_alone(pair.theirs, pair.processor), strict=True)):
            close(model(hearing([sound]))[0], theirs)
            close(together[row, : len(theirs)], theirs)
            assert int(model.encoder.ends(together, hearing.lengths(sounds))[row]) == len(theirs)
        if pair.theirs.config.feat_extract_norm == "layer":
            padded = pair.processor(waves(), sampling_rate=RATE, return_tensors="pt", padding=True)
            expected = pair.theirs(**padded).logits
            for row, theirs in enumerate(heard_alone(pair.theirs, pair.processor)):
                close(together[row, : len(theirs)], expected[row, : len(theirs)])


def written_by_them(theirs: Wav2Vec2ForCTC, processor: Wav2Vec2Processor) -> list[str]:
    heard = [logits.argmax(-1) for logits in heard_alone(theirs, processor)]
    return [" ".join(processor.decode(path).split()) for path in heard]


def test_texts_are_theirs(pair: Pair, tmp_path: Path) -> None:
    expected = written_by_them(pair.theirs, pair.processor)
    assert len({*expected}) == len(expected)
    for number, wave in enumerate(waves()):
        soundfile.write(tmp_path / f"{number}.wav", wave, RATE, subtype="FLOAT")
    transcripts = pair.ours.transcribe([tmp_path / f"{number}.wav" for number in range(len(expected))])
    assert [transcript.text for transcript in transcripts] == expected
    assert pair.ours.texts([torch.from_numpy(wave) for wave in waves()]) == expected
    assert pair.ours.texts([torch.zeros(3)]) is not None  # shorter than a position


def test_letters_are_read_as_by_them_and_in_either_case(pair: Pair) -> None:
    for text in ("AB' C", "FADE"):
        assert pair.ours.tokenizer.encode([text]) == [pair.processor.tokenizer(text).input_ids]
        assert pair.ours.tokenizer.encode([text.lower()]) == [pair.processor.tokenizer(text).input_ids]
    (ids,) = pair.ours.tokenizer.encode(["A<pad>, B"])
    assert pair.ours.tokenizer.pad not in ids


def test_what_is_exported_is_what_was_imported(pair: Pair, tmp_path: Path) -> None:
    exported = export_model(pair.run, tmp_path / "hub")
    assert {"config.json", "model.safetensors", PREPROCESSOR, "vocab.json"} < {*exported.files}
    theirs = AutoModelForCTC.from_pretrained(tmp_path / "hub").eval()
    processor = AutoProcessor.from_pretrained(tmp_path / "hub")
    assert written_by_them(theirs, processor) == written_by_them(pair.theirs, pair.processor)
    import_model(tmp_path / "hub", tmp_path / "again")
    (config, tensors), (other, back) = read_model(pair.run), read_model(tmp_path / "again")
    assert config == other
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)
    assert heedful.load(tmp_path / "again").about == pair.ours.about


def test_laws_hold(pair: Pair) -> None:
    laws = [*check(pair.run)]
    assert [law.name for law in laws if not law.holds] == []
    assert {"padding changes nothing", "a batch = one by one"} <= {law.name for law in laws}


def test_old_names_of_weights_are_read(pair: Pair, tmp_path: Path) -> None:
    """Of the norms of weights, and with the vector of hidden sound, which only a training uses."""
    tensors = dict(pair.theirs.state_dict())
    for name in [*tensors]:
        old = name.replace("parametrizations.weight.original0", "weight_g")
        tensors[old.replace("parametrizations.weight.original1", "weight_v")] = tensors.pop(name)
    assert {"wav2vec2.masked_spec_embed", "wav2vec2.encoder.pos_conv_embed.conv.weight_v"} < tensors.keys()
    copytree(pair.folder, tmp_path / "old")
    save_file({name: weight.contiguous() for name, weight in tensors.items()}, tmp_path / "old" / "model.safetensors")
    import_model(tmp_path / "old", tmp_path / "run")
    (_, tensors), (_, expected) = read_model(tmp_path / "run"), read_model(pair.run)
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)


def test_it_learns_on(pair: Pair, tmp_path: Path) -> None:
    """From an imported model, by other texts than it has letters for."""
    said = [f"{text}! z" for text in texts(12, words=(1,))]
    for name, part in (("train", said[:8]), ("valid", said[8:10]), ("test", said[10:])):
        utterances(tmp_path / "data", part, name=f"{name}.csv")
    plan = {"steps": 2, "eval_every": 2, "precision": "fp32"}
    recipe = build(
        {"task": "transcribe", "start_from": str(pair.run), "preset": "", "sound": {"batch": 4}, "train": plan},
        where="test",
    )
    scores = finished(train(recipe, tmp_path / "run", corpus=read_utterances(tmp_path / "data"))).scores
    assert scores["test"]["loss"] > 0
    tuned = heedful.load(tmp_path / "run")
    assert tuned.spec.hearing == pair.ours.spec.hearing
    export_model(tmp_path / "run", tmp_path / "hub")
    AutoProcessor.from_pretrained(tmp_path / "hub")


@pytest.mark.parametrize(
    ("file", "key", "value", "told"),
    [
        (PREPROCESSOR, "sampling_rate", 8000, "sampling_rate is 8000: only 16000 can be heard"),
        ("tokenizer_config.json", "do_lower_case", True, "do_lower_case is True"),
        ("tokenizer_config.json", "pad_token", "|", "'|' has the id 4, and nothing is said by 0"),
        ("vocab.json", "A", 77, "12 tokens are not numbered from 0"),
        ("config.json", "conv_stride", [5, 2], "give as many of each"),
        ("config.json", "add_adapter", True, "add_adapter is True"),
    ],
)
def test_what_cannot_be_heard_is_refused(tmp_path: Path, file: str, key: str, value: object, told: str) -> None:
    theirs_in(tmp_path / "theirs")
    path = tmp_path / "theirs" / file
    path = path if path.is_file() else path.with_name("processor_config.json")
    content = json.loads(path.read_text())
    (content.get("feature_extractor") or content)[key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=told):
        import_model(tmp_path / "theirs", tmp_path / "run")
    assert not (tmp_path / "run").exists()
