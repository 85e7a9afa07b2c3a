"""Naming hidden words: which are hidden, what the loss counts, and what a trained model says."""

import json
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import heedful
from heedful.data.blanks import SHARE, WHOLE, MaskedRows, Masker, PairSampler, pieces
from heedful.data.stored import StoredTexts
from heedful.data.text.documents import Documents
from heedful.data.tokenizer import BOS, EOS, PAD, SPECIALS, train_tokenizer
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run.events import Finished, Measured
from heedful.run.recipe import Recipe, override
from heedful.tasks.fill.train import FillJob, FillTask
from heedful.tasks.fill.use import Filler
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.recipes import build
from heedful.tasks.shared.sections import SmoothedTrain
from heedful.training.loop import rows_of
from heedful.verbs.check import check
from heedful.verbs.train import train
from made import RUN_FILES, goes_on_alike, made_corpus
from saved import save_run

PAIRS = made_corpus(150).train
TEXTS = [f"{source} > {target}\n" for source, target in zip(PAIRS.source, PAIRS.target, strict=True)]
CORPUS = Documents(TEXTS[:130], TEXTS[130:], {"test": TEXTS[:10]}, "made", (), ())
TOKENIZER = train_tokenizer(TEXTS, kind="bpe", size=300, mask=True)
MASK = TOKENIZER.mask
FIRST = len(SPECIALS)
SMALL = {"d_model": 32, "n_heads": 2, "n_layers": 2, "context_length": 48}


def recipe(**changes: object) -> Recipe:
    base = {
        "task": "fill",
        "model": SMALL,
        "data": {"vocab_size": 300},
        "train": {"steps": 12, "eval_every": 6, "tokens": 240},
    }
    return override(build(base, where="test"), [f"{key}={value}" for key, value in changes.items()])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("fill") / "run"
    events = list(train(recipe(), out, corpus=CORPUS))
    assert isinstance(events[-1], Finished)
    return out, events


def task(documents, *, context=48, whole_words=False, pairs="none", **plan):
    masker, sampler = Masker(TOKENIZER, whole_words=whole_words), PairSampler(TOKENIZER, pairs)
    begins = np.cumsum([0, *map(len, documents)])[:-1]
    documents = StoredTexts(np.array([token for ids in documents for token in ids], "<u2"), begins)
    return FillTask(documents, SmoothedTrain(**plan), context=context, masker=masker, sampler=sampler)


def together(batches):
    return MaskedRows(*(torch.cat(parts) for parts in zip(*batches, strict=True)))


@pytest.mark.parametrize("whole_words", [False, True])
def test_a_share_is_chosen_and_most_of_it_hidden(whole_words):
    """15 % of the text, of which 80 % hidden, 10 % replaced, 10 % kept (Devlin et al. 2019)."""
    documents = TOKENIZER.encode_whole(TEXTS * 4)
    made = task(documents, whole_words=whole_words, tokens=2048).batches(0, None)
    tokens, segments, types, words, chosen, pairs = together(made)
    assert not types.any()
    assert (pairs == -1).all()
    real = words >= FIRST
    assert not chosen[~real].any()
    assert torch.equal(tokens[~chosen], words[~chosen])
    count = int(chosen.sum())
    assert count / int(real.sum()) == pytest.approx(SHARE, abs=0.03 if whole_words else 0.005)
    assert (chosen.sum(1)[real.any(1)] > 0).all()
    seen, was = tokens[chosen], words[chosen]
    assert float((seen == MASK).sum() / count) == pytest.approx(0.8, abs=0.03)
    assert float((seen == was).sum() / count) == pytest.approx(0.1, abs=0.03)
    other = seen[(seen != MASK) & (seen != was)]
    assert float(len(other) / count) == pytest.approx(0.1, abs=0.03)
    assert other.min() >= FIRST
    assert len(set(other.tolist())) > 50, "drawn from the whole vocabulary"
    assert torch.equal(segments > 0, words != PAD)


def test_every_text_is_there_once_in_every_epoch_with_other_blanks():
    documents = TOKENIZER.encode_whole(TEXTS)
    own = task(documents)
    first, second = (together(own.batches(epoch, None)) for epoch in (0, 1))
    again = together(task(documents).batches(0, None))
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    for batch in (first, second):
        found = Counter()
        for row, numbers in zip(batch.words, batch.segments, strict=True):
            for number in range(1, int(numbers.max()) + 1):
                begin, *ids, end = row[numbers == number].tolist()
                assert (begin, end) == (BOS, EOS)
                found[tuple(ids)] += 1
        assert found == Counter(map(tuple, documents))
    hidden = [Counter(batch.words[batch.chosen].tolist()) for batch in (first, second)]
    assert hidden[0] != hidden[1]
    one, other = (together(task(documents[:1]).batches(epoch, None)) for epoch in range(2))
    assert torch.equal(one.words, other.words)
    assert not torch.equal(one.chosen, other.chosen)
    assert not torch.equal(first.chosen, together(task(documents, seed=2).batches(0, None)).chosen)


def test_what_is_hidden_in_a_row_does_not_depend_on_who_computes_it():
    batch = task(TOKENIZER.encode_whole(TEXTS), tokens=480).batches(0, None)[0]
    for rank in range(3):
        for whole, part in zip(batch, rows_of(batch, rank, 3), strict=True):
            assert torch.equal(whole[rank::3], part)
    assert len({tuple(row.tolist()) for row in batch.chosen}) == len(batch.tokens), "each row has its own"


def test_a_word_is_hidden_with_all_its_tokens():
    masker = Masker(TOKENIZER, whole_words=True)
    text = [BOS, *TOKENIZER.encode_whole(["qqqq, zzzz (xyxyxy) 42 zq"])[0], EOS]
    words = torch.tensor(text * 8)
    pieces_ = TOKENIZER.pieces(text)
    groups, current = [], []
    for place, piece in enumerate(pieces_ * 8):
        if current and piece.isalpha() and pieces_[place % len(text) - 1].strip("▁").isalpha():
            current.append(place)
        elif words[place] >= FIRST:
            current = [place]
            groups.append(current)
        else:
            current = []
    assert max(map(len, groups)) > 3
    parted = whole = 0
    apart = set()
    for seed in range(60):
        _, chosen = masker.hide(words, seed, mixed=False)
        assert 0 < int(chosen.sum()) <= round(SHARE * int((words >= FIRST).sum()))
        for group in groups:
            count = int(chosen[group].sum())
            whole += count == len(group) > 1
            parted += 0 < count < len(group)
        firsts = [bool(chosen[group[0]]) for group in groups]
        apart |= {i for i in range(len(groups) - 1) if firsts[i] != firsts[i + 1]}
    assert parted == 0
    assert whole > 50
    assert len(apart) == len(groups) - 1, "no two words go together"
    alone = torch.tensor(TOKENIZER.encode_whole(["q" * 40])[0])
    assert int(masker.hide(alone, 0, mixed=False)[1].sum()) == round(SHARE * len(alone)), "a word too long is parted"


def test_long_texts_are_cut_at_other_places():
    ids = list(range(1000))
    for seed in (None, 1, 2):
        made = list(pieces(ids, 50, seed))
        assert [number for piece in made for number in piece] == ids
        assert max(map(len, made)) == 50
    assert list(map(len, pieces(ids, 50))) == [50] * 20
    one, other = (list(pieces(ids, 50, seed)) for seed in (1, 2))
    assert one != other
    assert sum(len(piece) < 50 for piece in one) >= 2
    assert list(pieces(ids[:50], 50, 3)) == [ids[:50]], "what fits stays whole"
    assert list(pieces([], 50, 3)) == []
    long = task([TOKENIZER.encode_whole(["".join(TEXTS)])[0]])
    begins = [
        Counter(batch.words[:, 1].tolist()) for batch in (together(long.batches(epoch, None)) for epoch in (0, 1))
    ]
    assert begins[0] != begins[1]


def parted(ids, begin):
    """The first and the second part of the pair that begins at `begin` of a row."""
    middle = ids.index(EOS, begin)
    return ids[begin + 1 : middle], ids[middle + 1 : ids.index(EOS, middle + 1)]


@pytest.mark.parametrize("kind", ["next", "order"])
def test_half_of_the_pairs_go_on(kind):
    """Second parts are those of the same text, or (next) of another, or (order) come first (Devlin et al. 2019; Lan et
    al. 2020)."""
    documents = TOKENIZER.encode_whole(TEXTS * 4)
    whole = set(map(tuple, documents))
    batch = together(task(documents, pairs=kind).batches(0, None))
    counts = Counter()
    for words, types, segments, pairs in zip(batch.words, batch.types, batch.segments, batch.pairs, strict=True):
        begins = (words == BOS).nonzero()[:, 0].tolist()
        for number, begin in enumerate(begins, 1):
            ids = words[segments == number].tolist()
            told = int(pairs[begin])
            if told < 0:
                assert tuple(ids[1:-1]) in whole
                assert not types[segments == number].any()
                counts["whole"] += 1
                continue
            first, second = parted(ids, 0)
            assert first
            assert second
            assert types[segments == number].tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1)
            goes_on = tuple(first + second) in whole
            counts[told, goes_on or (kind == "order" and tuple(second + first) in whole)] += 1
        assert not types[segments == 0].any()
        pairs[begins] = -1
        assert (pairs == -1).all()
    total = counts.total()
    assert counts["whole"] / total == pytest.approx(WHOLE, abs=0.05)
    assert counts[0, True] / total == pytest.approx((1 - WHOLE) / 2, abs=0.05)
    assert counts[0, False] == 0
    if kind == "order":
        assert counts[1, False] == 0
    else:
        assert counts[1, True] < counts[1, False] / 5, "another text's second part may fit by chance"
    assert not torch.equal(batch.words, together(task(documents, pairs=kind).batches(1, None)).words)


def test_pairs_are_parted_where_sentences_end():
    sampler = PairSampler(TOKENIZER, "order")
    texts = ["ba de gi. ko lu ma! ne pi ro\nsu ba.", "ba de gi ko"]
    found = [set(), set()]
    for seed in range(60):
        for own, (ids, told) in zip(found, sampler.join(TOKENIZER.encode_whole(texts), 60, seed), strict=True):
            if told:
                first, second = parted([BOS, *ids, EOS], 0)
                own.add(TOKENIZER.decode_whole(second if told == [1] else first))
    assert found[0] == {"ba de gi.", "ba de gi. ko lu ma!", "ba de gi. ko lu ma! ne pi ro\n"}
    assert found[1] == {"ba", "ba de", "ba de gi"}


def test_few_and_short_texts_make_pairs_too():
    sampler = PairSampler(TOKENIZER, "next")
    made = sampler.join([[5], [6, 7], [8], [9, 10]], 60)
    assert ([5], []) in made
    assert ([8], []) in made
    pairs = [sampler.join([[5, 5, 5], [9, 9, 9]], 3, seed)[0] for seed in range(40)]
    pairs = [(ids, told) for ids, told in pairs if told]
    assert max(len(ids) for ids, _ in pairs) == 4, "no more than three, and what parts them"
    assert {(told[0], ids[-1]) for ids, told in pairs} == {(0, 5), (1, 9)}, "a wrong part is another text's"
    with pytest.raises(InputError, match="too few texts"):
        sampler.join([[5, 6], [7]], 60)


def test_the_loss_of_pairs_weighs_as_much_as_that_of_words():
    made = task(TOKENIZER.encode_whole(TEXTS), pairs="next", tokens=480)
    model = make_model(FillJob(recipe(**{"data.pairs": "next"}), CORPUS).config).eval()
    batch = together(made.batches(0, None))
    found, words = made.loss(model, batch), task(TOKENIZER.encode_whole(TEXTS)).loss(model, batch)
    at = batch.pairs >= 0
    logits = model.next_sentence(model.hidden(batch.tokens, batch.segments, batch.types)[at])
    own = F.cross_entropy(logits, batch.pairs[at], reduction="sum")
    torch.testing.assert_close(found.total, words.total + made.weight * own)
    torch.testing.assert_close(found.extra, made.weight * own)
    assert found.count == words.count
    assert made.weight * int(at.sum()) == pytest.approx(found.count, rel=0.1)


def test_the_loss_is_that_of_the_chosen_places_alone():
    made = task(TOKENIZER.encode_whole(TEXTS), tokens=480)
    model = make_model(FillJob(recipe(), CORPUS).config).eval()
    batch = made.batches(0, None)[0]
    found = made.loss(model, batch)
    logits = model(batch.tokens, batch.segments)
    expected = F.cross_entropy(logits[batch.chosen], batch.words[batch.chosen], reduction="sum")
    assert found.count == int(batch.chosen.sum())
    torch.testing.assert_close(found.total, expected)
    parts = [made.loss(model, rows_of(batch, rank, 2)) for rank in range(2)]
    torch.testing.assert_close(sum(part.total for part in parts), expected)
    assert sum(part.count for part in parts) == found.count
    expected.backward()
    own = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    found.total.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, own[name], rtol=1e-4, atol=1e-5, msg=name)


def test_a_run_folder_is_complete(run):
    out, events = run
    assert {path.name for path in out.iterdir()} >= RUN_FILES
    measured = [event for event in events if isinstance(event, Measured)]
    assert measured[-1].valid_loss < measured[0].valid_loss
    assert events[-1].scores["test"].keys() == {"loss", "perplexity", "accuracy"}
    assert "heed fill" in (out / "README.md").read_text()
    assert json.loads((out / "task.json").read_text()) == {"task": "fill"}
    assert "|" in (out / "samples" / "step-12.txt").read_text()
    with pytest.raises(InputError, match="a model for 'fill'"):
        LanguageModel.load(out)


@pytest.mark.parametrize("kind", ["next", "order"])
def test_a_run_on_pairs(kind, tmp_path):
    plan = recipe(**{"data.pairs": kind, "train.steps": 2})
    events = list(train(plan, tmp_path / "run", corpus=CORPUS))
    assert 0 <= events[-1].scores["test"]["pair_accuracy"] <= 1
    model = heedful.load(tmp_path / "run")
    assert (model.pairs, model.model.config.nsp_head) == (kind, True)
    assert model.measure(TEXTS[:9]) == model.measure(TEXTS[:9])
    assert all(law.holds for law in check(tmp_path / "run"))


def test_what_cannot_be_trained_is_refused(run):
    with pytest.raises(InputError, match="does not tell pairs of texts apart"):
        FillJob(recipe(preset="roberta-base", **{"data.pairs": "next"}), CORPUS)
    with pytest.raises(InputError, match="does not tell pairs of texts apart"):
        FillJob(recipe(start_from=str(run[0]), model={}, **{"data.pairs": "next"}), CORPUS)
    with pytest.raises(InputError, match="6 tokens are too few"):
        task([[5, 6]], context=6)
    with pytest.raises(InputError, match="no text to learn from"):
        task([[], []])


def test_texts_of_unequal_length_are_what_each_is_alone(run):
    model = heedful.load(run[0])
    texts = ["<mask>", "ba de <mask> gi > GI", "ba <mask> gi <mask>", "ba de gi ko lu ma <mask>"]
    made = model.fill(texts, top=3)
    assert [[each.mask for each in own] for own in made] == [[0], [0], [0, 1], [0]]
    for text, own in zip(texts, made, strict=True):
        (alone,) = model.fill([text], top=3)
        for one, other in zip(own, alone, strict=True):
            assert one.text == text
            assert [each.token for each in one.candidates] == [each.token for each in other.candidates]
            scores = [each.score for each in one.candidates]
            assert scores == pytest.approx([each.score for each in other.candidates], rel=1e-4)
            assert scores == sorted(scores, reverse=True)


def test_scores_are_probabilities_among_the_whole_vocabulary(run):
    """Though only what is text is a candidate."""
    model = heedful.load(run[0])
    ((filled,),) = model.fill(["ba <mask> gi"], top=10_000)
    assert len(filled.candidates) == model.tokenizer.size - FIRST - 1
    ids = model.tokenizer.encode_masked(["ba <mask> gi"])[0]
    with torch.no_grad():
        logits = model.model(torch.tensor([[BOS, *ids, EOS]]))[0, 1 + ids.index(MASK)]
    best = int(logits[FIRST:MASK].argmax()) + FIRST
    assert filled.candidates[0].token == model.tokenizer.decode_whole([best]).removeprefix(" ")
    chances = logits.softmax(0)
    assert filled.candidates[0].score == pytest.approx(float(chances[best]), rel=1e-4)
    assert sum(each.score for each in filled.candidates) == pytest.approx(float(chances[FIRST:MASK].sum()), rel=1e-4)
    assert sum(each.score for each in filled.candidates) < 1 - 1e-4


def test_evaluation_hides_the_same_words_each_time_and_counts_them(run):
    model = heedful.load(run[0])
    one, other = model.measure(TEXTS[:20]), model.measure(TEXTS[:20])
    assert one == other
    tokens = sum(map(len, model.tokenizer.encode_whole(TEXTS[:20])))
    assert one.tokens / tokens == pytest.approx(SHARE, abs=0.03)
    assert 0 <= one.accuracy <= 1 < one.perplexity
    assert model.measure(["".join(TEXTS)]).tokens > 50, "a text longer than the context"
    with pytest.raises(InputError, match="no text"):
        model.measure([""])


def test_what_cannot_be_filled_is_refused(run, tmp_path):
    model = heedful.load(run[0])
    with pytest.raises(InputError, match="no <mask> in 'ba de'"):
        model.fill(["ba <mask>", "ba de"])
    with pytest.raises(InputError, match="the model reads at most 48"):
        model.fill(["ba de " * 40 + "<mask>"])
    other = tmp_path / "other"
    save_run(other, model.model, model.tokenizer, model.tokenizer, {"task": "generate"})
    with pytest.raises(InputError, match="not for filling masks"):
        Filler.load(other)


def test_the_laws_hold(run):
    laws = list(check(run[0], TEXTS[:3]))
    assert sum("CTranslate2" not in law.name for law in laws) == 6
    assert all(law.holds for law in laws), laws


def test_a_training_goes_on_from_another_run(run, tmp_path):
    plan = recipe(start_from=str(run[0]), model={}, **{"train.steps": 1})
    events = list(train(plan, tmp_path / "more", corpus=CORPUS))
    assert (tmp_path / "more" / "tokenizer.json").read_bytes() == (run[0] / "tokenizer.json").read_bytes()
    (measured,) = (event for event in events if isinstance(event, Measured))
    assert measured.valid_loss < next(event for event in run[1] if isinstance(event, Measured)).valid_loss


def test_an_interrupted_run_ends_in_the_same_weights(tmp_path):
    goes_on_alike(recipe(**{"train.save_every": 4, "data.whole_words": True}), CORPUS, tmp_path, after=7)
