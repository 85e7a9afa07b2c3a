"""Converts models from and for other libraries: `heed import` and `heed export`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from heedful.tasks.shared.options import Json, Run
from heedful.tasks.shared.terminal import say


def import_(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A model's folder, as the Hugging Face Hub has it, or its name there, ORG/NAME; or a .gguf file.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Where the run goes.", show_default="runs/NAME")] = None,
    as_json: Json = False,
) -> None:
    """Make a run of a model of the Hugging Face Hub, or of llama.cpp.

    From safetensors: GPT-2, LLaMA, Mistral, Mixtral, Qwen, SmolLM3, Gemma; Marian, Pegasus, BART, mBART, M2M-100, NLLB,
    T5, mT5; BERT, RoBERTa, XLM-R, DistilBERT, ModernBERT, Longformer, ESM-2; ViT, DeiT, Swin, CLIP, SegFormer, DETR;
    Whisper, wav2vec 2.0; Decision Transformer.

    Example: heed import openai-community/gpt2 --out runs/gpt2
    """
    from heedful.verbs.exchange import import_model
    from heedful.verbs.use import how_to_use

    made = import_model(folder, out or Path("runs") / folder.absolute().name.removesuffix(".gguf"))
    tokens = "" if made.vocab_size is None else f", {made.vocab_size:,} tokens in the vocabulary"
    say(f"{made.family}: {made.parameters:,} parameters{tokens}\n{how_to_use(Path(made.out))}")
    for note in made.notes:
        say(f"note: {note}")
    if as_json:
        print(json.dumps(asdict(made)))


def export(
    run: Run,
    out: Annotated[Path, typer.Option(help="The folder to make.", show_default=False)],
    to: Annotated[
        str,
        typer.Option(
            help="hf: a folder as the Hugging Face Hub has them; peft: the adapters of --lora alone; ctranslate2; "
            "onnx, of a translator; or gguf, of a language model, for llama.cpp."
        ),
    ] = "hf",
    quantize: Annotated[
        str | None,
        typer.Option(
            "--weights",
            "--quantize",
            help="For gguf: int8, int4, f16. For ctranslate2: int8, int16, float16, bfloat16.",
            show_default="float32",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu: a model is exported from there, wherever it was trained.")] = "auto",
    as_json: Json = False,
) -> None:
    """Make a folder of a run that other libraries load.

    Example: heed export runs/text --to hf --out hub/text
    """
    from heedful.run.device import chosen_device
    from heedful.verbs.exchange import export_model

    chosen_device(device, cpu_only="heed export")

    made = export_model(run, out, to=to, quantize=quantize)
    say(f"{made.family}: {made.loads}")
    if made.difference is not None:
        say(f"log-probabilities of random texts differ from the run's by at most {made.difference:.1e}")
    for note in made.notes:
        say(f"note: {note}")
    if as_json:
        told = {key: value for key, value in asdict(made).items() if key != "loads" and value not in (None, ())}
        print(json.dumps(told))
