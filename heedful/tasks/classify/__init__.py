"""Classification of texts and pairs of texts: labels, sets of labels, scores or choices (Radford et al. 2018; Devlin et
al. 2019)."""

from heedful.run.task import Lazy, Task
from heedful.tasks.shared.inside import TEXTS_IN_TWOS

CLASSIFY = Task(
    name="classify",
    data="texts, pairs or choices with labels or scores",
    does="classifies texts",
    example="What is the capital of France?",
    counted="examples",
    headline=("accuracy", "spearman", "micro_f1"),
    recipe=Lazy("heedful.tasks.classify.recipe:ClassifyRecipe"),
    job=Lazy("heedful.tasks.classify.train:ClassifyJob"),
    served=Lazy("heedful.tasks.classify.use:TextClassifier"),
    asks={"classify": Lazy("heedful.tasks.classify.use:ASK")},
    facts=Lazy("heedful.tasks.classify.use:classifier_facts"),
    laws=Lazy("heedful.tasks.classify.laws:AnswerProbe"),
    evaluate=Lazy("heedful.tasks.classify.use:score_classifier"),
    inside=TEXTS_IN_TWOS,
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.classify.hub:HUB"),
    hub_kind="classifier",
    commands=Lazy("heedful.tasks.classify.cli:COMMANDS"),
    uses=("generate", "fill", "encode", "classify-images", "classify-sounds"),  # `heed classify` is for all kinds
)
