"""Printed lines are the same on every machine, whole, and of words that belong to one part."""

import numpy

from heedful.data.made.lines import COLUMNS, MOST_WORDS, NOISE, ROWS, line, word_part

MANY = 120


def test_a_line_depends_on_its_part_and_number_alone() -> None:
    one, again, other, test = (line(*key) for key in (("train", 3), ("train", 3), ("train", 4), ("test", 3)))
    assert numpy.array_equal(one.pixels, again.pixels)
    assert one.text == again.text
    assert len({one.text, other.text, test.text}) == 3
    assert (one.pixels.shape, one.pixels.dtype) == ((ROWS, COLUMNS), numpy.uint8)


def test_no_word_is_in_two_parts() -> None:
    words = {
        part: {word.lower() for number in range(MANY) for word in line(part, number).text.split()}
        for part in ("train", "valid", "test")
    }
    assert all(word_part(word) == part for part, own in words.items() for word in own)
    assert not words["train"] & words["test"]
    assert {len(line("train", number).text.split()) for number in range(MANY)} == {*range(1, MOST_WORDS + 1)}


def test_a_text_is_whole_and_can_be_told_from_its_paper() -> None:
    for number in range(MANY):
        pixels = line("train", number).pixels.astype(float)
        paper = numpy.median(pixels)
        edges = numpy.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        assert numpy.abs(edges - paper).max() < 6 * NOISE
        assert paper - numpy.sort(pixels, axis=None)[:20].mean() > 4 * NOISE
