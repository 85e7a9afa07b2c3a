"""Word vectors in use: neighbours, analogies, and similarities.

V words, D width.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.lines import composed
from heedful.errors import InputError
from heedful.models.vectors import Vectors, VectorsConfig
from heedful.run.device import Device, known_device
from heedful.run.folder import Saved, read_textless_run
from heedful.tasks.shared.asked import refuse_no_answers
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.opened import Opened
from heedful.tasks.shared.served import refuse_run_of_another, spec_of
from heedful.tasks.vectors.formats import read_vectors
from heedful.tasks.vectors.words import Splitting, WordsAre

FILES = (".txt", ".vec", ".bin")


@dataclass(frozen=True, kw_only=True)
class VectorsSpec:
    """The content of task.json besides the task's name: the word of each row, and how texts are split into words."""

    words: tuple[str, ...]
    splitting: WordsAre = "blanks"
    lower: bool = False


class Near(NamedTuple):
    """A word, and its cosine with the query."""

    word: str
    score: float


class WordVectors(Opened):
    """A trained matrix of word vectors, and its words."""

    model: Vectors
    purpose: ClassVar = "vectors of words"

    def __init__(self, model: Vectors, about: dict[str, Any]) -> None:
        self.model, self.about = model.eval(), about
        self.spec = spec_of(VectorsSpec, about)
        if len(self.spec.words) != model.config.vocab_size:
            what = f"{len(self.spec.words)} words for {model.config.vocab_size} vectors"
            raise InputError(what, where="task.json", fix="config.json and task.json must come from one run")
        self.numbers = {word: number for number, word in enumerate(self.spec.words)}
        composes = all(word == composed(word) for word in self.spec.words)  # older vocabularies may hold other words
        self.split = Splitting(self.spec.splitting, self.spec.lower, composes)
        with torch.no_grad():
            rows = torch.arange(model.config.vocab_size, device=model.words.weight.device)
            self.vectors: Float[Tensor, "V D"] = model(rows).float().cpu()
        self.unit: Float[Tensor, "V D"] = F.normalize(self.vectors, dim=1)

    @classmethod
    @checks_arguments
    def load(cls, run: str | Path, *, device: Device = "cpu") -> "WordVectors":
        """Loads the vectors in a run's folder, or in a file in word2vec's or GloVe's format (.txt, .vec, .bin). Raises
        MissingError, InputError or StorageError."""
        path = Path(run)
        if path.suffix in FILES and not path.is_dir():
            return cls.read(path)
        refuse_run_of_another(run, "vectors", cls.purpose)
        model, about = read_textless_run(path)
        return cls(model.to(known_device(device)), about)

    @classmethod
    def read(cls, path: Path) -> "WordVectors":
        words, rows = read_vectors(path)
        with torch.no_grad():
            model = Vectors(VectorsConfig(vocab_size=len(words), d_model=rows.shape[1]))
            model.words.weight.copy_(torch.from_numpy(rows))
        return cls(model, {"task": "vectors", "words": tuple(words)})

    @property
    def words(self) -> tuple[str, ...]:
        """The words, the most frequent first."""
        return self.spec.words

    def row_of(self, word: str) -> int | None:
        """The number of a word's row; None for a word without a vector."""
        word = composed(word) if self.split.composes else word
        return self.numbers.get(word, self.numbers.get(word.lower()) if self.spec.lower else None)

    def number(self, word: str) -> int:
        """The number of a word's row. Raises InputError for a word without a vector, which names similarly spelled
        words."""
        found = self.row_of(word)
        if found is None:
            like = get_close_matches(word.lower(), self.words[:50_000], n=3, cutoff=0.75)
            fix = f"did you mean {', '.join(like)}?" if like else "take a word that the text has often enough"
            raise InputError(f"no vector for {word!r}", fix=fix)
        return found

    @checks_arguments
    def similarity(self, one: str, other: str) -> float:
        """The cosine between two words. Raises InputError."""
        return float(self.unit[self.number(one)] @ self.unit[self.number(other)])

    @one_or_many()
    def near(self, words: Sequence[str], *, top: int = 10) -> list[list[Near]]:
        """The words nearest to each word, without itself. Raises InputError."""
        refuse_no_answers(top)
        asked = [self.number(word) for word in words]
        return [self._nearest(self.unit[number], {number}, top) for number in asked]

    @checks_arguments
    def analogy(self, a: str, b: str, c: str, *, top: int = 10) -> list[Near]:
        """The words that are to `c` as `b` is to `a`: those nearest to b - a + c, of unit vectors, without the three
        (Mikolov et al. 2013c, section 4; 3CosAdd). Raises InputError."""
        refuse_no_answers(top)
        numbers = [self.number(word) for word in (a, b, c)]
        wanted = self.unit[numbers[1]] - self.unit[numbers[0]] + self.unit[numbers[2]]
        return self._nearest(F.normalize(wanted, dim=0), set(numbers), top)

    def _nearest(self, wanted: Float[Tensor, "D"], without: set[int], top: int) -> list[Near]:
        scores = self.unit @ wanted
        scores[[*without]] = -torch.inf
        found = scores.topk(min(top, len(self.words) - len(without)))
        return [Near(self.words[i], s) for i, s in zip(found.indices.tolist(), found.values.tolist(), strict=True)]

    @checks_arguments
    def embed(self, inputs: str | Sequence[str]) -> Float[Tensor, "*B D"]:
        """The vector of a text, or of each: the mean of its words' vectors; zeros where no word has one."""
        made, _ = self.vectors_of([inputs] if isinstance(inputs, str) else inputs)
        return made[0] if isinstance(inputs, str) else made

    def vectors_of(self, inputs: Sequence[str]) -> tuple[Float[Tensor, "B D"], list[str]]:
        """The vectors of several texts, and for each without a word that has a vector a warning, otherwise ""."""
        known = [[self.numbers[word] for word in self.split(text) if word in self.numbers] for text in inputs]
        zero = torch.zeros(self.vectors.shape[1])
        rows = [self.vectors[numbers].mean(0) if numbers else zero for numbers in known]
        warnings = ["" if numbers else "no word of it has a vector" for numbers in known]
        return torch.stack(rows) if rows else self.vectors[:0], warnings


def vector_facts(saved: Saved) -> Mapping[str, Any]:
    """The facts of a run that `heed info` shows."""
    config: VectorsConfig = saved.config
    return {"task": saved.about["task"], "method": config.method, "words": config.vocab_size, "width": config.d_model}
