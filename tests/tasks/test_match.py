"""A model of pictures and texts from its pairs to its answers."""

import json

import pytest
import torch

import heedful
from commands import heed
from heedful.data.images.captions import Captioned, CaptionedImages
from heedful.data.images.files import read_image, to_image
from heedful.errors import InputError, MissingError, TooMuchError
from heedful.models import make_model
from heedful.run.recipe import override
from heedful.tasks.match.look import draw_texts, look_at_texts
from heedful.tasks.match.train import CaptionBatch, MatchJob, bounded
from heedful.tasks.match.use import Matcher, MatchSpec
from heedful.tasks.recipes import build
from heedful.training.loss import contrastive
from heedful.verbs.check import check
from heedful.verbs.train import train
from made import finished, goes_on_alike

N = 20
PIXELS = torch.randint(0, 256, (N, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
TEXTS = [[f"Picture {i}", f"{'abcde'[i % 5]} seen again"] for i in range(N)]
SMALL = {"d_common": 8, "image_width": 16, "image_layers": 1, "image_heads": 2, "patch": 8}
SMALL |= {"text_width": 16, "text_layers": 1, "text_heads": 2, "context_length": 16}


def part(count):
    return Captioned(PIXELS[:count], TEXTS[:count])


def corpus():
    return CaptionedImages(part(N), part(8), {"test": part(6)}, "made", channels=3, size=(16, 16))


def recipe(**changes):
    base = {
        "task": "match",
        "model": SMALL,
        "data": {"tokenizer": "chars"},
        "images": {"batch": 8},
        "train": {"steps": 4, "eval_every": 2, "precision": "fp32"},
    }
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("match") / "run"
    return out, finished(train(recipe(), out, corpus=corpus()))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for i in range(6):
        to_image(PIXELS[i]).save(folder / f"{i}.png")
    return sorted(folder.iterdir())


def test_a_run_says_what_it_has_learnt(run):
    out, done = run
    recalls = {f"{way}_recall_{k}" for way in ("image_to_text", "text_to_image") for k in (1, 5, 10)}
    assert done.scores["test"].keys() == {"loss", *recalls}
    assert done.scores["test"]["text_to_image_recall_10"] == 1  # of six pictures
    assert heedful.load(out).measure(part(6)) == pytest.approx(done.scores["test"], abs=1e-5)
    assert json.loads((out / "data.json").read_text())["texts"] == {"train": 40, "valid": 16, "test": 12}
    assert "which texts belong to a picture" in (out / "README.md").read_text()
    assert not [law.name for law in check(out) if not law.holds]


def test_matching_and_searching_agree_with_the_vectors(run, files):
    matcher = heedful.load(run[0])
    texts = ["picture 1", "B seen", "nothing"]
    images, own = matcher.embed_images(files), matcher.embed_texts(texts)
    torch.testing.assert_close(images, torch.nn.functional.normalize(images, dim=1))
    expected = (matcher.model.log_scale.detach().exp() * images @ own.mT).softmax(1)
    for row, found in zip(expected, matcher.match(files, texts), strict=True):
        assert [text for text, _ in found] == [texts[i] for i in row.argsort(descending=True)]
        assert dict(found) == pytest.approx(dict(zip(texts, row.tolist(), strict=True)), abs=1e-6)
    for column, found in zip((images @ own.mT).T, matcher.search(texts, files, top=4), strict=True):
        best = column.argsort(descending=True)[:4].tolist()
        assert [one.input for one in found] == [str(files[i]) for i in best]
        assert [one.score for one in found] == pytest.approx(column[best].tolist(), abs=1e-6)


def test_embed_takes_files_as_pictures_and_the_rest_as_texts(run, files, capsys, tmp_path):
    matcher = heedful.load(run[0])
    mixed = matcher.embed(["picture 1", str(files[0]), "B seen", str(files[3])])
    torch.testing.assert_close(mixed[[0, 2]], matcher.embed_texts(["picture 1", "B seen"]))
    torch.testing.assert_close(mixed[[1, 3]], matcher.embed_images([files[0], files[3]]))
    with pytest.warns(UserWarning, match="too long"):
        assert matcher.embed(["a text too long for a file's name " * 200]).shape == (1, 8)
    with pytest.raises(MissingError, match=r"typo\.png: no such picture"):
        matcher.embed(["picture 1", "typo.png"])
    assert matcher.embed("B typo.png").shape == (8,)
    (tmp_path / "lines.txt").write_text("picture 1\nB seen\n")
    words = [str(files[0]), "--near", str(tmp_path / "lines.txt"), "--json"]
    assert heed("embed", str(run[0]), *words) == 0
    (said,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert {one["text"]: one["score"] for one in said["near"]} == pytest.approx(
        dict(zip(["picture 1", "B seen"], (mixed[[0, 2]] @ mixed[1]).tolist(), strict=True)), abs=1e-5
    )
    assert heed("embed", str(run[0]), "a", "--pool", "first") == 2
    assert "leave out --pool" in capsys.readouterr().err


def test_a_vector_does_not_depend_on_its_neighbours(run, files):
    """Texts of many lengths: what pads the short ones says nothing."""
    matcher = heedful.load(run[0])
    texts = ["a", "picture", "a long text, cut where it is too long for all of the places"]

    def of_texts(own):
        return matcher.text_vectors(own)[0]

    for embed, each in ((of_texts, texts), (matcher.embed_images, files)):
        alone = torch.cat([embed([one]) for one in each])
        torch.testing.assert_close(embed(each), alone, atol=1e-5, rtol=1e-5)


def test_templates_are_averaged(run):
    matcher = heedful.load(run[0])
    made = matcher.embed_prompts(["a", "b"], ["one {}", "{} two"])
    each = [matcher.embed_texts([f"one {text}", f"{text} two"]).mean(0) for text in "ab"]
    torch.testing.assert_close(made, torch.nn.functional.normalize(torch.stack(each), dim=1))
    with pytest.raises(InputError, match=r"no \{\} in the template"):
        matcher.embed_prompts(["a"], ["a picture"])
    with pytest.raises(InputError, match=r"2 \{\} in the template .*, expected one"):
        matcher.embed_prompts(["a"], ["{} and {}"])
    with pytest.raises(InputError, match="no template"):
        matcher.embed_prompts(["a"], [])


def test_the_budget_is_asked_before_any_text_is_put_into_a_template(run, files, monkeypatch):
    class Small:
        at_once = None

        def spend(self, tokens, at_once):
            if tokens > 1000:
                raise TooMuchError(f"{tokens} tokens")

    matcher = heedful.load(run[0]).changed(budget=Small())
    assert matcher.match(files[0], ["a", "b"], templates=["a {}", "b {}"])
    monkeypatch.setattr(Matcher, "embed_images", None)
    monkeypatch.setattr(Matcher, "text_vectors", None)
    with pytest.raises(TooMuchError, match="1600 tokens"):  # of 20 x 20 prompts of 2 letters and the two of {}
        matcher.match(files[0], ["a"] * 20, templates=["a{}"] * 20)


def test_nothing_asked_is_nothing_answered(run, files):
    matcher = heedful.load(run[0])
    assert matcher.match([], ["a"]) == matcher.search([], files) == []
    assert matcher.search(["a"], []) == [[]]
    assert matcher.embed([]).shape == matcher.embed_texts([]).shape == matcher.embed_images([]).shape == (0, 8)


def test_a_text_of_several_pictures_is_no_error():
    """Pictures 0 and 5 share a text, and picture 1 has a twin, whose texts are its own too."""
    pixels = PIXELS.clone()
    pixels[7] = pixels[1]
    job = MatchJob(recipe(), CaptionedImages(Captioned(pixels, TEXTS), part(8), {}, "made", channels=3, size=(16, 16)))
    task = job.task(None)
    again = [task.texts[i][1] for i in range(N)]
    same = task.same(CaptionBatch(0, [0, 1, 5, 7, 2], [again[0], task.texts[1][0], again[5], again[7], again[7]]))
    expected = [
        [True, False, True, False, False],
        [False, True, False, True, True],
        [True, False, True, False, False],
        [False, True, False, True, True],
        [False, False, False, True, True],
    ]
    assert same.tolist() == expected
    similarity = torch.randn(5, 5)
    left_out = similarity.masked_fill(same & ~torch.eye(5, dtype=torch.bool), -1e9)
    assert float(contrastive(similarity, same).total) == pytest.approx(float(contrastive(left_out).total))
    assert float(contrastive(similarity, same).total) < float(contrastive(similarity).total)


def test_each_epoch_draws_texts_anew_and_has_each_picture_once():
    task = MatchJob(recipe(), corpus()).task(None)
    epochs = [task.batches(epoch, None) for epoch in range(24)]
    for batches in epochs:
        assert sorted(i for batch in batches for i in batch.pictures) == list(range(N))
        assert [len(batch.pictures) for batch in batches] == [7, 7, 6]
    drawn = [
        {i: text for batch in batches for i, text in zip(batch.pictures, batch.texts, strict=True)}
        for batches in epochs
    ]
    assert all({own[i] for own in drawn} == set(task.texts[i]) for i in range(N))
    assert task.batches(3, None) == epochs[3]


def test_a_temperature_that_is_too_low_counts_as_the_lowest(tmp_path):
    job = MatchJob(recipe(), corpus())
    model = make_model(job.config)
    batch = job.task(model).batches(0, None)[0]
    losses = []
    for scale in (100.0, 300.0):
        with torch.no_grad():
            model.log_scale.fill_(scale).log_()
        losses.append(job.task(model).loss(model, batch).total)
    torch.testing.assert_close(losses[0], losses[1])
    job.write(tmp_path / "run", model)
    assert float(Matcher.load(tmp_path / "run").model.log_scale.detach().exp()) == pytest.approx(100, rel=1e-5)


@pytest.mark.parametrize(("scale", "raised", "lowered"), [(50.0, -1.0, 1.0), (101.0, 0.0, 1.0)])
def test_a_temperature_that_is_too_low_can_rise_again(scale, raised, lowered):
    """Where a loss would have it lower still it stays, and where higher it is not held."""
    for sign, expected in ((-1.0, raised), (1.0, lowered)):
        log_scale = torch.tensor(scale).log().requires_grad_()
        (sign * bounded(log_scale)).backward()
        assert log_scale.grad == expected


def test_equal_vectors_find_nothing():
    """A model for which all is alike has not found what it was asked for."""
    job = MatchJob(recipe(), corpus())
    model = make_model(job.config)
    torch.nn.init.zeros_(model.image_out.weight)
    found = Matcher(model, job.tokenizer, job.spec()).measure(part(N))
    assert max(score for name, score in found.items() if name != "loss") == 0


def test_going_on_is_as_if_nothing_had_happened(tmp_path):
    """Cut off after five of six steps; then gone on with from the fourth."""
    plan = recipe(**{"train.steps": 6, "train.save_every": 2, "images.augment": "strong"})
    goes_on_alike(plan, corpus(), tmp_path, after=5)


def test_it_begins_with_another_run(run, tmp_path):
    base = {"task": "match", "start_from": str(run[0]), "train": {"steps": 1}}
    job = MatchJob(build(base, where="test"), corpus())
    model, before = make_model(job.config), heedful.load(run[0])
    job.begin(model)
    for name, tensor in before.model.named_parameters():
        assert torch.equal(dict(model.named_parameters())[name], tensor), name
    assert job.tokenizer.fingerprint == before.tokenizer.fingerprint
    finished(train(build(base, where="test"), tmp_path / "run", corpus=corpus()))
    going_on = build(base | {"train": {"steps": 2}}, where="test")
    assert finished(train(going_on, tmp_path / "run", corpus=corpus())).steps == 2
    with pytest.raises(InputError, match=r"images\.size cannot be chosen"):
        MatchJob(build(base | {"images": {"size": 32}}, where="test"), corpus())


def test_looking_tells_where_a_text_is_near(run, files):
    """With no attention a patch says what its own pixels say, and it stands where they stand."""
    matcher = heedful.load(run[0])
    for name, parameter in matcher.model.image.named_parameters():
        if "attention.out" in name:
            torch.nn.init.zeros_(parameter)
    before = look_at_texts(matcher, files[0], ["picture", "other"])
    changed = read_image(files[0])
    changed[:, 8:, :8] = 255 - changed[:, 8:, :8]
    to_image(changed).save(files[0].with_name("changed.bmp"))
    after = look_at_texts(matcher, files[0].with_name("changed.bmp"), ["picture", "other"])
    for text, cosines in before.cosines.items():
        differs = (cosines - after.cosines[text]).abs() > 1e-4
        assert differs.tolist() == [[False, False], [True, False]]
        assert cosines.abs().max() <= 1 + 1e-5
    assert draw_texts(before, "png")[:4] == b"\x89PNG"
    assert b"<svg" in draw_texts(before, "svg")
    page = draw_texts(before, "html").decode()
    assert page.count("<img ") == 1 + len(before.cosines)
    assert "script" not in page


def test_it_reads_texts_in_lower_case(run):
    matcher = heedful.load(run[0])
    assert isinstance(matcher.spec, MatchSpec)
    assert matcher.spec.lower
    torch.testing.assert_close(matcher.embed_texts(["PICTURE"]), matcher.embed_texts(["picture"]))
    with pytest.raises(InputError, match="an empty text"):
        matcher.embed_texts([" "])


def test_who_gives_weights_of_attention_is_named_where_this_does_not(run_of):
    """It named itself among those that do."""
    with pytest.raises(InputError, match="which gives no weights of attention") as caught:
        heedful.load(run_of("match"), heedful.Matcher).attention("a.png")
    assert "match" not in caught.value.fix
    assert "translate" in caught.value.fix
