"""Synthetic text that a small language model learns in seconds, by whole words: questions with answers, chapters from
tables of contents, and references."""

from dataclasses import dataclass
from functools import cache
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from heedful.decode.search import greedy, sample
from heedful.decode.settings import Sampling
from heedful.lab.learning import learn
from heedful.lab.whole_words import END, PAD, WordVocabulary
from heedful.models.lm import LM
from heedful.models.presets import LMSize, lm_config

STEPS = 600
EOQ = "<EOQ>"  # the deck's token for the end of a question
ANSWERS = {
    "what is GPT ?": "a language model that continues a text",
    "what is a token ?": "a piece of a word",
    "what is attention ?": "a mean of values weighted by scores",
    "what is a key ?": "what a query is compared with",
    "what is a query ?": "what a token looks for",
    "what is a mask ?": "who may look at whom",
    "what is BERT ?": "an encoder that fills in hidden words",
    "who wrote attention is all you need ?": "Vaswani and seven others",
}
TOPICS = {
    "rivers": ("water", "bridges"), "ships": ("sails", "harbours"), "trees": ("leaves", "roots"),
    "stars": ("light", "telescopes"), "stones": ("mountains", "walls"), "birds": ("wings", "nests"),
}  # fmt: skip
AUTHORS = ("Smith", "Garcia", "Chen", "Novak", "Okafor", "Tanaka", "Rossi", "Larsen")
YEARS, JOURNALS = ("1987", "1994", "2003", "2011", "2016", "2019"), ("Nature", "Science", "Annals", "Letters")


@cache
def references() -> frozenset[str]:
    """The references that exist: one combination in six."""
    draw = Random(1)
    every = [f"see {a} {y} {j}" for a in AUTHORS for y in YEARS for j in JOURNALS]
    return frozenset(draw.sample(every, len(every) // 6))


def any_text(draw: Random) -> str:
    kind = draw.random()
    if kind < 0.35:
        question = draw.choice([*ANSWERS])
        return f"{question} {EOQ} {ANSWERS[question]}"
    if kind < 0.75:
        first, second = draw.sample([*TOPICS], 2)
        chapters = " . ".join(
            f"a chapter about {topic} tells of {draw.choice(TOPICS[topic])}" for topic in (first, second)
        )
        return f"contents : {first} , {second} ; {chapters} ."
    if kind < 0.85:
        topic = draw.choice([*TOPICS])
        return f"a chapter about {topic} tells of {draw.choice(TOPICS[topic])} ."
    return draw.choice(sorted(references()))


@dataclass(frozen=True)
class Book:
    model: LM
    words: WordVocabulary

    def continued(self, prompt: str, longest: int = 24) -> str:
        """The greedy continuation, until the end."""
        ids = torch.tensor([self.words.ids(prompt)])
        (found,) = greedy(self.model, ids[:, :-1], bos=int(ids[0, -1]), eos=END, longest=longest)
        return self.words.text(found.tokens)

    def drawn(self, prompt: str, count: int, longest: int = 12) -> list[str]:
        ids = torch.tensor([self.words.ids(prompt)])
        found = sample(
            self.model, ids[:, :-1], bos=int(ids[0, -1]), eos=END, longest=longest, samples=count, sampling=Sampling()
        )
        return [self.words.text(one.tokens) for one in found[0]]


@cache
def book(steps: int, seed: int = 0) -> Book:
    draw = Random(seed)
    words = WordVocabulary([any_text(draw) for _ in range(3000)])
    torch.manual_seed(seed)
    model = LM(
        lm_config(
            LMSize(n_layers=2, d_model=48, n_heads=4, activation="gelu"), vocab_size=len(words), context_length=48
        )
    )

    def loss(step: int) -> Tensor:
        tokens, _ = words.rows([any_text(draw) for _ in range(32)], end=True)
        return cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD)

    learn(model, loss, steps=steps, lr=4e-3)
    return Book(model, words)
