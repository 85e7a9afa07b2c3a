"""One text or picture through its tower, for watching the forward pass."""

from os.path import isfile

from heedful.errors import InputError
from heedful.run.task import Feed
from heedful.tasks.match.use import Matcher
from heedful.tasks.shared.pictures import prepared
from heedful.tasks.shared.pieces import labelled_pieces
from heedful.tasks.shared.served import opened


def feed_matcher(served: Matcher, given: str, pair: str | None) -> Feed:
    """The file of a picture, or a text; with a `pair`, both towers: a picture, and the text that may belong to it.
    Nothing is said in the end: a vector has no name. Raises InputError or MissingError."""
    model = served.model
    text = pair if pair is not None else None if isfile(given) else given
    file = given if text != given else None
    tokens: list[str] = []
    pixels = rows = None
    if file is not None:
        ((pixels, _),) = prepared(opened([file], served.spec.preparation), served.spec.preparation, most=1)
        tokens.append(f"{pixels.shape[2]} x {pixels.shape[3]} pixels, {pixels.shape[1]} channels")
    if text is not None:
        rows = served.layout.rows(served.layout.encode([text]))
        tokens += labelled_pieces(served.tokenizer, rows[0].tolist())
    if pixels is None and rows is None:
        raise InputError("there is nothing to trace", fix="give a text, or the file of a picture")

    def run() -> None:
        if pixels is not None and rows is not None:
            model(pixels, rows)
        elif pixels is not None:
            model.encode_image(pixels)
        elif rows is not None:
            model.encode_text(rows)

    return Feed(tokens, run)
