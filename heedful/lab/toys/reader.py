"""A small encoder that predicts what a word stands for: which noun "it" is, or which kind of interest is meant. The
decks draw its attention weights."""

from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from heedful.lab.learning import learn
from heedful.lab.toys.street import any_sentence
from heedful.lab.whole_words import WordVocabulary
from heedful.look.record import record
from heedful.models.encoder import Encoder
from heedful.models.presets import EncoderSize, encoder_config

# The answers for "interest": two words that occur in no sentence.
CURIOUS, MONEY = "curiosity", "money"
NO_RATE = "she has no interest in the interest rate of the bank"
Asked = tuple[str, dict[int, str]]  # a sentence, and the answers by the index of the word


def curious(draw: Random) -> Asked:
    words = [draw.choice(["he", "she", "everybody", "the bank"]), draw.choice(["has", "shows", "had"])]
    words += [
        draw.choice(["no", "some", "little"]),
        "interest in",
        draw.choice(["sport", "music", "the rate", "the bank"]),
    ]
    return asked(" ".join(words), CURIOUS)


def money(draw: Random) -> Asked:
    words = [draw.choice(["the", "her", "today the"]), "interest rate", draw.choice(["", "of the bank", "of the loan"])]
    return asked(" ".join([*words, draw.choice(["rose", "fell", ""])]), MONEY)


def asked(sentence: str, answer: str) -> Asked:
    words = sentence.split()
    return " ".join(words), {words.index("interest"): answer}


def any_interest(draw: Random) -> Asked:
    """One sentence, or two joined in any order."""
    parts = [curious(draw), money(draw), curious(draw), money(draw)]
    draw.shuffle(parts)
    (one, own), (other, more) = parts[:2]
    if draw.random() < 0.3:
        return one, own
    first = f"{one} {draw.choice(['but', 'and', 'in'])}"
    return f"{first} {other}", {**own, **{len(first.split()) + at: answer for at, answer in more.items()}}


def about_it(draw: Random) -> Asked:
    """A sentence of `street`, with the noun that "it" stands for."""
    english, french = any_sentence(draw)
    words = english.split()
    place = words[6] if "cross" in words else ""
    noun = place if place and french.split()[-1] in OF_SPOTS_FRENCH else words[1]
    return english, {words.index("it"): noun}


OF_SPOTS_FRENCH = {"large", "long", "longue", "dangereux", "dangereuse", "étroit", "étroite", "humide"}


@dataclass(frozen=True)
class Reader:
    model: Encoder
    words: WordVocabulary

    @torch.no_grad()
    def answers(self, sentence: str) -> list[str]:
        """The model's prediction for each word."""
        tokens, _ = self.words.rows([sentence], begin=True, end=True)
        return [self.words.words[number] for number in self.model(tokens)[0, 1:-1].argmax(-1).tolist()]

    @torch.no_grad()
    def weights(self, sentence: str) -> dict[str, Tensor]:
        """The attention weights (H, T, T) by layer, without the special tokens at both ends, not renormalised."""
        tokens, _ = self.words.rows([sentence], begin=True, end=True)
        with record(self.model) as recording:
            self.model(tokens)
        return {name: recording.weights(name)[0, :, 1:-1, 1:-1] for name in recording.names}


@cache
def reader(of: Literal["it", "interest"], steps: int, seed: int = 0) -> Reader:
    """Trains a reader. For "it" it has two layers, as the noun depends on a third word; for "interest" one, with
    relative positions, so that far words count less."""
    draw, question = Random(seed), about_it if of == "it" else any_interest
    more = (CURIOUS, MONEY) if of == "interest" else ()
    words = WordVocabulary([question(draw)[0] for _ in range(3000)] + [NO_RATE] * (of == "interest"), more)
    torch.manual_seed(seed)
    size = EncoderSize(n_layers=2, d_model=48, n_heads=2, context_length=40, order="pre", dropout=0.0)
    if of == "interest":
        size = replace(size, n_layers=1, n_heads=1, position="shaw")
    model = Encoder(encoder_config(size, vocab_size=len(words)))

    def loss(step: int) -> Tensor:
        batch = [question(draw) for _ in range(48)]
        tokens, segments = words.rows([sentence for sentence, _ in batch], begin=True, end=True)
        asked_at = [
            (row, at + 1, words.numbers[answer]) for row, (_, own) in enumerate(batch) for at, answer in own.items()
        ]
        rows, where, right = torch.tensor(asked_at).unbind(1)
        return cross_entropy(model.predict_tokens(model.hidden(tokens, segments)[rows, where]), right)

    learn(model, loss, steps=steps, lr=4e-3)
    return Reader(model, words)
