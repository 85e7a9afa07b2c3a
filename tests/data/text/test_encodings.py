"""Files that are not in UTF-8: read where it is sure what they are in, which is said, and refused otherwise."""

import os
from pathlib import Path

import pytest

from heedful.data.documents.read import read_document
from heedful.data.text.corpus import read_parallel
from heedful.data.text.encodings import read_encoded_lines
from heedful.data.text.glossary import read_glossary
from heedful.errors import InputError

RUSSIAN = "Мальчик идёт домой, читает книгу, поёт песню."
TEXTS = {
    "cp1252": "Die Straße ist schön, und der Bär schläft über Nacht.",
    "cp1250": "Zażółć gęślą jaźń, proszę się nie śmiać z mojego źdźbła trawy.",
    "iso8859_2": "Zażółć gęślą jaźń, proszę się nie śmiać z mojego źdźbła trawy.",
    "cp1251": RUSSIAN,
    "koi8_r": RUSSIAN,
    "cp949": "고양이가 창문 옆에서 자고 있습니다.",
    "euc_jp": "猫は窓の近くで眠っています。これはテストです。",
}


def pairs(text: str, count: int = 30) -> str:
    return "".join(f"The cat is number {i}.\t{text} {i}\n" for i in range(count))


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_sure_is_read_and_said(tmp_path: Path, name: str) -> None:
    path = tmp_path / "p.tsv"
    path.write_bytes(pairs(TEXTS[name]).encode(name))
    corpus = read_parallel(path)
    assert all(text.startswith(TEXTS[name]) for text in corpus.train.target)
    assert f"in {name}, as it seems, 30 pairs" in corpus.taken[0]


@pytest.mark.parametrize("name", ["utf-16", "utf-32", "utf-16-be", "utf-8-sig"])
def test_a_byte_order_mark_says_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "p.tsv"
    mark = b"\xfe\xff" if name == "utf-16-be" else b""
    path.write_bytes(mark + pairs(TEXTS["cp1251"]).encode(name))
    corpus = read_parallel(path)
    assert all(text.startswith(TEXTS["cp1251"]) for text in corpus.train.target)
    assert ("in UTF-" in corpus.taken[0]) == (name != "utf-8-sig")


def test_two_sides_may_be_in_two(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_text("".join(f"The cat is number {i}.\n" for i in range(30)))
    (tmp_path / "x.de").write_bytes("".join(f"{TEXTS['cp1252']} {i}\n" for i in range(30)).encode("cp1252"))
    corpus = read_parallel([tmp_path / "x.en", tmp_path / "x.de"])
    assert all(text.startswith(TEXTS["cp1252"]) for text in corpus.train.target)
    assert "target in cp1252, as it seems" in corpus.taken[0]


SPOILT = [f"Die Tür ist jetzt offen für alle {i}.\n".encode() for i in range(40)] + ["Die Tüte.\n".encode("latin-1")]


@pytest.mark.parametrize("kind", ["a table", "two sides", "a glossary", "lines", "a document"])
def test_a_line_that_is_not_utf_8_among_those_that_are_is_named(tmp_path: Path, kind: str) -> None:
    """Two files that were joined: the encoding of the one line would spoil all others."""
    path, sides = tmp_path / "m.tsv", [tmp_path / "m.en", tmp_path / "m.de"]
    if kind in ("a table", "a glossary"):
        path.write_bytes(b"".join(b"The door %d.\t" % i + line for i, line in enumerate(SPOILT)))
    elif kind == "two sides":
        sides[0].write_text("The door.\n" * len(SPOILT))
        sides[1].write_bytes(b"".join(SPOILT))
    else:
        path = tmp_path / "m.txt"
        path.write_bytes(b"".join(SPOILT))
    read = {
        "a table": lambda: read_parallel(path),
        "two sides": lambda: read_parallel(sides),
        "a glossary": lambda: read_glossary(path),
        "lines": lambda: read_encoded_lines(path),
        "a document": lambda: read_document(path),
    }
    with pytest.raises(InputError, match=r"m\.(tsv|de|txt):41: byte .*0xfc.* is not UTF-8") as caught:
        read[kind]()
    assert "most of the other lines are UTF-8: mend this line" in caught.value.fix


def test_a_line_that_is_utf_8_by_chance_is_not_most(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_bytes(SPOILT[0] + f"{TEXTS['cp1252']}\n".encode("cp1252") * 30)
    assert read_encoded_lines(path)[1] == "cp1252, as it seems"


@pytest.mark.parametrize("name", ["mac_roman", "cp850"])
def test_what_is_not_sure_is_refused_with_a_command(tmp_path: Path, name: str) -> None:
    path = tmp_path / "p.tsv"
    path.write_bytes(pairs(TEXTS["cp1252"]).encode(name))
    with pytest.raises(InputError, match="is not UTF-8") as caught:
        read_parallel(path)
    assert "iconv -f" in caught.value.fix


def test_a_mark_that_does_not_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_bytes(b"\xff\xfea\0b")
    with pytest.raises(InputError, match="not UTF-16, as its first bytes say"):
        read_parallel(path)


def test_a_pipe_is_refused_where_its_beginning_would_be_lost() -> None:
    reader, writer = os.pipe()
    with open(writer, "w") as pipe:
        pipe.write(pairs("Die Katze", 900))
    try:
        with pytest.raises(InputError, match="a pipe, which can be read only once"):
            read_parallel(f"/dev/fd/{reader}")
    finally:
        os.close(reader)
