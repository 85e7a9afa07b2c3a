"""Lines in, answers out: every answer beside its line, at once, and what is wrong with a line told with its number."""

import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

import heedful
from cases import CASES
from commands import heed, standard_input
from heedful.errors import InputError, TextError
from heedful.tasks.shared.embed import TextEncoder
from heedful.tasks.shared.lengths import warn
from heedful.tasks.shared.line_by_line import answer_lines, byte_groups, one_each, text_groups
from heedful.tasks.shared.terminal import printable
from heedful.tasks.translate.segment import segments_of
from heedful.tasks.translate.spec import NoiseSpec
from made import with_about

LONG = "ba de" + " gi ko ba de" * 12  # more tokens than any text that the models have learnt from, or can read


def answers(texts: list[str], first: int):
    """Lengths; what is "bad" has none."""
    for text in texts:
        if text == "bad":
            raise TextError("bad", fix="give another")
    return one_each({"text": text, "n": first + i} for i, text in enumerate(texts))


@pytest.mark.parametrize("count", [1, 7, 1200])
def test_answers_keep_their_lines(count, tmp_path, capsys):
    lines = [f"{i}" for i in range(count)]
    bad = {0, 5, 6, 700} & {*range(count - 1)}
    given = [("bad" if i in bad else line) for i, line in enumerate(lines)]
    with standard_input("\r\n".join(given).encode()):
        if bad:
            with pytest.raises(InputError, match=f"{len(bad)} of {count:,} lines have no answer"):
                answer_lines(None, answers, lambda one: f"{one['text']}={one['n']}", as_json=False)
        else:
            answer_lines(None, answers, lambda one: f"{one['text']}={one['n']}", as_json=False)
    said = capsys.readouterr()
    assert said.out.splitlines() == ["" if i in bad else f"{i}={i}" for i in range(count)]
    assert said.err.splitlines() == [f"warning: <stdin>:{i + 1}: bad; it has no answer" for i in sorted(bad)]


def test_where_each_has_several_lines_one_without_an_answer_has_as_many(capsys):
    def both(one):
        return [one["text"], str(one["n"])]

    with standard_input("a\nbad\nb\n"), pytest.raises(InputError, match="1 of 3 lines have no answer"):
        answer_lines(None, answers, both, as_json=False, each=2)
    assert capsys.readouterr().out.splitlines() == ["a", "0", "", "", "b", "2"]


def test_a_text_of_the_command_line_that_has_no_answer_is_an_error(capsys):
    with pytest.raises(TextError):
        answer_lines(["fine", "bad"], answers, lambda one: one["text"], as_json=False)


def test_lines_are_read_whole_however_they_come():
    """A line is answered when its end has come, and a last one without an end too."""
    out, into = os.pipe()
    kept = os.dup(0)
    os.dup2(out, 0)
    try:
        groups = byte_groups()
        os.write(into, b"one\r\ntw")
        assert next(groups) == [b"one"]
        os.write(into, b"o\n\nthree\nfo")
        assert next(groups) == [b"two", b"", b"three"]
        os.write(into, b"u")
        os.write(into, b"r")
        os.close(into)
        assert list(groups) == [[b"four"]]
    finally:
        os.dup2(kept, 0)
        for each in (kept, out):
            os.close(each)


@pytest.mark.parametrize(
    ("data", "told", "answers"),
    [
        (b"ba\nde\nlu \xe9t\xe9\nko\n", "warning: <stdin>:3: byte 4 of the line (0xe9) is not UTF-8", 4),
        (b"ba\nde\nl\0u\n", "warning: <stdin>:3: a NUL byte, expected text", 3),
        ("ba".encode("utf-16"), "error: <stdin>:1: UTF-16, expected UTF-8", 0),
    ],
)
@pytest.mark.parametrize("name", ["transformer", "gpt", "fill", "label", "tag", "parse", "answer", "match"])
def test_what_is_not_utf_8_is_told_and_loses_no_other_answer(run_of, tmp_path, capsys, name, data, told, answers):
    verb = {"transformer": "translate", "gpt": "score", "label": "classify"}.get(name, name)
    more = {"answer": ["--context", "ba is de."], "match": ["--images", tmp_path]}.get(verb, [])
    if verb == "match":
        from cases import PIXELS
        from heedful.data.images.files import to_image

        to_image(PIXELS[0]).save(tmp_path / "0.png")
    if verb == "fill":
        data = data.replace(b"ba\nde\n", b"<mask>\n<mask>\n").replace(b"ko\n", b"<mask>\n")
    with standard_input(data):
        assert heed(verb, run_of(name), *more, "--json") == 2
    said = capsys.readouterr()
    assert any(line.startswith(told) for line in said.err.splitlines())
    assert said.err.splitlines()[-1].startswith("fix: ")
    records = [json.loads(line) for line in said.out.splitlines()]
    assert [record.get("line") for record in records if "error" in record] == [3] * bool(answers)
    assert len(records) == answers


def test_a_mark_of_byte_order_is_no_text(run_of, tmp_path, capsys):
    with standard_input("\N{BYTE ORDER MARK}ba\n".encode()):
        assert heed("score", run_of("gpt"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["text"] == "ba"


def test_control_characters_are_shown_and_kept(run_of, tmp_path, capsys):
    """TABs and ends of lines stand for themselves in JSON, and nowhere else but between columns."""
    assert printable("a\tb\nc\x1b\x85d\u2028é") == r"a\tb\nc\x1b\x85d\u2028é"
    text = "ba\t<mask>\ngi"
    words = ["fill", run_of("fill"), text, "--top", "400"]
    assert heed(*words) == 0
    (line,) = capsys.readouterr().out.splitlines()
    shown, found = line.split("\t")
    assert shown == r"ba\t<mask>\ngi"
    assert all(character.isprintable() for character in line.replace("\t", ""))
    assert heed(*words, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["text"] == text
    tokens = {one["token"] for one in record["candidates"]}
    assert {"\n", "\t", "\x1b"} <= tokens, "of its bytes"
    assert r"\t" in found
    for verb, name in (("classify", "label"), ("score", "gpt")):
        assert heed(verb, run_of(name), text) == 0
        assert capsys.readouterr().out.rstrip("\n").endswith("\t" + r"ba\t<mask>\ngi")


def test_a_blank_line_is_translated_by_an_empty_one(run_of, tmp_path, capsys):
    with standard_input("ba de\n \t\u00a0\n\nde gi\n".encode()):
        assert heed("translate", run_of("transformer"), "--longest", 3, "--prefix", "BA") == 0
    said = capsys.readouterr()
    assert [bool(line) for line in said.out.split("\n")] == [True, False, False, True, False]
    assert said.err == ""


@pytest.mark.filterwarnings("ignore:.*the translation is empty")
@pytest.mark.parametrize("name", ["transformer", "rnn", "decoder", "spans"])
def test_a_source_longer_than_all_that_were_learnt_is_told(run_of, tmp_path, capsys, name):
    model = heedful.load(run_of(name))
    known = model.about["source_tokens"]
    assert 0 < known["centile_99"] <= known["longest"]
    (ids,), _ = model.encode([LONG])
    told = f"{len(ids)} tokens, and the longest source that it was trained on has {known['longest']}"
    if name != "spans":  # which reads a text as a whole
        parts = segments_of(model, LONG)
        assert all(len(ids) <= known["longest"] for ids in model.encode([part.text for part in parts])[0])
        told = f"a sentence longer than all that the model was trained on is translated in {len(parts)} parts"
    with standard_input(f"ba de\n{LONG}\n".encode()):
        assert heed("translate", run_of(name), "--longest", 3, "--json") == 0
    said = capsys.readouterr()
    assert f"warning: <stdin>:2: {told}" in said.err
    fine, long = map(json.loads, said.out.splitlines())
    assert told not in fine.get("warning", "")
    assert long["warning"].startswith(told)
    assert heed("summarise", run_of(name), LONG, "--longest", 3) == 0
    assert f"warning: {told}" in capsys.readouterr().err
    with pytest.warns(UserWarning, match=f"^text 2: {told}"):
        model.translate(["ba de", LONG], longest=3)
    with pytest.warns(UserWarning, match=f"^{told}"):
        model.translate(LONG, longest=3)
    assert heed("info", run_of(name), "--json") == 0
    assert f"at most {known['longest']:,} tokens" in json.loads(capsys.readouterr().out)["trained on"]


@pytest.mark.filterwarnings("ignore:.*the translation is empty")
@pytest.mark.parametrize("name", ["transformer", "rnn", "decoder"])
def test_a_source_shorter_than_all_that_were_learnt_is_told(run_of, tmp_path, capsys, name):
    run, fine = run_of(name), "ba de gi"
    model = heedful.load(run)
    known, (few, _) = model.spec.source_tokens.shortest, model.encode(["ba", fine])[0]
    assert len(few) < known
    told = f"1 token, and the shortest source that it was trained on has {known}"
    with standard_input(f"ba\n\n{fine}\n7.\n".encode()):
        assert heed("translate", run, "--longest", 3, "--json") == 0
    said = capsys.readouterr()
    assert f"warning: <stdin>:1: {told}" in said.err
    records = [*map(json.loads, said.out.splitlines())]
    assert [told in one.get("warning", "") for one in records] == [True, False, False, False]
    assert [one.get("unlike", False) for one in records] == [True, False, False, False]
    assert "shortest" not in "".join(said.err.splitlines()[1:])
    with pytest.warns(UserWarning, match=f"^{told}"):
        model.translate("ba", longest=3)
    (tmp_path / "a.md").write_text(f"# ba\n\n{fine}\n")
    assert heed("translate", run, "--file", tmp_path / "a.md", "--out", tmp_path / "b.md", "--longest", 3) == 0
    assert capsys.readouterr().err.count(told) == 1
    spans = replace(model.spec, noise=NoiseSpec(objective="spans", longest=9))
    assert (model.spec.shortest_learnt, spans.shortest_learnt) == (known, 0), "whose sources are cut anywhere"
    assert heed("info", run, "--json") == 0
    assert f"none of fewer than {known}" in json.loads(capsys.readouterr().out)["trained on"]


def test_a_text_that_is_the_name_of_a_file_is_told(run_of, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("in.txt", "plain"):
        (tmp_path / name).write_text("ba de\n")
    assert heed("translate", run_of("transformer"), "ba de", "in.txt", "plain", "no.txt", "--longest", 3) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "such a file" in line]
    assert told == ["warning: in.txt is a text here, though there is such a file: < in.txt gives its lines"]


def test_the_longest_and_the_shortest_of_those_that_were_learnt_from_are_known(run_of):
    model, pairs = heedful.load(run_of("transformer")), CASES["transformer"].corpus.train
    lengths = sorted(map(len, model.source.encode(pairs.source)))
    known = model.about["source_tokens"]
    assert (known["shortest"], known["longest"]) == (lengths[0], lengths[-1])
    assert lengths[-2] <= known["centile_99"] <= lengths[-1]


def test_a_run_that_does_not_know_what_it_learnt_from_is_read_as_before(run_of):
    model = with_about(heedful.load(run_of("transformer")), source_tokens=None)
    assert "longer" not in model.search(LONG, longest=3).warning


def test_a_line_that_is_too_long_for_the_model_loses_no_other(run_of, tmp_path, capsys):
    with standard_input(f"ba\n{LONG}\nde\n".encode()):
        assert heed("translate", run_of("infill"), "--longest", 3, "--prefix", "BA") == 2
    said = capsys.readouterr()
    assert [bool(line) for line in said.out.split("\n")] == [True, False, True, False]
    first, error, fix = said.err.splitlines()
    assert first.startswith("warning: <stdin>:2: ")
    assert first.endswith("tokens, but the model reads at most 39; it has no answer")
    assert error == "error: <stdin>: 1 of 3 lines have no answer"
    assert fix.startswith("fix: ")
    with standard_input(f"ba\n{LONG}\nde\n".encode()):
        assert heed("translate", run_of("infill"), "--longest", 3, "--json") == 2
    _, refused, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert refused.keys() == {"line", "input", "error"}
    assert refused["line"] == 2
    assert refused["input"] == LONG
    assert heed("translate", run_of("infill"), "ba", LONG) == 2
    assert "the model reads at most 39" in capsys.readouterr().err


def test_lines_without_an_answer_of_other_verbs(run_of, tmp_path, capsys):
    for verb, name, fine in (("fill", "fill", "<mask>"), ("classify", "label", "ba"), ("embed", "fill", "ba")):
        with standard_input(f"{fine}\n\n{fine}\n".encode()):
            assert heed(verb, run_of(name)) == 2
        said = capsys.readouterr()
        assert [bool(line) for line in said.out.split("\n")] == [True, False, True, False]
        assert said.err.startswith("warning: <stdin>:2: ")
        assert "error: <stdin>: 1 of 3 lines have no answer\n" in said.err


@pytest.mark.parametrize(("verb", "name"), [("classify", "label"), ("classify", "labels"), ("embed", "fill")])
def test_a_text_that_is_cut_is_told(run_of, tmp_path, capsys, verb, name):
    model = heedful.load(run_of(name))
    tokens = len(model.tokenizer.encode([LONG])[0])
    told = rf"too long: only 2[12] of its {tokens} tokens were read"  # of a context of 24
    with standard_input(f"ba\n{LONG}\n".encode()):
        assert heed(verb, run_of(name), "--json") == 0
    said = capsys.readouterr()
    assert re.fullmatch(rf"warning: <stdin>:2: {told}\n", said.err)
    fine, cut = map(json.loads, said.out.splitlines())
    assert "warning" not in fine
    assert re.fullmatch(told, cut["warning"])
    with pytest.warns(UserWarning, match=f"^{told}$"):
        model.classify(LONG) if verb == "classify" else TextEncoder.load(run_of(name)).embed(LONG)


def test_a_warning_names_the_line_that_asked():
    with pytest.warns(UserWarning, match="^text 2: long$") as seen:
        inspect.unwrap(warn)(["", "long"])
    assert seen[0].filename == __file__


def test_both_texts_of_a_pair_are_counted(run_of):
    model = heedful.load(run_of("labels"))
    tokens = sum(map(len, model.tokenizer.encode([LONG, "ba"])))
    with pytest.warns(UserWarning, match=f"only 21 of its {tokens} tokens were read"):
        model.classify(LONG, pairs="ba")


def test_match_tells_what_it_cuts(run_of, tmp_path, capsys):
    from cases import PIXELS
    from heedful.data.images.files import to_image

    to_image(PIXELS[0]).save(tmp_path / "0.png")
    model, picture = heedful.load(run_of("match")), tmp_path / "0.png"
    told = r"too long: only \d+ of its \d+ tokens were read"
    with pytest.warns(UserWarning, match=f"^text 2: {told}"):
        model.match(picture, ["a", LONG * 4])
    with pytest.warns(UserWarning, match=f"^{told}"):
        model.search(LONG * 4, [picture])
    with pytest.warns(UserWarning, match=f"^{told}"):
        model.embed(LONG * 4)
    assert heed("match", run_of("match"), picture, picture, "--text", "a", "--text", LONG * 4) == 0
    assert capsys.readouterr().err.count("is too long: only") == 1
    with standard_input(f"a\n{LONG * 4}\n".encode()):
        assert heed("match", run_of("match"), "--images", tmp_path) == 0
    assert capsys.readouterr().err.startswith("warning: <stdin>:2: too long: only")


def test_what_is_drawn_does_not_hang_on_how_lines_come(run_of, tmp_path, capsys):
    model = heedful.load(run_of("transformer"))
    texts = ["ba de gi"] * 4
    whole = [one.text for one in model.search(texts, samples=1, longest=6)]
    assert len({*whole}) > 1
    halves = [one.text for first in (0, 2) for one in model.search(texts[:2], samples=1, longest=6, first=first)]
    assert halves == whole


def test_answers_come_while_the_pipe_stays_open_and_leave_quietly(run_of):
    """As lines arrive; and where nothing reads them any more, without a word."""
    words = ["translate", str(run_of("transformer")), "--longest", "3", "--prefix", "BA"]
    whole, pipe = [sys.executable, "-m", "heedful", *words], subprocess.PIPE
    child = subprocess.Popen(whole, stdin=pipe, stdout=pipe, stderr=pipe)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    for line in (b"ba de\n", b"de gi\n"):
        child.stdin.write(line)
        child.stdin.flush()
        assert child.stdout.readline().strip()
    child.stdout.close()
    child.stdin.write(b"ko ba\n" * 9)
    child.stdin.close()
    assert child.wait(60) == 141
    assert child.stderr.read() == b""
    child.stderr.close()


def test_a_full_disk_and_closed_input_are_no_tracebacks(run_of):
    words = [sys.executable, "-m", "heedful", "translate", str(run_of("transformer")), "--longest", "3"]
    with open("/dev/full", "w") as full:
        made = subprocess.run([*words, "ba"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert made.returncode == 4
    assert "error: No space left on device" in made.stderr.splitlines()
    assert "Exception ignored" not in made.stderr
    made = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *words], capture_output=True, text=True)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")


def test_closed_input_is_read_from_what_stands_in_for_it(tmp_path, monkeypatch):
    """Whatever file has got its number since: a library may keep one open."""
    (tmp_path / "empty").touch()
    with open(tmp_path / "empty") as empty, standard_input(b"not this\n"):
        monkeypatch.setattr(sys, "__stdin__", None)
        monkeypatch.setattr(sys, "stdin", empty)
        assert [*text_groups()] == []
