"""General pairs that are mixed in: how they are read."""

from pathlib import Path

import pytest

from heedful.data.text.corpus import read_parallel
from heedful.data.text.mix import read_mixes
from heedful.errors import InputError


def written(path: Path, word: str, count: int = 40) -> str:
    path.write_text("en\tde\n" + "".join(f"{word} {i}\t{word.upper()} {i}\n" for i in range(count)))
    return str(path)


def test_what_is_mixed_in_is_read_as_the_data_is(tmp_path: Path) -> None:
    like = read_parallel(written(tmp_path / "a.tsv", "a"), source="de", target="en")
    (mix,) = read_mixes([f"{written(tmp_path / 'b.tsv', 'b')}:0.25"], like)
    assert mix.share == 0.25
    assert mix.corpus.train.source[0].startswith("B ")
    assert mix.corpus.tests["test"]


def test_what_the_data_hold_out_is_not_mixed_in(tmp_path: Path) -> None:
    """Special pairs are often some of the general ones."""
    like = read_parallel(written(tmp_path / "a.tsv", "a"))
    general = tmp_path / "b.tsv"
    general.write_text((tmp_path / "a.tsv").read_text() + "".join(f"b {i}\tB {i}\n" for i in range(2000)))
    (mix,) = read_mixes([f"{general}:0.25"], like)
    held = [text for part in (like.valid, *like.tests.values()) for text in part.source]
    assert held
    assert not {*held} & {*mix.corpus.train.source}
    assert mix.corpus.notes[-1] == f"{general}: {len(held)} pairs left out, a side of theirs is held out in {like.name}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["{}"], "does not say how much of each epoch"),
        (["{}:1.5"], "mixes in 1.5 of each epoch"),
        (["{}:0.5", "{}:0.46"], "0.96 of each epoch is mixed in"),
    ],
)
def test_a_share_that_cannot_be_is_refused(tmp_path: Path, given: list[str], message: str) -> None:
    path = written(tmp_path / "a.tsv", "a")
    like = read_parallel(path)
    with pytest.raises(InputError, match=message):
        read_mixes([one.format(path) for one in given], like)


def test_a_pattern_with_directions(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a.tsv", "a"), written(tmp_path / "b.tsv", "b")
    like = read_parallel([f"{one}:en>de", f"{one}:de>en"])
    (mix,) = read_mixes([f"{other.replace('b.tsv', '[b]*.tsv')}:de>en:0.2"], like)
    assert (mix.share, mix.corpus.source, len(mix.corpus.train)) == (0.2, "de", 38)
    (mix,) = read_mixes([f"{other}:en>de,de>en:.2"], like)
    assert (mix.share, mix.corpus.directions) == (0.2, (("en", "de"), ("de", "en")))
