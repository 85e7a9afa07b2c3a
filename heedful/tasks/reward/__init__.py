"""A reward model for answers, learnt from human preferences (Ziegler et al. 2019; Ouyang et al. 2022, section 3.5)."""

from heedful.run.task import Lazy, Task
from heedful.tasks.shared.inside import TEXT

REWARD = Task(
    name="reward",
    data="judgements of answers (heed rank, TRL's preferences, UltraFeedback)",
    does="rewards answers",
    example="What is the capital of France?\tParis.",
    counted="comparisons",
    headline=("pair_accuracy", "calibration_error"),
    recipe=Lazy("heedful.tasks.reward.recipe:RewardRecipe"),
    job=Lazy("heedful.tasks.reward.train:RewardJob"),
    served=Lazy("heedful.tasks.reward.use:RewardModel"),
    asks={"reward": Lazy("heedful.tasks.reward.use:ASK")},
    facts=Lazy("heedful.tasks.shared.served:body_facts"),
    laws=Lazy("heedful.tasks.reward.laws:RewardProbe"),
    evaluate=Lazy("heedful.tasks.reward.use:score_reward"),
    inside=TEXT,
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.reward.hub:HUB"),
    commands=Lazy("heedful.tasks.reward.cli:COMMANDS"),
    uses=("generate", "chat", "classify"),
)
