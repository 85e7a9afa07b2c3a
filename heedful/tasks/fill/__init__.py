"""Hidden words of running text, named by an encoder (Devlin et al. 2019; Liu et al. 2019)."""

from heedful.run.task import Lazy, Task

FILL = Task(
    name="fill",
    data="running text (.txt, .jsonl, a folder)",
    does="fills masks",
    example="The cat sat on the <mask>.",
    headline=("perplexity", "accuracy"),
    recipe=Lazy("heedful.tasks.fill.recipe:FillRecipe"),
    job=Lazy("heedful.tasks.fill.train:FillJob"),
    served=Lazy("heedful.tasks.fill.use:Filler"),
    asks={"fill": Lazy("heedful.tasks.fill.use:ASK")},
    facts=Lazy("heedful.tasks.shared.served:body_facts"),
    laws=Lazy("heedful.tasks.fill.laws:FillProbe"),
    evaluate=Lazy("heedful.tasks.fill.use:score_filler"),
    eval_options=Lazy("heedful.tasks.shared.cli:DataOptions"),
    look=Lazy("heedful.tasks.shared.look:look_reading"),
    look_options=Lazy("heedful.tasks.shared.cli:LayerOptions"),
    attention=Lazy("heedful.tasks.shared.look:attention_reading"),
    feed=Lazy("heedful.tasks.shared.feed:feed_text"),
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.fill.hub:HUB"),
    hub_kind="encoder",
    commands=Lazy("heedful.tasks.fill.cli:COMMANDS"),
    uses=("encode",),
)
