"""Which words belong to which: what the model looked at, whatever shares the batch, of the words as they stand."""

import json
from pathlib import Path

import pytest
import torch

from heedful.data.text.corpus import Corpus
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError, TextError
from heedful.models import make_model
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.run.recipe import row_of
from heedful.tasks.recipes import build
from heedful.tasks.translate.align import AlignOptions, align
from heedful.tasks.translate.alignment import align_pairs, alignments, parts, words
from heedful.tasks.translate.cli_pairs import align as heed_align
from heedful.tasks.translate.use import Translator
from made import DECODER, RECURRENT, TRANSFORMER

KINDS = {"transformer": TRANSFORMER, "decoder": DECODER, "rnn": RECURRENT}
PAIRS = [("ba de gi", "DE  BA."), ("ko", "BA BA BA"), ("lu ma ne pi ro su ba", "LU"), ("", "KO"), ("ko", "")]


@pytest.fixture(scope="module", params=sorted(KINDS))
def model(corpus: Corpus, request: pytest.FixtureRequest) -> Translator:
    tokenizer = train_tokenizer([*corpus.train.source, *corpus.train.target], kind="bpe", size=300)
    torch.manual_seed(4)
    row = row_of(TRANSLATORS, build(KINDS[request.param], where="test"))
    net = make_model(translator_config(row, source_vocab=tokenizer.size, target_vocab=tokenizer.size, joint=True))
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return Translator(net, tokenizer, tokenizer, {"task": "translate", "source": "low", "target": "high"})


def test_a_batch_is_one_by_one(model: Translator) -> None:
    together = [*alignments(model, PAIRS, cut=parts)]
    for pair, own in zip(PAIRS, together, strict=True):
        (alone,) = alignments(model, [pair], cut=parts)
        assert (alone.links, alone.source, alone.target) == (own.links, own.source, own.target)
        assert torch.allclose(alone.shares, own.shares, atol=1e-5)


def test_words_are_where_they_are(model: Translator) -> None:
    for cut in (words, parts):
        for (source, _), found in zip(PAIRS, alignments(model, PAIRS, cut=cut), strict=True):
            assert [source[begin:end] for begin, end in found.source] == [source[i:j] for i, j in cut(source)]
            assert found.shares.shape == (len(found.target), len(found.source))
            assert [j for _, j in found.links] == [*range(len(found.target) if source else 0)]
            assert all(0 <= i < len(found.source) for i, _ in found.links)
            assert (found.shares.sum(1) <= 1 + 1e-5).all()
    assert [("DE  BA.")[i:j] for i, j in words("DE  BA.")] == ["DE", "BA."]
    assert [("DE  BA.")[i:j] for i, j in parts("DE  BA.")] == ["DE", "BA", "."]


def test_it_is_what_a_translation_tells_of_each_word(model: Translator) -> None:
    for source, target in PAIRS[:3]:
        told = align(model, source, AlignOptions(target=target.replace("  ", " ")))
        (found,) = alignments(model, [(source, target.replace("  ", " "))])
        assert told["source"] == [source[i:j] for i, j in found.source]
        expected = torch.tensor([word["source"] for word in told["words"]])
        assert torch.allclose(found.shares, expected, atol=1e-5)


def test_the_words_that_were_looked_at_are_linked(corpus: Corpus, translators: tuple[Path, Path]) -> None:
    model = Translator.load(translators[0])
    pair = corpus.train.source[0], corpus.train.target[0]
    (found,), (record,) = alignments(model, [pair]), align_pairs(model, [pair])
    assert record["alignment"] == [*found.links]
    assert all(found.shares[j, i] == found.shares[j].max() for i, j in found.links)
    with pytest.raises(TextError, match="a pair with an empty side"):
        [*align_pairs(model, [("ko", " ")])]
    model.engine = object()  # type: ignore[assignment]
    with pytest.raises(InputError, match="another library does not tell"):
        [*alignments(model, [pair])]


def test_heed_align_writes_what_word_aligners_write(
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
