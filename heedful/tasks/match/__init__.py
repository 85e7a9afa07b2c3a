"""Matching of pictures and texts (Radford et al. 2021)."""

from heedful.run.task import Inside, Lazy, Task

MATCH = Task(
    name="match",
    data="pictures with captions (CSV, TSV, .jsonl)",
    does="matches pictures and texts",
    counted="pairs",
    headline=("text_to_image_recall_10",),
    recipe=Lazy("heedful.tasks.match.recipe:MatchRecipe"),
    job=Lazy("heedful.tasks.match.train:MatchJob"),
    served=Lazy("heedful.tasks.match.use:Matcher"),
    asks={"match": Lazy("heedful.tasks.match.use:ASK_MATCH"), "search": Lazy("heedful.tasks.match.use:ASK_SEARCH")},
    facts=Lazy("heedful.tasks.match.use:matcher_facts"),
    laws=Lazy("heedful.tasks.match.laws:MatchProbe"),
    evaluate=Lazy("heedful.tasks.match.use:score_matcher"),
    inside=Inside(
        look=Lazy("heedful.tasks.match.look:look_for_texts"),
        options=Lazy("heedful.tasks.match.options:MatchLook"),
        feed=Lazy("heedful.tasks.match.feed:feed_matcher"),
    ),
    embedder=Lazy("heedful.tasks.match.use:Matcher"),
    hub=Lazy("heedful.tasks.match.hub:HUB"),
    hub_kind="clip",
    commands=Lazy("heedful.tasks.match.cli:COMMANDS"),
)
