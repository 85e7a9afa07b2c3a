"""Tables of sound and text."""

import json
from pathlib import Path

import pytest

from heedful.data.sound.utterances import read_test_utterances, read_utterances
from heedful.errors import InputError, MissingError
from sounds import texts, utterances


def test_columns_and_places(tmp_path: Path) -> None:
    utterances(tmp_path, texts(20))
    expected = read_utterances(tmp_path / "train.csv")
    assert (len(expected.train), len(expected.valid)) == (18, 2)
    assert not {row.text for row in expected.train} & {row.text for row in expected.valid}
    rows = [*expected.train, *expected.valid]
    assert all(row.file.is_file() for row in rows)
    lines = [json.dumps({"audio_filepath": str(row.file), "transcription": row.text}) for row in rows]
    (tmp_path / "other.jsonl").write_text("\n".join(lines))
    assert read_test_utterances(tmp_path / "other.jsonl") == {"other.jsonl": rows}
    (tmp_path / "cv.tsv").write_text("client_id\tpath\tsentence\n" + f"1\t{rows[0].file.name}\tA  text.\n")
    assert read_test_utterances(tmp_path / "cv.tsv")["cv.tsv"][0] == (rows[0].file, "A text.")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("audio,text\nno.wav,a\n", r"t\.csv:2: there is no sound 'no\.wav'"),
        ("audio,text\ntrain0.wav,\n", r"t\.csv:2: no text"),
        ("audio,text\n,a\n", r"t\.csv:2: no sound"),
        ("sound\ntrain0.wav\n", "expected audio"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, table: str, told: str) -> None:
    utterances(tmp_path, ["ab"])
    (tmp_path / "t.csv").write_text(table)
    with pytest.raises((InputError, MissingError), match=told):
        read_utterances(tmp_path / "t.csv")
