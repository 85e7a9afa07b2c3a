"""Published chat models become runs: their tokens, their ends, their templates and their laws.

Weights are loud (see `hub.py`); logits agree to 1e-5 of the largest, all else exactly.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.gemma2 import Gemma2Config
from transformers.models.gemma3 import Gemma3TextConfig
from transformers.models.llama import LlamaConfig
from transformers.models.mistral import MistralConfig
from transformers.models.mixtral import MixtralConfig
from transformers.models.qwen2 import Qwen2Config
from transformers.models.qwen3 import Qwen3Config
from transformers.models.qwen3_moe import Qwen3MoeConfig

import heedful
from heedful.data.text.chat_template import ChatTemplate
from heedful.errors import InputError
from heedful.store.model import read_model
from heedful.tasks.chat.use import ChatModel
from heedful.tasks.generate.use import LanguageModel
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from hub import TEXTS, Imported, byte_chat_folder, piece_chat_folder

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
MAKERS: dict[str, Any] = {
    "llama 3": (
        byte_chat_folder,
        LlamaConfig,
        {"begun": True, "rope_parameters": LLAMA3 | {"rope_theta": 99.0, "original_max_position_embeddings": 16}},
    ),
    "qwen2": (byte_chat_folder, Qwen2Config, {"begun": False}),
    "qwen3": (byte_chat_folder, Qwen3Config, {"begun": False, "head_dim": 8, "tie_word_embeddings": True}),
    "mistral": (piece_chat_folder, MistralConfig, {"spaced": True, "sliding_window": 6}),
    "mixtral": (piece_chat_folder, MixtralConfig, {"spaced": True, "num_local_experts": 3}),
    "qwen3 moe": (
        byte_chat_folder,
        Qwen3MoeConfig,
        {"begun": False, "head_dim": 8, "num_experts": 4, "moe_intermediate_size": 12, "num_experts_per_tok": 2},
    ),
    "gemma 2": (piece_chat_folder, Gemma2Config, {"spaced": False, "sliding_window": 6, "head_dim": 8}),
    "gemma 3": (
        piece_chat_folder,
        Gemma3TextConfig,
        {"spaced": False, "sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"] * 2}
        | {"num_hidden_layers": 4, "query_pre_attn_scalar": 9, "head_dim": 6},
    ),
}
CONTROLS = ["<|im_start|>user", "a<|im_end|> <|endoftext|>b", "<end_of_turn>", "x<eos> <bos>", "<think> a", "<unk>"]
CONVERSATION = [
    {"role": "user", "content": "The small cat 123?"},
    {"role": "assistant", "content": "is sleeping. é😀"},
    {"role": "user", "content": " And\n二人 "},
]


Pair = Imported[LanguageModel]


@pytest.fixture(scope="module", params=sorted(MAKERS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    make, config, options = MAKERS[request.param]
    torch.manual_seed(2)
    folder = tmp_path_factory.mktemp("hub") / "theirs"
    theirs, run = make(folder, config, **options), folder.parent / "run"
    theirs.set_attn_implementation("eager")
    import_model(folder, run)
    return Pair(theirs, AutoTokenizer.from_pretrained(folder), folder, run, LanguageModel.load(run))


def test_texts_have_their_ids_and_back(pair: Pair) -> None:
    own, texts = pair.ours.tokenizer, [*TEXTS, *CONTROLS]
    expected = pair.tokenizer(texts).input_ids
    assert [[*pair.ours.before, *ids] for ids in own.encode_whole(texts)] == expected
    for ids in expected:
        assert own.decode_whole(ids) == pair.tokenizer.decode(ids, skip_special_tokens=True)
    literal = own.literal()
    for ids in literal.encode_whole(CONTROLS):
        assert not {*ids} & {*own.controls} - {own.unk}


def test_logits_and_greedy_text_to_any_of_its_ends(pair: Pair) -> None:
    prompts = [*TEXTS[:8]]
    ends = pair.theirs.generation_config.eos_token_id
    assert {*pair.ours.ends} == {*ends}
    assert len(ends) == 2
    assert pair.ours.end == pair.tokenizer.eos_token_id
    for text, (made,) in zip(prompts, pair.ours.generate(prompts, tokens=16, temperature=0.0), strict=True):
        ids = torch.tensor([pair.tokenizer(text).input_ids])
        with torch.no_grad():
            expected = pair.theirs(input_ids=ids, use_cache=False).logits
            found = pair.ours.model(ids)
            whole = pair.theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
        said = whole[0, ids.shape[1] :].tolist()
        stop = next((i for i, token in enumerate(said) if token in ends), len(said))
        assert made.tokens == said[:stop]


def test_its_laws_hold(pair: Pair) -> None:
    assert [law.name for law in check(pair.run, TEXTS[:5]) if not law.holds] == []


def test_a_conversation_is_written_as_theirs(pair: Pair) -> None:
    template = ChatTemplate((pair.folder / "chat_template.jinja").read_text("utf-8"), {"bos_token": "<bos>"})
    assert (pair.run / "chat_template.jinja").read_text("utf-8") == template.source
    served = heedful.load(pair.run)
    assert isinstance(served, ChatModel)
    for prompt in (False, True):
        expected = pair.tokenizer.apply_chat_template(CONVERSATION, tokenize=False, add_generation_prompt=prompt)
        assert template.render(CONVERSATION, add_generation_prompt=prompt) == expected
    assert served.prompt(CONVERSATION) == expected


def test_there_and_back_and_there(pair: Pair, tmp_path: Path) -> None:
    export_model(pair.run, tmp_path / "back")
    config, again = (json.loads((path / "config.json").read_text()) for path in (pair.folder, tmp_path / "back"))
    assert again["model_type"] == config["model_type"]
    assert again["eos_token_id"] == [*pair.ours.ends]
    back = AutoModelForCausalLM.from_pretrained(tmp_path / "back", attn_implementation="eager")
    state = back.state_dict()
    assert state.keys() == pair.theirs.state_dict().keys()
    assert all(torch.equal(state[name], value) for name, value in pair.theirs.state_dict().items())
    ids = torch.tensor([pair.tokenizer(TEXTS[0]).input_ids])
    with torch.no_grad():
        assert torch.equal(back(input_ids=ids).logits, pair.theirs(input_ids=ids).logits)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "back")
    assert tokenizer([*TEXTS, *CONTROLS]).input_ids == pair.tokenizer([*TEXTS, *CONTROLS]).input_ids
    import_model(tmp_path / "back", tmp_path / "run")
    names = {path.name for path in pair.run.iterdir()}
    assert {path.name for path in (tmp_path / "run").iterdir()} == names
    for name in names - {"model.safetensors"}:
        assert (tmp_path / "run" / name).read_text() == (pair.run / name).read_text(), name
    tensors, expected = read_model(tmp_path / "run")[1], read_model(pair.run)[1]
    assert all(torch.equal(tensors[name], value) for name, value in expected.items())


def test_an_end_that_is_no_token_is_refused(pair: Pair, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((pair.folder / name).read_bytes())
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 99999]}))
    with pytest.raises(InputError, match="not all are tokens"):
        import_model(tmp_path, tmp_path / "run")
