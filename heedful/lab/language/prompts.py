"""Effects of a prompt: a table of contents, a question with its end token, references that do not exist."""

import torch

from heedful.lab.drawn import bars
from heedful.lab.drawn_words import Strip, strips
from heedful.lab.exhibit import Draws, Says, Shown, Steps, holds, unsaid
from heedful.lab.language.book import ANSWERS, EOQ, STEPS, TOPICS, book, references

CONTENTS = "contents : ships , birds ;"
QUESTION = "what is GPT ?"


def from_contents(says: Says, *, contents: str = CONTENTS, steps: Steps = STEPS) -> Shown:
    """A small model was trained on texts after their tables of contents; here it only gets such a table."""
    said = book(steps).continued(contents)
    topics = [word for word in contents.split() if word in TOPICS]
    told = all(f"a chapter about {topic} tells of" in said for topic in topics) and bool(topics)
    right = told and all(any(word in said for word in TOPICS[topic]) for topic in topics)
    lines = [holds(says, "a model continues a prompt", right)]
    return Shown([*lines, *unsaid({"prompt": contents, "what follows": said})], text=f"{contents} {said}")


def what_follows(says: Says, *, steps: Steps = STEPS) -> Shown:
    """The same weights with three prompts: an answer, chapters, a reference."""
    found = book(steps)
    said = {prompt: found.continued(prompt) for prompt in (f"{QUESTION} {EOQ}", CONTENTS, "see")}
    right = (
        said[f"{QUESTION} {EOQ}"] == ANSWERS[QUESTION] and "chapter" in said[CONTENTS] and len({*said.values()}) == 3
    )
    lines = [holds(says, "a prompt decides what follows", right)]
    return Shown(lines + unsaid(dict(said)), text="\n".join(f"  {a} -> {b}" for a, b in said.items()))


def conversation(says: Says, *, question: str = QUESTION, steps: Steps = STEPS) -> Shown:
    """A question, its end token, and the answer, one word for each pass."""
    found = book(steps)
    whole = found.continued(f"{question} {EOQ}").split()
    rows = [Strip("given", [(word, "question") for word in question.split()] + [(EOQ, "end of the question")])]
    grown = [whole[: number + 1] for number in range(len(whole))] + [[*whole, "EOS"]]
    for number, words in enumerate(grown, 1):
        boxes = [(word, "the answer") for word in words[:-1]] + [
            (words[-1], "end" if words[-1] == "EOS" else "the newest word")
        ]
        rows.append(Strip(f"pass {number}", boxes))
    with torch.no_grad():
        logits = found.model(torch.tensor([found.words.ids(question)]))[0, -1]
    before = found.words.words[int(logits.argmax())]
    right = " ".join(whole) == ANSWERS.get(question)
    lines = [holds(says, "the answer begins after", EOQ, right=right)] if says.values else []
    facts = {"its answer": " ".join(whole), "passes": len(grown), "before the mark the likeliest next is": before}
    return Shown(lines + unsaid(facts), strips(rows, title="A conversation, traced"))


def made_up(says: Says, *, count: Draws = 60, steps: Steps = STEPS) -> Shown:
    """A small model was trained on references, and generates some: which of them exist?"""
    said = [f"see {text}" for text in book(steps).drawn("see", count)]
    formed = [text for text in said if len(text.split()) == 4]
    invented = [text for text in formed if text not in references()]
    lines = [holds(says, "references may be made up", bool(invented))]
    facts = {
        "drawn": len(said),
        "in the form of a reference": len(formed),
        "of which do not exist": len(invented),
        "such as": invented[:3],
    }
    known = {"exist": len(formed) - len(invented), "made up": len(invented)}
    return Shown(lines + unsaid(facts), bars(known, y="references that were drawn"))
