"""Answers to questions about a scene are right: each is computed once more from its shapes."""

from collections import Counter

from heedful.data.images.captions import read_captioned
from heedful.data.made import shapes
from heedful.data.made.questions import everything, question, what_is_at


def answered(asked: str, scene: shapes.Scene) -> str:
    """The answer, read from the question's words."""
    words, names = asked.rstrip("?").split(), [str(one).split() for one in scene.shapes]  # [colour, kind] each
    if asked.startswith("how many"):
        wanted = {word.removesuffix("s") for word in words[2:]} - {"shape"}
        return str(sum(wanted <= {*name} for name in names))
    if asked.startswith("is there"):
        return "yes" if words[3:] in names else "no"
    if asked.startswith("what colour"):
        (colour,) = (colour for colour, kind in names if kind == words[-1])
        return colour
    (kind,) = (kind for colour, kind in names if colour == words[-1])
    return f"a {kind}"


def test_answers_are_right_and_of_all_kinds() -> None:
    scenes = shapes.scenes("test", 300)
    asked = [question(scene, "test", number) for number, scene in enumerate(scenes)]
    assert [answered(own, scene) for (own, _), scene in zip(asked, scenes, strict=True)] == [said for _, said in asked]
    kinds = Counter(" ".join(own.split()[:2]) for own, _ in asked)
    assert {"how many", "is there", "what colour", "what is"} == {*kinds}
    assert Counter(said for _, said in asked)["yes"] > 20 < Counter(said for _, said in asked)["no"]
    assert asked[5] == question(scenes[5], "test", 5)


def test_what_is_there_is_said_from_left_to_right() -> None:
    for scene in shapes.scenes("test", 40):
        asked, said = everything(scene)
        named = said.split(", ")
        assert (asked, Counter(named)) == ("what is there?", Counter(map(str, scene.shapes)))
        left = {str(shape): shape.box[0] for shape in scene.shapes}
        if len(left) == len(named):
            assert sorted(named, key=left.__getitem__) == named


def test_what_is_at_a_place_is_what_is_drawn_there() -> None:
    """As often as not a shape; the middle of its place is in it."""
    answers = Counter[str]()
    for number, scene in enumerate(shapes.scenes("test", 300)):
        asked, said = what_is_at(scene, "test", number)
        column, row = "abcdefgh".index(asked[-3]), int(asked[-2]) - 1
        x, y = 8 * column + 4, 8 * row + 4
        kind = scene.mask[y, x]
        around = [own for own in scene.shapes if own.box[0] <= x < own.box[2] and own.box[1] <= y < own.box[3]]
        assert said == (f"a {around[0]}" if kind else "nothing")
        assert not kind or around[0].kind == shapes.KINDS[kind - 1]
        answers[said] += 1
    assert 100 < answers["nothing"] < 180
    assert len(answers) == 1 + len(shapes.KINDS) * len(shapes.COLOURS)


def test_what_teaches_to_see_is_asked_in_training_alone() -> None:
    """Each training scene has it beside its question; those of validation and test are the same as without."""
    corpus = read_captioned("questions:30")
    for part, own in (("train", corpus.train), ("valid", corpus.valid), ("test", corpus.tests["test"])):
        for number, (texts, answers) in enumerate(zip(own.questions[:30], own.captions[:30], strict=True)):
            scene = shapes.scene(part, number)
            teaches = [everything(scene), what_is_at(scene, part, number)] if part == "train" else []
            expected = [question(scene, part, number), *teaches]
            assert [*zip(texts, answers, strict=True)] == expected
    assert len(corpus.train) == 30
    assert len(corpus.tests["test"]) == shapes.TEST
