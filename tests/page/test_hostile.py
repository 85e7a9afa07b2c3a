"""What a model, a file or a folder is called, or says, is text on the page, whatever it is."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import torch
from playwright.sync_api import Browser, Page, Route, expect

from aligning import aligned
from heedful.look.page import attention_view

RUN = "window.hacked = 1"
HOSTILE = [
    f"<img src=x onerror='{RUN}'>",
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<svg onload='{RUN}'>",
    f"<svg><script>{RUN}</script></svg>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'>",
    f"<a href='javascript:{RUN}'>a</a>",
    f"javascript:{RUN}",
    f"\" onmouseover='{RUN}' x=\"",
    f"' onfocus='{RUN}' autofocus='",
    f"`;{RUN};`",
    f"${{{RUN}}}",
    f"{{{{{RUN}}}}}",
    f"{{% {RUN} %}}",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<style>*{display:none}</style>",
    "</title></head><body>",
    "<base href='//evil.example/'>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example>",
    "<form action=//evil.example><button>",
    "<math><mtext></mtext></math>",
    "<template><b>",
    "&lt;b&gt; &amp; &#x41;",
    "\u202egnp.exe",
    "\u2066\u2067\u2068\u2069",
    "שלום",
    "مرحبا",
    "猫が好き",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "e\u0301\u0300\u0302",
    "\u0000\u0001\u001b[31m",
    "\u2028\u2029",
    "constructor",
    "__proto__",
    "x" * 10_000,
    " ",
]


def answering(page: Page, answers: dict[str, Any]) -> None:
    """The page's questions at these paths are answered so."""

    def answer(route: Route) -> None:
        route.fulfill(json=answers[urlsplit(route.request.url).path])

    for path in answers:
        page.route(f"**{path}", answer)


def unharmed(page: Page, elements: str) -> None:
    assert page.evaluate("window.hacked") is None
    assert (
        page.locator(f"{elements} :is(script, img, iframe, style, base, meta, link, form, template, math)").count() == 0
    )


def test_tokens_are_text(page: Page, served: str, tally: Callable[[str, int], None]) -> None:
    weights = {
        "encoder.blocks.0.self_attention": torch.rand(2, 40, 40).softmax(-1),
        "decoder.blocks.0.cross_attention": torch.rand(2, 40, 40).softmax(-1),
    }
    view = attention_view(HOSTILE, HOSTILE, weights, produced=HOSTILE, title=HOSTILE[0])
    steps = [
        {"top": [one], "said": one, "entropy": 1.0, "total": -1.0}
        for one in ({"token": 1, "piece": text, "text": text, "before": 0.5, "after": 0.5} for text in HOSTILE)
    ]
    answering(page, {"/api/view": {**view, "said": HOSTILE[1], "about": HOSTILE[2], "steps": steps}})
    page.goto(f"{served}/look?model=en-fr&text=a")
    expect(page.locator(".keys .token")).to_have_count(40)
    assert page.locator(".keys .token").all_text_contents() == view["texts"]["source"]
    for name in ("Heads", "Matrix", "Steps", "Flow"):
        page.locator("#views label", has_text=name).click()
        unharmed(page, "#inside main")
        page.locator("#twin summary").click()
        page.locator("#twin summary").click()
    tally("W1 hostile tokens", len(HOSTILE))


def test_words_names_and_errors_are_text(page: Page, served: str, tally: Callable[[str, int], None]) -> None:
    others = [{"text": text, "probability": 0.1, "translation": text} for text in HOSTILE]
    answering(page, {"/api/align": aligned(HOSTILE, HOSTILE, others=others, warning=HOSTILE[0])})
    page.goto(f"{served}/translate#text=a")
    expect(page.locator("#target .said")).to_have_count(40)
    assert page.locator("#target .said").all_text_contents() == HOSTILE
    page.locator("#target .said").nth(14).click()
    expect(page.locator(".others button")).to_have_count(40)
    unharmed(page, "#content")
    runs = [
        {
            "name": text,
            "task": text,
            "parameters": 1,
            "steps": 1,
            "minutes": 1,
            "training": False,
            "scores": {text: 1.0},
        }
        for text in HOSTILE
    ]
    answering(page, {"/api/runs": {"runs": runs}})
    page.goto(f"{served}/runs")
    expect(page.locator("#list tbody tr")).to_have_count(40)
    assert {*page.locator("#list tbody bdi").all_text_contents()} == {*HOSTILE}
    unharmed(page, "#content")
    tally("W1 hostile tokens", 2 * len(HOSTILE))


def test_nothing_is_asked_of_others(browser: Browser, served: str, tally: Callable[[str, int], None]) -> None:
    """Also with every way out cut."""
    context = browser.new_context()
    asked: list[str] = []

    def guard(route: Route) -> None:
        asked.append(route.request.url)
        route.continue_() if urlsplit(route.request.url).hostname == "127.0.0.1" else route.abort()

    context.route("**", guard)
    page = context.new_page()
    for view in ("", "translate", "write", "chat", "pictures", "look?model=en-fr&text=ko", "runs"):
        page.goto(f"{served}/{view}")
        page.wait_for_load_state("networkidle")
        expect(page.locator("h1").first).not_to_be_empty()
    context.close()
    assert len(asked) > 30
    assert {urlsplit(url).hostname for url in asked if not url.startswith(("data:", "blob:"))} == {"127.0.0.1"}
    tally("W2 page offline", len(asked))


def test_the_documents_allow_no_script_of_their_own(page: Page, served: str) -> None:
    for view in ("", "translate", "write", "chat", "pictures", "look", "runs"):
        found = page.goto(f"{served}/{view}")
        assert found is not None
        assert "script-src 'self'" in found.headers["content-security-policy"]
        assert "unsafe" not in found.headers["content-security-policy"]
        text = found.text()
        assert json.dumps(text).count("<script") == text.count('<script type="module" src="page/')
        assert " style=" not in text
        assert " on" + "click=" not in text
