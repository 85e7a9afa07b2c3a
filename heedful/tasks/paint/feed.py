"""A picture's pixels through a painter, for watching the forward pass."""

from torch import Tensor

from heedful.errors import InputError
from heedful.run.task import Feed
from heedful.tasks.paint.use import Painter
from heedful.tasks.shared.pictures import prepared
from heedful.tasks.shared.served import opened


def feed_painter(served: Painter, file: str, pair: str | None) -> Feed:
    """What is said in the end is the colour of the last pixel. Raises InputError or MissingError."""
    if pair is not None:
        raise InputError("this model reads one picture", fix="leave out --pair")
    fitting = served.spec.preparation
    ((pictures, _),) = prepared(opened([file], fitting), fitting, most=1)
    tokens = served.spec.batch(pictures).tokens

    def run() -> Tensor:
        return served.model(tokens)[0, -1]

    return Feed([f"{fitting.size[0]} x {fitting.size[1]} pixels as {tokens.shape[1]} tokens"], run)
