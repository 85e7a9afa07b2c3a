"""Translators that go to the Hub's form and come back: what they say, by transformers too, and all that they know."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import heedful
from heedful.core.config import from_json, to_json
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.models import make_model
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.models.seq2seq_presets import Seq2SeqSize
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.tasks.translate.use import Translator
from heedful.verbs.exchange import export_model, import_model
from hub import LINES
from ours import own_run, own_tokenizer
from saved import save_run

ABOUT = {"task": "translate", "source": "low", "target": "high"}
SMALL = {"d_model": 16, "n_heads": 4, "head_dim": 4, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 2}


def t5(folder: Path, tokenizer: Tokenizer, about: dict[str, Any]) -> Translator:
    torch.manual_seed(4)
    row = from_json(Seq2SeqSize, to_json(TRANSLATORS["t5-small"]) | SMALL, where="test")
    config = translator_config(row, source_vocab=tokenizer.size, target_vocab=tokenizer.size, joint=True)
    made: Translator = own_run(folder, make_model(config), tokenizer, tokenizer, ABOUT | about)
    return made


def again(folder: Path) -> Translator:
    """Exported into a folder beside it, and imported once more."""
    export_model(folder / "run", folder / "hub")
    import_model(folder / "hub", folder / "again")
    return Translator.load(folder / "again")


def test_it_ends_by_the_sources_length_as_before(tmp_path: Path) -> None:
    tokenizer = own_tokenizer("bpe")
    ours = t5(tmp_path / "run", tokenizer, {"decode": {"beam": 1}})
    model: Any = ours.model
    with torch.no_grad():
        model.target.tokens.weight[tokenizer.eos] = 0.0  # texts do not end by themselves
    own_length = [2 * len(ids) + 12 for ids in tokenizer.encode(LINES)]
    run = tmp_path / "long"
    run.mkdir()
    save_run(run / "run", model, tokenizer, tokenizer, ours.about)
    back = again(run)
    found = back.hypotheses(tokenizer.encode(LINES), back.decoding())
    assert max(len(best.tokens) for (best,) in found) <= max(own_length)
    assert [best.tokens for (best,) in found] == [
        best.tokens for (best,) in ours.hypotheses(tokenizer.encode(LINES), ours.decoding())
    ]
    path = run / "hub" / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_length": 9}))
    import_model(run / "hub", run / "shorter")
    assert Translator.load(run / "shorter").decoding().longest == 8


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_denoiser_comes_back_as_one_and_says_its_marks_there(tmp_path: Path, kind: Any) -> None:
    tokenizer = train_tokenizer(LINES * 2, kind=kind, size=340, sentinels=5)
    noise = {"objective": "spans", "longest": 30}
    ours = t5(tmp_path / "run", tokenizer, {"decode": {"beam": 1, "longest": 12}, "noise": noise})
    back = again(tmp_path)
    assert back.about["noise"] == noise
    texts = [f"{line} <extra_id_0> ." for line in LINES]
    assert back.translate(texts) == ours.translate(texts)
    rows = [[tokenizer.sentinels[0], *ids, *tokenizer.sentinels[1:3], *ids[:2]] for ids in tokenizer.encode(LINES)]
    reader = AutoTokenizer.from_pretrained(tmp_path / "hub")
    said = [tokenizer.decode_marked(row) for row in rows]
    assert all("> <extra_id_2>" in text for text in said)
    assert [reader.decode([0, *row, 3], skip_special_tokens=True) for row in rows] == said
    assert [back.target.decode_marked(row) for row in rows] == said


def test_what_is_cut_is_cut_there_and_scored_as_before(tmp_path: Path) -> None:
    tokenizer = own_tokenizer("bpe")
    about = {"decode": {"beam": 2, "longest": 9}, "longest_source": 6, "scores": "rouge"}
    ours = t5(tmp_path / "run", tokenizer, about)
    told = export_model(tmp_path / "run", tmp_path / "told").notes
    assert told == ("there a text is read as a whole without truncation=True: the run itself reads 6 tokens of it",)
    back, text = again(tmp_path), " ".join(LINES)
    assert {key: back.about.get(key) for key in about if key != "decode"} == {"longest_source": 6, "scores": "rouge"}
    reader = AutoTokenizer.from_pretrained(tmp_path / "hub")
    given = reader(text, truncation=True, return_tensors="pt")
    assert given.input_ids.tolist() == [ours.framed(ours.encode([text])[0][0])]
    made = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hub").generate(**given)[0]
    with pytest.warns(UserWarning, match="too long"):
        assert [reader.decode(made, skip_special_tokens=True)] == ours.translate([text]) == back.translate([text])


def test_its_languages_and_kinds_can_be_asked_for_again(tmp_path: Path) -> None:
    names = ["<|to_de|>", "<|to_fr|>", "<|tag_plain|>"]
    tokenizer = train_tokenizer(LINES * 2, kind="bpe", size=340, extra=names)
    de, fr, plain = (tokenizer.extra[name] for name in names)
    languages = {"tokens": {"de": de, "fr": fr}, "target": "before", "directions": ["en>de", "en>fr"]}
    about = {"languages": languages, "before": [de], "source": "en", "target": "de", "decode": {"longest": 9}}
    ours = t5(
        tmp_path / "run", tokenizer, TranslatorSpec.read(about | {"tags": {"plain": plain}}).with_tag("plain").written()
    )
    back = again(tmp_path)
    for target in ("de", "fr"):
        asked = back.directed("en", target, "plain")
        assert asked.about["before"] == [fr if target == "fr" else de, plain]
        assert asked.translate(LINES) == ours.directed("en", target, "plain").translate(LINES)
    texts = [*LINES, "<s>old</s> new", "a <|to_fr|> b"]  # which spell control tokens, and are only text
    reader = AutoTokenizer.from_pretrained(tmp_path / "hub")
    assert reader(texts).input_ids == [[de, plain, *ids, tokenizer.eos] for ids in tokenizer.encode(texts)]


def test_what_the_run_does_beside_is_told(tmp_path: Path) -> None:
    tokenizer = own_tokenizer("bpe")
    t5(tmp_path / "run", tokenizer, {"source_tokens": {"longest": 7, "centile_99": 6}})
    assert export_model(tmp_path / "run", tmp_path / "hub").notes == (
        "there a text is read as it stands: the run itself keeps addresses and placeholders; it translates what is "
        "longer than 7 tokens in parts; it says at most twice a source's tokens and 12 more, and of that "
        "what has ended first",
    )
    assert not any("parts" in note for note in import_model(tmp_path / "hub", tmp_path / "again").notes)
    assert heedful.load(tmp_path / "again").about["source_tokens"] == {"longest": 7, "centile_99": 6}
