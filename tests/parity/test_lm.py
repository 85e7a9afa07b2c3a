"""The language model against Hugging Face's families, with loud weights: N(0, 0.4) in every matrix and bias, N(1, 0.4)
in every norm.

"Close" means: no element differs by more than 1e-5 of the tensor's largest in single precision, and 1e-9 in double,
in which gradients are compared: but for GPT-2 at 1e-5 too, as norms and rotations compute in single precision there
whatever they are given.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig
from transformers.models.gemma import GemmaConfig
from transformers.models.gemma2 import Gemma2Config
from transformers.models.gemma3 import Gemma3TextConfig
from transformers.models.mistral import MistralConfig
from transformers.models.mixtral import MixtralConfig
from transformers.models.qwen2 import Qwen2Config
from transformers.models.qwen3 import Qwen3Config
from transformers.models.qwen3_moe import Qwen3MoeConfig
from transformers.models.smollm3 import SmolLM3Config

from heedful.decode.search import greedy
from heedful.errors import InputError
from heedful.exchange.hf import gemma, gemma2, gemma3, gpt2, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, smollm3
from heedful.exchange.hf.rules import Rule, to_ours, to_theirs
from heedful.models.lm import LM
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from loud import make_loud
from nearly import close, close_gradients, copy_weights

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
_WIDE = {"hidden_size": 32}
_EXPERTS = {
    "num_key_value_heads": 2,
    "head_dim": 6,
    "num_experts": 4,
    "moe_intermediate_size": 20,
}


def _rope(kind: str, **more: object) -> dict[str, object]:
    longer = {} if kind == "linear" else {"original_max_position_embeddings": 12}
    fading = {"low_freq_factor": 1.0, "high_freq_factor": 4.0} if kind == "llama3" else {}
    return {"rope_type": kind, "rope_theta": 50.0, "factor": 4.0} | longer | fading | more


VARIANTS: dict[str, tuple[ModuleType, Any]] = {
    "gpt2": (gpt2, GPT2Config(**GPT2)),
    "gpt2 untied, wide": (gpt2, GPT2Config(**GPT2, tie_word_embeddings=False, n_inner=40, activation_function="gelu")),
    "llama": (llama, LlamaConfig(**LLAMA)),
    "llama, grouped": (llama, LlamaConfig(**LLAMA, num_key_value_heads=2, head_dim=6, rope_theta=77.0)),
    "llama, tied, biases": (llama, LlamaConfig(**LLAMA, tie_word_embeddings=True, attention_bias=True, mlp_bias=True)),
    "llama 3": (llama, LlamaConfig(**LLAMA, head_dim=16, rope_parameters=_rope("llama3", low_freq_factor=0.5))),
    "llama, linear": (llama, LlamaConfig(**LLAMA, rope_parameters=_rope("linear"))),
    "mistral": (mistral, MistralConfig(**LLAMA, num_key_value_heads=2, head_dim=6, sliding_window=3)),
    "mistral, all": (mistral, MistralConfig(**LLAMA, num_key_value_heads=4, sliding_window=None)),
    "mixtral": (mixtral, MixtralConfig(**LLAMA, num_key_value_heads=2, num_local_experts=5, sliding_window=3)),
    "mixtral, all": (mixtral, MixtralConfig(**LLAMA, num_key_value_heads=4, num_local_experts=2)),
    "qwen3 moe": (qwen3_moe, Qwen3MoeConfig(**LLAMA, **_EXPERTS, num_experts_per_tok=3, norm_topk_prob=True)),
    "qwen3 moe, 2": (qwen3_moe, Qwen3MoeConfig(**LLAMA, **_EXPERTS, num_experts_per_tok=2, norm_topk_prob=False)),
    "qwen2": (qwen2, Qwen2Config(**LLAMA, num_key_value_heads=2)),
    "qwen2, yarn": (qwen2, Qwen2Config(**LLAMA | _WIDE, num_key_value_heads=1, rope_parameters=_rope("yarn"))),
    "qwen2, windows": (
        qwen2,
        Qwen2Config(**LLAMA, num_key_value_heads=2, use_sliding_window=True, sliding_window=4, max_window_layers=1),
    ),
    "qwen3": (qwen3, Qwen3Config(**LLAMA, num_key_value_heads=2, head_dim=6, tie_word_embeddings=True)),
    "qwen3, biases": (qwen3, Qwen3Config(**LLAMA, num_key_value_heads=2, head_dim=8, attention_bias=True)),
    "smollm3": (smollm3, SmolLM3Config(**LLAMA, num_key_value_heads=2, no_rope_layer_interval=2, pad_token_id=PAD)),
    "smollm3, windows": (
        smollm3,
        SmolLM3Config(
            **LLAMA,
            num_key_value_heads=2,
            no_rope_layers=[0, 1, 1],
            use_sliding_window=True,
            sliding_window=3,
            tie_word_embeddings=False,
            pad_token_id=PAD,
        ),
    ),
    "gemma": (gemma, GemmaConfig(**LLAMA, num_key_value_heads=1, head_dim=6)),
    "gemma 2": (
        gemma2,
        Gemma2Config(
            **LLAMA,
            num_key_value_heads=2,
            head_dim=6,
            query_pre_attn_scalar=9,
            sliding_window=3,
            attn_logit_softcapping=2.0,
            final_logit_softcapping=7.0,
        ),
    ),
    "gemma 3": (
        gemma3,
        Gemma3TextConfig(
            **LLAMA | {"num_hidden_layers": 4},
            num_key_value_heads=2,
            head_dim=6,
            query_pre_attn_scalar=7,
            sliding_window=3,
            layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
            rope_parameters={
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 300.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
            },
        ),
    ),
}


def as_saved(tensors: Mapping[str, Tensor], family: ModuleType) -> dict[str, Tensor]:
    """Their tensors under the names of their files, which hold experts one by one."""
    found = {}
    gate, up, down = ("w1", "w3", "w2") if family is mixtral else ("gate_proj", "up_proj", "down_proj")
    for name, tensor in tensors.items():
        name = name.replace(".mlp.", ".block_sparse_moe.") if family is mixtral else name
        stem, _, kind = name.rpartition(".")
        if kind == "gate_up_proj":
            for n, both in enumerate(tensor):
                found[f"{stem}.{n}.{gate}.weight"], found[f"{stem}.{n}.{up}.weight"] = both.chunk(2)
        elif kind == "down_proj":
            found |= {f"{stem}.{n}.{down}.weight": own for n, own in enumerate(tensor)}
        else:
            found[name] = tensor
    return found


class Pair(NamedTuple):
    theirs: Any
    ours: LM
    rules: tuple[Rule, ...]
    family: ModuleType


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    family, config = VARIANTS[request.param]
    config._experts_implementation = "eager"  # which is in double precision too
    theirs = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    offset = family in (gemma, gemma2, gemma3)  # whose norms multiply by 1 + weight
    make_loud(theirs, norm=0.0 if offset else 1.0)
    ours = LM(family.FAMILY.config_from_hf(theirs.config.to_dict())).eval()
    rules = family.FAMILY.rules(ours.config)
    copy_weights(ours, rules, as_saved(theirs.state_dict(), family))
    return Pair(theirs, ours, rules, family)


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
    alone = [row[real][None] for row, real in zip(tokens, valid, strict=True)]  # theirs are NaN behind a window
    theirs = torch.cat([pair.theirs(input_ids=row, use_cache=False).logits[0] for row in alone])
    F.cross_entropy(theirs, words, reduction="sum").backward()
    own = dict(pair.ours.named_parameters())
    gradients = {name: weight.grad for name, weight in pair.theirs.named_parameters()}
    expected = to_ours(pair.rules, as_saved(gradients, pair.family), own)
    rotary = pair.family is not gpt2
    close_gradients(own, expected, rotary=rotary, within=1e-5 if rotary else None)


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
    theirs = pair.family.FAMILY.config_to_hf(pair.ours.config, start=2, end=EOS)
    assert pair.family.FAMILY.config_from_hf(theirs) == pair.ours.config
    back = to_theirs(pair.rules, {name: p.detach() for name, p in pair.ours.named_parameters()})
    expected = as_saved(pair.theirs.state_dict(), pair.family)
    assert back.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(back[name], value), name


def test_what_is_not_accounted_for_is_refused(pair: Pair) -> None:
    config = pair.theirs.config.to_dict()
    with pytest.raises(InputError, match="unknown key 'n_experts'"):
        pair.family.FAMILY.config_from_hf(config | {"n_experts": 8})
    own, weights = dict(pair.ours.named_parameters()), as_saved(pair.theirs.state_dict(), pair.family)
    with pytest.raises(InputError, match=r"no rule for their tensor 'transformer\.extra'"):
        to_ours(pair.rules, weights | {"transformer.extra": torch.zeros(1)}, own)
    name = next(name for name in weights if "c_attn.weight" in name or "q_proj.weight" in name)
    with pytest.raises(InputError, match="nothing of theirs for our tensor"):
        to_ours(pair.rules, {key: value for key, value in weights.items() if key != name}, own)


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        (llama, {"hidden_act": "mish"}, "mish"),
        (llama, {"rope_parameters": {"factor": 8.0}}, "rope_parameters has 'factor', which 'default' does not"),
        (llama, {"rope_parameters": {"rope_type": "dynamic", "factor": 8.0}}, "rope_type is 'dynamic'"),
        (llama, {"rope_parameters": {"rope_type": "linear"}}, "factor None, which is no number"),
        (llama, {"rope_parameters": {"rope_type": "linear", "factor": 0}}, "numbers above 0|cannot be"),
        (
            llama,
            {"rope_parameters": {"rope_type": "llama3", "factor": 8, "beta_fast": 1}},
            "'beta_fast', which 'llama3'",
        ),
        (llama, {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        (llama, {"rope_parameters": "linear"}, "not an object"),
        (mistral, {"sliding_window": 0}, "window of 0"),
        (mistral, {"attention_bias": True}, "unknown key 'attention_bias'"),
        (mixtral, {"num_experts_per_tok": 9}, "9 of 8 experts"),
        (qwen3_moe, {"mlp_only_layers": [0]}, r"mlp_only_layers is \[0\]"),
        (qwen3_moe, {"decoder_sparse_step": 2}, "decoder_sparse_step is 2"),
        (qwen2, {"use_mrope": True}, "use_mrope is True"),
        (qwen2, {"layer_types": ["chunked_attention"] * 3}, "layer_types is"),
        (qwen2, {"use_sliding_window": True, "max_window_layers": None}, "max_window_layers is None"),
        (smollm3, {"no_rope_layers": [1, 0]}, "for each of 3 layers 0 or 1"),
        (smollm3, {"no_rope_layer_interval": 0}, "no_rope_layer_interval is 0"),
        (gemma, {"use_bidirectional_attention": True}, "only causal"),
        (gemma, {"hidden_act": "silu", "hidden_activation": "relu"}, "they differ"),
        (gemma2, {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar is 0"),
        (gemma2, {"sliding_window": None}, "sliding_window is None"),
        (gemma3, {"attn_logit_softcapping": 30.0}, "attn_logit_softcapping"),
        (gemma3, {"rope_parameters": {"rope_theta": 3.0}}, "those of full_attention and of sliding_attention"),
        (gemma3, {"sliding_window_pattern": 0}, "sliding_window_pattern is 0"),
    ],
)
def test_what_cannot_be_built_is_refused(family: ModuleType, changes: dict[str, Any], message: str) -> None:
    kind = family.TABLE.fixed["model_type"]
    small = {"model_type": kind, "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 3}
    family.FAMILY.config_from_hf(small)
    with pytest.raises(InputError, match=message):
        family.FAMILY.config_from_hf(small | changes)


def test_old_files_say_the_same() -> None:
    """As files were written before `rope_parameters` and `layer_types`."""
    scaled = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaled |= {"original_max_position_embeddings": 8192}
    old = llama.FAMILY.config_from_hf({"model_type": "llama", "rope_theta": 500_000.0, "rope_scaling": scaled})
    new = llama.FAMILY.config_from_hf({"model_type": "llama", "rope_parameters": scaled | {"rope_theta": 500_000.0}})
    assert old == new
    assert old.stack.block.attention.position.scaling is not None
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    assert qwen2.FAMILY.config_from_hf(
        {"model_type": "qwen2", "rope_scaling": yarn}
    ).stack.block.attention.position.scaling
    six = {"model_type": "gemma3_text", "num_hidden_layers": 7, "rope_local_base_freq": 10, "rope_theta": 20}
    told = [layer.attention.position.theta for layer in gemma3.FAMILY.config_from_hf(six).stack.layers]
    assert told == [10, 10, 10, 10, 10, 20, 10]
    pattern = gemma3.FAMILY.config_from_hf(six | {"_sliding_window_pattern": 2}).stack.layers
    assert [layer.window for layer in pattern] == [4096, None, 4096, None, 4096, None, 4096]
    assert (
        gemma.FAMILY.config_from_hf({"model_type": "gemma", "hidden_act": "gelu"}).stack.block.activation == "gelu_tanh"
    )


def test_presets_have_their_names_there() -> None:
    small = lm_config(LANGUAGE_MODELS["gpt2"])
    assert gpt2.FAMILY.config_to_hf(small, start=50256, end=50256)["n_layer"] == 12
    assert llama.FAMILY.config_to_hf(lm_config(LANGUAGE_MODELS["tinyllama-1.1b"]), start=1, end=2)["head_dim"] == 64
    with pytest.raises(InputError, match=r"GPT-2 cannot hold model\.stack\.block\.order = 'post'"):
        gpt2.FAMILY.config_to_hf(lm_config(LANGUAGE_MODELS["gpt-1"]), start=0, end=0)
