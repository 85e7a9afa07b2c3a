"""The attention inside a parse: which brackets looked at which words, in every layer and head."""

from collections.abc import Sequence

import torch

from heedful.data.batches import pad
from heedful.data.text.trees import words_in
from heedful.data.tokenizer import BOS, EOS
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import DecoderOnlyTranslator
from heedful.run.task import Looked, NamedWeights
from heedful.tasks.parse.use import Parser
from heedful.tasks.shared.look import TextLook, draw_text, font_note, named_weights
from heedful.tasks.shared.options import LayerOptions
from heedful.tasks.shared.pieces import readable_pieces


def look_at_parse(parser: Parser, text: str, *, layers: str | Sequence[str] = "*") -> TextLook:
    """Parses a sentence, and records who looked at whom while its brackets were written. `layers` chooses by name, such
    as "decoder.*.cross_attention". Raises InputError for a sentence without a word."""
    if not words_in(text):
        raise InputError("there is no word to look at", fix='heed look RUN "a sentence"')
    tree = parser.parse(text)
    assert tree is not None
    ((ids, brackets),) = parser.pairs([tree])
    device = parser.model.head.weight.device
    source, segments = (part.to(device) for part in pad([ids]))
    read = torch.tensor([[BOS, *brackets]], device=device)
    alone = isinstance(parser.model, DecoderOnlyTranslator)
    queries = range(source.shape[1], source.shape[1] + read.shape[1]) if alone else None
    with torch.inference_mode(), record(parser.model, layers, queries=queries) as recording:
        parser.model(source, read, segments, torch.ones_like(read))
    names = parser.brackets.names
    return TextLook(
        str(tree),
        readable_pieces(parser.tokenizer, source[0].tolist()),
        [names[number] for number in (BOS, *brackets)],
        [names[number] for number in (*brackets, EOS)],
        {name: recording.weights(name)[0] for name in recording.names},
        origin=text,
        about=type(parser.model).__name__,
    )


def look_parsing(parser: Parser, text: str, kind: str, options: LayerOptions) -> Looked:
    looked = look_at_parse(parser, text, layers=options.layer or "*")
    picture = draw_text(looked, kind, head=options.head, chosen=options.layer is not None)
    facts = {"source": text, "text": looked.text, "layers": list(looked.weights)}
    return Looked(picture, f"{text}\n  -> {looked.text}{font_note(looked, kind)}", facts)


def attention_parsing(parser: Parser, text: str, options: LayerOptions) -> dict[str, NamedWeights]:
    """The weights that `look_parsing` draws."""
    return named_weights(look_at_parse(parser, text, layers=options.layer or "*"), options.head)
