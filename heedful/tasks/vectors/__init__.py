"""Word vectors from running text: skip-gram, CBOW and GloVe."""

from heedful.run.task import Lazy, Task, TrainOption

VECTORS = Task(
    name="vectors",
    data="running text (.txt, .jsonl, a folder)",
    does="has vectors of words",
    example="king",
    counted="words",
    train_options={"method": TrainOption("model.method", "skipgram, cbow, glove")},
    recipe=Lazy("heedful.tasks.vectors.recipe:VectorsRecipe"),
    job=Lazy("heedful.tasks.vectors.train:VectorsJob"),
    served=Lazy("heedful.tasks.vectors.use:WordVectors"),
    facts=Lazy("heedful.tasks.vectors.use:vector_facts"),
    laws=Lazy("heedful.tasks.vectors.laws:vector_laws"),
    embedder=Lazy("heedful.tasks.vectors.use:WordVectors"),
    hub_lacks="the Hub has no format of its own for vectors of words: take vectors.txt or vectors.bin of the run",
    commands=Lazy("heedful.tasks.vectors.cli:COMMANDS"),
)
