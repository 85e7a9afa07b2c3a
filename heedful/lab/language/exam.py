"""A passage with questions as one prompt, whose answer is a letter for each question, and its score."""

from textwrap import shorten

from heedful.lab.drawn_words import Strip, strips
from heedful.lab.exhibit import Says, Shown, beside, unsaid
from heedful.tasks.generate.in_context import exam

PASSAGE = "A letter once cost whoever received it. In 1840 Britain sold a stamp, the Penny Black, and the sender paid."
QUESTIONS = [
    ("Who paid for a letter before 1840?", ("the receiver", "the sender", "the post", "the queen"), "A"),
    ("What came in 1840?", ("a train", "a tax", "a law of letters", "a stamp"), "D"),
    ("What was it called?", ("Penny Black", "Two Pence Blue", "Red Mail", "Free Post"), "A"),
    ("Who paid afterwards?", ("the receiver", "the sender", "both", "the queen"), "B"),
    ("Where was it sold?", ("in France", "in Italy", "in Britain", "everywhere"), "C"),
]


def score(said: str, right: str) -> float:
    """The share of questions with the right letter; a missing letter is wrong."""
    return sum(one == other for one, other in zip(said, right, strict=False)) / len(right)


def kind_of(line: str) -> str:
    """The kind of a line of the prompt, below the passage."""
    if line[0].isdigit():
        return "question"
    return "option" if line[1:2] == "." else "asked for"


def penny_black(says: Says, *, said: str = "") -> Shown:
    """The layout of RACE, with a passage of this project: its five answers are the deck's letters. `said` is a model's
    answer, which is scored."""
    right = "".join(letter for *_, letter in QUESTIONS)
    prompt = exam(PASSAGE, [(question, options) for question, options, _ in QUESTIONS])
    facts: dict[str, object] = {"questions": len(QUESTIONS), "one letter for all would get": score("A" * 5, right)}
    if said:
        facts[f"right of {said}"] = score(said, right)
    passage, *below = prompt.splitlines()[:6]
    kinds = [(passage, "passage"), *((line, kind_of(line)) for line in below)]
    rows = [Strip("", [(shorten(line, 72, placeholder=" ..."), kind)]) for line, kind in kinds]
    return Shown(
        beside(says, {"answers": right}) + unsaid(facts),
        strips(rows, title="The first lines of the prompt"),
        prompt,
    )
