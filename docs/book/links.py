"""Whether the links of a site lead somewhere, without a network: those within it."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.update(value for name, value in found.items() if name in ("id", "name"))
        self.links += [found[name] for name in ("href", "src") if name in found]


def broken_links(folder: Path) -> list[str]:
    """Each link of an html file in it that leads to no file, or to no anchor of one."""
    pages: dict[Path, _Links] = {}
    for file in sorted(folder.rglob("*.html")):
        pages[file.resolve()] = read = _Links()
        read.feed(file.read_text(encoding="utf-8"))
    wrong = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            there = target in pages and (not parts.fragment or unquote(parts.fragment) in pages[target].anchors)
            if not target.is_file() or (target in pages and not there):
                wrong.append(f"{file.relative_to(folder.resolve())}: {link} leads nowhere")
    return wrong
