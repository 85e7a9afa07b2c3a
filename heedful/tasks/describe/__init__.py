"""Texts about pictures: captions, printed lines, answers to questions (Vinyals et al. 2015; Li et al. 2023, TrOCR)."""

from heedful.run.task import Inside, Lazy, Task

DESCRIBE = Task(
    name="describe",
    data="pictures with texts, and questions (CSV, TSV, .jsonl)",
    does="writes texts about pictures",
    headline=("exact", "cer"),
    recipe=Lazy("heedful.tasks.describe.recipe:DescribeRecipe"),
    job=Lazy("heedful.tasks.describe.train:DescribeJob"),
    served=Lazy("heedful.tasks.describe.use:Describer"),
    asks={"describe": Lazy("heedful.tasks.describe.use:ASK")},
    facts=Lazy("heedful.tasks.describe.use:describer_facts"),
    laws=Lazy("heedful.tasks.describe.laws:describer_laws"),
    evaluate=Lazy("heedful.tasks.describe.use:score_describer"),
    inside=Inside(
        look=Lazy("heedful.tasks.describe.look:look_describing"),
        options=Lazy("heedful.tasks.describe.options:DescribeLook"),
        attention=Lazy("heedful.tasks.describe.look:attention_describing"),
        feed=Lazy("heedful.tasks.describe.look:feed_describing"),
    ),
    hub=Lazy("heedful.tasks.describe.hub:HUB"),
    hub_kind="image_to_text",
    commands=Lazy("heedful.tasks.describe.cli:COMMANDS"),
)
