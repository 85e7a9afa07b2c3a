"""Runs made of folders of the Hub with CLIP in them, and folders made of runs: what they say is what transformers says.

Weights are loud (see `pictures.py`); the tokenizer is byte-level, in lower case, and its words end with "</w>".
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest
import tokenizers
import torch
from PIL import Image
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor
from transformers import AutoProcessor, CLIPConfig, CLIPImageProcessorPil, CLIPModel

import heedful
from heedful.core.config import to_json
from heedful.data.images.files import Preparation
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import HeedError, InputError
from heedful.models import make_model
from heedful.models.vision_presets import ClipSize, clip_config
from heedful.store.model import read_model
from heedful.tasks.match.use import MatchSpec, lowered
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from hub import LINES
from nearly import close
from pictures import loud
from saved import save_run

pytestmark = pytest.mark.filterwarnings("ignore:.*of its .* tokens were read")  # which each of these texts is for

TEXT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
TEXT |= {"max_position_embeddings": 24, "bos_token_id": 0, "pad_token_id": 1}
VISION = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
VISION |= {"image_size": 24, "patch_size": 6}
START, END = "<|startoftext|>", "<|endoftext|>"
TEXTS = ["The small cat", "DÉJÀ VU: a naïve café, 😀 and 二人.", "two  spaces", "a", " ".join(LINES)]


def clip_tokenizer() -> tokenizers.Tokenizer:
    """Made as CLIP's is: both of its special tokens are the last of the vocabulary."""
    inner = tokenizers.Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    inner.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(tokenizers.Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    words = tokenizers.Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    split = pre_tokenizers.Split(words, behavior="removed", invert=True)
    inner.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=620, initial_alphabet=alphabet, end_of_word_suffix="</w>", show_progress=False
    )
    inner.train_from_iterator(LINES, trainer)
    learnt = json.loads(inner.to_str())["model"]
    alone = dict.fromkeys([*learnt["vocab"], *(f"{letter}</w>" for letter in alphabet)])
    vocabulary = {piece: index for index, piece in enumerate([*alone, START, END])}
    merges = [(first, second) for first, second in learnt["merges"]]
    inner.model = models.BPE(vocabulary, merges, unk_token=END, end_of_word_suffix="</w>", continuing_subword_prefix="")
    inner.add_special_tokens([START, END])
    around = [(END, vocabulary[END]), (START, vocabulary[START])]
    inner.post_processor = processors.RobertaProcessing(*around, add_prefix_space=False, trim_offsets=False)
    return inner


class Pair(NamedTuple):
    theirs: Any
    folder: Path
    run: Path
    files: list[Path]


@pytest.fixture(scope="module", params=["end of now", "end of old"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    torch.manual_seed(1)
    place = tmp_path_factory.mktemp("hub")
    inner, folder = clip_tokenizer(), place / "theirs"
    size = inner.get_vocab_size()
    text = TEXT | {"vocab_size": size, "eos_token_id": 2 if request.param == "end of old" else size - 1}
    theirs = CLIPModel(CLIPConfig(text_config=text, vision_config=VISION, projection_dim=20))
    loud(theirs)
    theirs.eval().save_pretrained(folder)
    CLIPImageProcessorPil(size={"shortest_edge": 24}, crop_size=24).save_pretrained(folder)
    inner.save(str(folder / "tokenizer.json"))
    ends = dict.fromkeys(("eos_token", "pad_token", "unk_token"), END)
    names = {"tokenizer_class": "CLIPTokenizer", "bos_token": START, "model_max_length": 24, **ends}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    import_model(folder, place / "run")
    draw, files = numpy.random.default_rng(0), []
    for rows, columns in ((24, 24), (50, 31), (25, 80)):
        files.append(place / f"{rows}.png")
        Image.fromarray(draw.integers(0, 256, (rows, columns, 3), dtype=numpy.uint8)).save(files[-1])
    return Pair(theirs, folder, place / "run", files)


def logits(model: Any, folder: Path, files: list[Path], texts: list[str]) -> Tensor:
    """As transformers users ask for them."""
    processor = AutoProcessor.from_pretrained(folder, backend="pil")
    images = [Image.open(file) for file in files]
    inputs = processor(text=texts, images=images, return_tensors="pt", padding=True, truncation=True)
    with torch.no_grad():
        return model(**inputs).logits_per_image


def own_logits(run: Path, files: list[Path], texts: list[str]) -> Tensor:
    matcher = heedful.load(run)
    scale = matcher.model.log_scale.detach().exp()
    return scale * matcher.embed_images(files) @ matcher.embed_texts(texts).mT


def test_an_imported_model_says_what_theirs_says(pair: Pair) -> None:
    expected = logits(pair.theirs, pair.folder, pair.files, TEXTS)
    close(own_logits(pair.run, pair.files, TEXTS), expected)
    for found, row in zip(heedful.load(pair.run).match(pair.files, TEXTS), expected.softmax(1), strict=True):
        assert dict(found) == pytest.approx(dict(zip(TEXTS, row.tolist(), strict=True)), abs=1e-4)
    assert not [law.name for law in check(pair.run) if not law.holds]


def test_what_is_exported_is_what_was_imported(pair: Pair, tmp_path: Path) -> None:
    export_model(pair.run, tmp_path / "hub")
    theirs = CLIPModel.from_pretrained(tmp_path / "hub").eval()
    expected = logits(pair.theirs, pair.folder, pair.files, TEXTS)
    close(logits(theirs, tmp_path / "hub", pair.files, TEXTS), expected)
    import_model(tmp_path / "hub", tmp_path / "again")
    (config, tensors), (other, back) = read_model(pair.run), read_model(tmp_path / "again")
    assert config == other
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)
    assert heedful.load(tmp_path / "again").about == heedful.load(pair.run).about


def a_run(folder: Path) -> Path:
    """As one that was trained here: its tokenizer does not read in lower case by itself."""
    tokenizer = train_tokenizer(map(lowered, LINES), kind="bpe", size=300)
    sizes: dict[str, Any] = {"d_common": 8, "image_width": 16, "image_layers": 1, "image_heads": 2, "patch": 4}
    sizes |= {"text_width": 16, "text_layers": 1, "text_heads": 2, "context_length": 16, "size": 12}
    model = make_model(clip_config(ClipSize(**sizes), vocab_size=tokenizer.size, end=tokenizer.eos))
    loud(model)
    prepared = Preparation(resize=(12,), crop=(12, 12), mean=(0.3, 0.4, 0.5), std=(0.2, 0.3, 0.4))
    about = {"task": "match", **to_json(MatchSpec(preparation=prepared))}
    save_run(folder, model, tokenizer, tokenizer, about)
    return folder


def test_a_run_of_ours_is_exported(tmp_path: Path) -> None:
    run, file = a_run(tmp_path / "run"), tmp_path / "x.png"
    Image.fromarray(numpy.random.default_rng(0).integers(0, 256, (17, 23, 3), dtype=numpy.uint8)).save(file)
    export_model(run, tmp_path / "hub")
    theirs = CLIPModel.from_pretrained(tmp_path / "hub").eval()
    own = own_logits(run, [file], TEXTS)
    close(logits(theirs, tmp_path / "hub", [file], TEXTS), own)
    import_model(tmp_path / "hub", tmp_path / "again")
    close(own_logits(tmp_path / "again", [file], TEXTS), own)


@pytest.mark.parametrize("lost", ["tokenizer.json", "preprocessor_config.json"])
def test_a_folder_without_a_part_is_refused(pair: Pair, tmp_path: Path, lost: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for file in pair.folder.iterdir():
        if file.name != lost:
            (folder / file.name).write_bytes(file.read_bytes())
    with pytest.raises(HeedError, match=lost):
        import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_model_s_tokenizer_is_refused(pair: Pair, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for file in pair.folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    inner = clip_tokenizer()
    inner.post_processor = processors.TemplateProcessing(single="$A")
    inner.save(str(folder / "tokenizer.json"))
    with pytest.raises(InputError, match="before a text"):
        import_model(folder, tmp_path / "run")
