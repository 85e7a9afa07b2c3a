"""One attention with real numbers: each of them is what the model computes."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from heedful.core import Attention, Mask
from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, Context, Stack, StackConfig
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from heedful.verbs.walk import tapped, walk
from loud import make_loud

C, T = 24, 5
CONFIGS = {
    "plain": AttentionConfig(n_heads=4),
    "grouped, rotary": AttentionConfig(n_heads=4, kv_heads=2, position=PositionConfig(kind="rotary")),
    "normed, capped": AttentionConfig(n_heads=4, kv_heads=2, norm="rms", softcap=0.5),
    "gated": AttentionConfig(n_heads=4, gate=True),
    "biased": AttentionConfig(n_heads=4, position=PositionConfig(kind="alibi", two_sided=False)),
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("causal", [False, True])
def test_its_numbers_lead_from_what_comes_in_to_what_goes_out(name: str, causal: bool) -> None:
    attention = Attention(C, CONFIGS[name]).eval()
    make_loud(attention, std=0.5)
    x, positions = torch.randn(2, T, C), torch.arange(T)[None]

    def run() -> torch.Tensor:
        return attention(attention.queries(x, positions), attention.keys_values(x, positions), mask=Mask(causal=causal))

    with torch.no_grad():
        plain = run()
        with tapped(attention) as tap:
            assert torch.equal(run(), plain)
        assert torch.equal(run(), plain)
    every = [walk(attention, tap, head=head, query=3) for head in range(4)]
    one = every[2]
    assert one["x"] == pytest.approx(x[0, 3].tolist())
    q, k, v = (torch.tensor(one[key], dtype=torch.float64) for key in ("q", "k", "v"))
    assert one["products"] == pytest.approx((k @ q).tolist())
    assert one["allowed"] == [not causal or i <= 3 for i in range(T)]
    assert [score is None for score in one["scores"]] == [not ok for ok in one["allowed"]]
    bias = one["bias"] or [0.0] * T
    parts = zip(one["products"], bias, one["allowed"], strict=True)
    cap = one["softcap"] or 1e9
    scores = [cap * math.tanh(product * one["scale"] / cap) + own if ok else -torch.inf for product, own, ok in parts]
    assert one["weights"] == pytest.approx(torch.tensor(scores).softmax(0).tolist(), abs=1e-6)
    assert one["found"] == pytest.approx((torch.tensor(one["weights"], dtype=torch.float64) @ v).tolist(), abs=1e-5)
    assert one["difference"] < 1e-6
    shares = torch.tensor([each["share"] for each in every]).sum(0) + attention.out.bias
    torch.testing.assert_close(shares, plain[0, 3], atol=1e-5, rtol=1e-5)
    assert one["out"] == pytest.approx(plain[0, 3].tolist())
    assert (one["gate"] is not None) == (name == "gated")
    assert walk(attention, tap, head=2, query=-2) == one


def test_another_thread_that_records_too_has_its_own() -> None:
    """Even where the thread that began first ends first."""
    attention, (x, other) = Attention(C, CONFIGS["gated"]).eval(), torch.randn(2, 1, T, C)

    @torch.no_grad()
    def run(x: torch.Tensor) -> torch.Tensor:
        return attention(attention.queries(x), attention.keys_values(x), mask=Mask())

    with ThreadPoolExecutor(1) as thread:
        recording = tapped(attention)
        theirs = thread.submit(recording.__enter__).result()
        with tapped(attention) as ours:
            found = thread.submit(run, other).result()
            thread.submit(recording.__exit__, None, None, None).result()
            out = run(x)
    for tap, given, made in ((theirs, other, found), (ours, x, out)):
        assert tap.x is not None
        assert tap.out is not None
        assert torch.equal(tap.x, given)
        assert torch.equal(tap.out, made)


def test_what_is_not_there_is_said() -> None:
    attention = Attention(C, CONFIGS["plain"]).eval()
    with tapped(attention) as tap:
        pass
    with pytest.raises(InputError, match="was not called"):
        walk(attention, tap, head=0, query=0)
    x = torch.randn(1, T, C)
    with torch.no_grad(), tapped(attention) as tap:
        attention(attention.queries(x), attention.keys_values(x), mask=Mask())
    with pytest.raises(InputError, match="no head 4"):
        walk(attention, tap, head=4, query=0)
    with pytest.raises(InputError, match="no query 5"):
        walk(attention, tap, head=0, query=5)


def test_compressed_keys_are_refused() -> None:
    """Each of them stands for several tokens."""
    config = BlockConfig(attention=AttentionConfig(n_heads=4), d_ff=8, compress=2)
    stack = Stack(C, StackConfig(n_layers=1, block=config)).eval()
    (attention,) = (module for module in stack.modules() if isinstance(module, Attention))
    with torch.no_grad(), tapped(attention) as tap:
        stack(torch.randn(1, T, C), Context(mask=Mask(causal=True)))
    with pytest.raises(InputError, match="its keys are compressed"):
        walk(attention, tap, head=0, query=3)
