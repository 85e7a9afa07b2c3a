"""A plan before a training: against published trainings, against what a real step does, and its own laws."""

import json
from dataclasses import replace

import pytest
import torch

import heedful
from commands import heed
from heedful.apply.checkpointed import checkpoint_blocks
from heedful.errors import InputError
from heedful.look.operations import counter
from heedful.models import make_model, preset
from heedful.run import plan as planning
from heedful.run.events import Note
from heedful.run.passes import BatchShape, Kept, MadeBatches, Pass, passed
from heedful.run.plan import SHARDS, Machine, Setting, machines, memory, nearest, plan
from heedful.tasks import TASKS
from heedful.tasks.recipes import recipe as made_recipe
from heedful.training.ranks import Ranks
from heedful.verbs.plan import amount_of

COUNTED = ("operations", "repeated", "kept", "kept_inputs", "parameters", "matrices")
LLAMA = {"style": "llama", "vocab_size": 32000, "context_length": 2048, "tied": False, "kv_heads": None}
NANOCHAT = LLAMA | {"vocab_size": 65536}  # its MLP is as large, with two matrices of four widths


def deep(name: str, shape: BatchShape, precision: str = "bf16", **changes: object) -> Pass:
    """A pass through a model of many equal layers, by those of one and of two."""
    layers = int(str(changes.pop("n_layers", 0))) or 6
    keys = ("encoder_layers", "decoder_layers") if name.startswith("transformer") else ("n_layers",)
    one, two = (
        passed(preset(name, changes=changes | dict.fromkeys(keys, count)), shape, precision, explicit=False)
        for count in (1, 2)
    )
    whole = {key: getattr(one, key) + (layers - 1) * (getattr(two, key) - getattr(one, key)) for key in COUNTED}
    return replace(one, **whole)


def text(tokens: int, row: int) -> BatchShape:
    return BatchShape(tokens // row, row, False, "tokens", tokens)


GPT3 = {  # table D.1 of Brown et al. 2020: layers, width, heads, operations
    "gpt3-small": (12, 2.25e20),
    "gpt3-medium": (24, 6.41e20),
    "gpt3-13b": (40, 2.31e22),
    "gpt3-175b": (96, 3.14e23),
}


@pytest.mark.parametrize(("name", "layers", "published"), [(name, *row) for name, row in GPT3.items()])
def test_operations_are_those_that_are_published_of_gpt3(name, layers, published):
    taken = deep(name, text(2048, 2048), n_layers=layers)
    assert 300e9 / 2048 * taken.operations == pytest.approx(published, rel=0.15)


def test_operations_are_those_that_are_published_of_nanochat():
    taken = deep("tinyllama-1.1b", text(2048, 2048), **NANOCHAT, n_layers=34, d_model=2176, n_heads=17, d_ff=5803)
    assert taken.parameters == pytest.approx(2_217_082_880, rel=0.001)
    assert 88_683_315_200 / 2048 * taken.operations == pytest.approx(1.265075e21, rel=0.15)


RUNS = {  # the pass, the devices, the steps, what is sharded, and the published device hours
    # Vaswani et al. 2017, section 5.2.
    "base": (lambda: deep("transformer-base", text(25_000, 50), "fp32"), "8xP100", 100_000, "none", 8 * 12),
    "big": (lambda: deep("transformer-big", text(25_000, 50), "fp32"), "8xP100", 300_000, "none", 8 * 84),
    # llm.c, as the README of modded-nanogpt has it: 10 billion tokens.
    "gpt2": (lambda: deep("gpt2", text(2**19, 1024), n_layers=12), "8xH100", 19_073, "none", 8 * 0.75),
    # The model card of nanochat-d34.
    "d34": (
        lambda: deep("tinyllama-1.1b", text(2**19, 2048), **NANOCHAT, n_layers=34, d_model=2176, n_heads=17, d_ff=5803),
        "8xH100",
        169_150,
        "optimizer",
        8 * 100,
    ),
    # Touvron et al. 2023, table 15: 1 and 1.4 trillion tokens.
    "7B": (
        lambda: deep("tinyllama-1.1b", text(2**22, 2048), **LLAMA, n_layers=32, d_model=4096, n_heads=32, d_ff=11008),
        "1024xA100",
        238_419,
        "model",
        82_432,
    ),
    "65B": (
        lambda: deep("tinyllama-1.1b", text(2**22, 2048), **LLAMA, n_layers=80, d_model=8192, n_heads=64, d_ff=22016),
        "1024xA100",
        333_786,
        "model",
        1_022_362,
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_times_are_near_those_that_are_published(name):
    taken, on, steps, shard, hours = RUNS[name]
    devices, machine = machines(on)
    precision = "bf16" if "bf16" in machine.speed else "fp32"
    found = plan(taken(), machine, Setting(devices=devices, precision=precision, shard=shard), steps=steps)
    assert 1 / 1.5 < found.device_hours / hours < 1.5


SMALL = {
    "transformer-tiny": BatchShape(4, 32, True, "pairs", 4),
    "decoder-tiny": BatchShape(4, 32, True, "pairs", 4),
    "gpt-nano": BatchShape(4, 32, False, "tokens", 128),
    "llama-nano": BatchShape(4, 32, True, "tokens", 128),
    "modern-tiny": BatchShape(4, 32, True, "tokens", 128),
    "vit-nano28": BatchShape(4, 50, False, "pictures", 4),
}


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(("name", "shape"), SMALL.items())
def test_a_pass_counts_what_a_real_step_does(name, shape, checkpointing):
    config = preset(name)
    taken = passed(config, shape, "fp32", explicit=True)
    model = make_model(config).train()
    if checkpointing:
        checkpoint_blocks(model)
    task = MadeBatches(model, shape)
    with counter() as operations, Kept(model) as kept:
        task.loss(model, task.batch).total.backward()
    assert taken.parameters == sum(parameter.numel() for parameter in model.parameters())
    # The counter does not know the backward pass of a CPU's fused kernel; and a block's last product is not repeated.
    counted = operations.get_total_flops()
    if checkpointing:
        assert 1.01 * taken.operations < counted <= taken.operations + taken.repeated
    else:
        assert counted == pytest.approx(taken.operations, rel=0.1)
    if not checkpointing:  # what blocks keep of their own is hidden from others
        assert kept.total == pytest.approx(taken.kept + taken.head, rel=0.15)
        assert taken.kept_inputs < taken.kept


def test_what_is_counted_grows_with_the_rows():
    config, shape = preset("transformer-tiny"), SMALL["transformer-tiny"]
    one, two = (passed(config, shape._replace(rows=rows), "bf16", explicit=False) for rows in (2, 4))
    assert two.operations == 2 * one.operations
    assert two.kept == pytest.approx(2 * one.kept, rel=0.01)
    assert two.of_half().kept == pytest.approx(one.kept, rel=0.01)


def test_a_model_that_no_plan_is_made_of_is_refused():
    with pytest.raises(InputError, match="no plan"):
        passed(preset("rnn-small"), SMALL["transformer-tiny"], "bf16", explicit=False)
    with pytest.raises(InputError, match="experts"):
        passed(preset("mixtral-nano"), SMALL["gpt-nano"], "bf16", explicit=False)


@pytest.fixture(scope="module")
def gpt2() -> Pass:
    return deep("gpt2", text(2**17, 1024), n_layers=12)


def test_the_state_of_a_training_is_24_bytes_a_parameter(gpt2):
    parts = memory(gpt2, Setting(), "cuda")
    state = ("weights", "float32 weights", "gradients", "optimizer", "average")
    assert sum(parts[part] for part in state) == 24 * gpt2.parameters
    many = memory(gpt2, Setting(devices=64, shard="optimizer"), "cuda")
    assert gpt2.widest == 50_257 * 768  # of the embeddings, which one device steps whole
    assert sum(many[part] for part in state) == 8 * gpt2.parameters + 16 * gpt2.widest


@pytest.mark.parametrize("shard", SHARDS)
def test_more_devices_need_less_memory_and_time(gpt2, shard):
    _, machine = machines("H100")
    plans = [plan(gpt2, machine, Setting(devices=count, shard=shard), steps=10) for count in (8, 16, 32, 64)]
    assert [each.needed for each in plans] == sorted((each.needed for each in plans), reverse=True)
    assert [each.hours for each in plans] == sorted((each.hours for each in plans), reverse=True)


@pytest.mark.parametrize("gigabytes", [24, 12, 6, 4])
def test_what_fits_instead_fits_and_makes_the_same_steps(gpt2, gigabytes):
    machine = Machine(name="small", memory=gigabytes * 2.0**30, speed={"bf16": 1e14})
    setting = Setting(batches=2)
    assert not plan(gpt2, machine, setting, steps=1).fits
    other = nearest(gpt2, machine, setting)
    assert other is not None
    taken, changed = other
    found = plan(taken, machine, changed, steps=1)
    assert found.fits
    assert found.operations == pytest.approx(plan(gpt2, machine, setting, steps=1).operations)


def test_where_nothing_fits_nothing_is_named(gpt2):
    assert nearest(gpt2, Machine(name="tiny", memory=1e9, speed={"bf16": 1e14}), Setting()) is None


@pytest.mark.parametrize("word", ["", "8x", "0xH100", "2000xH100", "8xQ7", "H100 x 8"])
def test_devices_that_are_none_are_refused(word):
    with pytest.raises(InputError, match="devices"):
        machines(word)


@pytest.mark.parametrize("text", ["", "many", "-3", "4.5m", "0", "nan"])
def test_amounts_that_are_none_are_refused(text):
    with pytest.raises(InputError, match="no amount"):
        amount_of(text, "--pairs")
    assert amount_of("4.5M", "--pairs") == 4_500_000


def record(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    assert heed("plan", *words, "--json") == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("translate", ["--preset", "transformer-tiny", "--pairs", "29k"]),
        ("generate", ["--preset", "gpt-nano", "--tokens", "1M"]),
        ("fill", ["--preset", "encoder-tiny", "--tokens", "1M"]),
        ("classify-images", ["--preset", "vit-nano28", "--pictures", "60k"]),
    ],
)
def test_each_task_is_planned(capsys, task, words):
    found = record(capsys, task, *words, "--on", "2xA100", "--price", "2")
    assert found["fits"]
    assert found["epochs"] == pytest.approx(10, rel=0.01)
    assert found["cost"] == pytest.approx(2 * found["device_hours"])
    assert [each["on"] for each in found["devices"]] == ["A100", *(f"{2**i}xA100" for i in range(1, 11))]


def test_a_model_that_does_not_fit_is_told_with_what_does(capsys):
    words = ("generate", "--preset", "gpt2-xl", "--tokens", "10M", "--on", "RTX4090", "--set", "train.tokens=8192")
    found = record(capsys, *words, "--set", "model.n_layers=44")
    assert not found["fits"]
    assert found["largest_preset"] == "gpt2-large"
    assert found["instead"]["fits"]
    assert found["instead"]["shard"] != "none"
    assert heed("plan", *words, "--set", "model.n_layers=44") == 0
    assert "DOES NOT FIT" in capsys.readouterr().out


def test_data_are_counted(capsys, tmp_path):
    rows = [f"the {n} cats sat here\tles {n} chats sont la\n" for n in range(3000)]
    (tmp_path / "pairs.tsv").write_text("".join(rows))
    words = ("translate", "--data", str(tmp_path / "pairs.tsv"), "--preset", "transformer-tiny", "--on", "H100")
    found = record(capsys, *words, "--set", "data.vocab_size=400", "--set", "train.epochs=3")
    data = {"path": str(tmp_path / "pairs.tsv"), "vocab_size": 400}
    job = TASKS["translate"].job()(made_recipe("translate", preset="transformer-tiny", data=data))
    model = make_model(job.config)
    assert found["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert found["steps"] == 3 * len(job.task(model).batches(0, model))
    assert found["amount"] == pytest.approx(len(job.corpus.train))


@pytest.mark.parametrize("words", [[], ["--tokens", "1M"], ["--pairs", "1M", "--set", "train.precision=bf16"]])
def test_what_cannot_be_planned_is_refused(words):
    assert heed("plan", "translate", "--on", "T4", *words) == 2


def pairs_in_memory(tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"cat number {n}\tchat numero {n}\n" for n in range(200)))
    return made_recipe(
        "translate",
        preset="transformer-tiny",
        data={"path": str(tmp_path / "pairs.tsv"), "vocab_size": 300},
        train={"steps": 1, "tokens": 512},
    )


@pytest.mark.parametrize(("room", "told"), [(10**12, False), (700_000_000, True), (100_000_000, True)])
def test_a_training_warns_where_memory_will_not_do(tmp_path, monkeypatch, room, told):
    monkeypatch.setattr(planning, "memory_size", lambda: room)
    recipe = pairs_in_memory(tmp_path)
    large = recipe.model_copy(update={"train": recipe.train.model_copy(update={"tokens": 16_384})})
    events: list[object] = []
    heedful.train(large, tmp_path / "run", progress=False, device="cpu", callback=events.append)
    notes = [event.text for event in events if isinstance(event, Note)]
    assert any("GiB of memory will be needed" in note for note in notes) == told


def test_a_training_that_fits_by_far_is_not_passed(tmp_path, monkeypatch):
    def refused(*words: object, **named: object) -> Pass:
        raise AssertionError("this takes a second")

    monkeypatch.setattr(planning, "passed", refused)
    job = TASKS["translate"].job()(pairs_in_memory(tmp_path))
    assert planning.maybe_short(TASKS["translate"], job, "fp32", torch.device("cpu"), Ranks()) is None
