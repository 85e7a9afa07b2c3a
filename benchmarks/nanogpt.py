"""A character model of tiny shakespeare: nanoGPT's setting for a CPU, and ours, one after the other on this machine.

python -m benchmarks.nanogpt --data PATH/TO/input.txt

The peer is nanoGPT's architecture and training on plain torch modules, written for this comparison: pre-norm blocks
without biases, fused causal attention, tied embeddings, AdamW (0.9, 0.99) with decay 0.1 on matrices, warm-up 100,
cosine to a tenth, clipping at 1; 4 layers, 128 wide, 64 characters of context, 2,000 steps of 12 rows; float32, as its
CPU setting is, or under autocast to bf16 with --peer-bf16. Ours has the same 4 layers, width and context, but LLaMA's
blocks and Muon, so that it needs fewer steps. Both are measured on the whole last tenth of the text, in
windows of 64 that begin anew, as nanoGPT samples them. Seconds are of training alone.
"""

import argparse
import math
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import heedful
from heedful.run.events import Finished
from heedful.run.recipe import override
from heedful.tasks.generate.use import LanguageModel
from heedful.verbs.train import train

CONTEXT, ROWS, STEPS = 64, 12, 2000


@dataclass(frozen=True)
class Size:
    layers: int = 4
    width: int = 128
    heads: int = 4
    context: int = CONTEXT
    dropout: float = 0.0


class PeerBlock(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        C = size.width
        self.heads, self.rate = size.heads, size.dropout
        self.norm1, self.norm2 = (nn.LayerNorm(C, bias=False) for _ in range(2))
        self.qkv, self.out = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        self.up, self.down = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        rate = self.rate if self.training else 0.0
        read = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=rate)
        x = x + self.dropout(self.out(read.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))


class Peer(nn.Module):
    def __init__(self, vocabulary: int, size: Size = Size()) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, size.width), nn.Embedding(size.context, size.width)
        self.dropout = nn.Dropout(size.dropout)
        self.blocks = nn.Sequential(*(PeerBlock(size) for _ in range(size.layers)))
        self.norm = nn.LayerNorm(size.width, bias=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                small = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * size.layers) if small else 0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.dropout(self.tokens(tokens) + self.places.weight[: tokens.shape[1]])
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


def train_peer(text: Tensor, size: int, *, bf16: bool, seed: int) -> tuple[Peer, float]:
    """The model, and the seconds that its steps took."""
    torch.manual_seed(seed)
    model = Peer(size)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True)
    begin = time.perf_counter()
    for step in range(STEPS):
        warm = step / 100
        cosine = 0.5 * (1 + math.cos(math.pi * (step - 100) / (STEPS - 100)))
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * warm if step < 100 else 1e-4 + cosine * 9e-4
        starts = torch.randint(len(text) - CONTEXT, (ROWS,))
        rows = text[starts[:, None] + torch.arange(CONTEXT + 1)]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            logits = model(rows[:, :-1])
        F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return model, time.perf_counter() - begin


@torch.inference_mode()
def peer_loss(model: Peer, text: Tensor) -> float:
    """Nats a character."""
    count = (len(text) - 1) // CONTEXT
    rows = torch.stack([text[i * CONTEXT : (i + 1) * CONTEXT + 1] for i in range(count)])
    return float(F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()))


def train_ours(data: Path, settings: list[str], seed: int) -> tuple[LanguageModel, float]:
    plan = {
        "steps": 330,
        "tokens": 1024,
        "optimizer": "muon",
        "lr": 4e-3,
        "warmup": 30,
        "average": 0,
        "eval_every": 1_000_000,
    }
    recipe = heedful.recipe("generate", preset="llama-nano", data={"tokenizer": "chars"}, train=plan)
    given = [f"data.path={data}", f"train.seed={seed}"]
    with tempfile.TemporaryDirectory() as name:
        finished = [e for e in train(override(recipe, given + settings), Path(name) / "run") if isinstance(e, Finished)]
        model = LanguageModel.load(Path(name) / "run")
        shutil.rmtree(Path(name) / "run")
    return model, 60 * finished[0].minutes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="input.txt of tiny shakespeare")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-bf16", action="store_true", help="the peer under autocast")
    parser.add_argument("--set", action="append", default=[], dest="settings", help="KEY=VALUE for ours")
    chosen = parser.parse_args()
    whole = chosen.data.read_text(encoding="utf-8")
    letters = {letter: i for i, letter in enumerate(sorted(set(whole)))}
    ids = torch.tensor([letters[letter] for letter in whole])
    cut = len(whole) - len(whole) // 10
    precision = "bf16 autocast" if chosen.peer_bf16 else "float32"
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}; the peer in {precision}")
    seconds: dict[str, list[float]] = {"nanoGPT's setting": [], "ours": []}
    for seed in range(1, chosen.rounds + 1):
        peer, spent = train_peer(ids[:cut], len(letters), bf16=chosen.peer_bf16, seed=seed)
        seconds["nanoGPT's setting"].append(spent)
        print(f"nanoGPT's setting  seed {seed}  {spent:6.1f} s  validation loss {peer_loss(peer, ids[cut:]):.4f}")
        model, spent = train_ours(chosen.data, chosen.settings, seed)
        seconds["ours"].append(spent)
        loss = model.measure([whole[cut:]], stride=model.context).loss
        print(f"ours               seed {seed}  {spent:6.1f} s  validation loss {loss:.4f}")
    peers, ours = (statistics.median(each) for each in seconds.values())
    print(f"median seconds: {peers:.1f} and {ours:.1f}, {ours / peers:.2f} of the peer's")


if __name__ == "__main__":
    main()
