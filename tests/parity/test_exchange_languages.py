"""mBART, M2M-100, NLLB and mT5 from and to folders of the Hub, in every direction: what a run made of one says is what
transformers says.

Weights are loud (see `hub.py`); what is said is the same token by token, and logits agree to 1e-5 of the largest.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import heedful
from heedful.data.text.corpus import Corpus
from heedful.data.text.pairs import Pairs
from heedful.errors import InputError
from heedful.store.model import read_model
from heedful.tasks.recipes import build
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.use import Translator
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from heedful.verbs.train import train
from hub import LINES, TEXTS
from hub_languages import m2m100_folder, mbart_folder, mt5_folder, nllb_folder

# How each is made, and its names of German and French.
MAKERS: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    "mbart": (mbart_folder, {"fifty": False}, "de_DE", "fr_XX"),
    "mbart-50": (mbart_folder, {}, "de_DE", "fr_XX"),
    "m2m100": (m2m100_folder, {}, "de", "fr"),
    "nllb": (nllb_folder, {}, "deu_Latn", "fra_Latn"),
    "nllb, legacy": (nllb_folder, {"legacy": True}, "deu_Latn", "fra_Latn"),
    "mt5": (mt5_folder, {}, "de", "fr"),
}
SOURCES = [*TEXTS[:4], " two  spaces", "a </s> b", "☃ and 🙂🙂 x"]


class Pair(NamedTuple):
    name: str
    theirs: Any
    tokenizer: Any
    folder: Path
    run: Path
    ours: Translator

    @property
    def languages(self) -> tuple[str, str]:
        return MAKERS[self.name][2:]


@pytest.fixture(scope="module", params=sorted(MAKERS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    make, options, *_ = MAKERS[request.param]
    folder = tmp_path_factory.mktemp("hub")
    torch.manual_seed(3)
    theirs, tokenizer = make(folder / "theirs", **options)
    import_model(folder / "theirs", folder / "run")
    return Pair(request.param, theirs, tokenizer, folder / "theirs", folder / "run", heedful.load(folder / "run"))


def read_as(pair: Pair, texts: list[str], source: str, target: str) -> list[list[int]]:
    """The ids of texts of a language, as their tokenizer gives them."""
    if pair.name == "mt5":
        name = {"de": "German", "fr": "French"}[target]
        return pair.tokenizer([f"translate English to {name}: {text}" for text in texts]).input_ids
    pair.tokenizer.src_lang = source
    return pair.tokenizer(texts).input_ids


def said(pair: Pair, texts: list[str], source: str, target: str, **options: Any) -> list[list[int]]:
    """What theirs says, without the token that decoding starts with."""
    if pair.name != "mt5":
        index = pair.tokenizer.convert_tokens_to_ids(f"__{target}__" if pair.name == "m2m100" else target)
        options["decoder_start_token_id" if pair.name == "mbart" else "forced_bos_token_id"] = index
    found = []
    for ids in read_as(pair, texts, source, target):
        one = torch.tensor([ids])
        with torch.no_grad():
            whole = pair.theirs.generate(one, attention_mask=torch.ones_like(one), do_sample=False, **options)
        found.append(whole[0].tolist()[1:])
    return found


def spoken(ours: Translator, texts: list[str], **settings: Any) -> list[list[int]]:
    found = ours.hypotheses(ours.encode(texts)[0], ours.decoding(**settings))
    return [[*best[0].tokens, *([ours.target.eos] if best[0].finished else [])] for best in found]


def test_texts_have_their_ids_in_every_language(pair: Pair) -> None:
    german, french = pair.languages
    source = pair.ours.about["source"] if pair.name != "mt5" else "en"
    for one, other in ((source, german), (source, french), *([(french, german)] if pair.name != "mt5" else [])):
        ours = pair.ours.directed(one, other)
        before, after = ours.around
        expected = read_as(pair, SOURCES, one, other)
        assert [[*before, *ids, *after] for ids in ours.source.encode(SOURCES)] == expected
        for ids in expected:
            whole = pair.tokenizer.decode(ids, skip_special_tokens=True)
            if pair.name == "m2m100":  # whose library keeps the language, and the space where nothing was known
                whole = re.sub(r"^__\w+?__", "", whole).strip()
            assert ours.target.decode(ids) == whole


@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_said_is_theirs_in_every_direction(pair: Pair, beam: int) -> None:
    told = set()
    for to in pair.languages:
        ours = pair.ours.directed(target=to)
        options = {"num_beams": beam, "max_length": 17, "early_stopping": beam > 1}
        expected = said(pair, SOURCES, ours.about["source"], to, forced_eos_token_id=ours.target.eos, **options)
        assert spoken(ours, SOURCES, beam=beam, longest=16, forced_eos=True) == expected
        assert len({tuple(ids) for ids in expected}) > 3
        told.add(tuple(map(tuple, expected)))
    assert len(told) == 2, "another language, another text"


def test_logits_are_theirs(pair: Pair) -> None:
    source, target = (torch.randint(5, 60, (3, size), generator=torch.Generator().manual_seed(2)) for size in (9, 11))
    with torch.no_grad():
        expected = pair.theirs(input_ids=source, decoder_input_ids=target).logits
        own = pair.ours.model(source, target)
    assert float(expected.abs().max()) > 1, "weights are loud"
    torch.testing.assert_close(own, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


def test_its_laws_hold(pair: Pair) -> None:
    assert [law.name for law in check(pair.run) if not law.holds] == []


def test_there_and_back_and_there(pair: Pair, tmp_path: Path) -> None:
    export_model(pair.run, tmp_path / "back")
    back = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back")
    assert type(back) is type(pair.theirs)
    theirs = pair.theirs.state_dict()
    assert back.state_dict().keys() == theirs.keys()
    assert all(torch.equal(value, theirs[name]) for name, value in back.state_dict().items())
    again = AutoTokenizer.from_pretrained(tmp_path / "back")
    other = pair._replace(theirs=back, tokenizer=again)
    source = pair.ours.about["source"]
    for to in pair.languages:
        assert read_as(other, SOURCES, source, to) == read_as(pair, SOURCES, source, to)
        assert said(other, LINES, source, to, max_length=30) == said(pair, LINES, source, to, max_length=30)
    import_model(tmp_path / "back", tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in pair.run.iterdir()}
    assert heedful.load(tmp_path / "run").about == pair.ours.about
    ours, expected = read_model(tmp_path / "run")[1], read_model(pair.run)[1]
    assert all(torch.equal(ours[name], value) for name, value in expected.items())


def test_languages_are_known_by_other_names(pair: Pair) -> None:
    german, french = pair.languages
    assert pair.ours.directed("English", "Deutsch").about["target"] == german
    assert pair.ours.directed("en", "FR").about["target"] == french
    with pytest.raises(InputError, match="no language 'klingon'"):
        pair.ours.directed(target="klingon")
    if "nllb" in pair.name:
        with pytest.raises(InputError, match="'zh' may be 'zho_Hans', 'zho_Hant'"):
            pair.ours.directed(target="zh")


@pytest.mark.parametrize("first", [True, False])
def test_without_a_tokenizer_json(tmp_path: Path, first: bool) -> None:
    mbart_folder(tmp_path / "theirs", bare=True)
    _, tokenizer = mbart_folder(tmp_path / "whole")
    path = tmp_path / "theirs" / "tokenizer_config.json"
    names = json.loads(path.read_text())
    if first:  # as older folders have it
        (tmp_path / "theirs" / "special_tokens_map.json").write_text(
            json.dumps({"additional_special_tokens": names.pop("extra_special_tokens")})
        )
        path.write_text(json.dumps(names))
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours = heedful.load(tmp_path / "run")
    before, after = ours.around
    texts = [text for text in SOURCES if "</s>" not in text]
    assert [[*before, *ids, *after] for ids in ours.source.encode(texts)] == tokenizer(texts).input_ids


def test_a_language_has_to_be_asked_for_where_none_is_meant(tmp_path: Path) -> None:
    nllb_folder(tmp_path / "theirs", forced_bos_token_id=None)
    path = tmp_path / "theirs" / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tgt_lang": None}))
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours = heedful.load(tmp_path / "run")
    with pytest.raises(InputError, match="to which one"):
        ours.translate("The cat")
    assert ours.directed(target="de").translate("The cat")


def test_what_is_imported_can_be_learnt_from(pair: Pair, tmp_path: Path) -> None:
    """In the direction of the data: the loss of the first step is theirs, and what is learnt keeps the languages."""
    _, french = pair.languages
    pairs = Pairs([*LINES[:2]], [*LINES[2:]], "made")
    corpus = Corpus(pairs, pairs, {"test": pairs}, "made", source="en", target="French")
    plan = {"task": "translate", "start_from": str(pair.run), "decode": {"beam": 1, "longest": 6}}
    recipe = build(plan | {"train": {"steps": 1, "smoothing": 0.0, "lr": 1e-6, "precision": "fp32"}}, where="test")
    job = TranslateJob(recipe, corpus)
    task = job.task(pair.ours.model)
    found = sum(float(task.loss(pair.ours.model, batch).total.detach()) for batch in task.batches(0, None))
    expected = 0.0
    ours = pair.ours.directed("en" if pair.name == "mt5" else "", french)
    for source, target in zip(pairs.source, pairs.target, strict=True):
        (ids,) = read_as(pair, [source], ours.about["source"], french)
        following = [*ours.begin, *ours.target.encode([target])[0], ours.target.eos]
        with torch.no_grad():
            inputs = torch.tensor([[ours.target.bos, *following[:-1]]])
            logits = pair.theirs(input_ids=torch.tensor([ids]), decoder_input_ids=inputs).logits[0]
        expected += float(torch.nn.functional.cross_entropy(logits, torch.tensor(following), reduction="sum"))
    assert found == pytest.approx(expected, rel=1e-5)
    for _ in train(recipe, tmp_path / "run", corpus=corpus):
        pass
    learnt = heedful.load(tmp_path / "run")
    search = {"beam": 1, "longest": 12, "no_repeat": 0}
    assert learnt.translate(pairs.source, **search) == ours.translate(pairs.source, **search)
    german = learnt.directed("en", pair.languages[0]).about
    assert {key: german[key] for key in ("before", "after", "begin")} == {
        key: pair.ours.directed("en", pair.languages[0]).about[key] for key in ("before", "after", "begin")
    }


def test_data_of_a_language_that_it_lacks_are_refused(tmp_path: Path) -> None:
    nllb_folder(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    pairs = Pairs([*LINES[:2]], [*LINES[2:]], "made")
    recipe = build({"task": "translate", "start_from": str(tmp_path / "run")}, where="test")
    with pytest.raises(InputError, match="languages of the data: no language 'source'"):
        TranslateJob(recipe, Corpus(pairs, pairs, {"test": pairs}, "made", source="source", target="target"))
