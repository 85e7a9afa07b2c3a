"""The language model against Hugging Face's GPT-2 and LLaMA, with loud weights: N(0, 0.4) in every matrix and bias,
N(1, 0.4) in every norm.

"Close" means: no element differs by more than 1e-5 of the tensor's largest in single precision, and 1e-9 in double,
in which gradients are compared: for LLaMA at 1e-5 too, whose norms and rotations compute in single precision there
whatever they are given.
"""

from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from heedful.decode.search import greedy
from heedful.errors import InputError
from heedful.exchange.hf import gpt2, llama
from heedful.exchange.hf.rules import Rule, to_ours, to_theirs
from heedful.models.lm import LM
from heedful.models.presets import LANGUAGE_MODELS, lm_config

V, PAD, EOS = 41, 0, 1
GPT2 = {
    "vocab_size": V,
    "n_positions": 40,
    "n_embd": 16,
    "n_layer": 3,
    "n_head": 4,
    "bos_token_id": 2,
    "eos_token_id": EOS,
}
LLAMA = {
    "vocab_size": V,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 40,
    "bos_token_id": 2,
    "eos_token_id": EOS,
}
VARIANTS: dict[str, tuple[ModuleType, Any]] = {
    "gpt2": (gpt2, GPT2Config(**GPT2)),
    "gpt2 untied, wide": (gpt2, GPT2Config(**GPT2, tie_word_embeddings=False, n_inner=40, activation_function="gelu")),
    "llama": (llama, LlamaConfig(**LLAMA)),
    "llama, grouped": (llama, LlamaConfig(**LLAMA, num_key_value_heads=2, head_dim=6, rope_theta=77.0)),
    "llama, tied, biases": (llama, LlamaConfig(**LLAMA, tie_word_embeddings=True, attention_bias=True, mlp_bias=True)),
}


class Pair(NamedTuple):
    theirs: Any
    ours: LM
    rules: tuple[Rule, ...]
    family: ModuleType


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    family, config = VARIANTS[request.param]
    theirs = (GPT2LMHeadModel if family is gpt2 else LlamaForCausalLM)(config).eval()
    for name, weight in theirs.named_parameters():
        nn.init.normal_(weight, mean=1.0 if ("norm" in name or "ln_" in name) and "weight" in name else 0.0, std=0.4)
    ours = LM(family.config_from_hf(theirs.config.to_dict())).eval()
    rules = family.rules(ours.config)
    own = dict(ours.named_parameters())
    for name, value in to_ours(rules, theirs.state_dict(), own).items():
        own[name].data.copy_(value)
    return Pair(theirs, ours, rules, family)


def close(ours: Tensor, theirs: Tensor, name: str = "", *, single: bool = False) -> None:
    largest = float(theirs.detach().abs().max())
    assert largest > 1e-4, f"{name} says nothing"
    within = largest * (1e-5 if single or theirs.dtype == torch.float32 else 1e-9)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=within, msg=lambda text: f"{name}: {text}")


def ragged(*lengths: int) -> tuple[Tensor, Tensor]:
    """Tokens padded at their end, and which are real."""
    valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randint(3, V, valid.shape).masked_fill(~valid, PAD), valid


def test_logits(pair: Pair) -> None:
    tokens, valid = ragged(11, 4, 7)
    theirs = pair.theirs(input_ids=tokens, attention_mask=valid.long(), use_cache=False).logits
    assert float(theirs.detach().abs().max()) > 3, "weights are loud"
    close(pair.ours(tokens, valid.long())[valid], theirs[valid])
    close(pair.ours(tokens[:1]), theirs[:1])


def test_gradients_of_every_parameter(pair: Pair) -> None:
    tokens, valid = ragged(11, 4, 7)
    for model in pair[:2]:
        model.double()
    words = torch.randint(3, V, (int(valid.sum()),))
    F.cross_entropy(pair.ours(tokens, valid.long())[valid], words, reduction="sum").backward()
    theirs = pair.theirs(input_ids=tokens, attention_mask=valid.long(), use_cache=False).logits
    F.cross_entropy(theirs[valid], words, reduction="sum").backward()
    own = dict(pair.ours.named_parameters())
    expected = to_ours(pair.rules, {name: weight.grad for name, weight in pair.theirs.named_parameters()}, own)
    assert expected.keys() == own.keys()
    for name, gradient in expected.items():
        if name.endswith(".key.bias") and pair.family is gpt2:  # adds the same to every score of a query
            assert float(gradient.abs().max()) < 1e-12
            assert float(own[name].grad.abs().max()) < 1e-12
        else:
            close(own[name].grad, gradient, name, single=pair.family is llama)


@pytest.mark.parametrize("size", [None, 20])
def test_cached_steps_after_ragged_prompts(pair: Pair, size: int | None) -> None:
    """Each row against theirs alone, without padding and without a cache."""
    tokens, valid = ragged(6, 1, 3)
    more = torch.randint(3, V, (3, 5))
    with torch.no_grad():
        state = pair.ours.start(tokens, valid.long(), size)
        for t in range(5):
            logits, state = pair.ours.step(more[:, t], state)
            for row in range(3):
                whole = torch.cat([tokens[row, valid[row]], more[row, : t + 1]])[None]
                close(logits[row], pair.theirs(input_ids=whole, use_cache=False).logits[0, -1], f"step {t}, row {row}")


def test_greedy_text_is_theirs(pair: Pair) -> None:
    prompt = torch.randint(3, V, (2, 5))
    with torch.no_grad():
        found = pair.theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=20, do_sample=False, pad_token_id=PAD
        )
    ours = greedy(pair.ours, prompt[:, :-1], bos=prompt[:, -1], eos=EOS, longest=20)
    for row, hypothesis in zip(found[:, 5:].tolist(), ours, strict=True):
        end = row.index(EOS) if EOS in row else 20
        assert list(hypothesis.tokens) == row[:end]
        assert hypothesis.finished == (EOS in row)


def test_there_and_back(pair: Pair) -> None:
    theirs = pair.family.config_to_hf(pair.ours.config, start=2, end=EOS)
    assert pair.family.config_from_hf(theirs) == pair.ours.config
    back = to_theirs(pair.rules, {name: p.detach() for name, p in pair.ours.named_parameters()})
    expected = pair.theirs.state_dict()
    assert back.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(back[name], value), name


def test_what_is_not_accounted_for_is_refused(pair: Pair) -> None:
    config = pair.theirs.config.to_dict()
    with pytest.raises(InputError, match="unknown key 'n_experts'"):
        pair.family.config_from_hf(config | {"n_experts": 8})
    own, weights = dict(pair.ours.named_parameters()), pair.theirs.state_dict()
    with pytest.raises(InputError, match=r"no rule for their tensor 'transformer\.extra'"):
        to_ours(pair.rules, weights | {"transformer.extra": torch.zeros(1)}, own)
    name = next(name for name in weights if "c_attn.weight" in name or "q_proj.weight" in name)
    with pytest.raises(InputError, match="nothing of theirs for our tensor"):
        to_ours(pair.rules, {key: value for key, value in weights.items() if key != name}, own)


@pytest.mark.parametrize(("key", "value"), [("rope_scaling", {"factor": 8.0}), ("hidden_act", "mish")])
def test_llamas_that_cannot_be_built_are_refused(key: str, value: object) -> None:
    with pytest.raises(InputError, match=key if key == "rope_scaling" else "mish"):
        llama.config_from_hf(LlamaConfig(**LLAMA).to_dict() | {key: value})
    with pytest.raises(InputError, match="rope_parameters"):
        llama.config_from_hf(LlamaConfig(**LLAMA).to_dict() | {"rope_parameters": {"rope_type": "yarn", "factor": 2}})


def test_presets_have_their_names_there() -> None:
    small = lm_config(LANGUAGE_MODELS["gpt2"])
    assert gpt2.config_to_hf(small, start=50256, end=50256)["n_layer"] == 12
    assert llama.config_to_hf(lm_config(LANGUAGE_MODELS["tinyllama-1.1b"]), start=1, end=2)["head_dim"] == 64
    with pytest.raises(InputError, match=r"GPT-2 cannot hold model\.stack\.block\.order = 'post'"):
        gpt2.config_to_hf(lm_config(LANGUAGE_MODELS["gpt-1"]), start=0, end=0)
