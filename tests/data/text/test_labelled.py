"""Reading labelled texts: each layout gives the same examples, and what is wrong is named by file and line."""

import gzip
import json

import pytest

from heedful.data.text.labelled import Example, read_examples, read_labelled
from heedful.errors import InputError, MissingError

PAIRED = [Example("one", "two", label="yes"), Example("three", "four", label="no")]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_tables_and_objects_say_the_same(tmp_path):
    (tmp_path / "a.tsv").write_text("one\ttwo\tyes\nthree\tfour\tno\n")
    (tmp_path / "b.csv").write_text('label,pair,text,more\nyes,two,one,x\nno,"four",three,y\n')
    rows = [{"text": "one", "pair": "two", "label": "yes"}, {"text": "three", "pair": "four", "label": "no"}]
    write(tmp_path / "c.jsonl", rows)
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress((tmp_path / "c.jsonl").read_bytes()))
    for name in ("a.tsv", "b.csv", "c.jsonl", "d.jsonl.gz"):
        assert read_examples(tmp_path / name) == ("label", PAIRED), name


def test_each_kind_of_answer(tmp_path):
    file = tmp_path / "x.jsonl"
    cases = [
        ({"text": "t", "label": 3}, "label", Example("t", label="3")),
        ({"text": "t", "label": True}, "label", Example("t", label="true")),
        ({"text": "t", "label": "a", "rating": 3}, "label", Example("t", label="a")),
        ({"text": "t", "category": "a", "score": 3}, "score", Example("t", score=3.0)),
        ({"text": "t", "labels": ["a"], "category": "b"}, "labels", Example("t", labels=("a",))),
        ({"text": "t", "question": "q", "choices": ["a", "b"], "label": "b", "score": 2}, "choice", None),
        ({"text": "t", "labels": ["a", "b"]}, "labels", Example("t", labels=("a", "b"))),
        ({"text": "t", "labels": []}, "labels", Example("t")),
        ({"text": "t", "score": 2}, "score", Example("t", score=2.0)),
        ({"text": "t", "question": "q", "choices": ["a", "b"], "label": "b"}, "choice", None),
        ({"text": "t", "question": "q", "choices": ["a", "b"], "label": 1}, "choice", None),
    ]
    for row, answer, example in cases:
        example = example or Example("t", "q", choices=("a", "b"), choice=1)
        assert read_examples(write(file, [row])) == (answer, [example])
    (tmp_path / "s.tsv").write_text("text\tpair\tscore\na\tb\t1.5\n")
    assert read_examples(tmp_path / "s.tsv") == ("score", [Example("a", "b", score=1.5)])


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([{"text": "a"}], r':1: no "label"'),
        ([{"label": "a"}], r':1: no "text" that is a text'),
        ([{"text": " ", "label": "a"}], r':1: no "text" that is a text'),
        ([{"text": "a", "label": "b"}, {"text": "a", "score": 1}], r":2: holds a score, and the lines above a label"),
        ([{"text": "a", "score": "much"}], r":1: the score 'much' is not a number"),
        ([{"text": "a", "choices": ["b"], "label": 0}], r":1: fewer than two choices"),
        ([{"text": "a", "choices": ["b", "c"], "label": 2}], r":1: the label 2 is none of 2 choices"),
        ([{"text": "a", "choices": "bc", "label": 0}], r':1: "choices" is not a list of texts'),
        ([{"text": "a", "choices": ["b", "c"], "label": True}], r":1: the label True is none of 2 choices"),
        ([{"text": "a", "label": "b", "score": 1}], r":1: 'label' and 'score' may each be the answer"),
        ([{"text": "a", "category": "b", "rating": 1}], r":1: 'category' and 'rating' may each be the answer"),
        ([{"text": "a", "label": "b", "labels": ["b"]}], r":1: 'label' and 'labels' may each be the answer"),
        ([["a"]], r":1: not an object"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, rows, what):
    with pytest.raises(InputError, match=what):
        read_examples(write(tmp_path / "x.jsonl", rows))


def test_tables_that_do_not_add_up(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tb\tc\td\n")
    with pytest.raises(InputError, match=r"x\.tsv:1: 4 columns, expected text, label or text, pair, label"):
        read_examples(tmp_path / "x.tsv")
    for name, other in (("label", "score"), ("category", "rating")):
        (tmp_path / "two.tsv").write_text(f"text\t{name}\t{other}\na\tb\t1\n")
        with pytest.raises(InputError, match=rf"two\.tsv:1: '{name}' and '{other}' may each be the answer"):
            read_examples(tmp_path / "two.tsv")
    (tmp_path / "one.tsv").write_text("rating\ttext\tlabel\tlabels\n1\ta\tb\tc\n")
    assert read_examples(tmp_path / "one.tsv") == ("label", [Example("a", label="b")])
    (tmp_path / "x.tsv").write_text("a\tb\na\tb\tc\n")
    with pytest.raises(InputError, match=r"x\.tsv:2: 3 columns, expected 2"):
        read_examples(tmp_path / "x.tsv")


def test_a_folder_and_what_is_held_out(tmp_path):
    with pytest.raises(MissingError, match="no training file"):
        read_labelled(tmp_path)
    rows = [{"text": f"text {i}", "label": str(i % 2)} for i in range(40)]
    write(tmp_path / "train.jsonl", rows)
    found = read_labelled(tmp_path)
    assert (len(found.train), len(found.valid)) == (36, 4)
    assert not {one.text for one in found.train} & {one.text for one in found.valid}
    assert read_labelled(tmp_path / "train.jsonl").valid == found.valid
    write(tmp_path / "dev.jsonl", rows[:3])
    write(tmp_path / "test_a.jsonl", rows[:2])
    found = read_labelled(tmp_path)
    assert (len(found.train), len(found.valid), [*found.tests]) == (40, 3, ["test_a"])
    write(tmp_path / "test_b.jsonl", [{"text": "a", "score": 1}])
    with pytest.raises(InputError, match=r"test_b\.jsonl: holds a score, and .* a label"):
        read_labelled(tmp_path)


@pytest.mark.parametrize(
    ("lines", "label", "labels"),
    [
        (["DESC:manner How did it end ?", "HUM:ind Who was Galileo ?"], "DESC:manner", 2),
        (["3 A film .", "0 No  film .", "4 Tout ."], "3", 3),
        (["__label__x A film .", "__label__y-z Who ?"], "x", 2),
    ],
)
def test_lines_that_begin_with_a_label(tmp_path, lines, label, labels):
    (tmp_path / "train.txt").write_text("\n".join(lines * 4) + "\n\n")
    found = read_labelled(tmp_path)
    first = [*found.train, *found.valid]
    assert len(first) == 4 * len(lines)
    assert {one.label for one in first if one.text == lines[0].split(maxsplit=1)[1]} == {label}
    assert len({one.label for one in first}) == labels
    assert "each line is read as" in found.notes[0]
    (tmp_path / "one.txt").write_text("\n".join(lines))  # too few lines to tell, unless marked
    if lines[0].startswith("__label__"):
        assert read_examples(tmp_path / "one.txt")[1][0] == Example("A film .", label="x")
    else:
        with pytest.raises(InputError, match="1 column, expected text, label"):
            read_examples(tmp_path / "one.txt")


def test_several_labels_of_fasttext(tmp_path):
    (tmp_path / "x.txt").write_text("__label__a __label__b one two\n__label__a three\n")
    expected = [Example("one two", labels=("a", "b")), Example("three", labels=("a",))]
    assert read_examples(tmp_path / "x.txt") == ("labels", expected)


@pytest.mark.parametrize("text", ["The cat sat.\nA dog ran.\nThe end came.\n", "a b\n" * 9, "0 a\n1\n" * 9])
def test_plain_lines_are_no_labels(tmp_path, text):
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(InputError, match=r"x\.txt:1: 1 column, expected text, label"):
        read_examples(tmp_path / "x.txt")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.tsv", "category\tsentence\nyes\tone\nno\tthree\n"),
        ("x.csv", "id;Sentence;Class\n1;one;yes\n2;three;no\n"),
        ("x.csv", "Review,Sentiment\none,yes\nthree,no\n"),
        ("x.csv", "topic|label|text\nx|yes|one\ny|no|three\n"),
        ("x.jsonl", '{"headline": "one", "intent": "yes"}\n{"headline": "three", "intent": "no"}\n'),
    ],
)
def test_other_names_of_columns(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_examples(tmp_path / name) == ("label", [Example("one", label="yes"), Example("three", label="no")])


def test_names_of_pairs(tmp_path):
    (tmp_path / "x.tsv").write_text("index\tsentence1\tsentence2\tlabel\n0\tone\ttwo\tyes\n1\tthree\tfour\tno\n")
    assert read_examples(tmp_path / "x.tsv") == ("label", PAIRED)


def test_the_part_may_follow_a_dot_and_other_labels_are_noted(tmp_path):
    for name in ("sst2.train.txt", "sst2.dev.txt", "sst2.test.txt"):
        (tmp_path / name).write_text("0 bad\n1 good\n" * 3)
    found = read_labelled(tmp_path)
    assert (len(found.train), len(found.valid), len(found.tests["sst2"])) == (6, 6, 6)
    assert not any("different labels" in note for note in found.notes)
    (tmp_path / "sst5.train.txt").write_text("0 bad\n4 good\n" * 3)
    (note,) = [note for note in read_labelled(tmp_path).notes if "different labels" in note]
    assert note.endswith("(sst2.train.txt: 0, 1; sst5.train.txt: 0, 4)")


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        (
            "x.csv",
            "headline,content,category\none,two,yes\nthree,four,no\n",
            "'headline' and 'content' may be the text",
        ),
        ("x.tsv", "text\ttopic\tintent\none\ta\tyes\n", "'topic' and 'intent' may be the label"),
        (
            "x.jsonl",
            '{"headline": "one", "content": "two", "label": "a"}\n',
            "'headline' and 'content' may be the text",
        ),
    ],
)
def test_two_names_of_one_column_are_refused(tmp_path, name, text, columns):
    """Of the objects the last was read, and the first line of a table was an example."""
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=columns):
        read_examples(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    ["Comment,emotion\none,yes\nthree,no\n", "emotion,text\nyes,one\nno,three\n", "body,label\none,yes\nthree,no\n"],
)
def test_a_header_that_names_one_column_of_two_is_no_example(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    assert read_examples(tmp_path / "x.csv") == ("label", [Example("one", label="yes"), Example("three", label="no")])


def test_a_header_that_leaves_open_what_the_text_and_the_label_are(tmp_path):
    """A text, a pair and a label were taken of it."""
    (tmp_path / "x.csv").write_text("id,text,emotion\n1,one,yes\n2,three,no\n")
    with pytest.raises(InputError, match=r"x\.csv:1: a header that names 'id', 'text', 'emotion': which is the text"):
        read_examples(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text("premise,hypothesis,verdict\none,two,yes\nthree,four,no\n")
    assert read_examples(tmp_path / "x.csv") == ("label", PAIRED)
    words = [Example("content", label="good"), Example("awful", label="bad"), Example("glad", label="good")]
    (tmp_path / "x.tsv").write_text("".join(f"{one.text}\t{one.label}\n" for one in words))
    assert read_examples(tmp_path / "x.tsv") == ("label", words)
    asked = [Example("how many stars does it have", label="rating"), Example("who made it", label="author")]
    (tmp_path / "x.tsv").write_text("".join(f"{one.text}\t{one.label}\n" for one in asked))
    assert read_examples(tmp_path / "x.tsv") == ("label", asked)


@pytest.mark.parametrize("score", ["NaN", "Infinity", "true"])
def test_a_score_is_a_number(tmp_path, score):
    (tmp_path / "x.jsonl").write_text(f'{{"text": "one", "score": {score}}}\n')
    with pytest.raises(InputError, match="is not a number"):
        read_examples(tmp_path / "x.jsonl")


def test_blanks_around_a_label_and_labels_that_come_twice(tmp_path):
    (tmp_path / "x.csv").write_text("text,label\none, yes\nthree,no\n")
    assert read_examples(tmp_path / "x.csv")[1] == [Example("one", label="yes"), Example("three", label="no")]
    write(tmp_path / "x.jsonl", [{"text": "one", "labels": ["a", "b", "a"]}])
    assert read_examples(tmp_path / "x.jsonl")[1] == [Example("one", labels=("a", "b"))]


def test_what_utf8_cannot_hold(tmp_path):
    write(tmp_path / "x.jsonl", [{"text": "one \ud800", "label": "\ud800"}])
    assert read_examples(tmp_path / "x.jsonl")[1] == [Example("one \ufffd", label="\ufffd")]


def test_tests_whose_names_begin_alike_are_all_kept(tmp_path):
    for name in ("train.tsv", "test.2016.tsv", "test.2017.tsv", "test_b.tsv"):
        (tmp_path / name).write_text(f"one {name}\tyes\nthree {name}\tno\n")
    assert sorted(read_labelled(tmp_path).tests) == ["test.2016.tsv", "test.2017.tsv", "test_b"]


@pytest.mark.parametrize("several", [False, True])
def test_a_label_of_one_example_is_learnt(tmp_path, several):
    """Of many such some would be held out, and their labels never learnt."""
    rows = [(f"usual {i}", f"label {i % 2}") for i in range(40)] + [(f"rare {i}", f"rare label {i}") for i in range(20)]
    lines = [{"text": text, **({"labels": ["all", label]} if several else {"label": label})} for text, label in rows]
    (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    read = read_labelled(tmp_path / "x.jsonl")
    assert sorted(one.text for one in [*read.train, *read.valid]) == sorted(text for text, _ in rows)
    assert {one.text.split()[0] for one in read.valid} == {"usual"}
    assert sum(one.text.startswith("rare") for one in read.train) == 20
    assert "of them are learnt after all: nothing else has their labels" in read.notes[-1]


def test_what_is_learnt_and_measured_on_is_told(tmp_path):
    rows = [{"text": f"text {i}", "label": str(i % 2)} for i in range(40)]
    write(tmp_path / "train.jsonl", rows)
    write(tmp_path / "dev.jsonl", [{"text": "new", "label": "2"}, *rows[:3]])
    write(tmp_path / "test.jsonl", rows[:2])
    found = read_labelled(tmp_path)
    assert found.notes == (
        "valid: 3 of 4 share their text with what is learnt from",
        "test: 2 of 2 share their text with what is learnt from",
    )
    assert (len(found.train), len(found.valid)) == (40, 4)


@pytest.mark.parametrize(
    ("label", "what"), [(1.0, "the label 1.0 is a number"), (["a"], "the label .* is a list"), (None, 'no "label"')]
)
def test_what_is_no_label_is_told_for_what_it_is(tmp_path, label, what):
    with pytest.raises(InputError, match=what):
        read_examples(write(tmp_path / "x.jsonl", [{"text": "a", "label": label}]))


@pytest.mark.parametrize("pair", ["", "of {n}"])
@pytest.mark.parametrize(("name", "between"), [("a.tsv", "\t"), ("a.csv", ",")])
def test_the_label_may_be_the_first_column(tmp_path, name, between, pair):
    rows = [(("ham", "spam")[n % 2], f"text {n}", *([pair.format(n=n)] if pair else [])) for n in range(12)]
    expected = [Example(text, *second, label=label) for label, text, *second in rows]
    (tmp_path / name).write_text("".join(f"{between.join(row)}\n" for row in rows))
    read = read_labelled(tmp_path / name)
    assert sorted([*read.train, *read.valid], key=lambda one: int(one.text[5:])) == expected
    assert "the label is the first column" in read.notes[0]
    (tmp_path / name).write_text("".join(f"{between.join([*texts, label])}\n" for label, *texts in rows))
    assert read_examples(tmp_path / name) == ("label", expected)


@pytest.mark.parametrize("content", [b"PK\x03\x04\0\0", b"text,label\n"])
def test_a_workbook_is_to_be_saved_as_a_table(tmp_path, content):
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.xlsx: not a kind of file that examples are read from") as told:
        read_labelled(tmp_path / "a.xlsx")
    assert ".csv" in told.value.fix
    with pytest.raises(MissingError, match="no such file"):
        read_labelled(tmp_path / "b.xlsx")


def test_pairs_of_texts_are_told_from_labels(tmp_path):
    pairs = [f"the number {n}\tdie Zahl {n}" for n in range(30)]
    (tmp_path / "p.tsv").write_text("\n".join(pairs) + "\n")
    with pytest.raises(InputError, match="30 different labels of 30 examples, none of which can be measured") as raised:
        read_labelled(tmp_path / "p.tsv")
    assert raised.value.fix == "if these are pairs of texts, heed train translate learns them"
    (tmp_path / "q.tsv").write_text("\n".join([*pairs, *(f"also {line}" for line in pairs)]) + "\n")
    found = read_labelled(tmp_path / "q.tsv")
    assert not any("different labels" in note for note in found.notes), "half of them are no sign"
    (tmp_path / "r.tsv").write_text("\n".join([*pairs, *(f"also {line}" for line in pairs[:20])]) + "\n")
    what = (
        "30 different labels of 50 examples: most cannot be learnt; if these are pairs of texts, heed train translate"
    )
    assert any(what in note for note in read_labelled(tmp_path / "r.tsv").notes)
