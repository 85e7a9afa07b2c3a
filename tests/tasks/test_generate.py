"""A language model from its text to generation: what it says does not depend on its neighbours, and adds up."""

import json
import math
import shutil
from hashlib import sha256

import numpy as np
import pytest
import torch

import heedful
from heedful.apply import inference
from heedful.apply.inference import PackedLinear
from heedful.data.batches import TextBatch
from heedful.data.stored import StoredTexts
from heedful.data.text.documents import Documents, read_documents, read_text
from heedful.data.tokenizer import BOS
from heedful.errors import InputError, MissingError
from heedful.run.events import Finished, Measured
from heedful.run.folder import parameters
from heedful.run.recipe import Recipe, override
from heedful.tasks.generate.losses import next_token_loss
from heedful.tasks.generate.options import TextScoring
from heedful.tasks.generate.train import GenerateTask
from heedful.tasks.recipes import build
from heedful.tasks.shared.sections import SmoothedTrain
from heedful.tasks.translate.use import Translator
from heedful.verbs.check import check
from heedful.verbs.evaluate import evaluate
from heedful.verbs.exchange import export_model
from heedful.verbs.train import train
from made import RUN_FILES, goes_on_alike, made_corpus

PAIRS = made_corpus(150).train
TEXTS = [f"{source} > {target}\n" for source, target in zip(PAIRS.source, PAIRS.target, strict=True)]
CORPUS = Documents(TEXTS[:130], TEXTS[130:], {"test": TEXTS[:10]}, "made", (), ())
MODELS = {
    "gpt": {"preset": "gpt-nano", "model": {"d_model": 32, "n_heads": 2, "n_layers": 2, "context_length": 24}},
    "llama": {
        "preset": "llama-nano",
        "model": {"d_model": 32, "n_heads": 4, "n_layers": 2, "context_length": 24, "d_ff": 64},
    },
}


def recipe(name: str = "gpt", **changes: object) -> Recipe:
    base = {"task": "generate", "data": {"tokenizer": "chars"}, "train": {"steps": 12, "eval_every": 6, "tokens": 240}}
    return override(build(base | MODELS[name], where="test"), [f"{key}={value}" for key, value in changes.items()])


@pytest.fixture(scope="module", params=sorted(MODELS))
def run(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("text") / request.param
    events = list(train(recipe(request.param), out, corpus=CORPUS))
    assert isinstance(events[-1], Finished)
    return out, events


def test_a_run_folder_is_complete(run):
    out, events = run
    assert {path.name for path in out.iterdir()} >= RUN_FILES
    measured = [event for event in events if isinstance(event, Measured)]
    assert measured[-1].valid_loss < measured[0].valid_loss
    assert events[-1].scores["test"].keys() == {"loss", "perplexity", "bits_per_byte", "word_perplexity"}
    assert "nats a token" in (out / "README.md").read_text()
    assert json.loads((out / "task.json").read_text()) == {"task": "generate"}


def test_nothing_is_not_scored(run, tmp_path):
    (tmp_path / "train.txt").write_text("ba de gi\n" * 99)
    (tmp_path / "valid.jsonl").write_text('{"text": ""}\n{"text": " "}\n')
    for path in (tmp_path, tmp_path / "valid.jsonl"):
        with pytest.raises(InputError, match=r"valid\.jsonl: no document with a word"):
            read_documents(path)
    model = heedful.load(run[0], heedful.LanguageModel)
    with pytest.raises(InputError, match="no text to be scored"):
        model.measure([""])
    assert math.isfinite(model.measure([" "]).word_perplexity)


def test_large_maps_are_laid_out_and_everything_else_is_as_before(run, tmp_path, monkeypatch):
    """What it says, its loss, its parameters, what it is exported as, and the laws that it keeps."""
    small = heedful.load(run[0])
    export_model(run[0], tmp_path / "small")
    monkeypatch.setattr(inference, "FEWEST_WEIGHTS_PACKED", 1)
    large = heedful.load(run[0])
    assert isinstance(large.model.head, PackedLinear)
    assert not isinstance(small.model.head, PackedLinear)
    for one, other in zip(*(parameters(each.model).items() for each in (small, large)), strict=True):
        assert one[0] == other[0]
        assert torch.equal(one[1], other[1])
    block = TextBatch(*torch.randint(3, 9, (2, 2, 12)), torch.ones(2, 12, dtype=torch.int64))
    losses = [float(next_token_loss(each.model, block, across=True).total.detach()) for each in (small, large)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert small.measure(TEXTS[:9]).loss == pytest.approx(large.measure(TEXTS[:9]).loss, rel=1e-5)
    export_model(run[0], tmp_path / "large")
    both = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("small", "large")]
    assert both[0] == both[1]
    assert all(law.holds for law in check(run[0]))


def test_a_folder_is_for_one_task(run):
    with pytest.raises(InputError, match="not for translation"):
        Translator.load(run[0])
    with pytest.raises(MissingError, match="no such folder"):
        heedful.load(run[0] / "nowhere")


def test_prompts_of_unequal_length_are_what_each_is_alone(run):
    model = heedful.load(run[0])
    prompts = ["", "ba", "ba de gi > ", "ko"]
    for settings in ({"temperature": 0.0}, {"temperature": 1.0, "top_k": 20, "seed": 3}):
        together = model.generate(prompts, tokens=12, **settings)
        alone = model.generate(prompts[:1], tokens=12, **settings)[0][0]
        assert together[0][0].text == alone.text
        for one, other in zip(
            together, (model.generate([p], tokens=12, temperature=0.0)[0] for p in prompts), strict=True
        ):
            if settings["temperature"] == 0:
                assert one[0].tokens == other[0].tokens
                assert one[0].logprobs == pytest.approx(other[0].logprobs, abs=1e-4)


def test_one_prompt_alone_has_one_answer(run):
    model = heedful.load(run[0])
    assert model.generate("ba de", tokens=5, samples=2) == model.generate(["ba de"], tokens=5, samples=2)[0]


def test_what_it_says_is_as_likely_as_it_says(run):
    """The log-probabilities of a generated text are those that scoring it gives."""
    model = heedful.load(run[0])
    ((made,),) = model.generate(["ba de"], tokens=10, temperature=0.0)
    before, after = model.likelihood(["ba de", "ba de" + made.text])
    assert after.tokens - before.tokens == len(made.tokens) > 0
    assert before.nats - after.nats == pytest.approx(sum(made.logprobs), abs=1e-3)


def test_a_long_text_is_scored_through_a_window(run):
    model = heedful.load(run[0])
    text = "".join(TEXTS[:4])
    ids = model.tokenizer.encode_whole([text])[0]
    whole = torch.tensor([BOS, *ids])
    for stride in (1, 7, 12, 24):
        expected, done = 0.0, 0
        for end in [24, *range(24 + stride, len(ids) + stride, stride)]:
            end = min(end, len(ids))
            begin = max(0, end - 24)
            with torch.no_grad():
                scores = model.model(whole[None, begin:end]).log_softmax(-1)[0]
            fresh = torch.arange(done, end)
            expected -= float(scores[fresh - begin, whole[fresh + 1]].sum())
            done = end
        (found,) = model.likelihood([text], stride=stride)
        assert found.nats == pytest.approx(expected, rel=1e-4)
        assert (found.tokens, found.bytes) == (len(ids), len(text.encode()))
    assert found.perplexity == pytest.approx(math.exp(found.nats / found.tokens))
    assert found.bits_per_byte == pytest.approx(found.nats / found.bytes / math.log(2))


def test_a_text_may_outgrow_the_context(run):
    model = heedful.load(run[0])
    ((made,),) = model.generate(["ba"], tokens=70, temperature=1.0, seed=1)
    ((shorter,),) = model.generate(["ba"], tokens=40, temperature=1.0, seed=1)
    assert made.tokens[: min(40, len(shorter.tokens))] == shorter.tokens[:40]
    assert len(made.tokens) == len(made.logprobs) <= 70


def test_prompts_that_outgrow_the_context_do_not_disturb_each_other(run):
    model = heedful.load(run[0])
    prompts = ["ba", "ba de gi ko lu ma", "ba de gi ko lu ma n", "ba de gi ko lu ma ne pi ro su ba de"]
    together = model.generate(prompts, tokens=60, temperature=0.0)
    for prompt, (one,) in zip(prompts, together, strict=True):
        assert one.tokens == model.generate([prompt], tokens=60, temperature=0.0)[0][0].tokens


def test_samples_seeds_and_stops(run):
    model = heedful.load(run[0])
    one, two = model.generate(["ba"], tokens=15, samples=2, seed=5)[0]
    assert one.tokens != two.tokens
    assert model.generate(["ba"], tokens=15, samples=2, seed=5) == [[one, two]]
    assert model.generate(["ba"], tokens=15, seed=6)[0][0].tokens != one.tokens
    word = one.text[3:5]
    ((stopped,),) = model.generate(["ba"], tokens=15, seed=5, stop=[word])
    assert stopped.text == one.text[: one.text.index(word)]
    assert model.generate(["ba"], tokens=15, seed=5, stop=word) == [[stopped]]  # and not at each of its characters
    with pytest.raises(InputError, match="a text to stop at is empty"):
        model.generate(["ba"], stop=[word, ""])


@pytest.mark.parametrize("across", [True, False])
def test_every_token_is_learnt_from_once_an_epoch(across):
    begins = np.add.outer(np.arange(0, 180, 6), [0, 3, 4]).ravel()
    documents = StoredTexts(np.array([10, 11, 12, 20, 30, 31] * 30, "<u2"), begins)
    task = GenerateTask(documents, SmoothedTrain(tokens=64), context=8, across=across)
    for epoch in (0, 1):
        blocks = task.batches(epoch, None)
        tokens = torch.cat([block.tokens for block in blocks])
        following = torch.cat([block.following for block in blocks])
        assert torch.equal(tokens[:, 1:], following[:, :-1])
        assert len(task.stream) - 9 <= tokens.numel() + (len(task.stream) - 1) % 8 < len(task.stream)
        segments = torch.cat([block.segments for block in blocks])
        same = segments[:, 1:] == segments[:, :-1]
        assert torch.equal(same, torch.ones_like(same) if across else tokens[:, 1:] != BOS)
    assert not torch.equal(task.batches(0, None)[0].tokens, task.batches(1, None)[0].tokens)
    with pytest.raises(InputError, match="do not fill one row"):
        GenerateTask(StoredTexts(np.array([1, 2]), np.zeros(1, int)), SmoothedTrain(), context=64, across=across)


def test_text_is_read_from_files_lines_and_folders(tmp_path):
    (tmp_path / "book.txt").write_text("0123456789" * 10)
    book = read_documents(tmp_path / "book.txt")
    assert "".join(book.train + book.valid) == "0123456789" * 10 + "\n"
    assert len(book.valid[0]) == 10
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"text": f"row {i}"}) + "\n" for i in range(40)))
    rows = read_documents(tmp_path / "rows.jsonl")
    assert (len(rows.train), rows.valid[0]) == (36, "row 36")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("train.txt", "valid.txt", "test_a.txt"):
        (folder / name).write_text(f"text of {name}\n")
    found = read_documents(folder)
    assert (found.train, found.valid) == (["text of train.txt\n"], ["text of valid.txt\n"])
    assert found.tests == {"test_a": ["text of test_a.txt\n"]}
    assert read_text(folder) == ["text of test_a.txt\n"]
    (folder / "testament.txt").write_text("in the beginning\n")
    assert read_documents(folder).train == ["in the beginning\n", "text of train.txt\n"]
    (tmp_path / "bad.jsonl").write_text('{"text": "good"}\n{"txt": 1}\n')
    with pytest.raises(InputError, match=r'bad\.jsonl:2: no "text" that is a string'):
        read_documents(tmp_path / "bad.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingError, match=r"no \.txt and no \.jsonl"):
        read_documents(tmp_path / "empty")


@pytest.mark.parametrize("kind", ["chars", "bytes", "bpe"])
def test_texts_come_back_whole(kind):
    tokenizer = heedful.data.tokenizer.train_tokenizer(TEXTS, kind=kind, size=300)
    for text in ("ba de", " ba", "\nba\n", "zz é 😀", ""):
        assert tokenizer.decode_whole(tokenizer.encode_whole([text])[0]) == text
    if kind == "chars":
        assert len(tokenizer.encode_whole(["ba de"])[0]) == 5
    if kind == "bytes":
        assert len(tokenizer.encode_whole(["é"])[0]) == 2
        assert tokenizer.size == 260


def test_an_interrupted_run_ends_in_the_same_weights(tmp_path):
    goes_on_alike(recipe(**{"train.save_every": 4}), CORPUS, tmp_path, after=7)


def test_of_a_folder_what_a_training_would_not_learn_from_is_scored(tmp_path):
    names = ["train.txt", "valid_a.txt", "test.txt"]
    for name in reversed(names):
        (tmp_path / name).write_text(f"text of {name}\n")
        if name == "test.txt":
            assert read_text(tmp_path) == ["text of test.txt\n"], "without anything to learn from"
    for name in reversed(names):
        assert read_text(tmp_path) == [f"text of {name}\n"]
        (tmp_path / name).unlink()


def test_it_is_told_of_a_folder_that_was_learnt_from(run_of, tmp_path):
    data, run = tmp_path / "data", tmp_path / "run"
    shutil.copytree(run_of("gpt"), run)
    data.mkdir()
    (data / "a.txt").write_text("ba de gi\n")
    facts = json.loads((run / "data.json").read_text())
    known = {"path": "a.txt", "sha256": sha256(b"ba de gi\n").hexdigest()}
    (run / "data.json").write_text(json.dumps(facts | {"files": [known]}))
    (found,) = evaluate(run, TextScoring(data=str(data)))
    assert found.notes == (f"{data}: {run} has learnt from it: its scores on other data may be much lower",)
    (data / "valid.txt").write_text("ba de\n")
    (found,) = evaluate(run, TextScoring(data=str(data)))
    assert found.notes == ()


def test_documents_that_are_learnt_and_measured_on_are_told(tmp_path):
    rows = [{"text": f"row {i % 36}"} for i in range(40)]
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    shared = "valid: 4 of 4 share their text with what is learnt from"
    assert read_documents(tmp_path / "train.jsonl").notes[1:] == (shared,)
    assert read_documents(tmp_path).notes[1:] == (shared,)
    (tmp_path / "test.jsonl").write_text('{"text": "row 0"}\n{"text": "other"}\n')
    (tmp_path / "dev.jsonl").write_text('{"text": "another"}\n')
    assert read_documents(tmp_path).notes == ("test: 1 of 2 share their text with what is learnt from",)
