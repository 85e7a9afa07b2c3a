"""Rewards answers, with a model that was trained on preferences."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NotRequired, TypedDict

import torch

from heedful.apply.inference import for_inference
from heedful.core.arguments import checks_arguments
from heedful.data.batches import by_length, pad
from heedful.data.frame import Frame
from heedful.data.text.judgements import Judgement, conversation, prompt_value, read_judged
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, TextError, counted
from heedful.metrics.rewards import RewardedPair, pair_scores
from heedful.models.classifier import Classifier
from heedful.run.device import Device, known_device
from heedful.run.folder import read_run
from heedful.run.task import Ask, NoOptions, Scored
from heedful.tasks.reward.prompting import Answered, Prompting, cut_to, prompting_of
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.lengths import cut_warning, warn
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.reading import READ
from heedful.tasks.shared.served import Reads, TextModel, refuse_nan_answers, refuse_run_of_another


class RewardModel(TextModel[Classifier]):
    """A trained reward model and its tokenizer."""

    task: ClassVar = "reward"
    purpose: ClassVar = "rewarding answers"

    def __init__(
        self, model: Classifier, tokenizer: Tokenizer, about: dict[str, Any], prompting: Prompting | None = None
    ) -> None:
        """`prompting`: how prompts and answers become tokens; None: as for a model that continues texts."""
        super().__init__(model, tokenizer, about)
        self.prompting = prompting or Prompting(tokenizer, about["prompting"])
        self.context = model.config.embed.context_length

    @classmethod
    @checks_arguments
    def load(cls, run: str | Path, *, device: Device = "cpu") -> "RewardModel":
        """Loads the model in a run's folder. Raises MissingError, InputError or StorageError."""
        refuse_run_of_another(run, cls.task, cls.purpose)
        return cls.plain(Path(run), device, for_inference)

    @classmethod
    def plain(
        cls, run: Path, device: Device = "cpu", prepared: Callable[[Classifier], Classifier] = lambda model: model
    ) -> "RewardModel":
        """Like `load`, but calls `prepared` on the model; by default the model stays as it is, so that it can move
        between devices."""
        model, tokenizer, _, about = read_run(run)
        prompting = prompting_of(run, tokenizer, about["prompting"])
        return cls(prepared(model.to(known_device(device))), tokenizer, about, prompting)

    @property
    def reads(self) -> Reads:
        assert self.model.lm is not None
        frame = Frame(self.prompting.before, [], [self.prompting.end])
        return Reads(self.model.lm, frame, self.tokenizer.encode_whole, sums_up="last")

    @one_or_many("prompts")
    def reward(self, answers: Sequence[str], prompts: Sequence[str] | None = None) -> list[float]:
        """The reward of each answer; `prompts` has one for each. Only rewards of answers to the same prompt are
        comparable: a difference of 1 means that an answer is preferred e times as often as the other. Where a prompt
        and its answer are longer than the model's context, their beginning is not read, with a Python warning. Raises
        InputError."""
        rewards, warned = self.weigh(prompts or [""] * len(answers), answers)
        warn(warned)
        return rewards

    @checks_arguments
    def weigh(self, prompts: Sequence[str], answers: Sequence[str]) -> tuple[list[float], list[str]]:
        """The rewards, and for each answer that was not read as a whole a warning, otherwise ""."""
        if len(prompts) != len(answers):
            what = f"weigh: {counted(len(prompts), 'prompt')} and {counted(len(answers), 'answer')}"
            raise InputError(what, fix="give a prompt for each answer")
        rows = self.prompting.answered(prompts, answers)
        kept = [cut_to(row, self.context) for row in rows]
        warned = [cut_warning(len(own.ids), len(row.ids)) for own, row in zip(kept, rows, strict=True)]
        return self.rewards(kept), warned

    @torch.inference_mode()
    def rewards(self, rows: Sequence[Answered]) -> list[float]:
        """The rewards of encoded answers, each no longer than the context. Equal rows are read once and get the same
        reward: in different batches, rounding could make them differ."""
        distinct = [*{tuple(row.ids): row.ids for row in rows}.values()]
        found: dict[tuple[int, ...], float] = {}
        device = self.model.out.weight.device
        for group in by_length(distinct, READ):
            own = [distinct[i] for i in group]
            tokens, segments = pad(own, after=(), filler=self.tokenizer.pad)
            answers = self.model(tokens[:, None].to(device), segments[:, None].to(device)).squeeze(1).float().cpu()
            refuse_nan_answers(answers, "rewards")
            found |= zip(map(tuple, own), answers.tolist(), strict=True)
        return [found[tuple(row.ids)] for row in rows]

    @checks_arguments
    def measure(self, judgements: Sequence[Judgement]) -> dict[str, float]:
        """The loss in nats per pair, and `pair_scores` of the rewards of better and worse answers."""
        refuse_nothing(judgements)
        asked = [(one.prompt, answer) for one in judgements for answer in one.candidates]
        found, _ = self.weigh([prompt for prompt, _ in asked], [answer for _, answer in asked])
        rewards = iter(found)
        pairs = []
        for one in judgements:
            own = [next(rewards) for _ in one.candidates]
            lengths = [len(answer) for answer in one.candidates]
            pairs += [RewardedPair(own[a], own[b], lengths[a], lengths[b]) for a, b in one.pairs()]
        margins = torch.tensor([one.better - one.worse for one in pairs], dtype=torch.float64)
        loss = float(-torch.nn.functional.logsigmoid(margins).mean())
        return {"loss": loss, **pair_scores(pairs), "pairs": len(pairs)}


class Rewarded(TypedDict):
    """A reward as a record."""

    prompt: object
    answer: str
    reward: float
    warning: NotRequired[str]


def in_prompt_and_answer(line: str) -> tuple[str, str]:
    """Reads a line: an object with "prompt" and "answer", or a prompt, a TAB and its answer, or an answer alone. Raises
    TextError."""
    try:
        found = json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        before, tab, after = line.rpartition("\t")
        return (before, after) if tab else ("", line)
    prompt: object = found.get("prompt", "")
    answer: object = found.get("answer")
    if isinstance(prompt, list) and all(isinstance(one, dict) and {"role", "content"} <= one.keys() for one in prompt):
        prompt = conversation((str(one["role"]), str(one["content"])) for one in prompt)
    if not isinstance(prompt, str) or not isinstance(answer, str):
        raise TextError("no prompt and answer that are texts", fix='write {"prompt": "...", "answer": "..."}')
    return prompt, answer


def reward_lines(model: RewardModel, texts: Sequence[str], options: NoOptions) -> Iterator[Rewarded]:
    pairs = [in_prompt_and_answer(text) for text in texts]
    rewards, warned = model.weigh([prompt for prompt, _ in pairs], [answer for _, answer in pairs])
    for (prompt, answer), value, warning in zip(pairs, rewards, warned, strict=True):
        record: Rewarded = {"prompt": prompt_value(prompt), "answer": answer, "reward": value}
        if warning:
            record["warning"] = warning
        yield record


ASK = Ask(reward_lines, NoOptions)


def score_reward(model: RewardModel, options: DataOptions) -> Iterator[Scored]:
    for name, judgements in read_judged(options.path).items():
        yield Scored(name, model.measure(judgements), examples=map(repr, judgements))
