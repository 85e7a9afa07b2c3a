"""Rewards that are learnt from judgements, and a policy that learns from one."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import heedful
from heedful.cli import app
from heedful.data.parts import Parts
from heedful.data.text.judgements import Judgement, order_by
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import HeedError, InputError
from heedful.models.classifier import Classifier, ClassifierConfig
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.run.events import Note
from heedful.run.recipe import row_of
from heedful.tasks.recipes import build
from heedful.tasks.reward.prompting import Prompting, cut_to
from heedful.tasks.reward.train import RankedAnswers, RewardTask, reward_batch
from heedful.tasks.reward.use import in_prompt_and_answer
from heedful.verbs.check import check
from heedful.verbs.train import train

WORDS = ["ba", "de", "gi", "ko"]
PROMPTS = [f"{a}{b}" for a in WORDS for b in WORDS]
ANSWERS = (" a", " bb", " aaa", " ab")
JUDGED = [
    Judgement(prompt, ANSWERS, order_by([float(text.count("a")) for text in ANSWERS]), "rule") for prompt in PROMPTS
]
CORPUS = Parts(JUDGED[:12], JUDGED[12:14], {"test": JUDGED[14:]}, "made")
MODEL = {"d_model": 16, "n_heads": 2, "n_layers": 1, "context_length": 16, "dropout": 0.0}
TRAIN = {"steps": 30, "eval_every": 15, "save_every": 10, "lr": 1e-2, "tokens": 256, "precision": "fp32"}


def learn(out: Path, corpus: Any = CORPUS, **changes: Any) -> list[Any]:
    return list(train(recipe(**changes), out, corpus=corpus))


def recipe(**changes: Any) -> Any:
    sections = {"model": MODEL, "data": {"tokenizer": "chars"}, "train": TRAIN} | changes
    return build({"task": "reward"} | sections, where="test")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reward") / "run"
    learn(out)
    return out


@pytest.mark.parametrize("by", ["rankings", "pairs"])
def test_it_learns_what_is_preferred(by: str, tmp_path: Path) -> None:
    told = learn(tmp_path / "run", reward={"by": by})
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]["test"]
    assert scores["pair_accuracy"] == 1.0
    assert scores["pairs"] == 10  # of four answers, two of which are alike
    assert scores["calibration_error"] < 0.3
    assert {"length_correlation", "accuracy_shorter", "accuracy_longer"} <= scores.keys()
    assert "12 judgements, 60 pairs" in "".join(event.text for event in told if isinstance(event, Note))
    sample = (tmp_path / "run" / "samples" / "step-30.txt").read_text()
    assert sample.startswith("koba\n    1 ")


def test_a_reward_is_used(run: Path) -> None:
    model = heedful.load(run, heedful.RewardModel)
    best, worst = model.reward([" aaa", " bb"], ["bade", "bade"])
    assert best > worst
    assert model.reward(" aaa", "bade") == pytest.approx(best, abs=1e-5)
    assert model.measure(JUDGED)["pair_accuracy"] > 0.95
    assert all(law.holds for law in check(run))
    with pytest.warns(UserWarning, match="only 16 of its 42 tokens were read"):
        model.reward("a" * 40)


def test_what_is_asked_twice_is_read_once(run: Path) -> None:
    """In another batch, beside longer answers, it would have another reward by rounding, and not be its own equal."""
    model, read = heedful.load(run, heedful.RewardModel), list[int]()
    model.model.register_forward_pre_hook(lambda module, given: read.append(len(given[0])))
    found = model.reward([" aaa", " bb", " aaa", " aaabb"] * 3, ["bade"] * 12)
    assert sum(read) == 3
    assert found == found[:4] * 3
    assert found[0] == found[2]


def test_it_is_used_from_the_command_line(run: Path, tmp_path: Path) -> None:
    def heed(*words: str, given: str | None = None) -> list[Any]:
        result = CliRunner().invoke(app, [*words, "--device", "cpu"], input=given, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    first, second = map(json.loads, heed("reward", str(run), "bade", " aaa", " bb", "--json"))
    assert (first["prompt"], first["answer"]) == ("bade", " aaa")
    assert first["reward"] > second["reward"]
    (table,) = map(json.loads, heed("reward", str(run), "bade", "a\tb", "--json"))
    assert (table["prompt"], table["answer"]) == ("bade", "a\tb")
    (tmp_path / "j.jsonl").write_text("".join(f"{json.dumps(one.record())}\n" for one in JUDGED))
    (told,) = heed("eval", str(run), "--data", str(tmp_path / "j.jsonl"), "--json")
    assert '"pair_accuracy": 0.9' in told


def test_a_line_is_a_prompt_and_an_answer() -> None:
    assert in_prompt_and_answer("a\tb\tc") == ("a\tb", "c")
    assert in_prompt_and_answer("alone") == ("", "alone")
    assert in_prompt_and_answer('{"prompt": "a", "answer": "b"}') == ("a", "b")
    talk = '[{"role": "user", "content": "hi"}]'
    assert in_prompt_and_answer(f'{{"prompt": {talk}, "answer": "b"}}') == (talk, "b")
    with pytest.raises(InputError, match="no prompt and answer"):
        in_prompt_and_answer('{"prompt": "a"}')


def test_a_judgement_of_fewer_answers_beside_one_of_more_counts_the_same() -> None:
    tokenizer = train_tokenizer([*PROMPTS, *ANSWERS], kind="chars", size=300)
    prompting = Prompting(tokenizer, {})
    three = RankedAnswers(prompting.answered(["ba"] * 3, [" a", " bb", " aaa"]), [1, 2, 0])
    two = RankedAnswers(prompting.answered(["de"] * 2, [" a", " bbbb"]), [0, 1])
    row = row_of(LANGUAGE_MODELS, recipe())
    model = Classifier(ClassifierConfig(lm=lm_config(row, vocab_size=tokenizer.size), answers=None, dropout=0.0))
    task = RewardTask([], recipe().train)
    both = task.loss(model, reward_batch([three, two]))
    each = [task.loss(model, reward_batch([one])) for one in (three, two)]
    assert both.count == sum(one.count for one in each) == 3
    assert both.total.item() == pytest.approx(sum(one.total.item() for one in each), rel=1e-5)


def test_an_answer_is_what_the_prompt_is_not() -> None:
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 20, kind="bpe", size=320)
    prompting = Prompting(tokenizer, {})
    (row,) = prompting.answered(["the c"], ["at sat"])
    assert prompting.text(row.prompt(), row.answer()).endswith("at sat")
    assert row.ids == [tokenizer.bos, *tokenizer.encode_whole(["the cat sat"])[0], tokenizer.bos]
    assert row.prompt() + row.answer() == row.ids
    cut = cut_to(row, 3)
    assert cut.ids == row.ids[-3:]
    assert cut.asked >= 1


def test_it_begins_with_a_language_model_and_rewards_a_policy(tmp_path: Path) -> None:
    """Which then says what is rewarded more, as the reward sees it."""
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": p + a}) + "\n" for p in PROMPTS for a in ANSWERS))
    (tmp_path / "j.jsonl").write_text("".join(f"{json.dumps(one.record())}\n" for one in JUDGED))
    (tmp_path / "p.txt").write_text("".join(f"{prompt}\n" for prompt in PROMPTS))
    start, reward, policy = (str(tmp_path / name) for name in ("start", "reward", "policy"))
    few = {"train.precision": "fp32", "train.lr": 0.01}

    def heed(*words: str, **settings: object) -> None:
        said = [word for key, value in settings.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]
        more = [word for key, value in few.items() for word in ("--set", f"{key}={value}")]
        result = CliRunner().invoke(app, ["train", *words, *more, *said, "--device", "cpu"], catch_exceptions=False)
        assert result.exit_code == 0, result.output

    model = {f"model__{key}": value for key, value in MODEL.items()}
    plain = {"data__tokenizer": "chars", "data__across": False, "train__tokens": 512, "train__steps": 60}
    heed("generate", "--data", str(texts), "--out", start, **model, **plain)
    heed("reward", "--data", str(tmp_path / "j.jsonl"), "--from", start, "--out", reward, train__steps=40)
    words = ["--method", "ppo", "--from", start, "--reward", reward, "--data", str(tmp_path / "p.txt"), "--out", policy]
    plan = {"tokens": 5, "rollouts": 32, "batch": 16, "kl": 0.0, "eval_answers": 16}
    heed("prefer", *words, train__steps=48, **{f"prefer__{key}": value for key, value in plan.items()})
    judge = heedful.load(reward, heedful.RewardModel)

    def worth(run: str) -> float:
        made = heedful.load(run, heedful.LanguageModel).generate(PROMPTS, tokens=5, temperature=1.0)
        return sum(judge.weigh(PROMPTS, [own[0].text for own in made])[0])

    assert worth(policy) > worth(start)
    assert json.loads((tmp_path / "policy" / "data.json").read_text())["reward"] == reward
    (tmp_path / "reward" / "model.safetensors").write_bytes((tmp_path / "start" / "model.safetensors").read_bytes())
    with pytest.raises(HeedError):  # another reward than the one that this run was begun with
        heed("prefer", *words, train__steps=60, **{f"prefer__{key}": value for key, value in plan.items()})
