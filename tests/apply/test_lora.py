"""Low-rank adapters: nothing is changed at first, nothing else learns, what is saved is the sum, and PEFT reads it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

import heedful
from heedful.apply.lora import DOWN, UP, LoRAConfig, LowRankLinear, adapt, adapters, merged
from heedful.data.parts import Parts
from heedful.data.text.documents import Documents
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import LMSize, TransformerSize, lm_config, translator_config
from heedful.run.events import Note, Trained
from heedful.run.folder import parameters, read_adapters, write_adapters
from heedful.run.recipe import override
from heedful.run.restore import restore_model
from heedful.store.model import read_model
from heedful.tasks.recipes import build
from heedful.verbs.exchange import export_model, import_model
from heedful.verbs.train import planned, train
from hub import LINES, gpt2_folder, llama_folder

ALL = ("query", "key", "value", "out", "up", "gate", "down")
SIZES: dict[str, Any] = {"d_model": 32, "n_heads": 4, "dropout": 0.1}
BOTH = TransformerSize(d_ff=64, encoder_layers=2, decoder_layers=2, order="pre", **SIZES)
CONFIGS = {
    "decoder": (lm_config(LMSize(n_layers=2, vocab_size=37, context_length=24, **SIZES)), 1),
    "both": (translator_config(BOTH, source_vocab=37, target_vocab=37, joint=True), 2),
}


def said(model: nn.Module, count: int) -> Tensor:
    torch.manual_seed(3)
    return model(*(torch.randint(1, 37, (3, 11)) for _ in range(count)))


@pytest.mark.parametrize("name", CONFIGS)
def test_adapters_begin_as_nothing_and_alone_learn(name: str) -> None:
    config, count = CONFIGS[name]
    model = make_model(config).eval()
    before = said(model, count)
    adapt(model, LoRAConfig(rank=3, alpha=6.0, targets=ALL))
    assert torch.equal(said(model, count), before)
    said(model, count).square().sum().backward()
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learning == {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert learning == adapters(parameters(model)).keys()
    blocks = config.stack.n_layers if count == 1 else config.encoder.n_layers + config.decoder.n_layers
    maps = blocks * 6 + (count - 1) * config.decoder.n_layers * 4 if count == 2 else blocks * 6
    assert len(learning) == 2 * maps


@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_saved_is_the_sum(name: str) -> None:
    config, count = CONFIGS[name]
    low = LoRAConfig(rank=3, alpha=6.0, targets=("query", "down"))
    model, plain = make_model(config).eval(), make_model(config).eval()
    adapt(model, low)
    for module in model.modules():
        if isinstance(module, LowRankLinear):
            nn.init.normal_(module.lora_b, std=0.3)
    whole = merged(parameters(model), low)
    assert whole.keys() == parameters(plain).keys()
    plain.load_state_dict(whole, strict=False)
    before, after = said(model, count), said(plain, count)
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5)


def test_a_model_without_such_maps_is_refused() -> None:
    with pytest.raises(InputError, match="no query in the blocks"):
        adapt(nn.Sequential(nn.Linear(2, 2)), LoRAConfig(rank=1, alpha=1.0, targets=("query",)))


@pytest.fixture(scope="module")
def documents() -> Documents:
    texts = [f"{line} {line[::-1]} {number}." for number in range(12) for line in LINES]
    return Documents(texts[8:], texts[:8], {}, "made", (), ())


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    torch.manual_seed(1)
    llama_folder(folder / "theirs", num_key_value_heads=2)
    import_model(folder / "theirs", folder / "run")
    return folder / "run"


def recipe(base: Path, *settings: str) -> Any:
    made = build({"task": "generate", "start_from": str(base)}, where="test")
    plan = ("lora=3", "steps=6", "save_every=2", "tokens=96", "lr=0.01", "warmup=1", "optimizer=adam", "eval_every=3")
    return override(made, [*(f"train.{key}" for key in plan), *settings])


def run(recipe: Any, out: Path, documents: Documents, *, until: int = 100) -> None:
    for event in train(recipe, out, corpus=documents, resume=(out / "recipe.yaml").exists()):
        if isinstance(event, Trained) and event.step.step == until:
            return


@pytest.fixture(scope="module")
def tuned(base: Path, documents: Documents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "run"
    run(recipe(base), out, documents)
    return out


def test_a_training_changes_matrices_by_low_rank_and_nothing_else(base: Path, tuned: Path) -> None:
    (_, before), (_, after) = read_model(base), read_model(tuned)
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if name.split(".")[-2] in ALL}
    for name in changed:
        assert torch.linalg.matrix_rank(after[name] - before[name], rtol=1e-4) <= 3
    kept = safetensors.torch.load_file(tuned / "checkpoints" / "step-6" / "weights.safetensors")
    assert kept.keys() == adapters(kept).keys()
    assert "low-rank adapters of rank 3" in (tuned / "README.md").read_text()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_interrupted_training_ends_in_the_same_weights(
    base: Path, documents: Documents, tmp_path: Path, precision: str
) -> None:
    plan = recipe(base, f"train.precision={precision}")
    run(plan, tmp_path / "straight", documents)
    run(plan, tmp_path / "broken", documents, until=5)
    run(plan, tmp_path / "broken", documents)
    one, other = (read_model(tmp_path / name)[1] for name in ("straight", "broken"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_new_head_is_learnt_as_a_whole(base: Path, tmp_path: Path) -> None:
    rows = "".join(f"{line}\t{'ab'[number % 2]}\n" for number in range(12) for line in LINES)
    (tmp_path / "rows.tsv").write_text(rows)
    plan, told = planned(
        "classify",
        tmp_path / "run",
        {"start_from": base, "data.path": tmp_path / "rows.tsv", "train.lora": 2},
        settings=["train.steps=2"],
    )
    assert any("adapters are tuned with" in line for line in told)
    notes = [event.text for event in train(plan, tmp_path / "run") if isinstance(event, Note)]
    assert any("new to the model, so the vectors of all tokens are learnt" in note for note in notes)
    kept = safetensors.torch.load_file(tmp_path / "run" / "checkpoints" / "step-2" / "weights.safetensors")
    whole = {name for name in kept if not name.endswith((DOWN, UP))}
    assert whole == {"lm.embed.tokens.weight", "out.weight", "out.bias"}
    model = heedful.load(tmp_path / "run")
    torch.manual_seed(plan.train.seed)
    ends, drawn = (own.lm.embed.tokens.weight[-1] for own in (model.model, make_model(model.model.config)))
    assert not torch.equal(ends, drawn)  # of the token where a text ends, which the language model did not have
    assert model.classify([LINES[0]])
    with pytest.raises(InputError, match="it has a head of its own"):
        export_model(tmp_path / "run", tmp_path / "adapters", to="peft")


def test_a_pooler_that_an_encoder_did_not_have_is_learnt_too(run_of: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("".join(f"{line[:6]}\t{'ab'[n % 2]}\n" for n in range(12) for line in LINES))
    given = {"start_from": run_of("fill"), "data.path": tmp_path / "rows.tsv", "train.lora": 2}
    plan, _ = planned("classify", tmp_path / "run", given, settings=["train.steps=2", "train.eval_every=2"])
    assert [*train(plan, tmp_path / "run")]
    kept = safetensors.torch.load_file(tmp_path / "run" / "checkpoints" / "step-2" / "weights.safetensors")
    whole = {name for name in kept if not name.endswith((DOWN, UP))}
    assert whole == {"encoder.pooler.bias", "encoder.pooler.weight", "out.bias", "out.weight"}
    assert float(kept["encoder.pooler.bias"].abs().max()) > 0  # it began as zeros


@pytest.mark.parametrize("settings", [("start_from=''",), ("train.optimizer=muon",)])
def test_what_it_is_not_for_is_refused(base: Path, tmp_path: Path, documents: Documents, settings: Any) -> None:
    with pytest.raises(InputError, match=r"train\.lora is for a model"):
        run(recipe(base, *settings), tmp_path / "run", documents)
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # which peft asks for
@pytest.mark.parametrize("tied", [True, False])
def test_new_tokens_are_learnt_as_a_whole_and_peft_reads_them(tied: bool, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    llama_folder(tmp_path / "theirs", tie_word_embeddings=tied)
    import_model(tmp_path / "theirs", tmp_path / "base")
    talks = [({"role": "user", "content": line}, {"role": "assistant", "content": line[:4]}) for line in LINES * 6]
    corpus = Parts(talks, talks[:3], {}, "made")
    template = {"template": "question-answer"}
    plan = {"lora": 2, "steps": 6, "save_every": 3, "tokens": 96, "lr": 0.01, "warmup": 1, "eval_every": 6}
    plan |= {"optimizer": "adam", "precision": "fp32"}
    made = build({"task": "chat", "start_from": str(tmp_path / "base"), "data": template, "train": plan}, where="test")
    told = [event.text for event in train(made, tmp_path / "run", corpus=corpus) if isinstance(event, Note)]
    assert any(note.startswith("<EOQ>: new to the model, so the vectors of all tokens are learnt") for note in told)
    (_, before), (_, after) = read_model(tmp_path / "base"), read_model(tmp_path / "run")
    rows = len(before["embed.tokens.weight"])
    assert len(after["embed.tokens.weight"]) == rows + 1
    kept = safetensors.torch.load_file(tmp_path / "run" / "adapters.safetensors")
    assert {name for name in kept if not name.endswith((DOWN, UP))} == {
        "embed.tokens.weight",
        *([] if tied else ["head.weight"]),
    }
    for event in train(made, tmp_path / "cut", corpus=corpus):
        if isinstance(event, Trained) and event.step.step == 5:
            break
    assert [*train(made, tmp_path / "cut", corpus=corpus)]
    assert all(torch.equal(own, after[name]) for name, own in read_model(tmp_path / "cut")[1].items())

    export_model(tmp_path / "run", tmp_path / "adapters", to="peft")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "theirs")
    theirs.resize_token_embeddings(rows + 1)
    theirs = PeftModel.from_pretrained(theirs, tmp_path / "adapters")
    ids = torch.tensor([[3, rows, 9, 4, rows, 7]])
    ours = heedful.load(tmp_path / "run").model
    for model in (theirs, theirs.merge_and_unload()):
        expected = model(input_ids=ids).logits.detach()
        torch.testing.assert_close(ours(ids), expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # which peft asks for
def test_peft_reads_the_adapters_and_has_the_same_gradients(base: Path, tuned: Path, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    export_model(tuned, tmp_path / "adapters", to="peft")
    theirs = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(base.parent / "theirs"), tmp_path / "adapters", is_trainable=True
    )
    ours = heedful.load(tuned).model
    ids = torch.randint(1, 200, (2, 9))
    found, expected = ours(ids), theirs(input_ids=ids).logits.detach()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))

    kept = safetensors.torch.load_file(tuned / "adapters.safetensors")
    model = make_model(ours.config)
    model.load_state_dict(read_model(base)[1], strict=False)
    adapt(model, LoRAConfig(rank=3, alpha=6.0, targets=ALL))
    model.load_state_dict(kept, strict=False)
    model.double()(ids).logsumexp(-1).sum().backward()
    theirs.double()(input_ids=ids).logits.logsumexp(-1).sum().backward()
    own = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    other = [parameter.grad for parameter in theirs.parameters() if parameter.grad is not None]
    assert len(own) == len(other) == len(kept)
    for gradient in own.values():
        alike = [
            float((gradient - each).abs().max() / each.abs().max()) for each in other if each.shape == gradient.shape
        ]
        assert min(alike) < 1e-5  # their norms stay in float32


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # which peft asks for
def test_the_adapters_of_a_translator_follow_the_order_of_its_features_there(tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForSeq2SeqLM

    pairs = [f"{line} {number}\t{line[::-1]} {number}\n" for number in range(12) for line in LINES]
    (tmp_path / "pairs.tsv").write_text("".join(pairs))
    size = ["model.d_model=16", "model.d_ff=24", "model.n_heads=2", "model.encoder_layers=1", "model.decoder_layers=2"]
    plan = ["train.steps=3", "train.tokens=200", "train.lr=0.05", "train.warmup=1", "train.precision=fp32"]
    begun = {"start_from": tmp_path / "base", "train.lora": 2}
    for name, settings, more in (("base", size, {}), ("run", [], begun), ("less", ["model.decoder_layers=1"], begun)):
        path = {"data.path": tmp_path / "pairs.tsv", "data.source": "1", "data.target": "2"}
        made, _ = planned("translate", tmp_path / name, {**path, **more}, settings=[*settings, *plan])
        assert [*train(made, tmp_path / name)]
    for name, to in (("base", "hf"), ("run", "hf"), ("run", "peft")):
        export_model(tmp_path / name, tmp_path / f"{name}-{to}", to=to)
    with pytest.raises(InputError, match=r"decoder\.blocks\.1\..* is not that of .*base and the adapters"):
        export_model(tmp_path / "less", tmp_path / "none", to="peft")

    base, whole = (AutoModelForSeq2SeqLM.from_pretrained(tmp_path / f"{name}-hf") for name in ("base", "run"))
    ids = {"input_ids": torch.tensor([[5, 6, 7, 3]]), "decoder_input_ids": torch.tensor([[2, 8, 9]])}
    before, expected = (model.eval()(**ids).logits.detach() for model in (base, whole))
    found = PeftModel.from_pretrained(base, tmp_path / "run-peft").eval()(**ids).logits.detach()
    assert float((before - expected).abs().max()) > 1e-2
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


def test_what_the_hub_keeps_in_one_matrix_has_no_adapters_there(documents: Documents, tmp_path: Path) -> None:
    gpt2_folder(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "base")
    run(recipe(tmp_path / "base", "train.steps=1"), tmp_path / "run", documents)
    with pytest.raises(InputError, match="in one matrix with others"):
        export_model(tmp_path / "run", tmp_path / "adapters", to="peft")


def test_a_damaged_model_and_its_adapters_come_again(tuned: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(tuned, tmp_path / "run"))
    (run / "model.safetensors").write_bytes(b"")
    before = read_adapters(run)[0]
    write_adapters(run, {name: torch.zeros_like(value) for name, value in before.items()}, read_adapters(run)[1])
    made = restore_model(run, print)
    assert (made.step, made.same) == (6, True)
    one, other = read_model(tuned)[1], read_model(run)[1]
    assert all(torch.equal(one[name], other[name]) for name in one)
    again = read_adapters(run)[0]
    assert again.keys() == before.keys()
    assert all(torch.equal(value, again[name]) for name, value in before.items())
