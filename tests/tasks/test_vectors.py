"""Vectors of words: each loss by its definition, files that other programs read, and what is learnt."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch

from cases import CASES, recipe_of
from commands import heed
from heedful.data.text.documents import Documents
from heedful.errors import InputError
from heedful.models.vectors import Vectors, VectorsConfig
from heedful.run.events import Checkpointed, Trained
from heedful.run.recipe import override
from heedful.tasks.vectors.batches import BLOCK, PairBatches, WindowBatch, WindowBatches
from heedful.tasks.vectors.formats import as_binary, as_text, read_vectors
from heedful.tasks.vectors.judged import judged, read_pairs, solved
from heedful.tasks.vectors.losses import cbow, glove, skipgram
from heedful.tasks.vectors.use import WordVectors
from heedful.tasks.vectors.words import GAP, Splitting, count_words, kept_shares, near_pairs, numbered, some_of_stream
from heedful.verbs.train import train
from loud import make_loud

PETS, CARS = ["cat", "dog", "bird", "fish"], ["car", "bus", "tram", "ship"]
SPLIT = Splitting("letters", lower=True)


def test_only_a_line_feed_parts_lines() -> None:
    assert [*SPLIT.lines(["Ba\u2028de\x85gi\r\nko\n\nlu"])] == [["ba", "de", "gi"], ["ko"], ["lu"]]


def model(method: str, size: int = 9, width: int = 4) -> Vectors:
    made = Vectors(VectorsConfig(vocab_size=size, d_model=width, method=method))  # type: ignore[arg-type]  # one of them
    return make_loud(made)


def batch(rows: int = 2, window: int = 3, size: int = 9) -> WindowBatch:
    words = torch.randint(0, size, (rows, BLOCK + 2 * window))
    words[0, 5], words[1, -window - 1], words[:, -1] = GAP, GAP, GAP
    return WindowBatch(words, torch.randint(1, window + 1, (rows, BLOCK)), torch.randint(0, size, (rows, 7)))


def reached(given: WindowBatch) -> list[tuple[int, int, list[int]]]:
    """Row, word, and the words near it, of each word that is one."""
    window = (given.words.shape[1] - BLOCK) // 2
    found = []
    for row in range(len(given.words)):
        for place in range(BLOCK):
            at, reach = place + window, int(given.reach[row, place])
            if int(given.words[row, at]) == GAP:
                continue
            others = [*range(at - reach, at), *range(at + 1, at + reach + 1)]
            near = [int(given.words[row, i]) for i in others if int(given.words[row, i]) != GAP]
            found.append((row, int(given.words[row, at]), near))
    return found


def said(score: torch.Tensor) -> float:
    return math.log1p(math.exp(-float(score)))


def test_skipgram_is_its_definition() -> None:
    made, given = model("skipgram"), batch()
    V, U = made.words.weight.detach(), made.contexts.weight.detach()
    total = words = 0.0
    for row, word, near in reached(given):
        words += bool(near)
        for other in near:
            total += said(V[word] @ U[other])
            total += 5 / 7 * sum(said(-V[word] @ U[drawn]) for drawn in given.drawn[row])
    loss = skipgram(made, given, 5)
    assert loss.count == words
    assert float(loss.total.detach()) == pytest.approx(total, rel=1e-5)


def test_cbow_is_its_definition() -> None:
    made, given = model("cbow"), batch()
    V, U = made.words.weight.detach(), made.contexts.weight.detach()
    total = words = 0.0
    for row, word, near in reached(given):
        if near:
            mean = V[near].mean(0)
            words += 1
            total += said(mean @ U[word]) + 5 / 7 * sum(said(-mean @ U[drawn]) for drawn in given.drawn[row])
    loss = cbow(made, given, 5)
    assert loss.count == words
    assert float(loss.total.detach()) == pytest.approx(total, rel=1e-5)


def test_glove_is_its_definition() -> None:
    made, pairs = model("glove"), near_pairs(torch.tensor([0, 1, 2, 0, GAP, GAP, 3, 1]), 9, 2)
    (given,) = PairBatches(pairs, rows=100, key=(1, 0))[:]
    assert made.word_biases is not None
    assert made.context_biases is not None
    total = 0.0
    for word, other, count in zip(*(part.tolist() for part in given), strict=True):
        product = made.words.weight[word] @ made.contexts.weight[other]
        score = float((product + made.word_biases[word] + made.context_biases[other]).detach())
        total += min(1, count / 2) ** 0.75 * (score - math.log(count)) ** 2
    assert float(glove(made, given, 2.0).total.detach()) == pytest.approx(total, rel=1e-5)


def test_pairs_are_counted_by_distance_and_not_over_gaps() -> None:
    pairs = near_pairs(torch.tensor([0, 1, 0, 2, GAP, GAP, 2, 0]), 3, 2)
    found = {(w, c): n for w, c, n in zip(*(part.tolist() for part in vars(pairs).values()), strict=True)}
    assert found == {(0, 1): 2, (1, 0): 2, (0, 0): 1, (1, 2): 0.5, (2, 1): 0.5, (0, 2): 2, (2, 0): 2}


def test_words_are_counted_and_left_out_as_word2vec_does() -> None:
    counts = count_words(["The cat's dog.\nthe DOG the", "the cat"], SPLIT, least=2)
    assert counts == {"the": 4, "dog": 2}
    assert numbered(["the x dog\n\ndog"], SPLIT, {"the": 0, "dog": 1}, gap=2).tolist() == [0, 1, GAP, GAP, 1, GAP, GAP]
    kept = kept_shares(torch.tensor([90, 10]), 0.1)
    assert kept.tolist() == pytest.approx([math.sqrt(0.1 / 0.9) + 0.1 / 0.9, 1.0])
    with pytest.raises(InputError, match="0 words occur 5 times"):
        count_words(["a b"], SPLIT, least=5)


def test_batches_hold_every_word_once_and_are_the_same_again() -> None:
    stream = torch.randint(0, 9, (300,), dtype=torch.int32)
    drawn = torch.full((9,), 1 / 9, dtype=torch.float64).cumsum(0)

    def made(epoch: int, share: float = 1.0) -> WindowBatches:
        return WindowBatches(stream, torch.full((9,), share), drawn, window=3, rows=2, key=(1, epoch))

    middles = torch.cat([each.words[:, 3:-3].flatten() for each in made(0)[:]])
    assert middles[middles != GAP].bincount().tolist() == stream.bincount().tolist()
    for one, other in zip(made(0)[1], made(0)[1], strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(made(0)[0].words, made(1)[0].words)
    assert int((torch.cat([each.words[:, 3:-3] for each in made(0, 0.5)[:]]) != GAP).sum()) < 200


def test_files_are_word2vecs(tmp_path: Path) -> None:
    words, rows = ["é", "<unk>", "x"], torch.randn(3, 5).numpy()
    text, binary = as_text(words, rows), as_binary(words, rows)
    assert text.startswith("3 5\né ".encode())
    assert binary.startswith(b"3 5\n" + "é ".encode() + rows[0].astype("<f4").tobytes() + b"\n<unk> ")
    for name, data in (("a.txt", text), ("a.bin", binary), ("glove.txt", text.partition(b"\n")[2])):
        (tmp_path / name).write_bytes(data)
        again, read = read_vectors(tmp_path / name)
        assert again == words
        assert numpy.array_equal(read, rows)
    assert WordVectors.load(tmp_path / "a.bin").near("x", top=1)[0].word in words


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.txt", b"1 2\nx 1.0 y\n", "a.txt:2: expected a word and 2 numbers"),
        ("a.txt", b"x 1 2\ny 1\n", "a.txt:2: expected a word and 2 numbers"),
        ("a.txt", b"x nan 2\n", "not finite"),
        ("a.txt", b"", "no vectors"),
        ("a.bin", b"hello", "does not begin with a line of sizes"),
        ("a.bin", b"9 9\nx ", "do not fit"),
        ("a.bin", b"2 1\nx \0\0\0\0\nyyyyyy", "ends at word 2 of 2"),
    ],
)
def test_broken_files_are_one_line(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=said):
        read_vectors(tmp_path / name)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Lines about pets, and lines about vehicles, of words in any order."""
    draw = numpy.random.default_rng(1)
    return ["\n".join(" ".join(draw.choice(kind, 8)) for kind in (PETS, CARS) * 150)]


@pytest.mark.parametrize("method", ["skipgram", "cbow", "glove"])
def test_what_stands_together_is_near(method: str, texts: list[str], tmp_path: Path) -> None:
    case = CASES["vectors"]
    plan = {"epochs": 6, "tokens": 512, "negatives": 5, "eval_every": 1000}
    recipe = override(recipe_of(case, {"d_model": 8, "method": method}, plan), ["data.subsample=0"])
    events = list(train(recipe, tmp_path / "run", corpus=Documents(texts, texts, {"test": texts}, "made")))
    assert {each.counted for each in events if isinstance(each, Trained)} == {"pairs" if method == "glove" else "words"}
    vectors = WordVectors.load(tmp_path / "run")
    for kind in (PETS, CARS):
        for word in kind:
            assert {near.word for near in vectors.near(word, top=3)} == {*kind} - {word}
    again = WordVectors.load(tmp_path / "run" / "vectors.bin")
    assert torch.equal(vectors.vectors, again.vectors)
    assert vectors.words == again.words


def test_a_training_continues_to_the_bit(tmp_path: Path) -> None:
    case = CASES["vectors"]
    plan = {"epochs": 4, "tokens": 64, "eval_every": 2, "save_every": 2}
    recipe = recipe_of(case, case.model, plan)
    list(train(recipe, tmp_path / "whole", corpus=case.corpus))
    events = train(recipe, tmp_path / "two", corpus=case.corpus)
    next(event for event in events if isinstance(event, Checkpointed))
    events.close()
    list(train(recipe, tmp_path / "two", corpus=case.corpus))
    whole, two = (WordVectors.load(tmp_path / name).vectors for name in ("whole", "two"))
    assert torch.equal(whole, two)


@pytest.mark.parametrize("method", ["skipgram", "glove"])
def test_lines_of_one_word_teach_nothing_and_may_be_what_is_measured(method: str, tmp_path: Path) -> None:
    case = CASES["vectors"]
    recipe = recipe_of(case, case.model | {"method": method}, {"epochs": 1})
    apart, together = ["ba\nde\n"] * 20, ["ba de\n"] * 20
    with pytest.raises(InputError, match="no word stands near another"):
        list(train(recipe, tmp_path / "run", corpus=Documents(apart, together, {}, "made")))
    assert not (tmp_path / "run").exists()
    list(train(recipe, tmp_path / "run", corpus=Documents(together, apart, {}, "made")))
    assert json.loads((tmp_path / "run" / "scores.json").read_text())["scores"] == {"valid": {"loss": 0.0}}


def of(words: dict[str, list[float]], lower: bool = True) -> WordVectors:
    made = Vectors(VectorsConfig(vocab_size=len(words), d_model=2))
    with torch.no_grad():
        made.words.weight.copy_(torch.tensor([*words.values()]))
    return WordVectors(made, {"task": "vectors", "words": tuple(words), "lower": lower})


SQUARE = {"man": [1.0, 0.0], "king": [1.0, 1.0], "woman": [0.9, -0.1], "queen": [0.95, 1.0], "far": [-1.0, 0.2]}


def test_neighbours_and_analogies() -> None:
    vectors = of(SQUARE)
    assert [near.word for near in vectors.near("king", top=2)] == ["queen", "man"]
    assert vectors.analogy("man", "king", "woman", top=1)[0].word == "queen"
    assert vectors.similarity("MAN", "man") == pytest.approx(1)
    with pytest.raises(InputError, match="no vector for 'kings'") as raised:
        vectors.near("kings")
    assert raised.value.fix == "did you mean king?"


def test_words_are_of_either_form(tmp_path: Path) -> None:
    words, apart = ["çé", "ñò"], ["c\u0327e\u0301", "n\u0303o\u0300"]
    split = Splitting("letters", lower=True)
    assert [*count_words([" ".join(apart)], split, least=1)] == words
    vectors = of({"çé": [1.0, 0.0], "ñò": [0.0, 1.0]})
    assert [vectors.number(word) for word in apart] == [0, 1]
    assert torch.equal(vectors.embed(apart[0]), vectors.embed(words[0]))
    older = of({apart[0]: [1.0, 0.0], words[1]: [0.0, 1.0]})
    assert [older.row_of(word) for word in (*apart, *words)] == [0, None, None, 1]


def test_what_is_measured_is_spread_over_a_long_text() -> None:
    stream = torch.arange(20_000, dtype=torch.int32)
    assert some_of_stream(stream, 20_000, gap=3) is stream
    chosen = some_of_stream(stream, 4_000, gap=3).view(2, -1)
    assert chosen[:, 0].tolist() == [0, 10_000]
    assert chosen[:, 1999].tolist() == [1_999, 11_999]
    assert chosen[:, 2000:].tolist() == [[GAP] * 3] * 2


def test_judged_by_pairs_and_analogies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a word that is unknown, nobody looks for those that are written like it: tables may have thousands."""
    monkeypatch.delattr("heedful.tasks.vectors.use.get_close_matches")
    vectors, file = of(SQUARE), tmp_path / "pairs.txt"
    file.write_text("word1\tword2\tPOS\tSimLex999\nking\tqueen\tN\t9\nMan\tking\tN\t5\nman\tfar\tN\t1\nx\ty\tN\t2\n")
    assert read_pairs(file)[0] == ("king", "queen", 9.0)
    assert judged(vectors, read_pairs(file)) == (4, 3, pytest.approx(1.0))
    file.write_text("king,queen,1\nman,king,5\nman,far,9\n")
    assert judged(vectors, read_pairs(file)).spearman == pytest.approx(-1.0)
    file.write_text("word 1, word 2, mean\nking, queen, 9\nman, king, 5\n")
    assert read_pairs(file) == [("king", "queen", 9.0), ("man", "king", 5.0)]
    lines = [": family", "man king woman queen", "man king woman far", ": none", "a b c d"]
    assert solved(vectors, lines, "x") == [("family", 2, 2, 0.5), ("none", 1, 0, 0.0), ("all", 3, 2, 0.5)]
    assert solved(vectors, [*lines, ": family", "man king woman queen"], "x")[0].known == 3
    for text, said in (("a b\n", "two words and a score"), ("a\tb\t1\n", "fewer than two pairs")):
        file.write_text(text)
        with pytest.raises(InputError, match=said):
            read_pairs(file)


def test_the_commands(run_of: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of("vectors")
    (tmp_path / "pairs.txt").write_text("ba de 3\nba gi 4\nde ko 1\n")

    def records() -> list[dict[str, object]]:
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert heed("vectors", run, "near", "ba", "gi", "--top", 2, "--json") == 0
    assert [(one["word"], len(one["near"])) for one in records()] == [("ba", 2), ("gi", 2)]  # type: ignore[arg-type]
    assert heed("vectors", run, "analogy", "ba", "de", "gi") == 0
    assert all("\t" in line for line in capsys.readouterr().out.splitlines())
    assert heed("vectors", run, "eval", tmp_path / "pairs.txt", "--json") == 0
    assert records()[0]["known"] == 3
    assert heed("vectors", run / "vectors.txt", "plane", "--out", tmp_path / "p.svg") == 0
    assert b"<svg" in (tmp_path / "p.svg").read_bytes()
    assert heed("info", run, "--json") == 0
    assert records()[0]["method"] == "skipgram"
    assert heed("check", run) == 0
    assert "written as .bin then read" in capsys.readouterr().out
    plane = ("plane", "--out", "x.svg", "--top", 3)
    for words, said in (
        (("near",), "needs a word"),
        (("plane",), ".svg or .png"),
        (("near", "bah"), "did you mean"),
        (("near", "ba", "--by", "tsne"), "--by is of a plane, and not of near"),
        (plane, "--top is of near and analogy, and not of plane"),
    ):
        assert heed("vectors", run, *words) == 2
        assert said in capsys.readouterr().err
