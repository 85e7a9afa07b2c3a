"""Plays episodes at several asked returns, and measures what was reached, beside baselines."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
from matplotlib.figure import Figure

from heedful.core.seeds import counter_seed
from heedful.data.episodes.environments import play
from heedful.data.episodes.episode import Episode
from heedful.data.episodes.reading import read_episodes, read_test_episodes
from heedful.errors import InputError
from heedful.look.draw import in_style, to_bytes
from heedful.run.task import Scored
from heedful.store import files
from heedful.tasks.decide.baselines import baselines
from heedful.tasks.decide.options import DecideScoring
from heedful.tasks.decide.use import Decider
from heedful.tasks.shared.terminal import PICTURES

POINTS = 5  # returns that are asked for, from the least to the best of the training


class Reached(NamedTuple):
    """What was reached, on average, where a return was asked for; and the standard deviation of the episodes."""

    asked: float
    mean: float
    deviation: float


def reached(episodes: Sequence[Episode], asked: float) -> Reached:
    totals = numpy.array([each.total for each in episodes])
    return Reached(asked, float(totals.mean()), float(totals.std()))


def curve(
    decider: Decider, asked: Sequence[float] = (), *, environment: str = "", episodes: int = 100, seed: int = 0
) -> list[Reached]:
    """What is reached at each of the returns; without any, at five from the least to the best of the training."""
    wanted = asked or dict.fromkeys(numpy.linspace(decider.spec.least, decider.spec.best, POINTS).tolist())
    return [reached(decider.play(environment, episodes=episodes, asked=each, seed=seed), each) for each in wanted]


def played_baselines(
    decider: Decider, learnt: Sequence[Episode], *, environment: str = "", episodes: int = 100, seed: int = 0
) -> dict[str, float]:
    """The mean return of each baseline that learns from these episodes, and that of the episodes themselves."""
    name = decider.environment(environment)
    seeds = [counter_seed("played", seed, number) for number in range(episodes)]
    choosers = baselines(learnt, decider.spec, seed=seed)
    means = {each: reached(play(name, seeds, choose), 0.0).mean for each, choose in choosers.items()}
    return means | {"learnt_from": reached(learnt, 0.0).mean}


def drawn(points: Sequence[Reached], beside: Mapping[str, float]) -> Figure:
    """Asked returns across, reached ones up, with their standard deviations; baselines are lines."""
    with in_style():
        figure = Figure(figsize=(5.2, 3.8), layout="constrained")
        axes = figure.add_subplot()
        asked, means, deviations = zip(*points, strict=True)
        axes.plot(asked, asked, color="0.7", linestyle="--", label="as asked")
        axes.errorbar(asked, means, deviations, marker="o", markersize=4, capsize=3, label="Decision Transformer")
        for number, (name, mean) in enumerate(beside.items(), 1):
            axes.axhline(mean, color=f"C{number}", linewidth=1, label=name.replace("_", " "))
        axes.set(xlabel="asked return", ylabel="reached return")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    return figure


def score_decider(decider: Decider, options: DecideScoring) -> Iterator[Scored]:
    """Scores on the data's test sets, where data are given; and, in an environment, what is reached at each return.
    Then the baselines learn from the data's training episodes."""
    playing = bool(options.environment or decider.spec.environment)
    if options.data is None and not playing:
        raise InputError("nothing to score", fix="give --data PATH, or --environment NAME to play in")
    if options.plot is not None:
        if not playing:
            raise InputError("nothing to draw without an environment", where="--plot", fix="give --environment NAME")
        if Path(options.plot).suffix not in PICTURES:
            raise InputError(f"{options.plot} is neither .png nor .svg", where="--plot", fix="--plot asked.png")
        files.need_output(Path(options.plot))
    if options.data is not None:
        for name, episodes in read_test_episodes(options.data).items():
            scores = {**decider.measure(episodes), "episodes": len(episodes)}
            yield Scored(name, scores, examples=(each.fingerprint for each in episodes))
    if not playing:
        return
    where, count = options.environment, options.episodes
    points = curve(decider, options.returns, environment=where, episodes=count)
    for point in points:
        reached_there = {"return": point.mean, "deviation": point.deviation, "episodes": count}
        yield Scored(f"asked {point.asked:g}", reached_there)
    beside: dict[str, float] = {}
    if options.data is not None:
        beside = played_baselines(decider, read_episodes(options.data).train, environment=where, episodes=count)
        for name, mean in beside.items():
            yield Scored(name, {"return": mean})
    if options.plot is not None:
        picture = to_bytes(drawn(points, beside), PICTURES[Path(options.plot).suffix])
        files.write_output(Path(options.plot), picture)
