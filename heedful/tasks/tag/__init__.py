"""Sequence tagging: a label for each word of a sentence (Devlin et al. 2019, section 5.3)."""

from heedful.run.task import Lazy, Task
from heedful.tasks.shared.inside import TEXT

TAG = Task(
    name="tag",
    data="words with tags (CoNLL-U, TSV)",
    does="tags words",
    example="The cat sleeps in Paris .",
    counted="words",
    headline=("span_f1", "accuracy"),
    recipe=Lazy("heedful.tasks.tag.recipe:TagRecipe"),
    job=Lazy("heedful.tasks.tag.train:TagJob"),
    served=Lazy("heedful.tasks.tag.use:Tagger"),
    asks={"tag": Lazy("heedful.tasks.tag.use:ASK")},
    facts=Lazy("heedful.tasks.shared.served:body_facts"),
    laws=Lazy("heedful.tasks.shared.probes:TokenProbe"),
    evaluate=Lazy("heedful.tasks.tag.use:score_tags"),
    inside=TEXT,
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.tag.hub:HUB"),
    hub_kind="token_classifier",
    hub_head="classifier",
    commands=Lazy("heedful.tasks.tag.cli:COMMANDS"),
    uses=("fill", "encode"),
)
