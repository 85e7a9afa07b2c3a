"""Decisions: the next action, by past observations and actions and the return that is asked for (Chen et al. 2021)."""

from heedful.run.task import Inside, Lazy, Task, TrainOption

DECIDE = Task(
    name="decide",
    data="episodes (.jsonl, .npz, Minari), or an environment",
    does="decides what to do",
    example="key-to-door",
    counted="steps",
    headline=("return", "accuracy"),
    train_options={
        "environment": TrainOption("data.environment", "the environment that the episodes are from", "NAME"),
    },
    recipe=Lazy("heedful.tasks.decide.recipe:DecideRecipe"),
    job=Lazy("heedful.tasks.decide.train:DecideJob"),
    served=Lazy("heedful.tasks.decide.use:Decider"),
    asks={"act": Lazy("heedful.tasks.decide.use:ASK")},
    facts=Lazy("heedful.tasks.decide.use:decider_facts"),
    laws=Lazy("heedful.tasks.decide.laws:DecideProbe"),
    evaluate=Lazy("heedful.tasks.decide.scoring:score_decider"),
    eval_options=Lazy("heedful.tasks.decide.options:DecideScoring"),
    inside=Inside(
        look=Lazy("heedful.tasks.decide.look:look_at_episode"),
        options=Lazy("heedful.tasks.decide.options:EpisodeLook"),
        attention=Lazy("heedful.tasks.decide.look:attention_in_episode"),
        feed=Lazy("heedful.tasks.decide.look:feed_episode"),
    ),
    hub=Lazy("heedful.tasks.decide.hub:HUB"),
    hub_kind="decision",
    commands=Lazy("heedful.tasks.decide.cli:COMMANDS"),
)
