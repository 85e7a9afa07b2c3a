"""The page is one file that asks nobody for anything, runs nothing but its own script, and holds the weights."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy
import pytest
import torch
from torch import Tensor

from heedful.errors import InputError, NonFiniteError
from heedful.look.page import attention_view, page

SOURCE, READ, SAID = ["ein", "Hund", "</s>"], ["<s>", "a", "dog", "."], ["a", "dog", ".", "</s>"]
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u202egnirts",
    "x" * 10_000,
    "<!--<script ",
    "</script ",
    "{{script}}",
    "\ud800",
    "\u2028",
]


class Page(HTMLParser):
    """What an html file holds: its tags with their attributes, and the text of each kind of block."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, str] = {}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self.inside = dict(attributes).get("type") or tag

    def handle_data(self, data: str) -> None:
        self.blocks[self.inside] = self.blocks.get(self.inside, "") + data

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


def soft(*shape: int) -> Tensor:
    return torch.randn(shape).softmax(-1)


def causal(heads: int, T: int) -> Tensor:
    return torch.randn(heads, T, T).masked_fill(~torch.ones(T, T).tril().bool(), -torch.inf).softmax(-1)


def weights() -> dict[str, Tensor]:
    return {
        "encoder.blocks.0.self_attention": soft(2, 3, 3),
        "decoder.blocks.0.self_attention": causal(2, 4),
        "decoder.blocks.0.cross_attention": soft(2, 4, 3),
    }


def hostile() -> str:
    n = len(HOSTILE)
    layers = {"attention": soft(1, n, n), "</script><b>": soft(1, n, n)}
    return page(attention_view(HOSTILE, HOSTILE, layers, title="</title><script>alert(1)</script>\u202e"))


def test_the_data_in_the_page_are_the_weights() -> None:
    given = weights()
    view = json.loads(Page(page(attention_view(SOURCE, READ, given, produced=SAID))).blocks["application/json"])
    assert view["texts"] == {"source": SOURCE, "target": READ, "produced": SAID}
    assert [layer["name"] for layer in view["layers"]] == list(given)
    for layer, expected in zip(view["layers"], given.values(), strict=True):
        halves = numpy.frombuffer(base64.b64decode(layer["weights"]), dtype="<f2")
        found = halves.reshape(layer["heads"], layer["T"], layer["S"]).astype("f4")
        numpy.testing.assert_allclose(found, expected.numpy(), atol=5e-4, rtol=0)
        assert len(layer["labels"]) == layer["heads"]


def test_a_layers_name_tells_what_looks_at_what() -> None:
    layers = {**weights(), "attention": soft(1, 4, 3), "blocks.0.self_attention": soft(2, 4, 4)}
    found = attention_view(SOURCE, READ, layers, produced=SAID)["layers"]
    assert [(layer["kind"], layer["rows"], layer["columns"], layer["causal"]) for layer in found] == [
        ("encoder", "source", "source", False),
        ("decoder", "target", "target", True),
        ("cross", "produced", "source", False),
        ("cross", "produced", "source", False),
        ("self", "target", "target", False),
    ]
    assert attention_view(SOURCE, READ, layers)["layers"][2]["rows"] == "target"


def test_a_decoder_alone_looks_at_both_texts() -> None:
    layers = {"lm.stack.blocks.0.self_attention": soft(2, 4, 7)}
    view = attention_view(SOURCE, READ, layers, produced=SAID)
    assert view["texts"]["both"] == [*SOURCE, *READ]
    (layer,) = view["layers"]
    assert (layer["kind"], layer["rows"], layer["columns"], layer["causal"]) == ("self", "produced", "both", False)
    assert "both" not in attention_view([], READ, {"blocks.0.self_attention": causal(2, 4)})["texts"]


@pytest.mark.parametrize("text", [page(attention_view(SOURCE, READ, weights(), title="t")), hostile()])
def test_nothing_leaves_and_nothing_foreign_runs(text: str) -> None:
    found = Page(text)
    policy = next(tag for _, tag in found.tags if tag.get("http-equiv") == "Content-Security-Policy")["content"]
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for kind, block in (("script-src", "script"), ("style-src", "style")):
        digest = base64.b64encode(hashlib.sha256(found.blocks[block].encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"
    # Weights in base64 may hold slashes. The one address is a name of svg's, which is never fetched.
    said, layers = re.subn(r'"weights":"[A-Za-z0-9+/=]+"', "", text)
    assert layers == len(json.loads(found.blocks["application/json"])["layers"])
    assert set(re.findall(r"(?:https?:)?//[\w.-]+\w/\S*", said)) <= {'http://www.w3.org/2000/svg",'}
    for tag, attributes in found.tags:
        assert tag not in ("img", "iframe", "object", "b")
        assert not any(name.startswith("on") or name in ("src", "style", "action") for name in attributes)
        assert attributes.get("href", "data:,") == "data:,"
    assert [tag for tag, _ in found.tags].count("script") == 2
    for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert sink not in found.blocks["script"]


def test_hostile_tokens_stay_text() -> None:
    text = hostile()
    data = Page(text).blocks["application/json"]
    assert "<" not in data  # so that no browser finds an end of the block in it
    view = json.loads(data)
    assert view["texts"]["source"][:2] == HOSTILE[:2]
    assert view["texts"]["source"][6] == "{{script}}"
    assert view["layers"][1]["name"] == "</script><b>"
    text.encode("utf-8")  # no lone surrogate is left
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\u2029]", text)
    assert "x" * 60 not in text
    assert "<title>&lt;/title&gt;&lt;script&gt;" in text


def test_the_page_is_small_and_says_what_attention_is_not() -> None:
    text = page(attention_view(SOURCE, READ, weights()))
    assert len(text.encode()) - len(Page(text).blocks["application/json"].encode()) < 64_000
    assert "Attention shows where information could flow, not why." in text
    assert 'lang="en"' in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"source": ["ein"]},
            "encoder.blocks.0.self_attention: weights for 3 queries and 3 keys, but 1 source",
        ),
        ({"produced": ["a"]}, "1 tokens produced from 4 read"),
        ({"target": ["a"] * 257}, "257 target tokens"),
        ({"weights": {}}, "no layers"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, object], message: str) -> None:
    given = {"source": SOURCE, "target": READ, "weights": weights()} | change
    with pytest.raises(InputError, match=message):
        attention_view(**given)


def test_weights_that_are_not_numbers_are_refused() -> None:
    layers = weights()
    layers["decoder.blocks.0.cross_attention"][0, 1, 1] = torch.nan
    with pytest.raises(NonFiniteError, match="cross_attention: some attention weights are NaN"):
        attention_view(SOURCE, READ, layers)


def test_the_title_says_what_became_of_what_by_which_model() -> None:
    told = {"said": "كلب <b>", "about": "Transformer, score -0.1"}
    text = page(attention_view(SOURCE, READ, weights(), title="ein Hund") | told)
    assert "<title>ein Hund → كلب &lt;b&gt; Transformer, score -0.1</title>" in text
    assert '<h1 dir="auto"><bdi>ein Hund</bdi> → <bdi>كلب &lt;b&gt;</bdi></h1>' in text
    assert "prefers-color-scheme: dark" in text
