"""Plants faults in the code, one at a time, and tells how many the tests find.

    python -m benchmarks.planted                    # 60 faults, two at a time: an hour or two
    python -m benchmarks.planted --every 4          # the first, the fifth, ... of them
    python -m benchmarks.planted --tests DIR        # with the tests of another checkout

Each fault is one small change, drawn once for all by a seed: a comparison turned, a number one off, a sum made a
difference, a condition negated, a keyword left out. Some change nothing that anybody could see, so the number to
compare is that of another version of the tests, over the same faults. The tests are those of core, models, decode,
training and parity, the ones of the changed module first; the first that fails ends a run.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("core", "models", "decode", "training")
TURNED: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
# A text that joins a batch with a fixed cache whose buffer has to grow.
KNOWN = ("heedful/core/cache.py", "return replace(self, buffer=buffer)", "return self")
SKIPPED = ("presets.py", "vision_presets.py", "counts.py", "config.py", "__init__.py")  # tables, and no arithmetic


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every node that can be changed, but in annotations, texts, and what raises."""
    for node in ast.iter_child_nodes(tree):
        yield from _below(node)


def _below(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.arguments | ast.JoinedStr | ast.AnnAssign):
        return
    if isinstance(node, ast.Compare) and type(node.ops[0]) in TURNED:
        yield node, "comparison"
    if isinstance(node, ast.BinOp) and type(node.op) in TURNED:
        yield node, "arithmetic"
    if isinstance(node, ast.BoolOp):
        yield node, "and, or"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node, "number"
    if isinstance(node, ast.If | ast.IfExp):
        yield node, "condition"
    if isinstance(node, ast.Call) and node.keywords and all(word.arg for word in node.keywords):
        yield node, "keyword"
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _below(child)


def changed(source: str, number: int) -> tuple[str, str]:
    """The source with change `number` made, and what that was."""
    tree = copy.deepcopy(ast.parse(source))
    node, kind = list(changes(tree))[number]
    before = ast.unparse(node)
    match node:
        case ast.Compare():
            node.ops[0] = TURNED[type(node.ops[0])]()
        case ast.BinOp() | ast.BoolOp():
            node.op = TURNED[type(node.op)]()
        case ast.Constant():
            node.value += 1  # type: ignore[operator]  # a whole number
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Call():
            node.keywords.pop()
    after = ast.unparse(node)
    return ast.unparse(tree), f"line {node.lineno}, {kind}: {_short(before)} -> {_short(after)}"  # type: ignore[attr-defined]


def _short(text: str) -> str:
    return text.split("\n")[0][:70]


def drawn(count: int) -> list[tuple[str, str, str]]:
    """Path, changed source and description of so many faults."""
    draw, places = random.Random(17), []
    for room in ROOMS:
        for path in sorted((ROOT / "heedful" / room).glob("*.py")):
            if path.name not in SKIPPED:
                total = len(list(changes(ast.parse(path.read_text()))))
                places += [(path, number) for number in range(total)]
    known, old, new = KNOWN
    source = (ROOT / known).read_text()
    assert source.count(old) == 1
    found = [(known, source.replace(old, new), f"{old} -> {new}")]
    for path, number in draw.sample(places, count - 1):
        found.append((path.relative_to(ROOT).as_posix(), *changed(path.read_text(), number)))
    return found


def fails(path: str, source: str, tests: Path) -> bool:
    """Whether a test fails when the file at `path` reads `source`."""
    room, name = path.split("/")[1:3]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for part in ("heedful", "recipes", "benchmarks", "docs"):
            shutil.copytree(ROOT / part, tree / part)
        shutil.copytree(tests, tree / "tests")
        shutil.copy(ROOT / "pyproject.toml", tree)
        (tree / path).write_text(source)
        own = [f"tests/{room}/test_{name}", f"tests/{room}"]
        order = [word for word in own if (tree / word).exists()]
        order += [f"tests/{each}" for each in (*ROOMS, "parity") if f"tests/{each}" not in order]
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *order]
        settings = {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(words, cwd=tree, env={**os.environ, **settings}, capture_output=True, timeout=1800)
        except subprocess.TimeoutExpired:
            return True  # a search that never ends is found too
    return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=Path, default=ROOT / "tests", help="the folder of tests")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--every", type=int, default=1, help="plant one in so many of them")
    parser.add_argument("--at-once", type=int, default=2)
    given = parser.parse_args()
    faults = drawn(given.count)[:: given.every]
    if fails(KNOWN[0], (ROOT / KNOWN[0]).read_text(), given.tests):
        sys.exit("the tests fail without a fault")
    with ThreadPoolExecutor(given.at_once) as pool:
        results = []
        for fault, found in zip(faults, pool.map(lambda one: fails(one[0], one[1], given.tests), faults), strict=True):
            results.append(found)
            print("found " if found else "MISSED", fault[0], fault[2], flush=True)
    print(f"found {sum(results)} of {len(results)}")


if __name__ == "__main__":
    main()
