"""Language models in GGUF: there and back, beside the library's own reader, and beside llama.cpp where it is installed.

Weights are loud (see `hub.py`).
"""

import asyncio
import json
import random
import shutil
import sys
import tracemalloc
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest
import tokenizers
import torch
from transformers.models.gemma import GemmaConfig
from transformers.models.gemma2 import Gemma2Config
from transformers.models.gemma3 import Gemma3TextConfig
from transformers.models.llama import LlamaConfig
from transformers.models.mistral import MistralConfig
from transformers.models.mixtral import MixtralConfig
from transformers.models.qwen2 import Qwen2Config
from transformers.models.qwen3 import Qwen3Config
from transformers.models.qwen3_moe import Qwen3MoeConfig
from transformers.models.smollm3 import SmolLM3Config

import heedful
from commands import heed
from heedful.data.text.chat_template import QUESTION_ANSWER
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import HeedError, InputError, MissingError, StorageError
from heedful.exchange import gguf as exchange
from heedful.exchange.gguf import architectures, file, tokens
from heedful.exchange.gguf import llama as engines
from heedful.exchange.hf import folder as hub_folder
from heedful.models import make_model
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.run.folder import parameters, write_model
from heedful.run.tokenizers import tokenizer_files
from heedful.serve.limits import Limits
from heedful.serve.opening import open_engine
from heedful.store.model import read_model
from heedful.tasks.chat.use import ChatModel
from heedful.tasks.generate.llama import with_engine
from heedful.tasks.generate.use import LanguageModel
from heedful.verbs.exchange import export_model, import_model
from hostile import GGUF_FILES
from hub import LINES, TEXTS, bert_folder, byte_chat_folder, gpt2_folder, llama_folder, piece_chat_folder
from loud import make_loud

gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 99.0, "original_max_position_embeddings": 16}
WIDE = {"hidden_size": 64, "intermediate_size": 96}  # whose rows are whole blocks
MAKERS: dict[str, Any] = {
    "gpt2": (gpt2_folder, {}),
    "llama": (llama_folder, {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True}),
    "llama, spaced": (llama_folder, {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 50.0}}),
    "llama 3": (
        byte_chat_folder,
        {"config": LlamaConfig, "begun": True, **WIDE}
        | {"rope_parameters": LLAMA3 | {"rope_theta": 99.0, "original_max_position_embeddings": 16}},
    ),
    "mistral": (piece_chat_folder, {"config": MistralConfig, "spaced": True, "sliding_window": None}),
    "mixtral": (piece_chat_folder, {"config": MixtralConfig, "spaced": True, "num_local_experts": 3}),
    "qwen2": (byte_chat_folder, {"config": Qwen2Config, "begun": False}),
    "qwen2, yarn": (
        byte_chat_folder,
        {"config": Qwen2Config, "begun": False, **WIDE} | {"rope_parameters": YARN},
    ),
    "qwen3": (
        byte_chat_folder,
        {"config": Qwen3Config, "begun": False, "head_dim": 8, "tie_word_embeddings": True, **WIDE},
    ),
    "qwen3 moe": (
        byte_chat_folder,
        {"config": Qwen3MoeConfig, "begun": False, "head_dim": 8, "num_experts": 4, "norm_topk_prob": True}
        | {"moe_intermediate_size": 32, "num_experts_per_tok": 2, "hidden_size": 32},
    ),
    "smollm3": (
        byte_chat_folder,
        {"config": SmolLM3Config, "begun": False, "num_hidden_layers": 4, "pad_token_id": None, "bos_token_id": None},
    ),
    "gemma": (piece_chat_folder, {"config": GemmaConfig, "spaced": False, "head_dim": 8}),
    "gemma 2": (
        piece_chat_folder,
        {"config": Gemma2Config, "spaced": False, "sliding_window": 6, "head_dim": 8, "query_pre_attn_scalar": 8},
    ),
    "gemma 3": (
        piece_chat_folder,
        {"config": Gemma3TextConfig, "spaced": False, "sliding_window": 6, "head_dim": 6, "query_pre_attn_scalar": 6}
        | {"num_hidden_layers": 4, "layer_types": ["full_attention", "sliding_attention"] * 2},
    ),
}
GELU = torch.nn.functional.gelu
NORMS = 1.2e-7  # Gemma's are 1 + weight there, which rounds
CONVERSATION = [
    {"role": "user", "content": "The small cat 123?"},
    {"role": "assistant", "content": "is sleeping. é😀"},
    {"role": "user", "content": " And\n二人 "},
]


class Exported(NamedTuple):
    name: str
    run: Path
    file: Path  # in float32


def own_run(folder: Path, *, preset: str = "llama-nano", kind: Any = "bpe", loud: bool = True, **changes: Any) -> Path:
    """A chat model with a vocabulary that was trained here."""
    tokenizer = train_tokenizer(LINES * 3, kind=kind, size=320, extra=["<EOQ>"])
    row = replace(LANGUAGE_MODELS[preset], n_layers=2, n_heads=4, vocab_size=tokenizer.size)
    sizes: dict[str, Any] = {"d_model": 32, "d_ff": 64, "context_length": 64} | changes
    model = make_model(lm_config(replace(row, **sizes)))
    if loud:
        make_loud(model, norm=1.0)
    about = {"task": "generate", "chat": True, "before": [], "end": tokenizer.eos, "forbidden": [0, 1, 2]}
    beside = tokenizer_files(tokenizer, tokenizer) | {"chat_template.jinja": QUESTION_ANSWER.encode()}
    write_model(folder, model, parameters(model), beside | {"task.json": about})
    return folder


@pytest.fixture(scope="module", params=["own", "own gpt", *MAKERS])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return exported(request.param, tmp_path_factory.mktemp("gguf"))


def exported(name: str, folder: Path) -> Exported:
    torch.manual_seed(2)
    if name in ("own", "own gpt"):
        own_run(folder / "run", preset="llama-nano" if name == "own" else "gpt-nano")
    else:
        make, options = MAKERS[name]
        make(folder / "hub", **options)
        import_model(folder / "hub", folder / "run")
    export_model(folder / "run", folder / "out", to="gguf")
    return Exported(name, folder / "run", folder / "out" / exchange.FILE)


def test_what_comes_back_is_the_same_model(made: Exported, tmp_path: Path) -> None:
    """By the tokenizer that the file holds as a whole, and by the one that is made of its tokens."""
    metadata, _ = file.read(made.file)
    whole = tokens.files_in(metadata, where="")
    of_tokens = tokens.files_in({key: value for key, value in metadata.items() if key != tokens.WHOLE}, where="")
    import_model(made.file, tmp_path / "run")
    config, tensors = read_model(tmp_path / "run")
    expected_config, expected = read_model(made.run)
    assert config == expected_config or made.name.startswith("own")  # where the width of a head is not written out
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(tensors[name], tensor, rtol=0, atol=NORMS if "gemma" in made.name else 0)
    for name in ("task.json", "special_tokens.json", "chat_template.jinja"):
        if (made.run / name).is_file():
            assert (tmp_path / "run" / name).read_text() == (made.run / name).read_text(), name
    ours, again = LanguageModel.load(made.run), LanguageModel.load(tmp_path / "run")
    ids = torch.tensor([expected_ids := ours.tokenizer.encode_whole(TEXTS)[0]])
    assert len(expected_ids) > 3
    if made.name != "own gpt":  # which has the exact GELU
        torch.testing.assert_close(again.model(ids), ours.model(ids), rtol=1e-4, atol=1e-4)
    assert again.tokenizer.encode_whole(TEXTS) == ours.tokenizer.encode_whole(TEXTS)
    assert again.ends == ours.ends
    assert whole.keys() == of_tokens.keys()
    inner = tokenizers.Tokenizer.from_str(of_tokens[tokens.TOKENIZER].decode())
    plain = [text for text in TEXTS if not (text.startswith(" ") and "m" in made.name)]  # theirs gets a second space
    for text, ids in zip(plain, ours.tokenizer.encode_whole(plain), strict=True):
        assert inner.encode(text, add_special_tokens=False).ids == ids
        assert inner.decode(ids) == ours.tokenizer.decode_whole(ids)


def test_the_librarys_reader_finds_the_weights(made: Exported) -> None:
    reader = gguf.GGUFReader(made.file)
    assert reader.get_field("general.architecture").contents() in {
        row.name for row in architectures.ARCHITECTURES.values()
    }
    _, stored = file.read(made.file)
    assert [tensor.name for tensor in reader.tensors] == [*stored]
    for tensor in reader.tensors:
        assert tensor.tensor_type == gguf.GGMLQuantizationType.F32
        assert numpy.array_equal(tensor.data, stored[tensor.name].unpacked().numpy())
    metadata, _ = file.read(made.file)
    for key, value in metadata.items():
        assert plain(reader.get_field(key).contents()) == plain(value), key


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, numpy.ndarray) else value


@pytest.mark.parametrize(("weights", "kinds"), [("f16", {"F16"}), ("int8", {"Q8_0"}), ("int4", {"Q4_0", "Q8_0"})])
def test_weights_in_fewer_bits(weights: str, kinds: set[str], tmp_path: Path) -> None:
    made = exported("qwen3", tmp_path)
    told = export_model(made.run, tmp_path / weights, to="gguf", quantize=weights)
    reader = gguf.GGUFReader(tmp_path / weights / exchange.FILE)
    assert {tensor.tensor_type.name for tensor in reader.tensors if len(tensor.shape) > 1} == kinds
    assert {tensor.tensor_type.name for tensor in reader.tensors if len(tensor.shape) == 1} == {"F32"}
    stored = file.read(tmp_path / weights / exchange.FILE)[1]
    _, whole = file.read(made.file)
    for tensor in reader.tensors:
        found = stored[tensor.name].unpacked()
        assert numpy.array_equal(found, gguf.dequantize(tensor.data, tensor.tensor_type))
        expected = whole[tensor.name].unpacked()
        assert (found - expected).norm() < (0.12 if weights == "int4" else 0.01) * expected.norm()
    assert told.difference is not None
    assert 1e-4 < told.difference < 5


def test_every_type_of_blocks(tmp_path: Path) -> None:
    draw = numpy.random.default_rng(0)
    for kind, (block, size) in gguf.GGML_QUANT_SIZES.items():
        data = draw.integers(256, size=(4, 2 * size), dtype=numpy.uint8)
        writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
        writer.add_tensor_info("x", (4, 2 * block), numpy.dtype(numpy.float32), data.nbytes, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.write_tensor_data(data)
        writer.close()
        try:
            with numpy.errstate(all="ignore"):
                expected = gguf.dequantize(data, kind)
        except NotImplementedError:
            with pytest.raises(InputError, match=f"the tensor 'x' is of the type {kind.name}, which is not read"):
                file.read(tmp_path / "x.gguf")
            continue
        found = file.read(tmp_path / "x.gguf")[1]["x"].unpacked().numpy()
        assert found.shape == (4, 2 * block)
        assert numpy.array_equal(found, expected, equal_nan=True), kind.name


def test_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = own_run(tmp_path / "run")
    assert heed("export", run, "--to", "gguf", "--weights", "int8", "--out", tmp_path / "out", "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["family"], told["files"]) == ("llama", ["model.gguf"])
    assert heed("import", tmp_path / "out" / "model.gguf", "--out", tmp_path / "again") == 0
    assert isinstance(heedful.load(tmp_path / "again"), ChatModel)
    for words in (["--to", "gguf", "--weights", "int3"], ["--to", "hf", "--weights", "int8"]):
        assert heed("export", run, *words, "--out", tmp_path / "none") == 2
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window": 8}, "llama in llama.cpp cannot hold model.stack.block.window = 8"),
        ({"kind": "unigram"}, "a tokenizer of Unigram"),
        ({"kind": "bytes"}, "a tokenizer without merges"),
    ],
)
def test_what_llama_cpp_does_not_have_is_refused_by_name(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    run = own_run(tmp_path / "run", **options)
    with pytest.raises(InputError, match=told):
        export_model(run, tmp_path / "out", to="gguf")
    assert not (tmp_path / "out").exists()


def test_other_families_are_refused_by_name(tmp_path: Path) -> None:
    bert_folder(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "run")
    with pytest.raises(InputError, match="BERT is not exported to GGUF, but GPT-2, LLaMA"):
        export_model(tmp_path / "run", tmp_path / "out", to="gguf")


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingError, match="gguf is not installed"):
        export_model(own_run(tmp_path / "run"), tmp_path / "out", to="gguf")


@pytest.mark.parametrize("kind", GGUF_FILES)
def test_hostile_files_are_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(GGUF_FILES[kind])
    tracemalloc.start()
    try:
        with pytest.raises(HeedError) as raised:
            import_model(path, tmp_path / "run")
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
    assert "\n" not in f"{raised.value} {raised.value.fix}"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = own_run(tmp_path_factory.mktemp("small") / "run")
    export_model(run, run.parent / "out", to="gguf")
    return run.parent / "out" / exchange.FILE


def test_a_file_that_was_cut_or_changed_is_refused_or_read(small: Path, tmp_path: Path) -> None:
    data, path, draw = small.read_bytes(), tmp_path / "x.gguf", random.Random(0)
    begin = data.index(b"general.architecture")
    metadata = data.index(b"blk.0.attn_q.weight")
    cut = [
        data[:size] for size in (*range(0, metadata, metadata // 60), *range(metadata, len(data) - 64, len(data) // 20))
    ]
    for whole in cut:
        path.write_bytes(whole)
        with pytest.raises(StorageError, match="not a sound GGUF file"):
            exchange.read_model(path)
    for _ in range(150):
        place = draw.randrange(begin, metadata + 2000)
        path.write_bytes(data[:place] + bytes([draw.randrange(256)]) + data[place + 1 :])
        told = ""
        try:
            exchange.read_model(path)
        except HeedError as error:
            told = f"{error} {error.fix}"
        assert "\n" not in told


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another architecture": ({"general.architecture": "mamba"}, "unknown architecture 'mamba'"),
    "an adapter": ({"general.type": "adapter"}, "general.type is 'adapter'"),
    "a part": ({"split.count": 2}, "split.count is 2"),
    "an unknown key": ({"llama.logit_scale": 2.0}, "unknown key 'llama.logit_scale'"),
    "an unknown key of the tokenizer": ({"tokenizer.ggml.byte_order": 1}, "unknown key 'tokenizer.ggml.byte_order'"),
    "no layers": ({"llama.block_count": 0}, "llama.block_count is 0"),
    "many layers": ({"llama.block_count": 2**31}, "llama.block_count is 2147483648"),
    "more layers": ({"llama.block_count": 100_000}, "."),
    "a text": ({"llama.embedding_length": "x"}, "llama.embedding_length is 'x'"),
    "other heads": ({"llama.attention.head_count": 3}, "."),
    "no heads": ({"llama.attention.head_count": 0}, "llama.attention.head_count is 0"),
    "two widths": ({"llama.attention.key_length": 4}, "llama.attention.(value|key)_length"),
    "other tokens": ({"tokenizer.ggml.tokens": ["a", "b"]}, "no sound tokenizer"),
    "tokens alike": ({"tokenizer.ggml.tokens": ["a"] * 200}, "two tokens are spelled alike"),
    "tokens of numbers": ({"tokenizer.ggml.tokens": [1, 2]}, "tokens has numbers"),
    "another split": ({"tokenizer.ggml.pre": "bloom"}, "pre is 'bloom'"),
    "another tokenizer": ({"tokenizer.ggml.model": "bert"}, "model is 'bert'"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_metadata_that_do_not_fit_are_refused(kind: str, small: Path, tmp_path: Path) -> None:
    changed, told = WRONG[kind]
    metadata, stored = file.read(small)
    metadata = {key: plain(value) for key, value in metadata.items()} | changed
    tensors = {name: packed.unpacked() for name, packed in stored.items()}
    name = metadata.pop("general.architecture")
    file.write(tmp_path / "x.gguf", name, metadata, tensors, lambda *_: "F32")
    with pytest.raises(HeedError, match=told) as raised:
        exchange.read_model(tmp_path / "x.gguf")
    assert "\n" not in f"{raised.value} {raised.value.fix}"


def test_more_than_the_memory_is_refused_before_it_is_read(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_folder, "memory_size", lambda: 1000)
    with pytest.raises(StorageError, match="GB in float32, and this process may have"):
        exchange.read_model(small)


def llama(path: Path) -> Any:
    """The model by llama.cpp, which keeps keys and values in float32 too."""
    library = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    return library.Llama(str(path), n_ctx=64, logits_all=True, verbose=False, n_threads=1, type_k=0, type_v=0)


def gelu_of_16_bits(x: torch.Tensor, approximate: str = "tanh") -> torch.Tensor:
    """As llama.cpp's, which is a table of 16-bit numbers."""
    return GELU(x.half().float(), approximate="tanh").half().float()


def served(run: Path) -> LanguageModel:
    return (ChatModel if (run / "chat_template.jinja").is_file() else LanguageModel).load(run)


def test_llama_cpp_says_the_same(made: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tokens, logits, greedy texts to their end, and prompts of conversations."""
    other, ours = llama(made.file), served(made.run)
    monkeypatch.setattr(torch.nn.functional, "gelu", gelu_of_16_bits)
    texts = [text for text in TEXTS if not (text.startswith(" ") and spaced(made))]
    for text, ids in zip(texts, ours.tokenizer.encode_whole(texts), strict=True):
        assert other.tokenize(text.encode(), add_bos=True, special=True) == [*ours.before, *ids]
    tables = dict.fromkeys(("gpt2", "gemma", "gemma 2", "gemma 3"), 1e-3)  # a number may be rounded up here, down there
    rounding = (tables | {"own gpt": 2e-2, "qwen2, yarn": 1e-4}).get(made.name, 1e-5)  # the first has the exact GELU
    for text, (said,) in zip(texts[:6], ours.generate(texts[:6], tokens=12, temperature=0.0), strict=True):
        ids = [*ours.before, *ours.tokenizer.encode_whole([text])[0]]
        found, prompt = [*ids, *said.tokens], len(ids)
        other.reset()
        other.eval(ids)
        for token in said.tokens:
            other.eval([token])
        theirs = torch.from_numpy(numpy.array(other.scores[: len(found)]))
        with torch.no_grad():
            expected = ours.model(torch.tensor([found]))[0]
        torch.testing.assert_close(theirs, expected, rtol=0, atol=rounding * float(expected.abs().max()))
        theirs[:, [*ours.forbidden]] = -torch.inf
        greedy = theirs[prompt - 1 :].argmax(-1).tolist()
        assert greedy[: len(said.tokens)] == said.tokens
        assert len(said.tokens) == 12 or greedy[len(said.tokens)] in ours.ends
    if isinstance(ours, ChatModel):
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        template = other.metadata["tokenizer.chat_template"]
        bos, eos = (other._model.token_get_text(each) for each in (other.token_bos(), other.token_eos()))
        written = Jinja2ChatFormatter(template, eos, bos, add_generation_prompt=True)(messages=CONVERSATION).prompt
        assert written == ours.prompt(CONVERSATION)
        if not spaced(made):
            ids = other.tokenize(written.encode(), add_bos=False, special=True)
            assert ids == ours.written.prompt(CONVERSATION)


def test_llama_cpp_as_the_engine_writes_the_same(made: Exported, tmp_path: Path) -> None:
    """Greedily and drawn, in one piece and as a stream, also beyond the context; and several at once, of which some
    end before others enter."""
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    kind = type(served(made.run))
    run = Path(shutil.copytree(made.run, tmp_path / "run"))
    same = made.name not in ("gpt2", "gemma", "gemma 2", "gemma 3", "own gpt", "qwen2, yarn")
    own, chosen, other = (
        with_engine(kind.load(run), run, engine=name, weights="float32") for name in ("own", "auto", "llama.cpp")
    )
    assert (own.engine, chosen.engine is not None, other.engine is not None) == (None, same, True)
    if not same:
        return
    for text in TEXTS[:4]:
        for most, how in (
            (12, {"temperature": 0.0}),
            (12, {"seed": 3, "top_p": 0.9}),
            (2 * own.context, {"seed": 1}),
        ):
            (theirs,), (ours,) = (model.generate(text, tokens=most, **how) for model in (other, own))
            assert theirs.tokens == ours.tokens
            assert theirs.logprobs == pytest.approx(ours.logprobs, abs=1e-3)
            assert "".join(other.stream(text, tokens=most, **how)) == ours.text
    several = {"tokens": 6, "seed": 2, "samples": 2, "batch": 4}
    for theirs, ours in zip(
        chain(*other.generate(TEXTS[:3], **several)), chain(*own.generate(TEXTS[:3], **several)), strict=True
    ):
        assert theirs.tokens == ours.tokens
        assert theirs.logprobs == pytest.approx(ours.logprobs, abs=1e-3)
    if isinstance(other, ChatModel) and isinstance(own, ChatModel):
        assert other.chat("The cat?", tokens=9, seed=4).content == own.chat("The cat?", tokens=9, seed=4).content


def test_served_by_llama_cpp(tmp_path: Path) -> None:
    """More texts than rows get what each gets alone, and other questions are answered as ever."""
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    run = own_run(tmp_path / "run")
    limits = Limits(rows=2)
    own, theirs, bits = (
        open_engine(run, limits=limits),
        open_engine(run, engine="llama.cpp", limits=limits),
        open_engine(run, engine="llama.cpp", weights="int8", limits=limits),
    )
    assert (own.engine, theirs.engine, bits.engine) == ("own", "llama.cpp", "llama.cpp")
    texts, settings = TEXTS[:5], {"tokens": 5, "sampling": {"seed": 2}}
    ours, found, few = (asyncio.run(each.ask("generate", texts, settings)) for each in (own, theirs, bits))
    assert [record["text"] for (record,) in found] == [record["text"] for (record,) in ours]
    assert len(few) == len(texts)
    asked = asyncio.run(theirs.ask("score", texts[:2]))
    assert asked == asyncio.run(own.ask("score", texts[:2]))
    for each in (own, theirs, bits):
        each.close()
    assert heedful.load(run, LanguageModel, engine="llama.cpp").engine is not None


def test_the_engines_file_follows_the_run(tmp_path: Path) -> None:
    """It is made once, in few bits where they are asked for, and again when the run has changed."""
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    run = own_run(tmp_path / "run", loud=False)
    with_engine(LanguageModel.load(run), run, engine="llama.cpp", weights="int8")
    path = run / "gguf-int8" / exchange.FILE
    kinds = {packed.kind.name for packed in file.read(path)[1].values()}
    assert kinds == {"F32", "Q8_0"}
    made = path.stat().st_mtime_ns
    with_engine(LanguageModel.load(run), run, engine="llama.cpp", weights="int8")
    assert path.stat().st_mtime_ns == made
    shutil.copy(own_run(tmp_path / "other") / "model.safetensors", run)
    with_engine(LanguageModel.load(run), run, engine="llama.cpp", weights="int8")
    assert path.stat().st_mtime_ns != made


def test_without_the_library_its_engine_is_refused_and_auto_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = own_run(tmp_path / "run")
    engines.library.cache_clear()
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    model = LanguageModel.load(run)
    assert with_engine(model, run, engine="auto", weights="float32") is model
    with pytest.raises(MissingError, match="llama-cpp-python is not installed") as raised:
        with_engine(model, run, engine="llama.cpp", weights="float32")
    assert "pip install" in str(raised.value.fix)
    with pytest.raises(InputError, match="--engine"):
        with_engine(model, run, engine="llama", weights="float32")


def spaced(made: Exported) -> bool:
    """Whether llama.cpp puts a second space before a text that begins with one."""
    return bool(file.read(made.file)[0].get("tokenizer.ggml.add_space_prefix"))


def test_a_file_of_llama_cpps_own_quantiser(tmp_path: Path) -> None:
    """Its blocks of several kinds come in, and say what they say there."""
    library = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    own_run(tmp_path / "run", loud=False, d_model=256, d_ff=256)
    export_model(tmp_path / "run", tmp_path / "out", to="gguf")
    options = library.llama_model_quantize_default_params()
    options.ftype = library.LLAMA_FTYPE_MOSTLY_Q4_K_M
    source, made = (str(path).encode() for path in (tmp_path / "out" / exchange.FILE, tmp_path / "small.gguf"))
    assert library.llama_model_quantize(source, made, options) == 0
    kinds = {packed.kind.name for packed in file.read(tmp_path / "small.gguf")[1].values()}
    assert kinds == {"F32", "Q4_K", "Q6_K"}
    import_model(tmp_path / "small.gguf", tmp_path / "again")
    ours, other = LanguageModel.load(tmp_path / "again"), llama(tmp_path / "small.gguf")
    ids = [*ours.before, *ours.tokenizer.encode_whole(LINES[:1])[0]]
    other.eval(ids)
    theirs = torch.from_numpy(numpy.array(other.scores[: len(ids)]))
    with torch.no_grad():
        expected = ours.model(torch.tensor([ids]))[0]
    # There inputs are rounded to 8 bits before each product.
    torch.testing.assert_close(theirs, expected, rtol=0, atol=0.03 * float(expected.abs().max()))
    assert (theirs.argmax(-1) == expected.argmax(-1)).float().mean() > 0.9
