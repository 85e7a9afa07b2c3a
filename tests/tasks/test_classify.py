"""A classifier from its examples to its answers; and a training that begins with the model of another run."""

import json

import pytest
import tokenizers
import torch

import heedful
from heedful.data.text.documents import Documents
from heedful.data.text.labelled import Example, Labelled
from heedful.data.tokenizer import BOS, EOS, PAD, UNK, SpecialTokens, Tokenizer, train_tokenizer
from heedful.errors import InputError
from heedful.models.presets import EncoderSize, LMSize, encoder_config, lm_config
from heedful.run.recipe import override
from heedful.tasks.classify.layout import ClassifyLayout, ClassifySpec, classify_batch, label_loss
from heedful.tasks.classify.train import ClassifyJob, ClassifyTask
from heedful.tasks.classify.use import score_classifier
from heedful.tasks.recipes import build
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.sections import PackedTrain, SmoothedTrain
from heedful.verbs.check import check
from heedful.verbs.train import train
from made import finished, goes_on_alike

WORDS = ["ba", "de", "gi", "ko", "lu"]
TEXTS = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS]
EXAMPLES = {
    "label": [Example(text, label=text[:2]) for text in TEXTS],
    "labels": [Example(text, labels=tuple(sorted(set(text.split())))) for text in TEXTS],
    "score": [Example(text, TEXTS[0], score=float(text.count("a"))) for text in TEXTS],
    "choice": [Example(text, "which", choices=(text[:2], "no"), choice=0) for text in TEXTS],
}
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1, "context_length": 24}


def corpus(answer):
    made = EXAMPLES[answer]
    return Labelled(made, made[::5], {"test": made[:10]}, "made", answer=answer)


def recipe(**changes):
    base = {
        "task": "classify",
        "model": SMALL,
        "data": {"tokenizer": "chars"},
        "train": {"steps": 4, "eval_every": 2, "tokens": 512, "precision": "fp32"},
    }
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


RUNS = [(answer, "gpt-nano") for answer in sorted(EXAMPLES)] + [("label", "encoder-tiny"), ("choice", "roberta-base")]


@pytest.fixture(scope="module", params=RUNS, ids=" ".join)
def run(request, tmp_path_factory):
    answer, preset = request.param
    out = tmp_path_factory.mktemp("classify") / answer
    return answer, out, finished(train(recipe(preset=preset), out, corpus=corpus(answer)))


def test_a_run_says_what_it_has_learnt(run):
    answer, out, done = run
    model = heedful.load(out)
    names = {
        "label": {"loss", "accuracy", "macro_f1"},
        "labels": {"loss", "micro_f1", "macro_f1", "exact_sets"},
        "score": {"loss", "pearson", "spearman", "squared_error"},
        "choice": {"loss", "accuracy"},
    }
    scored = dict(done.scores["test"])
    assert ("bag_of_words" in scored) == (answer == "label")
    scored.pop("bag_of_words", None)
    assert scored.keys() == names[answer]
    assert model.measure(EXAMPLES[answer][:10]) == pytest.approx(scored, abs=1e-5)
    shown = EXAMPLES[answer][:7]
    choices = [one.choices for one in shown] if answer == "choice" else ()
    found = model.classify([one.text for one in shown], pairs=[one.pair for one in shown], choices=choices)
    for one, labels in zip(shown, found, strict=True):
        scores = [score for _, score in labels]
        assert scores == sorted(scores, reverse=True)
        expected = {"label": WORDS, "labels": WORDS, "score": ["score"], "choice": one.choices}[answer]
        assert sorted(label for label, _ in labels) == sorted(expected)
        if answer in ("label", "choice"):
            assert sum(scores) == pytest.approx(1)
    assert "Classifies texts" in (out / "README.md").read_text()


def test_an_answer_does_not_depend_on_its_neighbours(run):
    answer, out, _ = run
    model = heedful.load(out)
    shown = EXAMPLES[answer][:9]
    together = model._logits(model.layout.encode(shown))
    for one, logits in zip(shown, together, strict=True):
        torch.testing.assert_close(model._logits(model.layout.encode([one]))[0], logits, atol=1e-5, rtol=1e-5)


def test_its_laws_hold(run):
    _, out, _ = run
    laws = list(check(out, ["ba de gi", "ko", "lu de"]))
    assert sum("CTranslate2" not in law.name for law in laws) == 6
    assert [law for law in laws if not law.holds] == []


def test_going_on_is_as_if_nothing_had_happened(tmp_path):
    """Cut off after five of six steps; then gone on with from the fourth."""
    goes_on_alike(recipe(**{"train.steps": 6, "train.save_every": 2}), corpus("label"), tmp_path, after=5)


def test_layouts_of_gpt_1():
    tokenizer = train_tokenizer(TEXTS, kind="chars", size=300)
    ba, de, gi = tokenizer.encode(["ba", "de", "gi"])
    about = ClassifySpec(answer="label", labels=("x",))
    delimiter, extract = tokenizer.size, tokenizer.size + 1

    def body(context):
        return lm_config(LMSize(n_layers=1, d_model=16, n_heads=2, vocab_size=tokenizer.size, context_length=context))

    def sequences(one, about=about):
        return [own.tokens for own in ClassifyLayout(tokenizer, about, body(24)).encode([one])[0].sequences]

    assert sequences(Example("ba", label="x")) == [[BOS, *ba, extract]]
    assert sequences(Example("ba", "de", label="x")) == [[BOS, *ba, delimiter, *de, extract]]
    both = ClassifySpec(answer="label", labels=("x",), symmetric=True)
    there, back = sequences(Example("ba", "de", label="x"), both)
    assert (there, back) == ([BOS, *ba, delimiter, *de, extract], [BOS, *de, delimiter, *ba, extract])
    chosen = Example("ba", "de", choices=("gi", "ba"), choice=1)
    assert sequences(chosen, ClassifySpec(answer="choice")) == [
        [BOS, *ba, *de, delimiter, *gi, extract],
        [BOS, *ba, *de, delimiter, *ba, extract],
    ]
    layout = ClassifyLayout(tokenizer, about, body(10))
    ((long, _),) = layout.encode([Example("ba de gi ko lu", "de", label="x")])[0].sequences
    assert layout.cut == 1
    assert len(long) <= 10
    assert long[-4:] == [*de, extract]
    alone = layout.encode([Example("ba de gi ko lu", label="x")])[0]
    assert len(alone.sequences[0].tokens) == layout.context
    assert (alone.read, layout.cut) == (layout.context - 2, 2)
    with pytest.raises(InputError, match="the label 'y' was not among those"):
        layout.encode([Example("ba", label="y")])


def test_layouts_of_bert():
    """[CLS] text [SEP] pair [SEP], of types 0 and 1; RoBERTa parts the texts by two separators."""
    tokenizer = train_tokenizer(TEXTS, kind="chars", size=300)
    body = encoder_config(EncoderSize(n_layers=1, d_model=16, n_heads=2, vocab_size=tokenizer.size, context_length=12))
    ba, de, gi = tokenizer.encode(["ba", "de", "gi"])

    def sequences(one, about, tokenizer=tokenizer):
        layout = ClassifyLayout(tokenizer, about, body)
        assert layout.tokens == tokenizer.size
        return layout.encode([one])[0].sequences

    labels = ClassifySpec(answer="label", labels=("x",))
    assert sequences(Example("ba", label="x"), labels) == [([BOS, *ba, EOS], [0] * 5)]
    pair = [BOS, *ba, EOS, *de, EOS], [0] * 5 + [1] * 4
    assert sequences(Example("ba", "de", label="x"), labels) == [pair]
    (first, _) = sequences(Example("ba", "de", choices=("gi", "ba"), choice=1), ClassifySpec(answer="choice"))
    assert first == ([BOS, *ba, *de, EOS, *gi, EOS], [0] * 8 + [1] * 4)
    special = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, unk=UNK, separators=2)
    doubled = Tokenizer(tokenizers.Tokenizer.from_str(tokenizer.json()), special)
    ((tokens, _),) = sequences(Example(" ba", " de", label="x"), labels, doubled)
    assert tokens == [BOS, *ba, EOS, EOS, *de, EOS]


def test_losses_by_hand():
    logits, target = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0]])
    assert float(label_loss(logits, target, "label")) == pytest.approx(-float(logits.log_softmax(1)[0, 1]))
    assert float(label_loss(logits[:, :1], target, "score")) == 0
    several = label_loss(logits, torch.tensor([[1.0, 0.0]]), "labels")
    assert float(several) == pytest.approx(-float(logits[0, 0].sigmoid().log() + (1 - logits[0, 1].sigmoid()).log()))
    absent = torch.tensor([[1.0, 2.0, -torch.inf]])
    assert float(label_loss(absent, target, "choice")) == pytest.approx(-float(logits.log_softmax(1)[0, 1]))


def test_the_auxiliary_loss_is_that_of_the_language_model():
    """One example in a batch: the difference is `auxiliary` times its mean nats a token."""
    job = ClassifyJob(recipe(), corpus("label"))
    model = heedful.models.make_model(job.config).eval()
    examples = job.examples[:1]
    plan = SmoothedTrain()
    ((ids, _),) = examples[0].sequences
    with torch.no_grad():
        plain, more = (
            ClassifyTask(examples, plan, answer="label", auxiliary=weight).loss(model, classify_batch(examples))
            for weight in (0.0, 0.5)
        )
        logits = model.lm(torch.tensor([ids[:-1]]))[0]
    nats = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="sum")
    assert float(more.total - plain.total) == pytest.approx(0.5 * float(nats) / len(ids), rel=1e-4)
    assert float(more.total - more.extra) == pytest.approx(float(plain.total), rel=1e-5)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    out = tmp_path_factory.mktemp("start") / "text"
    base = {"task": "generate", "model": SMALL, "data": {"tokenizer": "chars"}, "train": {"steps": 2, "tokens": 240}}
    documents = Documents([f"{text}\n" for text in TEXTS], TEXTS[:20], {}, "made", (), ())
    finished(train(build(base, where="test"), out, corpus=documents))
    return out


def started(task, run, **changes):
    base = {"task": task, "start_from": str(run), "data": {"tokenizer": "chars"}, "train": {"steps": 1, "tokens": 240}}
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


def test_a_classifier_begins_with_a_language_model(pretrained, tmp_path):
    job = ClassifyJob(started("classify", pretrained), corpus("label"))
    model, before = heedful.models.make_model(job.config), heedful.load(pretrained).model
    job.begin(model)
    own = dict(model.lm.named_parameters())
    for name, tensor in before.named_parameters():
        assert torch.equal(own[name][: len(tensor)], tensor), name
    assert len(own["embed.tokens.weight"]) == len(before.embed.tokens.weight) + 2
    assert job.tokenizer.fingerprint == heedful.load(pretrained).tokenizer.fingerprint
    finished(train(started("classify", pretrained), tmp_path / "run", corpus=corpus("label")))
    heedful.load(tmp_path / "run").classify(["ba de gi"])


@pytest.mark.parametrize("pairs", ["none", "next"])
def test_a_classifier_begins_with_an_encoder(tmp_path, pairs):
    base = {"task": "fill", "preset": "encoder-tiny", "model": SMALL, "data": {"tokenizer": "chars", "pairs": pairs}}
    plan = build(base | {"train": {"steps": 1, "tokens": 240}}, where="test")
    documents = Documents([f"{text}\n" for text in TEXTS], TEXTS[:20], {}, "made", (), ())
    finished(train(plan, tmp_path / "fill", corpus=documents))
    begins = started("classify", tmp_path / "fill")
    job = ClassifyJob(begins, corpus("label"))
    model, before = heedful.models.make_model(job.config), heedful.load(tmp_path / "fill").model
    anew = {name: tensor.clone() for name, tensor in model.named_parameters()}
    job.begin(model)
    given = dict(before.named_parameters())
    kept = {name: given.get(name.removeprefix("encoder."), anew[name]) for name in anew}
    assert all(torch.equal(tensor, kept[name]) for name, tensor in model.named_parameters())
    assert given.keys() - {name.removeprefix("encoder.") for name in anew} >= {"head.bias", "transform.dense.weight"}
    assert ("pooler.weight" in given) == (pairs == "next")
    finished(train(begins, tmp_path / "run", corpus=corpus("label")))
    heedful.load(tmp_path / "run").classify(["ba de gi"], pairs=["ko"])
    with pytest.raises(InputError, match="an encoder cannot predict texts"):
        ClassifyJob(override(begins, ["classify.auxiliary=0.1"]), corpus("label"))


def test_it_goes_on_without_the_run_that_it_began_from(pretrained, tmp_path):
    """Once begun, a run holds all that it needs."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in pretrained.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    documents = Documents([f"{text}\n" for text in TEXTS], TEXTS[:20], {}, "made", (), ())
    for task, text in (("classify", corpus("label")), ("generate", documents)):
        finished(train(started(task, copy), tmp_path / task, corpus=text))
    for file in copy.iterdir():
        file.unlink()
    for task, text in (("classify", corpus("label")), ("generate", documents)):
        assert finished(train(started(task, copy, **{"train.steps": 2}), tmp_path / task, corpus=text)).steps == 2


def test_what_cannot_be_begun_with(pretrained, run):
    answer, out, _ = run
    with pytest.raises(InputError, match="not a model of heed train generate or fill"):
        ClassifyJob(started("classify", out), corpus(answer))
    with pytest.raises(InputError, match=r"model\.n_layers cannot be chosen"):
        ClassifyJob(started("classify", pretrained, model={"n_layers": 3}), corpus(answer))


def test_what_is_asked_must_fit_the_model(run):
    answer, out, _ = run
    model = heedful.load(out)
    with pytest.raises(InputError, match="this model chooses" if answer == "choice" else "does not choose"):
        model.classify(["ba"], choices=() if answer == "choice" else [("a", "b")])
    with pytest.raises(InputError, match="an empty text"):
        model.classify([" "], choices=[("a", "b")] if answer == "choice" else ())


def test_defaults_are_those_of_the_task():
    assert heedful.recipe("classify").train.lr == 5e-4
    assert heedful.recipe("classify", train={"lr": 1e-3, "steps": 3}).train == SmoothedTrain(
        lr=1e-3, steps=3, warmup=100
    )
    assert heedful.recipe("classify").preset == "gpt-mini"
    assert heedful.recipe("translate").train == PackedTrain()
    assert json.loads(heedful.recipe("classify").model_dump_json())["classify"] == {
        "symmetric": False,
        "auxiliary": None,
    }


def test_examples_of_another_kind_are_not_scored(run, tmp_path):
    """Their answers were all taken as none, or as 0."""
    answer, out, _ = run
    other = {"label": {"score": 1}, "labels": {"label": "ba"}, "score": {"label": "ba"}, "choice": {"label": "ba"}}
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": "ba de", **other[answer]}) + "\n")
    with pytest.raises(InputError, match=f"and the model gives a {answer}"):
        list(score_classifier(heedful.load(out), DataOptions(data=str(tmp_path / "x.jsonl"))))


@pytest.mark.parametrize(
    ("example", "what"), [(Example("a", label="x"), "1 label in all"), (Example("a", labels=()), "0 labels in all")]
)
def test_nothing_can_be_told_apart_by_one_label(example, what):
    answer = "label" if example.label else "labels"
    with pytest.raises(InputError, match=what):
        ClassifyJob(recipe(), Labelled([example] * 9, [example], {}, "made", answer=answer))
