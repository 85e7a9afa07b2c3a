"""The texts that the decks use."""

from collections import Counter

# A nursery rhyme (Mother Goose), as in udlbook's figure on byte pair encoding.
SAILOR = (
    "a sailor went to sea sea sea",
    "to see what he could see see see",
    "but all that he could see see see",
    "was the bottom of the deep blue sea sea sea",
)
PASSAGE = (
    "The restaurant refused to serve me a ham sandwich because it only cooks vegetarian food. In the end, they just "
    "gave me two slices of bread. Their ambiance was just as good as the food and service."
)


def symbols() -> Counter[str]:
    """The count of each symbol in the rhyme, with "_" at the end of each word, the most frequent first."""
    return Counter(dict(ordered(Counter("".join(f"{word}_" for line in SAILOR for word in line.split())))))


def ordered(counts: Counter[str]) -> list[tuple[str, int]]:
    """The symbols with their counts, the most frequent first; among equals "_", then alphabetically."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0] != "_", pair[0]))
