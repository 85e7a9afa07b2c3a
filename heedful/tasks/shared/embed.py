"""Texts as vectors: one vector for each text, from the hidden states of a trained body."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, get_args, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import normalize

from heedful.apply.inference import for_inference
from heedful.core.arguments import checks_arguments
from heedful.data.batches import of_like_length
from heedful.data.frame import Frame, Framed, rectangle
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, TextError
from heedful.models import LM, Classifier, Encoder, Seq2Seq, TokenClassifier
from heedful.run.device import Device, known_device
from heedful.run.folder import read_run
from heedful.run.task import Served
from heedful.tasks.shared.lengths import cut_at, cut_warning, most_positions, warn
from heedful.tasks.shared.one_or_many import is_one, listed
from heedful.tasks.shared.opened import Opened
from heedful.tasks.shared.reading import READ
from heedful.tasks.shared.served import Reads

Pool = Literal["mean", "first"]
Read = Callable[[Int[Tensor, "N T"], Int[Tensor, "N T"]], Float[Tensor, "N T C"]]


@runtime_checkable
class Tokenized(Served, Protocol):
    tokenizer: Tokenizer


@runtime_checkable
class Translates(Served, Protocol):
    source: Tokenizer


class TextEncoder(Opened):
    """The body of a model, and its tokenizer: an encoder, a language model, or the encoder of a translator. Raises
    InputError for a model that has no such part."""

    purpose: ClassVar = "vectors of texts"

    def __init__(self, model: nn.Module, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.tokenizer, self.about = tokenizer, about
        body: nn.Module | None = model
        match model:
            case Classifier():
                body = model.lm or model.encoder
            case TokenClassifier():
                body = model.encoder
        self.body = body
        self.context: int | None  # how many tokens it can read; None: any number
        self.causal = isinstance(body, LM)  # a token sees only those before it
        match body:
            case Encoder() | LM():
                self._read: Read = body.hidden
                self.width = body.config.d_model
                self.context = body.config.embed.context_length
                bos = about.get("before", [tokenizer.bos])
                self.frame = Frame(bos, [], []) if self.causal else Frame.of_encoder(tokenizer)
            case Seq2Seq():
                self._read, self.context = body.encode, most_positions(body.config)
                self.width = body.config.d_model
                self.frame = Frame(about.get("before", []), [], about.get("after", [tokenizer.eos]))
            case _:
                raise InputError(f"a {type(model).__name__} does not read a text apart from what it says of it")

    @classmethod
    @checks_arguments
    def load(cls, run: str | Path, *, device: Device = "cpu") -> "TextEncoder":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, tokenizer, _, about = read_run(Path(run))
        return cls(for_inference(model.to(known_device(device))), tokenizer, about)

    @classmethod
    def of(cls, served: Tokenized | Translates) -> "TextEncoder":
        """The encoder of a model that is already loaded."""
        tokenizer = served.source if isinstance(served, Translates) else served.tokenizer
        return cls(served.model, tokenizer, dict(served.about))

    @property
    def reads(self) -> Reads:
        assert isinstance(self.body, LM | Encoder)  # translators have a `reads` of their own
        return Reads(self.body, self.frame, self.tokenizer.encode)

    def encode(self, texts: Sequence[str]) -> tuple[list[Framed], list[int]]:
        """The framed tokens of each text, and how many tokens at its end were cut off for the model. Raises TextError
        for an empty text."""
        if any(not text.strip() for text in texts):
            raise TextError("an empty text", fix="give some words")
        room = None if self.context is None else self.context - self.frame.extra(pair=False)
        kept, cut = cut_at(self.tokenizer.encode(texts), room)
        return [self.frame.put(ids) for ids in kept], cut

    @checks_arguments
    def embed(self, texts: str | Sequence[str], *, pool: str = "mean") -> Float[Tensor, "*N C"]:
        """A vector for each text, or for one: the mean of all hidden states (Reimers and Gurevych 2019, section 3), or
        the first.

        Warns of texts that are too long to be read completely. Raises InputError for an empty text, and for the first
        hidden state of a causal model.
        """
        vectors, warned = self.vectors_of(listed(texts), pool=pool)
        warn(warned)
        return vectors[0] if is_one(texts) else vectors

    def vectors_of(self, texts: Sequence[str], *, pool: str = "mean") -> tuple[Float[Tensor, "N C"], list[str]]:
        """`embed` for several texts, and for each a warning if it was not read completely, or ""."""
        if pool not in get_args(Pool):
            raise InputError(f"there is no pool {pool!r}", fix=f"--pool {' or '.join(get_args(Pool))}")
        if pool == "first" and self.causal:
            raise InputError("at the first token a language model has read nothing else", fix="--pool mean")
        rows, cut = self.encode(texts)
        read = [len(row.tokens) - self.frame.extra(pair=False) for row in rows]
        warned = [cut_warning(kept, kept + beyond) for kept, beyond in zip(read, cut, strict=True)]
        return self.vectors(rows, pool=pool), warned

    @torch.inference_mode()
    def vectors(self, rows: Sequence[Framed], *, pool: str = "mean") -> Float[Tensor, "N C"]:
        """`embed` for texts that are encoded already."""
        lengths = [len(row.tokens) for row in rows]
        made = torch.empty(len(rows), self.width)
        device = next(self.model.parameters()).device
        for group in of_like_length(lengths, READ):
            tokens, segments, _ = (part.to(device) for part in rectangle([rows[i] for i in group]))
            hidden, real = self._read(tokens, segments).float(), segments > 0
            means = (hidden * real[..., None]).sum(1) / real.sum(1, keepdim=True)
            made[group] = (means if pool == "mean" else hidden[:, 0]).cpu()
        return made


def nearest(vector: Float[Tensor, "C"], others: Float[Tensor, "N C"], *, top: int) -> list[tuple[int, float]]:
    """The others with the highest cosine similarity, and the cosines, the nearest first."""
    best = (normalize(others, dim=1) @ normalize(vector, dim=0)).topk(min(top, len(others)))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
