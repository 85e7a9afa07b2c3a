"""Texts about pictures: captions and answers, what they cost, what they are measured by, and what they looked at."""

import json
from dataclasses import replace
from itertools import groupby

import pytest
import torch
import torch.nn.functional as F

import heedful
from cases import CASES, PIXELS, asked, captioned, recipe_of
from commands import heed
from heedful.data.images.captions import Captioned
from heedful.data.images.files import to_image
from heedful.errors import InputError, TooMuchError
from heedful.models import ImageToText
from heedful.run.recipe import override
from heedful.tasks.classify_images.look import look_at_picture
from heedful.tasks.describe.look import look_at_text
from heedful.tasks.describe.train import DescribeJob
from heedful.tasks.describe.use import described, text_loss, text_scores
from heedful.tasks.recipes import build
from heedful.tasks.shared.pictures import PictureBatch
from heedful.tasks.shared.writing import written
from heedful.verbs.exchange import export_model
from heedful.verbs.train import train
from made import finished, goes_on_alike

ASK = "what is it?"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for i, pixels in enumerate(PIXELS[:3]):
        to_image(pixels).save(folder / f"{i}.png")
    return sorted(map(str, folder.iterdir()))


@pytest.mark.parametrize(("name", "question"), [("describe", ""), ("questions", ASK)])
def test_pictures_are_described_alone_and_together(run_of, files, name, question, capsys):
    run = run_of(name)
    model = heedful.load(run)
    asked_of = {"questions": [question] * 3} if question else {}
    together = model.describe(files, **asked_of)
    assert [model.describe(file, **({"questions": question} if question else {})) for file in files] == together
    record = {"input": files[0]} | ({"question": question} if question else {}) | {"text": together[0]}
    assert model.ask("describe", files[0], {"question": question} if question else {}) == [record]
    words = ["--question", question] if question else []
    assert heed("describe", run, *files, *words, "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == record
    assert heed("describe", run, files[0], *words) == 0
    assert capsys.readouterr().out.rstrip("\n") == together[0]
    expected = json.loads((run.parent / f"{name}.json").read_text())[1]["test"]
    assert model.measure(CASES[name].corpus.tests["test"]) == pytest.approx(expected, abs=1e-5)


def test_who_asks_and_who_must_not(run_of, files, capsys):
    answers, describes = (heedful.load(run_of(name)) for name in ("questions", "describe"))
    with pytest.raises(InputError, match="answers questions about pictures"):
        answers.describe(files)
    with pytest.raises(InputError, match="answers no questions"):
        describes.describe(files[0], questions=ASK)
    assert heed("describe", run_of("questions"), files[0]) == 2
    assert "--question" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"a question of \d+ tokens, but the model reads at most 22"):
        answers.describe(files[0], questions="is it " * 20)


def test_a_question_is_read_and_not_learnt(run_of):
    """The loss is on what follows it, and what is written begins behind it."""
    model = heedful.load(run_of("questions"))
    pixels = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    begins, texts = model.tokenizer.encode([ASK, "is it 1?"]), model.tokenizer.encode(["a", "no"])
    loss = text_loss(model.model, pixels, begins, texts, model.tokenizer)
    total = 0.0
    for i, (begin, text) in enumerate(zip(begins, texts, strict=True)):
        logits = model.model(pixels[i : i + 1], torch.tensor([[model.tokenizer.bos, *begin, *text]]))[0, len(begin) :]
        total += float(F.cross_entropy(logits, torch.tensor([*text, model.tokenizer.eos]), reduction="sum"))
    assert float(loss.total) == pytest.approx(total, abs=1e-4)
    assert loss.count == sum(len(text) + 1 for text in texts)
    alone = written(model.model, pixels[:1], begins[:1], model.tokenizer, model.decoding, longest=20)
    both = written(model.model, pixels, begins, model.tokenizer, model.decoding, longest=[20, 20])
    assert both[0] == alone[0]


def test_a_picture_is_encoded_once_for_all_its_texts(monkeypatch):
    """The texts of a picture follow each other in every epoch; loss and gradients are those of a picture a text."""
    case, part = CASES["describe"], captioned()
    texts = [[*own, "a", "no"] for own in part.train.captions]
    several = replace(part.train, captions=texts, questions=[])
    job = DescribeJob(recipe_of(case, case.model, {}), replace(part, train=several))
    model = ImageToText(job.config)
    task = job.task(model)
    for epoch in range(2):
        batches = task.batches(epoch, None)
        assert sorted(row for batch in batches for row in batch.pictures) == [*range(len(job.texts))]
        pictures = [job.texts[row][0] for batch in batches for row in batch.pictures]
        assert len([*groupby(pictures)]) == len(part.train.captions) < len(pictures)
    encoded, encode = [], model.encode
    monkeypatch.setattr(model, "encode", lambda pixels: encoded.append(len(pixels)) or encode(pixels))

    def found(batch: PictureBatch) -> list[torch.Tensor]:
        model.zero_grad()
        loss = task.loss(model, batch)
        loss.total.backward()
        return [loss.total.detach(), *(part.grad for part in model.parameters())]

    batch = batches[0]
    together, alone = found(batch), [found(batch._replace(pictures=[row])) for row in batch.pictures]
    assert encoded == [len({job.texts[row][0] for row in batch.pictures}), *[1] * len(batch.pictures)]
    assert encoded[0] < len(batch.pictures)
    torch.testing.assert_close(together, [sum(each) for each in zip(*alone, strict=True)], rtol=1e-5, atol=1e-5)


def test_answers_to_one_question_belong_together():
    part = Captioned(PIXELS[:1], [["red", "a  dog", "crimson"]], [["colour ?", "", "colour  ?"]])
    assert [tuple(row) for row in described(part)] == [(0, "colour ?", ["red", "crimson"]), (0, "", ["a dog"])]
    scores = text_scores(["crimson", "a cat"], [["red", "crimson"], ["a dog"]])
    assert (scores["exact"], scores["cer"]) == (0.5, 3 / 12)


def test_a_budget_is_asked_before_anything_is_computed(run_of, files, monkeypatch):
    model = heedful.load(run_of("describe"))

    class Poor:
        at_once = None

        def spend(self, tokens: int, at_once: int) -> None:
            raise TooMuchError("too much")

    monkeypatch.setattr(model, "budget", Poor())
    with pytest.raises(TooMuchError):
        model.describe(files)


def test_what_does_not_fit_is_left_out_and_said():
    case, part = CASES["describe"], captioned()
    long = replace(part.train, captions=[["x" * 40], *part.train.captions[1:]])
    job = DescribeJob(recipe_of(case, case.model, {}), replace(part, train=long))
    assert job.notes == ["1 text of more than 23 tokens is left out"]
    assert len(job.texts) == 10
    none = replace(part, train=replace(part.train, captions=[["x" * 40]] * 6))
    with pytest.raises(InputError, match="every text has more than 23 tokens"):
        DescribeJob(recipe_of(case, case.model, {}), none)


def test_questions_that_cannot_be_answered_are_found_before_the_training():
    case, none, some = CASES["questions"], captioned(), asked()
    long = replace(some.valid, questions=[["is it " * 20, "is it?"]] * 6)
    for train_part, valid, message in (
        (some.train, none.valid, "made: valid: this model answers questions"),
        (none.train, some.valid, "made: valid: this model answers no questions"),
        (some.train, long, "made: valid: a question of"),
    ):
        with pytest.raises(InputError, match=message):
            DescribeJob(recipe_of(case, case.model, {}), replace(some, train=train_part, valid=valid))


@pytest.mark.parametrize(
    ("size", "seen"), [((64, 64), (64, 64)), ((24, 144), (24, 144)), ((480, 640), (56, 72)), ((20, 4000), (8, 904))]
)
def test_a_line_of_print_is_not_shrunk_to_the_edge_of_a_square(size, seen):
    job = DescribeJob(build({"task": "describe"}, where="test"), replace(captioned(), size=size))
    assert job.answers.preparation.size == seen == job.config.encoder.patches.size


def test_who_sees_nothing_says_the_same_of_every_picture(tmp_path, files):
    case = CASES["questions"]
    recipe = override(recipe_of(case, case.model, {"steps": 2, "eval_every": 2}), ["images.blank=true"])
    finished(train(recipe, tmp_path / "run", corpus=asked()))
    model = heedful.load(tmp_path / "run")
    assert len({*model.describe(files, questions=[ASK] * 3)}) == 1
    with pytest.raises(InputError, match="shown grey"):
        export_model(tmp_path / "run", tmp_path / "hub")


@pytest.mark.parametrize("name", ["describe", "questions"])
def test_an_interrupted_training_goes_on_alike(name, tmp_path):
    case = CASES[name]
    plan = {"steps": 3, "eval_every": 3, "save_every": 1}
    goes_on_alike(recipe_of(case, case.model, plan), case.corpus, tmp_path, after=2)


def test_a_training_from_another_keeps_how_it_sees(run_of, tmp_path):
    recipe = override(recipe_of(CASES["describe"], {}, {"steps": 2}), [f"start_from={run_of('describe')}"])
    with pytest.raises(InputError, match=r"images\.size cannot be chosen"):
        DescribeJob(override(recipe, ["images.size=64"]), asked())
    job = DescribeJob(recipe, asked())
    begun = heedful.load(run_of("describe"))
    assert job.answers.preparation == begun.spec.preparation
    assert job.tokenizer.fingerprint == begun.tokenizer.fingerprint
    assert job.answers.questions == "always"
    finished(train(recipe, tmp_path / "run", corpus=asked()))


def test_each_token_has_its_map(run_of, files, tmp_path):
    model = heedful.load(run_of("questions"))
    looked = look_at_text(model, files[0], question=ASK)
    assert looked.text == model.describe(files[0], questions=ASK)
    (weights,) = looked.weights.values()
    assert weights.shape == (2, len(looked.tokens), 2, 2)
    assert bool((weights.sum((-1, -2)) <= 1.0001).all())
    assert all(0 <= chance <= 1 for _, chance in looked.tokens)
    assert len(looked.maps()) == len(looked.tokens) == len(looked.maps(head=1))
    with pytest.raises(InputError, match="2 heads, no head 2"):
        looked.maps(head=2)
    with pytest.raises(InputError, match="does not look at the picture"):
        look_at_text(model, files[0], question=ASK, layers="decoder.*.self_attention")
    settings = {"question": ASK}
    for kind, begin in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("html", b"<!doctype")):
        assert model.look(files[0], settings, kind=kind).picture.startswith(begin)
    view = json.loads(model.look(files[0], settings, kind="json").picture)
    assert len(view["maps"]) == 2 * len(looked.tokens)
    assert model.attention(files[0], settings)[next(iter(looked.weights))].weights.equal(weights)


def test_the_map_of_a_tall_patch_is_as_tall(tmp_path, files):
    """And a map of the picture's classifier too."""
    case = CASES["describe"]
    recipe = override(recipe_of(case, case.model, {"steps": 2, "eval_every": 2}), ["model.patch_rows=32"])
    finished(train(recipe, tmp_path / "run", corpus=captioned()))
    (weights,) = look_at_text(heedful.load(tmp_path / "run"), files[0]).weights.values()
    assert weights.shape[2:] == (1, 2)
    case = CASES["classify-images"]
    recipe = override(recipe_of(case, case.model, {"steps": 2, "eval_every": 2}), ["model.patch_rows=16"])
    finished(train(recipe, tmp_path / "classes", corpus=case.corpus))
    looked = look_at_picture(heedful.load(tmp_path / "classes"), files[0])
    assert {each.shape[1:] for each in looked.maps.layers.values()} == {(1, 8)}
