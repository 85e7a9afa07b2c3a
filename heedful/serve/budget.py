"""What one request may have written: new tokens of all its texts, and the time of an answer that is not streamed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from heedful.errors import LateError, TooMuchError
from heedful.serve.limits import Limits

WHOLE = 10.0  # times the seconds until a piece: until all of an answer that is not streamed


def refuse_tokens(count: int, limits: Limits) -> None:
    """Raises TooMuchError for so many new tokens in one request."""
    if count > limits.tokens:
        what = f"up to {count:,} new tokens, at most {limits.tokens:,} in one request"
        raise TooMuchError(what, fix="ask for fewer texts or tokens at once")


@asynccontextmanager
async def whole_in_time(name: str, limits: Limits) -> AsyncIterator[None]:
    """What is inside is cancelled where it takes too long for one answer. Raises LateError then."""
    seconds = WHOLE * limits.seconds
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        what = f"{name} had not ended its answer within {seconds:g} s"
        raise LateError(what, fix="ask for fewer texts or tokens, or stream them") from None
