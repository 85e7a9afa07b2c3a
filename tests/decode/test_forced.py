"""Forced decoding says of a continuation what the whole forward pass says of it, whoever shares the batch."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from heedful.decode.forced import log_probabilities
from heedful.errors import NonFiniteError
from heedful.models.lm import LM
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from loud import make_loud
from toys import rnn, transformer

V, BOS = 29, 2
SOURCES = [[5, 9, 7], [4], [8, 6, 11, 12, 10]]
CONTINUATIONS = [[[7, 8, 9], [20]], [], [[4, 5, 6, 7], [4, 5], [21, 21, 21], []]]


def loud(model: nn.Module) -> nn.Module:
    return make_loud(model, norm=1.0).eval()


def lm(name: str) -> LM:
    row = replace(LANGUAGE_MODELS[name], d_model=16, n_heads=4, n_layers=2, d_ff=24, context_length=32, vocab_size=V)
    return LM(lm_config(row, vocab_size=V))


MODELS = {
    "gpt": lambda: lm("gpt-nano"),
    "llama": lambda: lm("llama-nano"),
    "transformer": lambda: transformer(V),
    "rnn": lambda: rnn(V),
}


def batch() -> tuple[Tensor, Tensor]:
    """The sources, padded with a token that nobody may look at."""
    longest = max(map(len, SOURCES))
    tokens = torch.tensor([ids + [13] * (longest - len(ids)) for ids in SOURCES])
    return tokens, (torch.arange(longest) < torch.tensor([[len(ids)] for ids in SOURCES])).long()


def in_one_pass(model: nn.Module, source: list[int], ids: list[int]) -> list[float]:
    """The same from the logits of a source and its continuation, alone and all at once."""
    if isinstance(model, LM):
        logits = model(torch.tensor([[*source, BOS, *ids[:-1]]]))[0, len(source) :]
    else:
        logits = model(torch.tensor([source]), torch.tensor([[BOS, *ids[:-1]]]))[0]
    return logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_forced_is_the_whole_forward_pass(name):
    model = loud(MODELS[name]())
    found = log_probabilities(model, *batch(), bos=BOS, continuations=CONTINUATIONS)
    assert [[len(each) for each in own] for own in found] == [[len(ids) for ids in own] for own in CONTINUATIONS]
    for source, own, each in zip(SOURCES, CONTINUATIONS, found, strict=True):
        for ids, logprobs in zip(own, each, strict=True):
            with torch.no_grad():
                expected = in_one_pass(model, source, ids) if ids else []
            assert logprobs == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_each_source_may_begin_with_a_token_of_its_own():
    model = loud(lm("gpt-nano"))
    bos = torch.tensor([3, 4, 5])
    found = log_probabilities(model, *batch(), bos=bos, continuations=[[[6]], [[6]], [[6]]])
    for source, first, ((logprob,),) in zip(SOURCES, bos.tolist(), found, strict=True):
        with torch.no_grad():
            expected = model(torch.tensor([[*source, first]]))[0, -1].log_softmax(-1)[6]
        assert logprob == pytest.approx(float(expected), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_one_source_may_have_several_continuations(name):
    model = loud(MODELS[name]())
    ids = [[7, 8, 9], [4, 5, 6, 7], [20]]
    (found,) = log_probabilities(model, torch.tensor(SOURCES[:1]), bos=BOS, continuations=[ids])
    for one, logprobs in zip(ids, found, strict=True):
        with torch.no_grad():
            assert logprobs == pytest.approx(in_one_pass(model, SOURCES[0], one), rel=1e-5, abs=1e-5)


def test_nothing_to_force_and_logits_that_are_nan():
    model = loud(lm("gpt-nano"))
    assert log_probabilities(model, *batch(), bos=BOS, continuations=[[], [], []]) == [[], [], []]
    nn.init.constant_(model.head.weight, torch.nan)
    with pytest.raises(NonFiniteError, match="NaN"):
        log_probabilities(model, *batch(), bos=BOS, continuations=[[[4]], [], []])
