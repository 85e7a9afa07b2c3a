"""Running text, and which files of a folder are read for each task."""

import gzip
import json
from pathlib import Path

import pytest

from heedful.data.images.captions import read_captioned
from heedful.data.text.conversations import read_conversations
from heedful.data.text.documents import read_documents
from heedful.data.text.labelled import read_labelled
from heedful.data.text.questions import read_questions
from heedful.errors import InputError, MissingError

TEXTS = [f"text {n}" for n in range(30)]
APPLE_DOUBLE = b"\0\5\x16\7\0\2\0\0"  # what macOS puts beside a file on disks of other systems


def test_a_list_of_objects_is_their_texts(tmp_path):
    """The signs of JSON were learnt as text."""
    (tmp_path / "a.json").write_text(json.dumps([{"text": text, "id": n} for n, text in enumerate(TEXTS)], indent=1))
    found = read_documents(tmp_path / "a.json")
    assert found.train + found.valid == TEXTS
    (tmp_path / "a.json").write_text('[{"content": "text"}]')
    with pytest.raises(InputError, match=r'a\.json: item 1: no "text" that is a string'):
        read_documents(tmp_path / "a.json")


@pytest.mark.parametrize(("name", "told"), [("a.csv", True), ("A.HTML.gz", True), ("a.txt", False), ("a", False)])
def test_a_table_that_is_learnt_as_it_stands_is_told(tmp_path, name, told):
    data = "".join(f"{n},{text}\n" for n, text in enumerate(TEXTS)).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    found = read_documents(tmp_path / name)
    assert [f"{tmp_path / name}: learnt as it stands" in note for note in found.notes] == [True] * told + [False]


def test_names_in_capitals(tmp_path):
    (tmp_path / "TEXTS.JSONL").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    found = read_documents(tmp_path / "TEXTS.JSONL")
    assert found.train + found.valid == TEXTS  # the objects were learnt as text
    (tmp_path / "A.CSV").write_text("text,label\n" + "".join(f"{text},a\n" for text in TEXTS))
    assert len(read_labelled(tmp_path / "A.CSV").train) == 27
    rows = [{"question": "who?", "context": text, "answer": "text"} for text in TEXTS]
    (tmp_path / "A.JSONL").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(read_questions(tmp_path / "A.JSONL").train) == 27
    rows = [{"question": text, "answer": "yes"} for text in TEXTS]
    (tmp_path / "B.JSON").write_text(json.dumps(rows))
    assert len(read_conversations(tmp_path / "B.JSON").train) == 27


def test_hidden_files_of_a_folder_are_not_read(tmp_path):
    for name in ("train.txt", "train.csv"):
        (tmp_path / f"._{name}").write_bytes(APPLE_DOUBLE)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    with pytest.raises(MissingError, match=r"no \.txt and no \.jsonl file"):
        read_documents(tmp_path)
    (tmp_path / "train.txt").write_text("a text\n" * 20)
    assert read_documents(tmp_path).train[0].startswith("a text\n")
    (tmp_path / "train.txt").unlink()
    (tmp_path / "train.csv").write_text("text,label\n" + "".join(f"{text},a\n" for text in TEXTS))
    assert len(read_labelled(tmp_path).train) == 27
    (tmp_path / "train.csv").unlink()
    with pytest.raises(MissingError, match="no table of pictures and texts"):
        read_captioned(tmp_path)


@pytest.mark.parametrize("count", [1, 50])
def test_of_much_text_no_more_is_held_out_than_is_measured_on(count: int, tmp_path: Path) -> None:
    texts = [f"{i} {'word ' * 20}" for i in range(count)]
    path = tmp_path / ("a.txt" if count == 1 else "a.jsonl")
    path.write_text(texts[0] if count == 1 else "".join(f"{json.dumps({'text': text})}\n" for text in texts))
    tenth, capped = read_documents(path), read_documents(path, most=5)
    assert (tenth.valid, tenth.notes[0]) == (
        read_documents(path, most=None).valid,
        f"{path}: the last tenth is held out for validation",
    )
    assert sum(map(len, capped.valid)) < sum(map(len, tenth.valid))
    assert "".join([*capped.train, *capped.valid]) == "".join([*tenth.train, *tenth.valid])
    told = "the last 5 characters are" if count == 1 else "the last 1 document is"
    assert capped.notes[0] == f"{path}: {told} held out for validation"
