"""What is wrong with pairs is said, and of pairs as they should be nothing is."""

import pytest

from heedful.data.text.doubts import doubts

SOURCE = [f"the number {n}" for n in range(2000)]
TARGET = [f"die Zahl {n}" for n in range(2000)]


def test_nothing_is_said_of_good_pairs() -> None:
    assert doubts(SOURCE, TARGET, [("new", "neu")]) == []
    assert doubts([*SOURCE[:1960], *TARGET[1960:]], TARGET) == []  # 2 % are names and numbers
    assert doubts(["yes", *SOURCE], ["ja", *TARGET]) == []


@pytest.mark.parametrize("count", [1, 5, 999])
def test_few_pairs(count: int) -> None:
    (line,) = doubts(SOURCE[:count], TARGET[:count])
    assert line.startswith(f"only {count} pair{'s' if count > 1 else ''} to train on: nothing general can be learnt")
    assert "10,000 are usual" in line


def test_labels_are_told_from_translations() -> None:
    (line,) = doubts(SOURCE, ["yes", "no"] * 1000)
    assert line.startswith("only 2 different targets in 2,000 training pairs: if these are labels, heed train classify")
    assert doubts(SOURCE, [f"die Zahl {n % 41}" for n in range(2000)]) == []


def test_the_same_text_on_both_sides() -> None:
    (line,) = doubts([f" {text}" for text in TARGET[:500]] + SOURCE[500:], TARGET)
    assert line.startswith("500 of 2,000 training pairs (25 %) have the same text on both sides")


def test_copies_of_pairs() -> None:
    (line,) = doubts(SOURCE[:100] * 20, TARGET[:100] * 20)
    assert line == "1,900 of 2,000 training pairs (95 %) are copies of others: only 100 are different"
    assert doubts(SOURCE[:1000] * 2, TARGET) == []  # another translation is no copy


def test_words_in_pieces() -> None:
    for text in ("das W@@ etter ist gu@@ t", "▁das ▁Wet ter"):
        (line,) = doubts(SOURCE, [*TARGET[:1000], *(f"{text} {n}" for n in range(1000))])
        assert line.startswith("1,000 of 2,000 training pairs (50 %) have words in pieces")
    assert doubts(SOURCE, [f"{text} @-@ @@ -1,2 +1,3 @@ me@@home.de" for text in TARGET]) == []


def test_punctuation_that_was_cut_off() -> None:
    for text in ("so , ja", "das Wetter .", "it &apos;s"):
        (line,) = doubts([*SOURCE[:999], *(f"{text} {n}" for n in range(1001))], TARGET)
        assert line.startswith("1,001 of 2,000 training pairs (50 %) have blanks before their punctuation, or &apos;")
        assert doubts([*SOURCE[:1000], *(f"{text} {n}" for n in range(1000))], TARGET) == []
    for text in ("vraiment ?", "3.5, or so.", "R&D .NET", "wait ... no"):
        assert doubts([f"{text} {n}" for n in range(2000)], TARGET) == []


def test_tests_that_are_trained_on() -> None:
    (line,) = doubts(SOURCE, TARGET, [(SOURCE[3], TARGET[3]), (SOURCE[4], TARGET[5]), (SOURCE[3], TARGET[3])])
    assert line.startswith("1 of 2 test pairs are trained on too")


def test_all_that_is_wrong_is_said() -> None:
    assert len(doubts(["a"] * 9, ["a"] * 9, [("a", "a")])) == 4
