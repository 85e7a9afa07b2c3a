"""Text generation: a language model continues a text (Radford et al. 2018, 2019; Touvron et al. 2023)."""

from heedful.run.task import Lazy, Task
from heedful.tasks.shared.inside import TEXT

GENERATE = Task(
    name="generate",
    data="running text (.txt, .jsonl, a folder)",
    does="generates text",
    example="Once upon a time",
    headline=("perplexity",),
    recipe=Lazy("heedful.tasks.generate.recipe:GenerateRecipe"),
    job=Lazy("heedful.tasks.generate.train:GenerateJob"),
    prepares=Lazy("heedful.tasks.shared.preparing.texts:preparation"),
    batch=Lazy("heedful.tasks.shared.shapes:of_text"),
    sized=Lazy("heedful.tasks.generate.sizing:sized"),
    served=Lazy("heedful.tasks.generate.use:LanguageModel"),
    asks={
        "generate": Lazy("heedful.tasks.generate.records:ASK_GENERATE"),
        "score": Lazy("heedful.tasks.generate.records:ASK_SCORE"),
        "steps": Lazy("heedful.tasks.generate.steps:ASK"),
    },
    streams="generate",
    facts=Lazy("heedful.tasks.shared.served:body_facts"),
    laws=Lazy("heedful.tasks.generate.laws:TextProbe"),
    evaluate=Lazy("heedful.tasks.generate.records:score_language_model"),
    eval_options=Lazy("heedful.tasks.generate.options:TextScoring"),
    inside=TEXT,
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.generate.hub:HUB"),
    hub_kind="lm",
    engines={"ctranslate2": Lazy("heedful.tasks.generate.ctranslate2:ENGINE")},
    with_engine=Lazy("heedful.tasks.generate.llama:with_engine"),
    commands=Lazy("heedful.tasks.generate.cli:COMMANDS"),
    uses=("translate",),  # `heed score` is for both kinds
)
