"""llama.cpp as an engine of language models, by its own library (llama-cpp-python, an extra).

R rows, K of them, S prompt, T tokens at once, V vocabulary.
"""

import ctypes
import heapq
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError, MissingError, StorageError, pip_install

NAME = "llama.cpp"
FLOAT32 = 0  # of the library's types: keys and values are kept as ours are
MOST_READ = 512  # tokens at a time, of prompts and of all rows


@lru_cache(maxsize=1)
def library() -> Any:
    """The module `llama_cpp`, which then writes no log. Raises MissingError where it is not installed."""
    try:
        import llama_cpp
    except ImportError as error:
        fix = pip_install("'heedful[llama]'") + " (which needs a C++ compiler), or leave out the engine"
        raise MissingError("llama-cpp-python is not installed", fix=fix) from error
    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    llama_cpp.heedful_keeps = silent  # as long as the library may call it
    llama_cpp.llama_backend_init()
    return llama_cpp


class Llama:
    """The model of a file. Raises MissingError or StorageError."""

    name = NAME

    def __init__(self, path: Path) -> None:
        llama = library()
        options = llama.llama_model_default_params()
        options.n_gpu_layers = 0
        self.model = llama.llama_model_load_from_file(str(path).encode(), options)
        if not self.model:
            raise StorageError("llama.cpp cannot read it", where=str(path), fix="delete it, and it is made again")
        self.vocab_size: int = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))
        weakref.finalize(self, llama.llama_model_free, self.model)

    def reader(self, *, rows: int, size: int) -> "LlamaReader":
        """Continues so many texts at a time, each of at most `size` tokens."""
        return LlamaReader(self, rows, size)


@dataclass(eq=False)
class _Text:
    """What the library keeps of a text, under this number."""

    number: int
    length: int = 0  # tokens


class _Row(NamedTuple):
    """A text up to `length`, and the tokens after it that are not read yet; None: nothing of it is read."""

    text: _Text | None
    length: int
    unread: tuple[int, ...]


class _Token(NamedTuple):
    """A token at a place of a text. With the last one, the logits of this row are asked for."""

    text: _Text
    place: int
    token: int
    row: int | None


class LlamaState(NamedTuple):
    """Texts that were read so far. A row is continued once."""

    rows: tuple[_Row, ...]

    def pick(self, rows: Int[Tensor, "K"]) -> "LlamaState":
        return LlamaState(tuple(self.rows[row] for row in rows.tolist()))

    def put(self, rows: Int[Tensor, "K"], newer: "LlamaState") -> "LlamaState":
        replaced = dict(zip(rows.tolist(), newer.rows, strict=True))
        return LlamaState(tuple(replaced.get(i, row) for i, row in enumerate(self.rows)))

    def keep(self, length: int) -> "LlamaState":
        if any(length < row.length + len(row.unread) for row in self.rows):
            raise InputError("llama.cpp forgets no token of a text", fix="leave out the draft, or the engine")
        return self


class LlamaReader:
    """A `RowsModel` of `heedful.decode.continuous`. A prompt is read with its first step, beside the other rows."""

    def __init__(self, model: Llama, rows: int, size: int) -> None:
        llama = library()
        self.vocab_size = model.vocab_size
        options = llama.llama_context_default_params()
        options.n_ctx, options.n_seq_max = rows * size, rows
        options.n_batch = options.n_ubatch = MOST_READ
        options.n_threads = options.n_threads_batch = torch.get_num_threads()
        options.type_k = options.type_v = FLOAT32
        options.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_DISABLED  # which rounds to 16 bits
        self._context = llama.llama_init_from_model(model.model, options)
        if not self._context:
            what = f"llama.cpp has no room for {rows:,} texts of {size:,} tokens"
            raise InputError(what, fix="ask for fewer, or leave out the engine")
        self._memory = llama.llama_get_memory(self._context)
        self._batch = llama.llama_batch_init(MOST_READ, 0, 1)
        self._free = [*range(rows)]
        weakref.finalize(self, _free, self._context, self._batch, model)

    def start(self, source: Int[Tensor, "K S"], segments: Int[Tensor, "K S"] | None, size: int) -> LlamaState:
        prompts = source.tolist()
        lengths = [source.shape[1]] * len(prompts) if segments is None else segments.sum(1).tolist()
        return LlamaState(
            tuple(_Row(None, 0, tuple(prompt[:length])) for prompt, length in zip(prompts, lengths, strict=True))
        )

    def step(self, tokens: Int[Tensor, "R"], state: LlamaState) -> tuple[Float[Tensor, "R V"], LlamaState]:
        read, asked = list[_Row](), list[_Token]()
        for i, (row, token) in enumerate(zip(state.rows, tokens.tolist(), strict=True)):
            text, new = row.text or self._begun(), (*row.unread, token)
            if text.length != row.length:
                raise InputError("llama.cpp continues a text once", fix="leave out the engine")
            text.length += len(new)
            last = text.length - 1
            asked += [_Token(text, at, each, i if at == last else None) for at, each in enumerate(new, row.length)]
            read.append(_Row(text, text.length, ()))
        logits = torch.empty(len(read), self.vocab_size)
        for first in range(0, len(asked), MOST_READ):
            self._read(asked[first : first + MOST_READ], logits)
        return logits, LlamaState(tuple(read))

    def steps(self, tokens: Int[Tensor, "R T"], state: LlamaState) -> tuple[Float[Tensor, "R T V"], LlamaState]:
        logits = []
        for token in tokens.unbind(1):
            newest, state = self.step(token, state)
            logits.append(newest)
        return torch.stack(logits, dim=1), state

    def _begun(self) -> _Text:
        """A text that was not read yet. Its number is free again when no state holds it."""
        number = heapq.heappop(self._free)
        library().llama_memory_seq_rm(self._memory, number, -1, -1)
        text = _Text(number)
        weakref.finalize(text, heapq.heappush, self._free, number)
        return text

    def _read(self, tokens: Sequence[_Token], logits: Float[Tensor, "R V"]) -> None:
        """Reads tokens, and fills the rows of `logits` that are asked for."""
        llama, batch = library(), self._batch
        batch.n_tokens = len(tokens)
        for i, (text, place, token, row) in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, place, 1, text.number
            batch.logits[i] = row is not None
        if code := llama.llama_decode(self._context, batch):
            raise InputError(f"llama.cpp stopped ({code}) at {len(tokens):,} tokens", fix="leave out the engine")
        for i, (_, _, _, row) in enumerate(tokens):
            if row is not None:
                given = llama.llama_get_logits_ith(self._context, i)
                logits[row] = torch.from_numpy(numpy.ctypeslib.as_array(given, shape=(self.vocab_size,)))


def _free(context: Any, batch: Any, model: Llama) -> None:
    """The model outlives its contexts."""
    llama = library()
    llama.llama_batch_free(batch)
    llama.llama_free(context)
