"""Every verb on a model of every task: an object of JSON a line, the same however the inputs come, or one line that
says why not."""

import json
from pathlib import Path
from typing import Any

import pytest

from cases import BEGUN_SWING, BEGUN_WALK, CASES, PIXELS, PROTEINS, SOUNDS
from commands import heed, standard_input
from heedful import cli
from heedful.data.images.files import to_image
from heedful.tasks import TASKS

VERBS = [
    name for name, command in cli.heed.commands.items() if "run" in {parameter.name for parameter in command.params}
]
SEEN = {"classify-images", "detect", "segment", "match", "paint", "describe"}  # tasks on pictures
TRANSLATING = ["translate", "summarise"]
# What a verb is told: at least this, and one way of asking for more.
ALWAYS = {"answer": ["--context", "ba is de."], "match": ["--text", "a", "--text", "b"], "generate": ["--tokens", "3"]}
ALWAYS |= {"chat": ["--tokens", "3"], "detect": ["--threshold", "0"]}
MORE = {
    "translate": ["--beam", "2", "--n-best", "2", "--prefix", "BA", "--weights", "int8"],
    "summarise": ["--samples", "2", "--longest", "4"],
    "generate": ["--samples", "2", "--weights", "int8", "--top-k", "3"],
    "chat": ["--system", "ba", "--top-k", "3"],
    "classify": [],
    "tag": ["--weights", "int8"],
    "answer": ["--top", "2", "--weights", "int8"],
    "fill": ["--top", "2", "--weights", "int8"],
    "parse": ["--beam", "2"],
    "detect": ["--out", "drawn"],
    "segment": ["--overlay"],
    "match": ["--template", "a {}"],
    "paint": ["--samples", "2"],
    "act": ["--asked", "1", "--weights", "int8"],
    "transcribe": ["--times"],
    "describe": ["--beam", "2"],
    "fold": ["--weights", "int8"],
    "embed": ["--pool", "mean"],
    "look": ["--out", "x.svg"],
}
READS_LINES = {
    *TRANSLATING,
    "score",
    "chat",
    "classify",
    "tag",
    "answer",
    "fill",
    "parse",
    "detect",
    "segment",
    "match",
    "describe",
    "transcribe",
    "fold",
    "embed",
    "act",
}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("verbs")
    for i, pixels in enumerate(PIXELS[:2]):
        to_image(pixels).save(folder / f"{i}.png")
    return sorted(map(str, folder.iterdir()))


def inputs_of(verb: str, run: Path, pictures: list[str]) -> list[str]:
    """Two inputs of the kind that the verb, or the model, reads."""
    reads_pictures = verb in ("detect", "segment", "match", "paint", "describe") or (
        CASES[run.name].task in SEEN and verb in ("classify", "look", "trace")
    )
    if reads_pictures:
        return pictures
    if CASES[run.name].task == "decide":
        return [BEGUN_SWING, '{"observations": [[1, 2, 3]]}'] if run.name == "swings" else [BEGUN_WALK, "bandit-walk"]
    if CASES[run.name].task in ("transcribe", "classify-sounds"):
        return SOUNDS
    if verb == "fold" or CASES[run.name].task == "fold":
        return ["GIVEQCCTSICSLYQLENYCN"] if verb == "look" else PROTEINS
    if verb == "align" or (verb == "score" and CASES[run.name].task in ("translate", "denoise")):
        return ["ba de gi\tGI DE BA", "ko\tKO"]
    return ["ba <mask> gi", "<mask> ko"] if verb == "fill" else ["ba de gi", "ko lu"]


def words_of(verb: str, run: Path) -> list[str]:
    """The least that the verb is told of its own, but for inputs."""
    if verb == "look" and CASES[run.name].task == "match":
        return ["--text", "a"]
    if verb == "trace" and CASES[run.name].task == "match":
        return ["--pair", "a"]
    if run.name == "questions" and verb in ("describe", "look", "trace"):
        return ["--pair" if verb == "trace" else "--question", "what is it?"]
    if verb in ("look", "trace") and CASES[run.name].task == "answer":
        return ["--pair", "ba is de."]
    if verb == "classify" and run.name == "choice":
        return ["--choice", "ba", "--choice", "no"]
    return [*ALWAYS.get(verb, []), *(["--out", "made"] if verb == "export" else [])]


def answers(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, Any]]:
    assert heed(*words, "--json") == 0
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    found = [json.loads(line) for line in said.out.splitlines()]
    assert found
    assert all(isinstance(one, dict) for one in found)
    return found


def fits(verb: str, name: str) -> bool:
    row = TASKS[CASES[name].task]
    match verb:
        case "look":
            return row.inside.look is not None
        case "embed":
            return row.embedder is not None and name not in ("decoder", "rnn")
        case "info" | "check" | "draw":
            return True
        case "trace":
            return row.inside.feed is not None
        case "summarise":
            return "translate" in row.asks
        case "paint":
            return row.name == "paint"
        case _:
            return verb in row.asks


def keys_within(value: Any) -> Any:
    """The keys of an answer, and of what it lists."""
    if isinstance(value, dict):
        return {key: keys_within(each) for key, each in value.items()}
    return keys_within(value[0]) if isinstance(value, list) and value and isinstance(value[0], dict) else None


# These need data, another library's like, a folder that is broken, or a word for what is asked.
APART = ("eval", "export", "restore", "vectors", "rank", "loop", "distil", "prune", "back-translate")
ASKED = [verb for verb in VERBS if verb not in APART]
ONE_VECTOR = {("embed", "match"), ("embed", "vectors")}  # of each, whatever is asked
OF_SEVERAL_KINDS = {"trace"}  # verbs that tell the beginning, each step and the end
PAIRS = [(verb, name) for verb in ASKED for name in CASES if fits(verb, name)]
OTHERS = [(verb, name) for verb in ASKED for name in CASES if not fits(verb, name)]


def test_nothing_is_left_out():
    assert {verb for verb, _ in PAIRS} == {*ASKED}
    assert {name for _, name in PAIRS} == {*CASES}
    assert {row.name for row in TASKS.values() if row.job} - {"summarise", "prefer"} == {
        case.task for case in CASES.values()
    }
    assert len(OTHERS) > 100


@pytest.mark.parametrize(("verb", "name"), PAIRS)
def test_a_line_of_json_however_it_is_asked(run_of, pictures, tmp_path, monkeypatch, capsys, verb, name):
    monkeypatch.chdir(tmp_path)
    run = run_of(name)
    own, least = inputs_of(verb, run, pictures), words_of(verb, run)
    words = [] if verb in ("info", "check", "draw") else own[:1] if verb in ("look", "trace") else own
    found = answers(capsys, verb, run, *words, *least)
    assert verb in OF_SEVERAL_KINDS or len({str(keys_within(one)) for one in found}) == 1
    if verb in MORE and (verb, name) not in ONE_VECTOR:
        more = answers(capsys, verb, run, *words, *least, *MORE[verb])
        unwarned = [{key: value for key, value in one.items() if key != "warning"} for one in (more[0], found[0])]
        assert keys_within(unwarned[0]) == keys_within(unwarned[1])
    if verb in READS_LINES:
        with standard_input("".join(f"{line}\n" for line in own)):
            assert answers(capsys, verb, run, *least) == found


@pytest.mark.parametrize("name", ["label", "labels", "score", "choice"])
def test_what_follows_a_tab_is_a_pair(run_of, capsys, name):
    words = words_of("classify", run_of(name))
    found = answers(capsys, "classify", run_of(name), "ba", *words, "--pair", "ko")
    with standard_input("ba\tko\n"):
        assert answers(capsys, "classify", run_of(name), *words) == found


def test_pairs_are_weighed_as_a_training_reads_them(run_of, tmp_path, capsys):
    run, pairs = run_of("transformer"), [("ba de", "DE BA"), ("ko", "KO")]
    table, sides = tmp_path / "pairs.tsv", [tmp_path / "a", tmp_path / "b"]
    table.write_text("".join(f"{one}\t{other}\n" for one, other in pairs))
    for path, side in zip(sides, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in side))
    found = answers(capsys, "score", run, "--data", table)
    assert [(one["source"], one["target"]) for one in found] == pairs
    assert answers(capsys, "score", run, "--source", sides[0], "--target", sides[1]) == found
    with standard_input(table.read_text()):
        assert answers(capsys, "score", run) == found
    assert heed("score", run, "--data", table) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[3:] for row in rows] == [[*pair] for pair in pairs]
    assert float(rows[0][1]) == pytest.approx(found[0]["logprob"], abs=1e-3)
    for wrong in (["--source", sides[0]], ["ba", "--data", table], ["--choice", "a"]):
        assert heed("score", run, *wrong) == 2
        one_line(capsys)
    assert heed("score", run_of("gpt"), "--data", table) == 2
    one_line(capsys)


def test_of_several_translations_each_text_has_as_many_lines(run_of, capsys):
    """With scores, whether there are so many or not: what is nothing is translated by nothing, once."""
    run = run_of("transformer")
    for several in (["--n-best", 3], ["--samples", 3], ["--beam", 4, "--n-best", 3, "--rerank", run]):
        with standard_input("ba de gi\n\nko\n"):
            assert heed("translate", run, *several) == 0
        lines = capsys.readouterr().out.split("\n")[:-1]
        assert len(lines) == 9
        assert lines[3:6] == ["0.000\t", "", ""]
        assert all(float(line.split("\t")[0]) for line in [*lines[:3], *lines[6:]])


def test_translations_are_drawn_or_the_best(run_of, capsys):
    run = run_of("transformer")
    assert heed("translate", run, "ba de", "--samples", 2, "--n-best", 3) == 2
    assert "leave out n_best, or samples" in one_line(capsys)
    assert len(answers(capsys, "translate", run, "ba de", "--samples", 4, "--n-best", 2, "--rerank", run)) == 1


def test_a_second_model_chooses_among_translations(run_of, capsys):
    """Of those that the first finds; and one translation is no choice."""
    run = run_of("transformer")
    found = answers(capsys, "translate", run, "ba de gi", "ko", "--beam", 3, "--n-best", 3)
    chosen = answers(capsys, "translate", run, "ba de gi", "ko", "--beam", 3, "--rerank", run)
    for one, before in zip(chosen, found, strict=True):
        ((text, score),) = [(each["text"], each["score"]) for each in one["hypotheses"]]
        scores = {each["text"]: each["score"] for each in before["hypotheses"]}
        assert score != scores[text]
    assert heed("translate", run, "ba", "--beam", 1, "--rerank", run) == 2
    assert "--beam 5" in one_line(capsys)


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """An error of one line, and at most one that says what to do, which is handed back; nothing else."""
    said = capsys.readouterr()
    assert said.out == ""
    first, *fix = said.err.splitlines()
    assert first.startswith("error: ")
    assert len(fix) <= 1
    assert all(line.startswith("fix: ") for line in fix)
    return "".join(fix)


def test_a_verb_that_does_not_fit_says_so(run_of, pictures, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for verb, name in OTHERS:
        run = run_of(name)
        inputs = inputs_of(verb, run, pictures)[: 1 if verb in ("look", "trace") else 2]
        assert heed(verb, run, *inputs, *words_of(verb, run), "--json") == 2
        row, fix = TASKS[CASES[name].task], one_line(capsys)
        if verb not in ("look", "embed", "trace"):
            assert fix == f"fix: this run {row.does}: heed {next(iter(row.asks), row.name)} {run}"


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_scored_or_handed_on_says_so(run_of, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert heed("eval", run_of(name), "--json") == 2
    one_line(capsys)
    for to in ("hf", "ctranslate2"):
        if heed("export", run_of(name), "--to", to, "--out", to, "--json"):
            one_line(capsys)
        else:
            (line,) = capsys.readouterr().out.splitlines()
            assert {"family", "to", "out", "files"} <= json.loads(line).keys()
