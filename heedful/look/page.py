"""One self-contained page that shows attention maps: it opens offline and loads nothing.

    page(attention_view(source_tokens, target_tokens, weights))

The page is assembled here from page.html, page.css and the scripts beside this file; it holds the weights as base64 of
little-endian float16. H heads, T queries, S keys.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import InputError, NonFiniteError
from heedful.look.labels import is_causal, summary, token_label

LONGEST = 256  # tokens of a text
SCRIPTS = (
    "formats.js",
    "page_state.js",
    "page_maps.js",
    "page_views.js",
    "page_steps.js",
    "page.js",
)  # joined in this order


class Label(TypedDict):
    name: str
    score: float


class Layer(TypedDict):
    name: str
    kind: str  # cross | encoder | decoder | self
    rows: str  # the name of the queries' text in `PageView.texts`
    columns: str  # and of the keys' text
    heads: int
    T: int
    S: int
    causal: bool  # no query attends to a later key
    weights: str  # (H, T, S)
    labels: list[Label]


class PageView(TypedDict):
    title: str
    said: NotRequired[str]  # the model's output for the title
    about: NotRequired[str]  # which model it was, and how sure
    texts: dict[str, list[str]]
    special: list[str]
    layers: list[Layer]
    steps: NotRequired[Sequence[Mapping[str, object]]]  # the steps of decoding, as the server's answers hold them


def attention_view(
    source: Sequence[str],
    target: Sequence[str],
    weights: Mapping[str, Float[Tensor, "H T S"]],
    *,
    produced: Sequence[str] | None = None,
    title: str = "",
    special: Sequence[str] = ("<pad>", "<unk>", "<s>", "</s>"),
) -> PageView:
    """The content of `page`: one sentence pair, and the attention weights by layer name.

    `target` is the decoder's input (it begins with "<s>"), `produced` its output at each of these positions (it ends
    with "</s>"); if given, the queries of cross-attention are labelled with it. A layer's texts follow from its name:
    "encoder..." attends from source to source, "...cross_attention" and "attention" (the recurrent model's) from
    target to source, all others from target to target, or to source and target where there are as many keys as both
    have tokens (a decoder-only model). Tokens in `special` can be hidden. Raises InputError when weights and tokens
    do not fit each other, and for more than 256 tokens in a text; NonFiniteError for NaN.
    """
    texts = {"source": list(source), "target": list(target)}
    if produced is not None:
        if len(produced) != len(target):
            raise InputError(
                f"{len(produced)} tokens produced from {len(target)} read",
                fix="give what was said at each position",
            )
        texts["produced"] = list(produced)
    for name, tokens in texts.items():
        if len(tokens) > LONGEST:
            raise InputError(f"{len(tokens)} {name} tokens are too many to show", fix=f"show at most {LONGEST}")
    if not weights:
        raise InputError("there are no layers to show", fix="record at least one attention layer")
    if source and any(layer.shape[2] == len(source) + len(target) for layer in weights.values()):
        texts["both"] = [*source, *target]
    return PageView(
        title=title or "Attention",
        texts={name: [token_label(token) for token in tokens] for name, tokens in texts.items()},
        special=[token_label(token) for token in special],
        layers=[_page_layer(name, layer, texts) for name, layer in weights.items()],
    )


def _page_layer(name: str, weights: Float[Tensor, "H T S"], texts: Mapping[str, Sequence[str]]) -> Layer:
    said = "produced" if "produced" in texts else "target"
    if name.startswith("encoder"):
        kind, rows, columns = "encoder", "source", "source"
    elif name.split(".")[-1] in ("cross_attention", "attention"):
        kind, rows, columns = "cross", said, "source"
    elif weights.shape[2] == len(texts.get("both", ())):
        kind, rows, columns = "self", said, "both"
    else:
        kind, rows, columns = "decoder" if name.startswith("decoder") else "self", "target", "target"
    H, T, S = weights.shape
    if weights.shape[1:] != (len(texts[rows]), len(texts[columns])):
        raise InputError(
            f"weights for {T} queries and {S} keys, but {len(texts[rows])} {rows} and {len(texts[columns])} "
            f"{columns} tokens",
            where=name,
            fix="pass one sentence's weights without its padding, and its tokens with the special ones",
        )
    if not weights.isfinite().all():
        raise NonFiniteError("some attention weights are NaN", where=name, fix="look at an earlier checkpoint")
    return Layer(
        name=name,
        kind=kind,
        rows=rows,
        columns=columns,
        heads=H,
        T=T,
        S=S,
        causal=rows == columns and is_causal(weights),
        weights=packed(weights),
        labels=[
            Label(name=label.name, score=round(label.score, 3)) for label in summary(weights, same=rows == columns)
        ],
    )


def page(view: PageView) -> str:
    """`view` as one html file. Its Content-Security-Policy lists the hashes of its scripts and styles, so that nothing
    else in it can run, whatever the tokens contain."""
    here = Path(__file__).parent
    style = here.joinpath("page.css").read_text(encoding="utf-8")
    script = _script(here)
    # With < and > as \u escapes, no "</script>" or "<!--" in the data can end or reopen its block.
    data = json.dumps(view, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")
    texts = [html.escape(token_label(text, limit=200)) for text in (view["title"], view.get("said", "")) if text]
    parts = {
        "title": " → ".join(texts),
        "heading": " → ".join(f"<bdi>{text}</bdi>" for text in texts),
        "about": html.escape(view.get("about", "")),
        "body": here.joinpath("page_body.html").read_text(encoding="utf-8"),
        "style": style,
        "style_hash": policy_hash(style),
        "script": script,
        "script_hash": policy_hash(script),
        "data": data,
    }
    template = here.joinpath("page.html").read_text(encoding="utf-8")
    # One pass, so that inserted text is never searched again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _script(here: Path) -> str:
    """All scripts as one, which exports nothing: the pages of a server import the first as a module."""
    texts = (here.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    return re.sub("(?m)^export ", "", "\n".join(texts))


def packed(weights: Float[Tensor, "..."]) -> str:
    """Encodes weights for a page: base64 of little-endian float16, row by row."""
    half = weights.detach().to("cpu", torch.float16)
    return base64.b64encode(half.contiguous().numpy().astype("<f2").tobytes()).decode()


def policy_hash(text: str) -> str:
    """The hash by which a Content-Security-Policy allows a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
