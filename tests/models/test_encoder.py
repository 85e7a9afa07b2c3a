"""The encoder's own laws; its numbers are compared in tests/parity."""

import pytest
import torch

from heedful.core.config import from_json, to_json
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import config_of, make_model, model_from
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.presets import ENCODERS, EncoderSize, encoder_config

ROW = EncoderSize(n_layers=2, d_model=16, n_heads=2, vocab_size=30, context_length=12)


def test_every_token_sees_all_of_its_own_text_and_nothing_else() -> None:
    model = Encoder(encoder_config(ROW)).eval()
    tokens, segments = torch.randint(4, 30, (1, 9)), torch.tensor([[1, 1, 1, 1, 2, 2, 2, 0, 0]])
    seen = []
    for place in range(7):
        made = model.embed.tokens(tokens).detach().requires_grad_()
        handle = model.embed.tokens.register_forward_hook(lambda module, inputs, output, made=made: made)
        (gradient,) = torch.autograd.grad(model(tokens, segments)[0, place].square().sum(), made)
        handle.remove()
        seen.append((gradient[0].abs().sum(-1) > 0).tolist())
    assert seen == 4 * [4 * [True] + 5 * [False]] + 3 * [4 * [False] + 3 * [True] + 2 * [False]]


def test_recording_shows_whom_each_place_looks_at() -> None:
    model = Encoder(encoder_config(ROW)).eval()
    with record(model, "stack.blocks.1.self_attention") as recording:
        model(torch.randint(4, 30, (2, 5)))
    weights = recording.weights("stack.blocks.1.self_attention")
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))
    assert (weights > 0).all()


@pytest.mark.parametrize("mlm_head", [True, False])
def test_a_config_comes_back_and_heads_are_what_it_says(mlm_head: bool) -> None:
    config = encoder_config(ROW, mlm_head=mlm_head, pooler=True)
    assert from_json(EncoderConfig, to_json(config)) == config
    model = make_model(config)
    assert config_of(model_from(config_of(model))) == {"kind": "encoder", "model": to_json(config)}
    assert ((model.head is not None), (model.pooler is not None), (model.nsp_head is not None)) == (
        mlm_head,
        True,
        False,
    )
    if mlm_head:
        assert model.head.weight is model.embed.tokens.weight
    else:
        with pytest.raises(InputError, match="no head over the vocabulary"):
            model(torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(InputError, match="no head for pairs"):
        model.next_sentence(torch.zeros(1, 16))


def test_heads_that_need_each_other() -> None:
    with pytest.raises(InputError, match="by what its pooler sums up"):
        Encoder(encoder_config(ROW, nsp_head=True))
    with pytest.raises(InputError, match="no pooler"):
        Encoder(encoder_config(ROW)).pool(torch.zeros(1, 16))


def test_places_end() -> None:
    with torch.device("meta"):
        assert Encoder(encoder_config(ENCODERS["bert-base"])).embed.position_embeddings.table.num_embeddings == 512
    with pytest.raises(InputError, match="13 tokens, but the model has 12 positions"):
        Encoder(encoder_config(ROW))(torch.zeros(1, 13, dtype=torch.int64))
