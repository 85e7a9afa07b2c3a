"""The field's terms: words of our own that once stood in their place, and are not to come back."""

import re
from pathlib import Path

import pytest

BETTER = {
    r"\bplaces\b": "positions, position_embeddings, context_length",
    r"\b(Hiding|sighted)\b": "AdditiveMask, has_key",
    r"\bnobody\b": "no query, no rank, None: say who or what",
    r"\bguess(es|ed|er|ing)?\b": "draft, drafted tokens, draft_model; chance, for what is random",
    r"\bquick_copy\b": "draft_model",
    r"\b(of_itself|_?settle|_unsettle)\b": "queries and keys_values; _cache_attributes",
    r"\bTransducer\b": "DecoderOnlyTranslator: an RNN-T is a transducer",
    r"\b(Hider|Joiner|Blanks)\b": "Masker, PairSampler, MaskedRows",
    r"\bclass (About|Said)\b": "TagSpec, ClassifySpec ...; HubTokens, NextToken",
    r"\b(Mix|FullTransformer|TwoTowers)\b": "SegformerSize, Seq2SeqSize, ClipSize",
    r"\b(lewis|raffel|liu|vaswani)\(": "bart_config, t5_config, decoder_only_config, transformer_config",
    r"\bto_be\(": "filled_then_renamed",
    r"\b(go|goes|going|gone) on\b": "continue, continued, from the next step",
    r"\bsays? nothing\b": "is not used by; by default; has no effect",
    r"\bno size of\b": "must be from A to B",
    r"\bno words for\b": "cannot hold",
    r"\bfor an? (loss or an )?eye\b": "the caller upsamples",
}
# What reads the files of older versions knows their words.
OLD = {"heedful/store/migrations.py", "heedful/run/recipe.py"}
TOWNS = "heedful/data/made/"  # whose sentences speak of places


def unwelcome(path: str, text: str) -> list[str]:
    """Where a file has one of those words: one line each, with what is better."""
    return [
        f"{path}:{number}: {match[0]!r}: better {better}"
        for number, line in enumerate(text.splitlines(), start=1)
        for pattern, better in BETTER.items()
        if not (path.startswith(TOWNS) and "places" in pattern)
        if (match := re.search(pattern, line, re.IGNORECASE if pattern.islower() else 0))
    ]


def test_words_of_our_own_do_not_come_back(root: Path) -> None:
    files = [*(root / "heedful").rglob("*.py"), *(root / "docs").glob("*.md"), *root.glob("*.md"), root / "heed"]
    files += [*(root / "recipes").glob("*.py")]
    assert len(files) > 100
    names = {path.relative_to(root).as_posix(): path for path in sorted(files)}
    found = [line for name, path in names.items() if name not in OLD for line in unwelcome(name, path.read_text())]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("the model has 12 places", "places"),
        ("a row that nobody sees", "nobody"),
        ("the run goes on from step 3", "goes on"),
        ("class About:", "class About"),
        ("--beam says nothing to a model of this kind", "says nothing"),
    ],
)
def test_a_word_is_found(line: str, word: str) -> None:
    found = unwelcome("heedful/a.py", line)
    assert len(found) == 1
    assert word in found[0]


def test_plain_words_are_free() -> None:
    assert (
        unwelcome("heedful/a.py", "in place of the mean, this goes to one place and continues; on the vast wins") == []
    )
