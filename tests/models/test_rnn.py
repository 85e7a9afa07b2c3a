"""The recurrent translator: Bahdanau's equations by hand, and the laws that every translator keeps."""

import pytest
import torch
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.models.rnn import RNN, AdditiveAttention, Keys, RNNConfig, ThoughtVector
from loud import make_loud
from rows import V, padded, sentences

B, S, T = 3, 6, 5
E, N, A, R = 7, 10, 9, 4
BOS = 2


def loud(**more: object) -> RNN:
    sizes = {"source_vocab": V, "target_vocab": V, "d_embed": E, "d_hidden": N, "d_align": A, "d_readout": R}
    model = RNN(RNNConfig(**sizes | more)).eval()
    return make_loud(model)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def gated(x: Tensor, h: Tensor, cell: nn.GRU | nn.GRUCell, end: str) -> Tensor:
    """One step of a gated recurrent unit (Cho et al. 2014), in torch's form."""
    w, u, b, c = (getattr(cell, f"{kind}{end}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    (xr, xz, xn), (hr, hz, hn) = (w @ x + b).chunk(3), (u @ h + c).chunk(3)
    reset, update = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    return (1 - update) * torch.tanh(xn + reset * hn) + update * h


def encoded(model: RNN, source: Tensor) -> tuple[Tensor, Tensor]:
    """The annotations h_j of one sentence, both directions joined, and the last state of the backward one."""
    words, zero = model.source.weight[source], torch.zeros(N)
    ahead, back = [zero], [zero]
    for j in range(len(source)):
        ahead.append(gated(words[j], ahead[-1], model.encoder, "_l0"))
        back.append(gated(words[len(source) - 1 - j], back[-1], model.encoder, "_l0_reverse"))
    return torch.stack([torch.cat(pair) for pair in zip(ahead[1:], back[:0:-1], strict=True)]), back[-1]


def test_every_step_by_hand() -> None:
    """Appendix A of Bahdanau et al. 2015: annotations, first state, alignment from s_(i-1), state, readout."""
    model, source, target = loud(), torch.randint(4, V, (S,)), torch.randint(4, V, (T,))
    states, first_back = encoded(model, source)
    attention = model.attention
    close(model.start(source[None]).keys.states[0], states)
    s = torch.tanh(model.first.weight @ first_back + model.first.bias)
    close(model.start(source[None]).hidden[0], s)
    logits = []
    for token in target:
        word = model.target.weight[token]
        pulled = torch.tanh(attention.query.weight @ s + attention.query.bias + states @ attention.key.weight.T)
        energies = (pulled @ attention.score.weight[0]).exp()
        context = (energies / energies.sum()) @ states
        s = gated(torch.cat([word, context]), s, model.cell, "")
        wide = model.readout.weight @ torch.cat([s, word, context]) + model.readout.bias
        narrow = torch.stack([wide[2 * j : 2 * j + 2].max() for j in range(R)])
        logits.append(model.head.weight @ narrow + model.head.bias)
    close(model(source[None], target[None])[0], torch.stack(logits))


def test_alignment_comes_before_the_word_is_read() -> None:
    """The weights of step i come from s_(i-1): the token read at step i cannot change them; the one before it does."""
    model, source = loud(), torch.randint(4, V, (1, S))
    queries: list[Tensor] = []
    weights: list[Tensor] = []

    def watch(module: AdditiveAttention, inputs: tuple[Tensor, Keys], out: Tensor) -> None:
        queries.append(inputs[0])
        weights.append(module.weights(*inputs))

    model.attention.register_forward_hook(watch)

    def run(tokens: list[int]) -> tuple[list[Tensor], list[Tensor]]:
        queries.clear()
        weights.clear()
        model(source, torch.tensor([tokens]))
        return list(queries), list(weights)

    state = model.start(source)
    asked, seen = run([BOS, 5, 6])
    _, other = run([BOS, 5, 7])
    _, earlier = run([BOS, 9, 6])
    for token, query in zip([BOS, 5, 6], asked, strict=True):
        assert torch.equal(query, state.hidden)
        _, state = model.step(torch.tensor([token]), state)
    assert all(torch.equal(one, two) for one, two in zip(seen, other, strict=True))
    assert torch.equal(seen[1], earlier[1])
    assert not torch.allclose(seen[2], earlier[2])


def test_what_is_looked_at_are_states_not_words() -> None:
    """The same word at two places has two annotations, and each has read the sentence from both ends."""
    model = loud()
    states = model.start(torch.tensor([[5, 5, 5]])).keys.states[0]
    assert not torch.allclose(states[0], states[1])
    one, other = (model.start(torch.tensor([row])).keys.states[0, 1] for row in ([4, 5, 6], [4, 5, 7]))
    assert torch.equal(one[:N], other[:N])
    assert not torch.allclose(one[N:], other[N:])


def test_the_first_state_has_read_the_whole_sentence_backward() -> None:
    model = loud()
    firsts = [model.start(torch.tensor([row])).hidden for row in ([4, 5, 6], [7, 5, 6], [4, 5, 8])]
    assert not torch.allclose(firsts[0], firsts[1])
    assert not torch.allclose(firsts[0], firsts[2])
    source, segments = padded([torch.tensor([4, 5, 6])], 6)
    close(model.start(source, segments).hidden, firsts[0])


def test_without_attention_by_hand() -> None:
    """Cho et al. 2014, section 2.2: the last state of one direction begins the decoder and enters each step."""
    model, source, target = loud(attention=False), torch.randint(4, V, (S,)), torch.randint(4, V, (T,))
    vector = torch.zeros(N)
    for word in model.source.weight[source]:
        vector = gated(word, vector, model.encoder, "_l0")
    s, logits = torch.tanh(model.first.weight @ vector + model.first.bias), []
    for token in target:
        word = model.target.weight[token]
        s = gated(torch.cat([word, vector]), s, model.cell, "")
        wide = model.readout.weight @ torch.cat([s, word, vector]) + model.readout.bias
        logits.append(model.head.weight @ wide.unflatten(0, (R, 2)).amax(1) + model.head.bias)
    close(model(source[None], target[None])[0], torch.stack(logits))


def test_all_that_is_known_of_a_source_is_one_vector() -> None:
    """Sources whose last states agree cannot be told apart, whatever was read before."""
    model = loud(attention=False)
    assert isinstance(model.attention, ThoughtVector)
    state = model.start(*padded(sentences(6, 4, 1), S))
    assert state.keys.states.shape == (B, 1, N)
    assert not [name for name, _ in model.named_parameters() if "attention" in name or "reverse" in name]


def test_additive_attention_by_loops() -> None:
    attention = AdditiveAttention(N, E, A)
    query, states = torch.randn(B, N), torch.randn(B, S, E)
    valid = torch.arange(S) < torch.tensor([[6], [4], [1]])
    keys = attention.keys(states, valid)
    context, weights = attention(query, keys), attention.weights(query, keys)[:, 0, 0]
    for b in range(B):
        scores = torch.stack(
            [
                attention.score.weight[0] @ torch.tanh(attention.query(query[b]) + attention.key.weight @ states[b, s])
                for s in range(S)
            ]
        )
        chances = scores.exp() * valid[b]
        close(weights[b], chances / chances.sum())
        close(context[b], weights[b] @ states[b])
    assert (weights[~valid] == 0).all()


@pytest.mark.parametrize("more", [{}, {"tied": True}, {"attention": False}])
def test_step_by_step_is_all_at_once(more: dict[str, bool]) -> None:
    model = loud(**more)
    source, segments = padded(sentences(6, 4, 1), S)
    target = torch.randint(4, V, (B, T))
    for given in (segments, None):
        full = model(source, target, given, None)
        state = model.start(source, given)
        for t in range(T):
            logits, state = model.step(target[:, t], state)
            close(logits, full[:, t])


@pytest.mark.parametrize("attention", [True, False])
def test_a_batch_is_one_by_one(attention: bool) -> None:
    """In any order of lengths, with any amount and content of padding."""
    model, sources, targets = loud(attention=attention), sentences(2, 6, 3), sentences(3, 1, 4)
    alone = [model(x[None], y[None])[0] for x, y in zip(sources, targets, strict=True)]
    for more in (0, 3):
        (source, x_segments), (target, y_segments) = padded(sources, 6 + more), padded(targets, 4 + more)
        batch = model(source, target, x_segments, y_segments)
        for row, logits in enumerate(alone):
            close(batch[row, : len(logits)], logits)


@pytest.mark.parametrize("attention", [True, False])
def test_nothing_comes_from_the_future(attention: bool) -> None:
    model, source, target = loud(attention=attention), torch.randint(4, V, (1, S)), torch.randint(4, V, (1, T))
    embedded: list[Tensor] = []
    model.target.register_forward_hook(lambda module, inputs, out: embedded.append(out))
    logits = model(source, target)
    for t in range(T):
        (gradient,) = torch.autograd.grad(logits[0, t, 5], embedded[0], retain_graph=True)
        assert (gradient[0, t + 1 :] == 0).all()
        assert (gradient[0, : t + 1] != 0).any(-1).all()


@pytest.mark.parametrize("attention", [True, False])
def test_pick_commutes_with_step(attention: bool) -> None:
    model = loud(attention=attention)
    source, segments = padded(sentences(6, 4, 2), S)
    for chosen in ([2, 0, 0, 1], [1], [0, 1, 2]):
        rows = torch.tensor(chosen)
        _, state = model.step(torch.full((B,), BOS), model.start(source, segments))
        picked = state.pick(rows)
        for _ in range(3):
            tokens = torch.randint(4, V, (B,))
            logits, state = model.step(tokens, state)
            those, picked = model.step(tokens[rows], picked)
            close(those, logits[rows])


def test_logits_are_the_head_of_the_hidden_states() -> None:
    model, source, target = loud(), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    assert torch.equal(model(source, target), model.head(model.hidden(source, target)))


def test_dropout_is_for_training() -> None:
    model, source, target = loud(dropout=0.5), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    assert torch.equal(model(source, target), model(source, target))
    model.train()
    assert not torch.equal(model(source, target), model(source, target))


def test_how_it_begins() -> None:
    """Nothing is left as torch makes it: no bias but zero, and embeddings and recurrent maps of their own scale."""
    model = RNN(RNNConfig(source_vocab=V, target_vocab=V + 1, d_embed=32, d_hidden=48, d_align=16, d_readout=8))
    for name, weight in model.named_parameters():
        if "bias" in name:
            assert (weight == 0).all(), name
    assert float(model.source.weight.detach().std()) == pytest.approx(32**-0.5, rel=0.1)
    weight = model.cell.weight_hh.detach()
    bound = (6 / sum(weight.shape)) ** 0.5
    assert 0.98 * bound < float(weight.abs().max()) <= bound
    assert model.head.out_features == V + 1


def test_one_matrix_for_both_sides() -> None:
    model = loud(tied=True)
    assert model.source is model.target
    with pytest.raises(InputError, match="23 and 24 tokens cannot share a matrix"):
        loud(tied=True, target_vocab=V + 1)
