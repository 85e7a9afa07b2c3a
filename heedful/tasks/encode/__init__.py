"""Bare encoders, which are imported: they turn a text into a vector."""

from heedful.run.task import Lazy, Task
from heedful.tasks.shared.inside import TEXT

ENCODE = Task(
    name="encode",
    data="",
    does="reads texts, for others to start from",
    example="The cat sat on the mat.",
    served=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    facts=Lazy("heedful.tasks.shared.served:body_facts"),
    laws=Lazy("heedful.tasks.encode.laws:VectorProbe"),
    inside=TEXT,
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.fill.hub:HUB"),
    hub_kind="encoder",
    uses=("fill",),
)
