"""Rewards of answers: by a trained reward model, a user's function, or a command."""

import json
import math
import re
import runpy
import shlex
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from heedful.data.text.judgements import prompt_value
from heedful.errors import InputError, MissingError, NonFiniteError

COMMAND = "command:"
FUNCTION = re.compile(r"(?P<module>[\w.]+|.+\.py):(?P<name>\w+)")
FIX = 'name a run of heed train reward, module:function, or "command: WORDS"'


# From prompts and an answer to each, a number for each: the larger, the better. Raises NonFiniteError.
Reward = Callable[[Sequence[str], Sequence[str]], list[float]]


class FunctionReward:
    """The reward by a user's `function(prompt, answer)`, in a module on Python's path or in the current folder, or in a
    file. A conversation is passed as its list of messages. The function must be deterministic: a training that
    continues calls it again."""

    def __init__(self, module: str, name: str) -> None:
        self.where = f"{module}:{name}"
        here = str(Path.cwd())
        sys.path.insert(0, here)
        try:
            found = _names_in(module)
        except ImportError as error:
            raise MissingError(f"cannot be imported: {error}", where=self.where, fix="check its name") from None
        except FileNotFoundError:
            raise MissingError("no such file", where=module, fix="check the path") from None
        except Exception as error:
            raise _of_the_user(error, self.where) from error
        finally:
            sys.path.remove(here)
        if not callable(found.get(name)):
            raise MissingError("no such function", where=self.where, fix=f"def {name}(prompt, answer): ...")
        self.function: Callable[[object, str], float] = found[name]

    def __call__(self, prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
        pairs = zip(prompts, answers, strict=True)
        try:
            rewards = [self.function(prompt_value(prompt), answer) for prompt, answer in pairs]
        except Exception as error:
            raise _of_the_user(error, self.where) from error
        return finite(rewards, answers, self.where)


def _of_the_user(error: Exception, where: str) -> InputError:
    """An error that names what the user's code has raised, and in which line."""
    lines = [(one.filename, one.lineno) for one in traceback.extract_tb(error.__traceback__)]
    own = [f" ({name}, line {number})" for name, number in lines if name != __file__ and not name.startswith("<")]
    what = f"raises {type(error).__name__}: {' '.join(str(error).split())}{own[-1] if own else ''}"
    return InputError(what, where=where, fix="mend it; the same command then continues")


def _names_in(module: str) -> dict[str, Any]:
    if module.endswith(".py"):
        return runpy.run_path(module)
    return vars(sys.modules[module]) if module in sys.modules else runpy.run_module(module)


class CommandReward:
    """The reward by a command, which reads {"prompt": ..., "answer": ...} in each line, and writes a number for
    each."""

    def __init__(self, words: str) -> None:
        self.where = f"{COMMAND} {words.strip()}"
        try:
            self.words = shlex.split(words)
        except ValueError as error:
            raise InputError(
                f"cannot be split into words: {error}", where=self.where, fix="close what is open"
            ) from None
        if not self.words:
            raise InputError("an empty command", where=COMMAND, fix=FIX)

    def __call__(self, prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
        pairs = zip(prompts, answers, strict=True)
        rows = [{"prompt": prompt_value(prompt), "answer": answer} for prompt, answer in pairs]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        try:
            ended = subprocess.run(self.words, input=lines.encode(), stdout=subprocess.PIPE, check=False)
        except OSError as error:
            raise InputError(f"cannot be run: {error.strerror}", where=self.where, fix="check the command") from None
        if ended.returncode:
            raise InputError(f"ended with {ended.returncode}", where=self.where, fix="see what it says above")
        said = ended.stdout.decode(errors="replace").split()
        try:
            rewards = [float(word) for word in said]
        except ValueError:
            rewards = []
        if len(rewards) != len(answers):
            what = f"{len(said):,} words for {len(answers):,} answers, expected a number for each"
            raise InputError(what, where=self.where, fix="print one number a line, and nothing else")
        return finite(rewards, answers, self.where)


class NormalisedReward:
    """A reward with mean 0 and variance 1 over some answers, so that the KL penalty has the same weight for any reward
    model: preferences do not determine the scale of a reward (Ziegler et al. 2019, section 2.1)."""

    def __init__(self, reward: Reward, made: Callable[[], tuple[list[str], list[str]]]) -> None:
        """`made` returns prompts and an answer to each by the model that training begins with; it is called once."""
        self.reward, self.made = reward, made

    def __call__(self, prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
        mean, deviation = self.scale
        return [(value - mean) / deviation for value in self.reward(prompts, answers)]

    @cached_property
    def scale(self) -> tuple[float, float]:
        """The mean and the standard deviation; the latter is 1 where all rewards are equal."""
        rewards = self.reward(*self.made())
        return fmean(rewards), pstdev(rewards) or 1.0


def reward_named(name: str) -> Reward | None:
    """The reward that a recipe names; None for the folder of a run. Raises InputError or MissingError."""
    if name.startswith(COMMAND):
        return CommandReward(name.removeprefix(COMMAND))
    if Path(name).is_dir():
        return None
    found = FUNCTION.fullmatch(name)
    if found is None:
        raise MissingError("no such folder, and no function or command", where=name, fix=FIX)
    return FunctionReward(found["module"], found["name"])


def finite(rewards: Sequence[object], answers: Sequence[str], where: str) -> list[float]:
    """The rewards as floats. Raises InputError for one that is not a number, and NonFiniteError."""
    found = []
    for value, answer in zip(rewards, answers, strict=True):
        if not isinstance(value, int | float):
            what = f"gives {value!r} for {answer[:40]!r}, expected a number"
            raise InputError(what, where=where, fix="return a float")
        if not math.isfinite(value):
            what = f"the reward of {answer[:40]!r} is {value}"
            raise NonFiniteError(what, where=where, fix="give a finite number for every answer")
        found.append(float(value))
    return found
