"""Compiled blocks: the same numbers and gradients, by the same names; and a clear line where nothing can compile."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from heedful.apply import compiled
from heedful.apply.compiled import compile_blocks
from heedful.core.block import Block
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import LMSize, lm_config

ROOT = Path(__file__).parents[2]
GPT = lm_config(LMSize(n_layers=2, d_model=32, n_heads=4, vocab_size=37, context_length=24, dropout=0.2))
# A process of its own, as the checks of annotations that tests bring along cannot be traced. "aot_eager" runs what was
# traced without a compiler.
PROGRAM = """
import copy, torch
from heedful.apply import compiled
from heedful.models import make_model
from heedful.models.presets import LMSize, Seq2SeqSize, lm_config, translator_config

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


def test_the_same_numbers_and_gradients() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2, "nothing was traced"


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
