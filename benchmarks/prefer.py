"""What is learnt from rewards: that a rule puts right what was taught wrong, that a simulated ranker is followed, and
what becomes of a reward that is followed too far.

    python -m benchmarks.prefer sums --out runs/prefer
    python -m benchmarks.prefer ranker --out runs/prefer
    python -m benchmarks.prefer hacking --out runs/prefer
    python -m benchmarks.prefer generation --out runs/prefer

`sums`: success before and after each method, at equal generated tokens. `ranker`: how many of its preferences are
learnt, how often what is written then is preferred, and in a second round. `hacking`: the learnt reward and the true
one on the way, with and without the KL penalty, as figures and as a plot. `generation`: tokens a second of the answers
that PPO makes, beside `heed generate` on the same prompts and model, in turns. All of it is trained here from nothing,
once with each of the seeds.
"""

import argparse
import json
import random
import runpy
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import heedful
from benchmarks.sums import right, write_sums
from heedful.data.text.judgements import Judgement, order_by
from heedful.look.draw import panels, to_bytes
from heedful.run.recipe import Recipe
from heedful.run.tokenizers import read_tokenizers
from heedful.store.checkpoint import load_newest
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.prefer.rollouts import ROWS, make_answers
from heedful.tasks.reward.prompting import Prompting

ANSWERS, TURNS = 128, 25  # of every method: as many are made at a time, and so many times
METHODS = ("ppo", "grpo", "dpo", "best-of-n")
WORDS = ["ba", "de", "gi", "ko", "lu", "ma", "ne", "pi"]
GOOD, BAD = {"ba", "de", "gi"}, {"lu", "ma"}
SMALL = {"n_layers": 2, "d_model": 64, "n_heads": 4, "context_length": 48, "dropout": 0.0}
NOISE = 0.25  # of the ranker, in what it values
KL = 0.1  # weight of the penalty, of a reward whose deviation is 1 over answers of the start


def success(run: Path, prompts: Sequence[str], *, samples: int = 8) -> tuple[float, float]:
    """The share of sums that are right, drawn and greedily."""
    model = heedful.load(run, heedful.LanguageModel)
    found = []
    for temperature, count in ((1.0, samples), (0.0, 1)):
        made = model.generate(prompts, tokens=4, samples=count, temperature=temperature)
        found.append(fmean(right(each.prompt, each.text) for own in made for each in own))
    return found[0], found[1]


def recipe_in(name: str, **changes: Any) -> Recipe:
    """A recipe of the folder recipes/, with some of its keys changed, by section."""
    recipe = runpy.run_path(f"recipes/{name}.py")["recipe"].model_dump(mode="json")
    for section, own in changes.items():
        recipe[section] = {**recipe[section], **own} if isinstance(own, dict) else own
    task = recipe.pop("task")
    return heedful.recipe(task, **recipe)


def sums(out: Path, seeds: Iterable[int]) -> None:
    print("seed  method      drawn  greedy  KL (nats an answer)  answers  minutes")
    for seed in seeds:
        data = write_sums(out / f"data-{seed}", seed=seed)
        prompts = (data / "prompts.txt").read_text().splitlines()
        start = out / f"sums-{seed}"
        begun = heedful.train(
            recipe_in("sums", data={"path": str(data / "sums.jsonl")}, train={"seed": seed}), start, device="cpu"
        )
        tell(seed, "start", success(start, prompts), 0.0, 0, begun)
        for method in METHODS:
            name = "sums_ppo" if method == "ppo" else "sums_grpo"
            alone = method == "ppo"
            prefer = {"method": method, "passes": 4 if alone else 1, "group": None if alone else 8}
            changes: dict[str, Any] = {"data": {"path": str(data / "prompts.txt")}, "start_from": str(start)}
            plan = {"seed": seed, "steps": None, "epochs": TURNS}
            run = out / f"{method}-{seed}"
            done = heedful.train(recipe_in(name, prefer=prefer, train=plan, **changes), run, device="cpu")
            kl = next(iter(done.scores.values()))["kl"] if done else 0.0
            tell(seed, method, success(run, prompts), float(kl), ANSWERS * TURNS, done)


def tell(seed: int, name: str, found: tuple[float, float], kl: float, answers: int, done: Any) -> None:
    drawn, greedy = found
    minutes = 0.0 if done is None else done.minutes
    print(f"{seed:4}  {name:10}  {drawn:5.3f}  {greedy:6.3f}  {kl:19.2f}  {answers:7,}  {minutes:7.2f}", flush=True)


# A world whose true values are known: words that are liked, as long as they are not said again and again.


def value(answer: str) -> float:
    """What the ranker truly thinks of an answer: a good word is worth 1 the first time, and -1 every other time; a bad
    one -1."""
    seen: set[str] = set()
    total = 0.0
    for word in answer.split():
        total += (1.0 if word not in seen else -1.0) if word in GOOD else -1.0 if word in BAD else 0.0
        seen.add(word)
    return total


def write_world(folder: Path, *, seed: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)

    def text() -> str:
        asked = f"{draw.choice(WORDS)} {draw.choice(WORDS)}:"
        return asked + "".join(f" {draw.choice(WORDS)}" for _ in range(draw.randint(1, 5)))

    (folder / "texts.jsonl").write_text("".join(f"{json.dumps({'text': text()})}\n" for _ in range(6000)))
    (folder / "prompts.txt").write_text("".join(f"{a} {b}:\n" for a in WORDS for b in WORDS))
    return folder


def judged(model: LanguageModel, prompts: Sequence[str], *, seed: int, noise: float) -> list[Judgement]:
    """Four answers to each prompt, put in order by their values, with some noise."""
    draw = random.Random(f"judged {seed}")
    made = model.generate(prompts, tokens=24, samples=4, temperature=1.0, seed=seed)
    found = []
    for prompt, own in zip(prompts, made, strict=True):
        texts = tuple(dict.fromkeys(each.text for each in own))
        values = [value(text) + draw.gauss(0.0, noise) for text in texts]
        found.append(Judgement(prompt, texts, order_by([round(one, 1) for one in values]), "simulated"))
    return found


def write_judgements(path: Path, judgements: Iterable[Judgement]) -> Path:
    path.write_text("".join(f"{json.dumps(one.record())}\n" for one in judgements if one.decides))
    return path


def begin_world(out: Path, seed: int = 1) -> tuple[Path, list[str], Path]:
    """The folder of the data, the prompts, and the run that all begins with."""
    data = write_world(out / f"world-{seed}", seed=seed)
    start = out / f"world-start-{seed}"
    train = {"steps": 1200, "tokens": 1024, "lr": 3e-3, "precision": "fp32", "seed": seed}
    text = {"path": str(data / "texts.jsonl"), "tokenizer": "chars", "across": False}
    heedful.train(heedful.recipe("generate", model=SMALL, data=text, train=train), start, device="cpu")
    return data, (data / "prompts.txt").read_text().splitlines(), start


def learn_reward(path: Path, start: Path, out: Path, *, epochs: int = 20) -> dict[str, Any]:
    """As often over all judgements, however many rounds they are of."""
    train = {"epochs": epochs, "lr": 1e-3, "tokens": 2048, "precision": "fp32"}
    recipe = heedful.recipe("reward", start_from=str(start), data={"path": str(path)}, train=train)
    done = heedful.train(recipe, out, device="cpu")
    assert done is not None
    return dict(next(iter(done.scores.values())))


def policy_recipe(start: Path, reward: Path, data: Path, *, kl: float, steps: int, every: int | None = None) -> Recipe:
    prefer = {"method": "ppo", "reward": str(reward), "tokens": 24, "rollouts": 128, "batch": 32, "kl": kl}
    train = {"steps": steps, "lr": 5e-4, "eval_every": every, "save_every": every}
    path = {"path": str(data / "prompts.txt")}
    return heedful.recipe("prefer", start_from=str(start), data=path, prefer=prefer, train=train)


def answers_of(model: LanguageModel, prompts: Sequence[str], *, seed: int = 7) -> list[str]:
    made = model.generate(prompts, tokens=24, samples=4, temperature=1.0, seed=seed)
    return [each.text for own in made for each in own]


def win_rate(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """How often ours is worth more, ties counting half."""
    pairs = [(value(a), value(b)) for a, b in zip(ours, theirs, strict=True)]
    return fmean(0.5 if a == b else float(a > b) for a, b in pairs)


def ranker(out: Path, seeds: Iterable[int]) -> None:
    """Two rounds: each reward learns from the judgements of all so far, each policy from where the first began."""
    print("seed  round  judgements  pairs in order  calibration error  value  win rate  KL (nats an answer)")
    for seed in seeds:
        data, prompts, start = begin_world(out, seed)
        writer = begun = heedful.load(start, heedful.LanguageModel)
        before, judgements = answers_of(begun, prompts), list[Judgement]()
        held_out = write_judgements(out / f"held-out-{seed}.jsonl", judged(begun, prompts, seed=999, noise=0.0))
        print(f"{seed:4}  start  {fmean(map(value, before)):52.2f}", flush=True)
        for turn in (1, 2):
            judgements += judged(writer, prompts * 10, seed=100 * seed + turn, noise=NOISE)
            path = write_judgements(out / f"judgements-{seed}-{turn}.jsonl", judgements)
            reward, policy = out / f"reward-{seed}-{turn}", out / f"policy-{seed}-{turn}"
            learn_reward(path, start, reward)
            found = heedful.load(reward, heedful.RewardModel).evaluate(held_out)[held_out.name]
            done = heedful.train(policy_recipe(start, reward, data, kl=KL, steps=400), policy, device="cpu")
            assert done is not None
            kl = float(next(iter(done.scores.values()))["kl"])
            writer = heedful.load(policy, heedful.LanguageModel)
            after = answers_of(writer, prompts)
            print(
                f"{seed:4}  {turn:5}  {len(judgements):10,}  {found['pair_accuracy']:14.3f}  "
                f"{found['calibration_error']:17.3f}  {fmean(map(value, after)):5.2f}  {win_rate(after, before):8.3f}  "
                f"{kl:19.2f}",
                flush=True,
            )


def hacking(out: Path, seeds: Iterable[int]) -> None:
    for seed in seeds:
        hack(out, seed)


def hack(out: Path, seed: int) -> None:
    data, prompts, start = begin_world(out, seed)
    begun = heedful.load(start, heedful.LanguageModel)
    path = write_judgements(out / f"few-{seed}.jsonl", judged(begun, prompts[::4], seed=3, noise=NOISE))
    reward = out / f"reward-few-{seed}"
    learn_reward(path, start, reward, epochs=100)
    judge = heedful.load(reward, heedful.RewardModel)
    rows: dict[int, dict[str, Any]] = {}
    print("steps  KL penalty  reward  true value")
    for kl in (0.0, 0.3):
        name = "without" if not kl else "with"
        for steps in range(0, 401, 40):
            run = out / f"hacking-{seed}-{kl}"
            if steps:
                heedful.train(policy_recipe(start, reward, data, kl=kl, steps=steps, every=40), run, device="cpu")
            answers = answers_of(newest(run) if steps else begun, prompts)
            asked = [prompt for prompt in prompts for _ in range(4)]
            told, true = fmean(judge.weigh(asked, answers)[0]), fmean(map(value, answers))
            rows.setdefault(steps, {"step": steps}).update(
                {f"reward {name} penalty": told, f"value {name} penalty": true}
            )
            print(f"{steps:5}  {kl:10.2f}  {told:6.2f}  {true:10.2f}", flush=True)
    keys = {what: [f"{what} {how} penalty" for how in ("without", "with")] for what in ("reward", "value")}
    picture = out / f"hacking-{seed}.png"
    picture.write_bytes(to_bytes(panels([*rows.values()], keys), "png"))
    print(picture)


def newest(run: Path) -> LanguageModel:
    """The policy of a run's newest checkpoint, whichever was measured best."""
    saved = load_newest(run, print)
    tokenizers = read_tokenizers(run)
    assert saved is not None
    assert tokenizers is not None
    model = heedful.load(run, heedful.LanguageModel)
    weights = {name.removeprefix("lm."): own for name, own in saved.tensors("average.safetensors").items()}
    for name, parameter in model.model.named_parameters():
        parameter.data.copy_(weights[name])
    return model


def generation(out: Path, seeds: Iterable[int]) -> None:
    print("seed  PPO's answers (tokens/s)  heed generate  ratio of medians")
    for seed in seeds:
        ppo, generate = paces(out, seed)
        print(f"{seed:4}  {ppo:24,.0f}  {generate:13,.0f}  {ppo / generate:16.2f}", flush=True)


def paces(out: Path, seed: int, *, turns: int = 7) -> tuple[float, float]:
    """Tokens a second of both, in turns, of which the first one warms up."""
    _, prompts, start = begin_world(out, seed)
    model = heedful.load(start, heedful.LanguageModel)
    asked = [prompts[i % len(prompts)] for i in range(ANSWERS)]
    prompting = Prompting(model.tokenizer, {})
    ids = prompting.prompts(asked)
    make = partial(make_answers, tokens=24, temperature=1.0, end=prompting.end, forbidden=prompting.forbidden)

    def by_ppo(turn: int) -> int:
        return sum(map(len, make(model.model, ids, range(turn, turn + len(ids)))))

    def by_generate(turn: int) -> int:
        made = model.generate(asked, tokens=24, temperature=1.0, seed=turn, batch=ROWS)
        return sum(len(own[0].tokens) for own in made)

    rates: tuple[list[float], list[float]] = [], []
    for turn in range(turns + 1):
        for own, work in zip(rates, (by_ppo, by_generate), strict=True):
            begin = time.perf_counter()
            count = work(turn)
            own.append(count / (time.perf_counter() - begin))
    return median(rates[0][1:]), median(rates[1][1:])


PARTS: dict[str, Callable[[Path, Iterable[int]], None]] = {
    "sums": sums,
    "ranker": ranker,
    "hacking": hacking,
    "generation": generation,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--out", type=Path, default=Path("runs/prefer"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    PARTS[given.part](given.out, given.seeds)
