"""Which words belong to which: what the model looked at, whatever shares the batch, of the words as they stand."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from heedful.data.documents.tags import Alignment
from heedful.data.text.corpus import Corpus
from heedful.errors import InputError, TextError
from heedful.tasks.translate.cli import translate
from heedful.tasks.translate.inside.look import watched
from heedful.tasks.translate.pairs.attended import attended
from heedful.tasks.translate.pairs.cli import align as heed_align
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.pairs.pharaoh import align_pairs, linked, links_of
from heedful.tasks.translate.use import Translator
from made import DECODER, RECURRENT, TRANSFORMER, random_translator

KINDS = {"transformer": TRANSFORMER, "decoder": DECODER, "rnn": RECURRENT}
PAIRS = [("ba de gi", "DE  BA."), ("ko", "BA BA BA"), ("lu ma ne pi ro su ba", "LU"), ("", "KO"), ("ko", "")]


@pytest.fixture(scope="module", params=sorted(KINDS))
def model(corpus: Corpus, request: pytest.FixtureRequest) -> Translator:
    return random_translator(corpus, KINDS[request.param])


def test_a_batch_is_one_by_one(model: Translator) -> None:
    ids = [*zip(model.source.encode([s for s, _ in PAIRS]), model.target.encode([t for _, t in PAIRS]), strict=True)]
    for pair, together in zip(ids, attended(model, ids), strict=True):
        (alone,) = attended(model, [pair])
        assert alone.shape == together.shape == (len(pair[1]), len(pair[0]))
        assert torch.allclose(alone, together, atol=1e-5)
    for pair, found in zip(PAIRS, aligned(model, PAIRS), strict=True):
        (one,) = aligned(model, [pair])
        assert (one.source, one.target) == (found.source, found.target)
        for alone, together in zip(one.shares, found.shares, strict=True):
            assert {**alone} == pytest.approx({**together}, abs=1e-4)


def test_it_is_what_a_look_records(model: Translator) -> None:
    source, target = model.source.encode([PAIRS[0][0]])[0], model.target.encode([PAIRS[0][1]])[0]
    read, _, weights = watched(model, source, target)
    cross = [own for name, own in weights.items() if name.endswith("cross_attention") or name == "attention"]
    layers = cross or [own[..., : len(read)] for own in weights.values()]  # of a decoder alone
    expected = torch.stack([own.mean(0) for own in layers]).mean(0)[: len(target), : len(source)]
    (found,) = attended(model, [(source, target)])
    assert torch.allclose(found, expected, atol=1e-5)


def test_every_word_of_a_translation_is_linked_to_one(model: Translator) -> None:
    for (source, target), links in zip(PAIRS, linked(model, PAIRS), strict=True):
        assert [j for _, j in links] == [*range(len(target.split()) if source else 0)]
        assert all(0 <= i < len(source.split()) for i, _ in links)


def test_of_two_words_that_look_alike_the_one_beside_linked_words_is_linked(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = "de gi ko lu ko ba ma", "DE GI KO LU"
    spans = [[(m.start(), m.end()) for m in re.finditer(r"\w+", text)] for text in (source, target)]
    looked = torch.full((4, 7), 0.02)
    looked[0, 0] = looked[1, 1] = looked[3, 3] = 0.9
    looked[2, 2], looked[2, 4] = 0.45, 0.5  # KO: the second ko a little more, which is at the same share of its length
    monkeypatch.setattr(
        "heedful.tasks.translate.pairs.links.attended_words", lambda translator, pairs: [(*spans, looked)]
    )
    monkeypatch.setattr("heedful.tasks.translate.pairs.links.missed", lambda *given: [looked.double()])
    (found,) = aligned(random_translator(corpus, TRANSFORMER), [(source, target)])
    assert [max(row, key=row.__getitem__) for row in found.shares] == [0, 1, 2, 3]


def test_finer_words_count_together() -> None:
    source, target = "it's (new)", "neu!"
    fine = Alignment(
        [(0, 2), (2, 3), (3, 4), (5, 6), (6, 9), (9, 10)], [(0, 3), (3, 4)], [{0: 0.4, 3: 0.3, 4: 0.2}, {}]
    )
    assert links_of(source, target, fine) == [(1, 0)]


def test_what_cannot_be_aligned_is_refused(translators: tuple[Path, Path]) -> None:
    model = Translator.load(translators[0])
    with pytest.raises(TextError, match="a pair with an empty side"):
        [*align_pairs(model, [("ko", " ")])]
    other = model.changed(engine=SimpleNamespace(own=None))  # type: ignore[typeddict-item]
    with pytest.raises(InputError, match="another library does not tell"):
        [*align_pairs(other, [("ko", "ko")])]


def test_they_are_written_as_word_aligners_do(
    translators: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_text("ab ba\nba\n")
    (tmp_path / "b").write_text("BA\nAB BA AB\n")
    heed_align(translators[0], source=str(tmp_path / "a"), target=str(tmp_path / "b"))
    lines = capsys.readouterr().out.splitlines()
    assert [len(line.split()) for line in lines] == [1, 3]
    assert lines[1] == "0-0 0-1 0-2"
    heed_align(translators[0], ["ab ba\tBA", "ba\tAB BA AB"], as_json=True)
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [" ".join(f"{i}-{j}" for i, j in one["alignment"]) for one in records] == lines
    translate(translators[0], ["ab ba"], aligned=True, longest=5)
    text, links = capsys.readouterr().out.rstrip("\n").split("\t")
    assert len(links.split()) == len(text.split())
