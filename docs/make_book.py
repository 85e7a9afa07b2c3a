"""The documents as a site and as notebooks, offline: a lecture whose pages are the exhibits of `heed lecture`, in its
order, each block of code executed now; the guides; and the reference, from the docstrings.

    pip install 'heedful[docs]'
    python -m docs.make_book --out site                  # site/html/index.html, and site/notebooks
    python -m docs.make_book --out site --only N1 A2     # of the lecture, these exhibits alone

Raises SystemExit where Sphinx warns, a block of code fails, or a link leads nowhere.
"""

import argparse
import shutil
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from docs.book.lecture import lecture_pages
from docs.book.links import broken_links
from docs.book.pages import Page, as_markdown, as_notebook
from docs.book.reference import reference_pages

HERE = Path(__file__).parent
# Files of this folder, in the order in which they are read; those that are named nowhere follow the guides.
GUIDES = ("install", "tutorial", "first", "choosing", "tasks", "migration", "python", "serve", "inputs", "recipe")
INSIDE = ("architecture", "extend", "performance", "measured", "better", "how-it-is-tested")
LISTED = "README.md"  # lists the others, as the site's index does
CONF = """\
project = "heedful"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "heedful"
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
myst_heading_anchors = 4
exclude_patterns = ["_build"]
pygments_style, pygments_dark_style = "friendly", "monokai"
"""
INDEX = """\
# heedful

One attention core, and every transformer family on it: train, measure, use and look inside. These pages are a guide to
the program, a lecture in which every number is computed when the pages are made, and the reference.

```{{toctree}}
:caption: Guide
:maxdepth: 1

{guides}
```

```{{toctree}}
:caption: Lecture
:maxdepth: 2

{topics}
```

```{{toctree}}
:caption: Reference
:maxdepth: 1

{reference}
```

```{{toctree}}
:caption: Inside
:maxdepth: 1

{inside}
```
"""


def make(out: Path, only: Sequence[str] = ()) -> list[str]:
    """Writes `out`/html and `out`/notebooks; what is wrong, a line each."""
    from sphinx.cmd.build import build_main

    topics = lecture_pages(only)
    reference = reference_pages()
    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        (source / "conf.py").write_text(CONF, encoding="utf-8")
        for file in (*HERE.glob("*.md"), *HERE.glob("*.png"), *HERE.glob("*.svg")):
            if file.name != LISTED:
                shutil.copy(file, source)
        shutil.copytree(HERE / "pages", source / "pages")
        names = []
        for topic, pages in topics.items():
            folder = topic.lower().replace(" ", "-")
            listed = "\n".join(page.name for page in pages)
            names.append(f"lecture/{folder}/index")
            _write(source / f"{names[-1]}.md", f"# {topic}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n")
            for page in pages:
                _write_page(source / "lecture" / folder, page, out / "notebooks" / folder)
        for page in reference:
            _write(source / "reference" / f"{page.name}.md", as_markdown(page))
        others = sorted({file.stem for file in HERE.glob("*.md") if file.name != LISTED} - {*GUIDES, *INSIDE})
        index = INDEX.format(
            guides="\n".join([*GUIDES, *others]),
            topics="\n".join(names),
            reference="\n".join(f"reference/{page.name}" for page in reference),
            inside="\n".join(INSIDE),
        )
        _write(source / "index.md", index)
        shutil.rmtree(out / "html", ignore_errors=True)
        words = ["-b", "html", "-q", "-W", "--keep-going", "-d", str(source / "_build"), str(source), str(out / "html")]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python: what Sphinx and MyST say to each other of their versions
            wrong = ["Sphinx has warnings"] if build_main(words) else []
    return wrong + broken_links(out / "html")


def _write_page(folder: Path, page: Page, notebooks: Path) -> None:
    _write(folder / f"{page.name}.md", as_markdown(page))
    for name, data in page.pictures.items():
        (folder / name).write_bytes(data)
    _write(notebooks / f"{page.name}.ipynb", as_notebook(page))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, default=Path("site"))
    words.add_argument("--only", nargs="+", default=[], metavar="ID", help="Of the lecture, these exhibits alone.")
    asked = words.parse_args()
    wrong = make(asked.out, asked.only)
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(asked.out / "html" / "index.html")


if __name__ == "__main__":
    main()
