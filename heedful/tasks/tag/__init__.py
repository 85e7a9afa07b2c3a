"""Labels for the words of sentences (Devlin et al. 2019, section 5.3)."""

from heedful.run.task import Lazy, Task

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
    facts=Lazy("heedful.tasks.shared.served:token_facts"),
    laws=Lazy("heedful.tasks.shared.probes:TokenProbe"),
    evaluate=Lazy("heedful.tasks.tag.use:score_tags"),
    eval_options=Lazy("heedful.tasks.shared.cli:DataOptions"),
    look=Lazy("heedful.tasks.shared.look:look_reading"),
    look_options=Lazy("heedful.tasks.shared.cli:LayerOptions"),
    attention=Lazy("heedful.tasks.shared.look:attention_reading"),
    feed=Lazy("heedful.tasks.shared.feed:feed_text"),
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.tag.hub:HUB"),
    hub_kind="token_classifier",
    hub_head="classifier",
    commands=Lazy("heedful.tasks.tag.cli:COMMANDS"),
    uses=("fill", "encode"),
)
