"""Pairs of sentences in every layout of a folder, for the tests of readers."""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path

ENGLISH = [f"the number {n}" for n in range(40)]
GERMAN = [f"die Zahl {n}" for n in range(40)]
PARTS = {"train": (0, 30), "valid": (30, 35), "test": (35, 38), "test_2016": (38, 40)}


def lines(*texts: str) -> str:
    return "".join(text + "\n" for text in texts)


def tsv(start: int = 0, stop: int = 40) -> str:
    return lines(*(f"{ENGLISH[n]}\t{GERMAN[n]}" for n in range(start, stop)))


def comma(start: int, stop: int) -> str:
    return lines("id,DE,En", *(f'{n},"{GERMAN[n]}",{ENGLISH[n]}' for n in range(start, stop)))


def jsonl(start: int, stop: int) -> str:
    return lines(*(json.dumps({"de": GERMAN[n], "en": ENGLISH[n]}) for n in range(start, stop)))


def translations(start: int, stop: int) -> str:
    rows = ({"id": n, "translation": {"en": ENGLISH[n], "de": GERMAN[n]}} for n in range(start, stop))
    return lines(*map(json.dumps, rows))


def sides(valid: str = "valid", ending: str = "") -> dict[str, str]:
    return {
        f"{stem.replace('valid', valid)}.{name}{ending}": lines(*texts[start:stop])
        for stem, (start, stop) in PARTS.items()
        for name, texts in (("en", ENGLISH), ("de", GERMAN))
    }


def tables(kind: str, table: Callable[[int, int], str]) -> dict[str, str]:
    return {f"{stem}.{kind}": table(*part) for stem, part in PARTS.items()}


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder
