"""Translators to and from the Hub's folders: Marian, as OPUS-MT is published, and those that were made here."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import heedful
from commands import heed
from heedful.data.tokenizer import Kind
from heedful.errors import HeedError, InputError, StorageError
from heedful.exchange.hf.folder import packed
from heedful.models import make_model
from heedful.models.presets import (
    RNNSize,
    TransformerSize,
    lm_config,
    translator_config,
)
from heedful.tasks.translate.inside.look import look_at_translation
from heedful.tasks.translate.use import Translator
from heedful.verbs import exchange
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from hub import LINES, TEXTS, Imported, marian_folder
from ours import DECODERS, KINDS, own_run, own_tokenizer, same_model
from saying import searched_whole

Both = Imported[Translator]


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Both:
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("marian") / "opus-mt-en-de"
    theirs, run = marian_folder(folder), folder.parent / "run"
    assert heed("import", folder, "--out", run) == 0
    return Both(theirs, marian_tokenizer(folder), folder, run, heedful.load(run))


def marian_tokenizer(folder: Path) -> Any:
    with pytest.warns(UserWarning, match="sacremoses"):  # a library for texts, of which the tokenizer calls nothing
        return AutoTokenizer.from_pretrained(folder)


SOURCES = [*TEXTS, ">>de<< The small cat", ">>de<<The cat", "a", "", "a </s> b", "<unk>", "x a y"]


def test_pieces_have_their_ids(marian: Both) -> None:
    source, target = marian.ours.source, marian.ours.target
    assert marian.ours.around == ([], [0])
    assert [[*ids, 0] for ids in source.encode(SOURCES)] == marian.tokenizer(SOURCES).input_ids
    assert [[*ids, 0] for ids in target.encode(SOURCES)] == marian.tokenizer(text_target=SOURCES).input_ids
    assert source.numbers is not None
    for ids in [*source.encode(SOURCES), *target.encode(SOURCES), [*source.numbers.values()]]:
        assert target.decode(ids) == marian.tokenizer.decode(ids, skip_special_tokens=True)


def translations(theirs: Any, tokenizer: Any, texts: list[str], **options: Any) -> list[list[int]]:
    """With their end tokens."""
    found = []
    for text in texts:
        ids = torch.tensor([tokenizer(text).input_ids])
        with torch.no_grad():
            made = theirs.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **options)
        found.append(made[0].tolist()[1:])
    return found


@pytest.mark.parametrize("renormalise", [False, True])
@pytest.mark.parametrize("beam", [1, 3])
def test_translations_are_theirs(marian: Both, beam: int, renormalise: bool) -> None:
    texts = [text for text in SOURCES if text.strip()]
    decoding = marian.ours.decoding(beam=beam, longest=40, renormalise=renormalise)
    found = marian.ours.hypotheses(marian.ours.source.encode(texts), decoding)
    options = {"num_beams": beam, "max_length": 41, "renormalize_logits": renormalise}
    expected = translations(marian.theirs, marian.tokenizer, texts, **options)
    ended = [ids[-1] == 0 for ids in expected]
    assert len(set(map(tuple, expected))) > 5
    assert len(set(ended)) == 2, "some stop at the limit"
    assert [[*best[0].tokens, *([0] if best[0].finished else [])] for best in found] == expected
    read = [marian.tokenizer.decode(ids, skip_special_tokens=True) for ids in expected]
    assert searched_whole(marian.ours, texts, beam=beam, longest=40, renormalise=renormalise) == read


def stopping(folder: Path, early: bool | None, count: int) -> tuple[Any, Any, Translator, list[str]]:
    """A model for which it makes a difference, their tokenizer, ours, and so many texts."""
    torch.manual_seed(1)
    theirs = marian_folder(folder / "hub")
    path = folder / "hub/generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"early_stopping": early}))
    import_model(folder / "hub", folder / "run")
    draw, words = random.Random(0), " ".join(LINES).split()
    texts = [" ".join(draw.sample(words, draw.randint(2, 7))) for _ in range(count)]
    return theirs, marian_tokenizer(folder / "hub"), Translator.load(folder / "run"), texts


@pytest.mark.parametrize("early", [None, False, True])
def test_a_beam_ends_when_theirs_does(tmp_path: Path, early: bool | None) -> None:
    """None: as where a file does not say, which is False."""
    theirs, tokenizer, ours, texts = stopping(tmp_path, early, 10)
    found = ours.hypotheses(ours.source.encode(texts), ours.decoding(beam=3, length_penalty=2.0))
    said = [[*best[0].tokens, 0] for best in found]
    options: dict[str, Any] = {"num_beams": 3, "max_length": 64, "length_penalty": 2.0}
    assert said == translations(theirs, tokenizer, texts, **options, early_stopping=bool(early))
    assert said != translations(theirs, tokenizer, texts, **options, early_stopping=not early)
    export_model(tmp_path / "run", tmp_path / "back")
    assert json.loads((tmp_path / "back/generation_config.json").read_text())["early_stopping"] is bool(early)


@pytest.mark.parametrize("longest", [4, 8])
def test_what_has_not_ended_at_the_limit_comes_where_theirs_does(tmp_path: Path, longest: int) -> None:
    theirs, tokenizer, ours, texts = stopping(tmp_path, True, 12)

    def said(**more: Any) -> list[list[int]]:
        found = ours.hypotheses(ours.source.encode(texts), ours.decoding(beam=3, longest=longest, **more))
        return [[*best[0].tokens, *([0] if best[0].finished else [])] for best in found]

    options = {"num_beams": 3, "max_length": longest + 1, "early_stopping": True}
    assert said() == translations(theirs, tokenizer, texts, **options) != said(finished_first=True)
    export_model(tmp_path / "run", tmp_path / "back")
    import_model(tmp_path / "back", tmp_path / "again")
    assert Translator.load(tmp_path / "again").about["decode"] == ours.about["decode"]


def test_what_may_not_come_has_no_share(marian: Both, tmp_path: Path) -> None:
    """As OPUS-MT is published: padding has a logit, is forbidden, and what is left is to sum to 1."""
    folder = shutil.copytree(marian.folder, tmp_path / "published")
    said = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps(said | {"renormalize_logits": True}))
    assert heed("import", folder, "--out", tmp_path / "run") == 0
    ours = Translator.load(tmp_path / "run")
    assert ours.about["decode"]["renormalise"] is True
    text = LINES[0]
    ids = torch.tensor([marian.tokenizer(text).input_ids])
    options = {"num_beams": 2, "max_length": 41, "renormalize_logits": True, "output_scores": True}
    theirs = marian.theirs.generate(ids, return_dict_in_generate=True, do_sample=False, **options)
    found = ours.hypotheses(ours.source.encode([text]), ours.decoding(longest=40))[0][0]
    assert [*found.tokens, 0] == theirs.sequences[0, 1:].tolist()
    assert found.score == pytest.approx(theirs.sequences_scores.item(), abs=1e-5)
    plain = ours.hypotheses(ours.source.encode([text]), ours.decoding(longest=40, renormalise=False))[0][0]
    assert plain.score < found.score - 1e-3
    assert heed("export", tmp_path / "run", "--to", "hf", "--out", tmp_path / "back") == 0
    assert json.loads((tmp_path / "back/generation_config.json").read_text())["renormalize_logits"] is True


def test_marian_is_served_like_any_translator(marian: Both, tmp_path: Path) -> None:
    assert [law.name for law in check(marian.run) if not law.holds] == []
    assert [law.name for law in check(marian.run, LINES) if not law.holds] == []
    searched = {"beam": 2, "length_penalty": 1.0, "no_repeat": 2, "longest": 63, "early_stopping": False}
    assert marian.ours.about["decode"] == searched
    assert heed("translate", marian.run, LINES[0]) == 0
    assert heed("info", marian.run) == 0
    seen = look_at_translation(marian.ours, "The cat")
    assert seen.source[-1] == "</s>"
    assert (seen.read[0], seen.said[-1]) == ("<pad>", "</s>")


def test_marian_there_and_back_and_there(marian: Both, tmp_path: Path) -> None:
    assert heed("export", marian.run, "--to", "hf", "--out", tmp_path / "back") == 0
    for name in ("source.spm", "target.spm"):
        assert (tmp_path / "back" / name).read_bytes() == (marian.folder / name).read_bytes()
    back = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back")
    theirs = marian.theirs.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in back.state_dict().items())
    assert back.state_dict().keys() == theirs.keys()
    again = marian_tokenizer(tmp_path / "back")
    assert again(SOURCES).input_ids == marian.tokenizer(SOURCES).input_ids
    assert translations(back, again, LINES) == translations(marian.theirs, marian.tokenizer, LINES)
    import_model(tmp_path / "back", tmp_path / "run")
    for path in marian.run.iterdir():
        if path.name != "model.safetensors":
            assert (tmp_path / "run" / path.name).read_bytes() == path.read_bytes(), path.name
    assert same_model(tmp_path / "run", marian.run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"forced_bos_token_id": 9999}, "forced_bos_token_id is 9999, which is no token"),
        ({"forced_eos_token_id": 5}, "forced_eos_token_id is 5: only 0 can be followed"),
        ({"repetition_penalty": 1.2}, "repetition_penalty is 1.2: only 1.0 can be followed"),
        ({"do_sample": True}, "do_sample is True: only False can be followed"),
        ({"bad_words_ids": [[5, 6]]}, "bad_words_ids has words of several tokens"),
        ({"max_length": "x"}, "a length is no number"),
        ({"separate_vocabs": True}, "separate_vocabs cannot be read yet"),
        ({"source.spm": b"\x0a\x05xx"}, "source.spm: not a SentencePiece model"),
        ({"bad_words_ids": 5}, "bad_words_ids or suppress_tokens lists no tokens"),
        ({"early_stopping": "never"}, "early_stopping is 'never': only True or False can be followed"),
        ({"num_beams": "x"}, "generation_config.json.beam: expected int, found 'x'"),
        ({"vocab.json": b'{"a": "b"}'}, "vocab.json: does not number its pieces"),
        ({"vocab.json": None}, "no tokenizer"),
        ({"target.spm": None}, "target.spm: no such file"),
    ],
)
def test_translators_that_cannot_be_read_are_refused(
    marian: Both, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(marian.folder, folder)
    ((key, value),) = change.items()
    if value is None:
        (folder / key).unlink()
    elif isinstance(value, bytes):
        (folder / key).write_bytes(value)
    else:
        path = folder / ("tokenizer_config.json" if key == "separate_vocabs" else "generation_config.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(HeedError, match=message):
        import_model(folder, tmp_path / "never")


# What was made here


ROW = TransformerSize(
    d_model=16, n_heads=4, d_ff=24, encoder_layers=2, decoder_layers=2, order="post", activation="silu"
)


def like_marian(size: int) -> Any:
    """A translator of ours in the words that Marian has."""
    config = translator_config(ROW, source_vocab=size, target_vocab=size, joint=True)

    def stack(own: Any) -> Any:
        attention = replace(own.block.attention, bias=True)
        cross = None if own.block.cross is None else attention
        return replace(own, block=replace(own.block, attention=attention, cross=cross))

    embed = replace(config.source, sines_first=True, context_length=64)
    stacks = {"encoder": stack(config.encoder), "decoder": stack(config.decoder)}
    return make_model(replace(config, source=embed, target=embed, output_bias=True, **stacks))


ABOUT = {"task": "translate", "source": "low", "target": "high", "decode": {"beam": 1, "length_penalty": 1.0}}


@pytest.mark.parametrize("kind", KINDS)
def test_translators_of_ours_load_there(tmp_path: Path, kind: Kind) -> None:
    tokenizer = own_tokenizer(kind)
    ours = own_run(tmp_path / "run", like_marian(tokenizer.size), tokenizer, tokenizer, ABOUT)
    export_model(tmp_path / "run", tmp_path / "hub")
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hub").eval()
    reader = AutoTokenizer.from_pretrained(tmp_path / "hub")
    texts = [*TEXTS, "", "<s>", "a</s> <unk>"]
    assert reader(texts).input_ids == [[*ids, 3] for ids in tokenizer.encode(texts)]
    short = TEXTS[4:]
    expected = translations(theirs, reader, short, max_length=17)
    found = ours.hypotheses(tokenizer.encode(short), ours.decoding(longest=16))
    assert [list(best[0].tokens) for best in found] == [[token for token in ids if token != 3] for ids in expected]
    said = [reader.decode(ids, skip_special_tokens=True) for ids in expected]
    read = [one if text.strip() else "" for text, one in zip(short, said, strict=True)]  # nothing is said of nothing
    assert searched_whole(ours, short, longest=16) == read
    import_model(tmp_path / "hub", tmp_path / "again")
    assert searched_whole(heedful.load(tmp_path / "again"), short, longest=16) == read


def test_what_the_hub_has_no_words_for_is_named(tmp_path: Path) -> None:
    tokenizer = own_tokenizer("bytes")
    size = tokenizer.size
    nets = {
        "cannot hold .*model.encoder.block.order = 'sandwich'": translator_config(
            replace(ROW, order="sandwich"), source_vocab=size, target_vocab=size, joint=True
        ),
        "have no model like a RNN": translator_config(
            RNNSize(d_embed=4, d_hidden=4, d_align=4, d_readout=4), source_vocab=size, target_vocab=size, joint=True
        ),
        "GPT-2 cannot hold model.stack.block.order = 'post', model.stack.final_norm = False": lm_config(
            replace(DECODERS["gpt2"], style="gpt1"), vocab_size=size
        ),
    }
    for number, (message, config) in enumerate(nets.items()):
        about = {"task": "generate"} if "GPT" in message else ABOUT
        own_run(tmp_path / str(number), make_model(config), tokenizer, tokenizer, about)
        with pytest.raises(InputError, match=message):
            export_model(tmp_path / str(number), tmp_path / "never")
    own_run(tmp_path / "sides", like_marian(size), tokenizer, own_tokenizer("bytes"), ABOUT)
    with pytest.raises(InputError, match="its sides have a tokenizer each"):
        export_model(tmp_path / "sides", tmp_path / "never")
    with pytest.raises(InputError, match="unknown key 'onyx'"):
        export_model(tmp_path / "sides", tmp_path / "never", to="onyx")
    assert not [path for path in tmp_path.iterdir() if "never" in path.name]


def test_what_reads_back_as_something_else_is_not_handed_out(
    marian: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(tensors: dict[str, Tensor]) -> bytes:
        return packed({name: value + (name == "model.decoder.layers.1.fc1.bias") for name, value in tensors.items()})

    monkeypatch.setattr(exchange, "packed", wrong)
    with pytest.raises(StorageError, match=r"decoder\.blocks\.1\.mlp\.up\.bias reads back as something else"):
        export_model(marian.run, tmp_path / "never")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(marian: Both, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("x")
    with pytest.raises(InputError, match="full: is not empty"):
        import_model(marian.folder, tmp_path / "full")
    with pytest.raises(InputError, match="full: is not empty"):
        export_model(marian.run, tmp_path / "full")
    (tmp_path / "empty").mkdir()
    import_model(marian.folder, tmp_path / "empty")
    assert len(list(tmp_path.iterdir())) == 2
