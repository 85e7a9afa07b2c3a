"""Answers to questions about a scene are right: each is computed once more from its shapes."""

from collections import Counter

from heedful.data.made import shapes
from heedful.data.made.questions import question


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
