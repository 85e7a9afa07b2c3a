"""The Decision Transformer: who sees what, and against Hugging Face's."""

import pytest
import torch
from torch import Tensor
from transformers import DecisionTransformerConfig as TheirConfig
from transformers import DecisionTransformerModel

from heedful.core import AttentionConfig, BlockConfig, StackConfig
from heedful.errors import InputError
from heedful.models import config_of, model_from
from heedful.models.decision import DecisionTransformer, DecisionTransformerConfig
from loud import make_loud

B, T, S, A, C = 2, 5, 3, 4, 16


@pytest.fixture
def model() -> DecisionTransformer:
    block = BlockConfig(attention=AttentionConfig(n_heads=2), d_ff=32, order="pre")
    stack = StackConfig(n_layers=2, block=block, final_norm=True)
    made = DecisionTransformer(DecisionTransformerConfig(d_model=C, d_state=S, n_actions=A, longest=9, stack=stack))
    return make_loud(made).eval()


def episode() -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(B, T), torch.randn(B, T, S), torch.randint(A, (B, T))


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_an_action_comes_of_its_return_its_state_and_all_before(model: DecisionTransformer) -> None:
    returns, states, actions = episode()
    words = []
    model.actions.register_forward_hook(lambda module, inputs, out: words.append(out))
    returns.requires_grad_(), states.requires_grad_()
    logits = model(returns, states, actions)
    assert logits.shape == (B, T, A)
    for t in range(T):
        seen = torch.autograd.grad(logits[0, t, 1], [returns, states, words[0]], retain_graph=True)
        reached = [part[0].abs().reshape(T, -1).sum(1) > 0 for part in seen]
        upto = torch.arange(T) <= t
        assert torch.equal(reached[0], upto)
        assert torch.equal(reached[1], upto)
        assert torch.equal(reached[2], torch.arange(T) < t)  # not the action itself


def test_padding_changes_nothing(model: DecisionTransformer) -> None:
    returns, states, actions = episode()
    valid = torch.tensor([[False] * 2 + [True] * 3, [True] * 5])
    steps = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])
    rows = model(returns, states, actions, steps, valid)
    close(rows[:1, 2:], model(returns[:1, 2:], states[:1, 2:], actions[:1, 2:]))
    close(rows[1:], model(returns[1:], states[1:], actions[1:]))


def test_a_step_that_it_has_not(model: DecisionTransformer) -> None:
    with pytest.raises(InputError, match="step 9, and the model has 9"):
        model(*episode(), torch.full((B, T), 9))


def test_saved_and_made_again(model: DecisionTransformer) -> None:
    again = model_from(config_of(model)).eval()
    again.load_state_dict(model.state_dict())
    given = episode()
    assert torch.equal(again(*given), model(*given))


def test_against_hugging_face(model: DecisionTransformer) -> None:
    """Whose actions are vectors: here one-hot ones."""
    sizes = {"hidden_size": C, "n_layer": 2, "n_head": 2, "n_inner": 32, "max_ep_len": 9, "n_positions": 64}
    theirs = DecisionTransformerModel(
        TheirConfig(state_dim=S, act_dim=A, action_tanh=False, activation_function="relu", **sizes)
    ).eval()
    make_loud(theirs)
    pairs = [(model.returns, theirs.embed_return), (model.states, theirs.embed_state), (model.norm, theirs.embed_ln)]
    pairs += [(model.actions, theirs.embed_action)]
    pairs += [(model.head, theirs.predict_action[0]), (model.stack.norm, theirs.encoder.ln_f)]
    with torch.no_grad():
        for own, their in pairs:
            own.load_state_dict(their.state_dict())
        theirs.encoder.wpe.weight.zero_()  # the first row of it is added to all, which their paper has not
        model.steps.weight.copy_(theirs.embed_timestep.weight)
        for block, layer in zip(model.stack.blocks, theirs.encoder.h, strict=True):
            block.self_residual.in_norm.load_state_dict(layer.ln_1.state_dict())
            block.mlp_residual.in_norm.load_state_dict(layer.ln_2.state_dict())
            maps = [block.self_attention.query, block.self_attention.key, block.self_attention.value]
            weights, biases = layer.attn.c_attn.weight.T.chunk(3), layer.attn.c_attn.bias.chunk(3)
            maps += [block.self_attention.out, block.mlp.up, block.mlp.down]
            others = (layer.attn.c_proj, layer.mlp.c_fc, layer.mlp.c_proj)
            weights, biases = [*weights, *(one.weight.T for one in others)], [*biases, *(one.bias for one in others)]
            for own, weight, bias in zip(maps, weights, biases, strict=True):
                own.weight.copy_(weight)
                own.bias.copy_(bias)
    returns, states, actions = episode()
    steps = torch.arange(2, 2 + T).expand(B, T)
    one_hot = torch.nn.functional.one_hot(actions, A).float()
    found = theirs(states, one_hot, torch.zeros(B, T, 1), returns[..., None], steps, torch.ones(B, T)).action_preds
    close(model(returns, states, actions, steps), found)
