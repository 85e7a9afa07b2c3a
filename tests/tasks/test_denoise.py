"""A denoiser from its text to a start for a translator: noise is new in every epoch and the same after a stop, and what
starts from a run starts with its numbers."""

import json
import random
import shutil
from pathlib import Path

import pytest
import torch

import heedful
from heedful.data.text.corpus import Corpus
from heedful.data.text.documents import Documents
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run.events import Finished, Measured, Trained
from heedful.run.recipe import Recipe, override
from heedful.store.model import read_model
from heedful.tasks.denoise.noise import make_noise, read_passages
from heedful.tasks.denoise.train import DenoiseTask
from heedful.tasks.denoise.use import denoising_likelihood
from heedful.tasks.recipes import build
from heedful.tasks.shared.sections import PackedTrain
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.use import Translator
from heedful.verbs.check import check
from heedful.verbs.train import planned, train
from made import RUN_FILES, SYLLABLES, backwards, finished, goes_on_alike, made_corpus, made_recipe

ROWS = {
    "spans": {"preset": "t5-small", "model": {"d_model": 32, "n_heads": 2, "head_dim": 8, "d_ff": 48}},
    "infill": {"preset": "bart-base", "model": {"d_model": 32, "n_heads": 2, "d_ff": 48, "context_length": 40}},
}


def made_text(seed: int) -> str:
    draw = random.Random(seed)
    sentences = [" ".join(draw.choices(SYLLABLES, k=draw.randint(2, 6))) for _ in range(draw.randint(2, 6))]
    return "\n".join(f"{sentence.capitalize()}." for sentence in sentences)


TEXTS = [made_text(seed) for seed in range(140)]
CORPUS = Documents(TEXTS[:110], TEXTS[110:130], {"test": TEXTS[130:]}, "made", (), ("a note",))


def recipe(objective: str, **changes: object) -> Recipe:
    row = ROWS[objective]
    base = {
        "task": "denoise",
        "preset": row["preset"],
        "model": row["model"] | {"encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0},
        "data": {"vocab_size": 300, "longest": 40, "objective": objective},
        "train": {"steps": 12, "tokens": 512, "row": 48, "eval_every": 6, "eval_sentences": 30, "precision": "fp32"},
    }
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


@pytest.fixture(scope="module", params=sorted(ROWS))
def run(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("noise") / request.param
    events = list(train(recipe(request.param), out, corpus=CORPUS))
    assert isinstance(events[-1], Finished)
    return out, events


def test_a_run_folder_is_complete(run):
    out, events = run
    assert {path.name for path in out.iterdir()} >= RUN_FILES
    measured = [event for event in events if isinstance(event, Measured)]
    assert measured[-1].valid_loss < measured[0].valid_loss
    assert events[-1].scores["test"].keys() == {"loss", "perplexity"}
    mark = {"spans": "<extra_id_0>", "infill": "<mask>"}[out.name]
    for word in (mark, f"--from {out}", "a note"):
        assert word in (out / "README.md").read_text()
    sample = (out / "samples" / f"step-{measured[-1].step}.txt").read_text()
    assert [line.split("  ")[0] for line in sample.split("\n")[:3]] == ["source", "target", "model"]
    source, target = sample.split("\n")[:2]
    assert mark in source
    assert (mark in target) == (out.name == "spans")


def test_it_is_served_as_a_translator_of_marked_text(run):
    model = heedful.load(run[0])
    assert isinstance(model, Translator)
    texts = ["Ba de <mask> ko.", "<extra_id_0> ba <extra_id_1>", "Ba de.", ""]
    made = model.translate(texts, beam=2)
    ids = model.source.encode_marked(texts)
    assert (ids != model.source.encode(texts)) == bool(model.source.sentinels or model.source.mask)
    found = model.hypotheses(ids, model.decoding(beam=2))
    assert made == [model.target.decode_marked(best[0].tokens) for best in found]
    assert all("noise" in line for line in [json.loads((run[0] / "task.json").read_text())])


def test_it_keeps_the_laws(run):
    laws = list(check(run[0], ["Ba de ko.", "Gi lu ma ne pi."]))
    assert sum("CTranslate2" not in law.name for law in laws) == 9
    assert [law.name for law in laws if not law.holds] == []


def test_it_is_measured_alike_each_time(run):
    out, events = run
    model = heedful.load(out)
    best = max((event for event in events if isinstance(event, Measured)), key=lambda event: -event.valid_loss)
    found = denoising_likelihood(model, CORPUS.valid, most=30)
    assert found.loss == pytest.approx(best.valid_loss, rel=1e-5)
    assert found == denoising_likelihood(model, CORPUS.valid, most=30)
    assert denoising_likelihood(model, CORPUS.tests["test"]).loss == pytest.approx(events[-1].scores["test"]["loss"])


@pytest.mark.parametrize("objective", sorted(ROWS))
def test_every_passage_is_noised_anew_in_each_epoch(objective):
    tokenizer = train_tokenizer(TEXTS, kind="bpe", size=320, mask=True, sentinels=12)
    noise, passages = make_noise(objective, tokenizer, TranslatorSpec()), read_passages(TEXTS, tokenizer, 39)
    plan = PackedTrain(tokens=512, row=48)

    def pairs(task, epoch):
        """Of the batches: each target with its source."""
        found = []
        for batch in task.batches(epoch, None):
            for row in range(len(batch.source)):
                for number in range(1, int(batch.target_segments[row].max()) + 1):
                    source = batch.source[row][batch.source_segments[row] == number].tolist()
                    target = batch.target_out[row][batch.target_segments[row] == number].tolist()
                    found.append((tuple(source[:-1]), tuple(target[:-1])))
        return sorted(found)

    task = DenoiseTask(passages, noise, plan, packs=True)
    first, second = pairs(task, 0), pairs(task, 1)
    assert len(first) == len(second) == len(passages)
    assert pairs(DenoiseTask(passages, noise, plan, packs=False), 0) == first
    assert pairs(task, 0) == first
    assert {source for source, _ in first} != {source for source, _ in second}
    whole = sorted(tuple(token for sentence in passage for token in sentence) for passage in passages)
    if objective == "infill":
        assert sorted(target for _, target in first) == sorted(target for _, target in second) == whole
    else:
        tokens = [sorted(index for index in (*s, *t) if index not in noise.sentinels) for s, t in first]
        assert sorted(tokens) == sorted(sorted(text) for text in whole)
    alone = DenoiseTask(passages[:1], noise, plan, packs=True)
    assert pairs(alone, 1)[0] in second, "a text's noise does not depend on the others"


@pytest.mark.parametrize("objective", sorted(ROWS))
def test_an_interrupted_run_ends_in_the_same_weights(tmp_path, objective):
    goes_on_alike(recipe(objective, **{"train.save_every": 4}), CORPUS, tmp_path, after=7)


def tuned(start, **changes) -> Recipe:
    """Which reads pairs no longer than 40 tokens, and measures rarely."""
    plan = build(
        {"start_from": str(start), "train": dict(made_recipe().train) | {"eval_every": 50, "precision": "fp32"}},
        where="test",
    )
    return override(plan, ["data.longest=40", *(f"{key}={value}" for key, value in changes.items())])


def test_what_starts_from_a_run_starts_with_its_numbers(run, tmp_path):
    """The first step's loss is that of the model that it starts from, on the same batch."""
    corpus, out = made_corpus(150), tmp_path / "tuned"
    plan = tuned(run[0], **{"train.steps": 4, "train.save_every": 1, "train.smoothing": 0.0, "train.keep": 9})
    events = list(train(plan, out, corpus=corpus))
    losses = [event.step.loss for event in events if isinstance(event, Trained)]
    start, served = heedful.load(run[0]), heedful.load(out)
    assert served.about["source"] == "low"
    assert served.source.json() == start.source.json()
    assert "noise" not in served.about
    assert served.model.config == start.model.config
    assert f"Trained from the model in `{run[0]}`" in (out / "README.md").read_text()

    job = TranslateJob(plan, corpus)
    task = job.task(start.model)
    first = task.loss(start.model, task.batches(0, None)[0])
    assert losses[0] == pytest.approx(float(first.total.detach()) / first.count, rel=1e-5)
    made = make_model(job.config)
    job.begin(made)
    own = dict(made.named_parameters())
    assert all(torch.equal(weight, own[name]) for name, weight in start.model.named_parameters())


def test_it_is_gone_on_with_when_its_start_is_gone(run, tmp_path):
    start, out, corpus = tmp_path / "start", tmp_path / "tuned", made_corpus(150)
    shutil.copytree(run[0], start)
    plan = tuned(start, **{"train.steps": 4, "train.save_every": 2})
    finished(train(plan, tmp_path / "straight", corpus=corpus))
    for event in train(plan, out, corpus=corpus):
        if isinstance(event, Trained) and event.step.step == 3:
            break
    shutil.rmtree(start)
    finished(train(plan, out, corpus=corpus))
    one, other = ((tmp_path / name / "checkpoints/step-4/weights.safetensors") for name in ("straight", "tuned"))
    assert one.read_bytes() == other.read_bytes()


def test_a_denoiser_may_start_from_a_denoiser(run, tmp_path):
    plan = recipe(run[0].name, start_from=str(run[0]))
    with pytest.raises(InputError, match=r"model\.\w+ cannot be chosen: the model is that of"):
        next(train(plan, tmp_path / "more", corpus=CORPUS))
    plan = build(plan.model_dump() | {"model": {}}, where="test")
    events = list(train(override(plan, ["train.steps=2"]), tmp_path / "more", corpus=CORPUS))
    _, before = read_model(run[0])
    measured = [event for event in events if isinstance(event, Measured)]
    assert measured[0].valid_loss < run[1][-1].scores["test"]["loss"] * 1.2
    assert before.keys() == read_model(tmp_path / "more")[1].keys()
    other = {"spans": "infill", "infill": "spans"}[run[0].name]
    with pytest.raises(InputError, match=f"its vocabulary has no marks for data.objective = {other}"):
        next(train(override(plan, [f"data.objective={other}"]), tmp_path / "none", corpus=CORPUS))


def test_only_a_translator_is_a_start_for_one(tmp_path):
    text = Documents(TEXTS[:20], TEXTS[20:30], {}, "made", (), ())
    plan = {
        "task": "generate",
        "model": {"d_model": 16, "n_layers": 1, "context_length": 16},
        "data": {"tokenizer": "chars"},
    }
    gpt = build(plan | {"train": {"steps": 1, "tokens": 64}}, where="test")
    finished(train(gpt, tmp_path / "gpt", corpus=text))
    with pytest.raises(InputError, match="not a model of heed train translate"):
        next(train(tuned(tmp_path / "gpt"), tmp_path / "tuned", corpus=made_corpus(50)))
    assert not (tmp_path / "tuned").exists()


def test_text_without_words_is_not_infilled(tmp_path):
    texts = ["".join(random.Random(seed).choices("他是一个好人我们都很喜欢", k=300)) for seed in range(30)]
    corpus = Documents(texts[:20], texts[20:], {}, "made", (), ())
    with pytest.raises(InputError, match="tokens stand between two spaces") as caught:
        next(train(recipe("infill", **{"data.tokenizer": "chars"}), tmp_path / "run", corpus=corpus))
    assert caught.value.fix == "--set data.objective=spans"
    assert not (tmp_path / "run").exists()


def test_learned_places_have_an_end(tmp_path):
    """Longer pairs are left out, what is said ends there, and a longer text to be measured on is refused."""
    pairs = backwards(100, 1)
    row = {"d_model": 32, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "context_length": 12}
    plan = build({"preset": "bart-base", "model": row, "data": {"tokenizer": "chars"}}, where="test")
    plan = override(plan, ["train.steps=2", "train.tokens=256"])
    short = pairs.rows(i for i, source in enumerate(pairs.source) if len(source) < 11)
    assert 5 < len(short) < 95
    corpus = Corpus(pairs, short, {"test": short}, "made", source="low", target="high")
    finished(train(plan, tmp_path / "run", corpus=corpus))
    model = heedful.load(tmp_path / "run")
    kept = json.loads((tmp_path / "run" / "data.json").read_text())["trained_on"]
    assert kept == sum(len(source) < 11 for source in pairs.source)
    found = model.hypotheses(model.source.encode(["ba de gi"]), model.decoding(beam=1, shortest=11))
    assert len(found[0][0].tokens) <= 12
    with pytest.raises(InputError, match="but the model has 12 positions"):
        next(
            train(
                plan,
                tmp_path / "none",
                corpus=Corpus(pairs, pairs, {"test": short}, "made", source="low", target="high"),
            )
        )


@pytest.mark.parametrize("start", [False, True])
def test_what_suits_pairs_is_not_asked_of_running_text(start: bool, translators: tuple[Path, Path], tmp_path: Path):
    (tmp_path / "text.txt").write_text("".join(TEXTS))
    given = {"data.path": tmp_path / "text.txt", **({"start_from": str(translators[0])} if start else {})}
    made, told = planned("denoise", tmp_path / "run", given)
    assert (made.task, told) == ("denoise", [])
