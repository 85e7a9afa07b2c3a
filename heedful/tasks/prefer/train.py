"""Trains a language model for a reward, or on judgements of answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from heedful.core.config import from_json
from heedful.core.seeds import counter_seed
from heedful.data.parts import Parts
from heedful.data.text.judgements import Judgement, read_judgements
from heedful.data.text.prompts import read_prompts
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, MissingError, counted
from heedful.models.actor_critic import ActorCriticConfig
from heedful.models.lm import LM, LMConfig
from heedful.run.card import CardText, Scores, fingerprint, score_table, text_table
from heedful.run.folder import task_name
from heedful.run.job import Job, Measurement
from heedful.run.start import Start, copy_weights, read_start
from heedful.store import files
from heedful.store.model import MODEL
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.prefer.learning import JudgedTask, Made, Memory, RolloutTask, pair_batch, refuse_one_answer
from heedful.tasks.prefer.losses import pair_loss
from heedful.tasks.prefer.recipe import PreferRecipe
from heedful.tasks.prefer.rewards import NormalisedReward, Reward, finite, reward_named
from heedful.tasks.prefer.rollouts import (
    AnswerRows,
    Policy,
    answers_in_words,
    judge_all,
    language_model,
    refuse_without_room,
    rows_of,
)
from heedful.tasks.reward.prompting import Answered, prompting_of
from heedful.tasks.reward.use import RewardModel
from heedful.training.loss import Sum, added
from heedful.training.policy import kl_estimates

SHOWN = 8  # prompts in a sample
NORMALISED = 256  # the number of answers for a reward's mean and deviation
REFERENCE, REWARD = "reference", "reward"  # names of companions
COUNTED = {"grpo": "answers", "dpo": "pairs"}  # what their losses are means over
PANELS = {
    "reward": ("reward", "valid_reward"),
    "KL divergence (nats an answer)": ("kl", "valid_kl"),
    "entropy (nats a token)": ("entropy", "valid_entropy"),
    "tokens of an answer": ("length", "valid_length"),
    "share of tokens held by the clip": ("clip_fraction",),
    "loss": ("train_loss", "value_loss"),
    "pairs in the right order": ("pair_accuracy", "valid_pair_accuracy"),
}


class Drawn(NamedTuple):
    """A model's answer, and its reward as text, "" where there is none."""

    prompt: str
    answer: str
    reward: str


class PreferJob(Job[PreferRecipe, Parts[list[Any]], Policy]):
    """The training on prompts, or, without a reward, on judgements of answers."""

    unit: ClassVar = "prompts"
    kinds: ClassVar = "a .txt or .jsonl file of prompts, or, for dpo without a reward, of judgements"
    served: ClassVar = LanguageModel
    panels = PANELS
    start: Start

    def __init__(self, recipe: PreferRecipe, corpus: Parts[list[Any]] | None = None, begun: Path | None = None) -> None:
        plan = recipe.prefer
        if not recipe.start_from:
            raise InputError("no model to begin with", fix="--from RUN: a run of heed train generate")
        if not plan.reward and plan.method != "dpo":
            what = f"{plan.method} learns from a reward, and none is named"
            raise InputError(what, fix="--reward RUN, or --reward module:function")
        self.judged, self.counted = not plan.reward, COUNTED.get(plan.method, "")
        if not self.judged:
            refuse_one_answer(plan)
        super().__init__(recipe, corpus, begun)
        self.tokenizer: Tokenizer = self.start.source
        self.about = {"task": "generate", **self.start.around}
        self.prompting = prompting_of(begun or Path(recipe.start_from), self.tokenizer, self.about)
        self.lm: LMConfig = from_json(LMConfig, self.start.model["model"], where=f"{recipe.start_from}/config.json")
        self.config = ActorCriticConfig(lm=self.lm) if plan.method == "ppo" else self.lm
        self.saved = "lm" if plan.method == "ppo" else ""
        self.memory = Memory()
        self.reward = self._reward()
        self.companions[REFERENCE] = self.reference = self._reference()
        self.score_names = ("valid_pair_accuracy",) if self.judged else ("valid_reward", "valid_kl")
        self._check_lengths()
        self.fingerprint = fingerprint([*map(repr, self.corpus.train), *self._weights()])

    # The start.

    def read(self) -> Parts[list[Any]]:
        path = self.recipe.data.path
        return read_judgements(path) if self.judged else read_prompts(path)

    def read_start(self) -> Start | None:
        return read_start(self.recipe, self.begun, "generate")

    def _reference(self) -> LM:
        folder = Path(self.recipe.start_from)
        if not (folder / MODEL).is_file():
            what = "the model that this training began with is gone, and is compared with at every step"
            raise MissingError(what, where=str(folder), fix="bring it back")
        model = LM(self.lm)
        copy_weights(model, self.recipe.start_from)
        return model

    def _reward(self) -> Reward | None:
        name, normalise = self.recipe.prefer.reward, self.recipe.prefer.normalise
        if not name:
            return None
        found = reward_named(name) or self._learnt_reward(name)
        normalise = REWARD in self.companions if normalise is None else normalise
        return NormalisedReward(found, self._begun_with) if normalise else found

    def _learnt_reward(self, name: str) -> Reward:
        """The reward of a run, whose model becomes a companion."""
        if task_name(Path(name))[0] != RewardModel.task:
            raise InputError("not a model of heed train reward", where=name, fix="name a run of reward")
        served = RewardModel.plain(Path(name))
        self.companions[REWARD] = served.model

        def reward(prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
            return finite(served.weigh(prompts, answers)[0], answers, name)

        return reward

    def _begun_with(self) -> tuple[list[str], list[str]]:
        """Training prompts in their order, repeated as needed, and an answer to each by the model that training begins
        with."""
        prompts = [self.corpus.train[i % len(self.corpus.train)] for i in range(NORMALISED)]
        answers, _ = self._make_answers(self.reference, prompts, "normalised")
        return prompts, answers

    def _make_answers(self, model: Policy, asked: Sequence[str], key: str) -> tuple[list[str], AnswerRows]:
        """An answer to each prompt, drawn with the same seeds each time; and the rows of both."""
        plan, prompts = self.recipe.prefer, self.prompting.prompts(asked)
        seeds = [counter_seed(key, i) for i in range(len(prompts))]
        answers, texts = answers_in_words(
            model, self.prompting, prompts, seeds, tokens=plan.tokens, temperature=plan.temperature
        )
        return texts, rows_of(prompts, answers, pad=self.tokenizer.pad)

    def _weights(self) -> list[str]:
        """The sha256 of the reference and of the reward model."""
        named = [self.recipe.start_from, *([self.recipe.prefer.reward] if REWARD in self.companions else [])]
        return [files.size_and_sha256(Path(folder) / MODEL)[1] for folder in named]

    def _check_lengths(self) -> None:
        """Raises InputError for a prompt that leaves no room for an answer, and for a judged answer that is too
        long."""
        context, parts = self.lm.embed.context_length, self.corpus.named().values()
        if self.judged:
            rows = (row for part in parts for one in part for row in self._answered(one))
            longest = max(len(row.ids) - 1 for row in rows)
            if longest > context:
                what = f"a prompt with its answer are {longest:,} tokens, and the model reads at most {context:,}"
                raise InputError(what, fix="leave such judgements out")
        prompts = self.prompting.prompts([_prompt(one) for part in parts for one in part])
        refuse_without_room(prompts, self.recipe.prefer.tokens, context, setting="--set prefer.tokens=")

    def _answered(self, one: Judgement) -> list[Answered]:
        return self.prompting.answered([one.prompt] * len(one.candidates), one.candidates)

    # Descriptions and files.

    def describe(self) -> str:
        plan, count = self.recipe.prefer, len(self.corpus.train)
        if self.judged:
            return f"dpo, {counted(count, 'judgement')}, {counted(len(self._pairs(self.corpus.train)), 'pair')}"
        return f"{plan.method}, {counted(count, 'prompt')}, {plan.rollouts:,} answers at a time"

    def own_facts(self) -> dict[str, object]:
        return {"method": self.recipe.prefer.method, "reward": self.recipe.prefer.reward}

    def spec(self) -> dict[str, Any]:
        return dict(self.about)

    def tokenizers(self) -> dict[str, bytes]:
        return super().tokenizers() | self.prompting.files()

    # Training.

    def begin(self, model: Policy) -> None:
        copy_weights(language_model(model), self.recipe.start_from)

    def new_heads(self) -> tuple[str, ...]:
        return ("value",) if self.saved else ()

    def task(self, model: Policy) -> RolloutTask | JudgedTask:
        recipe, plan = self.recipe, self.recipe.prefer
        if self.reward is None:
            pairs = self._weighed(self._pairs(self.corpus.train))
            return JudgedTask(pairs, plan, seed=recipe.train.seed)
        return RolloutTask(
            self.corpus.train,
            plan,
            seed=recipe.train.seed,
            prompting=self.prompting,
            reference=self.reference,
            reward=self.reward,
            memory=self.memory,
        )

    def remembered(self) -> dict[str, Tensor]:
        return {} if self.memory.made is None else self.memory.made.tensors()

    def remember(self, tensors: dict[str, Tensor]) -> None:
        self.memory.made = Made.of(tensors)

    def _pairs(self, judgements: Sequence[Judgement]) -> list[AnswerRows]:
        """The better and the worse answer of each pair that is judged to differ."""
        found = []
        for one in judgements:
            rows = self._answered(one)
            for pair in one.pairs():
                asked, said = ([part(rows[i]) for i in pair] for part in (Answered.prompt, Answered.answer))
                found.append(rows_of(asked, said, pad=self.tokenizer.pad))
        return found

    def _weighed(self, pairs: Sequence[AnswerRows]) -> list[tuple[AnswerRows, Tensor]]:
        """The pairs with their log-probabilities under the reference."""
        temperature = self.recipe.prefer.temperature
        each = (judge_all(self.reference, rows, temperature=temperature).log_probs.sum(1) for rows in pairs)
        return [*zip(pairs, each, strict=True)]

    # Measuring.

    def measure(self, model: Policy) -> Measurement:
        scores, drawn = self._answer(model, self._asked(self.valid))
        sample = "".join(f"{one.prompt}\n    {one.reward:>8}  {one.answer}\n" for one in drawn[:SHOWN])
        if self.judged:
            found = self._judge(model, self.valid)
            scores = {"valid_pair_accuracy": found["pair_accuracy"]} | scores
            return Measurement(found["loss"], scores, -found["loss"], sample)
        weight = self.recipe.prefer.kl if self.recipe.prefer.method in ("ppo", "grpo") else 0.0
        objective = scores["valid_reward"] - weight * scores["valid_kl"]
        return Measurement(-objective, scores, objective, sample)

    def score(self, best: LanguageModel, part: list[Any]) -> Mapping[str, Any]:
        scores, _ = self._answer(best.model, self._asked(part))
        named = {name.removeprefix("valid_"): value for name, value in scores.items()}
        return named | (self._judge(best.model, part) if self.judged else {})

    def _asked(self, part: Sequence[Any]) -> list[str]:
        """As many prompts as answers are generated for: evenly spread where there are more, repeated where there are
        fewer."""
        prompts = [_prompt(one) for one in part]
        count, most = len(prompts), self.recipe.prefer.eval_answers
        return [prompts[i * count // most] if count > most else prompts[i % count] for i in range(most)]

    def _judge(self, model: Policy, judgements: Sequence[Judgement]) -> dict[str, float]:
        """The loss of the pairs, and the share of pairs in which the model prefers the better answer."""
        plan, pairs = self.recipe.prefer, self._weighed(self._pairs(judgements))
        total = 0.0
        beside: dict[str, Sum] = {}
        for i in range(0, len(pairs), plan.batch):
            with torch.no_grad():
                loss = pair_loss(model, pair_batch(pairs[i : i + plan.batch]), plan)
            total, beside = total + float(loss.total), added(beside, loss.beside)
        return {"loss": total / len(pairs), "pair_accuracy": beside["pair_accuracy"].mean}

    def _answer(self, model: Policy, asked: Sequence[str]) -> tuple[dict[str, float], list[Drawn]]:
        """Generates an answer to each prompt, with the same seeds each time. Returns the mean reward, the KL divergence
        from the reference, the entropy and the length of answers; and the answers."""
        texts, rows = self._make_answers(model, asked, "measured")
        temperature = self.recipe.prefer.temperature
        own, reference = (judge_all(one, rows, temperature=temperature) for one in (model, self.reference))
        count = int(rows.mask.sum())
        scores = {
            "valid_kl": float(kl_estimates(own.log_probs, reference.log_probs).sum()) / len(asked),
            "valid_entropy": float(own.entropy.sum()) / count,
            "valid_length": count / len(asked),
        }
        if self.reward is None:
            return scores, [Drawn(prompt, text, "") for prompt, text in zip(asked, texts, strict=True)]
        rewards = self.reward(asked, texts)
        drawn = [Drawn(prompt, text, f"{own:.3f}") for prompt, text, own in zip(asked, texts, rewards, strict=True)]
        return {"valid_reward": sum(rewards) / len(rewards)} | scores, drawn

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        plan, chats = self.recipe.prefer, bool(self.about.get("chat"))
        by = "judgements of people or of a rule" if self.judged else f"`{plan.reward}`"
        weight = f", with a KL penalty of {plan.kl} a nat" if plan.method in ("ppo", "grpo") else ""
        name = self.score_names[0]
        begun, changed = self._changed(folder)
        return CardText(
            what=f"{'Answers in a conversation' if chats else 'Continues a text'}, as it was rewarded for.",
            learnt_on=f"{len(self.corpus.train):,} {'judgements' if self.judged else 'prompts'}, from "
            f"`{self.corpus.name}`, by {plan.method}{weight}, rewarded by {by}",
            table=score_table("prompts", {**scores, "before training": begun}),
            how="One answer to a prompt was drawn. The KL divergence (nats an answer) is from the model in "
            f"`{self.recipe.start_from}`, which the last row is of.",
            kept=f"step {best['step']:,}, the best on the validation prompts ({name[6:].replace('_', ' ')} "
            f"{best[name]:.4f}, KL divergence {best['valid_kl']:.2f})",
            use=[f"heed chat {folder}" if chats else f'heed generate {folder} "A prompt."'],
            limits="It does what it was rewarded for, which is not always what was meant: where the reward is wrong, "
            "this model has learnt to be wrong with it. The farther it is from where it began, the less its reward "
            "says: where entropy has fallen much, or the length has changed, that is what was learnt to be rewarded. "
            f"It knows nothing that the model it began with did not know.\n\n{changed}",
        )

    def _changed(self, folder: Path) -> tuple[dict[str, float], str]:
        """The scores of the model that training began with on the first test set; and a table of answers before and
        after."""
        part = next(iter(self.corpus.scored().values()))
        asked = self._asked(part)
        begun, before = self._answer(self.reference, asked)
        _, after = self._answer(self.served.load(folder).model, asked)
        found = {key.removeprefix("valid_"): value for key, value in begun.items()}
        if self.judged:  # under DPO's loss, which compares with this very model, it prefers neither answer
            found["loss"] = self._judge(self.reference, part)["loss"]
        rows = [(*one, *other[1:]) for one, other in zip(before[:SHOWN], after, strict=False)]
        table = text_table(("asked", "before", "reward", "after", "reward"), rows)
        return found, "\n".join(["Answers before and after, as they were drawn:", "", *table])


def _prompt(one: Judgement | str) -> str:
    return one.prompt if isinstance(one, Judgement) else one
