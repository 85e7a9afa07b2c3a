"""Constituency parsing, learnt from treebanks (Vinyals et al. 2015)."""

from heedful.run.task import Inside, Lazy, Task

PARSE = Task(
    name="parse",
    data="trees in brackets",
    does="parses sentences",
    example="The cat sleeps on the mat .",
    headline=("f1",),
    recipe=Lazy("heedful.tasks.parse.recipe:ParseRecipe"),
    job=Lazy("heedful.tasks.parse.train:ParseJob"),
    served=Lazy("heedful.tasks.parse.use:Parser"),
    asks={"parse": Lazy("heedful.tasks.parse.use:ASK")},
    facts=Lazy("heedful.tasks.parse.use:parser_facts"),
    laws=Lazy("heedful.tasks.parse.laws:parser_laws"),
    evaluate=Lazy("heedful.tasks.parse.use:score_parser"),
    eval_options=Lazy("heedful.tasks.parse.options:TreeScoring"),
    inside=Inside(feed=Lazy("heedful.tasks.parse.feed:feed_parser")),
    hub=Lazy("heedful.tasks.parse.hub:HUB"),
    commands=Lazy("heedful.tasks.parse.cli:COMMANDS"),
    uses=("translate",),
)
