"""Object detection: labels and boxes (Carion et al. 2020)."""

from heedful.run.task import Inside, Lazy, Task

DETECT = Task(
    name="detect",
    data="boxes (COCO's JSON, VOC's XML), or shapes",
    does="finds things in pictures",
    counted="things",
    headline=("map50",),
    recipe=Lazy("heedful.tasks.detect.recipe:DetectRecipe"),
    job=Lazy("heedful.tasks.detect.train:DetectJob"),
    served=Lazy("heedful.tasks.detect.use:Detector"),
    asks={"detect": Lazy("heedful.tasks.detect.use:ASK")},
    facts=Lazy("heedful.tasks.detect.use:detector_facts"),
    laws=Lazy("heedful.tasks.shared.probes:PictureProbe"),
    evaluate=Lazy("heedful.tasks.detect.use:score_detector"),
    inside=Inside(
        look=Lazy("heedful.tasks.detect.look:look_things"),
        attention=Lazy("heedful.tasks.detect.look:attention_on_things"),
        feed=Lazy("heedful.tasks.shared.feed:feed_picture"),
    ),
    hub=Lazy("heedful.tasks.detect.hub:HUB"),
    hub_kind="detr",
    commands=Lazy("heedful.tasks.detect.cli:COMMANDS"),
)
