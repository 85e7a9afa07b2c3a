"""How fast the page of `heed look` is: until its first picture, and from a touched token to what lights up.

    python -m benchmarks.page [--tokens 128] [--heads 8] [--rounds 25]

The browser's own clock: the first contentful paint of its trace, and from the event to the second frame after it.
"""

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import sync_playwright

from heedful.look.page import attention_view, page

HOVER = """(i) => new Promise((done) => {
  const token = document.querySelectorAll('.queries .token')[i], begun = performance.now();
  token.dispatchEvent(new MouseEvent('mouseenter'));
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
})"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--tokens", type=int, default=128)
    words.add_argument("--heads", type=int, default=8)
    words.add_argument("--layers", type=int, default=4)
    words.add_argument("--rounds", type=int, default=25)
    asked = words.parse_args()
    size = asked.tokens
    tokens = [f"word{i}" for i in range(size)]
    torch.manual_seed(0)
    layers = {
        f"decoder.blocks.{i}.cross_attention": (4 * torch.randn(asked.heads, size, size)).softmax(-1)
        for i in range(asked.layers)
    }
    html = page(attention_view(tokens, tokens, layers, produced=tokens))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(html, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        first, hover = [], []
        for _ in range(asked.rounds):
            view = browser.new_page(viewport={"width": 1280, "height": 900})
            view.goto(file.as_uri())
            view.wait_for_selector(".queries .token")
            while (painted := view.evaluate(PAINT)) is None:  # the browser tells it a moment later
                view.wait_for_timeout(10)
            first.append(painted)
            hover += [view.evaluate(HOVER, i) for i in range(0, size, max(1, size // 8))]
            view.close()
        browser.close()
    print(f"{size} tokens, {asked.layers} layers of {asked.heads} heads: {len(html) / 1e6:.2f} MB")
    for name, found in (("first picture", first), ("a touched token", hover)):
        low, high = min(found), max(found)
        print(f"{name}: median {statistics.median(found):.0f} ms, {low:.0f} to {high:.0f}")


if __name__ == "__main__":
    main()
