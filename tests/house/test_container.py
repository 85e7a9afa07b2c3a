"""The image and its service are those of this checkout: as far as can be said without building them."""

import inspect
import re
import tomllib
from pathlib import Path

import yaml

from heedful.cli.serving import serve

PORT = inspect.signature(serve).parameters["port"].default


def test_what_the_image_copies_is_here_and_all_that_installing_needs(root: Path) -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (root / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert all((root / name).exists() for name in names)
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    fragments = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["fragments"]
    needed = {"pyproject.toml", "constraints.txt", *project["project"]["license-files"]}
    needed |= {*project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"], *(one["path"] for one in fragments)}
    assert names == needed


def test_the_service_is_reached_at_the_port_that_is_served(root: Path) -> None:
    image = (root / "Dockerfile").read_text("utf-8")
    assert re.findall(r"EXPOSE (\d+)", image) == re.findall(r"127\.0\.0\.1:(\d+)/health", image) == [str(PORT)]
    (service,) = yaml.safe_load((root / "compose.yaml").read_text("utf-8"))["services"].values()
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert "HEED_API_KEY" in service["environment"]


def test_no_document_is_left_out_of_the_list_by_reader(root: Path) -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (root / "docs" / "README.md").read_text("utf-8"))
    assert sorted(listed) == sorted(path.name for path in (root / "docs").glob("*.md") if path.name != "README.md")
    linked = re.findall(r"\]\(docs/([\w-]+\.md)", (root / "README.md").read_text("utf-8"))
    assert {*listed} - {*linked} <= {"first.md", "install.md"}, "the README links every guide"
