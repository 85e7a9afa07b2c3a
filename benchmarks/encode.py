"""How fast texts and pictures are read, beside Hugging Face: BERT-base and ViT-B/16.

    pip install transformers
    chrt -f 10 python -m benchmarks.encode --threads 2           # chrt: the other programs of the machine wait

Random weights, the same for both, in float32, in bfloat16, and through `torch.compile`: 8 texts of 128
tokens to their hidden states, and 8 pictures of 224 x 224 pixels to the logits of 1,000 classes. Each contestant has a
process of its own, and they take turns; those of float32 must say the same.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from benchmarks.limits import products
from benchmarks.turns import BF16, DEVICE, Contestant, Row, Work, machine, ratios, table
from heedful.apply.inference import for_inference
from heedful.exchange.hf import bert, vit
from heedful.exchange.hf.rules import to_ours
from heedful.models.encoder import Encoder
from heedful.models.vit import ViT

BATCH, TOKENS = 8, 128
HOWS = ("float32", "bfloat16", "bfloat16 compiled") if BF16 else ("float32", "float32 compiled")
TINY = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
Forward = Callable[[Tensor], Tensor]


def theirs(kind: str, size: dict[str, Any]) -> Any:
    from transformers import BertConfig, BertModel, ViTConfig, ViTForImageClassification

    torch.manual_seed(1)
    if kind == "BERT":
        return BertModel(BertConfig(**size), add_pooling_layer=False).eval()
    return ViTForImageClassification(ViTConfig(**size | {"num_labels": 1000})).eval()


def ours(kind: str, size: dict[str, Any]) -> Any:
    model = theirs(kind, size)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        weights = load_file(Path(folder) / "model.safetensors")
    config = model.config.to_dict()
    if kind == "BERT":
        made: Any = Encoder(bert.config_from_hf(config, weights))
        rules = bert.rules(made.config)
    else:
        made = ViT(vit.config_from_hf(config))
        rules = vit.rules(made.config)
    own = dict(made.named_parameters())
    for name, value in to_ours(rules, weights, own).items():
        own[name].data.copy_(value)
    return made.eval()


def reading(peer: str, kind: str, size: dict[str, Any], how: str) -> Work:
    mine = peer == "heedful"
    model = (ours if mine else theirs)(kind, size).to(DEVICE)
    model = model.bfloat16() if "bfloat16" in how else model
    if mine and "compiled" not in how:
        for_inference(model)
    forward: Forward
    if kind == "BERT":
        forward = model.hidden if mine else lambda tokens: model(tokens).last_hidden_state
    else:
        forward = model if mine else lambda pixels: model(pixels).logits
    if "compiled" in how:
        forward = torch.compile(forward)

    @torch.inference_mode()
    def answer(asked: tuple[Tensor, int]) -> Tensor:
        given = asked[0].to(DEVICE)
        given = given.bfloat16() if kind == "ViT" and "bfloat16" in how else given
        for _ in range(asked[1]):
            found = forward(given)
        return found[0].float().cpu()

    return answer


def race(kind: str, size: dict[str, Any], *, threads: int, rounds: int, calls: int) -> list[Row]:
    """Rounds of so many calls each; the limit is what products of matrices would take."""
    contestants = {
        (peer, how): Contestant(f"{peer} {how}", reading, (peer, kind, size, how))
        for peer in ("heedful", "Hugging Face")
        for how in HOWS
    }
    for each in contestants.values():
        each.start(threads)
    draw = torch.Generator().manual_seed(2)
    for i in range(rounds + 1):  # the first warms up
        words = torch.randint(1000, (BATCH, TOKENS), generator=draw)
        asked = words if kind == "BERT" else torch.randn(BATCH, 3, 224, 224, generator=draw)
        said = {}
        for key, each in contestants.items():
            said[key], seconds = each.turn((asked, calls))
            each.rates += [BATCH * calls / seconds] if i else []
        torch.testing.assert_close(said["heedful", "float32"], said["Hugging Face", "float32"], rtol=1e-3, atol=1e-4)
    for each in contestants.values():
        each.stop()
    unit, tokens = ("sequences/s", TOKENS) if kind == "BERT" else ("pictures/s", 197)
    print(f"\n{kind}\n{table(contestants.values(), unit)}")
    weights = sum(part.weight.numel() for part in ours(kind, size).modules() if isinstance(part, nn.Linear))
    rows = []
    for how in HOWS:
        mine, peer = contestants["heedful", how], contestants["Hugging Face", how]
        print(ratios(mine, [peer]), flush=True)
        flops = products(torch.bfloat16 if "bfloat16" in how else torch.float32) * 1e9
        rows.append(Row(f"{kind} reads, {how}", unit, mine, [peer], flops / (2 * weights * tokens)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=3, help="a round")
    parser.add_argument("--quick", action="store_true", help="tiny models: whether it runs, not how fast")
    chosen = parser.parse_args()
    size, rounds = (TINY, 1) if chosen.quick else ({}, chosen.rounds)
    print(machine(chosen.threads))
    for kind in ("BERT", "ViT"):
        race(kind, size, threads=chosen.threads, rounds=rounds, calls=chosen.calls)


if __name__ == "__main__":
    main()
