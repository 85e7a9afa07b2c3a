"""Translators as ONNX, for onnxruntime: the graphs, the tokenizers, and a script that searches by them."""

from pathlib import Path
from typing import Any

import torch

from heedful import exchange
from heedful.errors import InputError, StorageError
from heedful.exchange.onnx import MIN_POSITIONS, OPSET, graphs, refuse
from heedful.models.seq2seq import Seq2Seq
from heedful.run.card import CARD, card_with
from heedful.run.folder import filled_then_renamed, read_run
from heedful.run.task import LibraryEngine
from heedful.run.tokenizers import tokenizer_files
from heedful.store import files
from heedful.tasks.shared.probes import random_sentences
from heedful.tasks.translate.exchange.lost import lost
from heedful.tasks.translate.spec import TASK, TranslatorSpec
from heedful.tasks.translate.use import Translator

TOLERANCE = 1e-4  # of log-probabilities, relative to the largest
STEPS = 12  # of each text that is compared
SIDES = ("source", "target")
LOOP = "translate.py"
USE = """
## By onnxruntime

    pip install onnxruntime tokenizers numpy
    python translate.py "A sentence."

`encoder.onnx` is asked once a text, and `decoder.onnx` once a token: it is given the newest token, and what it handed
back as `present.*` of the tokens before. Opset {opset}, float32. `onnx.json` has the ids that a search needs, and
`translate.py` is such a search.
"""


def export_onnx(run: Path, translator: Translator, out: Path, *, quantize: str | None = None) -> float:
    """Makes the folder `out` of a run, and compares what onnxruntime says with what the model does: the largest
    difference of a log-probability, in nats. Raises InputError, MissingError or StorageError."""
    if quantize is not None:
        raise InputError(f"no {quantize} weights in ONNX here", where="--weights", fix="--to ctranslate2")
    model, source, target, about = read_run(run)
    refuse(model, str(run))
    encoder, decoder = graphs(model)
    spec = TranslatorSpec.read(about)
    own = Translator(model, source, target, spec)
    made: dict[str, Any] = {
        "encoder.onnx": encoder,
        "decoder.onnx": decoder,
        **tokenizer_files(source, target),
        TASK: spec.written(),
        "onnx.json": facts_of(own),
        CARD: card_with(run, USE.format(opset=OPSET), lost(spec)),
        LOOP: (Path(exchange.__path__[0]) / "onnx_loop.py").read_bytes(),
    }
    with filled_then_renamed(out) as growing:
        for name, value in made.items():
            data = value if isinstance(value, bytes) else files.json_bytes(value, where=growing / name)
            files.write_bytes(growing / name, data)
        difference, largest = compared(own, encoder, decoder)
        if not difference < TOLERANCE * max(1.0, largest):
            what = f"log-probabilities that differ by {difference:.1e} from the run's"
            raise StorageError(what, where=f"what was made of {run}", fix="leave the export out, and report it")
    return difference


def facts_of(translator: Translator) -> dict[str, Any]:
    """What a search by the graphs must know."""
    source, target = translator.source, translator.target
    (before, after), decoding = translator.around, translator.decoding()
    model: Any = translator.model
    attention = model.config.decoder.block.attention
    return {
        "opset": OPSET,
        "tokenizers": ["tokenizer.json"] * 2 if source is target else [f"tokenizer.{side}.json" for side in SIDES],
        "space": " " if source.ours else "",
        "spelled": source.special.spelled,
        "controls": target.controls,
        "unknown": source.pad if source.unk is None else source.unk,
        "cut": translator.spec.longest_source,
        "before": before,
        "after": after,
        "begin": translator.begin,
        "bos": target.bos,
        "eos": target.eos,
        "forbidden": [*translator.forbidden],
        "longest": decoding.longest,
        "shortest": decoding.shortest,
        "no_repeat": decoding.no_repeat,
        "positions": translator.positions or MIN_POSITIONS,
        "heads": attention.kv_heads or attention.n_heads,
        "head_dim": model.decoder.blocks[0].self_attention.head_dim,
    }


@torch.inference_mode()
def compared(translator: Translator, encoder: bytes, decoder: bytes) -> tuple[float, float]:
    """Step by step in two random texts of unequal lengths: the largest difference of a log-probability, and the largest
    of them."""
    import numpy
    import onnxruntime

    encode, decode = (
        onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"]) for graph in (encoder, decoder)
    )
    model: Seq2Seq = translator.model  # type: ignore[assignment]
    sentences = random_sentences(translator.source.size)[:2]
    source, segments = translator.padded(sentences)
    mask = (segments > 0).long().numpy()
    names = [output.name for output in encode.get_outputs()]
    given = {"input_ids": source.numpy(), "attention_mask": mask}
    memory = dict(zip(names, encode.run(None, given), strict=True))
    rows, heads, _, width = memory[names[0]].shape
    past = {name.replace("memory", "past"): numpy.zeros((rows, heads, 0, width), numpy.float32) for name in names}
    state, newest = model.start(source, segments), torch.full((rows,), translator.target.bos)
    draw = torch.Generator().manual_seed(0)
    worst = largest = 0.0
    for _ in range(STEPS):
        logits, state = model.step(newest, state)
        found, *present = decode.run(None, {"input_ids": newest.numpy(), "attention_mask": mask, **past, **memory})
        past = dict(zip(past, present, strict=True))
        ours, theirs = logits.log_softmax(-1), torch.from_numpy(found).log_softmax(-1)
        worst, largest = max(worst, float((ours - theirs).abs().max())), max(largest, float(ours.abs().max()))
        newest = torch.randint(4, logits.shape[1], (rows,), generator=draw)
    return worst, largest


# Its export compares itself with the run.
ENGINE = LibraryEngine(
    load=None,
    export=export_onnx,
    laws=lambda *_: iter(()),
    kind="Translator",
    library="ONNX",
    lost=lambda translator: lost(translator.spec),
)
