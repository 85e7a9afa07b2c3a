"""The loop of learning from preferences: a model generates answers, a person or a rule ranks them, a reward model
learns from the rankings, and the model from the reward (Ziegler et al. 2019; Ouyang et al. 2022, figure 2).

Every round's answers come from the newest policy. The reward model learns from all judgements; the policy is trained on
the new reward, from the model that the loop began with. Each step writes a folder, and finished steps are not repeated.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from heedful.core.config import from_json
from heedful.core.seeds import counter_seed
from heedful.data.text.judgements import judgements_in, order_by
from heedful.data.text.prompts import prompts_in, read_prompts
from heedful.errors import InputError
from heedful.models.lm import LMConfig
from heedful.run.events import Event
from heedful.run.folder import read_run
from heedful.run.recipe import Recipe, override, validated
from heedful.run.start import read_start
from heedful.run.task import Task
from heedful.run.train import train
from heedful.store import files
from heedful.store.lock import run_lock
from heedful.tasks.prefer import PREFER
from heedful.tasks.prefer.learning import refuse_one_answer
from heedful.tasks.prefer.recipe import PreferRecipe
from heedful.tasks.prefer.rewards import Reward, reward_named
from heedful.tasks.prefer.rollouts import answers_in_words, refuse_without_room
from heedful.tasks.reward import REWARD
from heedful.tasks.reward.prompting import prompting_of
from heedful.tasks.reward.recipe import RewardRecipe
from heedful.tasks.reward.use import RewardModel
from heedful.tasks.shared.ranking import Ranking, in_terminal

PERSON = "person"
ROUNDS, SETTINGS = "rounds.jsonl", "loop.json"
Follow = Callable[[Iterator[Event]], object]  # consumes the events of a training


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of a loop. `ranker` is "person", or a rule as for `--reward`, to whose values `noise` is added."""

    start: str
    prompts: Path
    out: Path
    ranker: str = PERSON
    rounds: int = 2
    answers: int = 4
    tokens: int = 64
    noise: float = 0.0
    seed: int = 0
    who: str = ""
    settings: tuple[str, ...] = ()  # of the policy's recipe, KEY=VALUE
    reward_settings: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """The settings that may not change when a loop is continued."""
        own = {key: value for key, value in asdict(self).items() if key not in ("out", "rounds")}
        return json.loads(json.dumps(own | {"prompts": str(self.prompts)}))


@dataclass(frozen=True, kw_only=True)
class Round:
    """The results of a round: the number of judgements so far; the new reward model's accuracy and calibration error on
    held-out pairs; its mean rewards of the answers before and after the round; the policy's KL divergence from the
    model that the loop began with (nats per answer), and the length of its answers (tokens). With a rule also its mean
    values before and after, and how often the rule prefers the answer after the round."""

    number: int
    judgements: int
    pair_accuracy: float
    calibration_error: float
    reward_before: float
    reward_after: float
    kl: float
    length: float
    value_before: float | None = None
    value_after: float | None = None
    win_rate: float | None = None


def loop(plan: Plan, follow: Follow, device: torch.device) -> Iterator[Round]:
    """Yields the rounds, including those that are finished already. Raises InputError for another loop in `out`, and
    where a person leaves before everything is judged."""
    rule = None if plan.ranker == PERSON else reward_named(plan.ranker)
    if rule is None and plan.ranker != PERSON:
        what = "a reward model cannot judge its own training loop"
        raise InputError(what, where=plan.ranker, fix="--ranker person, or --ranker module:function")
    files.need_access(plan.out)
    if not (plan.out / SETTINGS).is_file():
        _refuse_early(plan)
        files.make_folder(plan.out)
    with run_lock(plan.out):
        yield from _rounds(plan, rule, follow, device)


def _rounds(plan: Plan, rule: Reward | None, follow: Follow, device: torch.device) -> Iterator[Round]:
    begin(plan)
    done = rounds_of(plan.out)
    yield from done
    for number in range(len(done) + 1, plan.rounds + 1):
        made = _round(plan, number, rule, follow, device)
        files.append_line(plan.out / ROUNDS, json.dumps(asdict(made)))
        yield made


def begin(plan: Plan) -> None:
    """Writes the loop's settings, or checks that they are those of the loop in `out`."""
    path = plan.out / SETTINGS
    if not path.is_file():
        files.write_json(path, plan.facts())
        return
    old, new = files.read_json(path), plan.facts()
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    if changed:
        what = f"this loop was begun with {changed[0]} = {old.get(changed[0])!r}, not {new.get(changed[0])!r}"
        raise InputError(what, where=str(plan.out), fix="choose another --out, or the same words to continue")


def _refuse_early(plan: Plan) -> None:
    """Raises InputError or MissingError for settings with which no round can be made, before anything is judged."""
    _, policy = _recipes(plan, 1)
    prompts, start = prompts_in(plan.prompts), read_start(policy, None, "generate")
    assert start is not None
    ids = prompting_of(Path(plan.start), start.source, start.around).prompts(prompts)
    lm = from_json(LMConfig, start.model["model"], where=f"{plan.start}/config.json")
    refuse_without_room(ids, plan.tokens, lm.embed.context_length, setting="--tokens ")
    refuse_without_room(ids, policy.prefer.tokens, lm.embed.context_length, setting="--set prefer.tokens=")
    refuse_one_answer(policy.prefer)
    read_prompts(plan.prompts)  # checks that some can be held out


def rounds_of(out: Path) -> list[Round]:
    """The finished rounds."""
    return [Round(**row) for row in files.read_json_lines(out / ROUNDS)]


def _round(plan: Plan, number: int, rule: Reward | None, follow: Follow, device: torch.device) -> Round:
    folder, before = plan.out / f"round-{number}", plan.out / f"round-{number - 1}" / "policy"
    files.make_folder(folder)
    before = before if number > 1 else Path(plan.start)
    prompts = prompts_in(plan.prompts)
    _judge(plan, number, rule, prompts, before)
    earlier = [plan.out / f"round-{i}" / "judgements.jsonl" for i in range(1, number + 1)]
    judgements = [one for path in earlier for one in judgements_in(path)]
    rows = "".join(f"{json.dumps(one.record(), ensure_ascii=False)}\n" for one in judgements)
    files.write_text(folder / "all.jsonl", rows)
    reward, policy = folder / "reward", folder / "policy"
    learnt, taught = _recipes(plan, number)
    _trained(REWARD, learnt, reward, follow, device)
    _trained(PREFER, taught, policy, follow, device)
    judge = RewardModel.load(reward)
    two = [_answers(plan, run, prompts, 1, ("compared", number)) for run in (before, policy)]
    old, new = ([each[0] for each in texts] for texts in two)
    own, scores = _scores(reward), _scores(policy)
    found = Round(
        number=number,
        judgements=len(judgements),
        pair_accuracy=own["pair_accuracy"],
        calibration_error=own["calibration_error"],
        reward_before=fmean(judge.weigh(prompts, old)[0]),
        reward_after=fmean(judge.weigh(prompts, new)[0]),
        kl=scores["kl"],
        length=scores["length"],
    )
    if rule is None:
        return found
    values = [rule(prompts, texts) for texts in (old, new)]
    wins = [0.5 if a == b else float(b > a) for a, b in zip(*values, strict=True)]
    ruled = {"value_before": fmean(values[0]), "value_after": fmean(values[1]), "win_rate": fmean(wins)}
    return Round(**(asdict(found) | ruled))


def _judge(plan: Plan, number: int, rule: Reward | None, prompts: Sequence[str], run: Path) -> None:
    """Has all answers of a round ranked. Raises InputError where a person leaves before the end."""
    out = plan.out / f"round-{number}" / "judgements.jsonl"
    made: dict[str, tuple[str, ...]] = {}

    def answers(prompt: str) -> tuple[str, ...]:
        if not made:  # all at once: a batch is faster, and a person waits only once
            found = _answers(plan, run, prompts, plan.answers, ("round", number))
            made.update({own: tuple(dict.fromkeys(texts)) for own, texts in zip(prompts, found, strict=True)})
        return made[prompt]

    ranking = Ranking(out, prompts, answers)
    who = plan.who or plan.ranker
    if rule is None:
        in_terminal(ranking, who)
        if ranking.next(who) is not None:
            what = f"round {number}: {ranking.count(who):,} of {len(ranking.prompts):,} prompts are judged"
            raise InputError(what, where=str(out), fix="the same command continues from there")
        return
    while (item := ranking.next(who)) is not None:
        draw = random.Random(counter_seed("ranker", plan.seed, number, item.prompt))
        values = rule([item.prompt] * len(item.candidates), item.candidates)
        ranking.judge(who, item, order_by([value + plan.noise * draw.gauss(0.0, 1.0) for value in values]))


def _answers(
    plan: Plan, run: Path, prompts: Sequence[str], count: int, key: tuple[object, ...]
) -> list[tuple[str, ...]]:
    """`count` answers of a run's model to each prompt."""
    model, tokenizer, _, about = read_run(run)
    prompting = prompting_of(run, tokenizer, about)
    ids = [own for own in prompting.prompts(prompts) for _ in range(count)]
    seeds = [counter_seed(plan.seed, *key, i) for i in range(len(ids))]
    _, texts = answers_in_words(model.eval(), prompting, ids, seeds, tokens=plan.tokens, temperature=1.0)
    return [tuple(texts[i : i + count]) for i in range(0, len(texts), count)]


def _recipes(plan: Plan, number: int) -> tuple[RewardRecipe, PreferRecipe]:
    """The recipes of a round's reward model and policy. Raises InputError for an invalid setting."""
    folder = plan.out / f"round-{number}"
    learnt = {"task": "reward", "start_from": plan.start, "data": {"path": str(folder / "all.jsonl")}}
    wanted = {"reward": str(folder / "reward"), "tokens": plan.tokens}
    taught = {"task": "prefer", "start_from": plan.start, "data": {"path": str(plan.prompts)}, "prefer": wanted}
    reward, policy = validated(RewardRecipe, learnt, where="loop"), validated(PreferRecipe, taught, where="loop")
    return override(reward, plan.reward_settings), override(policy, plan.settings)


def _trained(row: Task, recipe: Recipe, out: Path, follow: Follow, device: torch.device) -> None:
    """Trains, or continues a training, unless it is finished."""
    if not (out / "README.md").is_file():  # the last file that a training writes
        follow(train(row, recipe, out, device=device))


def _scores(run: Path) -> dict[str, float]:
    return next(iter(files.read_json(run / "scores.json")["scores"].values()))
