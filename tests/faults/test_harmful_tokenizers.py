"""Folders of the Hub whose tokenizers, normalizers and templates explode, grow or break (X3): refused at import, in one
line, with nothing left behind."""

import base64
import json
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers

import heedful
from heedful.data.tokenizer import SpecialTokens, Tokenizer
from heedful.errors import InputError, StorageError, TextError
from heedful.verbs.exchange import import_model
from hub import LINES, bert_folder, gpt2_folder, marian_folder, t5_folder
from vocabularies import NASTY

SECONDS = 10  # of a processor
EXPLODING = [
    r"(a+)+$",
    r"(x+x+)+y",
    r"(.*)*=",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(\w+\s?)+!",
    r"(a|aa)+$",
    r"(\s*)*\S\z",
    r"((((a*)*)*)*)*b",
    r"(\d+)*\.$",
    "(" * 5000 + "a" + ")" * 5000,
    "(",
]


def replaced(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def doubled(word: str, times: int) -> list[dict[str, Any]]:
    return [{"type": "Replace", "pattern": {"String": word}, "content": word * 2}] * times


def charsmap(data: bytes) -> dict[str, Any]:
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


CHARSMAPS = {
    "empty": b"",
    "cut": bytes(3),
    "long": b"\xff" * 64,
    "one unit": bytes([4, 0, 0, 0, 0, 0, 0, 0]),
    "far": bytes([8, 0, 0, 0]) + b"\xff" * 8 + b"abc\0",
    "any": (1024).to_bytes(4, "little") + bytes(range(256)) * 4 + b"ab\0cd\0",
}
PIECE = {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}
TEXT = {"Sequence": {"id": "A", "type_id": 0}}


def template(ids: list[int], times: int = 1) -> dict[str, Any]:
    token = {"id": "<|endoftext|>", "ids": ids, "tokens": ["<|endoftext|>"] * len(ids)}
    single = [*[PIECE] * times, TEXT]
    return {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": {"<|endoftext|>": token}}


CHANGES: dict[str, dict[str, Any]] = {
    **{f"a pattern, {number}": {"pre_tokenizer": split(one)} for number, one in enumerate(EXPLODING)},
    **{f"a normalizer, {number}": {"normalizer": replaced(one, "b")} for number, one in enumerate(EXPLODING)},
    **{f"a table of normalisation, {name}": {"normalizer": charsmap(data)} for name, data in CHARSMAPS.items()},
    "a letter that grows": {"normalizer": {"type": "Sequence", "normalizers": doubled("a", 40)}},
    "all that grows": {"normalizer": {"type": "Sequence", "normalizers": [replaced(".", " $0 ")] * 30}},
    "a letter that is a book": {"normalizer": replaced(".", "x" * 1_000_000)},
    "nothing that grows": {"normalizer": {"type": "Sequence", "normalizers": [replaced("(?=.)", "xxxx")] * 12}},
    "a decoder that grows": {"decoder": {"type": "Sequence", "decoders": doubled("a", 40)}},
    "a frame of many": {"post_processor": template([1] * 1000, 1000)},
    "a frame out of range": {"post_processor": template([4_000_000_000])},
    "a vocabulary without what is unknown": {
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"a": 0, "<|endoftext|>": 1},
        },
    },
    "unigrams without what is unknown": {
        "model": {"type": "Unigram", "unk_id": None, "vocab": [["<|endoftext|>", 0.0], ["a", -1.0]]}
    },
    "an id beyond all": {"model": {"type": "BPE", "vocab": {"<|endoftext|>": 0, "a": 4_294_967_295}, "merges": []}},
    "an id below all": {"model": {"type": "BPE", "vocab": {"<|endoftext|>": 0, "a": -1}, "merges": []}},
    "sequences in sequences": {"normalizer": json.loads('{"type":"Sequence","normalizers":[' * 100 + "]}" * 100)},
}


def spoilt(good: Path, bad: Path) -> Iterator[Path]:
    """Copies of good folders, each with one thing in it that does harm."""

    def copy(of: str, name: str) -> Path:
        return Path(shutil.copytree(good / of, bad / f"{of}, {name}"))

    document = json.loads((good / "gpt2" / "tokenizer.json").read_text())
    for name, change in CHANGES.items():
        folder = copy("gpt2", name)
        (folder / "tokenizer.json").write_text(json.dumps(document | change))
        yield folder
    for name, data in CHARSMAPS.items():
        if data:
            spec = b"\x12" + _varint(len(data)) + data
            for of, file in (("t5", "spiece.model"), ("marian", "source.spm")):
                folder = copy(of, f"a table of normalisation, {name}")
                with (folder / file).open("ab") as model:
                    model.write(b"\x1a" + _varint(len(spec)) + spec)
                yield folder
    folder = copy("t5", "very many sentinels")
    told = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(told | {"extra_ids": 10**9}))
    yield folder
    folder = copy("t5", "a number that never ends")
    (folder / "spiece.model").write_bytes(b"\x80" * 1_000_000)
    yield folder
    folder = copy("bert", "a vocabulary without what is unknown")
    (folder / "vocab.txt").write_text((folder / "vocab.txt").read_text().replace("[UNK]", "[GONE]"))
    yield folder
    for name, text in TEMPLATES.items():
        folder = copy("gpt2", f"a template that {name}")
        (folder / "chat_template.jinja").write_text(text)
        yield folder


TEMPLATES = {
    "does not end": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "grows": "{% set x = namespace(y='x') %}{% for i in range(60) %}{% set x.y = x.y * 2 %}{% endfor %}{{ x.y }}",
    "writes on and on": "{% for a in range(99999) %}{{ 'x' * 9999 }}{% endfor %}",
}


def _varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def test_the_varint_is_right() -> None:
    assert _varint(300) == b"\xac\x02"


def test_a_tokenizer_that_does_harm_is_refused_at_import(tmp_path: Path, tally: Callable[[str, int], None]) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    bad.mkdir()
    made = {"gpt2": gpt2_folder, "marian": marian_folder}
    for name, make in made.items():
        make(good / name)
    t5_folder(good / "t5", bare=True)
    bert_folder(good / "bert", bare=True)
    for folder in good.iterdir():
        import_model(folder, tmp_path / "runs" / folder.name)
    count = 0
    for folder in spoilt(good, bad):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with pytest.raises((InputError, StorageError)) as caught:
            import_model(folder, tmp_path / "out")
        assert str(caught.value).isprintable(), folder
        assert caught.value.fix, folder
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS, folder
        assert not (tmp_path / "out").exists()
        count += 1
    assert count >= 40
    tally("X3 tokenizers and templates that do harm", count)


def test_what_was_imported_reads_every_text(tmp_path: Path) -> None:
    gpt2_folder(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "run")
    tokenizer = heedful.load(tmp_path / "run").tokenizer
    for text in NASTY[:30]:
        assert tokenizer.decode(tokenizer.encode([text])[0]) is not None
    assert len(NASTY) >= 30


def test_a_text_that_a_tokenizer_cannot_read_is_told_in_one_line(tmp_path: Path) -> None:
    """The next text has its answer."""
    gpt2_folder(tmp_path / "hub")
    inner = tokenizers.Tokenizer.from_file(str(tmp_path / "hub" / "tokenizer.json"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"(a+)+$"), "isolated"), inner.pre_tokenizer]
    )
    tokenizer = Tokenizer(inner, SpecialTokens(bos=0, eos=0))
    with pytest.raises(TextError, match=r"a text that the model's tokenizer cannot read \(.*retry-limit"):
        tokenizer.encode(["a" * 40 + "!"])
    assert tokenizer.encode([LINES[0]])[0]
