"""Answers as JSON: in parts, the same as in one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.serve import encoded
from heedful.serve.encoded import plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda own: st.lists(own, max_size=5) | st.tuples(own, own) | st.dictionaries(st.text(max_size=3), own, max_size=5),
    max_leaves=40,
)


@pytest.fixture(params=[2, 3, 12, 2000], scope="module")
def part(request: pytest.FixtureRequest) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoded, "PART", request.param)
        yield request.param


@given(value=VALUES)
def test_parts_make_the_whole(part: int, value: Any) -> None:
    made = encoded.encoded(value)
    assert json.loads(made) == plain(json.loads(json.dumps(plain(value))))
    assert made.decode() == json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))


def test_parts_are_neither_large_nor_many() -> None:
    """Of many small values, of few large ones, and of both: who else waits does so for a part."""
    words = [{"text": "ba", "confidence": 0.5}] * 50_000
    for value in (words, {"answers": [[{"words": words}], words[:10]]}, [[0.25] * 3000] * 50, [1.5] * 100_000):
        sizes = [part.count(b",") for part in encoded._parts(value)]
        assert max(sizes) <= encoded.PART
        assert len(sizes) < 60 + 4 * sum(sizes) / encoded.PART
