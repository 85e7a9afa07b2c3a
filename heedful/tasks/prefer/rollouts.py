"""Answers that a policy generates to prompts, and their log-probabilities.

N answers, L tokens of a row, T = L - 1 next-token positions.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.apply.inference import inference_copy
from heedful.data.tokenizer import Ids
from heedful.decode.continuous import Session
from heedful.decode.rules import NEVER
from heedful.decode.settings import Sampling
from heedful.errors import InputError
from heedful.models.actor_critic import ActorCritic
from heedful.models.lm import LM
from heedful.tasks.reward.prompting import Prompting
from heedful.training.policy import token_log_probabilities

Policy = LM | ActorCritic
ROWS = 64  # answers that are generated at a time
READ = 16384  # tokens that are read at a time


class AnswerRows(NamedTuple):
    """Prompts with their answers, padded on the right. `mask` is True where a token of `tokens[:, 1:]` belongs to the
    answer."""

    tokens: Int[Tensor, "N L"]
    mask: Bool[Tensor, "N T"]


class TokenJudgements(NamedTuple):
    """For each token of an answer (0 elsewhere): its log-probability (nats), the entropy of the distribution that it
    was drawn from, and the value of the tokens before it, where the policy has a value head."""

    log_probs: Float[Tensor, "N T"]
    entropy: Float[Tensor, "N T"]
    values: Float[Tensor, "N T"]


def language_model(policy: Policy) -> LM:
    return policy.lm if isinstance(policy, ActorCritic) else policy


def refuse_without_room(prompts: Sequence[Ids], tokens: int, context: int, *, setting: str) -> None:
    """Raises InputError for a prompt that leaves no room for an answer of `tokens` tokens; `setting` is the option that
    sets them, for the error."""
    longest = max(map(len, prompts))
    size = longest + tokens - 1
    if size > context:
        what = f"a prompt and the {tokens} tokens of an answer are {size:,} tokens"
        raise InputError(
            f"{what}, and the model reads at most {context:,}",
            fix=f"{setting}{max(1, context - longest + 1)}, or leave long prompts out",
        )


def make_answers(
    policy: Policy,
    prompts: Sequence[Ids],
    seeds: Sequence[int],
    *,
    tokens: int,
    temperature: float,
    end: int,
    forbidden: tuple[int, ...],
) -> list[Ids]:
    """Generates an answer of at most `tokens` tokens to each prompt, drawn with a seed of its own, in a continuous
    batch. An answer includes its end token, if it was generated. The policy does not change."""
    lm = language_model(policy)
    device = lm.head.weight.device
    writer = inference_copy(lm)
    longest = max(map(len, prompts))
    session = Session(writer, rows=ROWS, size=longest + tokens - 1, device=device, end=end, forbidden=forbidden)
    made: dict[int, Ids] = {}
    for ids, seed in zip(prompts, seeds, strict=True):
        made[session.add(ids, Sampling(temperature=temperature, seed=seed), tokens)] = []
    while len(session):
        for handle, token, log_probability, *_ in session.step():
            if log_probability != NEVER:
                made[handle].append(token)
    return [*made.values()]


def answers_in_words(
    policy: Policy,
    prompting: Prompting,
    prompts: Sequence[Ids],
    seeds: Sequence[int],
    *,
    tokens: int,
    temperature: float,
) -> tuple[list[Ids], list[str]]:
    """`make_answers` for a model with this prompting, and the answers' texts."""
    end, forbidden = prompting.end, prompting.forbidden
    made = make_answers(policy, prompts, seeds, tokens=tokens, temperature=temperature, end=end, forbidden=forbidden)
    return made, [prompting.text(*pair) for pair in zip(prompts, made, strict=True)]


def rows_of(prompts: Sequence[Ids], answers: Sequence[Ids], *, pad: int) -> AnswerRows:
    """The rows of prompts with their answers. Raises ValueError for an answer without a token."""
    T = max(len(prompt) + len(answer) for prompt, answer in zip(prompts, answers, strict=True))
    tokens, mask = torch.full((len(prompts), T), pad), torch.zeros(len(prompts), T - 1, dtype=torch.bool)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        if not answer:
            raise ValueError(f"answer {row} has no token")
        tokens[row, : len(prompt) + len(answer)] = torch.tensor([*prompt, *answer])
        mask[row, len(prompt) - 1 : len(prompt) + len(answer) - 1] = True
    return AnswerRows(tokens, mask)


def judge(policy: Policy, rows: AnswerRows, *, temperature: float) -> TokenJudgements:
    """The log-probabilities, entropies and values of the answers' tokens under the policy. Only these tokens get
    logits."""
    lm = language_model(policy)
    device = lm.head.weight.device
    tokens, mask = rows.tokens.to(device), rows.mask.to(device)
    own = lm.hidden(tokens[:, :-1])[mask]
    log_probs, entropy = token_log_probabilities(lm.logits(own) / temperature, tokens[:, 1:][mask])
    values = policy.values(own) if isinstance(policy, ActorCritic) else torch.zeros_like(log_probs)
    nothing = torch.zeros(mask.shape, device=device)
    return TokenJudgements(*(nothing.masked_scatter(mask, part) for part in (log_probs, entropy, values)))


@torch.no_grad()
def judge_all(policy: Policy, rows: AnswerRows, *, temperature: float) -> TokenJudgements:
    """`judge` without gradients, a few rows at a time, with the results on the CPU."""
    most = max(1, READ // rows.tokens.shape[1])
    parts = [
        judge(policy, AnswerRows(rows.tokens[i : i + most], rows.mask[i : i + most]), temperature=temperature)
        for i in range(0, len(rows.tokens), most)
    ]
    return TokenJudgements(*(torch.cat([part.cpu() for part in each]) for each in zip(*parts, strict=True)))
