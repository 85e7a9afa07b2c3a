"""Servers for tests: an application on a free port of this machine, and untrained models for it."""

import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI

import heedful
from heedful import cli
from heedful.data.text.chat_template import QUESTION_ANSWER
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.models import make_model
from heedful.models.presets import EncoderSize, LMSize, TransformerSize, encoder_config, lm_config, translator_config
from heedful.serve.engine import open_engine
from heedful.serve.hosted import Hosted
from made import made_corpus
from saved import save_run
from waiting import PATIENCE, becomes

PAIRS = made_corpus(200).train
LINES = [f"{source} > {target} é😀.\n" for source, target in zip(PAIRS.source, PAIRS.target, strict=True)]


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """Runs a server of this application in a thread, and yields its address, such as "http://127.0.0.1:40123"."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert becomes(lambda: server.started or not thread.is_alive()), "the server did not start"
        assert server.started, "the server ended"
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
    assert not thread.is_alive()


@contextmanager
def serving(*words: object, cwd: Path | None = None, **more: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """What the command says, and its process."""
    command = [sys.executable, "-m", "heedful", "serve", *map(str, words), "--port", "0", "--json", "--device", "cpu"]
    root = str(Path(cli.__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1", **more}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=cwd, start_new_session=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr and process.stderr.read()
        yield json.loads(line), process
    finally:
        process.kill()
        process.communicate()


def loud(config: Any, *, seed: int = 0, std: float = 0.4) -> Any:
    """A model with large random weights, whose answers differ much between inputs."""
    model = make_model(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=std, generator=generator)
    return model


@functools.cache
def tokenizer_of(kind: str = "bpe") -> Tokenizer:
    return train_tokenizer(LINES, kind=kind, size=330)


def translator(folder: Path, source: str, target: str, *, seed: int = 0, **about: Any) -> Path:
    own = tokenizer_of()
    size = TransformerSize(d_model=16, n_heads=2, d_ff=32, encoder_layers=1, decoder_layers=1, order="pre", dropout=0.0)
    config = translator_config(size, source_vocab=own.size, target_vocab=own.size, joint=True)
    about = {"task": "translate", "source": source, "target": target, "decode": {"beam": 2, "longest": 8}} | about
    return save_run(folder, loud(config, seed=seed), own, own, about)


def language_model(folder: Path, *, context: int = 24, kind: str = "bpe") -> Path:
    own = tokenizer_of(kind)
    size = LMSize(n_layers=1, d_model=16, n_heads=2, vocab_size=own.size, context_length=context)
    return save_run(folder, loud(lm_config(size), seed=4), own, own, {"task": "generate"})


def chat_model(folder: Path, *, context: int = 48) -> Path:
    own = train_tokenizer(LINES, kind="bpe", size=330, extra=["<EOQ>"])
    size = LMSize(n_layers=1, d_model=16, n_heads=2, vocab_size=own.size, context_length=context)
    forbidden = [index for index in own.controls if index != own.eos]
    about = {"task": "generate", "chat": True, "before": [], "end": own.eos, "forbidden": forbidden}
    save_run(folder, loud(lm_config(size), seed=4), own, own, about)
    (folder / "chat_template.jinja").write_text(QUESTION_ANSWER)
    return folder


def encoder(folder: Path) -> Path:
    own = tokenizer_of()
    size = EncoderSize(n_layers=1, d_model=16, n_heads=2, context_length=24, dropout=0.0)
    config = encoder_config(size, vocab_size=own.size, mlm_head=False)
    return save_run(folder, loud(config), own, own, {"task": "encode"})


def hosted(*runs: Path) -> Mapping[str, Hosted]:
    return {run.name: open_engine(run) for run in runs}


@functools.cache
def opened(run: Path) -> Any:
    """The same model, for calls without a server."""
    return heedful.load(run)
