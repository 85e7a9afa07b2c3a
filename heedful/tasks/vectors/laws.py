"""The laws of word vectors."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy
import torch

from heedful.run.task import Law
from heedful.store import files
from heedful.tasks.vectors.formats import as_binary, as_text, read_vectors
from heedful.tasks.vectors.use import WordVectors


def vector_laws(served: WordVectors, texts: Sequence[str]) -> Iterator[Law]:
    """Checks the laws on the words of these texts, or on the most frequent ones: at most a thousand."""
    asked = [word for text in texts for word in text.split() if word in served.numbers] or [*served.words]
    words = [*dict.fromkeys(asked)][:1000]
    rows = served.vectors[[served.numbers[word] for word in words]].numpy()
    with tempfile.TemporaryDirectory() as folder:
        for suffix, made in ((".txt", as_text(words, rows)), (".bin", as_binary(words, rows))):
            path = Path(folder) / f"vectors{suffix}"
            files.write_bytes(path, made)
            again, read = read_vectors(path)
            worst = float(numpy.abs(read - rows).max()) if again == words else float("inf")
            yield Law(f"written as {suffix} then read", worst, 0.0, otherwise="other programs would have other vectors")
    own = served.unit[[served.numbers[word] for word in words]]
    alone = torch.tensor([served.similarity(word, word) for word in words])
    zero = own.norm(dim=1) == 0
    worst = float((alone - 1)[~zero].abs().max()) if not bool(zero.all()) else 0.0
    yield Law("a word is like itself", worst, 1e-5, otherwise="what is near would mean nothing")
