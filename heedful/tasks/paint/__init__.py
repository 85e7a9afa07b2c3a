"""Generation and completion of pictures, pixel by pixel (Chen et al. 2020)."""

from heedful.run.task import Inside, Lazy, Task

PAINT = Task(
    name="paint",
    data="pictures alone",
    does="paints pictures",
    counted="pixels",
    headline=("bits_per_pixel",),
    recipe=Lazy("heedful.tasks.paint.recipe:PaintRecipe"),
    job=Lazy("heedful.tasks.paint.train:PaintJob"),
    served=Lazy("heedful.tasks.paint.use:Painter"),
    asks={"paint": Lazy("heedful.tasks.paint.use:ASK")},
    facts=Lazy("heedful.tasks.paint.use:painter_facts"),
    laws=Lazy("heedful.tasks.paint.laws:PaintProbe"),
    evaluate=Lazy("heedful.tasks.paint.use:score_painter"),
    inside=Inside(feed=Lazy("heedful.tasks.paint.feed:feed_painter")),
    hub=Lazy("heedful.tasks.paint.hub:HUB"),
    hub_kind="lm",
    commands=Lazy("heedful.tasks.paint.cli:COMMANDS"),
    uses=("generate",),
)
