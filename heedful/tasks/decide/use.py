"""Decides what to do next in an episode, and plays episodes, with a trained Decision Transformer."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypedDict

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.core.seeds import counter_seed
from heedful.data.batches import of_like_length
from heedful.data.episodes.environments import Begun, environment, is_environment, play
from heedful.data.episodes.episode import Episode, parsed
from heedful.data.lines import json_line
from heedful.errors import InputError, TextError
from heedful.models.decision import TOKENS, DecisionTransformer
from heedful.run.folder import Saved
from heedful.run.task import Ask
from heedful.tasks.decide.layout import DecideBatch, DecideSpec, predict, step_losses, windows
from heedful.tasks.decide.options import ActOptions
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.served import TextlessModel, refuse_nan_answers, spec_of

READ = 256  # episodes, or windows of them, that are read at a time


class Decision(TypedDict):
    """An answer as a record: `actions` are the next one, or, where the input names an environment, all of an episode
    that was played there, and `reached` is what these earned. `chances` are those of each action that could be taken
    next; None where actions are vectors, and for a whole episode. `asked` is the return that was asked for."""

    input: str
    asked: float
    actions: list[Any]
    chances: list[float] | None
    reached: float | None


class Decider(TextlessModel[DecisionTransformer]):
    """A trained Decision Transformer."""

    task: ClassVar = "decide"
    purpose: ClassVar = "deciding"

    def __init__(self, model: DecisionTransformer, about: dict[str, Any]) -> None:
        super().__init__(model, about)
        self.spec = spec_of(DecideSpec, about)
        config, sizes = model.config, (self.spec.observations.size, self.spec.actions.size)
        continuous = self.spec.actions.kind == "vector"
        if (config.d_state, config.n_actions) != sizes or config.continuous != continuous:
            what = f"observations of {self.spec.observations} and actions of {self.spec.actions}, for another model"
            raise InputError(what, where="task.json", fix="config.json and task.json must come from one run")

    @one_or_many()
    def act(self, texts: Sequence[str], *, asked: float | None = None, seed: int = 0) -> list[Decision]:
        """What to do in each episode, which is either JSON, {"observations": [...], "actions": [...], "rewards":
        [...]}, with one observation more, that of now; or the name of an environment, in which a whole one is played.
        `asked`: the return of the whole episode that is asked for (None: the best of the training). Raises TextError
        and InputError."""
        wanted = self.wanted(asked)
        return [self._answered(text, wanted, seed) for text in texts]

    def wanted(self, asked: float | None) -> float:
        """The return that is asked for, by default the best of the training. Raises InputError for NaN and infinity."""
        if asked is not None and not math.isfinite(asked):
            raise InputError(f"a return of {asked}", where="asked", fix="ask for a number")
        return self.spec.best if asked is None else asked

    def _answered(self, text: str, asked: float, seed: int) -> Decision:
        if is_environment(text):
            (played,) = self.play(text, asked=asked, seed=seed)
            actions, total = played.actions.tolist(), played.total
            return Decision(input=text, asked=asked, actions=actions, chances=None, reached=total)
        answer = self.predicted([self.begun(text, asked)])[0]
        actions, chances = [self.chosen(answer)], self._chances(answer)
        return Decision(input=text, asked=asked, actions=actions, chances=chances, reached=None)

    def begun(self, text: str, asked: float | None = None) -> Begun:
        """The episode in a text; of an environment, one that is played there, before its last action. Raises TextError
        and InputError."""
        wanted = self.wanted(asked)
        if is_environment(text):
            (played,) = self.play(text, asked=wanted)
            observations, actions, rewards = (part.tolist() for part in played)
            return Begun(observations, actions[:-1], rewards[:-1], wanted)
        try:
            given = parsed(json_line(text, where=""), "", unfinished=True)
            self.spec.states(given.observations)
            if len(given) and not self.spec.actions.holds(given.actions):
                raise InputError(f"actions of another kind than the model's, which are {self.spec.actions}")
            if len(given) >= self.model.config.longest:
                raise InputError(f"an episode of {len(given)} steps, and the model knows {self.model.config.longest}")
        except InputError as error:
            raise TextError(error.what, where=text[:40], fix=error.fix) from None
        return Begun(given.observations.tolist(), given.actions.tolist(), given.rewards.tolist(), wanted)

    def choose(self, begun: Sequence[Begun]) -> list[Any]:
        """The action to take now in each episode: the most probable one, or its numbers."""
        return [self.chosen(answer) for answer in self.predicted(begun)]

    @checks_arguments
    def play(self, name: str = "", *, episodes: int = 1, asked: float | None = None, seed: int = 0) -> list[Episode]:
        """Plays episodes in an environment, by default that of the training. Raises InputError or MissingError."""
        name = self.environment(name)
        if episodes < 1:
            raise InputError(f"{episodes} episodes", fix="play 1 or more")
        self.spend(episodes * environment(name).longest * TOKENS * self.spec.context, 0)
        seeds = [counter_seed("played", seed, number) for number in range(episodes)]
        return play(name, seeds, self.choose, asked=self.wanted(asked))

    def environment(self, name: str = "") -> str:
        """The environment of this name, or that of the training. Raises InputError where there is none, or where it is
        not like that of the training."""
        name = name or self.spec.environment
        if not name:
            what = "the environment of the training is not known"
            raise InputError(what, fix="name one: --environment CartPole-v1")
        world = environment(name)
        if (world.observations, world.actions) != (self.spec.observations, self.spec.actions):
            what = f"observations of {world.observations} and actions of {world.actions}, for another model"
            raise InputError(what, where=name, fix="name the environment of the training")
        return name

    @torch.inference_mode()
    def predicted(self, begun: Sequence[Begun]) -> Float[Tensor, "B A"]:
        """The logits of the actions that could be taken now, or the numbers of the action."""
        rows = []
        for first in range(0, len(begun), READ):
            batch = self.spec.batch([self.spec.now(each) for each in begun[first : first + READ]])
            last = batch.valid.sum(1) - 1
            rows.append(self._read(batch)[torch.arange(len(last)), last])
        answers = torch.cat(rows)
        refuse_nan_answers(answers, "decisions")
        return answers

    @torch.inference_mode()
    def likely(self, batch: DecideBatch) -> list[list[Any]]:
        """What the model would do at each step of each row, including those of padding."""
        return [[self.chosen(answer) for answer in row] for row in self._read(batch)]

    def _read(self, batch: DecideBatch) -> Float[Tensor, "B T A"]:
        return predict(self.model, batch).cpu()

    def chosen(self, answer: Float[Tensor, "A"]) -> Any:
        """The most probable action by its logits, or the numbers of the action."""
        return answer.tolist() if self.model.config.continuous else int(answer.argmax())

    def _chances(self, answer: Float[Tensor, "A"]) -> list[float] | None:
        return None if self.model.config.continuous else answer.softmax(0).tolist()

    @checks_arguments
    @torch.inference_mode()
    def measure(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """The loss a step: in nats, with the accuracy, of actions to choose from, otherwise the squared error. Each
        step is read with the return that its episode had."""
        refuse_nothing(episodes)
        every = [window for each in episodes for window in windows(each, self.spec.context)]
        total, right, count = 0.0, 0, 0
        lengths = [len(window.returns) for window in every]
        for group in of_like_length(lengths, READ * self.spec.context):
            batch = self.spec.batch([every[number] for number in group])
            predicted = self._read(batch)
            refuse_nan_answers(predicted, "decisions")
            total += float(step_losses(predicted, batch).sum())
            count += int(batch.valid.sum())
            if not self.model.config.continuous:
                right += int((predicted.argmax(-1) == batch.actions)[batch.valid].sum())
        scores = {"loss": total / count}
        return scores if self.model.config.continuous else scores | {"accuracy": right / count}


def act(decider: Decider, texts: Sequence[str], options: ActOptions) -> Iterator[Decision]:
    yield from decider.act(list(texts), asked=options.asked, seed=options.seed)


ASK = Ask(act, ActOptions)


def decider_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(DecideSpec, dict(saved.about))
    return {
        "task": "decide",
        "observations": str(spec.observations),
        "actions": str(spec.actions),
        "context": f"{spec.context} steps",
        "returns": f"{spec.least:g} to {spec.best:g}",
    } | ({"environment": spec.environment} if spec.environment else {})
