"""Using a translator: what its settings do, and that a batch is its sentences one by one."""

import copy
import sys
from dataclasses import replace

import pytest
import torch

from heedful.apply import inference
from heedful.apply.inference import for_inference
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import train_tokenizer
from heedful.decode.processes import Processes
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import DecoderOnlySize, TransformerSize, translator_config
from heedful.tasks.shared.sections import PackedTrain
from heedful.tasks.translate import searching as translate
from heedful.tasks.translate.inside.words import AlignOptions, align
from heedful.tasks.translate.options import TranslateOptions
from heedful.tasks.translate.records import translate_texts
from heedful.tasks.translate.segment import segments_of
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.training.epochs import TranslationTask
from heedful.tasks.translate.training.losses import cross_entropy
from heedful.tasks.translate.use import Translator
from loud import make_loud
from made import made_recipe

ROWS = {
    "transformer": TransformerSize(
        d_model=32, n_heads=2, d_ff=64, encoder_layers=1, decoder_layers=1, order="pre", dropout=0.0
    ),
    "decoder": DecoderOnlySize(d_model=32, n_heads=2, d_ff=64, n_layers=2, order="pre", dropout=0.0),
    "decoder, prefix": DecoderOnlySize(
        d_model=32, n_heads=2, d_ff=64, n_layers=2, order="pre", dropout=0.0, input_loss=0.0, prefix=True
    ),
}
TEXTS = ["ba de gi", "ko", "", "lu ma ne pi ro su ba", "de de de"]


@pytest.fixture(scope="module", params=sorted(ROWS))
def model(corpus, request):
    tokenizer = train_tokenizer([*corpus.train.source, *corpus.train.target], kind="bpe", size=300)
    torch.manual_seed(3)
    net = make_model(
        translator_config(ROWS[request.param], source_vocab=tokenizer.size, target_vocab=tokenizer.size, joint=True)
    )
    make_loud(net, std=0.3)
    about = {"task": "translate", "source": "low", "target": "high", "decode": {"beam": 3, "length_penalty": 1.0}}
    return Translator(net, tokenizer, tokenizer, TranslatorSpec.read(about))


@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 4}, {"samples": 2, "seed": 5}])
def test_a_batch_is_its_sentences_one_by_one(model, settings):
    together = model.search(TEXTS, **settings)
    if "samples" in settings:  # a sentence's stream is keyed by its number, so the order must stay
        assert together == model.search(TEXTS, **settings)
        return
    for one, text in zip(together, TEXTS, strict=True):
        alone = model.search([text], **settings)[0]
        assert alone.text == one.text
        assert alone.score == pytest.approx(one.score, rel=1e-4)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")
@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 4}, {"samples": 2, "seed": 5}])
def test_processes_that_share_sentences_find_what_one_finds(model, settings, monkeypatch):
    monkeypatch.setattr(translate, "WORTH", 16)
    texts = [f"{text} {word}" for text in TEXTS for word in ("ba", "de", "gi", "ko")]
    expected, alone = model.search(texts, **settings), model.translate(["ko"])
    with model.in_processes(2) as several:
        shared, searched = several.processes, []
        monkeypatch.setattr(shared, "map", lambda batches: searched.extend(batches) or Processes.map(shared, batches))
        made = several.search(texts, **settings)
        assert len(searched) == 2
        assert several.translate(["ko"]) == alone
        assert len(searched) == 2  # one batch is searched by this process
    assert model.processes is None
    assert sorted(number for batch in searched for number in batch.numbers) == [
        number for number, text in enumerate(texts) if text
    ]
    assert [one.text for one in made] == [one.text for one in expected]
    assert [one.score for one in made] == pytest.approx([one.score for one in expected], rel=1e-4)


@pytest.mark.parametrize(("weights", "vnni"), [("int8", False), ("int8", True), ("int4", True)])
def test_weights_of_fewer_bits(model, weights, vnni, monkeypatch):
    """A batch of them is its sentences one by one too, and processes share it."""
    monkeypatch.setattr(inference, "VNNI", vnni)
    monkeypatch.setattr(translate, "WORTH", 1)
    small = Translator(for_inference(copy.deepcopy(model.model), weights), model.source, model.target, model.spec)
    together = small.search(TEXTS, beam=1)
    assert [small.search([text], beam=1)[0].text for text in TEXTS] == [one.text for one in together]
    with small.in_processes(2) as several:
        assert [one.text for one in several.search(TEXTS, beam=1)] == [one.text for one in together]


def test_nothing_is_translated_by_nothing(model):
    assert model.translate([""]) == [""]
    assert model.translate([]) == []


def test_blanks_around_a_text_stay_and_change_nothing_else(model):
    texts = ["ba de", " ba de", "\tba de \u00a0", "ba de\n"]
    said = [made["text"] for made in translate_texts(model, texts, TranslateOptions())]
    assert said == [said[0], f" {said[0]}", f"\t{said[0]} \u00a0", f"{said[0]}\n"]
    looked = [align(model, text, AlignOptions()) for text in texts]
    assert [one["text"] for one in looked] == said
    assert [one["words"] for one in looked] == [looked[0]["words"]] * 4


@pytest.mark.parametrize("sign", [*" \u00a0\u1680\u2000\u2009\u202f\u205f\u3000\t\v\f\x1c\x85\u2028\u2029"])
def test_any_white_space_between_words_is_read_as_a_blank(model, sign):
    plain = segments_of(model, "ba de gi")
    for text in (f"ba{sign}de gi", f"{sign}ba de{sign}gi{sign}"):
        assert "".join(one.text for one in segments_of(model, text, lines=False)) == plain[0].text


@pytest.mark.parametrize(
    "sign", [*"\u00ad\u061c\u200b\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufeff\x00\x02\x07\x1b\x7f\x80"]
)
def test_what_cannot_be_seen_is_not_read(model, sign):
    """A text that a page or another program gave has byte order marks, marks of direction, spaces without width."""
    text = f"{sign}ba {sign}de g{sign}i{sign}"
    assert [one.text for one in segments_of(model, text)] == ["ba de gi"]
    assert model.search(text).text == model.search("ba de gi").text
    assert model.translate(sign) == sign, "nothing but such a sign stays"


@pytest.mark.parametrize("sign", ["\u00a0", "\u3000", "\u200b", "\u2028"])
def test_a_sign_that_many_training_sources_have_is_read_as_it_is(model, corpus, sign):
    """As white space before French punctuation, and between words of Khmer; but no end of a line."""
    for many in (False, True):
        sources = [f"ba {n}" for n in range(99)] + [f"ba{sign}de" if many else "ba de"]
        learnt = replace(corpus, train=Pairs(sources, sources, "made"))
        spec = TranslateJob(made_recipe(), learnt).translator_spec()
        own = model.changed(spec=replace(spec, source_tokens=model.spec.source_tokens))
        (segment,) = segments_of(own, f"gi{sign}ko", lines=False)
        assert (sign in segment.text) is (many and sign != "\u2028")


def test_n_best_are_sorted_and_distinct(model):
    found = model.search(["ba de"], beam=4, n_best=4)[0]
    scores = [score for _, score in found.hypotheses]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert (found.text, found.score) == found.hypotheses[0]
    more = model.search(["ba de"], beam=2, n_best=6)
    assert len(more[0].hypotheses) == 6
    assert more == model.search(["ba de"], beam=6, n_best=6)


@pytest.mark.parametrize("settings", [{"groups": 0}, {"groups": -3}, {"groups": 2, "samples": 2}])
def test_groups_that_there_cannot_be_are_refused(model, settings):
    with pytest.raises(InputError, match=r"groups is (0|-3)|in groups by heedful alone, and neither"):
        model.search(["ba de"], beam=4, **settings)


def test_limits_and_prefix(model):
    ids = model.source.encode(["ba de gi"])
    short = model.hypotheses(ids, model.decoding(beam=2, longest=3))[0][0]
    assert len(short.tokens) <= 3
    long = model.hypotheses(ids, model.decoding(beam=2, shortest=12))[0][0]
    assert len(long.tokens) >= 12
    begun = model.translate(["ba de gi"], prefix=["KO LU"], beam=2)
    assert begun[0].startswith("KO LU")


def test_scores_are_sacrebleus(model):
    scores, made = model.measure(Pairs(["ba de", "ko"], ["DE BA", "KO"], "x"), beam=1, bootstrap=20)
    assert scores.signature.startswith("nrefs:1|bs:20|seed:12345|case:mixed")
    assert "chrF" not in scores.signature
    assert 0 <= scores.chrf <= 100
    assert scores.bleu_margin is not None
    assert len(made) == 2


def test_packed_rows_have_the_loss_of_their_sentences(model):
    sides = (["ba de gi", "ko", "lu ma ne pi", "ro su"], ["GI DE BA", "KO", "PI NE MA LU", "SU RO"])
    pairs = list(zip(*(model.source.encode(side) for side in sides), strict=True))
    packed = TranslationTask(pairs, PackedTrain(tokens=64, row=64), packs=True).batches(0, None)
    single = TranslationTask(pairs, PackedTrain(tokens=64, row=8), packs=False).batches(0, None)
    assert packed[0].target_segments.max() > 1
    sums = []
    for batches in (packed, single):
        losses = [cross_entropy(model.model, batch, smoothing=0.1) for batch in batches]
        sums.append((sum(float(loss.total.detach()) for loss in losses), sum(loss.count for loss in losses)))
    assert sums[0][1] == sums[1][1]
    assert sums[0][0] == pytest.approx(sums[1][0], rel=1e-5)
