"""`Task.inside` for models that read texts. It imports no torch."""

from dataclasses import replace

from heedful.run.task import Inside, Lazy

TEXT = Inside(
    look=Lazy("heedful.tasks.shared.look:look_reading"),
    options=Lazy("heedful.tasks.shared.options:LayerOptions"),
    attention=Lazy("heedful.tasks.shared.look:attention_reading"),
    feed=Lazy("heedful.tasks.shared.feed:feed_text"),
)
TEXTS_IN_TWOS = replace(TEXT, options=Lazy("heedful.tasks.shared.options:TextPairOptions"))
