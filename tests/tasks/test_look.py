"""Looking inside a translation: what each map's rows and columns are."""

import html

import pytest
import torch

from heedful.data.tokenizer import BOS, EOS, train_tokenizer
from heedful.errors import InputError
from heedful.look.draw import drawable
from heedful.look.labels import token_label
from heedful.look.page import attention_view
from heedful.models import make_model
from heedful.models.presets import DecoderOnlySize, TransformerSize, translator_config
from heedful.tasks.shared.look import draw_text, font_note
from heedful.tasks.shared.pieces import readable_pieces
from heedful.tasks.shared.steps import StepsOptions, steps_of
from heedful.tasks.translate.inside.look import look_at_translation
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.tasks.translate.use import Translator

SIZES = {"d_model": 32, "n_heads": 2, "d_ff": 64, "order": "pre"}
TEXT, TARGET = "ba de gi", "GI DE BA KO LU MA"


def translating(row, corpus):
    tokenizer = train_tokenizer([*corpus.train.source, *corpus.train.target], kind="bpe", size=300)
    net = make_model(translator_config(row, source_vocab=tokenizer.size, target_vocab=tokenizer.size, joint=True))
    about = {"task": "translate", "source": "low", "target": "high", "decode": {"beam": 2, "length_penalty": 1.0}}
    return Translator(net, tokenizer, tokenizer, TranslatorSpec.read(about))


@pytest.fixture(scope="module")
def alone(corpus):
    return translating(DecoderOnlySize(n_layers=3, **SIZES), corpus)


def test_a_decoder_alone_looks_at_the_source_and_at_what_it_said(alone):
    """A row a target token, a column a token of either: what is below the row in the target is not seen."""
    looked = look_at_translation(alone, TEXT, target=TARGET)
    names = [f"lm.stack.blocks.{i}.self_attention" for i in range(3)]
    S, T = len(looked.source), len(looked.said)
    assert list(looked.weights) == names
    assert looked.said[-1] == alone.target.pieces([EOS])[0]
    for weights in looked.weights.values():
        assert weights.shape == (2, T, S + T)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, T))
        later = torch.ones(T, T).triu(1).bool()
        assert (weights[:, :, S:][:, later] == 0).all()
        assert (weights[:, :, S:][:, ~later] > 0).all()
    layers = attention_view(looked.source, looked.read, looked.weights, produced=looked.said)["layers"]
    assert {(layer["kind"], layer["rows"], layer["columns"], layer["causal"]) for layer in layers} == {
        ("self", "produced", "both", False)
    }
    for kind in ("png", "svg", "html"):
        assert len(draw_text(looked, kind)) > 2000
    svg = draw_text(looked, "svg", head=1).decode()
    assert all(f">{html.escape(piece)}<" in svg for piece in (*looked.source, *looked.read))


def test_layers_are_chosen_by_name(alone):
    assert list(look_at_translation(alone, TEXT, layers="*.2.self_attention").weights) == [
        "lm.stack.blocks.2.self_attention"
    ]
    with pytest.raises(InputError, match="no attention layer matches 'decoder"):
        look_at_translation(alone, TEXT, layers="decoder.*")


def test_without_a_choice_a_picture_is_of_the_cross_attention(corpus):
    looked = look_at_translation(
        translating(TransformerSize(encoder_layers=1, decoder_layers=2, **SIZES), corpus), "ba " * 9, target=TARGET
    )
    names = ["encoder.blocks.0.self_attention"]
    names += [f"decoder.blocks.{i}.{kind}_attention" for i in range(2) for kind in ("self", "cross")]
    assert list(looked.weights) == names
    svg = draw_text(looked, "svg").decode()
    assert "cross_attention of 2 layers, mean over 4 heads" in svg
    assert all(f">{html.escape(piece)}<" in svg for piece in (*looked.source, *looked.said) if piece)
    assert "self_attention" not in svg
    small = draw_text(looked, "svg", chosen=True).decode()
    assert small.count(">head 0<") == 2  # those of one shape


def test_a_page_says_what_was_said_and_how_sure_the_model_was(alone):
    looked = look_at_translation(alone, TEXT)
    title = f"<title>{TEXT} → {token_label(looked.text, limit=200)} DecoderOnlyTranslator, score \u2212"
    assert html.escape(title, quote=False).replace("&lt;title&gt;", "<title>") in draw_text(looked, "html").decode()


def test_what_no_font_can_draw_is_said_in_a_line(alone, monkeypatch):
    monkeypatch.setattr("heedful.look.draw.WIDE_FONTS", ())
    looked = look_at_translation(alone, "ba 猫", target="ba 猫")
    assert font_note(looked, "html") == ""
    (line,) = font_note(looked, "png").splitlines()[1:]
    assert "no font here has 猫" in line
    assert font_note(look_at_translation(alone, TEXT, target=TARGET), "png") == ""
    assert drawable(["ba", "猫"]) == ["ba", "?"]


def test_the_bytes_that_begin_a_character_show_it():
    tokenizer = train_tokenizer(["ba de gi"] * 20, kind="bpe", size=300)
    ids = tokenizer.encode(["ba 猫"])[0]
    shown = readable_pieces(tokenizer, ids)
    assert len([piece for piece in shown if "猫" in piece]) == 3
    assert not any("<0x" in piece for piece in shown)


def test_what_is_said_at_a_step_is_named_as_in_the_maps():
    """A blank, the end of a line and the bytes of a character are seen, as they are there."""
    tokenizer = train_tokenizer(["ba de gi"] * 20, kind="bpe", size=300)
    said = tokenizer.encode_whole(["ba  猫\nde"])[0]
    steps = steps_of(torch.zeros(len(said), tokenizer.size), said, tokenizer, StepsOptions(), before=[BOS])
    shown = [step["said"]["piece"] for step in steps]
    assert shown == [token_label(piece) for piece in readable_pieces(tokenizer, [BOS, *said])[1:]]
    assert "␣" in shown
    assert "·\\n" in shown
    assert not any("<0x" in piece for piece in shown)
