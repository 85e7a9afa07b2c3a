"""Extractive question answering: each answer is a span of a text (Rajpurkar et al. 2016)."""

from heedful.run.task import Lazy, Task
from heedful.tasks.shared.inside import TEXTS_IN_TWOS

ANSWER = Task(
    name="answer",
    data="questions on texts (SQuAD's JSON, .jsonl)",
    does="answers questions",
    example="Who wrote the letter?",
    counted="questions",
    headline=("exact_match", "f1"),
    recipe=Lazy("heedful.tasks.answer.recipe:AnswerRecipe"),
    job=Lazy("heedful.tasks.answer.train:AnswerJob"),
    served=Lazy("heedful.tasks.answer.use:Answerer"),
    asks={"answer": Lazy("heedful.tasks.answer.use:ASK")},
    facts=Lazy("heedful.tasks.shared.served:body_facts"),
    laws=Lazy("heedful.tasks.shared.probes:TokenProbe"),
    evaluate=Lazy("heedful.tasks.answer.use:score_answers"),
    inside=TEXTS_IN_TWOS,
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.answer.hub:HUB"),
    hub_kind="token_classifier",
    hub_head="qa_outputs",
    commands=Lazy("heedful.tasks.answer.cli:COMMANDS"),
    uses=("fill", "encode"),
)
