"""BART and T5 from and to folders of the Hub: what a run made of one says is what transformers says.

Weights are loud (see `hub.py`); logits agree to 1e-5 of the largest, all else exactly.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import heedful
from heedful.core.config import from_json, to_json
from heedful.data.text.corpus import Corpus
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.models.seq2seq_presets import Seq2SeqSize
from heedful.store.model import read_model
from heedful.tasks.recipes import build
from heedful.tasks.translate.inside.look import look_at_translation
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.use import Translator
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from heedful.verbs.train import train
from hub import LINES, TEXTS, Imported, bart_folder, t5_folder
from loud import make_loud
from made import with_about
from saved import save_run
from saying import searched_whole

MAKERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "bart": (bart_folder, {}),
    "t5": (t5_folder, {}),
    "t5, gated": (t5_folder, {"gated": True}),
    "t5, gated, one matrix": (t5_folder, {"gated": True, "parted": False}),
}
SOURCES = [
    *TEXTS[:4],
    " two  spaces",
    "The <mask> cat",
    "<extra_id_0> and <extra_id_1>x",
    "a </s> b <s><pad>",
    "<unk>",
]


Pair = Imported[Translator]


def made(folder: Path, name: str, **options: Any) -> Pair:
    make, own = MAKERS[name]
    torch.manual_seed(1)
    theirs = make(folder / "theirs", **own | options)
    import_model(folder / "theirs", folder / "run")
    tokenizer = AutoTokenizer.from_pretrained(folder / "theirs")
    return Pair(theirs, tokenizer, folder / "theirs", folder / "run", heedful.load(folder / "run"))


@pytest.fixture(scope="module", params=sorted(MAKERS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return made(tmp_path_factory.mktemp("hub"), request.param)


def said(pair: Pair, texts: list[str], **options: Any) -> list[list[int]]:
    """What theirs says, without the token that decoding begins with."""
    found = []
    for text in texts:
        ids = torch.tensor([pair.tokenizer(text).input_ids])
        with torch.no_grad():
            whole = pair.theirs.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **options)
        found.append(whole[0].tolist()[1:])
    return found


def spoken(pair: Pair, texts: list[str], **settings: Any) -> list[list[int]]:
    """What ours says, with what it begins with and its end."""
    ours = pair.ours
    found = ours.hypotheses(ours.encode(texts)[0], ours.decoding(**settings))
    return [[*best[0].tokens, *([ours.target.eos] if best[0].finished else [])] for best in found]


def test_texts_have_their_ids(pair: Pair) -> None:
    before, after = pair.ours.around
    expected = pair.tokenizer(SOURCES).input_ids
    assert [[*before, *ids, *after] for ids in pair.ours.source.encode(SOURCES)] == expected
    for ids in expected:
        assert pair.ours.target.decode(ids) == pair.tokenizer.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_bare_lists_are_the_same_tokenizer(tmp_path: Path, name: str) -> None:
    whole, bare = tmp_path / "whole", tmp_path / "bare"
    tokenizer = made(whole, name).tokenizer
    MAKERS[name][0](bare, bare=True)
    import_model(bare, tmp_path / "run")
    ours = heedful.load(tmp_path / "run")
    before, after = ours.around
    assert [[*before, *ids, *after] for ids in ours.source.encode(SOURCES)] == tokenizer(SOURCES).input_ids
    special = "special_tokens.json"
    assert (tmp_path / "run" / special).read_text() == (whole / "run" / special).read_text()


@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_said_is_theirs(pair: Pair, beam: int) -> None:
    end = pair.ours.target.eos
    options = {"num_beams": beam, "max_length": 17, "early_stopping": beam > 1, "forced_eos_token_id": end}
    expected = said(pair, SOURCES, **options)
    assert len({tuple(ids) for ids in expected}) > 5
    assert spoken(pair, SOURCES, beam=beam, longest=16, forced_eos=True) == expected
    read = [pair.tokenizer.decode(ids, skip_special_tokens=True) for ids in expected]
    assert searched_whole(pair.ours, SOURCES, beam=beam, longest=16, forced_eos=True) == read


def test_the_fewest_new_tokens_go_before_the_least_length(tmp_path: Path) -> None:
    pair = made(tmp_path, "bart", num_beams=1, early_stopping=False, min_length=9, min_new_tokens=2, max_length=15)
    expected = said(pair, SOURCES)
    assert min(map(len, expected)) < 8
    assert spoken(pair, SOURCES) == expected


def test_what_is_never_said_is_read_where_their_search_is(tmp_path: Path) -> None:
    """Not in a config.json beside a generation_config.json, which their library does not look at."""
    pair = made(tmp_path, "bart", num_beams=1, early_stopping=False, max_length=15)
    expected = said(pair, SOURCES)
    path = pair.folder / "config.json"
    never = sorted({index for ids in expected for index in ids} - {2})
    path.write_text(json.dumps(json.loads(path.read_text()) | {"suppress_tokens": never}))
    import_model(pair.folder, tmp_path / "again")
    again = pair._replace(ours=heedful.load(tmp_path / "again"))
    assert said(pair._replace(theirs=AutoModelForSeq2SeqLM.from_pretrained(pair.folder)), SOURCES) == expected
    assert spoken(again, SOURCES) == expected


@pytest.mark.parametrize("name", ["bart", "t5"])
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_the_search_of_their_files_is_followed(tmp_path: Path, name: str, penalty: float) -> None:
    """All that is said is as long as `min_length` asks, and ends at `max_length` as if the model were sure of it."""
    own = {"num_beams": 4, "early_stopping": True, "min_length": 7, "max_length": 15, "length_penalty": penalty}
    pair = made(tmp_path, name, **own, forced_eos_token_id={"bart": 2, "t5": 1}[name])
    assert pair.ours.about["decode"] == {
        "beam": 4,
        "length_penalty": penalty,
        "no_repeat": 2,
        "longest": 14,
        "shortest": 6,
        "forced_eos": True,
    }
    expected = said(pair, SOURCES)
    assert all(7 <= len(ids) <= 14 for ids in expected)
    assert spoken(pair, SOURCES) == expected
    assert spoken(pair, SOURCES, beam=1) == said(pair, SOURCES, num_beams=1, early_stopping=False)
    export_model(pair.run, tmp_path / "back")
    back = pair._replace(theirs=AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back"))
    assert said(back, SOURCES) == expected


@pytest.mark.parametrize("limit", [{"max_new_tokens": 9}, {"max_length": 10}])
def test_it_ends_where_their_files_say(tmp_path: Path, limit: dict[str, int]) -> None:
    """Unless another limit is asked for."""
    pair = made(tmp_path, "bart", num_beams=2, early_stopping=True, **limit)
    assert pair.ours.about["decode"]["longest"] == 9
    expected = said(pair, SOURCES)
    assert max(map(len, expected)) in (8, 9)
    assert spoken(pair, SOURCES) == expected
    assert all(len(ids) <= 4 for ids in spoken(pair, SOURCES, longest=4))


def test_it_is_served_like_any_translator(pair: Pair) -> None:
    assert [law.name for law in check(pair.run) if not law.holds] == []
    ours = heedful.load(pair.run, Translator)
    ours = with_about(ours, decode={**(ours.spec.decode or {}), "longest": 24})  # T5's has no end but its 511 tokens
    seen = look_at_translation(ours, "The cat")
    assert seen.source[-1] == "</s>"
    assert ours.translate(["The cat"], prefix=["The"])[0].startswith("The")


def test_there_and_back_and_there(pair: Pair, tmp_path: Path) -> None:
    export_model(pair.run, tmp_path / "back")
    back = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back")
    theirs = pair.theirs.state_dict()
    assert back.state_dict().keys() == theirs.keys()
    assert all(torch.equal(value, theirs[name]) for name, value in back.state_dict().items())
    again = AutoTokenizer.from_pretrained(tmp_path / "back")
    assert again(SOURCES).input_ids == pair.tokenizer(SOURCES).input_ids
    assert again(SOURCES[0]).keys() == {"input_ids", "attention_mask"}
    assert said(pair._replace(theirs=back, tokenizer=again), LINES, max_length=30) == said(pair, LINES, max_length=30)
    import_model(tmp_path / "back", tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in pair.run.iterdir()}
    for path in pair.run.iterdir():
        if path.name != "model.safetensors":
            assert (tmp_path / "run" / path.name).read_text() == path.read_text(), path.name
    ours, expected = read_model(tmp_path / "run")[1], read_model(pair.run)[1]
    assert all(torch.equal(ours[name], value) for name, value in expected.items())


@pytest.mark.filterwarnings("ignore:.*the longest source that it was trained on")
def test_what_is_imported_can_be_learnt_from(pair: Pair, tmp_path: Path) -> None:
    """A target begins and ends as theirs does: the loss of the first step is theirs."""
    pairs = Pairs([*LINES[:2]], [*LINES[2:]], "made")
    corpus = Corpus(pairs, pairs, {"test": pairs}, "made", source="low", target="high")
    plan = {"task": "translate", "start_from": str(pair.run), "decode": {"beam": 1, "longest": 6}}
    recipe = build(plan | {"train": {"steps": 1, "smoothing": 0.0, "lr": 1e-6, "precision": "fp32"}}, where="test")
    job = TranslateJob(recipe, corpus)
    task = job.task(pair.ours.model)
    found = sum(float(task.loss(pair.ours.model, batch).total.detach()) for batch in task.batches(0, None))
    expected = 0.0
    for source, target in zip(pairs.source, pairs.target, strict=True):
        ids, labels = pair.tokenizer(source).input_ids, pair.tokenizer(target).input_ids
        with torch.no_grad():
            loss = pair.theirs(input_ids=torch.tensor([ids]), labels=torch.tensor([labels])).loss
        expected += float(loss) * len(labels)
    assert found == pytest.approx(expected, rel=1e-5)
    for _ in train(recipe, tmp_path / "run", corpus=corpus):
        pass
    learnt = heedful.load(tmp_path / "run")
    for key in ("before", "after", "begin", "forbidden"):
        assert learnt.about[key] == pair.ours.about[key]
    search = {"beam": 1, "longest": 12, "no_repeat": 0}
    assert any("longer than all that the model was trained on" in one.warning for one in learnt.search(LINES, **search))
    assert searched_whole(learnt, LINES, **search) == searched_whole(pair.ours, LINES, **search)


# What was made here

STYLES = {
    "bart-base": {"infill": ("<mask>", {"mask": True})},
    "t5-small": {"spans": ("<extra_id_0>", {"sentinels": 5})},
    "t5-v1.1-small": {"spans": ("<extra_id_0>", {"sentinels": 5})},
}
SMALL = {"d_model": 16, "n_heads": 4, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 2}


@pytest.mark.parametrize("kind", ["bpe", "unigram", "chars"])
@pytest.mark.parametrize("style", sorted(STYLES))
def test_denoisers_of_ours_load_there(tmp_path: Path, style: str, kind: Any) -> None:
    ((objective, (mark, marks)),) = STYLES[style].items()
    tokenizer = train_tokenizer([*LINES, "<s> </s> <unk>"] * 2, kind=kind, size=340, **marks)
    row = TRANSLATORS[style]
    sizes = SMALL | ({"head_dim": 4} if objective == "spans" else {"context_length": 64})
    row = from_json(Seq2SeqSize, to_json(row) | sizes, where="test")
    net = make_model(translator_config(row, source_vocab=tokenizer.size, target_vocab=tokenizer.size, joint=True))
    make_loud(net, norm=1.0)
    about = {"task": "translate", "source": "noised text", "target": "text", "decode": {"beam": 2}}
    about["noise"] = {"objective": objective, "longest": 30}
    save_run(tmp_path / "run", net.eval(), tokenizer, tokenizer, about)
    ours = heedful.load(tmp_path / "run")
    export_model(tmp_path / "run", tmp_path / "hub")
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hub").eval()
    reader = AutoTokenizer.from_pretrained(tmp_path / "hub")
    texts = [*TEXTS, "", f"The {mark} cat", f"{mark} cat{mark}is", f"a</s> <unk> {mark}.", "<s>"]
    assert reader(texts).input_ids == [[*ids, 3] for ids in tokenizer.encode_marked(texts)]
    pair = Pair(theirs, reader, tmp_path / "hub", tmp_path / "run", ours)
    short = [*texts[4:8], *texts[-4:-1]]
    expected = said(pair, short, num_beams=1, max_length=17, early_stopping=False)
    assert spoken(pair, short, beam=1, longest=16) == expected
    read = [reader.decode(ids, skip_special_tokens=True) for ids in expected]
    assert [text.replace(f" {mark[:6]}", mark[:6]) for text in searched_whole(ours, short, beam=1, longest=16)] == [
        text.replace(f" {mark[:6]}", mark[:6]) for text in read
    ]
    import_model(tmp_path / "hub", tmp_path / "again")
    again = heedful.load(tmp_path / "again")
    assert spoken(pair._replace(ours=again), short, beam=1, longest=16) == expected


def test_what_no_family_can_say_is_named(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(LINES, kind="bytes", size=300)
    row = from_json(Seq2SeqSize, to_json(TRANSLATORS["bart-base"]) | SMALL, where="test")
    config = translator_config(row, source_vocab=tokenizer.size, target_vocab=tokenizer.size, joint=True)
    config = from_json(type(config), to_json(config) | {"output_bias": False}, where="test")
    net = make_model(config)
    about = {"task": "translate", "source": "a", "target": "b"}
    save_run(tmp_path / "run", net, tokenizer, tokenizer, about)
    with pytest.raises(InputError, match=r"BART cannot hold model\.output_bias = False"):
        export_model(tmp_path / "run", tmp_path / "never")
    bart_folder(tmp_path / "theirs")
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n_experts": 2}))
    with pytest.raises(InputError, match="unknown key 'n_experts'"):
        import_model(tmp_path / "theirs", tmp_path / "never")
