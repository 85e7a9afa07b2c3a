"""Multiple choice and in-context learning: a choice scores what the whole text says, and a prompt is what was asked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from heedful.data.text.solved import Solved
from heedful.data.tokenizer import BOS, train_tokenizer
from heedful.errors import InputError
from heedful.models.lm import LM
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.tasks.generate.in_context import RULES, Asking, evaluate_in_context, exam, lay_out
from heedful.tasks.generate.likelihood import Choice
from heedful.tasks.generate.use import Generated, LanguageModel
from loud import make_loud

KINDS = ("colour", "animal")
WORDS = [("red", "dog"), ("green", "cat"), ("blue", "cow"), ("pink", "fox"), ("grey", "hen")]
EXAMPLES = [Solved(*each) for words in WORDS for each in zip(words, KINDS, strict=True)]
TEXTS = [f"{one.input} {one.answer}\n{other.input} {other.answer}\n" for one in EXAMPLES for other in EXAMPLES]


class Remembering(LanguageModel):
    """A language model that remembers what it was asked."""

    def __init__(self, *rest: Any) -> None:
        super().__init__(*rest)
        self.weighed: list[tuple[str, tuple[str, ...]]] = []

    def weigh(self, contexts: Sequence[str], choices: Sequence[Sequence[str]]) -> list[list[Choice]]:
        self.weighed += zip(contexts, map(tuple, choices), strict=True)
        return super().weigh(contexts, choices)


def loud(name: str = "gpt-nano", kind: Any = "bpe", context: int = 64) -> Remembering:
    """Random weights, N(0, 0.4), whose every answer depends on all that they read."""
    tokenizer = train_tokenizer(TEXTS, kind=kind, size=300)
    row = replace(LANGUAGE_MODELS[name], d_model=16, n_heads=4, n_layers=2, d_ff=24, context_length=context)
    model = LM(lm_config(row, vocab_size=tokenizer.size))
    make_loud(model, norm=1.0)
    return Remembering(model, tokenizer, {"task": "generate"})


def in_one_pass(model: LanguageModel, context: str, choice: str) -> tuple[float, int]:
    """The log-probability of a choice from the logits of the whole text, and how many of its tokens are its own."""
    alone, ids = model.tokenizer.encode_whole([context, context + choice])
    border = 0
    while border < min(len(alone), len(ids)) and alone[border] == ids[border]:
        border += 1
    row = torch.tensor([BOS, *ids][-model.context - 1 :])
    with torch.no_grad():
        logits = model.model(row[None, :-1])[0]
    own = len(ids) - border
    return float(logits.log_softmax(-1)[range(len(row) - 1), row[1:]][-own:].sum()), own


def as_in_one_pass(model: LanguageModel, context: str, found: Choice) -> bool:
    logprob, tokens = in_one_pass(model, context, found.choice)
    return (found.logprob, found.tokens) == (pytest.approx(logprob, rel=1e-5, abs=1e-5), tokens)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "chars", "bytes"])
@pytest.mark.parametrize("name", ["gpt-nano", "llama-nano"])
def test_a_choice_is_as_likely_as_the_whole_text_says(name, kind):
    model = loud(name, kind)
    for context in ("", "red", "red ", "red colour\ndog ", "é"):
        choices = ["colour", "animal", "anim", "al\n\n", " hen", "é"]
        found = model.choose(context, choices)
        assert sorted(one.choice for one in found) == sorted(choices)
        assert [one.logprob for one in found] == sorted((one.logprob for one in found), reverse=True)
        assert all(as_in_one_pass(model, context, one) for one in found)


def test_choosing_agrees_with_scoring_whole_texts():
    model = loud()
    before, *after = model.likelihood(["red", "red colour", "red animal"])
    for one in model.choose("red", [" colour", " animal"]):
        whole = after[one.choice == " animal"]
        assert one.logprob == pytest.approx(before.nats - whole.nats, rel=1e-5)
        assert one.tokens == whole.tokens - before.tokens


def test_a_merge_may_cross_the_border():
    """The space of the context becomes a part of the choice's token, and is scored with it."""
    model = loud()
    encode = model.tokenizer.encode_whole
    (alone,), (whole,) = encode(["red "]), encode(["red animal"])
    assert whole[: len(alone)] != alone  # else there is nothing to see here
    (found,) = model.choose("red ", ["animal"])
    assert found.tokens == len(whole) - (len(alone) - 1) == len(encode([" animal"])[0])
    assert found.logprob == pytest.approx(model.choose("red", [" animal"])[0].logprob, rel=1e-5)
    # the border of one choice is not the other's: " hen" begins anew after the space
    merged, anew = model.weigh(["red "], [["animal", " hen"]])[0]
    assert as_in_one_pass(model, "red ", merged)
    assert as_in_one_pass(model, "red ", anew)


def test_many_contexts_are_weighed_as_each_alone(monkeypatch):
    model = loud()
    contexts = ["red ", "", "green colour\ndog animal\nfox ", "hen"]
    choices = [["colour", "animal"], ["red"], ["animal", "colour", "col", "hen\nhen"], ["s", "ce"]]
    alone = [model.weigh([context], [own])[0] for context, own in zip(contexts, choices, strict=True)]
    for tokens in (16384, 40):  # all in one batch, and in several
        monkeypatch.setattr("heedful.tasks.generate.likelihood.SCORED", tokens)
        for one, other in zip(model.weigh(contexts, choices), alone, strict=True):
            assert [each.choice for each in one] == [each.choice for each in other]
            assert [each.logprob for each in one] == pytest.approx([each.logprob for each in other], rel=1e-5)
    assert model.weigh([], []) == []
    assert model.choose("red ", []) == []


def test_what_outgrows_the_context_loses_its_beginning():
    model = loud(context=12)
    context = "".join(TEXTS[:3])
    assert len(model.tokenizer.encode_whole([context])[0]) > 12
    (found,) = model.choose(context, ["red"])
    assert as_in_one_pass(model, context, found)
    short, long = model.weigh([context], [["r", "zzzzzz"]])[0]
    assert as_in_one_pass(model, context, long)
    assert short.tokens < long.tokens
    with pytest.raises(InputError, match="a choice of 13 tokens does not fit the model's context of 12"):
        model.choose("red", ["z" * 13])
    with pytest.raises(InputError, match="the choice '' adds no token"):
        model.choose("red", ["colour", ""])


def test_prompts_are_laid_out_as_by_brown_et_al():
    shots = [Solved("Poor English: He go home.", "He goes home."), Solved("Poor English: I is glad.", "I am glad.")]
    asked = lay_out("Poor English: They was late.", shots, delimiter="\nGood English: ", separator="\n###\n")
    assert asked == (
        "Poor English: He go home.\n"
        "Good English: He goes home.\n"
        "###\n"
        "Poor English: I is glad.\n"
        "Good English: I am glad.\n"
        "###\n"
        "Poor English: They was late.\n"
        "Good English: "
    )
    assert lay_out("2 + 2 ->") == "2 + 2 -> "


PASSAGE = "Ada kept a hen in the garden. On Monday the hen laid a blue egg."
QUESTIONS = [
    ("Where was the hen?", ["in the garden", "in town", "at sea", "indoors"]),
    ("Who kept it?", ["a fox", "Bob", "nobody", "Ada"]),
    ("On which day did it lay?", ["Monday", "Friday"]),
    ("What did it lay?", ["a stone", "an egg", "a fox", "nothing"]),
    ("Of what colour?", ["red", "grey", "blue", "green"]),
]


def test_an_exam_is_laid_out_as_in_race():
    assert exam(PASSAGE, QUESTIONS[1:3]) == (
        "Ada kept a hen in the garden. On Monday the hen laid a blue egg.\n"
        "1. Who kept it?\nA. a fox\nB. Bob\nC. nobody\nD. Ada\n"
        "2. On which day did it lay?\nA. Monday\nB. Friday\n"
        "Answer:"
    )


def test_an_exam_is_scored_by_its_letters():
    """Question by question, the letters that were said make the answer sheet; as a whole, sheets are the choices."""
    model = loud(context=256)
    answers = "ADABC"
    letters = [tuple("ABCD"[: len(options)]) for _, options in QUESTIONS]
    asked = [exam(PASSAGE, [question]) for question in QUESTIONS]
    sheet = "".join(model.choose(text + " ", own)[0].choice for text, own in zip(asked, letters, strict=True))
    examples = [Solved(*row) for row in zip(asked, answers, letters, strict=True)]
    found = evaluate_in_context(model, examples, Asking())
    assert "".join(found.said) == sheet
    assert found.accuracy == sum(map(str.__eq__, sheet, answers)) / 5
    assert found.chance == pytest.approx((4 / 4 + 1 / 2) / 5)
    whole = Solved(exam(PASSAGE, QUESTIONS), answers, (answers, "DDDDD", "AAAAA"))
    (said,) = evaluate_in_context(model, [whole], Asking()).said
    assert said == model.choose(whole.input + " ", whole.choices)[0].choice


def prompts_of(model: Remembering) -> list[str]:
    """The prompts that were weighed, but not the delimiter alone."""
    return [context for context, _ in model.weighed if context.strip()]


def test_shots_are_others_drawn_for_each_example_alone():
    def asked(examples: Sequence[Solved] = EXAMPLES, pool: Sequence[Solved] | None = None, **how: Any) -> list[str]:
        model = loud()
        evaluate_in_context(model, examples, Asking(shots=4, **how), pool=pool)
        return prompts_of(model)

    prompts = asked()
    lines = {f"{one.input} {one.answer}" for one in EXAMPLES}
    for example, prompt in zip(EXAMPLES, prompts, strict=True):
        *shots, last = prompt.split("\n")
        assert last == f"{example.input} "
        assert len(set(shots)) == 4
        assert set(shots) <= lines - {f"{example.input} {example.answer}"}
    assert len({prompt.rpartition("\n")[0] for prompt in prompts}) == len(prompts)
    assert prompts == asked()
    assert prompts != asked(seed=1)
    # a file that is given for shots may hold the examples themselves; who else is asked changes nothing
    assert prompts == asked(pool=EXAMPLES)
    assert prompts[:2] == asked(EXAMPLES[:2], pool=[replace(one, choices=("colour", "animal")) for one in EXAMPLES])


def test_each_rule_says_what_its_formula_says():
    model = loud()
    choices = ("colour", "animal", "a very long answer", "z")
    examples = [replace(one, choices=choices) for one in EXAMPLES]
    found = evaluate_in_context(model, examples, Asking(shots=2, delimiter=" -> "))
    assert list(found.accuracies) == ["sum", "per_token", "per_byte", "unconditional"]
    said: dict[str, list[str]] = {name: [] for name in found.accuracies}
    for prompt in prompts_of(model)[: len(examples)]:
        logprob = {choice: in_one_pass(model, prompt, choice)[0] for choice in choices}
        tokens = {choice: in_one_pass(model, prompt, choice)[1] for choice in choices}
        alone = {choice: in_one_pass(model, " -> ", choice)[0] for choice in choices}
        said["sum"].append(max(choices, key=lambda one: logprob[one]))
        said["per_token"].append(max(choices, key=lambda one: logprob[one] / tokens[one]))
        said["per_byte"].append(max(choices, key=lambda one: logprob[one] / len(one)))
        said["unconditional"].append(max(choices, key=lambda one: logprob[one] - alone[one]))
    assert len({tuple(own) for own in said.values()}) > 1
    for name, own in said.items():
        right = sum(one == example.answer for one, example in zip(own, examples, strict=True))
        assert found.accuracies[name] == pytest.approx(right / len(examples))
    assert found.said == said["sum"]
    assert found.accuracy == found.accuracies["sum"]
    assert found.chance == 0.25


def test_the_tokens_that_count_are_those_of_the_prompt():
    """An input without a delimiter may share a token with its answer, which the answer alone then has not."""
    asked, alone = Choice("é!", -6.0, 2), Choice("é!", -4.0, 1)
    assert {name: rule(asked, alone) for name, rule in RULES.items()} == {
        "sum": -6.0,
        "per_token": -3.0,
        "per_byte": -2.0,
        "unconditional": -2.0,
    }


def test_the_answers_of_all_are_choices_where_there_are_none():
    model = loud()
    found = evaluate_in_context(model, EXAMPLES, Asking())
    assert found.chance == 0.5
    assert {choices for _, choices in model.weighed} == {("colour", "animal")}
    evaluate_in_context(model, [*EXAMPLES, Solved("red", "hue", ("hue", "beast"))], Asking())
    assert model.weighed[-1] == (" ", ("hue", "beast"))
    many = [Solved(str(i), str(i)) for i in range(51)]
    with pytest.raises(InputError, match='no "choices", and 51 different answers, expected 2 to 50'):
        evaluate_in_context(model, many, Asking())
    with pytest.raises(InputError, match='no "choices", and 1 different answers'):
        evaluate_in_context(model, EXAMPLES[::2], Asking())
    assert evaluate_in_context(model, many[:50], Asking()).chance == pytest.approx(1 / 50)


@pytest.mark.parametrize("context", range(44, 52))
def test_a_prompt_without_room_loses_its_oldest_shots(context):
    model, roomy = loud(kind="chars", context=context), loud(kind="chars", context=200)
    assert evaluate_in_context(roomy, EXAMPLES, Asking(shots=6)).notes == []
    found = evaluate_in_context(model, EXAMPLES, Asking(shots=6))
    lost = []
    for whole, prompt in zip(prompts_of(roomy), prompts_of(model), strict=True):
        assert whole.endswith(prompt)
        before = whole.removesuffix(prompt)
        assert before.endswith("\n")
        one_more = before[before.rstrip("\n").rfind("\n") + 1 :] + prompt
        assert len(prompt + "animal") <= context < len(one_more + "animal")  # a character is a token
        lost.append(before.count("\n"))
    (note,) = found.notes
    what = f"{sum(lost)} shots of {len(lost)} prompts are left out, the oldest first"
    assert note == f"the model's context holds {context} tokens: {what}"


def test_an_example_that_is_too_long_alone_loses_its_beginning():
    model = loud(context=12)
    long = Solved("red green blue pink grey " * 4, "colour", ("colour", "animal"))
    (said,) = evaluate_in_context(model, [long], Asking(), pool=EXAMPLES).said
    found = evaluate_in_context(model, [long], Asking(shots=3), pool=EXAMPLES)
    assert found.said == [said]
    (note,) = found.notes
    assert "3 shots of 1 prompt are left out, the oldest first; 1 example, too long alone, without" in note
    assert len(evaluate_in_context(model, [long], Asking(shots=3, by="match"), pool=EXAMPLES).said) == 1


@pytest.mark.parametrize("kind", ["bpe", "chars"])
@pytest.mark.parametrize(("delimiter", "separator"), [(" ", "\n"), (" ->", "\n\n"), (" = ", " "), ("\n", "")])
def test_by_match_is_greedy_generation_up_to_the_separator(kind, delimiter, separator):
    model = loud(kind=kind, context=200)
    asking = Asking(shots=2, delimiter=delimiter, separator=separator, by="match")
    said = evaluate_in_context(model, EXAMPLES, asking).said
    evaluate_in_context(model, EXAMPLES, replace(asking, by="likelihood"))  # of the same prompts
    spaces = " " if delimiter.endswith(" ") else ""
    endings = model.tokenizer.encode_whole([f"{spaces}{kind}{separator}" for kind in KINDS])
    for (prompt, _), one in zip(model.weighed, said, strict=False):
        assert prompt.endswith(delimiter)
        ((made,),) = model.generate([prompt.removesuffix(spaces)], tokens=max(map(len, endings)), temperature=0.0)
        text = made.text.lstrip(" ")
        assert one == (text.partition(separator)[0] if separator else text).strip()


class Saying(LanguageModel):
    """A language model that always says the same."""

    def generate(self, prompts: Sequence[str], **settings: Any) -> list[list[Generated]]:
        assert settings["temperature"] == 0
        assert not any(prompt.endswith(" ") for prompt in prompts)
        return [[Generated(prompt, "  colour \nred animal\n", [], [])] for prompt in prompts]


def test_matches_are_counted():
    quiet = loud()
    model = Saying(quiet.model, quiet.tokenizer, quiet.about)
    found = evaluate_in_context(model, EXAMPLES[:3], Asking(by="match"))
    assert found.said == ["colour"] * 3
    assert found.accuracies == {"match": pytest.approx(2 / 3)}
    assert found.chance is None
    assert evaluate_in_context(model, EXAMPLES[:3], Asking(by="match", separator=" ")).said == ["colour"] * 3
    assert (
        evaluate_in_context(model, [replace(one, choices=KINDS) for one in EXAMPLES], Asking(by="match")).chance == 0.5
    )


def test_what_cannot_be_asked_is_said():
    model = loud()
    with pytest.raises(InputError, match="there is nothing to ask"):
        evaluate_in_context(model, [], Asking())
    with pytest.raises(InputError, match="'guess' is no way to answer"):
        evaluate_in_context(model, EXAMPLES, Asking(by="guess"))
    with pytest.raises(InputError, match="10 shots asked for, and there are 9 examples to take them from"):
        evaluate_in_context(model, EXAMPLES, Asking(shots=10))
    with pytest.raises(InputError, match="2 shots asked for, and there is 1 example to"):
        evaluate_in_context(model, EXAMPLES, Asking(shots=2), pool=EXAMPLES[:2])
