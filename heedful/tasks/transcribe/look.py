"""Inside a model that turns speech into text: which moments of a sound each token looked at.

H heads, T tokens or moments, S moments (positions of the encoder).
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from heedful.data.sound.files import RATE, read_sound
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import SpeechToText
from heedful.run.task import Feed, Looked, NamedWeights
from heedful.tasks.shared.look import TextLook, draw_text, font_note, named_weights
from heedful.tasks.shared.options import LayerOptions
from heedful.tasks.shared.pieces import labelled_pieces, readable_pieces
from heedful.tasks.transcribe.use import Transcriber, said_by_positions

CROSS, LAST = "decoder.*.cross_attention", "encoder.stack.blocks.{}.*"


def look_at_sound(transcriber: Transcriber, file: str | Path, *, layers: str | Sequence[str] = "") -> TextLook:
    """The attention while the first window of a file is written down: of each token to the moments of the sound, or, in
    a model without a decoder, of each moment to the others. `layers` chooses by name; by default those of the decoder
    that look at the sound, or the last of the encoder. Raises InputError or MissingError."""
    model, tokenizer = transcriber.model, transcriber.tokenizer
    hearing = transcriber.spec.hearing
    sound = read_sound(file)[: hearing.samples]
    features = hearing([sound]).to(model.head.weight.device)
    moments = -(-len(sound) // hearing.step)
    times = [f"{number * hearing.step / RATE:.2f}s" for number in range(moments)]
    if not isinstance(model, SpeechToText):
        chosen = layers or LAST.format(model.config.encoder.stack.n_layers - 1)
        with torch.inference_mode(), record(model, chosen) as recording:
            (ids,) = said_by_positions(model, features)
        weights = {name: recording.weights(name)[0][:, :moments, :moments] for name in recording.names}
        times = times[: min(each.shape[2] for each in weights.values())]
        return _looked(transcriber, file, tokenizer.decode(ids), times, times, times, weights)
    language = transcriber.language_of([sound], "")
    (text,) = transcriber.texts([sound], language)
    (ids,) = tokenizer.encode([text])
    read = [tokenizer.bos, *transcriber.begin(language), *ids][: model.config.target.context_length]
    with torch.inference_mode(), record(model, layers or CROSS) as recording:
        model(features, torch.tensor([read], device=features.device))
    weights = {name: _heard_part(name, recording.weights(name)[0], moments) for name in recording.names}
    shown = readable_pieces(tokenizer, [*read, tokenizer.eos])
    return _looked(transcriber, file, text, times, shown[:-1], shown[1:], weights)


def _heard_part(name: str, weights: Tensor, moments: int) -> Tensor:
    """Without the silence that a window is filled up with."""
    if name.startswith("encoder"):
        return weights[:, :moments, :moments]
    return weights[:, :, :moments] if "cross" in name else weights


def _looked(
    transcriber: Transcriber,
    file: str | Path,
    text: str,
    source: list[str],
    read: list[str],
    predicted: list[str],
    weights: dict[str, Tensor],
) -> TextLook:
    return TextLook(text, source, read, predicted, weights, origin=str(file), about=type(transcriber.model).__name__)


def look_hearing(transcriber: Transcriber, file: str, kind: str, options: LayerOptions) -> Looked:
    looked = look_at_sound(transcriber, file, layers=options.layer or "")
    picture = draw_text(looked, kind, head=options.head, chosen=options.layer is not None)
    facts = {"input": file, "text": looked.text, "layers": list(looked.weights)}
    return Looked(picture, f"{file}\n  -> {looked.text}{font_note(looked, kind)}", facts)


def attention_hearing(transcriber: Transcriber, file: str, options: LayerOptions) -> dict[str, NamedWeights]:
    """The weights that `look_hearing` draws."""
    return named_weights(look_at_sound(transcriber, file, layers=options.layer or ""), options.head)


def feed_sound(transcriber: Transcriber, file: str, pair: str | None) -> Feed:
    """The first window of a file. What is said in the end is the first token of its text, or what its middle says.
    Raises InputError or MissingError."""
    if pair is not None:
        raise InputError("this model hears one file", fix="leave out --pair")
    model, tokenizer = transcriber.model, transcriber.tokenizer
    hearing = transcriber.spec.hearing
    sound = read_sound(file)[: hearing.samples]
    features = hearing([sound])
    begin = torch.tensor([[tokenizer.bos, *transcriber.begin(transcriber.language_of([sound], ""))]])

    def run() -> Tensor:
        if isinstance(model, SpeechToText):
            return model(features, begin)[0, -1]
        return model(features)[0, len(sound) // hearing.step // 2]

    heard = f"frames of {hearing.mels} mel bands" if hearing.mels else "samples"
    return Feed([f"{features.shape[2]} {heard}"], run, lambda index: labelled_pieces(tokenizer, [index])[0])
