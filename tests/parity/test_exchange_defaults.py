"""What the default presets make becomes folders that transformers loads: their logits are ours, and their ids.

Weights are loud (see `hub.py`); logits agree to 1e-5 of the largest, all else exactly.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoModelForSeq2SeqLM, AutoTokenizer

import heedful
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import ENCODERS, TRANSLATORS, TransformerSize, encoder_config, translator_config
from heedful.tasks.fill.use import Filler
from heedful.tasks.translate.use import Translator
from heedful.verbs.exchange import export_model, import_model
from hub import LINES, TEXTS, loud
from saved import save_run

CONTROLS = ["a </s> b <s><pad>", "<unk>"]


def close(ours: Tensor, theirs: Tensor) -> None:
    largest = float(theirs.abs().max())
    assert largest > 1, "weights are loud"
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * largest)


def vocabulary(kind: Any = "bpe") -> Tokenizer:
    return train_tokenizer(LINES * 3, kind=kind, size=400)


def translator(folder: Path, row: TransformerSize, tokenizer: Tokenizer, **changed: Any) -> Translator:
    sizes = {"source_vocab": tokenizer.size, "target_vocab": tokenizer.size}
    small = replace(row, d_model=16, n_heads=2, d_ff=24, encoder_layers=2, decoder_layers=2)
    config = translator_config(small, **sizes, joint=True)
    model = make_model(replace(config, **changed)).eval()
    torch.manual_seed(3)  # no text ends just at the longest, where theirs may prefer one that goes on
    loud(model)
    search = {"beam": 2, "longest": 24, "shortest": 6, "no_repeat": 1}
    about = {"task": "translate", "source": "en", "target": "de", "decode": search}
    return heedful.load(save_run(folder / "run", model, tokenizer, tokenizer, about))


def read_back(kind: Any, folder: Path) -> tuple[Any, Any]:
    """Their model and their tokenizer, of a folder that lacks nothing and has nothing too much."""
    theirs, told = kind.from_pretrained(folder, output_loading_info=True)
    assert not any(told.values()), told
    return theirs.eval(), AutoTokenizer.from_pretrained(folder)


def says(tokenizer: Any, theirs: Any, texts: Sequence[str], **options: Any) -> list[str]:
    made = []
    for text in texts:
        given = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            made.append(tokenizer.decode(theirs.generate(**given, **options)[0], skip_special_tokens=True))
    return made


@pytest.mark.parametrize(
    ("name", "family"), [("transformer-small", "Pegasus"), ("transformer-base", "Marian")], ids=["pre", "post"]
)
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_translator(tmp_path: Path, name: str, family: str, kind: str) -> None:
    row = TRANSLATORS[name]
    assert isinstance(row, TransformerSize)
    tokenizer = vocabulary(kind)
    ours = translator(tmp_path, row, tokenizer)
    made = export_model(tmp_path / "run", tmp_path / "hub")
    assert (made.family, made.loads.split(".")[1]) == (family, "AutoModelForSeq2SeqLM")
    theirs, reads = read_back(AutoModelForSeq2SeqLM, tmp_path / "hub")
    texts = [*TEXTS[:7], *CONTROLS]
    expected = [[*ids, tokenizer.eos] for ids in tokenizer.encode(texts)]
    assert [reads(text).input_ids for text in texts] == expected
    again = import_model(tmp_path / "hub", tmp_path / "again")
    assert (again.family, again.task) == (family, "translate")
    back = heedful.load(tmp_path / "again")
    target = torch.tensor([[tokenizer.bos, *expected[1]]])
    with torch.no_grad():
        for ids in expected:
            source = torch.tensor([ids])
            right = theirs(input_ids=source, decoder_input_ids=target, use_cache=False).logits
            close(ours.model(source, target), right)
            close(back.model(source, target), right)
    for beam in (1, 2):
        said = ours.translate(texts, beam=beam)
        assert len(set(said)) > 2
        assert says(reads, theirs, texts, num_beams=beam) == said == back.translate(texts, beam=beam)


def filler(folder: Path) -> Filler:
    tokenizer = train_tokenizer(LINES * 3, kind="bpe", size=400, mask=True)
    row = replace(ENCODERS["modern-tiny"], d_model=16, n_heads=2, d_ff=24, n_layers=2)
    model = make_model(encoder_config(row, vocab_size=tokenizer.size, context_length=48)).eval()
    torch.manual_seed(2)
    loud(model)
    return heedful.load(save_run(folder / "run", model, tokenizer, tokenizer, {"task": "fill"}))


def test_what_fills_blanks(tmp_path: Path) -> None:
    ours = filler(tmp_path)
    tokenizer = ours.tokenizer
    made = export_model(tmp_path / "run", tmp_path / "hub")
    assert (made.family, made.loads.split(".")[1]) == ("ModernBERT", "AutoModelForMaskedLM")
    theirs, reads = read_back(AutoModelForMaskedLM, tmp_path / "hub")
    assert import_model(tmp_path / "hub", tmp_path / "again").task == "fill"
    back = heedful.load(tmp_path / "again")
    assert len(back.model.stack.blocks) == 2, "the layer that adds nothing is left out"
    texts = [*TEXTS[:7], "The <mask> cat", "a <mask> <mask>"]
    expected = [[tokenizer.bos, *ids, tokenizer.eos] for ids in tokenizer.encode_masked(texts)]
    given = [reads(text, return_tensors="pt") for text in texts]
    assert [one.input_ids[0].tolist() for one in given] == expected
    with torch.no_grad():
        for one in given:
            right = theirs(**one).logits
            close(ours.model(one.input_ids), right)
            close(back.model(one.input_ids), right)
    ((one,),), ((other,),) = (model.fill(["The <mask> cat"], top=3) for model in (ours, back))
    assert [own.token for own in one.candidates] == [own.token for own in other.candidates]


def test_a_file_of_modernbert_itself_is_refused(tmp_path: Path) -> None:
    """Its first layer does something, and has no norm before it."""
    filler(tmp_path)
    export_model(tmp_path / "run", tmp_path / "hub")
    weights = tmp_path / "hub" / "model.safetensors"
    tensors = safetensors.torch.load_file(weights)
    tensors["model.layers.0.mlp.Wo.weight"][0, 0] = 1.0
    safetensors.torch.save_file(tensors, weights)
    with pytest.raises(InputError, match="its first layer has no norm before its attention"):
        import_model(tmp_path / "hub", tmp_path / "never")
