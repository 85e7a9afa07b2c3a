"""How fast a language model goes on with one text, beside Hugging Face and CTranslate2.

    pip install transformers ctranslate2
    chrt -f 10 python -m benchmarks.decode_lm --threads 2        # chrt: the other programs of the machine wait

GPT-2 of 124 million random weights, the same for all: a prompt of 128 tokens, and 128 new ones, greedily. The prompt is
part of the time. Every contestant has a process of its own (two OpenMP libraries in one slow each other down), and they
take turns, A B C A B C ...; those of float32 must say the same. The time of a token in a long text is told as well.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch

from benchmarks.limits import reading as memory_rate
from benchmarks.turns import BF16, DEVICE, Contestant, Row, Work, machine, ratios, table
from heedful.apply.inference import WEIGHTS, draft_model, for_inference
from heedful.decode.continuous import Session
from heedful.decode.settings import Sampling
from heedful.exchange.hf import gpt2
from heedful.exchange.hf.rules import to_ours
from heedful.models.lm import LM

ON_CPU = ("float32 drafted", *WEIGHTS)  # ours
ON_CUDA = ("float32", "bfloat16")
SMALL = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500}
Ids = list[int]
GoOn = Callable[[Ids, int], Ids]  # from a prompt so many tokens


def theirs(size: dict[str, Any]) -> Any:
    """Random weights, large enough that the text does not repeat one token."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    config = GPT2Config(**size, n_positions=2048, initializer_range=0.08, bos_token_id=0, eos_token_id=0)
    return GPT2LMHeadModel._from_config(config, attn_implementation="sdpa").eval()


def heedful(size: dict[str, Any], how: str) -> GoOn:
    """`how`: the weights, and "drafted" with a draft of int8, as `heed generate` does it for one long text."""
    model = theirs(size)
    made = LM(gpt2.config_from_hf(model.config.to_dict())).eval()
    own = dict(made.named_parameters())
    for name, value in to_ours(gpt2.rules(made.config), model.state_dict(), own).items():
        own[name].data.copy_(value)
    made = made.to(DEVICE)
    made = made.bfloat16() if how == "bfloat16" else made
    draft = draft_model(made, "int8") if "drafted" in how else None
    weights = how.split()[0]
    for_inference(made, weights if weights in WEIGHTS else "float32")

    def go_on(prompt: Ids, tokens: int) -> Ids:
        room = len(prompt) + tokens - 1
        session = Session(made, rows=1, size=room, device=DEVICE, draft=draft)
        session.add(prompt, Sampling(temperature=0.0))
        return [said.token for _ in range(tokens) for said in session.step()]

    return go_on


def hugging_face(size: dict[str, Any], how: str) -> GoOn:
    import transformers

    transformers.logging.set_verbosity_error()
    model = theirs(size).to(DEVICE)
    model = model.bfloat16() if how == "bfloat16" else model
    if "compiled" in how:
        model.forward = torch.compile(model.forward)
    cache = {"cache_implementation": "static"} if "static" in how else {}

    @torch.inference_mode()
    def go_on(prompt: Ids, tokens: int) -> Ids:
        ids = torch.tensor([prompt], device=DEVICE)
        mask, limits = torch.ones_like(ids), {"max_new_tokens": tokens, "min_new_tokens": tokens}
        made = model.generate(ids, attention_mask=mask, do_sample=False, pad_token_id=0, **limits, **cache)
        return made[0, len(prompt) :].tolist()

    return go_on


def ctranslate2(size: dict[str, Any], compute_type: str) -> GoOn:
    """Converted with a tokenizer whose tokens are t0, t1, ..."""
    import ctranslate2 as engine
    import tokenizers
    import transformers
    from ctranslate2.converters import TransformersConverter

    model = theirs(size)
    words = {f"t{token}": token for token in range(model.config.vocab_size)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="t0"))
    special = {"bos_token": "t0", "eos_token": "t0", "unk_token": "t0"}
    with tempfile.TemporaryDirectory() as folder:
        transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **special).save_pretrained(folder)
        model.save_pretrained(folder)
        TransformersConverter(folder).convert(f"{folder}/converted")
        threads = {"intra_threads": torch.get_num_threads(), "inter_threads": 1}
        generator = engine.Generator(f"{folder}/converted", DEVICE.type, compute_type=compute_type, **threads)

    def go_on(prompt: Ids, tokens: int) -> Ids:
        words = [f"t{token}" for token in prompt]
        limits = {"max_length": tokens, "min_length": tokens, "include_prompt_in_result": False}
        return generator.generate_batch([words], sampling_topk=1, **limits)[0].sequences_ids[0]

    return go_on


MAKE: dict[str, Callable[[dict[str, Any], str], GoOn]] = {
    "heedful": heedful,
    "Hugging Face": hugging_face,
    "CTranslate2": ctranslate2,
}


def contestant(peer: str, how: str, size: dict[str, Any]) -> Contestant:
    return Contestant(f"{peer} {how}", answering, (peer, how, size))


def answering(peer: str, how: str, size: dict[str, Any]) -> Work:
    go_on = MAKE[peer](size, how)
    return lambda asked: go_on(*asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--long", action="store_true", help="also the time of a token after 768 others")
    parser.add_argument("--compile", action="store_true", help="also Hugging Face through torch.compile")
    parser.add_argument("--quick", action="store_true", help="a tiny model: whether it runs, not how fast")
    chosen = parser.parse_args()
    size = SMALL if chosen.quick else {}
    asked = Asked(chosen.prompt, chosen.tokens, chosen.rounds, late=chosen.long, compiled=chosen.compile)
    measured(size, asked, threads=chosen.threads)


class Asked(NamedTuple):
    """Tokens of the prompt, new ones, and rounds; `late`: also the time of a token after 768 others."""

    prompt: int = 128
    tokens: int = 128
    rounds: int = 7
    late: bool = False
    compiled: bool = False


def measured(size: dict[str, Any], asked: Asked, *, threads: int) -> list[Row]:
    """The race; the limit is what reading the weights once for each token allows."""
    hows = (
        ["float32", "float32 static"]
        + (["bfloat16"] if BF16 else [])
        + (["float32 static compiled"] if asked.compiled else [])
    )
    engines = ("float32", "int8") if find_spec("ctranslate2") else ()
    contestants = [
        *(contestant("heedful", how, size) for how in (ON_CPU if DEVICE.type == "cpu" else ON_CUDA)),
        *(contestant("Hugging Face", how, size) for how in hows),
        *(contestant("CTranslate2", how, size) for how in engines),
    ]
    for each in contestants:
        each.start(threads)
    print(f"{machine(threads)}, {asked.prompt} + {asked.tokens} tokens")

    draw = torch.Generator().manual_seed(2)
    vocabulary = size.get("vocab_size", 50257)
    for i in range(asked.rounds + 1):  # the first warms up
        prompt = torch.randint(1, vocabulary, (asked.prompt,), generator=draw).tolist()
        said: dict[str, Ids] = {}
        for each in contestants:
            said[each.name], seconds = each.turn((prompt, asked.tokens))
            each.rates += [asked.tokens / seconds] if i else []
        first, *others = [name for name in said if " float32" in name]
        for name in others:
            same = sum(a == b for a, b in zip(said[name], said[first], strict=True))
            if same < asked.tokens:
                print(f"{name}: only {same} of the tokens of {first}")
    print(table(contestants, "tokens/s"))
    if asked.late:
        prompt = torch.randint(1, vocabulary, (768,), generator=draw).tolist()
        late: dict[str, list[float]] = {each.name: [] for each in contestants}
        for _ in range(3):
            for each in contestants:
                few, many = (each.turn((prompt, tokens))[1] for tokens in (2, 34))
                late[each.name].append(1000 * (many - few) / 32)
        for name, spent in late.items():
            print(f"{name}: {statistics.median(spent):.1f} ms a token after 768")
    named, rows = {each.name: each for each in contestants}, []
    weights, rate = sum(each.numel() for each in theirs(size).parameters()), memory_rate() * 1e9
    limits = {how: rate / (weights * bytes_of) for how, bytes_of in (("float32", 4), ("bfloat16", 2), ("int8", 1))}
    for mine, prefixes in (
        ("heedful float32 drafted", ("heedful float32", "Hugging Face", "CTranslate2 float32")),
        ("heedful float32", ("Hugging Face", "CTranslate2 float32")),
        ("heedful int8", ("CTranslate2 int8",)),
        ("heedful int4", ("CTranslate2 int8",)),
        ("heedful bfloat16", ("Hugging Face bfloat16",)),
    ):
        if mine not in named:
            continue
        beside = [each for each in contestants if each.name.startswith(prefixes) and each.name != mine]
        print(ratios(named[mine], beside))
        how = mine.removeprefix("heedful ")
        rows.append(Row(f"writes, one text, {how}", "tokens/s", named[mine], beside, limits.get(how)))
    for each in contestants:
        each.stop()
    return rows


if __name__ == "__main__":
    main()
