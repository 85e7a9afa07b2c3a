"""Models that learn to be preferred: that they do, that a training that was interrupted gives the same bits, and what
is refused."""

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from accelerator import accelerator
from cases import BEGUN, METHODS, PREFER, PROMPTED, PROMPTS, preferring, save_start
from heedful.apply.inference import for_inference
from heedful.data.parts import Parts
from heedful.data.text.judgements import Judgement, conversation
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError, MissingError, NonFiniteError
from heedful.look.draw import panels
from heedful.models.actor_critic import ActorCritic, ActorCriticConfig
from heedful.models.lm import LM
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.run.events import Finished, Note, Trained
from heedful.run.recipe import row_of
from heedful.run.restore import restore_model
from heedful.tasks.prefer.learning import Memory, RolloutTask
from heedful.tasks.prefer.recipe import PreferSection
from heedful.tasks.prefer.rewards import NormalisedReward, reward_named
from heedful.tasks.prefer.rollouts import judge_all, make_answers, rows_of
from heedful.tasks.recipes import build
from heedful.tasks.reward.prompting import Prompting
from heedful.training.loss import Loss
from heedful.verbs.train import train
from trainer import ends

RULES = "def vowels(prompt, answer):\n    return sum(map(answer.count, 'aeio')) / max(1, len(answer))\n"
RAISING = "def raises(prompt, answer):\n    return 1 / 0\ndef one(prompt):\n    return 1\n"
JUDGED = [Judgement(prompt, ("aa", "bb", "cc"), ((0,), (1, 2))) for prompt in PROMPTS]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_start(tmp_path_factory.mktemp("prefer") / "start")


def learn(start: Path, out: Path, method: str = "ppo", *, corpus: Any = PROMPTED, **changes: Any) -> list[Any]:
    return list(train(preferring(start, method, **changes), out, corpus=corpus))


@pytest.fixture(scope="module")
def straight(start: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run by each method, never interrupted."""
    folder = tmp_path_factory.mktemp("straight")
    for method in METHODS:
        learn(start, folder / method, method)
    return {method: folder / method for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_the_run_is_a_language_model(method: str, straight: dict[str, Path], start: Path) -> None:
    model = heedful.load(straight[method], heedful.LanguageModel)
    begun = heedful.load(start, heedful.LanguageModel)
    assert model.about == begun.about
    assert model.model.config == begun.model.config
    assert model.generate("ba", tokens=3)[0].text
    assert model.likelihood("ba").nats != begun.likelihood("ba").nats
    assert json.loads((straight[method] / "scores.json").read_text())["scores"]["test"]["reward"] >= 0


@pytest.mark.parametrize("method", METHODS)
def test_what_is_to_be_known_is_written_down(method: str, straight: dict[str, Path]) -> None:
    rows = [json.loads(line) for line in (straight[method] / "metrics.jsonl").read_text().splitlines()]
    measured = [row for row in rows if "valid_loss" in row]
    assert [row["step"] for row in measured] == [4, 8, 9]
    assert all({"valid_reward", "valid_kl", "valid_entropy", "valid_length"} <= row.keys() for row in measured)
    assert all(row["valid_kl"] >= 0 for row in measured)
    assert (straight[method] / "samples" / "step-9.txt").read_text().startswith("ka\n")
    card = (straight[method] / "README.md").read_text()
    assert "| before training | " in card
    assert "| asked | before | reward | after | reward |" in card


def test_the_training_tells_reward_kl_entropy_and_clip_fraction(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.run.train.panels", panels)
    learn(start, tmp_path / "run", steps=20, eval_every=20)
    (row,) = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()][:1]
    assert {"reward", "kl", "entropy", "clip_fraction", "length", "value_loss"} <= row.keys()
    assert 0 <= row["reward"] <= 1
    assert 0 <= row["clip_fraction"] <= 1
    assert 1 <= row["length"] <= 5


@pytest.mark.parametrize(("method", "steps"), [("ppo", 32), ("grpo", 20), ("dpo", 30), ("best-of-n", 30)])
def test_the_reward_rises(method: str, steps: int, start: Path, tmp_path: Path) -> None:
    plan: dict[str, Any] = {"rollouts": 32, "batch": 16, "eval_answers": 48, "kl": 0.0, "lr": 1e-2}
    learn(start, tmp_path / "run", method, steps=steps, eval_every=steps, save_every=steps, **plan)
    learn(start, tmp_path / "none", method, steps=1, eval_every=1, save_every=1, **(plan | {"lr": 1e-9}))
    before, after = (
        json.loads((tmp_path / name / "scores.json").read_text())["scores"]["test"] for name in ("none", "run")
    )
    assert after["reward"] > before["reward"] + 0.2
    assert after["kl"] > 0.1
    assert before["kl"] < 1e-3


def test_the_penalty_holds_it_near_to_where_it_began(start: Path, tmp_path: Path) -> None:
    plan: dict[str, Any] = {"steps": 24, "eval_every": 24, "rollouts": 32, "batch": 16, "eval_answers": 48, "lr": 1e-2}
    for kl in (0.0, 3.0):
        learn(start, tmp_path / str(kl), kl=kl, **plan)
    free, held = (
        json.loads((tmp_path / str(kl) / "scores.json").read_text())["scores"]["test"]["kl"] for kl in (0.0, 3.0)
    )
    assert held < free / 2


def test_training_is_set_back_where_it_is_asked_to(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, calls = RolloutTask.loss, iter(range(1, 100))

    def loss(task: RolloutTask, model: Any, batch: Any) -> Loss:
        made = plain(task, model, batch)
        return Loss(made.total * math.nan, made.count) if next(calls) == 7 else made

    monkeypatch.setattr(RolloutTask, "loss", loss)
    told = learn(start, tmp_path / "run", non_finite="rollback")
    assert any("back to step 4" in event.text for event in told if isinstance(event, Note))
    assert isinstance(told[-1], Finished)


def test_a_reward_that_is_not_finite_is_told(start: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def bad(prompt, answer):\n    return float('nan')\n")
    with pytest.raises(NonFiniteError, match=r"the reward of .* is nan"):
        learn(start, tmp_path / "run", reward=f"{tmp_path / 'bad.py'}:bad")


def test_a_damaged_model_is_made_again(straight: dict[str, Path], start: Path, tmp_path: Path) -> None:
    """Of a checkpoint that holds its values too."""
    learn(start, tmp_path / "run", eval_every=9)
    before = heedful.load(tmp_path / "run", heedful.LanguageModel).likelihood("ba").nats
    (tmp_path / "run" / "model.safetensors").write_bytes(b"broken")
    assert restore_model(tmp_path / "run", print).step == 9
    assert heedful.load(tmp_path / "run", heedful.LanguageModel).likelihood("ba").nats == before


def policy() -> tuple[ActorCritic, Prompting]:
    tokenizer = train_tokenizer(PROMPTS, kind="chars", size=300)
    row = row_of(LANGUAGE_MODELS, build({"task": "generate", "model": BEGUN}, where="test"))
    config = lm_config(row, vocab_size=tokenizer.size)
    return ActorCritic(ActorCriticConfig(lm=config)).eval(), Prompting(tokenizer, {})


def test_an_answer_is_as_likely_as_the_model_that_drew_it_held_it() -> None:
    model, prompting = policy()
    prompts = prompting.prompts(["ba", "d", "geko"])
    answers = make_answers(model, prompts, [1, 2, 3], tokens=6, temperature=1.0, end=2, forbidden=())
    rows = rows_of(prompts, answers, pad=0)
    found = judge_all(model, rows, temperature=1.0)
    for i, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        with torch.no_grad():
            logs = model.lm(torch.tensor([[*prompt, *answer]])).log_softmax(-1)[0]
        alone = [float(logs[len(prompt) + t - 1, token]) for t, token in enumerate(answer)]
        first = len(prompt) - 1
        torch.testing.assert_close(found.log_probs[i, first : first + len(answer)].tolist(), alone, rtol=0, atol=1e-5)
        assert not found.log_probs[i, :first].any()
        assert not found.log_probs[i, first + len(answer) :].any()


def test_a_model_whose_weights_are_laid_out_already_answers_too(tmp_path: Path) -> None:
    """As the finished one does, when it is scored: from some width on, its matrices cannot be copied."""
    tokenizer = train_tokenizer(PROMPTS, kind="chars", size=300)
    wide = BEGUN | {"d_model": 256}
    row = row_of(LANGUAGE_MODELS, build({"task": "generate", "model": wide}, where="test"))
    model = LM(lm_config(row, vocab_size=tokenizer.size)).eval()
    options: dict[str, Any] = {"tokens": 6, "temperature": 1.0, "end": 2, "forbidden": (0, 1)}
    prompts = Prompting(tokenizer, {}).prompts(PROMPTS)
    learning = make_answers(model, prompts, range(len(prompts)), **options)
    rows = rows_of(prompts, learning, pad=0)
    before = judge_all(model, rows, temperature=1.0)
    packed = for_inference(model)
    assert make_answers(packed, prompts, range(len(prompts)), **options) == learning
    torch.testing.assert_close(judge_all(packed, rows, temperature=1.0), before, rtol=0, atol=1e-5)


def test_answers_do_not_depend_on_those_beside_them() -> None:
    model, prompting = policy()
    prompts = prompting.prompts(PROMPTS)
    options: dict[str, Any] = {"tokens": 6, "temperature": 1.0, "end": 2, "forbidden": (0, 1)}
    together = make_answers(model, prompts, range(len(prompts)), **options)
    alone = [make_answers(model, [ids], [seed], **options)[0] for seed, ids in enumerate(prompts)]
    assert together == alone
    assert not {0, 1} & {token for answer in together for token in answer}


def rollout_task(model: LM, prompting: Prompting, **plan: Any) -> RolloutTask:
    section = PreferSection(**(PREFER | plan))

    def reward(prompts: Any, answers: Any) -> list[float]:
        return [float(len(answer)) for answer in answers]

    named: dict[str, Any] = {"seed": 1, "prompting": prompting, "reference": model, "reward": reward}
    return RolloutTask(PROMPTS, section, memory=Memory(), **named)


def test_every_prompt_is_answered_once_before_any_is_again() -> None:
    model, prompting = policy()
    task = rollout_task(model.lm, prompting, rollouts=5)
    asked = [number for epoch in range(16) for number in task.asked(epoch)]
    assert all(sorted(asked[i : i + 16]) == list(range(16)) for i in range(0, 80, 16))
    grouped = rollout_task(model.lm, prompting, method="grpo", rollouts=8, group=4).asked(0)
    assert grouped[:4] == [grouped[0]] * 4
    assert len(set(grouped)) == 2


def test_at_first_no_ratio_is_held_and_there_is_no_divergence() -> None:
    model, prompting = policy()
    task = rollout_task(model.lm, prompting)
    loss = task.loss(model, task.batches(0, model)[0])
    assert loss.beside["clip_fraction"].total == 0
    assert loss.beside["kl"].total == pytest.approx(0, abs=1e-5)


def test_the_weight_of_the_penalty_adapts() -> None:
    model, prompting = policy()
    other, _ = policy()
    task = rollout_task(other.lm, prompting, kl=0.1, kl_target=1e-6)
    task.batches(0, model)
    task.batches(1, model)
    assert task.memory.made is not None
    assert task.memory.made.kl == pytest.approx(0.1 * 1.02**2)


def test_of_answers_that_are_all_alike_nothing_is_learnt() -> None:
    model, prompting = policy()
    for method in ("grpo", "dpo", "best-of-n"):
        task = rollout_task(model.lm, prompting, method=method, group=4, kl=0.0)
        task.reward = lambda prompts, answers: [1.0] * len(answers)
        for batch in task.batches(0, model.lm):
            model.zero_grad()
            task.loss(model.lm, batch).total.backward()
            assert not any(p.grad.any() for p in model.lm.parameters() if p.grad is not None), method


def test_steps_that_learn_nothing_are_logged(start: Path, tmp_path: Path) -> None:
    """Twenty of them, which is what a line of metrics.jsonl is the mean of."""
    (tmp_path / "rules.py").write_text("def same(prompt, answer):\n    return 1\n")
    plan: dict[str, Any] = {"reward": f"{tmp_path / 'rules.py'}:same", "steps": 20, "eval_every": 20, "save_every": 20}
    learn(start, tmp_path / "run", "best-of-n", **plan)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["train_loss"] for row in rows if "train_loss" in row] == [0.0]


@pytest.mark.parametrize(
    ("method", "counted"),
    [("ppo", "tokens of answers"), ("best-of-n", "tokens of answers"), ("grpo", "answers"), ("dpo", "pairs")],
)
def test_the_speed_is_of_what_the_loss_is_a_mean_over(method: str, counted: str, start: Path, tmp_path: Path) -> None:
    events = learn(start, tmp_path / "run", method, steps=1)
    (told,) = (event for event in events if isinstance(event, Trained))
    assert told.counted == counted
    plan = preferring(start, method).prefer
    assert told.step.count <= (plan.tokens if "tokens" in counted else 1) * plan.batch


def test_judgements_are_learnt_without_a_reward(start: Path, tmp_path: Path) -> None:
    corpus = Parts(JUDGED[:12], JUDGED[12:14], {"test": JUDGED[14:]}, "made")
    plan: dict[str, Any] = {"reward": "", "steps": 30, "eval_every": 30, "save_every": 10, "lr": 1e-2, "batch": 8}
    learn(start, tmp_path / "run", "dpo", corpus=corpus, **plan)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]["test"]
    assert scores["pair_accuracy"] == 1.0
    assert scores["loss"] < math.log(2) / 2
    before = next(line for line in (tmp_path / "run" / "README.md").read_text().splitlines() if "before tr" in line)
    assert before.endswith(" 0.6931 | - |")
    stopped = train(preferring(start, "dpo", **plan), tmp_path / "again", corpus=corpus)
    for event in stopped:
        if isinstance(event, Trained) and event.step.step == 15:
            break
    stopped.close()
    learn(start, tmp_path / "again", "dpo", corpus=corpus, **plan)
    assert ends(tmp_path / "again") == ends(tmp_path / "run")


def test_a_learnt_reward_is_normalised_over_answers_of_the_start() -> None:
    """Whatever its scale is: mean 0, variance 1, and nothing where all are alike."""
    asked: list[None] = []

    def made() -> tuple[list[str], list[str]]:
        asked.append(None)
        return PROMPTS[:4], ["a", "aa", "aaa", "aaaa"]

    for scale, shift in ((1.0, 0.0), (40.0, -3.0)):
        plain = lambda prompts, answers: [scale * len(answer) + shift for answer in answers]  # noqa: B023, E731
        reward = NormalisedReward(plain, made)
        assert reward(*made()) == pytest.approx([-1.5 / 1.25**0.5, -0.5 / 1.25**0.5, 0.5 / 1.25**0.5, 1.5 / 1.25**0.5])
        assert reward(["b"], ["aaaaaa"]) == pytest.approx([3.5 / 1.25**0.5])
    assert len(asked) == 4  # once by each reward
    assert NormalisedReward(lambda prompts, answers: [3.0] * len(answers), made)(["b"], ["a"]) == [0.0]


def test_who_rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules.py").write_text(RULES + "many = 3\ndef no(prompt, answer):\n    return 'good'\n" + RAISING)
    (tmp_path / "said.py").write_text(
        "import sys, json\nfor line in sys.stdin:\n    print(len(json.loads(line)['answer']))\n"
    )
    (tmp_path / "torn.py").write_text("def here(prompt\n")
    (tmp_path / "broken.py").write_text("known = {}\nknown['a']\n")
    monkeypatch.chdir(tmp_path)
    asked = ["b", '[{"role": "user", "content": "hi"}]'], ["ab", "abcd"]
    for name in ("rules:vowels", "rules.py:vowels", f"{tmp_path / 'rules.py'}:vowels"):
        found = reward_named(name)
        assert found is not None
        assert found(*asked) == [0.5, 0.25]
    (tmp_path / "told.py").write_text("def kind(prompt, answer):\n    return float(prompt[0]['role'] == 'user')\n")
    told = reward_named("told:kind")
    assert told is not None
    assert told(asked[0][1:], asked[1][1:]) == [1.0]
    command = reward_named(f"command: {shlex.quote(sys.executable)} said.py")
    assert command is not None
    assert command(*asked) == [2.0, 4.0]
    assert reward_named(str(tmp_path)) is None
    before = list(sys.path)
    for name, kind, what in (
        ("nothing:here", MissingError, "cannot be imported"),
        ("rules:many", MissingError, "no such function"),
        ("rules", MissingError, "no such folder, and no function or command"),
        ("no.py:here", MissingError, "no such file"),
        ("command:", InputError, "an empty command"),
        ("command: wc 'x", InputError, "cannot be split into words"),
        ("torn.py:here", InputError, r"(?m)torn.py:here: raises SyntaxError: .*\(torn.py, line 1\)$"),
        ("broken.py:here", InputError, r"(?m)broken.py:here: raises KeyError: 'a' \(broken.py, line 2\)$"),
    ):
        with pytest.raises(kind, match=what):
            reward_named(name)
    for name, what in (
        ("rules:no", "gives 'good'"),
        ("rules:raises", r"(?m)rules:raises: raises ZeroDivisionError: division by zero \(.*rules.py, line 7\)$"),
        ("rules:one", r"(?m)rules:one: raises TypeError: one\(\) takes 1 positional argument but 2 were given$"),
        ("command: false", "ended with 1"),
        ("command: true", "0 words for 2 answers"),
        ("command: not-a-program", "cannot be run"),
    ):
        named = reward_named(name)
        assert named is not None
        with pytest.raises(InputError, match=what):
            named(*asked)
    assert sys.path == before


def test_what_cannot_be_is_refused_before_the_first_step(start: Path, tmp_path: Path) -> None:
    for changes, what in (
        ({"reward": ""}, "ppo learns from a reward"),
        ({"method": "grpo", "group": 1}, "compares answers to the same prompt"),
        ({"tokens": 40}, "a prompt and the 40 tokens of an answer are 42 tokens"),
        ({"reward": str(start)}, "not a model of heed train reward"),
    ):
        method = changes.pop("method", "ppo")
        with pytest.raises(InputError, match=what):
            learn(start, tmp_path / "run", method, **changes)
        assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="no model to begin with"):
        list(train(build({"task": "prefer"}, where="test"), tmp_path / "run", corpus=PROMPTED))
    judged = Parts(JUDGED, JUDGED, {}, "made")  # answers are made where it is measured
    with pytest.raises(InputError, match="a prompt and the 40 tokens of an answer are 42 tokens"):
        learn(start, tmp_path / "run", "dpo", reward="", tokens=40, corpus=judged)
    talk = Parts(['[{"role": "user", "content": "hi"}]'] * 3, PROMPTS, {}, "made")
    with pytest.raises(InputError, match="a prompt that is a conversation"):
        learn(start, tmp_path / "run", corpus=talk)


def test_a_chat_model_is_preferred_as_one(start: Path, tmp_path: Path) -> None:
    """Its prompts are conversations, written by its template; it stays a chat model."""
    asked = [({"role": "user", "content": f"say {a}"}, {"role": "assistant", "content": f"{a}{a} o"}) for a in "bdgk"]
    chats = Parts([*asked * 4], [*asked], {}, "made")
    plan = {"steps": 2, "eval_every": 2, "tokens": 64, "precision": "fp32"}
    chat = build(
        {"task": "chat", "model": BEGUN | {"context_length": 48}, "data": {"tokenizer": "chars"}, "train": plan},
        where="x",
    )
    list(train(chat, tmp_path / "chat", corpus=chats))
    talk = conversation([("user", "say b"), ("assistant", "bb o"), ("user", "say d")])
    prompts = ["say b", "say d", talk]
    judged = Parts(
        [Judgement(prompt, ("oo", "b"), ((0,), (1,))) for prompt in prompts * 2],
        *[[Judgement(talk, ("o", "b"), ((0,), (1,)))], {}],
        "made",
    )
    rewarded = build({"task": "reward", "start_from": str(tmp_path / "chat"), "train": plan}, where="test")
    list(train(rewarded, tmp_path / "reward", corpus=judged))
    reward = heedful.load(tmp_path / "reward", heedful.RewardModel)
    assert reward.reward("oo", talk) != reward.reward("oo", "say b")
    corpus = Parts(prompts, prompts, {}, "made")
    plan = {"reward": str(tmp_path / "reward"), "steps": 4, "tokens": 6}
    learn(tmp_path / "chat", tmp_path / "run", corpus=corpus, **plan)
    model = heedful.load(tmp_path / "run", heedful.ChatModel)
    assert model.written.template == heedful.load(tmp_path / "chat", heedful.ChatModel).written.template
    assert model.chat("say b", tokens=4).role == "assistant"
    assert (tmp_path / "run" / "samples" / "step-4.txt").read_text().startswith("say b\n")
    assert "Answers in a conversation, as it was rewarded for." in (tmp_path / "run" / "README.md").read_text()
    learn(tmp_path / "chat", tmp_path / "judged", "dpo", reward="", steps=2, eval_every=2, tokens=6, corpus=judged)
    events = train(
        preferring(tmp_path / "chat", reward=str(tmp_path / "reward"), steps=4, tokens=6),
        tmp_path / "cut",
        corpus=corpus,
    )
    for event in events:
        if isinstance(event, Trained) and event.step.step == 3:
            break
    events.close()
    learn(tmp_path / "chat", tmp_path / "cut", corpus=corpus, **plan)
    assert ends(tmp_path / "cut") == ends(tmp_path / "run")


@pytest.mark.parametrize("method", ["ppo", "dpo"])
def test_it_learns_on_another_device_what_it_does_on_a_cpu(
    method: str, straight: dict[str, Path], start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with accelerator() as device:
        monkeypatch.setattr("heedful.run.train.best_device", lambda: torch.device(device))
        learn(start, tmp_path / "run", method)
    here, there = (
        json.loads((folder / "scores.json").read_text())["scores"]["test"]
        for folder in (straight[method], tmp_path / "run")
    )
    assert there == pytest.approx(here, rel=1e-3, abs=1e-3)
