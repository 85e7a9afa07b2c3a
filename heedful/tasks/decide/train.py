"""Trains a Decision Transformer on episodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy

from heedful.core.seeds import random_stream
from heedful.data.batches import shuffled_groups
from heedful.data.episodes.environments import NAMES, environment, is_environment
from heedful.data.episodes.episode import Episode, Space, space_of
from heedful.data.episodes.reading import Episodes, read_episodes
from heedful.errors import InputError, counted
from heedful.look.draw import to_bytes
from heedful.metrics.labels import by_luck, entropy, most_frequent
from heedful.models.decision import DECISIONS, TOKENS, DecisionTransformer, decision_config
from heedful.run.card import CardText, Scores, fingerprint, score_table
from heedful.run.job import Job, Measurement
from heedful.run.recipe import row_of
from heedful.tasks.decide.layout import DecideSpec, Window, predict, step_losses, windows
from heedful.tasks.decide.recipe import DecideRecipe
from heedful.tasks.decide.scoring import curve, drawn, played_baselines
from heedful.tasks.decide.use import Decider
from heedful.training.loss import Loss

PLAYED = 20  # episodes that a measurement plays for each of the returns
SHOWN = 20  # steps in a sample
CONSTANT = 1e-6  # a smaller deviation is that of a number which hardly changes, and is not divided by


class WindowBatch(NamedTuple):
    """Windows, which become tensors when their loss is computed."""

    rows: list[Window]


class DecideTask:
    """Batches of windows, and the loss of their actions. Each epoch has each step once; long episodes are cut
    elsewhere each time."""

    def __init__(self, episodes: Sequence[Episode], spec: DecideSpec, recipe: DecideRecipe) -> None:
        self.episodes, self.spec, self.plan = episodes, spec, recipe.train

    def batches(self, epoch: int, model: object) -> list[WindowBatch]:
        context, seed = self.spec.context, self.plan.seed
        every: list[Window] = []
        for number, each in enumerate(self.episodes):
            offset = random_stream(seed, epoch, number).randrange(context) if len(each) > context else 0
            every += windows(each, context, offset)
        lengths = [TOKENS * len(window.returns) for window in every]
        groups = shuffled_groups(lengths, self.plan.tokens, seed, epoch)
        return [WindowBatch([every[number] for number in group]) for group in groups]

    def loss(self, model: DecisionTransformer, batch: WindowBatch) -> Loss:
        read = self.spec.batch(batch.rows)
        return Loss(step_losses(predict(model, read), read).sum(), int(read.valid.sum()))


class DecideJob(Job[DecideRecipe, Episodes, DecisionTransformer]):
    unit: ClassVar = "episodes"
    kinds: ClassVar = f"a .jsonl or .npz file, or a folder of such, or one of {', '.join(NAMES)}"
    served: ClassVar = Decider
    answers: DecideSpec

    def __init__(self, recipe: DecideRecipe, corpus: Episodes | None = None, begun: Path | None = None) -> None:
        if recipe.start_from:
            raise InputError("a model that decides begins with nothing", fix="leave out --from")
        super().__init__(recipe, corpus, begun)
        data, episodes = self.corpus, self.corpus.train
        every = [each for part in data.named().values() for each in part]
        name = recipe.data.environment or recipe.data.path.partition(":")[0]
        self.environment = name if recipe.data.environment or is_environment(name) else ""
        observations = space_of([each.observations for each in every], "observations", data.name)
        actions = space_of([each.actions for each in every], "actions", data.name)
        longest = max(map(len, every))
        if self.environment:
            world = environment(self.environment)
            for space, known in ((observations, world.observations), (actions, world.actions)):
                if space != known and (known.kind == "vector" or space.kind == "vector" or space.size > known.size):
                    what = f"{space}, and the environment {self.environment} has {known}"
                    raise InputError(what, where=data.name, fix="name the environment that they are from")
            observations, actions, longest = world.observations, world.actions, max(longest, world.longest)
        self.answers = _spec(episodes, observations, actions, recipe.data.context, self.environment)
        row = replace(row_of(DECISIONS, recipe), d_state=observations.size, n_actions=actions.size, longest=longest)
        bounded = actions.kind == "vector" and all(abs(each.actions).max() <= 1 for each in every)
        self.config = decision_config(row, continuous=actions.kind == "vector", bounded=bounded)
        self.fingerprint = fingerprint(each.fingerprint for each in episodes)
        measured = ("accuracy",) if actions.kind == "discrete" else ()
        self.score_names = (*(("return",) if self.environment else ()), *measured)

    def read(self) -> Episodes:
        return read_episodes(self.recipe.data.path)

    def describe(self) -> str:
        spec, steps = self.answers, sum(map(len, self.corpus.train))
        spaces = f"observations of {spec.observations}, actions of {spec.actions}"
        returns = f"returns from {spec.least:g} to {spec.best:g}"
        return f"{counted(len(self.corpus.train), 'episode')}, {steps:,} steps, {spaces}, {returns}"

    def own_facts(self) -> dict[str, object]:
        return {"steps": sum(map(len, self.corpus.train)), "returns": [self.answers.least, self.answers.best]}

    def trained_on(self) -> Iterable[str]:
        return (each.fingerprint for each in self.corpus.train)

    @cached_property
    def valid_fingerprint(self) -> str:
        return fingerprint(each.fingerprint for each in self.corpus.valid)

    def task(self, model: DecisionTransformer) -> DecideTask:
        return DecideTask(self.corpus.train, self.answers, self.recipe)

    def chance(self) -> float | None:
        if self.config.continuous:
            return None
        return entropy(str(action) for each in self.corpus.train for action in each.actions.tolist())

    def floor(self) -> float:
        if self.environment or self.config.continuous:
            return super().floor()
        actions = [action for each in self.valid for action in each.actions.tolist()]
        return by_luck(len(actions), most_frequent(actions))

    def measure(self, model: DecisionTransformer) -> Measurement:
        """Measures the loss on the validation episodes; where the environment is known, also what is reached there, and
        the sample shows it."""
        decider = Decider(model, self.spec())
        scores = decider.measure(self.valid)
        loss = scores.pop("loss")
        if not self.environment:
            return Measurement(loss, scores, scores.get("accuracy", -loss), self._sample(decider))
        points = curve(decider, episodes=PLAYED)
        scores = {"return": points[-1].mean, **scores}
        return Measurement(loss, scores, points[-1].mean, to_bytes(drawn(points, {}), "png"))

    def _sample(self, decider: Decider) -> str:
        """What was done in the first steps of a validation episode, and what the model would do, a line each."""
        batch = self.answers.batch(windows(self.valid[0], self.answers.context)[:1])
        lines = zip(batch.actions[0].tolist(), decider.likely(batch)[0], strict=True)
        return "".join(f"{done} -> {likely}\n" for done, likely in [*lines][:SHOWN])

    def finish(self, folder: Path, device: str) -> Scores:
        """The scores on the test sets, and in the environment what is reached there, beside the baselines."""
        scores = dict(super().finish(folder, device))
        if self.environment:
            decider = Decider.load(folder, device=device)
            (best,) = curve(decider, [self.answers.best])
            beside = played_baselines(decider, self.corpus.train)
            scores = {self.environment: {"return": best.mean, **beside}, **scores}
        return scores

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        spec = self.answers
        where = spec.environment or "NAME"
        kept = f"return {best['return']:.4f}" if self.environment else f"loss {best['valid_loss']:.4f}"
        return CardText(
            what=f"Decides what to do: observations of {spec.observations}, actions of {spec.actions}.",
            learnt_on=f"{counted(len(self.corpus.train), 'episode')}, from `{self.corpus.name}`",
            table=score_table("episodes", scores),
            how=f"`return` is what 100 episodes reach on average when {spec.best:g} is asked for, the best of the "
            "training; the baselines learnt from the same episodes. Loss is that of a step.",
            kept=f"step {best['step']:,}, the best one measured ({kept})",
            use=[f"heed act {folder} {where}", f"heed eval {folder} --environment {where} --plot asked.png"],
            limits="It does what was done where as much was earned. Where that was luck, as in an environment of "
            "chances, it reaches less than is asked for; and it has seen no return beyond those of its data.",
        )


def _spec(
    episodes: Sequence[Episode], observations: Space, actions: Space, context: int, environment: str
) -> DecideSpec:
    totals = [each.total for each in episodes]
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    if observations.kind == "vector":
        seen = numpy.concatenate([each.observations for each in episodes]).astype(numpy.float64)
        spread = seen.std(0)
        mean, deviation = tuple(seen.mean(0).tolist()), tuple(numpy.where(spread < CONSTANT, 1.0, spread).tolist())
    return DecideSpec(
        observations=observations,
        actions=actions,
        context=context,
        environment=environment,
        least=min(totals),
        best=max(totals),
        scale=max(map(abs, totals)) or 1.0,
        mean=mean,
        deviation=deviation,
    )
