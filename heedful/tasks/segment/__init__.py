"""Semantic segmentation: the class of each pixel (Xie et al. 2021)."""

from heedful.run.task import Inside, Lazy, Task

SEGMENT = Task(
    name="segment",
    data="pictures with masks, or shapes",
    does="segments pictures",
    counted="pixels",
    headline=("miou",),
    recipe=Lazy("heedful.tasks.segment.recipe:SegmentRecipe"),
    job=Lazy("heedful.tasks.segment.train:SegmentJob"),
    served=Lazy("heedful.tasks.segment.use:Segmenter"),
    asks={"segment": Lazy("heedful.tasks.segment.use:ASK")},
    facts=Lazy("heedful.tasks.segment.use:segmenter_facts"),
    laws=Lazy("heedful.tasks.shared.probes:PictureProbe"),
    evaluate=Lazy("heedful.tasks.segment.use:score_segmenter"),
    inside=Inside(feed=Lazy("heedful.tasks.shared.feed:feed_picture")),
    hub=Lazy("heedful.tasks.segment.hub:HUB"),
    hub_kind="pyramid",
    commands=Lazy("heedful.tasks.segment.cli:COMMANDS"),
)
