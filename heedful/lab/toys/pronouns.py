"""What "it" refers to: in a translation, as French needs il or elle, and in the attention of an encoder."""

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.lab.drawn_words import VISIBLE, links, maps
from heedful.lab.exhibit import Says, Shown, Steps, beside, holds, unsaid
from heedful.lab.recurrent import lists
from heedful.lab.toys import street
from heedful.lab.toys.reader import CURIOUS, MONEY, NO_RATE, Reader, reader
from heedful.look.draw import overview
from heedful.look.labels import summary
from heedful.look.record import record

STEPS, READS = 300, 400
TIRED, WIDE = street.crossing("animal", "street", "tired")[0], street.crossing("animal", "street", "wide")[0]


def famous(says: Says, *, animal: str = "animal", steps: Steps = STEPS) -> Shown:
    """A translator that was trained on such sentences translates the famous one: "il" or "elle" agrees with the animal,
    or with the street if the last word fits streets."""
    found = street.learnt(steps)
    said = {last: found.translate([street.crossing(animal, "street", last)[0]])[0] for last in ("tired", "wide")}
    pronoun = "elle" if street.ANIMALS[animal][1] else "il"
    agrees = f"car {pronoun} était" in said["tired"]
    claim = '"il" agrees with'
    lines = [holds(says, claim, animal if agrees else "street", right=agrees)]
    lines += unsaid({f"because it was too {last}": text for last, text in said.items()})
    lines += unsaid({"right of combinations that were never learnt": found.right(street.tests())})
    source, target = street.crossing(animal, "street", "tired")
    last = found.cross_attention(source, target)[-1].mean(0)
    rows, columns = [*target.split(), "<end>"], [*source.split(), "<end>"]
    return Shown(lines, maps({"Cross-attention of the last block, mean of its heads": last}, rows, columns))


def genders(says: Says, *, steps: Steps = STEPS) -> Shown:
    """Animal, lion, giraffe and others: does the pronoun agree with the gender of each?"""
    found, followed = street.learnt(steps), {}
    said = found.translate([street.crossing(animal, "street", "tired")[0] for animal in street.ANIMALS])
    for (animal, (_, feminine)), text in zip(street.ANIMALS.items(), said, strict=True):
        followed[animal] = f"car {'elle' if feminine else 'il'} était" in text
    every = all(followed.values())
    lines = [holds(says, "the pronoun follows the animal's gender", every)]
    told = {
        animal: text
        for animal, text in zip(street.ANIMALS, said, strict=True)
        if animal in ("animal", "lion", "giraffe")
    }
    return Shown(lines + unsaid(told))


def of_it(found: Reader, sentence: str) -> dict[str, Tensor]:
    """The attention weights of "it" for each head of each layer, with all other rows zero."""
    at = sentence.split().index("it")
    rows = {}
    for layer, (_, weights) in enumerate(found.weights(sentence).items(), 1):
        for head, each in enumerate(weights, 1):
            rows[f"block {layer}, head {head}"] = torch.zeros_like(each).index_put((torch.tensor(at),), each[at])
    return rows


def together(rows: dict[str, Tensor]) -> Tensor:
    """The mean of the weights over all heads."""
    return torch.stack([*rows.values()]).mean(0)


def child(says: Says, *, steps: Steps = READS) -> Shown:
    """A small encoder learns which noun "it" stands for: to which word do its heads attend, on average?"""
    found, sentence = reader("it", steps), "the child was scared since it was alone"
    words = sentence.split()
    rows = of_it(found, sentence)
    looked = together(rows)[words.index("it")]
    most = words[int(looked.argmax())]
    lines = [holds(says, '"it" looks at', most, right=most == "child")]
    shares = dict(zip(words, looked.tolist(), strict=True))
    lines += unsaid({"weight on child": shares["child"], "it stands for": found.answers(sentence)[words.index("it")]})
    return Shown(lines, links(rows, words, words))


def shares_of(weights: Tensor, words: Sequence[str]) -> str:
    """All words that get as much weight as a picture shows, the most first; a word that occurs twice by its number."""
    names = [f"{word} ({at + 1})" if words.count(word) > 1 else word for at, word in enumerate(words)]
    order = weights.argsort(descending=True).tolist()
    return ", ".join(f"{names[at]} {weights[at]:.3f}" for at in order if weights[at] > VISIBLE)


def two_meanings(says: Says, *, steps: Steps = READS) -> Shown:
    """The tired animal and the wide street: what the heads of "it" attend to, and which noun the encoder predicts."""
    found = reader("it", steps)
    computed: dict[str, object] = {}
    rows: dict[str, Tensor] = {}
    for sentence in (TIRED, WIDE):
        words, last = sentence.split(), sentence.split()[-1]
        heads = of_it(found, sentence)
        looked = together(heads)[words.index("it")]
        computed[f"too {last}: it stands for"] = found.answers(sentence)[words.index("it")]
        computed[f"too {last}: it looks at"] = shares_of(looked, words)
        rows[f"... too {last}"] = torch.zeros_like(next(iter(heads.values()))).index_put(
            (torch.tensor(words.index("it")),), looked
        )
    words = [*TIRED.split()[:-1], "tired / wide"]
    return Shown(beside(says, computed), links(rows, words, words))


def two_heads(says: Says, *, steps: Steps = READS) -> Shown:
    """Two heads of one layer attend to the same words in different ways."""
    found, words = reader("it", steps), TIRED.split()
    first, *_ = found.weights(TIRED).values()
    at = words.index("it")
    most = {f"head {number}: it looks most at": words[int(head[at].argmax())] for number, head in enumerate(first, 1)}
    drawn = {f"head {number}": head for number, head in enumerate(first, 1)}
    return Shown(beside(says, most), links(drawn, words, words))


def interest(says: Says, *, steps: Steps = READS) -> Shown:
    """One encoder layer learns which kind of interest is meant, curiosity or money. Each occurrence attends to the
    words around it that decide."""
    found, words = reader("interest", steps), NO_RATE.split()
    (weights,) = (each[0] for each in found.weights(NO_RATE).values())
    one, other = (at for at, word in enumerate(words) if word == "interest")
    shares = {
        at: [sum(float(weights[at, words.index(word)]) for word in two) for two in (("no", "in"), ("rate", "bank"))]
        for at in (one, other)
    }
    lines, said = [], found.answers(NO_RATE)
    for name, at in (("first", one), ("second", other)):
        claim = f'{name} "interest" looks at'
        found_at = [["no", "in"], ["rate", "bank"]][shares[at].index(max(shares[at]))]
        if claim in says.values:
            lines.append(holds(says, claim, found_at, right=found_at == says[claim]))
        lines += unsaid({f"{name}: weight on no, in and on rate, bank": shares[at]})
    lines += unsaid({"taken for": [said[one], said[other]], "should be": [CURIOUS, MONEY]})
    drawn = torch.zeros_like(weights)
    drawn[[one, other]] = weights[[one, other]]
    return Shown(lines, links({"interest, twice": drawn}, words, words))


def cross_attention(says: Says, *, steps: Steps = STEPS) -> Shown:
    """Cross-attention of a translator with one block on each side, the mean of its heads: nouns and adjectives look at
    the English words that they come from, and their lines cross, as French adjectives follow their nouns."""
    found, (source, target) = lists.learnt("one block", steps), lists.tests(20, 2)[-1]
    mean = found.cross_attention(source, target)[0].mean(0)
    rows, columns = [*target.split(), "<end>"], [*source.split(), "<end>"]
    computed = {
        "rows sum to": round(float(mean.sum(1).mean()), 6),
        lists.OWN_WORDS: lists.at_own_words(mean, rows, columns),
        "translated": found.translate([source])[0],
    }
    return Shown(beside(says, computed), links({"cross-attention": mean}, rows, columns))


def by_head(says: Says, *, steps: Steps = STEPS) -> Shown:
    """Each head of the last block's cross-attention, with the pattern that it follows, if it follows one ("mixed": it
    does not)."""
    found, (source, target) = street.learnt(steps), street.crossing("lion", "street", "wide")
    last = found.cross_attention(source, target)[-1]
    rows, columns = [*target.split(), "<end>"], [*source.split(), "<end>"]
    patterns = [str(label) for label in summary(last, same=False)]
    drawn = {f"head {number}: {name}": head for number, (name, head) in enumerate(zip(patterns, last, strict=True), 1)}
    none = all(name == "mixed" for name in patterns)
    told = "none follows one" if none else ", ".join(patterns)
    lines = beside(says, {"heads": len(last), "their patterns": told})
    return Shown(lines, maps(drawn, rows, columns))


def all_heads(says: Says, *, steps: Steps = STEPS) -> Shown:
    """Every head of the encoder's self-attention as a thumbnail, with the label of its pattern."""
    found, (source, target) = street.learnt(steps), street.crossing("lion", "street", "wide")
    with record(found.model, "encoder*") as recording:
        found.given(source, target)
    layers = {f"block {number}": recording.weights(name)[0] for number, name in enumerate(recording.names, 1)}
    words = [*source.split(), "<end>"]
    computed = {"blocks": len(layers), "heads of a block": len(next(iter(layers.values())))}
    return Shown(beside(says, computed), lambda: overview(layers, words, words, same=True))
