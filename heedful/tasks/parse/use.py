"""Constituency parsing as translation from sentences to brackets (Vinyals et al. 2015; Vaswani et al. 2017, section
6.3). The search is constrained to trees of the sentence, so that every sentence gets a tree."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypedDict

import torch

from heedful.core.arguments import checks_arguments
from heedful.core.kernels import batch_scale
from heedful.data.batches import by_length, pad
from heedful.data.text.trees import LEAF, BracketVocabulary, Leaf, Tree, read_test_trees, words_in
from heedful.data.tokenizer import BOS, EOS, Ids, Tokenizer
from heedful.decode.brackets import Bracketed, Grammar
from heedful.decode.contract import with_attention
from heedful.decode.rows import in_halves
from heedful.decode.search import beam as beam_search
from heedful.errors import MissingError, TextError
from heedful.metrics.brackets import SHORT, bracket_scores
from heedful.models import TranslationModel
from heedful.run.folder import Saved
from heedful.run.task import Ask, Scored
from heedful.tasks.parse.options import ParseOptions, TreeScoring
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.lengths import most_positions
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.served import TextModel, spec_of, text_facts
from heedful.tasks.translate.searching import SEARCH_TOKENS
from heedful.tasks.translate.training.losses import target_nats

USUAL = 4  # tokens of a tree, for each word, that a budget is asked for


@dataclass(frozen=True, kw_only=True)
class ParseSpec:
    """The content of task.json besides the task's name: the labels of the brackets, the most brackets that open between
    two words, and the default search settings."""

    labels: tuple[str, ...]
    run: int
    beam: int = 5
    length_penalty: float = 1.0


class Parser(TextModel[TranslationModel]):
    """A trained model, its tokenizer, and its brackets."""

    task: ClassVar = "parse"
    purpose: ClassVar = "parsing"

    def __init__(self, model: TranslationModel, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        super().__init__(model, tokenizer, about)
        self.spec = spec_of(ParseSpec, about)
        self.brackets = BracketVocabulary(self.spec.labels)
        self.grammar = Grammar(
            leaf=self.brackets.ids[LEAF],
            eos=EOS,
            opening=self.brackets.ids[LEAF] + 1,
            labels=len(self.spec.labels),
            run=self.spec.run,
        )

    @one_or_many()
    def parse(self, texts: Sequence[str], *, beam: int | None = None) -> list[Tree | None]:
        """The tree of each text, a sentence whose words and punctuation are separated by spaces; None where it has no
        word.

        Raises InputError for a sentence of more words or tokens than the model has positions.
        """
        sentences = [[Leaf(LEAF, word) for word in words_in(text)] for text in texts]
        found = iter(self.trees([leaves for leaves in sentences if leaves], beam=beam))
        return [next(found) if leaves else None for leaves in sentences]

    @torch.inference_mode()
    def trees(self, sentences: Sequence[Sequence[Leaf]], *, beam: int | None = None) -> list[Tree]:
        """The tree of each sentence of one leaf or more. Raises InputError as described in `parse`."""
        model = self.model
        device, width = model.head.weight.device, beam or self.spec.beam
        ids = self.encode(sentences)
        positions = most_positions(model.config)
        limits = [len(leaves) * (2 * self.spec.run + 1) + 1 for leaves in sentences]
        limits = limits if positions is None else [min(limit, positions) for limit in limits]
        usual = [min(limit, USUAL * len(leaves)) for limit, leaves in zip(limits, sentences, strict=True)]
        self.spend(width * sum(map(with_attention, usual)), width * max(usual, default=0))

        def search(rows: Sequence[int]) -> list[Tree]:
            leaves = torch.tensor([len(sentences[i]) for i in rows], device=device)
            own = torch.tensor([limits[i] for i in rows], device=device)
            source, segments = (part.to(device) for part in pad([ids[i] for i in rows]))
            found = beam_search(
                Bracketed(model, self.grammar, leaves=leaves, longest=own),
                source,
                segments,
                bos=BOS,
                eos=EOS,
                longest=own,
                beam=width,
                length_penalty=self.spec.length_penalty,
                at_once=self.at_once,
            )
            return [self.brackets.decode(best[0].tokens, sentences[i]) for i, best in zip(rows, found, strict=True)]

        out: dict[int, Tree] = {}
        for rows in by_length(ids, batch_scale(device) * max(256, SEARCH_TOKENS // width)):
            out |= dict(zip(rows, in_halves(search, rows), strict=True))
        return [out[i] for i in range(len(sentences))]

    def encode(self, sentences: Sequence[Sequence[Leaf]]) -> list[Ids]:
        """The tokens of each sentence. Raises InputError where the sentence or its tree needs more positions than the
        model has."""
        ids = self.tokenizer.encode([" ".join(leaf.word for leaf in leaves) for leaves in sentences])
        if (positions := most_positions(self.model.config)) is not None:
            for own, leaves in zip(ids, sentences, strict=True):
                needed = max(len(own) + 1, len(leaves) + 3)
                if needed > positions:
                    what = f"a sentence of {len(leaves)} words needs {needed} positions, and the model has {positions}"
                    raise TextError(what, fix="leave it out, or train a model without learned positions")
        return ids

    def pairs(self, trees: Sequence[Tree]) -> list[tuple[Ids, Ids]]:
        """The tokens of sentences, and those of their trees."""
        sources = self.encode([list(tree.leaves()) for tree in trees])
        return list(zip(sources, map(self.brackets.encode, trees), strict=True))

    @checks_arguments
    def measure(self, trees: Sequence[Tree], *, beam: int | None = None) -> tuple[dict[str, float], list[Tree]]:
        """The loss, in nats per token of linearised trees, and EVALB's scores; and the model's trees. `f1_40` is over
        sentences of at most 40 words."""
        refuse_nothing(trees)
        found = self.trees([list(tree.leaves()) for tree in trees], beam=beam)
        nats, tokens = target_nats(self.model, self.pairs(trees))
        short = bracket_scores(trees, found, longest=SHORT)
        scores = {"loss": nats / tokens, **asdict(bracket_scores(trees, found)), f"f1_{SHORT}": short.f1}
        return scores, found


class ParsedText(TypedDict):
    """An answer as a record; the tree of a text without a word is empty."""

    text: str
    tree: str


def parse_texts(parser: Parser, texts: Sequence[str], options: ParseOptions) -> Iterator[ParsedText]:
    for text, found in zip(texts, parser.parse(texts, beam=options.beam), strict=True):
        yield {"text": text, "tree": str(found or "")}


ASK = Ask(parse_texts, ParseOptions)


def score_parser(parser: Parser, options: TreeScoring) -> Iterator[Scored]:
    data = options.path
    tests = read_test_trees(data)
    if not tests:
        raise MissingError("no file named test*", where=data, fix="give a file")
    for name, trees in tests.items():
        yield Scored(name, parser.measure(trees, beam=options.beam)[0], examples=map(repr, trees))


def parser_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(ParseSpec, dict(saved.about))
    return text_facts(saved, most_positions(saved.config)) | {"labels": ", ".join(spec.labels)}
