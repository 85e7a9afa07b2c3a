"""The verbs of the command line as methods of a model that was opened from Python."""

import base64
import html
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import heedful
from as_used import printed
from cases import CASES, PIXELS
from commands import heed
from heedful.data.images.files import to_image
from heedful.data.text.corpus import Corpus
from heedful.errors import InputError, NonFiniteError
from heedful.run.folder import parameters
from heedful.run.learnt import LEARNT
from heedful.run.train import train
from heedful.tasks import TASKS
from heedful.tasks.load import load_model
from heedful.tasks.translate.pairs.weigh import weigh
from heedful.verbs.check import check
from heedful.verbs.info import describe
from heedful.verbs.look import look
from heedful.verbs.use import ask_each
from made import made_corpus, made_recipe

Runs = Callable[[str], Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("opened") / "<b>run"
    corpus: Corpus = made_corpus(200)
    list(train(TASKS["translate"], made_recipe(steps=4, save_every=4, eval_every=2), out, corpus=corpus))
    return out


@pytest.fixture(scope="module")
def model(run: Path) -> heedful.Translator:
    return heedful.load(run, heedful.Translator)


def test_it_says_what_it_is(run: Path, model: heedful.Translator) -> None:
    said = repr(model)
    assert said.startswith(f"Translator({run}, translation, Seq2Seq of ")
    assert f"{describe(str(run))['parameters']:,} parameters" in said
    assert re.search(r"bleu on test [\d.]+", said)
    assert "\n" not in said


def test_a_notebook_shows_facts_and_the_curve_and_nothing_that_runs(run: Path, model: heedful.Translator) -> None:
    shown = model._repr_html_()
    assert "&lt;b&gt;run" in shown
    assert "<b>" not in shown
    for key in describe(str(run)):
        assert f"<th>{key}</th>" in shown
    assert shown.count('src="data:image/png;base64,iVBOR') == 1
    assert "<script" not in shown


def test_a_device_that_is_not_here_is_told_in_one_line(run: Path) -> None:
    """In one line of ours, which names those that are, however the model is opened."""
    for opened in (heedful.load, heedful.Translator.load):
        with pytest.raises(InputError, match=r"(?m)^device: no device 'gpu' is here$") as found:
            opened(run, device="gpu")
        assert found.value.fix.startswith("choose auto, cpu")
    assert heedful.load(run, heedful.Translator, device="auto").translate("ba de")


def test_a_word_in_place_of_a_class_is_told(run: Path) -> None:
    script = f"""
import heedful
from heedful.errors import InputError
try:
    heedful.load({str(run)!r}, "cuda")
except InputError as error:
    print(error, "-", error.fix)
"""
    fix = 'heedful.load(run, heedful.Translator, device="cpu")'
    assert printed(script) == [[f"kind: 'cuda' is no class of models - {fix}"]]


@pytest.mark.parametrize("prefix", [3, ["ba", "de"], [None]])
def test_what_stands_beside_a_text_is_one_too(model: heedful.Translator, prefix: Any) -> None:
    with pytest.raises(InputError, match="translate: the prefix are not one for each"):
        model.translate("ba", prefix=prefix)


def test_what_was_looked_at_is_what_the_verb_draws(run: Path, model: heedful.Translator) -> None:
    options = TASKS["translate"].inside.options()
    wanted = look(run, "ba de gi", "svg", options(layer="decoder.*.cross_attention"))
    looked = model.look("ba de gi", {"layer": "decoder.*.cross_attention"})
    assert looked == wanted
    assert looked.picture.startswith(b"<?xml")
    assert len(repr(looked)) < len(looked.told) + 80
    for kind in ("svg", "png", "html"):
        found = model.look("ba <b>de</b>", kind=kind)
        shown = found._repr_html_()
        (data,) = re.findall('src="data:image/[a-z+]+;base64,([^"]*)"|srcdoc="([^"]*)"', shown)
        assert found.picture in (base64.b64decode(data[0]), html.unescape(data[1]).encode())
        assert "<b>" not in re.sub('srcdoc="[^"]*"', "", shown)
    weights = model.attention("ba de gi", {"layer": "decoder.*.cross_attention"})
    assert list(weights) == looked.facts["layers"]
    (own,) = weights.values()
    assert own.dims == ("head", "query", "key")
    assert own.weights.shape[1:] == (len(own.labels["query"]), len(own.labels["key"]))
    torch.testing.assert_close(own.weights.sum(-1), torch.ones(own.weights.shape[:2]))
    one = model.attention("ba de gi", {"layer": "decoder.*.cross_attention", "head": 1})
    assert next(iter(one.values())).weights.equal(own.weights[1:2])


def test_it_is_asked_as_a_server_is(run: Path, model: heedful.Translator) -> None:
    many = model.ask("translate", ["ba de", "gi ba"], {"decoding": {"beam": 2, "n_best": 2}})
    served = load_model(run)
    assert many == ask_each(served, "translate", ["ba de", "gi ba"], {"decoding": {"beam": 2, "n_best": 2}})
    (alone,) = model.ask("translate", "gi ba", {"decoding": {"beam": 2, "n_best": 2}})
    assert alone["source"] == "gi ba"
    assert alone.keys() == many[1][0].keys()
    assert [one["text"] for (one,) in many] == model.translate(["ba de", "gi ba"], beam=2, n_best=2)
    ((scored,),) = model.ask("score", ["ba de\tDE BA"])
    assert [scored] == list(weigh(model, [("ba de", "DE BA")]))
    with pytest.raises(InputError, match="unknown key 'classify'") as caught:
        model.ask("classify", "ba")
    assert "translate" in caught.value.fix


def test_documents_are_translated_as_by_the_verb(model: heedful.Translator, tmp_path: Path) -> None:
    for name in ("a.md", "b.txt"):
        (tmp_path / name).write_text("ba **de** gi\n")
    made = model.translate_files([tmp_path / "a.md", tmp_path / "b.txt"], tmp_path / "out", flag=1.0, beam=1)
    assert [(one.passages, one.flagged) for one in made] == [(1, 1), (1, 1)]
    arguments = ["--file", tmp_path / "a.md", "--file", tmp_path / "b.txt", "--out", tmp_path / "again"]
    assert heed("translate", model.run, *arguments, "--flag", 1.0, "--beam", 1) == 0
    for name in ("a.md", "b.txt"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    for one in (tmp_path / "b.txt", str(tmp_path / "b.txt")):
        assert model.translate_files(one, tmp_path / "d.txt", flag=1.0, beam=1).out == str(tmp_path / "d.txt")
    alone = model.translate_files([tmp_path / "b.txt"], tmp_path / "c.txt", glossary={"de": "PIPI"})
    assert [Path(one.out).name for one in alone] == ["c.txt"]
    assert "PIPI" in (tmp_path / "c.txt").read_text()


def test_what_cannot_be_looked_at_is_told(model: heedful.Translator) -> None:
    with pytest.raises(InputError, match="unknown key 'heads'"):
        model.look("ba", {"heads": 1})
    with pytest.raises(InputError, match="no kind of picture is called 'pdf'"):
        model.look("ba", kind="pdf")
    with pytest.raises(InputError, match="no head 7"):
        model.attention("ba", {"head": 7})


def test_its_laws_are_those_of_the_verb(run: Path, model: heedful.Translator) -> None:
    wanted = [law.name for law in check(run, ["ba de"])]
    several = model.check(["ba de"])
    assert [law.name for law in several] == wanted
    assert [law.figure for law in model.check("ba de")] == [law.figure for law in several]  # and not letter by letter
    assert len(wanted) > 3


def test_files_are_scored_as_by_the_verb(run: Path, model: heedful.Translator, tmp_path: Path) -> None:
    pairs = made_corpus(10).tests["test"].rows(range(12))
    lines = [f"{source}\t{target}" for source, target in zip(pairs.source, pairs.target, strict=True)]
    (tmp_path / "low.tsv").write_text("low\thigh\n" + "\n".join(lines) + "\n")
    sides = {"source": str(tmp_path / "a"), "target": str(tmp_path / "b")}
    Path(sides["source"]).write_text("\n".join(pairs.source) + "\n")
    Path(sides["target"]).write_text("\n".join(pairs.target) + "\n")
    (found,) = model.evaluate(settings={**sides, "beam": 1}).values()
    assert found["bleu"] == pytest.approx(model.measure(pairs, beam=1)[0].bleu)
    with pytest.raises(InputError, match="unknown key 'beem'"):
        model.evaluate(settings={"beem": 1})


def test_a_model_of_no_run_says_so(model: heedful.Translator) -> None:
    alone = heedful.Translator(model.model, model.source, model.target, model.spec)
    assert repr(alone) == "Translator(Seq2Seq)"
    assert alone._repr_html_() == "<p>Translator(Seq2Seq)</p>"
    inside = (lambda: alone.look("ba"), lambda: alone.attention("ba"), lambda: alone.ask("score", "ba"))
    for method in (alone.check, *inside, alone.evaluate):
        with pytest.raises(InputError, match="belongs to no run"):
            method()


def test_every_kind_of_model_has_them() -> None:
    class Nothing(nn.Module):
        pass

    served: dict[str, Any] = {name: row.served() for name, row in TASKS.items()}
    for name, row in TASKS.items():
        assert served[name].purpose, name
        assert {"ask", "look", "attention", "check", "evaluate"} <= set(dir(served[name])), name
        assert (row.inside.attention is None) or (row.inside.look is not None), name
    assert json.dumps(sorted(served))


def test_what_is_loaded_is_for_reading_and_a_copy_trains_and_becomes_a_run(
    run: Path, model: heedful.Translator, tmp_path: Path
) -> None:
    for refused in (model.model.train, lambda: model.model.load_state_dict(model.model.state_dict())):
        with pytest.raises(InputError, match="loaded for use"):
            refused()
    learnt = model.trainable()
    assert learnt.training
    assert all(parameter.requires_grad for parameter in learnt.parameters())
    with torch.no_grad():
        next(iter(learnt.parameters()))[:, 0] += 1
    model.save(learnt, tmp_path / "again")
    again = heedful.load(tmp_path / "again", heedful.Translator)
    own = parameters(learnt)
    assert all(own[name].equal(weight) for name, weight in parameters(again.model).items())
    assert any(not own[name].equal(weight) for name, weight in parameters(model.model).items())
    assert [law.figure for law in again.check() if law.name == "save then load"] == [0.0]
    assert again.about.keys() >= {"source", "target"}
    with pytest.raises(InputError, match="is not empty"):
        model.save(learnt, tmp_path / "again")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, by what torch.compile imports
def test_what_is_no_model_of_the_run_is_not_saved_as_one(model: heedful.Translator, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="of another configuration"):
        model.save(nn.Linear(2, 2), tmp_path / "again")
    with pytest.raises(InputError, match="a OptimizedModule of another configuration") as found:
        model.save(torch.compile(model.trainable()), tmp_path / "again")
    assert "what torch.compile makes of it shares its weights" in found.value.fix
    broken = model.trainable()
    with torch.no_grad():
        next(iter(broken.parameters())).fill_(math.nan)
    with pytest.raises(NonFiniteError, match=r"source\.tokens\.weight is not finite"):
        model.save(broken, tmp_path / "again")
    assert not [*tmp_path.iterdir()]


def test_what_a_run_has_learnt_from_is_known_of_what_began_with_it(
    run: Path, model: heedful.Translator, tmp_path: Path
) -> None:
    model.save(model.trainable(), tmp_path / "again")
    for name in ("data.json", LEARNT):
        assert (tmp_path / "again" / name).read_bytes() == (run / name).read_bytes()


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_is_saved_again_says_the_same_for_every_task(name: str, run_of: Runs, tmp_path: Path) -> None:
    own = heedful.load(run_of(name))
    learnt = own.trainable()
    assert {type(part).__module__ for part in learnt.modules()}.isdisjoint({"heedful.apply.inference"})
    own.save(learnt, tmp_path / "again")
    again = heedful.load(tmp_path / "again")
    assert type(again) is type(own)
    files = []
    for number, picture in enumerate(PIXELS[:2]):
        files.append(str(tmp_path / f"{number}.png"))
        to_image(picture).save(files[-1])
    assert str(CASES[name].uses(again, files)) == str(CASES[name].uses(own, files))
