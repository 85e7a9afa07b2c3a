"""The attention inside a translation: which tokens looked at which, in every layer and head."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.lines import sanitise
from heedful.data.tokenizer import Ids
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import DecoderOnlyTranslator
from heedful.run.task import Looked, NamedWeights
from heedful.tasks.shared.look import TextLook, draw_text, font_note, named_weights
from heedful.tasks.shared.pieces import readable_pieces
from heedful.tasks.shared.steps import StepsOptions, steps_of
from heedful.tasks.translate.options import TranslationLook
from heedful.tasks.translate.segment import segments_of, sentence_of
from heedful.tasks.translate.use import Translator


def look_translating(translator: Translator, text: str, kind: str, options: TranslationLook) -> Looked:
    looked = _looked(translator, text, options)
    picture = draw_text(looked, kind, head=options.head, chosen=options.layer is not None)
    facts: dict[str, Any] = {"source": looked.origin, "text": looked.text, "layers": list(looked.weights)}
    words = f"{looked.origin}\n  -> {looked.text}{font_note(looked, kind)}"
    count = len(segments_of(translator, sanitise(text)))
    if options.target is None and count > 1:
        facts["sentences"] = count
        words += f"\nsentence {options.sentence} of {count}: --sentence N shows another"
    return Looked(picture, words, facts)


def attention_translating(translator: Translator, text: str, options: TranslationLook) -> dict[str, NamedWeights]:
    """The weights that `look_translating` draws."""
    return named_weights(_looked(translator, text, options), options.head)


def _looked(translator: Translator, text: str, options: TranslationLook) -> TextLook:
    asked = translator.directed(options.from_language, options.to, options.tag)
    text = text if options.target is not None else sentence_of(asked, text, options.sentence)
    return look_at_translation(asked, text, target=options.target, layers=options.layer or "*")


def look_at_translation(
    translator: Translator, text: str, *, target: str | None = None, layers: str | Sequence[str] = "*"
) -> TextLook:
    """Translates `text` (or takes `target` as its translation) and records who looked at whom on the way.

    `layers` chooses by name, such as "decoder.*.cross_attention". Raises InputError for an empty text.
    """
    ((ids,), _) = translator.encode([text])
    if not ids:
        raise InputError("there is no text to look at", fix='heed look RUN "a sentence"')
    about, said = type(translator.model).__name__, None
    if target is None:
        found = translator.search(text)
        target, about = found.text, f"{about}, score {found.score:z.3f} nats".replace("-", "\u2212")
        said = [*found.tokens[0]] if found.tokens else None
    said = said or [*translator.begin, *translator.target.encode([target])[0]]
    begin, end = translator.target.bos, translator.target.eos
    source, logits, weights = watched(translator, ids, said, layers)
    steps = steps_of(logits, [*said, end], translator.target, StepsOptions(most=64), forbidden=translator.forbidden)
    return TextLook(
        translator.target.decode(said),
        readable_pieces(translator.source, source),
        readable_pieces(translator.target, [begin, *said]),
        readable_pieces(translator.target, [*said, end]),
        weights,
        origin=text,
        about=about,
        steps=steps,
    )


def watched(
    translator: Translator, ids: Ids, said: Ids, layers: str | Sequence[str] = "*"
) -> tuple[Ids, Float[Tensor, "T V"], dict[str, Float[Tensor, "_ _ _"]]]:
    """One pass over a source and what is said of it: the source as it is read, of each token that is said, and of the
    end, the logits, and the weights by the names of the layers. V is the target's vocabulary."""
    translator.refuse_untold_target()
    device = translator.model.head.weight.device
    source, segments = (part.to(device) for part in translator.padded([ids]))
    read = torch.tensor([[translator.target.bos, *said]], device=device)
    alone = isinstance(translator.model, DecoderOnlyTranslator)
    queries = range(source.shape[1], source.shape[1] + read.shape[1]) if alone else None
    with torch.inference_mode(), record(translator.model, layers, queries=queries) as recording:
        logits = translator.model(source, read, segments, torch.ones_like(read))
    weights = {name: recording.weights(name)[0] for name in recording.names}
    return source[0].tolist(), logits[0].float().cpu(), weights
