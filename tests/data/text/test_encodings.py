"""Files that are not in UTF-8: read where it is sure what they are in, which is said, and refused otherwise."""

import os
from pathlib import Path

import pytest

from heedful.data.text.corpus import read_parallel
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
