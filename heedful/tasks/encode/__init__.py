"""Bare encoders, which are imported: what they make of a text is a vector."""

from heedful.run.task import Lazy, Task

ENCODE = Task(
    name="encode",
    data="",
    does="reads texts, for others to start from",
    example="The cat sat on the mat.",
    served=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    facts=Lazy("heedful.tasks.shared.served:body_facts"),
    laws=Lazy("heedful.tasks.encode.laws:VectorProbe"),
    look=Lazy("heedful.tasks.shared.look:look_reading"),
    look_options=Lazy("heedful.tasks.shared.cli:LayerOptions"),
    attention=Lazy("heedful.tasks.shared.look:attention_reading"),
    feed=Lazy("heedful.tasks.shared.feed:feed_text"),
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.fill.hub:HUB"),
    hub_kind="encoder",
    uses=("fill",),
)
