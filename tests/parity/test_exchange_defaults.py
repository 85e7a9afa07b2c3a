"""The model that each task makes by default, as the Hub's nearest family; and of tasks whose models are no family of
their own there, the same answers by `transformers`, with loud weights, to 1e-5 of the largest logit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from PIL import Image
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)
from transformers.models.imagegpt.image_processing_pil_imagegpt import ImageGPTImageProcessorPil

import heedful
from cases import CASES, recipe_of
from heedful.core.config import to_json
from heedful.data.batches import pad
from heedful.data.images.files import Preparation
from heedful.data.images.palette import Palette, grey_palette
from heedful.data.text.trees import LEAF, BracketVocabulary, Leaf
from heedful.data.tokenizer import BOS, EOS, train_tokenizer
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.classifier import ClassifierConfig
from heedful.models.presets import LANGUAGE_MODELS, PAINTERS, TRANSLATORS, lm_config, translator_config
from heedful.run.folder import parameters, write_model
from heedful.tasks import TASKS, trained
from heedful.tasks.paint.use import Painter, PaintSpec
from heedful.verbs.exchange import export_model, import_model
from hub import LINES, TEXTS
from loud import make_loud
from ours import same_model
from saved import save_run

# The first are no network, of alignments the Hub has no models, and its classifiers of sounds hear no mel bands alone.
NO_FAMILY = {"vectors", "fold", "classify-sounds"}


def close(ours: Tensor, theirs: Tensor) -> None:
    largest = float(theirs[theirs.isfinite()].abs().max())
    assert largest > 1, "weights are loud"
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * largest)


@pytest.mark.parametrize("task", sorted(trained().keys() - {"summarise", "prefer", *NO_FAMILY}))
def test_every_default_has_a_family(task: str, tmp_path: Path) -> None:
    """A model of the default preset, before its first step."""
    case = next(case for case in CASES.values() if case.task == task)
    row = TASKS[task]
    assert row.job
    preset = row.recipe().model_fields["preset"].default
    job = row.job()(recipe_of(replace(case, preset=preset), {}, {}), case.corpus)
    model = make_model(job.config)
    write_model(tmp_path / "run", model, parameters(model), job.tokenizers() | {"task.json": job.spec()})
    assert export_model(tmp_path / "run", tmp_path / "hub").family


def test_a_parser_is_a_translator_into_brackets(tmp_path: Path) -> None:
    labels = ("NP", "S", "VP")
    tokenizer, brackets = train_tokenizer(LINES * 3, kind="bpe", size=330), BracketVocabulary(labels)
    row = replace(TRANSLATORS["transformer-tiny"], d_model=16, n_heads=2, d_ff=24)
    config = translator_config(row, source_vocab=tokenizer.size, target_vocab=brackets.size, joint=False)
    model = make_model(config).eval()
    torch.manual_seed(3)
    make_loud(model, norm=1.0)
    about = {"task": "parse", "labels": labels, "run": 2, "beam": 1}
    ours = heedful.load(save_run(tmp_path / "run", model, tokenizer, tokenizer, about))
    assert export_model(tmp_path / "run", tmp_path / "hub").notes == ("there a search may say what is no tree",)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hub").eval()
    reads = AutoTokenizer.from_pretrained(tmp_path / "hub")
    first = tokenizer.size
    texts = ["The small cat", "he sings ( NP XX", "</tree> <tree> (S"]
    for text in texts:
        source, segments = pad(ours.encode([[Leaf(LEAF, word) for word in text.split()]]))
        given = reads(text, return_tensors="pt").input_ids
        assert given.tolist() == source.tolist()
        said = torch.tensor([[BOS, *(brackets.ids[name] for name in ("(S", "(NP", LEAF, ")NP", ")S")), EOS]])
        with torch.no_grad():
            found = theirs(input_ids=given, decoder_input_ids=said + first).logits
            hidden = ours.model.hidden(source, said, segments, torch.ones_like(said))
            close(ours.model.head(hidden), found[:, :, first:])
        assert found[:, :, :first].isneginf().all()
        assert reads.decode((said + first)[0]) == "<tree> (S (NP XX )NP )S </tree>"
    assert theirs.generation_config.decoder_start_token_id == first + BOS
    assert import_model(tmp_path / "hub", tmp_path / "again").task == "translate"


def classifier_run(folder: Path, answers: int | None, **about: Any) -> Any:
    tokenizer = train_tokenizer(LINES * 3, kind="bpe", size=400)
    more = 2 if about["task"] == "classify" else 0
    row = replace(LANGUAGE_MODELS["gpt-mini"], d_model=16, n_heads=2, n_layers=2, context_length=64)
    config = ClassifierConfig(lm=lm_config(row, vocab_size=tokenizer.size + more), answers=answers)
    model = make_model(config).eval()
    torch.manual_seed(4)
    make_loud(model, norm=1.0)
    ours = heedful.load(save_run(folder / "run", model, tokenizer, tokenizer, about))
    notes = export_model(folder / "run", folder / "hub").notes
    assert [note.startswith("there a ") for note in notes] == [True] * (answers is None)
    theirs = AutoModelForSequenceClassification.from_pretrained(folder / "hub").eval()
    return ours, theirs, AutoTokenizer.from_pretrained(folder / "hub")


def scores(theirs: Any, reads: Any, *texts: Any) -> Tensor:
    with torch.no_grad():
        return torch.cat([theirs(**reads(*text, return_tensors="pt")).logits[:, 0] for text in texts])


def test_a_score_is_told_in_its_own_scale(tmp_path: Path) -> None:
    ours, theirs, reads = classifier_run(tmp_path, 1, task="classify", answer="score", mean=3.5, deviation=1.7)
    texts = TEXTS[:6]
    right = torch.tensor([score for ((_, score),) in ours.classify(texts)])
    close(scores(theirs, reads, *((text,) for text in texts)), right)
    assert import_model(tmp_path / "hub", tmp_path / "again").task == "classify"


def test_a_choice_is_a_score_of_each(tmp_path: Path) -> None:
    ours, theirs, reads = classifier_run(tmp_path, None, task="classify", answer="choice")
    choices = ["sleeps", "reads a book", "123"]
    found = scores(theirs, reads, *((LINES[0], choice) for choice in choices)).softmax(0)
    (told,) = ours.classify(LINES[:1], choices=[choices])
    assert dict(zip(choices, found.tolist(), strict=True)) == pytest.approx(dict(told), abs=1e-5)


def test_a_reward_is_one_number(tmp_path: Path) -> None:
    about = {"prompting": {"end": 2}}
    ours, theirs, reads = classifier_run(tmp_path, None, task="reward", **about)
    found = scores(theirs, reads, *((f"{prompt}{answer}",) for prompt, answer in zip(LINES, TEXTS[4:8], strict=True)))
    close(found, torch.tensor(ours.reward(TEXTS[4:8], LINES)))
    assert import_model(tmp_path / "hub", tmp_path / "again").task == "classify"


@pytest.mark.parametrize("palette", [grey_palette(5), Palette(((0, 0, 0), (255, 10, 30), (40, 200, 90)))])
def test_a_painter_reads_pictures_as_colours(tmp_path: Path, palette: Palette) -> None:
    channels = len(palette.colours[0])
    spec = PaintSpec(palette=palette, preparation=Preparation(channels=channels, resize=(4,), crop=(4, 4)))
    row = replace(PAINTERS["image-gpt-nano"], d_model=16, n_heads=2, n_layers=2)
    model = make_model(lm_config(row, vocab_size=len(palette) + 1, context_length=16)).eval()
    torch.manual_seed(5)
    make_loud(model, norm=1.0)
    about = {"task": "paint", **to_json(spec)}
    write_model(tmp_path / "run", model, parameters(model), {"task.json": about})
    ours = Painter.load(tmp_path / "run")
    export_model(tmp_path / "run", tmp_path / "hub")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "hub").eval()
    reads = ImageGPTImageProcessorPil.from_pretrained(tmp_path / "hub")  # AutoImageProcessor, where torchvision is
    made = numpy.random.default_rng(6).integers(0, 256, (4, 4, 3)[: channels // 2 + 2], dtype=numpy.uint8)
    Image.fromarray(made).save(tmp_path / "x.png")
    numbers = torch.as_tensor(numpy.array(reads(Image.open(tmp_path / "x.png"), return_tensors="np").input_ids))
    begun = ours.begin([tmp_path / "x.png"], keep=0.75)
    assert numbers[:, : begun.shape[1]].tolist() == begun.tolist()
    tokens = torch.cat([torch.tensor([[len(palette)]]), numbers[:, :-1]], 1)
    with torch.no_grad():
        close(ours.model(tokens), theirs(tokens).logits)
    made = import_model(tmp_path / "hub", tmp_path / "again")
    assert (made.task, made.vocab_size, made.notes) == ("paint", None, ())
    assert Painter.load(tmp_path / "again").spec == spec
    assert same_model(tmp_path / "run", tmp_path / "again")


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        ("preprocessor_config.json", {"image_mean": [0.1] * 3}, "image_mean is"),
        ("preprocessor_config.json", {"do_pad": True}, "do_pad is True: only None can be followed"),
        ("preprocessor_config.json", {"clusters": [[0.0, 1.0]]}, "different colours"),
        ("preprocessor_config.json", {"clusters": [[-9.0] * 3]}, "must be from 0"),
        ("preprocessor_config.json", {"clusters": [["a"]]}, "no clusters"),
        ("preprocessor_config.json", {"clusters": [[-1.0] * 3, [1.0] * 3]}, "2 colours and 16 pixels"),
        ("preprocessor_config.json", {"size": 4}, "no height and width"),
        ("preprocessor_config.json", {"resample": 9}, "resample"),
        ("generation_config.json", {"bos_token_id": 0}, "4 colours and 16 pixels"),
    ],
)
def test_a_painter_of_other_pictures_is_refused(tmp_path: Path, name: str, changes: Any, told: str) -> None:
    spec = PaintSpec(palette=grey_palette(4), preparation=Preparation(channels=1, resize=(4,), crop=(4, 4)))
    row = replace(PAINTERS["image-gpt-nano"], d_model=16, n_heads=2, n_layers=1)
    model = make_model(lm_config(row, vocab_size=5, context_length=16)).eval()
    write_model(tmp_path / "run", model, parameters(model), {"task.json": {"task": "paint", **to_json(spec)}})
    export_model(tmp_path / "run", tmp_path / "hub")
    file = tmp_path / "hub" / name
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), encoding="utf-8")
    with pytest.raises(InputError, match=told):
        import_model(tmp_path / "hub", tmp_path / "again")
    assert not (tmp_path / "again").exists()
