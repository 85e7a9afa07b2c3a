"""Speech to text (Radford et al. 2023; Graves et al. 2006)."""

from heedful.run.task import Inside, Lazy, Task

TRANSCRIBE = Task(
    name="transcribe",
    data="a table of sound files and texts (CSV, TSV, JSONL)",
    does="turns speech into text",
    headline=("wer",),
    recipe=Lazy("heedful.tasks.transcribe.recipe:TranscribeRecipe"),
    job=Lazy("heedful.tasks.transcribe.train:TranscribeJob"),
    served=Lazy("heedful.tasks.transcribe.use:Transcriber"),
    asks={"transcribe": Lazy("heedful.tasks.transcribe.use:ASK")},
    facts=Lazy("heedful.tasks.transcribe.use:transcriber_facts"),
    laws=Lazy("heedful.tasks.transcribe.laws:transcriber_laws"),
    evaluate=Lazy("heedful.tasks.transcribe.use:score_transcriber"),
    inside=Inside(
        look=Lazy("heedful.tasks.transcribe.look:look_hearing"),
        options=Lazy("heedful.tasks.shared.options:LayerOptions"),
        attention=Lazy("heedful.tasks.transcribe.look:attention_hearing"),
        feed=Lazy("heedful.tasks.transcribe.look:feed_sound"),
    ),
    hub=Lazy("heedful.tasks.transcribe.hub:HUB"),
    hub_kind="speech_to_text ctc",
    commands=Lazy("heedful.tasks.transcribe.cli:COMMANDS"),
)
