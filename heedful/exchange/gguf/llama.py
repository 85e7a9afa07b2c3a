"""llama.cpp as an engine for one text at a time, by its own library (llama-cpp-python, an extra).

S prompt, T tokens at once, V vocabulary.
"""

import ctypes
import weakref
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
MOST_READ = 512  # tokens of a prompt at a time


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

    def __init__(self, path: Path) -> None:
        llama = library()
        options = llama.llama_model_default_params()
        options.n_gpu_layers = 0
        self.model = llama.llama_model_load_from_file(str(path).encode(), options)
        if not self.model:
            raise StorageError("llama.cpp cannot read it", where=str(path), fix="delete it, and it is made again")
        self.vocab_size: int = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))
        weakref.finalize(self, llama.llama_model_free, self.model)

    def reader(self, size: int) -> "LlamaReader":
        """Continues one text at a time, of at most `size` tokens."""
        return LlamaReader(self, size)


class LlamaState(NamedTuple):
    """The text that a reader has read, which is continued once."""

    length: int

    def pick(self, rows: Int[Tensor, "R"]) -> "LlamaState":
        _refuse_others(rows)
        return self

    def put(self, rows: Int[Tensor, "K"], newer: "LlamaState") -> "LlamaState":
        _refuse_others(rows)
        return newer

    def keep(self, length: int) -> "LlamaState":
        if length < self.length:
            raise InputError("llama.cpp forgets no token of a text", fix="leave out the draft, or the engine")
        return self


def _refuse_others(rows: Tensor) -> None:
    if rows.tolist() != [0]:
        raise InputError("llama.cpp continues one text at a time", fix="leave out the engine")


class LlamaReader:
    """A `RowsModel` of `heedful.decode.continuous` with one row."""

    def __init__(self, model: Llama, size: int) -> None:
        llama = library()
        self.vocab_size = model.vocab_size
        options = llama.llama_context_default_params()
        options.n_ctx, options.n_seq_max = size, 1
        options.n_batch = options.n_ubatch = min(size, MOST_READ)
        options.n_threads = options.n_threads_batch = torch.get_num_threads()
        options.type_k = options.type_v = FLOAT32
        options.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_DISABLED  # which rounds to 16 bits
        self._context = llama.llama_init_from_model(model.model, options)
        if not self._context:
            raise InputError(f"llama.cpp has no room for {size:,} tokens", fix="ask for fewer, or leave out the engine")
        self._batch = llama.llama_batch_init(options.n_batch, 0, 1)
        weakref.finalize(self, _free, self._context, self._batch, model)

    def start(self, source: Int[Tensor, "1 S"], segments: Int[Tensor, "1 S"] | None, size: int) -> LlamaState:
        llama = library()
        llama.llama_memory_clear(llama.llama_get_memory(self._context), False)
        tokens = source[0].tolist()
        for first in range(0, len(tokens), MOST_READ):
            self._read(tokens[first : first + MOST_READ], first, says=False)
        return LlamaState(len(tokens))

    def step(self, tokens: Int[Tensor, "1"], state: LlamaState) -> tuple[Float[Tensor, "1 V"], LlamaState]:
        self._read(tokens.tolist(), state.length, says=True)
        logits = library().llama_get_logits(self._context)
        copied = numpy.ctypeslib.as_array(logits, shape=(1, self.vocab_size)).copy()
        return torch.from_numpy(copied), LlamaState(state.length + 1)

    def steps(self, tokens: Int[Tensor, "1 T"], state: LlamaState) -> tuple[Float[Tensor, "1 T V"], LlamaState]:
        logits = []
        for token in tokens.unbind(1):
            newest, state = self.step(token, state)
            logits.append(newest)
        return torch.stack(logits, dim=1), state

    def _read(self, tokens: list[int], first: int, *, says: bool) -> None:
        batch, n = self._batch, len(tokens)
        batch.n_tokens = n
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, first + i, 1, 0
            batch.logits[i] = says and i == n - 1
        if code := library().llama_decode(self._context, batch):
            raise InputError(f"llama.cpp stopped ({code}) after {first:,} tokens", fix="leave out the engine")


def _free(context: Any, batch: Any, model: Llama) -> None:
    """The model outlives its contexts."""
    llama = library()
    llama.llama_batch_free(batch)
    llama.llama_free(context)
