"""Around and around: a model answers, somebody puts the answers in order, a reward learns from that, and the model from
the reward (Ziegler et al. 2019; Ouyang et al. 2022, figure 2).

Every round's answers are those of the policy so far; the reward learns from all judgements, and the policy, with the
new reward, from where the first began. Each step leaves its folder, and what is there is not done again.
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
ROUNDS = "rounds.jsonl"
Follow = Callable[[Iterator[Event]], object]  # draws the events of a training


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`ranker` is "person", or a rule as `--reward` takes it, whose judgements are blurred by `noise`."""

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
    settings: tuple[str, ...] = ()  # of the policy's recipe, key=value
    reward_settings: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """What may not change when a loop is continued."""
        own = {key: value for key, value in asdict(self).items() if key not in ("out", "rounds")}
        return json.loads(json.dumps(own | {"prompts": str(self.prompts)}))


@dataclass(frozen=True, kw_only=True)
class Round:
    """What came of a round: how many judgements there are, the share of held-out pairs that the new reward has in order
    and how far its chances are off, what it gives the answers before the round and after it, and how far the policy is
    from where all began (nats an answer), and its tokens. With a rule, what that gives them, and how often the answer
    after the round is the better one to it."""

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
    """The rounds, those that are done already among them. Raises InputError for another loop in `out`, and where a
    person leaves before all is judged."""
    rule = None if plan.ranker == PERSON else reward_named(plan.ranker)
    if rule is None and plan.ranker != PERSON:
        what = "a run of reward ranks as it has learnt to, and nothing would be new"
        raise InputError(what, where=plan.ranker, fix="--ranker person, or --ranker module:function")
    begin(plan)
    done = rounds_of(plan.out)
    yield from done
    for number in range(len(done) + 1, plan.rounds + 1):
        made = _round(plan, number, rule, follow, device)
        files.append_line(plan.out / ROUNDS, json.dumps(asdict(made)))
        yield made


def begin(plan: Plan) -> None:
    """Writes what the loop is, or finds it to be the one that was begun."""
    path = plan.out / "loop.json"
    if not path.is_file():
        _refuse_early(plan)
        files.make_folder(plan.out)
        files.write_json(path, plan.facts())
        return
    old, new = files.read_json(path), plan.facts()
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    if changed:
        what = f"this loop was begun with {changed[0]} = {old.get(changed[0])!r}, not {new.get(changed[0])!r}"
        raise InputError(what, where=str(plan.out), fix="choose another --out, or the same words to continue")


def _refuse_early(plan: Plan) -> None:
    """Raises InputError or MissingError for what no round can be made with, before anybody judges."""
    _, policy = _recipes(plan, 1)
    prompts, start = prompts_in(plan.prompts), read_start(policy, None, "generate")
    assert start is not None
    ids = prompting_of(Path(plan.start), start.source, start.around).prompts(prompts)
    lm = from_json(LMConfig, start.model["model"], where=f"{plan.start}/config.json")
    refuse_without_room(ids, plan.tokens, lm.embed.context_length, setting="--tokens ")
    refuse_without_room(ids, policy.prefer.tokens, lm.embed.context_length, setting="--set prefer.tokens=")
    refuse_one_answer(policy.prefer)
    read_prompts(plan.prompts)  # of which some are held out


def rounds_of(out: Path) -> list[Round]:
    """Those that are finished."""
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
    """Has all answers of a round put in order. Raises InputError where a person left before."""
    out = plan.out / f"round-{number}" / "judgements.jsonl"
    made: dict[str, tuple[str, ...]] = {}

    def answers(prompt: str) -> tuple[str, ...]:
        if not made:  # all at once: a batch is faster, and whoever is asked does not wait again
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
    """So many answers of a run's model to each prompt."""
    model, tokenizer, _, about = read_run(run)
    prompting = prompting_of(run, tokenizer, about)
    ids = [own for own in prompting.prompts(prompts) for _ in range(count)]
    seeds = [counter_seed(plan.seed, *key, i) for i in range(len(ids))]
    _, texts = answers_in_words(model.eval(), prompting, ids, seeds, tokens=plan.tokens, temperature=1.0)
    return [tuple(texts[i : i + count]) for i in range(0, len(texts), count)]


def _recipes(plan: Plan, number: int) -> tuple[RewardRecipe, PreferRecipe]:
    """Of a round's reward and policy. Raises InputError for a setting that is none."""
    folder = plan.out / f"round-{number}"
    learnt = {"task": "reward", "start_from": plan.start, "data": {"path": str(folder / "all.jsonl")}}
    wanted = {"reward": str(folder / "reward"), "tokens": plan.tokens}
    taught = {"task": "prefer", "start_from": plan.start, "data": {"path": str(plan.prompts)}, "prefer": wanted}
    reward, policy = validated(RewardRecipe, learnt, where="loop"), validated(PreferRecipe, taught, where="loop")
    return override(reward, plan.reward_settings), override(policy, plan.settings)


def _trained(row: Task, recipe: Recipe, out: Path, follow: Follow, device: torch.device) -> None:
    """Trains, or continues, where that is not done already."""
    if not (out / "README.md").is_file():  # what a training writes last
        follow(train(row, recipe, out, device=device))


def _scores(run: Path) -> dict[str, float]:
    return next(iter(files.read_json(run / "scores.json")["scores"].values()))
