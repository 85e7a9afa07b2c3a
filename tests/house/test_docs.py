"""Documents that are written from the code say what the code says."""

import re
import runpy
from pathlib import Path

from heedful.lab import EXHIBITS
from heedful.store.files import Disk


def test_the_recipe_page_is_that_of_the_code(root: Path) -> None:
    written = runpy.run_path(str(root / "docs" / "make_recipe.py"))["page"]()
    kept = (root / "docs" / "recipe.md").read_text(encoding="utf-8")
    assert written == kept, "docs/recipe.md is not that of these recipes; write it again: python -m docs.make_recipe"


def test_no_field_of_a_model_is_described_that_does_not_exist(root: Path) -> None:
    """One without a description is a KeyError already."""
    made = runpy.run_path(str(root / "docs" / "make_recipe.py"))
    kept = (root / "docs" / "recipe.md").read_text(encoding="utf-8")
    assert [name for name, told in made["MODEL"].items() if f"| {told.partition('; null:')[0]}" not in kept] == []


def test_the_picture_of_the_rooms_is_that_of_the_imports(root: Path) -> None:
    """Which therefore lead down: nothing in it is red."""
    made = runpy.run_path(str(root / "docs" / "make_rooms.py"))
    drawn = made["picture"]()
    assert drawn == (root / "docs" / "rooms.svg").read_text(encoding="utf-8"), (
        "draw it again: python -m docs.make_rooms"
    )
    assert made["UP"] not in drawn


def test_the_page_of_inputs_is_what_the_readers_say(root: Path) -> None:
    made = runpy.run_path(str(root / "docs" / "make_inputs.py"))
    kept = (root / "docs" / "inputs.md").read_text(encoding="utf-8")
    assert made["page"]() == kept, "docs/inputs.md is not what is read now; write it again: python -m docs.make_inputs"
    assert sum(len(cases) for _, _, cases in made["SECTIONS"]) > 60


def test_counts_in_the_documents_are_those_of_the_code(root: Path) -> None:
    words = {9: "nine", 10: "ten", 11: "eleven", 12: "twelve", 60: "sixty"}
    planted = re.search(r'"--count", type=int, default=(\d+)', (root / "benchmarks" / "planted.py").read_text("utf-8"))
    assert planted
    operations = [name for name in vars(Disk) if not name.startswith("_")]
    for path, told in (
        ("docs/how-it-is-tested.md", f"uses {words[len(operations)]} primitive operations"),
        ("CONTRIBUTING.md", f"plants {words[int(planted[1])]} faults"),
        ("CHANGELOG.md", f"`heed lecture`: {len(EXHIBITS)} worked numbers"),
    ):
        assert told in (root / path).read_text("utf-8"), f"{path} does not say: {told}"


def test_the_table_of_presets_is_that_of_the_recipes(root: Path) -> None:
    written = runpy.run_path(str(root / "docs" / "make_presets.py"))["table"]()
    kept = (root / "heedful" / "verbs" / "presets.json").read_text(encoding="utf-8")
    assert written == kept, "heedful/verbs/presets.json is not that of these recipes: python -m docs.make_presets"
