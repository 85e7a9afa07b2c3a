"""A tagger from its sentences to its labels."""

import pytest
import torch

import heedful
from heedful.data.parts import Parts
from heedful.data.text.tagged import Sentence
from heedful.data.tokenizer import BOS, EOS, train_tokenizer
from heedful.errors import InputError
from heedful.metrics.labels import has_spans, span_scores, spans
from heedful.models import make_model
from heedful.run.events import Finished
from heedful.run.recipe import override
from heedful.tasks.recipes import build
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.tag.layout import NONE, TagLayout, tag_batch, tagged_pieces
from heedful.tasks.tag.train import TagJob, TagTask
from heedful.verbs.check import check
from heedful.verbs.evaluate import evaluate
from heedful.verbs.train import train
from made import goes_on_alike

WORDS = ["ba", "dede", "gi", "kokoko", "lu"]
TEXTS = [(a, b, c) for a in WORDS for b in WORDS for c in WORDS]
SENTENCES = [Sentence(words, tuple("B-X" if len(word) > 2 else "O" for word in words)) for words in TEXTS]
CORPUS = Parts(SENTENCES, SENTENCES[::5], {"test": SENTENCES[:10]}, "made")
TOKENIZER = train_tokenizer([one.text for one in SENTENCES], kind="chars", size=300)
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1, "context_length": 24}


def recipe(**changes):
    base = {"task": "tag", "model": SMALL, "data": {"tokenizer": "chars"}}
    base["train"] = {"steps": 4, "eval_every": 2, "tokens": 512, "precision": "fp32", "save_every": 2}
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("tag") / "run"
    last = list(train(recipe(), out, corpus=CORPUS))[-1]
    assert isinstance(last, Finished)
    return out, last


def test_a_run_says_what_it_has_learnt(run):
    out, done = run
    model = heedful.load(out)
    names = {"loss", "accuracy", "macro_f1", "span_precision", "span_recall", "span_f1"}
    assert done.scores["test"].keys() == names
    assert model.measure(SENTENCES[:10]) == pytest.approx(done.scores["test"], abs=1e-5)
    (words, none) = model.tag(["ba  dede lu", " "])
    assert [one.word for one in words] == ["ba", "dede", "lu"]
    assert all(one.label in ("B-X", "O") and 0.5 <= one.score <= 1 for one in words)
    assert none == []
    assert "Labels the words" in (out / "README.md").read_text()


def test_its_laws_hold(run):
    laws = list(check(run[0]))
    assert sum("CTranslate2" not in law.name for law in laws) == 6
    assert [law for law in laws if not law.holds] == []


def test_a_sentence_does_not_depend_on_its_neighbours(run):
    model = heedful.load(run[0])
    together = model.tag([one.text for one in SENTENCES[:9]])
    for one, words in zip(SENTENCES, together, strict=False):
        (alone,) = model.tag([one.text])
        assert [word.label for word in alone] == [word.label for word in words]
        assert [word.score for word in alone] == pytest.approx([word.score for word in words], abs=1e-5)


def test_a_label_is_at_the_first_token_of_its_word():
    layout = TagLayout(TOKENIZER, 24)
    ba, dede = TOKENIZER.encode(["ba", "dede"])
    (one,) = tagged_pieces(layout, [Sentence(("ba", "dede"), ("O", "B-X"))], ["B-X", "O"])
    batch = tag_batch([one])
    assert batch.tokens[0].tolist() == [BOS, *ba, *dede, EOS]
    wanted = [NONE] * (2 + len(ba) + len(dede))
    wanted[1], wanted[1 + len(ba)] = 1, 0
    assert batch.labels[0].tolist() == wanted


def test_every_word_of_a_long_sentence_is_labelled(run):
    model = heedful.load(run[0])
    words = list(WORDS * 8)
    assert [word.word for word in model.tag_words([words])[0]] == words
    pieces = TagLayout(TOKENIZER, 10).encode([words])[0]
    assert max(len(piece.framed.tokens) for piece in pieces) <= 10
    assert sum(len(piece.positions) for piece in pieces) == len(words)


def test_the_loss_counts_words_and_leaves_out_labels_that_were_not_learnt():
    layout = TagLayout(TOKENIZER, 24)
    examples = tagged_pieces(layout, [Sentence(("ba", "lu"), ("O", "new"))], ["B-X", "O"])
    model = make_model(TagJob(recipe(), CORPUS).config).eval()
    with torch.no_grad():
        found = TagTask(examples, recipe().train).loss(model, tag_batch(examples))
        logits = model(torch.tensor([examples[0][0].framed.tokens]))[0, 1]
    assert found.count == 1
    assert float(found.total) == pytest.approx(-float(logits.log_softmax(0)[1]), rel=1e-5)


def test_a_label_that_was_not_learnt_is_never_right(run):
    model = heedful.load(run[0])
    known = model.measure([Sentence(("ba",), ("O",))])
    both = model.measure([Sentence(("ba", "ba"), ("O", "new"))])
    assert both["accuracy"] <= 0.5
    assert known["loss"] > 0


def test_labels_that_were_not_learnt_are_told_of_where_a_file_is_scored(run, tmp_path):
    for label, notes in (("new", ("labels that no training word has, and which are never right: new",)), ("O", ())):
        (tmp_path / "test.tsv").write_text(f"ba\t{label}\n")
        (found,) = evaluate(run[0], DataOptions(data=str(tmp_path / "test.tsv")))
        assert found.notes == notes


def test_going_on_is_as_if_nothing_had_happened(tmp_path):
    goes_on_alike(recipe(**{"train.steps": 6}), CORPUS, tmp_path, after=5)


def test_what_cannot_be_begun_with(run):
    with pytest.raises(InputError, match="not a model of heed train fill"):
        TagJob(recipe(start_from=run[0], model={}), CORPUS)


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ("O B-X I-X O", {(1, 3, "X")}),
        ("B-X B-X I-Y", {(0, 1, "X"), (1, 2, "X"), (2, 3, "Y")}),
        ("I-X I-X O I-Y", {(0, 2, "X"), (3, 4, "Y")}),
        ("O O", set()),
    ],
)
def test_spans_of_conlleval(labels, wanted):
    assert spans(labels.split()) == wanted


def test_scores_of_spans():
    assert has_spans(["B-X", "I-X", "O"])
    assert not has_spans(["O"])
    assert not has_spans(["DET", "O"])
    found, right = [["B-X", "I-X", "B-Y"], ["O"]], [["B-X", "O", "B-Y"], ["B-Y"]]
    assert span_scores(found, right) == {
        "span_precision": 1 / 2,
        "span_recall": 1 / 3,
        "span_f1": pytest.approx(0.4),
    }
