"""Answers from a text: windows, losses, ranks and SQuAD's scores."""

import pytest
import torch

import heedful
from heedful.data.parts import Parts
from heedful.data.text.questions import Question, Span
from heedful.data.tokenizer import BOS, EOS, train_tokenizer
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run.events import Finished
from heedful.run.recipe import override
from heedful.tasks.answer.layout import AnswerLayout, AnswerSpec, answer_batch
from heedful.tasks.answer.options import AnswerOptions
from heedful.tasks.answer.train import AnswerJob, AnswerTask
from heedful.tasks.answer.use import answer_questions, normalised, word_f1
from heedful.tasks.recipes import build
from heedful.verbs.check import check
from heedful.verbs.train import train

WORDS = ["ba", "de", "gi", "ko", "lu"]


def question(a, b, c):
    context = f"{a} is {b}, and {b} is {c}."
    return Question(f"{a}?", context, (Span(b, len(a) + 4),), context)


QUESTIONS = [question(a, b, c) for a in WORDS for b in WORDS for c in WORDS if len({a, b, c}) == 3]
NONE = [one._replace(answers=()) for one in QUESTIONS[:6]]
CORPUS = Parts(QUESTIONS, QUESTIONS[::6], {"test": QUESTIONS[:8] + NONE}, "made")
TOKENIZER = train_tokenizer([one.context + one.question for one in QUESTIONS], kind="chars", size=300)
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1, "context_length": 24}


def recipe(**changes):
    base = {"task": "answer", "preset": "encoder-tiny", "model": SMALL, "data": {"tokenizer": "chars"}}
    base["train"] = {"steps": 3, "eval_every": 3, "tokens": 512, "precision": "fp32"}
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


@pytest.fixture(scope="module", params=["all", "some"])
def run(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("answer") / "run"
    corpus = CORPUS if request.param == "all" else Parts(QUESTIONS + NONE, CORPUS.valid, CORPUS.tests, "made")
    last = list(train(recipe(), out, corpus=corpus))[-1]
    assert isinstance(last, Finished)
    return request.param, out, last


def test_a_run_says_what_it_has_learnt(run):
    told, out, done = run
    model = heedful.load(out)
    assert model.spec == AnswerSpec(unanswerable=told == "some")
    assert model.measure(CORPUS.tests["test"]) == pytest.approx(done.scores["test"], abs=1e-5)
    assert done.scores["test"].keys() == {"loss", "exact_match", "f1"}
    found = model.answer(["ba?"], [QUESTIONS[0].context], top=40)[0]
    assert sum(one.score for one in found) == pytest.approx(1, abs=1e-4)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for text, _, begin, end in found:
        assert text == QUESTIONS[0].context[begin:end] == text.strip()
    assert any(one.text == "" for one in found) == (told == "some")
    assert "Answers questions" in (out / "README.md").read_text()
    with pytest.raises(InputError, match="an empty question or context"):
        model.answer(["ba?"], [" "])


def test_its_laws_hold(run):
    assert [law for law in check(run[1]) if not law.holds] == []


def test_an_answer_does_not_depend_on_its_neighbours(run):
    model = heedful.load(run[1])
    asked = [(one.question, one.context * n) for n, one in enumerate(QUESTIONS[:6], 1)]
    together = model.answer(*zip(*asked, strict=True), top=3)
    for (question, context), found in zip(asked, together, strict=True):
        (alone,) = model.answer([question], [context], top=3)
        assert [one.score for one in alone] == pytest.approx([one.score for one in found], abs=1e-5)


def test_windows_cover_a_long_context_and_point_at_the_answer():
    context = " ".join(f"w{n}" for n in range(60))
    begin = context.index("w37")
    layout = AnswerLayout(TOKENIZER, 40)
    (windows,) = layout.encode([Question("ba?", context, (Span("w37 w38", begin),), "")])
    assert max(len(one.framed.tokens) for one in windows) == 40
    assert {n for one in windows for a, b in one.offsets for n in range(a, b)} == {*range(len(context))}
    holding = [one for one in windows if one.target != (0, 0)]
    assert 1 <= len(holding) < len(windows)
    (asked,) = TOKENIZER.encode(["ba?"])
    for one in windows:
        assert one.framed.tokens[: one.begin] == [BOS, *asked, EOS]
        assert one.framed.types == [0] * one.begin + [1] * (len(one.offsets) + 1)
    for one in holding:
        first, last = (one.offsets[place - one.begin] for place in one.target)
        assert context[first[0] : last[1]].strip() == "w37 w38"


def test_the_loss_is_of_begin_and_end_among_the_places_of_the_context():
    job = AnswerJob(recipe(), CORPUS)
    model = make_model(job.config).eval()
    (window,) = job.windows[:1]
    with torch.no_grad():
        found = AnswerTask([window], recipe().train).loss(model, answer_batch([window]))
        logits = model(torch.tensor([window.framed.tokens]), types=torch.tensor([window.framed.types]))[0]
    places = [0, *range(window.begin, window.begin + len(window.offsets))]
    wanted = [-float(logits[places, side].log_softmax(0)[places.index(window.target[side])]) for side in (0, 1)]
    assert float(found.total) == pytest.approx(sum(wanted) / 2, rel=1e-5)
    assert found.count == 1


def test_the_longest_answer(run):
    model = heedful.load(run[1])
    model.spec = AnswerSpec(longest=2)
    found = model.answer(["ba?"], [QUESTIONS[0].context], top=40)[0]
    assert max(one.end - one.start for one in found) <= 2


def test_scores_of_squad():
    assert normalised("The  cat, a DOG!") == "cat dog"
    assert word_f1("the cat sat", "a cat") == pytest.approx(2 / 3)
    assert word_f1("", "the") == 1
    assert word_f1("dog", "") == word_f1("dog", "cat") == 0


def test_a_question_that_is_not_read_as_a_whole_is_told(run):
    model, context = heedful.load(run[1]), QUESTIONS[0].context
    long = "ba " * 40 + "?"
    tokens, room = len(TOKENIZER.encode([long])[0]), model.layout.room // 2
    with pytest.warns(UserWarning, match=f"too long: only {room} of its {tokens} tokens were read"):
        kept = model.answer(long, context)
    assert kept == model.answer(TOKENIZER.decode(TOKENIZER.encode([long])[0][:room]), context)
    short, cut = answer_questions(model, ["ba?", long], AnswerOptions(context=context))
    assert "warning" not in short
    assert cut["warning"].startswith("too long: only")
