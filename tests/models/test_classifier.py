"""A classifier reads each sequence at one token, the last or an encoder's first, whatever stands beside and behind
it."""

import pytest
import torch

from heedful.errors import InputError
from heedful.models.classifier import Classifier, ClassifierConfig
from heedful.models.presets import EncoderSize, LMSize, encoder_config, lm_config
from loud import make_loud

BODY = lm_config(LMSize(n_layers=2, d_model=16, n_heads=2, vocab_size=30, context_length=12))


def encoder_body(pooler):
    row = EncoderSize(n_layers=2, d_model=16, n_heads=2, vocab_size=30, context_length=12)
    return encoder_config(row, mlm_head=False, pooler=pooler)


def classifier(answers, **body):
    torch.manual_seed(0)
    model = Classifier(ClassifierConfig(answers=answers, **(body or {"lm": BODY}))).eval()
    return make_loud(model)


def batch(*examples, width=8):
    """Sequences of the given lengths, [B N T], and their segments; length 0 is no sequence."""
    torch.manual_seed(1)
    segments = torch.zeros(len(examples), max(map(len, examples)), width, dtype=torch.int64)
    for row, lengths in enumerate(examples):
        for n, length in enumerate(lengths):
            segments[row, n, :length] = 1
    return torch.randint(4, 30, segments.shape), segments


@torch.no_grad()
def test_the_last_token_is_read():
    model = classifier(3)
    tokens, segments = batch([5], [8], [2])
    logits = model(tokens, segments)
    for row, length in enumerate([5, 8, 2]):
        hidden = model.lm.hidden(tokens[row, 0, None, :length])[0, -1]
        torch.testing.assert_close(logits[row], model.out(hidden), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pooler", [True, False])
@torch.no_grad()
def test_the_first_token_of_an_encoder_is_read(pooler):
    model = classifier(3, encoder=encoder_body(pooler))
    tokens, segments = batch([5, 7], [8, 3], [2])
    types = (torch.arange(8) > 3).expand_as(tokens).long()
    logits = model(tokens, segments, types)
    assert not torch.allclose(logits, model(tokens, segments), atol=1e-3), "types are read"
    for row, lengths in enumerate([[5, 7], [8, 3], [2]]):
        read = torch.zeros(16)
        for n, length in enumerate(lengths):
            one = tokens[row, n, None, :length], None, types[row, n, None, :length]
            first = model.encoder.hidden(*one)[0, 0]
            read += model.encoder.pooler(first).tanh() if pooler else first
        torch.testing.assert_close(logits[row], model.out(read), atol=1e-5, rtol=1e-5)


def test_a_classifier_has_one_body():
    for bodies in ({}, {"lm": BODY, "encoder": encoder_body(True)}):
        with pytest.raises(InputError, match="a classifier has one body"):
            ClassifierConfig(answers=2, **bodies)


@torch.no_grad()
def test_both_orders_are_summed():
    model = classifier(3)
    tokens, segments = batch([5, 7], [8, 3])
    swapped = model(tokens.flip(1), segments.flip(1))
    torch.testing.assert_close(model(tokens, segments), swapped, atol=1e-5, rtol=1e-5)
    read = [model.lm.hidden(tokens[0, n, None, :length])[0, -1] for n, length in enumerate([5, 7])]
    torch.testing.assert_close(model(tokens, segments)[0], model.out(read[0] + read[1]), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_choices_are_scored_alone():
    model = classifier(None)
    tokens, segments = batch([5, 7, 4], [8, 3])
    logits = model(tokens, segments)
    assert logits[1, 2] == -torch.inf
    for n, length in enumerate([5, 7, 4]):
        alone = model(tokens[:1, n : n + 1, :length], segments[:1, n : n + 1, :length])
        torch.testing.assert_close(logits[0, n], alone[0, 0], atol=1e-5, rtol=1e-5)


def test_what_is_no_choice_has_no_gradient():
    model = classifier(None)
    tokens, segments = batch([5, 7, 4], [8, 3])
    loss = torch.nn.functional.cross_entropy(model(tokens, segments), torch.tensor([2, 1]))
    loss.backward()
    assert all(bool(parameter.grad.isfinite().all()) for parameter in model.parameters() if parameter.grad is not None)
