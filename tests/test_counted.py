"""How many there are, in words: of one as of several."""

from pathlib import Path

import pytest

from heedful.data.text.conversations import read_conversations
from heedful.errors import are, counted


def test_one_and_several() -> None:
    assert [counted(number, "entry") for number in (0, 1, 2000)] == ["0 entries", "1 entry", "2,000 entries"]
    assert [are(number) for number in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("bad", "told"), [(1, "1 conversation without an answer is"), (2, "2 conversations without an answer are")]
)
def test_a_note_on_data(tmp_path: Path, bad: int, told: str) -> None:
    talk = '{"messages": [{"role": "user", "content": "%d"}, {"role": "assistant", "content": "x"}]}\n'
    rows = [talk % number for number in range(20)] + ['{"messages": [{"role": "user", "content": "x"}]}\n'] * bad
    (tmp_path / "talks.jsonl").write_text("".join(rows))
    assert any(f"{told} left out" in note for note in read_conversations(tmp_path / "talks.jsonl").notes)
