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


@pytest.mark.parametrize("package", ["heedful", "heedful.core", "heedful.decode", "heedful.look"])
def test_names_are_completed_before_they_are_used(package: str) -> None:
    """In a process of its own: a name that was once used is there."""
    asked = f"import {package}; print({{*{package}.__all__}} - {{*dir({package})}})"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"


def test_the_package_says_that_it_has_types() -> None:
    assert (Path(heedful.__file__).parent / "py.typed").is_file()


def test_an_editor_knows_all_that_may_come_out() -> None:
    """And which of them it is, by what stands in tests/typed.py."""
    served = {row.served.path.rpartition(":")[2] for row in TASKS.values()}
    kinds = {name: getattr(heedful, name) for name in served}
    assert served == set(CLASSES)
    assert {name: kind.__name__ for name, kind in kinds.items()} == {name: name for name in served}
    (said,) = re.findall(r"Loaded: TypeAlias = \((.+?)\)", inspect.getsource(heedful.tasks.load), re.DOTALL)
    assert {name.strip() for name in said.split("|")} == served
    assert served <= set(heedful.__all__)


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text(json.dumps({"task": "tag"}))
    with pytest.raises(InputError, match="a model for 'tag', a Tagger and not an Answerer"):
        heedful.load(tmp_path, heedful.Answerer)
