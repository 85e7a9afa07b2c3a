"""How fast sentences are translated, beside Hugging Face and CTranslate2.

    pip install transformers ctranslate2
    chrt -f 10 python -m benchmarks.decode --threads 2           # chrt: the other programs of the machine wait

A Marian translator with random weights, the same for all, of the size that trains in minutes on some ten thousands of
pairs, or of OPUS-MT: text in, text out, by 32 tokens that do not end before. Sentences come 64 at once, one at a time,
and as a file of them, greedily and with a beam of 5; those of float32 must say the same. "heedful by CTranslate2" is
`heed translate --engine ctranslate2`, beside that library called with nothing around it.
"""

import argparse
import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import torch

from benchmarks.turns import DEVICE, Contestant, Row, Work, kept, machine, ratios, table
from heedful.apply.inference import WEIGHTS, for_inference
from heedful.data.made.phrasebook import phrasebook
from heedful.data.tokenizer import train_tokenizer
from heedful.models import make_model
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.models.seq2seq_presets import Seq2SeqSize
from heedful.run.folder import parameters, write_model
from heedful.run.tokenizers import tokenizer_files
from heedful.tasks.load import load_model
from heedful.verbs.exchange import export_model

BATCH, TOKENS, BEAMS = 64, 32, (1, 5)
SIZES: dict[str, Any] = {
    "tiny": Seq2SeqSize(style="marian", d_model=32, n_heads=4, d_ff=64, encoder_layers=1, decoder_layers=1),
    "small": Seq2SeqSize(style="marian", d_model=256, n_heads=4, d_ff=1024, encoder_layers=3, decoder_layers=3),
    "opus": TRANSLATORS["marian"],
}
Translate = Callable[[Sequence[str], int], list[str]]  # by a beam so wide
KEPT = ExitStack()  # until the process ends


def made_folders(root: Path, row: Seq2SeqSize, texts: Sequence[str]) -> None:
    """A run, and its exports. No text ends by itself, and none has a token that is never to be said."""
    tokenizer = train_tokenizer(texts, kind="bpe", size=8000)
    torch.manual_seed(1)
    model = make_model(translator_config(row, source_vocab=tokenizer.size, target_vocab=tokenizer.size, joint=True))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" not in name:  # large enough that the text does not repeat one token
                weight.normal_(std=0.08)
        model.head.bias[[tokenizer.pad, tokenizer.bos, tokenizer.eos]] = -1000.0
    about = {"task": "translate", "source": "en", "target": "fr", "decode": {"longest": TOKENS}}
    beside = tokenizer_files(tokenizer, tokenizer) | {"task.json": about}
    write_model(root / "run", model, parameters(model), beside)
    export_model(root / "run", root / "hf")
    if find_spec("ctranslate2"):
        export_model(root / "run", root / "float32", to="ctranslate2")
        export_model(root / "run", root / "int8", to="ctranslate2", quantize="int8")


def heedful(root: Path, how: str) -> Translate:
    model = load_model(root / "run", device=DEVICE.type)
    if how == "bfloat16":
        model.model.bfloat16()
    for_inference(model.model, how if how in WEIGHTS else "float32")
    model = KEPT.enter_context(model.in_processes(torch.get_num_threads()))
    Finalize(None, KEPT.close, exitpriority=0)  # before this process waits for those that it made
    return lambda texts, beam: model.translate(texts, beam=beam)


def by_ctranslate2(root: Path, how: str) -> Translate:
    model = load_model(root / how, engine="ctranslate2")
    return lambda texts, beam: model.translate(texts, beam=beam)


def hugging_face(root: Path, how: str) -> Translate:
    import transformers

    transformers.logging.set_verbosity_error()
    dtype = getattr(torch, how)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(root / "hf", dtype=dtype).to(DEVICE).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(root / "hf")

    @torch.inference_mode()
    def translate(texts: Sequence[str], beam: int) -> list[str]:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        said = [""] * len(texts)
        for group in (order[i : i + BATCH] for i in range(0, len(order), BATCH)):
            inputs = tokenizer([texts[i] for i in group], return_tensors="pt", padding=True).to(DEVICE)
            inputs.pop("token_type_ids", None)
            limits = {"max_new_tokens": TOKENS, "max_length": None, "num_beams": beam, "do_sample": False}
            made = tokenizer.batch_decode(model.generate(**inputs, **limits), skip_special_tokens=True)
            for i, text in zip(group, made, strict=True):
                said[i] = text
        return said

    return translate


def ctranslate2(root: Path, how: str) -> Translate:
    import ctranslate2 as engine
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(root / how / "tokenizer.json"))
    names = [tokenizer.id_to_token(index) for index in range(tokenizer.get_vocab_size())]
    ids = {token: index for index, token in enumerate(names)}
    threads = {"inter_threads": 1, "intra_threads": torch.get_num_threads()}
    model = engine.Translator(str(root / how), DEVICE.type, **threads)

    def translate(texts: Sequence[str], beam: int) -> list[str]:
        encoded = tokenizer.encode_batch_fast([" " + text for text in texts], add_special_tokens=False)
        tokens = [[*(names[index] for index in one.ids), "</s>"] for one in encoded]
        limits = {"max_decoding_length": TOKENS, "max_batch_size": BATCH, "min_decoding_length": 0}
        found = model.translate_batch(tokens, beam_size=beam, **limits)
        said = [[ids[token] for token in one.hypotheses[0]] for one in found]
        return [text.removeprefix(" ") for text in tokenizer.decode_batch(said)]

    return translate


MAKE: dict[str, Callable[[Path, str], Translate]] = {
    "heedful": heedful,
    "heedful by CTranslate2": by_ctranslate2,
    "Hugging Face": hugging_face,
    "CTranslate2": ctranslate2,
}


def answering(peer: str, root: Path, how: str) -> Work:
    translate = MAKE[peer](root, how)
    return lambda asked: [text for group in asked[0] for text in translate(group, asked[1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=512, help="in the file")
    parser.add_argument("--size", choices=list(SIZES), default="small")
    parser.add_argument("--quick", action="store_true", help="a tiny model: whether it runs, not how fast")
    chosen = parser.parse_args()
    rounds, count = (1, BATCH) if chosen.quick else (chosen.rounds, chosen.sentences)
    measured("tiny" if chosen.quick else chosen.size, threads=chosen.threads, rounds=rounds, count=count)


def measured(size: str, *, threads: int, rounds: int, count: int) -> list[Row]:
    """Each race of a model of this size; a file has `count` sentences."""
    rows = []
    pairs = phrasebook(4000 if size == "tiny" else 20_000, held_out=100).train
    # A number that random weights lose would be searched for again, by heedful alone.
    texts = [text for text, _ in pairs if not any(map(str.isdigit, text))]
    on_cpu = DEVICE.type == "cpu"
    peers = [("heedful", "float32"), ("heedful", "int8" if on_cpu else "bfloat16"), ("Hugging Face", "float32")]
    peers += [] if on_cpu else [("Hugging Face", "bfloat16")]
    if find_spec("ctranslate2"):
        engines = ("heedful by CTranslate2", "CTranslate2") if on_cpu else ("CTranslate2",)
        peers += [(peer, how) for how in ("float32", "int8") for peer in engines]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        made_folders(root, SIZES[size], texts)
        contestants = [Contestant(f"{peer} {how}", answering, (peer, root, how)) for peer, how in peers]
        for each in contestants:
            each.start(threads)
        print(f"{machine(threads)}, {TOKENS} tokens a sentence")
        for beam in BEAMS:
            for label, each_turn, at_once in (("64 at once", BATCH, BATCH), ("alone", 8, 1), ("a file", count, count)):
                print(f"\nbeam {beam}, {label}")
                for ours, peers_of in race(contestants, texts, beam, rounds, size=each_turn, at_once=at_once):
                    rows.append(Row(f"translates, beam {beam}, {label}, {how_of(ours)}", "sentences/s", ours, peers_of))
        for each in contestants:
            each.stop()
    return rows


def race(
    contestants: Sequence[Contestant], texts: Sequence[str], beam: int, rounds: int, *, size: int, at_once: int
) -> list[tuple[Contestant, list[Contestant]]]:
    """Rounds of `size` sentences each, handed over so many at once; each of ours beside its peers."""
    draw = random.Random(2)
    for each in contestants:
        each.rates = []
    for i in range(rounds + 1):  # the first warms up
        asked = draw.sample(texts, size)
        groups = [asked[j : j + at_once] for j in range(0, size, at_once)]
        said: dict[str, list[str]] = {}
        for each in contestants:
            said[each.name], seconds = each.turn((groups, beam))
            each.rates += [size / seconds] if i else []
        first, *others = [name for name in said if name.endswith("float32")]
        for name in others:
            same = sum(a == b for a, b in zip(said[name], said[first], strict=True))
            if same < size:
                print(f"{name}: only {same} of {size} as {first}")
    print(table(contestants, "sentences/s"))
    rows = []
    for ours in (each for each in contestants if each.name.startswith("heedful")):
        how = how_of(ours)
        peers = [each for each in contestants if not each.name.startswith("heedful") and how_of(each) == how]
        print(ratios(ours, peers))
        rows.append((kept(ours), [*map(kept, peers)]))
    return rows


def how_of(contestant: Contestant) -> str:
    """The numbers of its weights."""
    return contestant.name.rpartition(" ")[2]


if __name__ == "__main__":
    main()
