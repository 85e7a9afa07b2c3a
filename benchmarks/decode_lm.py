"""How fast a language model goes on with one text on a CPU, beside Hugging Face and CTranslate2.

    pip install transformers ctranslate2
    chrt -f 10 python -m benchmarks.decode_lm --threads 2        # chrt: the other programs of the machine wait

GPT-2 of 124 million random weights, the same for all: a prompt of 128 tokens, and 128 new ones, greedily. The prompt is
part of the time. The contestants take turns, A B C A B C ..., and those of float32 must say the same.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import models

from heedful.decode.continuous import Batch
from heedful.models.inference import for_inference
from heedful.models.lm import LM
from heedful.store.hf import gpt2
from heedful.store.hf.rules import to_ours

SMALL = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500}
EXACT = ("heedful float32", "Hugging Face float32", "Hugging Face float32, static", "CTranslate2 float32")
Ids = list[int]


@dataclass
class Contestant:
    name: str
    go_on: Callable[[Ids, int], Ids]  # a prompt and how many tokens: these
    seconds: list[float] = field(default_factory=list)
    said: Ids = field(default_factory=list)

    def take_turn(self, prompt: Ids, tokens: int) -> None:
        begin = time.perf_counter()
        self.said = self.go_on(prompt, tokens)
        self.seconds.append(time.perf_counter() - begin)
        assert len(self.said) == tokens, f"{self.name} said {len(self.said)} tokens"


def theirs(config: transformers.GPT2Config) -> Any:
    """Random weights, large enough that the text does not repeat one token."""
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel._from_config(config, attn_implementation="sdpa").eval()


def hugging_face(model: Any, **options: Any) -> Callable[[Ids, int], Ids]:
    @torch.inference_mode()
    def go_on(prompt: Ids, tokens: int) -> Ids:
        ids = torch.tensor([prompt])
        mask, limits = torch.ones_like(ids), {"max_new_tokens": tokens, "min_new_tokens": tokens}
        made = model.generate(ids, attention_mask=mask, do_sample=False, pad_token_id=0, **limits, **options)
        return made[0, len(prompt) :].tolist()

    return go_on


def ours(model: Any, weights: str) -> Callable[[Ids, int], Ids]:
    made = LM(gpt2.config_from_hf(model.config.to_dict())).eval()
    own = dict(made.named_parameters())
    for name, value in to_ours(gpt2.rules(made.config), model.state_dict(), own).items():
        own[name].data.copy_(value)
    for_inference(made, weights)

    def go_on(prompt: Ids, tokens: int) -> Ids:
        size = len(prompt) + tokens - 1
        batch = Batch(made, rows=1, size=size, device=torch.device("cpu"), temperature=0.0)
        batch.add(0, prompt)
        return [said.token for _ in range(tokens) for said in batch.step()]

    return go_on


def ctranslate2(folder: Path, compute_type: str, threads: int) -> Callable[[Ids, int], Ids]:
    import ctranslate2

    generator = ctranslate2.Generator(str(folder), compute_type=compute_type, intra_threads=threads, inter_threads=1)

    def go_on(prompt: Ids, tokens: int) -> Ids:
        words = [f"t{token}" for token in prompt]
        limits = {"max_length": tokens, "min_length": tokens, "include_prompt_in_result": False}
        return generator.generate_batch([words], sampling_topk=1, **limits)[0].sequences_ids[0]

    return go_on


def converted(model: Any, folder: Path) -> Path:
    """The model in CTranslate2's format, with a tokenizer whose tokens are t0, t1, ..."""
    from ctranslate2.converters import TransformersConverter

    words = {f"t{token}": token for token in range(model.config.vocab_size)}
    inner = tokenizers.Tokenizer(models.WordLevel(words, unk_token="t0"))
    special = {"bos_token": "t0", "eos_token": "t0", "unk_token": "t0"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **special).save_pretrained(folder / "theirs")
    model.save_pretrained(folder / "theirs")
    TransformersConverter(str(folder / "theirs")).convert(str(folder / "converted"))
    return folder / "converted"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compile", action="store_true", help="Hugging Face through torch.compile as well")
    parser.add_argument("--quick", action="store_true", help="a tiny model: whether it runs, not how fast")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    transformers.logging.set_verbosity_error()
    size = {"initializer_range": 0.08, "n_positions": 2048} | (SMALL if chosen.quick else {})
    config = transformers.GPT2Config(**size, bos_token_id=0, eos_token_id=0)
    model = theirs(config)
    contestants = [
        *(Contestant(f"heedful {weights}", ours(model, weights)) for weights in ("float32", "int8", "int4")),
        Contestant("Hugging Face float32", hugging_face(model)),
        Contestant("Hugging Face float32, static", hugging_face(model, cache_implementation="static")),
        Contestant("Hugging Face bfloat16", hugging_face(theirs(config).bfloat16())),
    ]
    if chosen.compile:
        compiled = theirs(config)
        compiled.forward = torch.compile(compiled.forward, dynamic=False)
        name = "Hugging Face float32, static, compiled"
        contestants.append(Contestant(name, hugging_face(compiled, cache_implementation="static")))
    try:
        import ctranslate2 as other
    except ImportError:
        print("without CTranslate2, which is not installed")
    else:
        with tempfile.TemporaryDirectory() as folder:
            place = converted(model, Path(folder))
            for kind in ("float32", "int8"):
                contestants.append(Contestant(f"CTranslate2 {kind}", ctranslate2(place, kind, chosen.threads)))
        print(f"CTranslate2 {other.__version__}, ", end="")
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, {chosen.threads} threads")

    draw = torch.Generator().manual_seed(2)
    for _ in range(chosen.rounds + 1):  # the first round warms up
        prompt = torch.randint(1, config.vocab_size, (chosen.prompt,), generator=draw).tolist()
        for contestant in contestants:
            contestant.take_turn(prompt, chosen.tokens)
        exact = {contestant.name: contestant.said for contestant in contestants if contestant.name in EXACT}
        if any(said != exact[EXACT[0]] for said in exact.values()):
            print("not the same tokens:", {name: said[:12] for name, said in exact.items()})
    medians = {}
    for contestant in contestants:
        rates = [chosen.tokens / seconds for seconds in contestant.seconds[1:]]
        medians[contestant.name] = statistics.median(rates)
        print(f"{contestant.name:40} {medians[contestant.name]:7.1f} tokens/s  ({min(rates):.1f} to {max(rates):.1f})")
    for mine, others in (
        ("heedful float32", ("Hugging Face", "CTranslate2 float32")),
        ("heedful int8", ("CTranslate2 int8",)),
        ("heedful int4", ("CTranslate2 int8",)),
    ):
        for name in (name for name in medians if name.startswith(others)):
            print(f"{mine} / {name}: {medians[mine] / medians[name]:.2f}")


if __name__ == "__main__":
    main()
