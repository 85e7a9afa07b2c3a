"""Tries a tokenizer of unknown origin, in a process of its own, before it is used in this one.

The file of a tokenizer is a program: patterns, replacements, tables of normalisation. It may need more time or memory
for a text than there is, fail for some texts, or end the process that reads it. Here it reads short texts, among them
repetitions of the characters in its own patterns, which are what a pattern needs much time for.
"""

import base64
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from heedful.errors import StorageError

SECONDS = 2  # of a processor, for all the texts
MEMORY = 1 << 30  # bytes of addresses
BYTES_IN_A_SECOND, MEMORY_OF_A_BYTE = 1 << 21, 48  # of a file that is read
PATIENCE = 300  # seconds
GROWTH, SPARE = 64, 1000  # at most so many tokens or characters from each character of a text, and from an empty one
REPEATED = 500
MOST_CHARACTERS = 16  # of a tokenizer's patterns that are tried

TEXTS = (
    "",
    "a",
    "Hello, world! It's 3:45 p.m.; isn't it?",
    "The quick brown fox jumps over the lazy dog. THE QUICK BROWN FOX 0123456789\n\tthe end\r\n",
    "".join(map(chr, range(32, 127))),
    "".join(map(chr, range(160, 384))),
    "\u00e9e\u0301\u1e69s\u0323\u0307 \ufb01 \u2460 \u00bd \u2126 \u017f \u0130 \u1e9e",
    "\u6f22\u5b57\u3068\u304b\u306a\u30ab\u30ca\ud55c\uad6d\uc5b4",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7 \U0001f44d\U0001f3fd \u2764\ufe0f",
    "\u200b\u200e\u202e\ufeff\u00ad\ufffd\u2028\x01\x7f\u0085",
    *(REPEATED * text for text in ("a", "A", "0", " ", "\n", "\t ", ".", "!", "'s", "-", "\u00e9", "\u6f22")),
    *(REPEATED // 5 * text for text in ("ab ", "aB1 ", "e\u0301", "\u0301", "\ufdfa", "\u200d", "\U0001f600")),
)
ALONE = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}


def refuse_harmful(document: bytes, *, where: Path) -> None:
    """Raises StorageError, in one line and within seconds, for a `tokenizer.json` that cannot be read, or that cannot
    read every text."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from heedful.exchange.trial import main; main()"
    told = ""
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=document,
            capture_output=True,
            env=os.environ | ALONE,
            start_new_session=True,  # Ctrl-C in a terminal must reach only this process
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode == 0:
            told = json.loads(done.stdout)
        elif done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            told = "it takes too much time for short texts"
        else:
            told = "it takes too much memory, or ends the process that reads it"
    except subprocess.TimeoutExpired:
        told = "it takes too much time for short texts"
    if told:
        fix = "get the file again from its source, or take another model"
        raise StorageError(f"not a tokenizer that can be used: {told}", where=str(where), fix=fix)


def with_charsmap(charsmap: bytes) -> bytes:
    """A `tokenizer.json` that only normalises, by this table of SentencePiece."""
    table = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
    model = {"type": "BPE", "vocab": {}, "merges": []}
    return json.dumps({"version": "1.0", "added_tokens": [], "normalizer": table, "model": model}).encode()


def main() -> None:
    """The process that tries: a tokenizer on standard input; on standard output a JSON string, empty or its fault."""
    document = sys.stdin.buffer.read()
    most = MEMORY + MEMORY_OF_A_BYTE * len(document)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    _limit_time(SECONDS + len(document) // BYTES_IN_A_SECOND)
    try:
        told = _fault_of(document)
    except BaseException as error:  # also the library's PanicException, which is no Exception
        told = " ".join(str(error).split())[:200] or type(error).__name__
        told = "one of its patterns takes too much time" if "retry-limit" in told else told
    sys.stdout.write(json.dumps(told))


def _limit_time(seconds: int) -> None:
    """Ends this process after so many seconds more of a processor."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _fault_of(document: bytes) -> str:
    tokenizer = Tokenizer.from_str(document.decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    _limit_time(SECONDS)
    for text in (*TEXTS, *_made_of_patterns(document)):
        most = GROWTH * len(text) + SPARE
        normal = text if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str(text)
        if len(normal) > most:
            return f"it makes {len(normal):,} characters of {len(text):,}"
        found = tokenizer.encode(text)
        if len(found.ids) > most:
            return f"it makes {len(found.ids):,} tokens of {len(text):,} characters"
        if unknown := [index for index in set(found.ids) if tokenizer.id_to_token(index) is None]:
            return f"it makes the token {min(unknown)}, which is not in its vocabulary"
        written = len(tokenizer.decode(found.ids, skip_special_tokens=False))
        if written > most + sum(map(len, found.tokens)):
            return f"it writes {written:,} characters for {len(found.ids):,} tokens"
    return ""


def _made_of_patterns(document: bytes) -> Iterator[str]:
    """Repetitions of the characters that the patterns name, with and without all of them at the end."""
    for pattern in sorted(set(_patterns_in(json.loads(document)))):
        plain = re.sub(r"\\[pP]\{[^}]*\}|\\x\{?[0-9A-Fa-f]+\}?|\{[0-9,]*\}|\(\?[a-zA-Z<!=:-]*", "", pattern)
        plain = plain.replace("\\s", " ").replace("\\d", "0").replace("\\w", "a")
        found = set(re.sub(r"\\(\W)|\\\w|[\[\]()|*+?^$.]", r"\1", plain))
        named = "".join(sorted(found))[:MOST_CHARACTERS]
        for text in (*named, named):
            yield from (REPEATED * text + end for end in ("~", f"{named}~", f"~{named}"))


def _patterns_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "Regex" and isinstance(inner, str):
                yield inner
            elif key != "vocab":
                yield from _patterns_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _patterns_in(inner)
