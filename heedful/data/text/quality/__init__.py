"""What is wrong with parallel text: checks of pairs, and what is left when the faulty ones go."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """A fault that pairs can have. `leaves`: whether such a pair leaves the cleaned data unless told otherwise."""

    meaning: str
    mend: str
    leaves: bool


CHECKS: dict[str, Check] = {
    "empty": Check("a side without a letter or a digit", "translate it, or leave it out", True),
    "duplicates": Check("the same pair again", "keep one of them", True),
    "copies": Check("the same text on both sides", "a model learns to copy from many of these", True),
    "wrong_language": Check("a side in another language", "look whether columns are mixed up", True),
    "mojibake": Check("text that was decoded wrongly", "export it again as UTF-8", True),
    "control": Check("control characters, or characters that were lost", "export it again as UTF-8", True),
    "invisible": Check(
        "signs that cannot be seen (U+FEFF, U+200B, soft hyphens)", "a model reads them: delete them", False
    ),
    "decomposed": Check("accents apart from their letters", "heed composes them (NFC); other programs may not", False),
    "printed_forms": Check(
        "letters in forms of print (ligatures, Arabic's joined forms, full width)", "bring them to NFKC", False
    ),
    "entities": Check("entities of HTML that were not decoded", "decode them: they are learnt as text", False),
    "pieces": Check("words in pieces, as other programs cut them", "give the text before it was cut", True),
    "length_ratio": Check("one side is far too long for the other", "look whether lines are shifted", True),
    "numbers": Check("numbers that do not agree", "read them: some are written in words", False),
    "placeholders": Check("placeholders, tags, addresses that do not agree", "a model learns to lose them", False),
    "many_targets": Check("one source with more than ten different targets", "keep those that you would write", False),
    "overlap_test": Check("the same source or target is in a test set", "else the test says too much", True),
    "near_overlap_test": Check("nearly the same text is in a test set", "else the test says too much", False),
}
