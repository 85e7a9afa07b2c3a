"""A data set that Hugging Face's library saved into a folder."""

import json
from pathlib import Path

import pyarrow
import pytest

from heedful.data.text.corpus import read_parallel
from heedful.errors import InputError, MissingError


def saved(folder: Path, rows: list[dict[str, object]], files: int = 2) -> None:
    """As `Dataset.save_to_disk` writes it."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05}-of-{files:05}.arrow" for i in range(files)]
    for i, name in enumerate(names):
        table = pyarrow.Table.from_pylist(rows[i::files])
        with pyarrow.OSFile(str(folder / name), "wb") as out, pyarrow.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")


def test_splits_are_parts(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"translation": {"de": f"Haus {i}", "en": f"house {i}"}} for i in range(30)]
    for name in ("train", "validation", "test"):
        saved(tmp_path / "set" / name, rows)
    (tmp_path / "set" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation", "test"]}))
    corpus = read_parallel(tmp_path / "set", source="en", target="de")
    assert sorted(zip(corpus.train.source, corpus.train.target, strict=True)) == sorted(
        (f"house {i}", f"Haus {i}") for i in range(30)
    )
    assert (len(corpus.valid), [*corpus.tests]) == (30, ["test"])
    assert "a saved data set, columns 'en' and 'de', 30 pairs" in corpus.taken[0]


def test_one_split_alone(tmp_path: Path) -> None:
    saved(tmp_path / "set", [{"en": f"house {i}", "de": f"Haus {i}"} for i in range(40)], files=1)
    corpus = read_parallel(tmp_path / "set")
    assert (corpus.source, corpus.target) == ("en", "de")
    assert len(corpus.train) + len(corpus.valid) + len(corpus.tests["test"]) == 40


def test_what_is_damaged_is_one_line(tmp_path: Path) -> None:
    saved(tmp_path / "set", [{"en": "a", "de": "b"}], files=1)
    (tmp_path / "set" / "data-00000-of-00001.arrow").write_bytes(b"ARROW1 and no more")
    with pytest.raises(InputError, match="damaged"):
        read_parallel(tmp_path / "set")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "dataset_dict.json").write_text('{"splits": ["challenge"]}')
    with pytest.raises(MissingError, match="no split 'train'"):
        read_parallel(tmp_path / "other")
