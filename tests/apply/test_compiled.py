"""Compiled blocks: the same numbers and gradients, by the same names; and a clear line where nothing can compile."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from as_used import printed
from heedful.apply import compiled
from heedful.apply.compiled import compile_blocks
from heedful.core.block import Block
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import LMSize, lm_config

ROOT = Path(__file__).parents[2]
GPT = lm_config(LMSize(n_layers=2, d_model=32, n_heads=4, vocab_size=37, context_length=24, dropout=0.2))
# In another process, as the checks of annotations that tests bring along cannot be traced, and RECORDED after it in the
# same, as torch takes seconds to bring its compiler along. "aot_eager" runs what was traced without one.
PROGRAM = """
import copy, torch
from heedful.apply import compiled
from heedful.models import make_model
from heedful.models.presets import LMSize, lm_config, translator_config
from heedful.models.seq2seq_presets import Seq2SeqSize

compiled.BACKEND = "aot_eager"
torch.manual_seed(2)
gpt = lm_config(LMSize(n_layers=2, d_model=32, n_heads=4, vocab_size=37, context_length=24, dropout=0.2))
row = Seq2SeqSize(style="marian", d_model=32, n_heads=4, d_ff=64, encoder_layers=2, decoder_layers=2)
both = translator_config(row, source_vocab=37, target_vocab=37, joint=True)
for config, count in ((gpt, 1), (both, 2)):
    plain = make_model(config).train()
    other = copy.deepcopy(plain)
    compiled.compile_blocks(other)
    assert [*other.state_dict()] == [*plain.state_dict()]
    inputs = [torch.randint(37, (3, 11)) for _ in range(count)]
    found = []
    for model in (plain, other):
        torch.manual_seed(3)  # for dropout
        found.append(model(*inputs))
        found[-1].square().sum().backward()
    torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-5)
    for (name, one), two in zip(plain.named_parameters(), other.parameters()):
        torch.testing.assert_close(two.grad, one.grad, rtol=1e-4, atol=1e-4, msg=name)
print(torch._dynamo.utils.counters["stats"]["unique_graphs"])
"""

# What is asked of the compiler by a device that records, without one: the graphs run as they were traced. Each batch is
# told with the number of what ran it, one for each of its blocks, and whether that is recorded.
RECORDED = """
import torch
from heedful.apply import compiled
from heedful.models import make_model
from heedful.models.presets import LMSize, lm_config, translator_config
from heedful.models.seq2seq_presets import Seq2SeqSize
from torch._inductor import compile_fx

made, used = [], []

def traced(graph, inputs, config_patches=None):
    number = len(made)
    made.append(config_patches)

    def ran(*given):
        used.append((number, made[number] == {"triton.cudagraphs": True}))
        return graph.forward(*given)

    return ran

compile_fx.compile_fx = compiled.BACKEND = traced
compiled.records_launches = lambda device: True
gpt = lm_config(LMSize(n_layers=2, d_model=32, n_heads=4, vocab_size=37, context_length=24))
row = Seq2SeqSize(style="marian", d_model=32, n_heads=4, d_ff=64, encoder_layers=2, decoder_layers=2, dropout=0)
both = translator_config(row, source_vocab=37, target_vocab=37, joint=True)
FULL, LAST, ODD = 6, 3, 4
for recorded in (True, False):
    for config, kinds in ((gpt, 1), (both, 2)):
        torch._dynamo.reset()
        model = make_model(config)
        compiled.compile_blocks(model, recorded=recorded)
        used.clear()
        ran = []
        for rows in (FULL, FULL, -FULL, LAST, FULL, ODD, -ODD, FULL):  # below 0: without gradients
            learns, rows = rows > 0, abs(rows)
            used.clear()
            with torch.set_grad_enabled(learns):
                model(*[torch.randint(37, (rows, 11)) for _ in range(kinds)])
            assert len(used) == 2 * kinds, used
            whole = recorded and learns and rows == FULL
            assert {was for _, was in used} == {whole}, (rows, learns, used)
            ran.append({number for number, _ in used})
            if whole:
                assert ran[-1] == ran[0], ran  # and nothing is compiled for it again
"""


def test_the_same_numbers_and_gradients() -> None:
    (graphs,) = printed(PROGRAM, RECORDED)[0]
    assert int(graphs) >= 2, "nothing was traced"


def test_passes_with_gradients_are_recorded_where_a_device_can() -> None:
    assert printed(PROGRAM, RECORDED)[1] == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU, which records what it is told to launch")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_training_that_is_recorded_has_the_losses_of_one_that_is_not(precision, accumulate, tmp_path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"The {n} of {n + 1} is {n * n}.\n" for n in range(60)))
    settings = f"precision={precision} accumulate={accumulate} steps=12 eval_every=4 tokens=128 lr=0.01".split()
    found = []
    for compiles in ("false", "true"):
        out = tmp_path / compiles
        told = [f"--set=train.{setting}" for setting in (*settings, f"compile={compiles}")]
        model = ["--set=model.n_layers=2", "--set=model.d_model=64", "--set=model.context_length=32"]
        command = ["generate", "--data", str(tmp_path / "text.txt"), "--out", str(out), "--preset", "gpt-nano"]
        done = subprocess.run(
            [sys.executable, "-m", "heedful", "train", *command, "--device", "cuda", *model, *told],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        found.append([row["valid_loss"] for row in rows if "valid_loss" in row])
    assert len(found[0]) > 1
    # What is compiled rounds to bf16 once where single operations round each time.
    assert found[1] == pytest.approx(found[0], abs=5e-2 if precision == "bf16" else 1e-3)


def test_every_block_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "BACKEND", "eager")
    model = make_model(GPT)
    compile_blocks(model)
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    assert len(blocks) == 2
    assert all(block._compiled_call_impl is not None for block in blocks)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no g++")

    monkeypatch.setattr(compiled, "BACKEND", broken)
    torch._dynamo.reset()
    with pytest.raises(InputError, match=r"torch\.compile does not work here .*no g\+\+"):
        compile_blocks(nn.Linear(2, 2))
