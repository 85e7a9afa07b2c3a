"""Texts as vectors: what is pooled, and that nothing beside a text changes its vector."""

import pytest
import torch

import heedful
from heedful.data.tokenizer import BOS, EOS, train_tokenizer
from heedful.errors import InputError
from heedful.models import Classifier, ClassifierConfig, Encoder, Seq2Seq, TokenClassifier, TokenClassifierConfig
from heedful.models.lm import LM
from heedful.models.presets import EncoderSize, LMSize, TransformerSize, encoder_config, lm_config, translator_config
from heedful.tasks.shared.embed import TextEncoder, nearest
from heedful.verbs.check import check
from loud import make_loud
from saved import save_run

TEXTS = ["ba", "ba de gi ko lu", "de gi", "lu lu lu lu"]
TOKENIZER = train_tokenizer(TEXTS, kind="chars", size=300)
SIZE: dict[str, int] = {"n_layers": 2, "d_model": 16, "n_heads": 2}
ROW = EncoderSize(**SIZE, context_length=24)
BODY = encoder_config(ROW, vocab_size=TOKENIZER.size, mlm_head=False)
TEXT = lm_config(LMSize(**SIZE, context_length=24), vocab_size=TOKENIZER.size)
PAIRS = translator_config(
    TransformerSize(d_model=16, n_heads=2, d_ff=32, encoder_layers=2, decoder_layers=1),
    source_vocab=TOKENIZER.size,
    target_vocab=TOKENIZER.size,
    joint=True,
)
MODELS = {
    "encode": lambda: Encoder(BODY),
    "fill": lambda: Encoder(encoder_config(ROW, vocab_size=TOKENIZER.size)),
    "generate": lambda: LM(TEXT),
    "classify": lambda: Classifier(ClassifierConfig(encoder=BODY, answers=2)),
    "tag": lambda: TokenClassifier(TokenClassifierConfig(encoder=BODY, answers=2)),
    "translate": lambda: Seq2Seq(PAIRS),
}


def loud(model):
    torch.manual_seed(0)
    return make_loud(model)


@pytest.mark.parametrize("task", sorted(MODELS))
def test_a_text_does_not_depend_on_its_neighbours(task):
    own = TextEncoder(loud(MODELS[task]()), TOKENIZER, {"task": task})
    for pool in ("mean", "first"):
        if task == "generate" and pool == "first":
            with pytest.raises(InputError, match="has read nothing else"):
                own.embed(TEXTS, pool=pool)
            continue
        together = own.embed(TEXTS, pool=pool)
        assert together.shape == (4, 16)
        assert float((together[0] - together[1]).abs().max()) > 0.01
        for text, vector in zip(TEXTS, together, strict=True):
            torch.testing.assert_close(own.embed([text], pool=pool)[0], vector, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_mean_and_the_first_of_all_that_is_read():
    model = loud(Encoder(BODY)).eval()
    own = TextEncoder(model, TOKENIZER, {"task": "encode"})
    hidden = model.hidden(torch.tensor([[BOS, *TOKENIZER.encode(["de gi"])[0], EOS]]))[0]
    torch.testing.assert_close(own.embed(["de gi"])[0], hidden.mean(0), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(own.embed(["de gi"], pool="first")[0], hidden[0], atol=1e-5, rtol=1e-5)


def test_what_is_too_long_and_what_is_nothing():
    own = TextEncoder(loud(Encoder(BODY)), TOKENIZER, {"task": "encode"})
    (row,), (beyond,) = own.encode(["ba " * 30])
    assert len(row.tokens) == 24
    assert beyond == len(TOKENIZER.encode(["ba " * 30])[0]) - 22
    with pytest.raises(InputError, match="an empty text"):
        own.embed([" "])
    with pytest.raises(InputError, match="there is no pool 'last'"):
        own.embed(TEXTS, pool="last")


@pytest.mark.parametrize("task", ["encode", "generate", "translate"])
def test_of_no_texts_there_are_no_vectors(task):
    own = TextEncoder(MODELS[task](), TOKENIZER, {"task": task})
    assert own.embed([]).shape == own.embed(TEXTS)[:0].shape == (0, 16)


def test_the_nearest():
    others = torch.tensor([[1.0, 0.0], [3.0, 3.0], [-1.0, 0.0]])
    found = nearest(torch.tensor([0.0, 2.0]), others, top=2)
    assert [index for index, _ in found] == [1, 0]
    assert [score for _, score in found] == pytest.approx([0.5**0.5, 0.0], abs=1e-6)


def test_a_run_of_an_encoder_alone(tmp_path):
    model = loud(Encoder(BODY))
    save_run(tmp_path / "run", model, TOKENIZER, TOKENIZER, {"task": "encode"})
    torch.testing.assert_close(
        heedful.load(tmp_path / "run").embed(TEXTS), TextEncoder(model, TOKENIZER, {}).embed(TEXTS)
    )
    laws = list(check(tmp_path / "run"))
    assert sum("CTranslate2" not in law.name for law in laws) == 6
    assert [law for law in laws if not law.holds] == []
