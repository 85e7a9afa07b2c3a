"""A reward model as a classifier with a single score on the Hub, which is what policy trainers read as a reward
model."""

from dataclasses import replace
from pathlib import Path

from heedful.exchange.hf.rules import Recast
from heedful.exchange.hub import framed, hub_tokenizer
from heedful.exchange.lists import set_around
from heedful.models.classifier import ClassifierConfig
from heedful.run.task import Hub, HubFiles
from heedful.tasks.classify.hub import read_classifier
from heedful.tasks.reward.prompting import ChatPrompting
from heedful.tasks.reward.use import RewardModel


def write_reward(run: Path, reward: RewardModel) -> HubFiles:
    """The Hub's files: there, a prompt and its answer are a single text; for a conversation, as rendered by its
    template."""
    tokenizer = reward.tokenizer
    written = isinstance(reward.prompting, ChatPrompting)
    before, after = ([], []) if written else (reward.prompting.before, [reward.prompting.end])
    inner = framed(tokenizer, before, after)
    set_around(inner, before, after)
    roles = {"bos": tokenizer.bos, "eos": tokenizer.eos, "pad": tokenizer.pad, "unk": tokenizer.unk}
    made = hub_tokenizer(tokenizer, inner, roles, longest=reward.context, turns=True)
    ids = {"start": tokenizer.bos, "end": tokenizer.eos, "pad": tokenizer.pad}
    notes = [f"there a prompt and its answer are given as one text{', which its template writes' if written else ''}"]
    return HubFiles(made, ids | {"labels": ("LABEL_0",), "problem": "regression"}, notes=notes)


def of_one_text(reward: RewardModel) -> Recast[ClassifierConfig]:
    """The model as a classifier of single texts, not of choices."""
    return Recast(replace(reward.model.config, answers=1), dict)


HUB = Hub(read_classifier, write_reward, of_one_text)
