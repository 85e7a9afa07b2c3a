"""Training a language model for a reward or for human preferences: PPO (Schulman et al. 2017; Ziegler et al. 2019),
GRPO (Shao et al. 2024), DPO (Rafailov et al. 2023) and best-of-n (Dong et al. 2023)."""

from dataclasses import replace

from heedful.run.task import Lazy, TrainOption
from heedful.tasks.generate import GENERATE

PREFER = replace(
    GENERATE,
    name="prefer",
    data="prompts (.txt, .jsonl), or judgements of answers",
    does="generates text that is preferred",
    counted="tokens of answers",
    train_options={
        "method": TrainOption("prefer.method", "ppo, grpo, dpo, best-of-n"),
        "reward": TrainOption("prefer.reward", "a run of reward, module:function, or command:WORDS"),
    },
    headline=("reward",),
    recipe=Lazy("heedful.tasks.prefer.recipe:PreferRecipe"),
    job=Lazy("heedful.tasks.prefer.train:PreferJob"),
    prepares=None,
    sized=None,
    batch=None,
    commands=Lazy("heedful.tasks.prefer.cli:COMMANDS"),
    engines={},
    saved_as="generate",
    uses=("generate", "chat", "reward"),
)
