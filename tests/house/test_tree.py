"""Rules of the whole tree: what no file may hold, checked over the source of all of them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

LONGEST = 500
PARTS = (".ci", "benchmarks", "docs", "heedful", "recipes", "tests")
TEXT = {"", ".css", ".html", ".js", ".json", ".md", ".py", ".rst", ".sh", ".svg", ".toml", ".txt", ".yaml", ".yml"}
# Of one machine: a path that starts at its root, in the folders where people keep their work.
HERE_ONLY = re.compile(r"(?<![\w.~$})-])/(?:home|mnt|root|scratch|tmp|Users|work|workspace)/[\w.]")
UNPICKLERS = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
RUNS_CODE = {"eval", "exec", "compile", "torch.load", "torch.hub.load", "numpy.load", "np.load"}
WRITES = {"json.dump", "np.save", "np.savez", "numpy.save", "numpy.savez", "os.rename", "os.replace", "os.write"}
WRITES |= {"shutil.copy", "shutil.copyfile", "shutil.copytree", "shutil.move", "torch.save"}
WRITES_METHODS = {"save_file", "write_bytes", "write_text"}
DEVICES = ("cpu", "cuda", "mps", "xpu", "xla")
WRITE_FLAGS = {"O_APPEND", "O_CREAT", "O_RDWR", "O_TRUNC", "O_WRONLY"}

TERMINAL = ("/cli.py", "/terminal.py")  # of tasks: what may print


def files(root: Path) -> Iterator[Path]:
    """Every text file of the project; what its users put beside them (data, runs, environments) is theirs."""
    found = [*root.iterdir(), *(file for part in PARTS for file in sorted((root / part).rglob("*")))]
    # Of a worktree, `.git` is a file, and git's own.
    yield from (file for file in found if file.is_file() and file.suffix in TEXT and file.name != ".git")


def local_paths(text: str) -> list[int]:
    """The lines of `text` that name a folder of one machine."""
    return [number for number, line in enumerate(text.splitlines(), 1) if HERE_ONLY.search(line)]


def breaches(path: str, source: str) -> list[str]:
    """What the module of heedful/ at `path` does and must not: one line each."""
    tree = ast.parse(source)
    found = []
    if not ast.get_docstring(tree):
        found.append(f"{path}:1: does not open with a docstring")
    buffers = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.value).endswith(("BytesIO()", "StringIO()"))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            tops = {name.split(".")[0] for name in (names if isinstance(node, ast.Import) else [module])}
            found += [f"{path}:{node.lineno}: imports {name}" for name in sorted(tops & UNPICKLERS)]
            aliased = {f"{module}.{name}" for name in names} & (RUNS_CODE | WRITES)
            found += [f"{path}:{node.lineno}: takes {name} out of its module" for name in sorted(aliased)]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            arrays_alone = name == "numpy.load" and "allow_pickle=False" in map(ast.unparse, node.keywords)
            if (name in RUNS_CODE and not arrays_alone) or any(
                each.arg == "trust_remote_code" for each in node.keywords
            ):
                found.append(f"{path}:{node.lineno}: {name} may run what it reads")
            if name == "print" and not path.startswith("heedful/cli/") and not path.endswith(TERMINAL):
                found.append(f"{path}:{node.lineno}: prints; only cli/ and {TERMINAL} do")
            if path != "heedful/store/files.py" and writes(node, buffers):
                found.append(f"{path}:{node.lineno}: {name} writes a file; only store/files.py does")
    return found


def device_branches(path: str, source: str) -> list[str]:
    """Where the module at `path` asks what kind of device it runs on: one line each."""
    found = []
    for node in ast.walk(ast.parse(source)):
        kind = isinstance(node, ast.Constant) and re.fullmatch(rf"({'|'.join(DEVICES)})(:\d+)?", str(node.value))
        asks = isinstance(node, ast.Attribute) and (
            (node.attr == "type" and ast.unparse(node.value).endswith("device"))
            or node.attr in {*DEVICES, *(f"is_{device}" for device in DEVICES)} - {"cpu"}  # x.cpu() is no question
            or ast.unparse(node) in ("torch.cpu", "torch.backends", "torch.accelerator")
        )
        if kind or asks:
            found.append(f"{path}:{node.lineno}: {ast.unparse(node)}: ask core/kernels.py")  # type: ignore[attr-defined]
    return found


def writes(call: ast.Call, buffers: set[str]) -> bool:
    """Whether `call` puts something on the disk; `buffers` are the names of files in memory."""
    name = ast.unparse(call.func)
    owner, _, method = name.rpartition(".")
    arguments = [*call.args, *(word.value for word in call.keywords if word.arg in ("mode", "fname"))]
    if name == "os.open":
        return any(isinstance(node, ast.Attribute) and node.attr in WRITE_FLAGS for node in ast.walk(call))
    if method == "open":
        modes = [node.value for node in arguments if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        computed = not owner and len(arguments) > 1 and not modes
        return computed or any(re.fullmatch(r"[rbt]*[wax+][rbtwax+]*", mode) for mode in modes)
    if name == "json.dump" or method == "savefig":
        return not any(isinstance(node, ast.Name) and node.id in buffers for node in arguments)
    return name in WRITES or (method in WRITES_METHODS and owner != "files")


def test_no_file_names_a_folder_of_one_machine(root: Path) -> None:
    found = [
        f"{file.relative_to(root)}:{line}" for file in files(root) for line in local_paths(file.read_text("utf-8"))
    ]
    assert not found, found


def test_no_file_of_the_package_is_long(root: Path) -> None:
    package = [file for file in files(root) if (root / "heedful") in file.parents and file.suffix != ".yaml"]
    lengths = {str(file.relative_to(root)): len(file.read_text("utf-8").splitlines()) for file in package}
    assert len(lengths) > 10
    assert not {name: length for name, length in lengths.items() if length > LONGEST}


def test_modules_keep_the_rules(root: Path) -> None:
    found = [
        line
        for file in sorted((root / "heedful").rglob("*.py"))
        for line in breaches(file.relative_to(root).as_posix(), file.read_text("utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


def test_only_one_module_of_the_models_asks_for_the_device(root: Path) -> None:
    files_ = [file for part in ("core", "models", "decode") for file in sorted((root / "heedful" / part).rglob("*.py"))]
    found = {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in files_}
    assert device_branches("kernels.py", found.pop("heedful/core/kernels.py")), "else this test sees nothing"
    assert len(found) > 30
    lines = [line for path, source in found.items() for line in device_branches(path, source)]
    assert not lines, "\n" + "\n".join(lines)


@pytest.mark.parametrize(
    "line",
    [
        "fast = x.device.type == kind",
        "if device.type != kind: pass",
        "if x.is_cpu: pass",
        "if x.is_cuda: pass",
        "torch.cuda.synchronize()",
        "torch.backends.mkldnn.is_available()",
        "x = x.to('cuda:1')",
        "torch.zeros(3, device='cpu')",
    ],
)
def test_a_question_for_the_device_is_found(line: str) -> None:
    (found,) = device_branches("heedful/core/mask.py", f"\n{line}")
    assert found.startswith("heedful/core/mask.py:2: ")


@pytest.mark.parametrize(
    "line", ["x.to(y.device)", "lengths.cpu()", "kind = node.type", '"""Of a CPU: cpu and cuda."""']
)
def test_what_runs_on_any_device_is_free(line: str) -> None:
    assert device_branches("heedful/core/mask.py", line) == []


def test_a_folder_of_one_machine_is_found() -> None:
    folders = ["/".join(["", "home", "ada", "data"]), "/".join(["", "work", "main"])]
    assert local_paths(f"a\ncd {folders[0]}\n'{folders[1]}'") == [2, 3]
    work = "/".join(["", "work"])
    assert local_paths(f"https://example.org/home/x\n~{work}/x\ntests/tmp/x\n$root{work}/x\na {work}") == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import pickle", "imports pickle"),
        ("from joblib import load", "imports joblib"),
        ("from torch import load", "takes torch.load"),
        ("weights = torch.load(path)", "torch.load may run"),
        ("numpy.load(path)", "numpy.load may run"),
        ("eval(text)", "eval may run"),
        ("load(name, trust_remote_code=True)", "load may run"),
        ("print('x')", "prints"),
        ("open(path, 'w')", "writes"),
        ("open(path, mode='ab')", "writes"),
        ("open(path, mode)", "writes"),
        ("path.open('r+')", "writes"),
        ("gzip.open(path, 'wt')", "writes"),
        ("os.open(path, os.O_WRONLY | os.O_CREAT)", "writes"),
        ("Path('x').write_text(text)", "writes"),
        ("path.write_bytes(data)", "writes"),
        ("torch.save(model, path)", "writes"),
        ("safetensors.torch.save_file(tensors, path)", "writes"),
        ("json.dump(value, file)", "writes"),
        ("figure.savefig(path)", "writes"),
        ("os.replace(path, other)", "writes"),
    ],
)
def test_a_breach_is_found(line: str, message: str) -> None:
    found = breaches("heedful/data/text.py", f'"""Text."""\n{line}\n')
    assert len(found) == 1
    assert found[0].startswith("heedful/data/text.py:2: ")
    assert message in found[0]


def test_a_missing_docstring_is_found() -> None:
    found = breaches("heedful/data/text.py", "import math\n")
    assert found == ["heedful/data/text.py:1: does not open with a docstring"]


@pytest.mark.parametrize(
    "lines",
    [
        "model.eval()",
        "re.compile('x')",
        "open(path)",
        "open(path, 'rb')",
        "path.open(encoding='utf-8')",
        "Image.open('wax.png')",
        "os.open(path, os.O_RDONLY)",
        "json.dumps(value)",
        "files.write_text(path, text)",
        "data = safetensors.torch.save(tensors)",
        "buffer = io.BytesIO()\nfigure.savefig(buffer, format='png')",
    ],
)
def test_the_rest_is_free(lines: str) -> None:
    assert breaches("heedful/data/text.py", f'"""Text."""\n{lines}\n') == []
