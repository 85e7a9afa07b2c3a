"""Classification of sounds, by the encoders of speech to text."""

from heedful.run.task import Inside, Lazy, Task

CLASSIFY_SOUNDS = Task(
    name="classify-sounds",
    data="a table of sound files and labels (CSV, TSV, JSONL)",
    does="classifies sounds",
    counted="sounds",
    headline=("accuracy",),
    recipe=Lazy("heedful.tasks.classify_sounds.recipe:ClassifySoundsRecipe"),
    job=Lazy("heedful.tasks.classify_sounds.train:ClassifySoundsJob"),
    served=Lazy("heedful.tasks.classify_sounds.use:SoundClassifier"),
    asks={"classify": Lazy("heedful.tasks.classify_sounds.use:ASK")},
    facts=Lazy("heedful.tasks.classify_sounds.use:sound_classifier_facts"),
    laws=Lazy("heedful.tasks.transcribe.laws:sound_laws"),
    evaluate=Lazy("heedful.tasks.classify_sounds.use:score_sound_classifier"),
    inside=Inside(feed=Lazy("heedful.tasks.classify_sounds.use:feed_sound")),
    hub_lacks="classifiers of sounds are not exported",
    uses=("classify-images", "transcribe"),
)
