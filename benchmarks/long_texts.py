"""What attention costs as texts grow: processor time, forward and backward, of one attention of 4 heads of 64.

    OMP_NUM_THREADS=1 python -m benchmarks.long_texts                  # two minutes
    OMP_NUM_THREADS=1 python -m benchmarks.long_texts --longformer     # one block beside that of transformers, forward
    OMP_NUM_THREADS=1 python -m benchmarks.long_texts --models         # five layers of width 512, and their memory

Each cell is the median of three passes after one that is not counted (of models, one pass), in milliseconds of
processor time, which other programs of the machine disturb less than seconds. The exponent is the slope of its
logarithm over that of the length. Memory is the most that a process of its own has had, less what it had before.
"""

import math
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from statistics import median

import torch

from heedful.core.attention import AttentionConfig, attend
from heedful.core.block import BlockConfig, Context, Stack, StackConfig
from heedful.core.compress import groups_in
from heedful.core.mask import EVERYONE, Mask
from heedful.models.lm import LM
from heedful.models.presets import TRANSLATORS, DecoderOnlySize, decoder_only_config

LENGTHS = (2048, 4096, 8192, 11_008)
MASKS = {
    "dense": Mask(causal=True),
    "window 256": Mask(causal=True, window=256),
    "block 256": Mask(causal=True, block=256),
    "window 256, every 2nd": Mask(causal=True, window=256, dilation=2),
    "window 256, 4 global": Mask(causal=True, window=256, global_tokens=4),
    "block 128, stride 128": Mask(causal=True, block=128, stride=128),
}
KINDS = (*MASKS, "compressed by 3")
HEADS, WIDTH, WINDOW = 4, 64, 256


def processor_time(run: Callable[[], object], times: int = 3) -> float:
    """The median, in milliseconds."""
    run()
    taken = []
    for _ in range(times):
        begin = time.process_time()
        run()
        taken.append(time.process_time() - begin)
    return 1000 * median(taken)


def attention(kind: str, length: int) -> float:
    """Forward and backward, with the mask made once, as for all layers of a stack."""
    q, k, v = (torch.randn(1, HEADS, length, WIDTH, requires_grad=True) for _ in range(3))
    mask = MASKS.get(kind)
    if mask is None:
        groups = groups_in(torch.arange(length)[None], 3)
        mask = MASKS["dense"].at(groups.ends, groups.valid, length, length)
        k, v = (part.detach()[:, :, : groups.ends.shape[1]].requires_grad_() for part in (k, v))

    def run() -> None:
        out = attend(q, k, v, mask=mask, scale=WIDTH**-0.5)
        torch.autograd.grad(out, (q, k, v), torch.ones_like(out))

    return processor_time(run)


def exponent(times: list[float]) -> float:
    """The slope of a line through the logarithms."""
    x, y = [math.log(length) for length in LENGTHS], [math.log(each) for each in times]
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    upper = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return upper / sum((a - middle_x) ** 2 for a in x)


def beside_longformer() -> None:
    """One block of width 256 and a window of 256 to each side, forward: ours, and Longformer's of transformers."""
    from transformers.models.longformer.configuration_longformer import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerModel

    width = HEADS * WIDTH
    sizes = {"hidden_size": width, "num_attention_heads": HEADS, "intermediate_size": 4 * width}
    config = LongformerConfig(
        **sizes, num_hidden_layers=1, attention_window=2 * WINDOW, max_position_embeddings=max(LENGTHS) + 2
    )
    theirs = LongformerModel(config, add_pooling_layer=False).eval().encoder
    block = BlockConfig(attention=AttentionConfig(n_heads=HEADS), window=WINDOW + 1, d_ff=4 * width, activation="gelu")
    ours = Stack(width, StackConfig(n_layers=1, block=block)).eval()
    context = Context(mask=EVERYONE)
    for length in (each // 512 * 512 for each in LENGTHS):  # theirs reads multiples of 512
        x, seen = torch.randn(1, length, width), torch.zeros(1, length)
        with torch.inference_mode():
            passes = (partial(ours, x, context), partial(theirs, x, attention_mask=seen, padding_len=0))
            times = [processor_time(each) for each in passes]
        print(f"{length:>8,}  ours {times[0]:8.0f}  transformers {times[1]:8.0f}  ratio {times[1] / times[0]:.2f}")


MODELS: dict[str, dict[str, int]] = {
    "dense": {},
    "local": {"block": 256},
    "compressed": {"compress": 3},
    "T-DMCA": {"block": 256, "compress": 3},
    "T-DMCA, 8 experts": {"block": 256, "compress": 3, "experts": 8},
}


def one_pass(sizes: dict[str, int], length: int) -> tuple[float, float]:
    """Milliseconds of processor time, and MiB, of one text forward and backward."""
    row = TRANSLATORS["t-dmca"]
    assert isinstance(row, DecoderOnlySize)
    row = replace(row, block=sizes.get("block"), compress=sizes.get("compress"), experts=sizes.get("experts"))
    model = LM(decoder_only_config(row, vocab_size=1000).lm)
    tokens = torch.randint(1000, (1, length))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    model.hidden(tokens).sum().backward()
    taken = 1000 * (time.process_time() - begin)
    return taken, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def models() -> None:
    print(f"{'ms of a processor, MiB':<24}" + "".join(f"{length:>16,}" for length in LENGTHS) + "  exponents")
    for name, sizes in MODELS.items():
        cells = []
        for length in LENGTHS:
            with get_context("spawn").Pool(1) as pool:
                cells.append(pool.apply(one_pass, (sizes, length)))
        slopes = "".join(f"{exponent(list(each)):6.2f}" for each in zip(*cells, strict=True))
        print(f"{name:<24}" + "".join(f"{ms:9.0f}{mib:7.0f}" for ms, mib in cells) + slopes, flush=True)


def main() -> None:
    if "--longformer" in sys.argv:
        beside_longformer()
        return
    if "--models" in sys.argv:
        models()
        return
    print(f"{'ms of a processor':<24}" + "".join(f"{length:>9,}" for length in LENGTHS) + "  exponent")
    for kind in KINDS:
        times = [attention(kind, length) for length in LENGTHS]
        print(f"{kind:<24}" + "".join(f"{each:9.0f}" for each in times) + f"{exponent(times):10.2f}", flush=True)


if __name__ == "__main__":
    main()
