"""Inside recurrent translators: the decoder's input, its attention, and the number of sequential steps."""

from typing import Any

import torch
from torch import Tensor

from heedful.lab.complexity.measured import longest_chain
from heedful.lab.drawn import curves, weights_of
from heedful.lab.drawn_words import maps
from heedful.lab.exhibit import Few, Rows, Says, Shown, Steps, beside, holds, unsaid
from heedful.lab.recurrent.lists import MOST, OWN_WORDS, SIZES, Kind, at_own_words, learnt, tests, vocabulary
from heedful.look.record import record
from heedful.models import make_model
from heedful.models.presets import translator_config
from heedful.models.rnn import AdditiveAttention, Keys

STEPS = 300


def untrained(kind: Kind) -> Any:  # an RNN, or a Seq2Seq
    torch.manual_seed(0)
    words = len(vocabulary())
    return make_model(translator_config(SIZES[kind], source_vocab=words, target_vocab=words, joint=True)).eval()


def thought_vector(says: Says) -> Shown:
    """Counts the numbers that the decoder gets for a sentence, tests whether they are just the encoder's last state,
    and measures how much of the gradient is left at the first word, before training."""
    plain, looking = untrained("thought vector"), untrained("attention")
    rows = {n: vocabulary().rows([tests(1, n)[0][0]])[0] for n in range(1, MOST + 1)}
    with torch.no_grad():
        known = {
            name: [model.start(row).keys.states.numel() for row in rows.values()]
            for name, model in (("thought vector", plain), ("attention", looking))
        }
        last = plain.encoder(plain.source(rows[3]))[0][:, -1]
        state = plain.start(rows[3])
        same = torch.allclose(state.keys.states[:, 0], last) and torch.allclose(
            state.hidden, torch.tanh(plain.first(last))
        )
    constant = len({*known["thought vector"]}) == 1
    claim = "all that the decoder knows of the source is"
    lines = [holds(says, claim, "h_T" if same and constant else "more than h_T", right=same and constant)]
    lines += unsaid({f"numbers known of 1 to {MOST} things, {name}": each for name, each in known.items()})
    back = {
        "thought vector": [first_word(plain, row, slice(-1, None)) for row in rows.values()],
        "attention": [first_word(looking, row, slice(None)) for row in rows.values()],
    }
    lost, left = (each[-1] / each[0] for each in back.values())
    lines.append(holds(says, "gradients vanish along a sentence", lost < 0.01 < 0.5 < left))
    name = "gradient of the first word over the last's"
    lines += unsaid({f"{name}, {kind}": each for kind, each in back.items()})
    words = [row.shape[1] for row in rows.values()]
    drawn = {name: (words, each) for name, each in known.items()}
    return Shown(lines, curves(drawn, x="words of the source", y="numbers that the decoder is given"))


def first_word(model: Any, row: Tensor, given: slice) -> float:
    """The norm of the gradient by the first word of a source, over that by the last, of the states that a decoder is
    `given`."""
    entered = model.source(row).detach().requires_grad_()
    states = model.encoder(entered)[0][:, given]
    sizes = torch.autograd.grad(states.sum(), entered)[0][0].norm(dim=-1)
    return float(sizes[0] / sizes[-1])


def steps_of_attention(says: Says, *, steps: Steps = STEPS) -> Shown:
    """Watches Bahdanau's attention while a sentence is decoded: its queries, its keys, and where each step looks."""
    model, words = learnt("attention", steps).model, vocabulary()
    source, target = tests(1, 2)[0]
    asked: list[tuple[Tensor, Keys, Tensor]] = []

    def watch(module: AdditiveAttention, given: tuple[Tensor, Keys], out: Tensor) -> None:
        asked.append((*given, module.weights(*given)))

    handle = model.attention.register_forward_hook(watch)
    before, states, (rows, _) = [], model.start(words.rows([source])[0]), words.rows([target], begin=True)
    with torch.no_grad():
        for token in rows[0]:
            before.append(states.hidden)
            _, states = model.step(token[None], states)
    handle.remove()
    encoder = model.encoder(model.source(words.rows([source])[0]))[0]
    previous = all(torch.equal(query, hidden) for (query, _, _), hidden in zip(asked, before, strict=True))
    theirs = all(torch.allclose(keys.states, encoder, atol=1e-6) for _, keys, _ in asked)
    sums = torch.stack([weights.sum() for _, _, weights in asked])
    lines = [
        holds(says, "the query of step i is", "s_{i-1}" if previous else "another state", right=previous),
        holds(says, "keys are", "encoder states" if theirs else "something else", right=theirs),
        *beside(
            says.but("the query of step i is", "keys are"), {"weights of a step sum to": round(float(sums.mean()), 6)}
        ),
    ]
    weights = torch.cat([weights[0, 0] for _, _, weights in asked]).detach()
    title = f"After {steps} steps of training"
    return Shown(lines, weights_of(weights, [*target.split(), "<end>"], source.split(), title))


def alignment(says: Says, *, length: Few = 3, steps: Steps = STEPS) -> Shown:
    """The weights of a trained model, a row for each target word: lines cross, as French adjectives follow nouns."""
    found = learnt("attention", steps)
    source, target = tests(20, length)[-1]
    with record(found.model) as recording:
        found.given(source, target)
    weights = recording.weights("attention")[0, 0]
    rows, columns = [*target.split(), "<end>"], [*source.split(), "<end>"]
    lines = (
        [
            holds(says, "rows", "target words", right=len(weights) == len(rows)),
            holds(says, "columns", "source words", right=weights.shape[1] == len(columns)),
        ]
        if says.values
        else []
    )
    lines += unsaid({OWN_WORDS: at_own_words(weights, rows, columns)})
    lines += unsaid({"translated": found.translate([source])[0]})
    return Shown(lines, maps({"Weights of each target word over the source": weights}, rows, columns))


def one_after_another(says: Says, *, longest: Rows = 48) -> Shown:
    """Does the longest chain of dependent operations grow with each word of the sentence, or not at all?"""
    recurrent, transformer = untrained("thought vector"), untrained("transformer")
    lengths = [longest // 4, longest // 2, longest]
    rows = [torch.randint(3, len(vocabulary()), (1, n)) for n in lengths]
    chains = {
        "recurrent encoder": [longest_chain(recurrent.start(row).hidden.sum()) for row in rows],
        "transformer's encoder": [longest_chain(transformer.encode(row).sum()) for row in rows],
    }
    grown = {name: (each[2] - each[0]) / (lengths[2] - lengths[0]) for name, each in chains.items()}
    steps = grown["recurrent encoder"] > 0 and grown["transformer's encoder"] == 0
    lines = [
        holds(says, "steps that follow each other for a sentence of n words", "n" if steps else "not n", right=steps),
        *unsaid({f"operations more for each word, {name}": each for name, each in grown.items()}),
    ]
    drawn = {name: (lengths, each) for name, each in chains.items()}
    return Shown(lines, curves(drawn, x="words", y="operations that wait for each other"))
