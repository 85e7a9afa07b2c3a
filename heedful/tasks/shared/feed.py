"""Feeds one input to a model, for watching the forward pass: texts that are read, and pictures."""

from typing import Any

from torch import Tensor

from heedful.data.frame import rectangle
from heedful.errors import InputError
from heedful.look.labels import token_label
from heedful.models import DETR, LM, Classifier, Encoder, Pyramid, TokenClassifier
from heedful.run.task import Feed
from heedful.tasks.shared.pictures import prepared
from heedful.tasks.shared.pieces import named_after
from heedful.tasks.shared.served import TextReader, opened


def feed_text(served: TextReader, text: str, pair: str | None) -> Feed:
    """One text or two, framed as the model reads them. The answer is the next token of a language model, the first
    masked token of an encoder, the class of a classifier with one answer, or the first token's label of a tagger.
    Raises InputError for an empty text, a pair where the model reads one text, and no pair where it reads two."""
    reads, tokenizer = served.reads, served.tokenizer
    framed = reads.framed(text, pair, "trace")
    if isinstance(reads.body, LM) and reads.says:  # without the end token, which the model may predict
        whole = len(framed.tokens) - len(reads.frame.end)
        framed = framed._replace(tokens=framed.tokens[:whole], types=framed.types[:whole])
    tokens, segments, types = rectangle([framed])
    model: Any = served.model
    masks = [i for i, token in enumerate(framed.tokens) if token == tokenizer.mask]

    def run() -> Tensor | None:
        match model:
            case LM():
                return model(tokens)[0, -1]
            case Encoder(head=None):
                model.hidden(tokens, None, types)
                return None
            case Encoder():
                logits = model(tokens, None, types)
                return logits[0, masks[0]] if masks else None
            case Classifier():
                logits = model(tokens[:, None], segments[:, None], types[:, None])[0]
                several = "labels" in served.about.values()  # task.json's word for labels of which several may hold
                return logits if len(logits) > 1 and not several else None
            case TokenClassifier():
                return model(tokens, segments, types)[0, 1]
        raise InputError(f"a {type(model).__name__} reads no text")

    past = framed.tokens[masks[0] - 1 if masks else -1]
    labels = served.about.get("labels", ())

    def name_of(index: int) -> str:
        return labels[index] if index < len(labels) else str(index)

    says_tokens = isinstance(model, LM | Encoder)
    names = named_after(tokenizer, past) if says_tokens else name_of
    return Feed([*map(token_label, reads.pieces(tokenizer, framed.tokens))], run, names)


def feed_picture(served: Any, file: str, pair: str | None) -> Feed:
    """A picture's file. The answer is its class, the class of the surest object, or that of the middle pixel. Raises
    InputError or MissingError."""
    if pair is not None:
        raise InputError("this model reads one picture", fix="leave out --pair")
    spec, model = served.spec, served.model
    ((pixels, _),) = prepared(opened([file], spec.preparation), spec.preparation, most=1)
    labels = [*spec.labels]

    def run() -> Tensor:
        made = model(pixels)
        if isinstance(model, DETR):
            logits = made.logits[-1, 0]
            return logits[int(logits.softmax(-1)[:, :-1].amax(-1).argmax())]
        if isinstance(model, Pyramid):
            return made[0, :, made.shape[2] // 2, made.shape[3] // 2]
        return made[0]

    _, channels, height, width = pixels.shape
    shown = [f"{height} x {width} pixels, {channels} channels"]
    return Feed(shown, run, lambda index: labels[index] if index < len(labels) else "nothing")
