"""Training, beside each peer at its best settings, in turns on this machine: real tokens a second.

    pip install transformers
    python -m benchmarks.train --data PATH/TO/data [--only translate] [--rounds 7] [--quick]

The settings, each with the same sizes and the same tokens for all:
translate  3 + 3 layers, 256 wide, 8,000 joint tokens, Multi30k English to German (`multi30k`): source tokens, padding
           left out. Peers get batches of about 2,048 source tokens, sorted by length as ours are where nothing packs.
a          4 layers, 128 wide, 64 characters of context, 12 rows (`tinyshakespeare`); no dropout
b          6 layers, 384 wide, 256 characters of context, 16 rows; no dropout
b-dropout  the same with dropout 0.2
gpt2       12 layers, 768 wide, 1,024 tokens of context, 16 rows (16,000 tokens); no dropout; for a GPU

Peers are `torch.nn.Transformer`, Hugging Face's Marian and GPT-2, and nanoGPT's model written anew, in float32 and
under autocast to bf16, each with AdamW (fused) and clipping. Beside the figure of ours
stands its share of what the machine's matrix products reach in that precision (`benchmarks/limits.py`), a training
step being 6 operations a weight and token. `--losses` compares our fast setting with the plain one, step by step.
"""

import argparse
import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import heedful
from benchmarks import nanogpt
from benchmarks.limits import products
from benchmarks.turns import BF16, DEVICE, Contestant, Row, Work, machine, ratios, table
from heedful.apply.compiled import compile_blocks
from heedful.core.seeds import shuffled
from heedful.data.batches import PairBatch, bucket_rows
from heedful.data.tokenizer import PAD
from heedful.models import make_model
from heedful.run.job import Job
from heedful.run.recipe import Recipe
from heedful.run.threads import Waits
from heedful.tasks.generate.train import GenerateJob
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.training.epochs import TranslationTask
from heedful.training.loop import Budget, CachingTask, Step, TrainState, fit
from heedful.training.optim import Average, OptimConfig, Optimizer
from heedful.training.precision import DTYPES, choose_precision

PLAIN, FAST = "float32", "bf16"


class Setting(NamedTuple):
    job: Callable[[Any], Job]
    folder: str
    recipe: Recipe
    peers: tuple[str, ...]


def characters(rows: int, **model: Any) -> Recipe:
    plan = {"tokens": rows * model["context_length"], "lr": 1e-3, "warmup": 100, "average": 0}
    return heedful.recipe(
        "generate", preset="gpt-nano", model=model, data={"tokenizer": "chars", "vocab_size": 300}, train=plan
    )


NANO, MINI = {"n_layers": 4, "d_model": 128, "n_heads": 4}, {"n_layers": 6, "d_model": 384, "n_heads": 6}
GPT = ("nanoGPT", "Hugging Face GPT-2")
SETTINGS = {
    "translate": Setting(
        TranslateJob,
        "multi30k",
        heedful.recipe(
            "translate", preset="transformer-small", data={"source": "en", "target": "de"}, train={"average": 0}
        ),
        ("torch.nn.Transformer", "Hugging Face Marian"),
    ),
    "a": Setting(GenerateJob, "tinyshakespeare", characters(12, **NANO, context_length=64), GPT),
    "b": Setting(GenerateJob, "tinyshakespeare", characters(16, **MINI, context_length=256), GPT),
    "b-dropout": Setting(GenerateJob, "tinyshakespeare", characters(16, **MINI, context_length=256, dropout=0.2), GPT),
    "gpt2": Setting(
        GenerateJob,
        "tinyshakespeare",
        heedful.recipe(
            "generate",
            preset="gpt2",
            model={"dropout": 0.0},
            data={"vocab_size": 16000},
            train={"tokens": 16 * 1024, "lr": 6e-4, "warmup": 100, "average": 0},
        ),
        GPT,
    ),
}


def make_job(name: str, data: Path) -> Job:
    setting = SETTINGS[name]
    folder = data / setting.folder
    path = folder / "input.txt" if (folder / "input.txt").is_file() else folder
    recipe = setting.recipe
    return setting.job(recipe.model_copy(update={"data": recipe.data.model_copy(update={"path": str(path)})}))


class Ours:
    """`how`: the precision, and "sorted" for batches that are not packed."""

    def __init__(self, job: Any, how: str) -> None:
        plan = job.recipe.train
        torch.manual_seed(1)
        model = make_model(job.config).to(DEVICE)
        average = Average(model, plan.average)
        model = model.to(DTYPES["bf16" if FAST in how else "fp32"])
        if "compiled" in how:
            compile_blocks(model)
        self.halves = job.halves and "compiled" not in how
        optimizer = Optimizer(model, OptimConfig(lr=plan.lr, warmup=plan.warmup))
        self.state = TrainState(model=model, optimizer=optimizer, average=average, seed=1)
        self.task = CachingTask(TranslationTask(job.pairs, plan, packs=False) if "sorted" in how else job.task(model))

    def steps(self, count: int) -> Iterator[Step]:
        with Waits():
            for step in fit(self.task, self.state, Budget(steps=self.state.step + count), halves=self.halves):
                assert isinstance(step, Step)
                yield step

    def __call__(self, count: int) -> int:
        """Makes so many steps; the real tokens in them."""
        tokens = 0
        for _ in self.steps(count):
            tokens += self._tokens(self.task.batches(self.state.epoch, self.state.model)[self.state.batch - 1])
        return tokens

    def _tokens(self, batch: Any) -> int:
        return batch.source_tokens if isinstance(batch, PairBatch) else batch.tokens.numel()


class Marked(NamedTuple):
    """Rows that begin and end: of ids, and where they are real."""

    source: Tensor
    valid: Tensor
    target: Tensor
    following: Tensor


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer`, with its embeddings tied and sinusoidal places."""

    places: Tensor

    def __init__(self, config: Any) -> None:
        super().__init__()
        block, C = config.encoder.block, config.d_model
        self.tokens = nn.Embedding(config.source.vocab_size, C, padding_idx=PAD)
        nn.init.normal_(self.tokens.weight, std=C**-0.5)
        place, wave = torch.arange(512.0)[:, None], torch.exp(torch.arange(0, C, 2) * (-math.log(10000.0) / C))
        self.register_buffer("places", torch.cat([(place * wave).sin(), (place * wave).cos()], dim=1))
        self.body = nn.Transformer(
            C,
            block.attention.n_heads,
            config.encoder.n_layers,
            config.decoder.n_layers,
            block.d_ff,
            block.dropout,
            batch_first=True,
            norm_first=True,
        )
        self.dropout = nn.Dropout(block.dropout)

    def forward(self, batch: Marked) -> Tensor:
        source, target = (self._embed(ids) for ids in (batch.source, batch.target))
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        hidden = self.body(
            source,
            target,
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=~batch.valid,
            memory_key_padding_mask=~batch.valid,
        )
        return F.linear(hidden, self.tokens.weight)

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) * self.tokens.embedding_dim**0.5
        return self.dropout(x + self.places[: ids.shape[1]])


def marian(config: Any) -> nn.Module:
    from transformers import MarianConfig, MarianMTModel

    block, V = config.encoder.block, config.source.vocab_size
    layers = {"encoder_layers": config.encoder.n_layers, "decoder_layers": config.decoder.n_layers}
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("attention_heads", block.attention.n_heads), ("ffn_dim", block.d_ff))
    }
    whole = MarianConfig(
        vocab_size=V,
        d_model=config.d_model,
        dropout=block.dropout,
        pad_token_id=PAD,
        decoder_start_token_id=PAD,
        eos_token_id=2,
        forced_eos_token_id=None,
        **layers,
        **sizes,
    )
    model = MarianMTModel._from_config(whole, attn_implementation="sdpa").train()

    class Called(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, batch: Marked) -> Tensor:
            return self.model(
                input_ids=batch.source, attention_mask=batch.valid.long(), decoder_input_ids=batch.target
            ).logits

    return Called()


def aligned(vocabulary: int) -> int:
    """As nanoGPT has it on a GPU, whose tensor cores want rows that begin evenly."""
    return vocabulary + (-vocabulary % 64 if DEVICE.type == "cuda" else 0)


def gpt2(config: Any) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    block = config.stack.block
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), block.dropout)
    whole = GPT2Config(
        vocab_size=aligned(config.embed.vocab_size),
        n_positions=config.embed.context_length,
        n_embd=config.d_model,
        n_layer=config.stack.n_layers,
        n_head=block.attention.n_heads,
        bos_token_id=None,
        eos_token_id=None,
        **rates,
    )
    model = GPT2LMHeadModel._from_config(whole, attn_implementation="sdpa").train()

    class Called(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: Tensor) -> Tensor:
            return self.model(tokens, use_cache=False).logits

    return Called()


def nano(config: Any) -> nn.Module:
    block = config.stack.block
    size = nanogpt.Size(
        layers=config.stack.n_layers,
        width=config.d_model,
        heads=block.attention.n_heads,
        context=config.embed.context_length,
        dropout=block.dropout,
    )
    return nanogpt.Peer(aligned(config.embed.vocab_size), size)


PEERS: dict[str, Callable[[Any], nn.Module]] = {
    "torch.nn.Transformer": TorchTransformer,
    "Hugging Face Marian": marian,
    "Hugging Face GPT-2": gpt2,
    "nanoGPT": nano,
}


class Peer:
    def __init__(self, job: Any, peer: str, how: str) -> None:
        torch.manual_seed(1)
        self.model, self.bf16 = PEERS[peer](job.config).to(DEVICE), FAST in how
        if "compiled" in how:
            self.model.compile()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.98), fused=True)
        self.batches = (_sorted if isinstance(job, TranslateJob) else _rows)(job)

    def __call__(self, count: int) -> int:
        tokens = 0
        for _ in range(count):
            given, following, real, smoothing = next(self.batches)
            following = following.to(DEVICE)
            given = given.to(DEVICE) if isinstance(given, Tensor) else Marked(*(part.to(DEVICE) for part in given))
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=self.bf16):
                logits = self.model(given)
                loss = F.cross_entropy(
                    logits.flatten(0, 1),
                    following.flatten(),
                    ignore_index=PAD if smoothing else -100,
                    label_smoothing=smoothing,
                )
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            tokens += real
        return tokens


Given = tuple[Any, Tensor, int, float]  # to the model; the tokens that follow; how many are real; smoothing


def _sorted(job: Any) -> Iterator[Given]:
    plan = job.recipe.train
    for epoch in itertools.count():
        order = shuffled(len(job.pairs), 1, epoch)
        batches = bucket_rows(job.pairs, order, tokens=plan.tokens)
        for i in shuffled(len(batches), 2, epoch):
            batch = batches[i]
            marked = Marked(batch.source, batch.source_segments > 0, batch.target_in, batch.target_out)
            yield marked, batch.target_out, batch.source_tokens, 0.1


def _rows(job: Any) -> Iterator[Given]:
    task = job.task(make_model(job.config))  # once: of a short text an epoch ends after a few steps
    for epoch in itertools.count():
        for batch in task.batches(epoch, None):
            yield batch.tokens, batch.following, batch.tokens.numel(), 0.0


def ours(name: str, data: Path, how: str) -> Work:
    return Ours(make_job(name, data), how)


def theirs(name: str, data: Path, peer: str, how: str) -> Work:
    return Peer(make_job(name, data), peer, how)


def compare(
    name: str, data: Path, *, threads: int, rounds: int, steps: int, as_shipped: bool = False, compiled: bool = False
) -> Row:
    """The race; the limit is what products of matrices allow."""
    setting, job = SETTINGS[name], make_job(name, data)
    packed = name == "translate"
    dtype = DTYPES[choose_precision(DEVICE).precision]  # as `heed train` does
    known: tuple[str, ...] = (FAST, PLAIN) if BF16 else (PLAIN,)
    first = FAST if dtype == torch.bfloat16 else PLAIN
    known += (f"{first} compiled",) if compiled else ()
    hows = sorted(known, key=lambda how: how != first) + ([f"{first}, sorted"] if packed else [])
    mine = [Contestant(f"heedful {how}", ours, (name, data, how)) for how in hows]
    peers = [
        Contestant(f"{peer} {how}", theirs, (name, data, peer, how), keeps=not as_shipped)
        for peer in setting.peers
        for how in known
    ]
    for each in (*mine, *peers):
        each.start(threads)
    for i in range(rounds + 1):  # the first warms up
        for each in (*mine, *peers):
            tokens, seconds = each.turn(steps)
            each.rates += [tokens / seconds] if i else []
    for each in (*mine, *peers):
        each.stop()
    print(f"\n{name}: {job.describe()}\n{table([*mine, *peers], 'tokens/s')}")
    weights = sum(weight.numel() for weight in make_model(job.config).parameters())
    limit = products(dtype) * 1e9 / (6 * weights)
    best = max(peers, key=lambda peer: peer.rate)
    print(f"{mine[0].name} / the best peer, {best.name}: {mine[0].rate / best.rate:.2f}")
    print(f"{ratios(mine[0], [*mine[1:], *peers])}")
    print(f"{mine[0].rate / limit:.0%} of what products of {first} matrices of this machine would allow", flush=True)
    return Row(f"trains, {name}, {first}", "tokens/s", mine[0], peers, limit)


def compare_losses(name: str, data: Path, *, steps: int) -> None:
    """The losses of our fast and our plain setting, from the same weights on the same batches."""
    job = make_job(name, data)
    pair = zip(*(Ours(job, how).steps(steps) for how in (FAST, PLAIN)), strict=True)
    gaps = [abs(fast.loss - plain.loss) / plain.loss for fast, plain in pair]
    told = f"by {statistics.mean(gaps):.2%} in the mean and at most {max(gaps):.2%}"
    print(f"{name}: losses of {steps} steps in bf16 and float32 differ {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--only", action="append", choices=SETTINGS, help="may be given again")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=12, help="a round")
    parser.add_argument("--as-shipped", action="store_true", help="peers without the allocator setting that we have")
    parser.add_argument("--compile", action="store_true", help="also through torch.compile, ours and theirs")
    parser.add_argument("--losses", action="store_true", help="compare losses, not speed")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 3 steps: whether it runs, not how fast")
    chosen = parser.parse_args()
    rounds, steps = (2, 3) if chosen.quick else (chosen.rounds, chosen.steps)
    print(machine(chosen.threads))
    for name in chosen.only or SETTINGS:
        if chosen.losses:
            compare_losses(name, chosen.data, steps=20 if chosen.quick else 200)
        else:
            how = {"rounds": rounds, "steps": steps, "as_shipped": chosen.as_shipped, "compiled": chosen.compile}
            compare(name, chosen.data, threads=chosen.threads, **how)


if __name__ == "__main__":
    main()
