"""Image classification (Dosovitskiy et al. 2021; Touvron et al. 2021)."""

from heedful.run.task import Inside, Lazy, Task

CLASSIFY_IMAGES = Task(
    name="classify-images",
    data="a folder of pictures a class, CSV, idx files",
    does="classifies pictures",
    counted="pictures",
    headline=("accuracy",),
    recipe=Lazy("heedful.tasks.classify_images.recipe:ClassifyImagesRecipe"),
    job=Lazy("heedful.tasks.classify_images.train:ClassifyImagesJob"),
    batch=Lazy("heedful.tasks.shared.shapes:of_pictures"),
    served=Lazy("heedful.tasks.classify_images.use:ImageClassifier"),
    asks={"classify": Lazy("heedful.tasks.classify_images.use:ASK")},
    facts=Lazy("heedful.tasks.classify_images.use:image_classifier_facts"),
    laws=Lazy("heedful.tasks.shared.probes:PictureProbe"),
    evaluate=Lazy("heedful.tasks.classify_images.use:score_image_classifier"),
    inside=Inside(
        look=Lazy("heedful.tasks.classify_images.look:look_picture"),
        options=Lazy("heedful.tasks.shared.options:PatchOptions"),
        attention=Lazy("heedful.tasks.classify_images.look:attention_on_picture"),
        feed=Lazy("heedful.tasks.shared.feed:feed_picture"),
    ),
    hub=Lazy("heedful.tasks.classify_images.hub:HUB"),
    hub_kind="vit",
)
