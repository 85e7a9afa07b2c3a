"""Masked language modelling: an encoder predicts hidden words of running text (Devlin et al. 2019; Liu et al. 2019)."""

from heedful.run.task import Lazy, Task
from heedful.tasks.shared.inside import TEXT

FILL = Task(
    name="fill",
    data="running text (.txt, .jsonl, a folder)",
    does="fills masks",
    example="The cat sat on the <mask>.",
    headline=("perplexity", "accuracy"),
    recipe=Lazy("heedful.tasks.fill.recipe:FillRecipe"),
    job=Lazy("heedful.tasks.fill.train:FillJob"),
    prepares=Lazy("heedful.tasks.shared.preparing.texts:preparation"),
    batch=Lazy("heedful.tasks.shared.shapes:of_text"),
    served=Lazy("heedful.tasks.fill.use:Filler"),
    asks={"fill": Lazy("heedful.tasks.fill.use:ASK")},
    facts=Lazy("heedful.tasks.shared.served:body_facts"),
    laws=Lazy("heedful.tasks.fill.laws:FillProbe"),
    evaluate=Lazy("heedful.tasks.fill.use:score_filler"),
    inside=TEXT,
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.fill.hub:HUB"),
    hub_kind="encoder",
    commands=Lazy("heedful.tasks.fill.cli:COMMANDS"),
    uses=("encode",),
)
