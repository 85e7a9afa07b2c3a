"""The screenshots of docs/pages, of a server that runs: `heed serve runs/demo runs/text ...`, then

    python -m docs.make_pages [http://127.0.0.1:8765] [--all FOLDER [--picture FILE]]

`--all` also writes each view at 1280 and 380 pixels, light and dark, into a folder, to be looked at; `--picture` is
what a model of pictures is shown.
"""

import argparse
import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

QUERY = "text=She+is+forty-one+years+old."
VIEWS = {
    "start": "/",
    "translate": f"/translate#{QUERY}&best=3",
    "write": "/write#tokens=120",
    "chat": "/chat#tokens=60&temperature=0",
    "pictures": "/pictures#model=shapes",
    "flow": f"/look?{QUERY}&model=demo#view=flow",
    "heads": f"/look?{QUERY}&model=demo#view=heads",
    "matrix": f"/look?{QUERY}&model=demo#view=matrix",
    "steps": f"/look?{QUERY}&model=demo#view=steps&step=3",
    "walk": f"/look?{QUERY}&model=demo#view=walk&layer=0&head=1&q=2",
    "whole": f"/look?{QUERY}&model=demo#view=flow",
    "runs": "/runs#runs=demo&measure=valid_loss",
}
SHOWN = ("translate", "flow", "walk", "runs")  # in the documents
SIZES = ((1280, "light"), (1280, "dark"), (380, "light"), (380, "dark"))
TALLEST = 1000  # pixels


def act(page: Page, name: str, picture: Path | None) -> None:
    """What is done before the picture is taken."""
    if name == "translate":
        page.locator("#target .said").nth(2).click()
        page.locator(".others button").first.wait_for()
    elif name == "write":
        page.get_by_role("button", name="Write").click()
        page.locator("#written .piece").nth(5).wait_for()
        page.locator("#stop:disabled").wait_for()
        page.locator("#written .piece").nth(5).click()
        page.locator("#chances .said").first.wait_for()
    elif name == "chat":
        for said in ("What is the opposite of hot?", "What is the capital of France?"):
            page.locator("#says").fill(said)
            page.get_by_role("button", name="Send").click()
            page.locator(".turn.assistant").last.locator(".piece").first.wait_for()
            page.locator("#stop:disabled").wait_for()
        page.locator(".turn .piece").last.focus()
        page.locator("#chances .said").first.wait_for()
    elif name == "flow":
        page.locator(".queries .token").nth(2).click()
    elif name == "whole":
        page.locator("#whole summary").click()
        page.wait_for_load_state("networkidle")
    elif name == "pictures" and picture is not None:
        page.locator("#files").set_input_files(picture)
        page.locator("#found .card").first.wait_for()


def shot(
    browser: Browser, address: str, name: str, *, width: int, scheme: str = "light", picture: Path | None = None
) -> Image.Image:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address + VIEWS[name])
    page.wait_for_load_state("networkidle")
    act(page, name, picture)
    page.wait_for_timeout(300)
    made = Image.open(io.BytesIO(page.screenshot(full_page=True)))
    context.close()
    return made


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("address", nargs="?", default="http://127.0.0.1:8765")
    words.add_argument("--all", type=Path)
    words.add_argument("--picture", type=Path)
    asked = words.parse_args()
    folder = Path(__file__).parent / "pages"
    folder.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in SHOWN:
            made = shot(browser, asked.address, name, width=1080)
            small = made.crop((0, 0, made.width, min(made.height, TALLEST))).convert(
                "P", palette=Image.Palette.ADAPTIVE
            )
            small.save(folder / f"{name}.png", optimize=True)
        for name in VIEWS if asked.all else ():
            asked.all.mkdir(parents=True, exist_ok=True)
            for width, scheme in SIZES:
                made = shot(browser, asked.address, name, width=width, scheme=scheme, picture=asked.picture)
                made.save(asked.all / f"{name}-{width}-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
