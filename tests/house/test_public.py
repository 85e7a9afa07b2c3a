"""What a researcher imports: by the name of the package alone."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import heedful
from heedful.errors import InputError
from heedful.tasks import TASKS
from heedful.tasks.load import CLASSES


@pytest.mark.parametrize("package", ["heedful.core", "heedful.decode", "heedful.models", "heedful.look"])
def test_every_public_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert len(module.__all__) >= 7
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert not inspect.ismodule(getattr(module, name)), name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = module.Nothing


def test_the_package_says_that_it_has_types() -> None:
    assert (Path(heedful.__file__).parent / "py.typed").is_file()


@pytest.fixture(scope="module")
def revealed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a strict type checker says that each line of `TYPED` is."""
    script = tmp_path_factory.mktemp("typed") / "script.py"
    script.write_text(
        "import heedful\nimport heedful.core\n"
        + "".join(f"reveal_type({line})\n" for line in [*TYPED, "heedful.load('runs/x')"])
    )
    root = Path(heedful.__file__).parent.parent
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(root / "pyproject.toml")]
    made = subprocess.run([*words, str(script)], capture_output=True, text=True, check=False, cwd=root)
    told = [line for line in made.stdout.splitlines() if "script.py:" in line]
    assert not [line for line in told if ": error:" in line], made.stdout
    return [re.sub(r"[\w.]+\.(?=\w)", "", line.split('"')[1]) for line in told if "Revealed type" in line]


TYPED = {
    "heedful.core.Mask(causal=True)": "Mask",
    "heedful.load('runs/x', heedful.Translator).translate('a')": "str",
    "heedful.load('runs/x', heedful.Translator).translate(['a'])": "list[str]",
    "heedful.load('runs/x', heedful.TextClassifier, device='cpu').classify('a')": "list[tuple[str, float]]",
}


@pytest.mark.parametrize("line", TYPED)
def test_a_type_checker_knows_what_comes_out(line: str, revealed: list[str]) -> None:
    assert revealed[[*TYPED].index(line)] == TYPED[line]


def test_an_editor_knows_all_that_may_come_out(revealed: list[str]) -> None:
    served = {row.served.path.rpartition(":")[2] for row in TASKS.values()}
    kinds = {name: getattr(heedful, name) for name in served}
    assert served == set(CLASSES)
    assert {name: kind.__name__ for name, kind in kinds.items()} == {name: name for name in served}
    above = {name for name, kind in kinds.items() if not any(base in kinds.values() for base in kind.__mro__[1:])}
    assert set(revealed[-1].split(" | ")) == above  # what is below another kind is of that kind too
    assert served <= set(heedful.__all__)


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text(json.dumps({"task": "tag"}))
    with pytest.raises(InputError, match="a model for 'tag', a Tagger and not an Answerer"):
        heedful.load(tmp_path, heedful.Answerer)
