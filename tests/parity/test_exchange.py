"""Runs made of tiny folders of the Hub, and folders made of runs: what they say is what transformers says.

Weights are loud (see `hub.py`); logits agree to 1e-5 of the largest, all else exactly.
"""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

import heedful
from commands import heed
from heedful.data.tokenizer import Kind
from heedful.decode.draws import penalties
from heedful.decode.search import beam as beam_search
from heedful.decode.settings import Sampling
from heedful.errors import InputError, MissingError, StorageError
from heedful.models import make_model
from heedful.models.presets import (
    lm_config,
)
from heedful.store.model import read_model
from heedful.tasks.generate.use import LanguageModel
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from hub import LINES, TEXTS, Imported, gpt2_folder, llama_folder
from ours import DECODERS, KINDS, own_run, own_tokenizer, same_model

MAKERS = {
    "gpt2": (gpt2_folder, {}),
    "llama": (llama_folder, {}),
    "llama, tied and grouped": (llama_folder, {"tie_word_embeddings": True, "num_key_value_heads": 2}),
}


Pair = Imported[LanguageModel]


@pytest.fixture(scope="module", params=sorted(MAKERS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    make, options = MAKERS[request.param]
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("hub") / "theirs"
    theirs, run = make(folder, **options), folder.parent / "run"
    assert heed("import", folder, "--out", run) == 0
    return Pair(theirs, AutoTokenizer.from_pretrained(folder), folder, run, heedful.load(run))


def close(ours: Tensor, theirs: Tensor) -> None:
    largest = float(theirs.abs().max())
    assert largest > 1, "weights are loud"
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * largest)


def prompt_ids(pair: Pair, text: str) -> list[int]:
    """As they begin with it; of an empty text only that which begins all."""
    return pair.tokenizer(text).input_ids or [pair.tokenizer.bos_token_id]


def continued(theirs: Any, ids: list[int], tokens: int, **options: Any) -> list[int]:
    whole = torch.tensor([ids])
    with torch.no_grad():
        made = theirs.generate(
            whole, attention_mask=torch.ones_like(whole), max_new_tokens=tokens, do_sample=False, **options
        )
    return made[0, len(ids) :].tolist()


CONTROLS = ["<|endoftext|>", "a<|endoftext|> b", "<s>", "x </s><s> y", "<unk>"]


def test_texts_have_their_ids(pair: Pair) -> None:
    own = pair.ours.tokenizer
    texts = [*TEXTS, *CONTROLS]
    expected = pair.tokenizer(texts).input_ids
    assert [[*pair.ours.before, *ids] for ids in own.encode_whole(texts)] == expected
    for ids in expected:
        assert own.decode_whole(ids) == pair.tokenizer.decode(ids, skip_special_tokens=True)


def test_logits(pair: Pair) -> None:
    with torch.no_grad():
        for text in TEXTS:
            ids = torch.tensor([prompt_ids(pair, text)])
            close(pair.ours.model(ids), pair.theirs(input_ids=ids, use_cache=False).logits)


def test_greedy_text_is_theirs(pair: Pair) -> None:
    prompts = ["", *TEXTS]
    ended = 0
    for text, (made,) in zip(prompts, pair.ours.generate(prompts, tokens=14, temperature=0.0), strict=True):
        ids = prompt_ids(pair, text)
        expected = continued(pair.theirs, ids, 14, pad_token_id=0)
        end = pair.theirs.generation_config.eos_token_id
        ended += end in expected
        spoken = expected[: expected.index(end)] if end in expected else expected
        assert made.tokens == spoken
        whole, begun = (pair.tokenizer.decode(row, skip_special_tokens=True) for row in ([*ids, *spoken], ids))
        if whole.startswith(begun):
            assert begun + made.text == whole


def test_the_repetition_penalty_is_of_the_prompt_too_as_theirs_is(pair: Pair) -> None:
    for penalty in (1.3, 3.0):
        how: dict[str, Any] = {"tokens": 12, "temperature": 0.0, "repetition_penalty": penalty}
        for text, (made,) in zip(TEXTS, pair.ours.generate(TEXTS, **how), strict=True):
            expected = continued(pair.theirs, prompt_ids(pair, text), 12, pad_token_id=0, repetition_penalty=penalty)
            end = pair.theirs.generation_config.eos_token_id
            assert made.tokens == (expected[: expected.index(end)] if end in expected else expected)


def test_a_beam_is_penalised_as_theirs_is(pair: Pair) -> None:
    """By the log-probabilities, and not by the logits."""
    end, changed = pair.theirs.generation_config.eos_token_id, 0
    options = {"num_beams": 3, "early_stopping": True, "pad_token_id": 0}
    for penalty in (1.3, 3.0):
        for text in TEXTS:
            ids = prompt_ids(pair, text)
            expected = continued(pair.theirs, ids, 12, repetition_penalty=penalty, **options)
            ((made,),) = beam_search(
                pair.ours.model,
                torch.tensor([ids[:-1]], dtype=torch.int64),
                bos=torch.tensor(ids[-1:]),
                eos=end,
                longest=12,
                beam=3,
                finished_first=False,
                rules=penalties(Sampling(repetition_penalty=penalty), ids, on_log_probabilities=True),
            )
            assert [*made.tokens] == (expected[: expected.index(end)] if end in expected else expected)
            changed += expected != continued(pair.theirs, ids, 12, **options)
    assert changed > 1


def test_likelihood_is_begun_with_their_first_token(pair: Pair) -> None:
    for text in TEXTS[:4]:
        (ids,) = pair.ours.tokenizer.encode_whole([text])
        whole = torch.tensor([[pair.theirs.config.bos_token_id, *ids]])
        with torch.no_grad():
            loss = pair.theirs(input_ids=whole, labels=whole).loss
        assert pair.ours.likelihood([text])[0].loss == pytest.approx(float(loss), rel=1e-5)


def test_its_laws_hold(pair: Pair) -> None:
    assert [law.name for law in check(pair.run) if not law.holds] == []
    assert [law.name for law in check(pair.run, TEXTS[4:7]) if not law.holds] == []


def test_there_and_back_and_there(pair: Pair, tmp_path: Path) -> None:
    assert heed("export", pair.run, "--to", "hf", "--out", tmp_path / "back") == 0
    back = AutoModelForCausalLM.from_pretrained(tmp_path / "back")
    assert type(back) is type(pair.theirs)
    state = back.state_dict()
    assert state.keys() == pair.theirs.state_dict().keys()
    assert all(torch.equal(state[name], value) for name, value in pair.theirs.state_dict().items())
    again = AutoTokenizer.from_pretrained(tmp_path / "back")
    assert again([*TEXTS, *CONTROLS]).input_ids == pair.tokenizer([*TEXTS, *CONTROLS]).input_ids
    for text in TEXTS[:3]:
        ids = prompt_ids(pair, text)
        assert continued(back, ids, 9) == continued(pair.theirs, ids, 9, pad_token_id=0)[: len(continued(back, ids, 9))]
    import_model(tmp_path / "back", tmp_path / "run")
    names = {path.name for path in pair.run.iterdir()}
    assert {path.name for path in (tmp_path / "run").iterdir()} == names
    for name in names - {"model.safetensors"}:
        assert (tmp_path / "run" / name).read_text() == (pair.run / name).read_text(), name
    tensors, expected = read_model(tmp_path / "run")[1], read_model(pair.run)[1]
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], value) for name, value in expected.items())


def test_what_is_imported_can_be_learnt_from(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("".join(f"{line}\n" for line in LINES * 8), encoding="utf-8")
    words = ["train", "generate", "--from", pair.run, "--data", tmp_path / "book.txt", "--out", tmp_path / "run"]
    assert heed(*words, "--set", "train.steps=2", "--set", "train.tokens=96", "--set", "train.lr=1e-5") == 0
    learnt = heedful.load(tmp_path / "run")
    assert (learnt.before, learnt.end) == ([pair.ours.tokenizer.bos], pair.ours.tokenizer.bos)
    assert learnt.tokenizer.encode_whole(TEXTS) == pair.ours.tokenizer.encode_whole(TEXTS)
    assert learnt.likelihood(LINES)[0].loss == pytest.approx(pair.ours.likelihood(LINES)[0].loss, abs=0.1)


# What is in the files


def rewrite(folder: Path, out: Path, change: Any, **options: Any) -> Path:
    """A copy of the folder with its tensors changed."""
    shutil.copytree(folder, out)
    tensors = safetensors.torch.load_file(out / "model.safetensors")
    safetensors.torch.save_file(change(tensors), out / "model.safetensors")
    return out


def test_shards(pair: Pair, tmp_path: Path) -> None:
    shutil.copytree(pair.folder, tmp_path / "shards")
    (tmp_path / "shards" / "model.safetensors").unlink()
    pair.theirs.save_pretrained(tmp_path / "shards", max_shard_size="10KB")
    assert len(list((tmp_path / "shards").glob("model-*.safetensors"))) > 2
    import_model(tmp_path / "shards", tmp_path / "run")
    assert same_model(tmp_path / "run", pair.run)
    index = tmp_path / "shards" / "model.safetensors.index.json"
    said = json.loads(index.read_text())
    name = next(name for name in said["weight_map"] if "h.1." in name or "layers.1." in name)
    for change, message in [
        ({"new": said["weight_map"][name]}, "the tensor 'new' is in no shard"),
        ({name: "../x"}, "`weight_map` does not say"),
        ({name: 5}, "`weight_map` does not say"),
    ]:
        index.write_text(json.dumps(said | {"weight_map": said["weight_map"] | change}))
        with pytest.raises(StorageError, match=message):
            import_model(tmp_path / "shards", tmp_path / "never")
    index.write_text(json.dumps({"weight_map": {k: v for k, v in said["weight_map"].items() if k != name}}))
    with pytest.raises(StorageError, match="is in a shard and not in the index"):
        import_model(tmp_path / "shards", tmp_path / "never")


def test_halves_are_read_as_singles(pair: Pair, tmp_path: Path) -> None:
    whole = read_model(pair.run)[1]
    for dtype in (torch.bfloat16, torch.float16):
        folder, run = tmp_path / f"{dtype}", tmp_path / f"run {dtype}"
        rewrite(pair.folder, folder, lambda all_, dtype=dtype: {name: t.to(dtype) for name, t in all_.items()})
        import_model(folder, run)
        for name, value in read_model(run)[1].items():
            assert value.dtype == torch.float32
            assert torch.equal(value, whole[name].to(dtype).float())


def test_tied_matrices_may_be_there_twice(pair: Pair, tmp_path: Path) -> None:
    if not pair.theirs.config.tie_word_embeddings:
        pytest.skip("not tied")
    name = next(name for name in pair.theirs.state_dict() if name.endswith(("wte.weight", "embed_tokens.weight")))
    twice = rewrite(pair.folder, tmp_path / "twice", lambda all_: all_ | {"lm_head.weight": all_[name].clone()})
    import_model(twice, tmp_path / "run")
    assert same_model(tmp_path / "run", pair.run)
    unequal = rewrite(pair.folder, tmp_path / "unequal", lambda all_: all_ | {"lm_head.weight": all_[name] + 1})
    with pytest.raises(InputError, match="differs from another that is our"):
        import_model(unequal, tmp_path / "never")


def test_the_bare_model_and_old_masks_are_read(tmp_path: Path) -> None:
    """As the Hub's gpt2 is: names without their first part, and the causal mask as a tensor."""
    gpt2_folder(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")

    def older(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        bare = {name.removeprefix("transformer."): value for name, value in tensors.items() if name != "lm_head.weight"}
        return bare | {f"h.{i}.attn.bias": torch.ones(1, 1, 48, 48).tril() for i in range(2)}

    import_model(rewrite(tmp_path / "theirs", tmp_path / "bare", older), tmp_path / "again")
    assert same_model(tmp_path / "again", tmp_path / "run")


def test_a_pickle_is_not_opened_and_the_fix_converts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever folder, and however its tensors lie."""
    folder = tmp_path / "it's $HOME [1]"
    gpt2_folder(folder)
    import_model(folder, tmp_path / "run")
    weights = folder / "model.safetensors"
    tensors = {
        name: tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor
        for name, tensor in safetensors.torch.load_file(weights).items()
    }
    torch.save(tensors, folder / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(InputError, match=r"pytorch_model\.bin: a pickle, which can run code") as caught:
        import_model(folder, tmp_path / "never")
    assert "\n" not in caught.value.fix
    python, flag, code, *more = shlex.split(caught.value.fix.removeprefix("where you trust it, "))
    assert (python, flag) == ("python", "-c")
    monkeypatch.setattr(sys, "argv", [flag, *more])
    exec(code, {})
    import_model(folder, tmp_path / "again")
    assert same_model(tmp_path / "again", tmp_path / "run")


def without(key: str) -> Any:
    return lambda tensors: {name: value for name, value in tensors.items() if key not in name}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda all_: all_ | {"transformer.h.0.extra": torch.zeros(1)},
            InputError,
            "no rule for their tensor 'transform",
        ),
        (without("h.1.ln_1.bias"), InputError, "nothing of theirs for our tensor"),
        ({"n_experts": 8}, InputError, "unknown key 'n_experts'"),
        ({"scale_attn_by_inverse_layer_idx": True}, InputError, "scale_attn_by_inverse_layer_idx is True"),
        ({"model_type": "gpt3"}, InputError, "unknown key 'gpt3'"),
        ({"model_type": None}, InputError, "unknown key 'None'"),
        ({"bos_token_id": 9999, "eos_token_id": None}, InputError, "neither a bos_token_id nor an eos_token_id"),
        ("tokenizer.json", MissingError, "no tokenizer"),
        ("model.safetensors", MissingError, "no weights"),
        ("config.json", MissingError, "no such file"),
    ],
)
def test_what_is_not_accounted_for_is_refused(tmp_path: Path, change: Any, error: Any, message: str) -> None:
    folder = tmp_path / "theirs"
    gpt2_folder(folder)
    if isinstance(change, str):
        (folder / change).unlink()
    elif isinstance(change, dict):
        (folder / "generation_config.json").unlink()
        (folder / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | change))
    else:
        folder = rewrite(folder, tmp_path / "changed", change)
    with pytest.raises(error, match=message):
        import_model(folder, tmp_path / "never")
    assert not [path for path in tmp_path.iterdir() if "never" in path.name]


def test_a_tokenizer_of_a_larger_model_is_refused(tmp_path: Path) -> None:
    gpt2_folder(tmp_path / "theirs")
    path = tmp_path / "theirs" / "tokenizer.json"
    inner = json.loads(path.read_text())
    inner["added_tokens"].append(inner["added_tokens"][0] | {"id": 301, "content": "<more>"})
    path.write_text(json.dumps(inner))
    with pytest.raises(InputError, match="'<more>' has the id 301, and the model 301 tokens"):
        import_model(tmp_path / "theirs", tmp_path / "never")


def test_a_template_that_the_tokenizer_is_asked_for(tmp_path: Path) -> None:
    gpt2_folder(tmp_path / "theirs")
    path = tmp_path / "theirs" / "tokenizer_config.json"
    names = {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": {"content": "<|endoftext|>"}}
    path.write_text(json.dumps(names))
    import_model(tmp_path / "theirs", tmp_path / "run")
    assert heedful.load(tmp_path / "run").before == [300]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"do_sample": True, "temperature": 0.6, "top_p": 0.9}, "temperature=0.6 top_k=50 top_p=0.9"),
        ({"do_sample": True, "top_k": 0}, ""),
        ({"temperature": 0.6, "top_p": 0.9, "early_stopping": True, "max_length": 20}, ""),  # it is greedy there
        ({"repetition_penalty": 1.1, "num_beams": 3, "suppress_tokens": [5]}, "repetition_penalty=1.1 num_beams=3"),
        (None, ""),
    ],
)
def test_how_their_texts_are_drawn_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: dict[str, Any] | None, told: str
) -> None:
    gpt2_folder(tmp_path / "theirs")
    path = tmp_path / "theirs/generation_config.json"
    path.unlink()
    if said is not None:
        path.write_text(json.dumps(said | {"eos_token_id": 300}))
    assert heed("import", tmp_path / "theirs", "--out", tmp_path / "run", "--json") == 0
    out, err = capsys.readouterr()
    note = f"generation_config.json says {told}: a run does not keep that, say it when you ask"
    assert json.loads(out)["notes"] == ([note] if told else [])
    assert (f"note: {note}\n" in err) == bool(told)


# What was made here

OTHERS = sorted(DECODERS.keys() - {"gpt2"})


@pytest.mark.parametrize(
    ("kind", "style"), [*((kind, "gpt2") for kind in KINDS), *(("bpe", style) for style in OTHERS)]
)
def test_language_models_of_ours_load_there(tmp_path: Path, kind: Kind, style: str) -> None:
    tokenizer = own_tokenizer(kind)
    net = make_model(lm_config(DECODERS[style], vocab_size=tokenizer.size))
    ours = own_run(tmp_path / "run", net, tokenizer, tokenizer, {"task": "generate"})
    export_model(tmp_path / "run", tmp_path / "hub")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "hub").eval()
    reader = AutoTokenizer.from_pretrained(tmp_path / "hub")
    texts = [*TEXTS, "", "<s>", "a</s> <unk><pad> <0x41>", "▁"]
    expected = [[2, *ids] for ids in tokenizer.encode_whole(texts)]
    assert reader(texts).input_ids == expected
    for ids in expected:
        assert reader.decode(ids, skip_special_tokens=True) == tokenizer.decode_whole(ids[1:])
        whole = torch.tensor([ids[:40]])
        with torch.no_grad():
            close(ours.model(whole), theirs(input_ids=whole, use_cache=False).logits)
    import_model(tmp_path / "hub", tmp_path / "again")
    again = heedful.load(tmp_path / "again")
    assert again.tokenizer.encode_whole(texts) == tokenizer.encode_whole(texts)
    for text in TEXTS[4:]:
        ((made,),) = ours.generate([text], tokens=12, temperature=0.0)
        ids = reader(text).input_ids
        spoken = continued(theirs, ids, 12)
        assert made.tokens == [token for token in spoken if token != 2]
        assert text + made.text == text + reader.decode(spoken, skip_special_tokens=True)
        assert again.generate([text], tokens=12, temperature=0.0)[0][0][:3] == made[:3]
