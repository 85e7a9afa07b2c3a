"""Answers of /api/align for a page, without a model."""

from collections.abc import Sequence
from typing import Any


def aligned(
    source: Sequence[str],
    words: Sequence[str],
    *,
    confidence: float = 0.9,
    others: Sequence[dict[str, Any]] = (),
    warning: str = "",
) -> dict[str, Any]:
    """One sentence of these words and of their translation, each of which looked at all words alike."""
    share = [1 / len(source)] * len(source)
    made = [{"text": text, "probability": 0.9, "confidence": confidence, "source": share} for text in words]
    text = " ".join(words)
    sentence: dict[str, Any] = {
        "source": " ".join(source),
        "text": text,
        "source_begin": 0,
        "begin": 0,
        "source_words": len(source),
        "words": len(words),
        "confidence": confidence,
    }
    if warning:
        sentence["warning"] = warning
    answer = {"source": source, "text": text, "words": made, "sentences": [sentence]}
    answer |= {"confidence": confidence, "calibrated": True}
    return {"model": "en-fr", "answers": [answer | ({"others": others} if others else {})]}
