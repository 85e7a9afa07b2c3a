"""What a researcher imports: by the name of the package alone."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import heedful


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


def test_a_type_checker_knows_what_comes_out(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from heedful.core import Attention, Block, Mask, Stack\n"
        "from heedful.tasks.translate.use import Translator\n"
        "translator = Translator.load('runs/x')\n"
        "reveal_type(translator.translate('a'))\n"
        "reveal_type(translator.translate(['a']))\n"
        "reveal_type(Mask(causal=True))\n"
    )
    root = Path(heedful.__file__).parent.parent
    words = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml")]
    made = subprocess.run([*words, str(script)], capture_output=True, text=True, check=False, cwd=root)
    told = [line.split('"')[1] for line in made.stdout.splitlines() if "Revealed type" in line]
    names = [each.replace("builtins.", "").rpartition(".")[2] if "[" not in each else each for each in told]
    assert names == ["str", "list[builtins.str]", "Mask"] or names == ["str", "list[str]", "Mask"], made.stdout
