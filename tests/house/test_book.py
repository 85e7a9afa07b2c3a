"""The site and the notebooks: built without warnings, every block of code run, every link leading somewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from docs.book.lecture import lecture_page
from docs.book.links import broken_links
from docs.book.pages import Code, Page, Text, as_markdown, as_notebook, plain, run
from docs.make_book import GUIDES, INSIDE, make
from heedful.lab import EXHIBITS


def test_a_small_part_is_built(tmp_path: Path) -> None:
    assert make(tmp_path, only=["N1"]) == []
    page = (tmp_path / "html" / "lecture" / "numbers" / "N1.html").read_text("utf-8")
    assert "N1-dark.svg" in page
    assert (tmp_path / "html" / "reference" / "heedful-core.html").is_file()
    assert (tmp_path / "notebooks" / "numbers" / "N1.ipynb").is_file()


@pytest.mark.full
def test_all_of_it_is_built(tmp_path: Path) -> None:
    assert make(tmp_path) == []
    assert len([*tmp_path.rglob("*.ipynb")]) == len(EXHIBITS)


def test_the_documents_that_are_named_are_there(root: Path) -> None:
    """Sphinx tells of those that are on no list."""
    assert {*GUIDES, *INSIDE} <= {path.stem for path in (root / "docs").glob("*.md")}


def test_a_notebook_runs_and_shows_what_it_says() -> None:
    made = json.loads(as_notebook(lecture_page("N1")))
    assert (made["nbformat"], made["cells"][0]["cell_type"]) == (4, "markdown")
    (cell,), names = [cell for cell in made["cells"] if cell["cell_type"] == "code"], dict[str, Any]()
    run("".join(cell["source"]), names, "N1")
    shown = names["shown"]._repr_html_()  # what Jupyter shows of the last line
    assert "The third number is 0.06 * 1" in shown
    assert "<svg" in shown
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_a_page_is_text_a_picture_and_code_with_what_it_printed() -> None:
    page = Page("p", "Title", [Text("words"), Code("print(1)", "1\n")], {"a.svg": b"", "b.svg": b""})
    made = as_markdown(page)
    assert made.startswith("# Title\n\nwords\n\n```{image} a.svg\n:class: only-light")
    assert made.endswith("```python\nprint(1)\n```\n\n```text\n1\n```\n")
    assert made.count("```{image}") == 2
    assert "only-dark" in made


def test_signs_of_markdown_are_left_alone_in_code_alone() -> None:
    assert plain("a_b * `c_d *`") == "a\\_b \\* `c_d *`"


def test_what_is_broken_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="x"></h1><a href="b.html#y"></a><a href="#x"></a><img src="c.png">')
    (tmp_path / "b.html").write_text('<h1 id="z"></h1><a href="https://example.org/none"></a><a href="a.html#x"></a>')
    assert broken_links(tmp_path) == ["a.html: b.html#y leads nowhere", "a.html: c.png leads nowhere"]
    with pytest.raises(SystemExit, match="here: ZeroDivisionError"):
        run("1 / 0", {}, "here")
