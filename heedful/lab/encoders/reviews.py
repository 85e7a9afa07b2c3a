"""Two stages: pre-training on masked words, then fine-tuning on a few labels; and what the first token attends to."""

from functools import cache
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from heedful.lab.drawn import bars
from heedful.lab.drawn_words import links
from heedful.lab.exhibit import Says, Shown, Steps, beside, holds, unsaid
from heedful.lab.learning import learn
from heedful.lab.whole_words import WordVocabulary
from heedful.look.overlay import rollout
from heedful.look.record import record
from heedful.models.encoder import Encoder
from heedful.models.presets import EncoderSize, encoder_config

CLS, HIDDEN = "<cls>", "<mask>"
GOOD = ("good", "fine", "great", "lovely", "superb", "charming", "clever", "warm")
BAD = ("bad", "poor", "dull", "awful", "boring", "weak", "silly", "cold")
THINGS = ("film", "book", "play", "song", "story")
LABELLED = 3  # words of each kind in the labelled sentences
STEPS = 300


def review(draw: Random, words: int = len(GOOD)) -> tuple[str, int]:
    """A sentence with two opinions that agree, from the first `words` of their kind, and 1 if they are good, else 0."""
    good = draw.random() < 0.5
    pool = (GOOD if good else BAD)[:words]
    one, other = draw.sample(THINGS, 2)
    return f"the {one} was {draw.choice(pool)} and the {other} was {draw.choice(pool)}", int(good)


@cache
def vocabulary() -> WordVocabulary:
    return WordVocabulary([review(Random(number))[0] for number in range(2000)], more=(CLS, HIDDEN))


def fresh(seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    size = EncoderSize(n_layers=2, d_model=48, n_heads=2, context_length=24, order="pre", dropout=0.0)
    return Encoder(encoder_config(size, vocab_size=len(vocabulary())))


def rows_of(texts: list[str]) -> Tensor:
    return vocabulary().rows([f"{CLS} {text}" for text in texts])[0]


@cache
def pretrained(steps: int) -> Encoder:
    """An encoder trained to predict a masked opinion word, without labels of good or bad."""
    model, draw, words = fresh(), Random(0), vocabulary()
    hidden = words.numbers[HIDDEN]

    def loss(step: int) -> Tensor:
        tokens = rows_of([review(draw)[0] for _ in range(64)])
        at = torch.tensor([draw.choice([4, 9]) for _ in range(64)])
        rows = torch.arange(64)
        right = tokens[rows, at].clone()
        tokens[rows, at] = hidden
        return cross_entropy(model.predict_tokens(model.hidden(tokens)[rows, at]), right)

    learn(model, loss, steps=steps, lr=3e-3)
    return model


class Judge(NamedTuple):
    model: Encoder
    out: nn.Linear

    @torch.no_grad()
    def right(self, count: int = 400) -> float:
        """The accuracy on new sentences with all opinion words, most of which are not in the labelled ones."""
        draw = Random(5)
        texts, labels = zip(*[review(draw) for _ in range(count)], strict=True)
        said = self.out(self.model.hidden(rows_of([*texts]))[:, 0]).argmax(-1)
        return float((said == torch.tensor(labels)).float().mean())


@cache
def tuned(begun: bool, steps: int) -> Judge:
    """Fine-tunes on twenty-four labelled sentences, with three opinion words of each kind; from the pre-trained weights
    (`begun`), or from scratch."""
    model, draw = fresh(1), Random(2)
    if begun:
        model.load_state_dict(pretrained(steps).state_dict())
    out = nn.Linear(48, 2)
    texts, labels = zip(*[review(draw, LABELLED) for _ in range(24)], strict=True)
    tokens, right = rows_of([*texts]), torch.tensor(labels)
    both = nn.ModuleList([model, out])
    learn(both, lambda step: cross_entropy(out(model.hidden(tokens)[:, 0]), right), steps=40, lr=1e-3, warmup=5)
    return Judge(model, out)


def two_stages(says: Says, *, steps: Steps = STEPS) -> Shown:
    """Pre-training on masked words carries over to opinion words that occur in no labelled sentence."""
    shares = {"from nothing": tuned(False, steps).right(), "after filling in hidden words": tuned(True, steps).right()}
    stages = 2 if shares["after filling in hidden words"] > shares["from nothing"] + 0.05 else 1
    lines = beside(says, {"stages": stages})
    lines += unsaid({f"right, {name}": share for name, share in shares.items()})
    return Shown(lines, bars(shares, y="right of 400 sentences", title="24 labels, on 6 words of 16"))


def first_token(
    says: Says, *, sentence: str = "the film was superb and the song was warm", steps: Steps = STEPS
) -> Shown:
    """The class is read at the first token. Which words does it depend on? Each is masked in turn; and attention
    rollout over both blocks shows how much of each is in the first token."""
    judge = tuned(True, steps)
    words = [CLS, *sentence.split()]
    tokens = rows_of([sentence])
    each = tokens.expand(len(words), -1).clone()
    each[range(1, len(words)), range(1, len(words))] = vocabulary().numbers[HIDDEN]  # the first row stays unmasked
    with record(judge.model) as recording, torch.no_grad():
        judge.model.hidden(tokens)
    with torch.no_grad():
        said = judge.out(judge.model.hidden(each)[:, 0]).log_softmax(-1)[:, 1]
    changed = (said - said[0]).abs()
    row = torch.zeros(len(words), len(words))
    row[0] = rollout([recording.weights(name)[0] for name in recording.names])[0]
    lines = [holds(says, "the class is read at", words[0], right=words[0] == says["the class is read at"])]
    most = [words[at] for at in changed.topk(2).indices.sort().values.tolist()]
    facts = {"good, probability": float(said[0].exp()), "hidden, these change it most": most}
    title = "how much of each word is in the first token"
    return Shown(lines + unsaid(facts), links({title: row}, words, words))
