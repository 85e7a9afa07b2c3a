"""The one way from a key to random numbers.

Whatever is random in a training belongs to a key, such as (seed, epoch, sample), and to nothing else: neither to
what was drawn before it nor to who draws it. So workers, ranks, batches and resuming change no number.

A key has one form for each kind of numbers, and none may ever change: runs that were begun with it continue with it.
"""

import hashlib
import random


def counter_seed(*key: object) -> int:
    """A seed (63 bits) of this key, the same on every machine."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def random_stream(*key: object) -> random.Random:
    """Numbers one after another, of this key."""
    return random.Random(" ".join(map(str, key)))


def shuffled(n: int, seed: int, epoch: int) -> list[int]:
    """A permutation of range(n) that depends on (n, seed, epoch) only, so any epoch can be entered anew."""
    import torch  # those who read files or documents start without it

    key = hashlib.sha256(f"{seed} {epoch}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(key[:4], "big"))
    return torch.randperm(n, generator=generator).tolist()


def hashed(text: str) -> bytes:
    """What texts are ordered by to choose some of them at random: each machine chooses the same, and more texts change
    the choice of few."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
