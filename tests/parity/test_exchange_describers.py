"""TrOCR, and ViT with GPT-2, from and to folders of the Hub: what a run made of one writes is what transformers
does. Weights are loud; logits agree to 1e-5 of the largest, texts exactly."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from PIL import Image
from transformers import (
    AutoImageProcessor,
    AutoTokenizer,
    DeiTConfig,
    GenerationConfig,
    GPT2Config,
    PreTrainedTokenizerFast,
    TrOCRConfig,
    VisionEncoderDecoderConfig,
    VisionEncoderDecoderModel,
    ViTConfig,
    ViTImageProcessorPil,
)

import heedful
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.exchange.hub import framed
from heedful.exchange.preprocessor import PREPROCESSOR
from heedful.store.model import read_model
from heedful.tasks.describe.use import Describer
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from nearly import close
from pictures import loud

LETTERS = "abcdef"
SEEN: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "image_size": [16, 24],
    "patch_size": 8,
}
TROCR: dict[str, Any] = {
    "d_model": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 3,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 16,
    "cross_attention_hidden_size": 16,
}
GPT: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 16}
PLAIN = {"layernorm_embedding": False, "use_learned_position_embeddings": False, "scale_embedding": True}
MAKERS: dict[str, Any] = {
    "vit, trocr": lambda more: (ViTConfig(**SEEN, qkv_bias=False), TrOCRConfig(**TROCR, **more)),
    "deit, trocr": lambda more: (DeiTConfig(**SEEN), TrOCRConfig(**TROCR, **PLAIN, activation_function="relu", **more)),
    "vit, gpt2": lambda more: (ViTConfig(**SEEN), GPT2Config(**GPT, **more)),
    "tall vit, gpt2": lambda more: (ViTConfig(**SEEN | {"patch_size": [16, 4]}), GPT2Config(**GPT, **more)),
}


class Pair(NamedTuple):
    theirs: VisionEncoderDecoderModel
    processor: Any
    tokenizer: PreTrainedTokenizerFast
    run: Path
    ours: Describer
    files: list[Path]


def theirs_in(folder: Path, kind: str) -> VisionEncoderDecoderModel:
    torch.manual_seed(2)
    own = train_tokenizer([*LETTERS, LETTERS], kind="chars", size=300)
    inner = framed(own, [own.bos], [own.eos])
    pad = 1 if "deit" in kind else own.pad  # where sines for positions begin
    ids = {"bos_token_id": own.bos, "eos_token_id": own.eos, "pad_token_id": pad}
    halves = MAKERS[kind]({"vocab_size": inner.get_vocab_size(), **ids})
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(*halves)
    config.decoder_start_token_id, config.pad_token_id = own.bos, pad
    theirs = VisionEncoderDecoderModel(config=config).eval()
    loud(theirs)
    with torch.no_grad():  # what is seen decides, and letters alone are said
        for name, weight in theirs.named_parameters():
            if name.endswith(("encoder_attn.out_proj.weight", "crossattention.c_proj.weight")):
                weight *= 100
            if ".final_layer_norm." in name:
                weight.fill_(float(name.endswith("weight")))
    letters = {own.eos, *(token for ids_ in own.encode([LETTERS]) for token in ids_)}
    never = [index for index in range(inner.get_vocab_size()) if index not in letters]
    special = {**ids, "decoder_start_token_id": own.bos}
    theirs.generation_config = GenerationConfig(**special, max_length=12, suppress_tokens=never)
    theirs.save_pretrained(folder)
    ViTImageProcessorPil(size={"height": 16, "width": 24}).save_pretrained(folder)
    roles = {f"{role}_token": inner.id_to_token(ids[f"{role}_token_id"]) for role in ("bos", "eos", "pad")}
    PreTrainedTokenizerFast(tokenizer_object=inner, unk_token=inner.id_to_token(own.unk), **roles).save_pretrained(
        folder
    )
    return theirs


@pytest.fixture(scope="module", params=sorted(MAKERS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("hub")
    theirs = theirs_in(folder / "theirs", request.param)
    import_model(folder / "theirs", folder / "run")
    processor = AutoImageProcessor.from_pretrained(folder / "theirs", backend="pil")
    tokenizer = AutoTokenizer.from_pretrained(folder / "theirs")
    draw, files = numpy.random.default_rng(0), []
    for number in range(4):
        files.append(folder / f"{number}.png")
        shades = draw.integers(0, 200, 3) + draw.integers(0, 56, (20, 30 + number, 3))
        Image.fromarray(shades.astype(numpy.uint8)).save(files[-1])
    return Pair(theirs, processor, tokenizer, folder / "run", heedful.load(folder / "run"), files)


def pixels(pair: Pair) -> torch.Tensor:
    return pair.processor(images=[Image.open(file) for file in pair.files], return_tensors="pt")["pixel_values"]


def test_logits_are_theirs(pair: Pair) -> None:
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(4, pair.theirs.config.decoder.vocab_size, (len(pair.files), 9), generator=draw)
    with torch.no_grad():
        expected = pair.theirs(pixel_values=pixels(pair), decoder_input_ids=tokens).logits
        close(pair.ours.model(pixels(pair), tokens), expected)


def written(model: Any, pair: Pair, **options: Any) -> list[str]:
    with torch.no_grad():
        found = model.generate(pixel_values=pixels(pair), do_sample=False, **options)
    return [" ".join(text.split()) for text in pair.tokenizer.batch_decode(found, skip_special_tokens=True)]


def test_texts_are_theirs(pair: Pair) -> None:
    expected = written(pair.theirs, pair)
    assert len({*expected}) > 1
    assert pair.ours.describe(pair.files) == expected


def test_what_is_exported_is_what_was_imported(pair: Pair, tmp_path: Path) -> None:
    made = export_model(pair.run, tmp_path / "hub")
    assert {"config.json", "model.safetensors", PREPROCESSOR, "generation_config.json"} < {*made.files}
    theirs = VisionEncoderDecoderModel.from_pretrained(tmp_path / "hub").eval()
    if not getattr(theirs.config.decoder, "use_learned_position_embeddings", True):  # their loader leaves sines empty
        sines, whole = (each.decoder.model.decoder.embed_positions for each in (theirs, pair.theirs))
        sines.weights = whole.weights
    assert written(theirs, pair) == written(pair.theirs, pair)
    import_model(tmp_path / "hub", tmp_path / "again")
    (config, tensors), (other, back) = read_model(pair.run), read_model(tmp_path / "again")
    assert config == other
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)
    assert heedful.load(tmp_path / "again").about == pair.ours.about


def test_laws_hold(pair: Pair) -> None:
    assert [law.name for law in check(pair.run) if not law.holds] == []


@pytest.mark.parametrize(
    ("half", "changes", "message"),
    [
        ("decoder", {"model_type": "bert"}, "a decoder of the kind 'bert'"),
        ("encoder", {"patch_size": [1, 2, 3]}, r"encoder: patch_size is \[1, 2, 3\]: only one number, or rows and"),
        ("encoder", {"hidden_size": 32}, "an encoder of the width 32, and a decoder that looks at the width 16"),
        ("decoder", {"cross_attention_hidden_size": None}, "a decoder that looks at the width 24"),
        ("decoder", {"use_learned_position_embeddings": False, "pad_token_id": 0}, "pad_token_id is 0: with sines"),
        ("decoder", {"hop": 1}, "unknown key 'hop'"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, half: str, changes: dict[str, Any], message: str) -> None:
    theirs_in(tmp_path / "theirs", "vit, trocr")
    path = tmp_path / "theirs" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {half: config[half] | changes}))
    with pytest.raises(InputError, match=message):
        import_model(tmp_path / "theirs", tmp_path / "run")
    assert not (tmp_path / "run").exists()
