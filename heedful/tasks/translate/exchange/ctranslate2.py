"""Translators that search with CTranslate2."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from heedful.data.batches import of_like_length
from heedful.data.tokenizer import Ids
from heedful.decode.contract import Hypothesis
from heedful.decode.draws import penalties
from heedful.decode.rows import refuse_limits
from heedful.decode.settings import Decoding
from heedful.errors import InputError, MissingError
from heedful.exchange import ct2
from heedful.exchange.ctranslate2 import (
    OURS,
    SCORES,
    TASK,
    Convertible,
    as_words,
    export_verified,
    library_model,
    made_of,
    random_rows,
    row_log_probabilities,
    write,
)
from heedful.models import model_from
from heedful.run.folder import filled_then_renamed
from heedful.run.task import Law, LibraryEngine
from heedful.run.tokenizers import read_tokenizers
from heedful.store import files
from heedful.store.lock import one_after_another
from heedful.tasks.shared.probes import a_few
from heedful.tasks.translate.exchange.lost import lost
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.tasks.translate.use import Translator

CACHE = "ctranslate2"  # in a run's folder
TOKENIZER, SOURCE, TARGET = "tokenizer.json", "tokenizer.source.json", "tokenizer.target.json"
USE = """
## By CTranslate2

    pip install ctranslate2 tokenizers

```python
import ctranslate2
from tokenizers import Tokenizer

text = "A sentence."
translator = ctranslate2.Translator(".")  # this folder
source, target = (Tokenizer.from_file(name) for name in {names})
source.encode_special_tokens = {not_spelled}
tokens = source.encode({space!r} + text, add_special_tokens=False).tokens{cut}
longest = {longest}
tokens = [*{before}, *tokens, *{after}]
found = translator.translate_batch(
    [tokens], {prefix}{search}, max_input_length=0, max_decoding_length=longest, suppress_sequences={never}
)
said = [token for token in found[0].hypotheses[0] if token not in {controls}]
print(target.decoder.decode(said).removeprefix({space!r}))
```

A text without these tokens around it{blank} is another text to the model. Without the two
lengths, the library reads 1,024 tokens of a text and says at most 256.
{lost}"""
SHARED = 16  # sources from which on threads that rest share them
PIECE = 1 << 13  # tokens times beams that are searched for in one call, where calls are to be short
SCORED = 1 << 11  # tokens that are scored in one call: it holds the logits of all of them


class CTranslate2:
    """An engine for a `Translator`, on the CPU. Scores are ours: the model's own log-probabilities.

    The library shares out among the other tokens what its search forbids. So it searches without forbidding, and what
    then says a forbidden token, or too many, is searched again with it and scored anew; what has a forced prefix,
    `shortest` or `no_repeat` is so from the start. Where the model's probabilities are such shares themselves
    (`renormalise`), the library's scores are ours. A beam may then find another hypothesis than ours, and where
    sentences come to their limit too: we prefer what has ended. Its beam is over when it is full of what has ended,
    whatever `early_stopping` says.

    What is found for a source does not depend on the others: those that are searched together have one limit. A call of
    the library cannot be stopped. Where it is served, calls are short, and what no short one can do it does not take.
    """

    def __init__(self, folder: Path, translator: Translator, run: Path | None = None) -> None:
        self._whole = run
        self._words = convertible(translator).words()
        self._ids = {word: index for index, word in enumerate(self._words.target)}
        self._eos, self._never = translator.target.eos, frozenset(translator.forbidden)
        most = [ct2.most_tokens(*side) or sys.maxsize for side in ct2.sides(translator.model.config)]
        self._most = most[0], most[1] - 1  # it is scored with an end token behind it, whether it has one or not
        self._model = library_model(folder, "Translator")
        self._between: Callable[[], None] | None = None

    @cached_property
    def own(self) -> Translator | None:
        """The model as heedful has it, which can be looked into; None where there is a folder of the library alone."""
        return None if self._whole is None else Translator.load(self._whole)

    def serve(self, own: Translator, between: Callable[[], None]) -> None:
        """Makes calls short, and calls `between` before each, which may raise to end a search. `own` is the model as
        heedful has it, which need not be read again."""
        self.__dict__["own"], self._between = own, between

    def search(
        self, sources: Sequence[Ids], *, limits: Sequence[int], decoding: Decoding, prefix: Sequence[Ids] | None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source, of at most so many tokens, the end token counted. Raises InputError for
        what cannot be met."""
        if decoding.samples:
            what = "CTranslate2 draws from one stream of numbers for a whole batch: a seed would not say what comes"
            raise InputError(what, where="samples", fix="leave out the engine")
        if penalties(decoding):
            what = "CTranslate2 would punish repetitions otherwise than heedful does"
            raise InputError(what, where="penalties", fix="leave out the engine, or them")
        longest, most = max(map(len, sources)), self._most[0]
        if longest > most:
            raise InputError(
                f"{longest} tokens, but the exported model has {most} positions", fix="leave out the engine"
            )
        limits = [min(limit, self._most[1]) for limit in limits]
        refuse_limits(limits, prefix or [[] for _ in sources], self._eos)
        strict = prefix is not None or decoding.shortest > 0 or decoding.no_repeat > 0 or decoding.renormalise
        found = dict[int, list[Hypothesis]]()

        def run(limits: Mapping[int, int], *, strict: bool) -> None:
            for limit in sorted({*limits.values()}):
                for rows in self._parts([row for row in limits if limits[row] == limit], limit * decoding.beam):
                    begin = None if prefix is None else [prefix[row] for row in rows]
                    best = self._run([sources[row] for row in rows], begin, limit, decoding, strict=strict)
                    found.update(zip(rows, best, strict=True))

        run({row: self._reach(limit, decoding) for row, limit in enumerate(limits)}, strict=strict)
        refused = [row for row, best in found.items() if any(self._refused(each, limits[row]) for each in best)]
        run({row: limits[row] for row in refused}, strict=True)
        return [found[row] for row in range(len(sources))]

    def takes(self, limit: int, decoding: Decoding) -> bool:
        return self._between is None or self._reach(limit, decoding) * decoding.beam <= PIECE

    def _reach(self, limit: int, decoding: Decoding) -> int:
        """The limit with which a source is searched at first, for itself and many others: a power of two, unless all
        have the one that was asked for."""
        return min(limit if decoding.longest is not None else 1 << limit.bit_length(), self._most[1])

    def _parts(self, rows: Sequence[int], tokens: int) -> Iterator[Sequence[int]]:
        """The rows of each call, for each of which so many tokens (times beams) are searched."""
        if self._between is None:
            yield rows
            return
        size = max(1, PIECE // tokens)
        for begin in range(0, len(rows), size):
            self._between()
            yield rows[begin : begin + size]

    def log_probabilities(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Of each target's tokens and of the end token after them, in nats."""
        lengths = [len(target) + 1 for target in targets]
        scored: list[list[float]] = [[] for _ in targets]
        for rows in of_like_length(lengths, SCORED):
            if self._between is not None:
                self._between()
            found = self._model.score_batch(
                as_words([sources[row] for row in rows], self._words.source),
                as_words([targets[row] for row in rows], self._words.target),
                max_input_length=0,
            )
            for row, each in zip(rows, found, strict=True):
                scored[row] = each.log_probs
        return scored

    def _refused(self, hypothesis: Hypothesis, limit: int) -> bool:
        return len(hypothesis.tokens) + hypothesis.finished > limit or not self._never.isdisjoint(hypothesis.tokens)

    def _run(
        self, sources: Sequence[Ids], prefix: Sequence[Ids] | None, limit: int, decoding: Decoding, *, strict: bool
    ) -> list[list[Hypothesis]]:
        resting = max(1, self._model.num_translators - self._model.num_active_batches)
        found = self._model.translate_batch(
            as_words(sources, self._words.source),
            None if prefix is None else as_words(prefix, self._words.target),
            beam_size=decoding.beam,
            num_hypotheses=decoding.beam if strict else decoding.n_best,
            length_penalty=decoding.length_penalty,
            no_repeat_ngram_size=decoding.no_repeat,
            min_decoding_length=min(decoding.shortest, limit),
            max_decoding_length=limit,
            max_input_length=0,
            max_batch_size=-(-len(sources) // resting) if len(sources) >= SHARED else 0,
            suppress_sequences=[[self._words.target[index]] for index in sorted(self._never)] if strict else None,
            return_scores=True,
            return_end_token=True,
        )
        listed = [
            [self._hypothesis(*each, decoding) for each in zip(one.hypotheses, one.scores, strict=True)]
            for one in found
        ]
        if strict and not decoding.renormalise:
            listed = self.scored(sources, listed, decoding)
        ranked = (sorted(own, key=lambda each: (not each.finished, -each.score)) for own in listed)
        return [own[: decoding.n_best] for own in ranked]

    def _hypothesis(self, said: list[str], score: float, decoding: Decoding) -> Hypothesis:
        """Their score is ours: the sum over all tokens and the end token / length ** length_penalty."""
        tokens = [self._ids[word] for word in said]
        finished = tokens[-1:] == [self._eos]
        whole = score * max(1, len(tokens)) ** decoding.length_penalty
        return Hypothesis(tuple(tokens[:-1] if finished else tokens), score, whole, (), finished)

    def scored(
        self, sources: Sequence[Ids], listed: Sequence[Sequence[Hypothesis]], decoding: Decoding
    ) -> list[list[Hypothesis]]:
        """The same with the model's own probabilities, by one pass with the tokens given; those that have them stay."""
        pairs = [
            (source, each)
            for source, own in zip(sources, listed, strict=True)
            for each in own
            if not each.token_log_probabilities
        ]
        scored = iter(self.log_probabilities([source for source, _ in pairs], [list(each.tokens) for _, each in pairs]))

        def anew(each: Hypothesis) -> Hypothesis:
            length = len(each.tokens) + each.finished
            if each.token_log_probabilities or not length:
                return each
            chances = tuple(next(scored)[:length])
            whole = sum(chances)
            score = whole / max(1, length) ** decoding.length_penalty
            return Hypothesis(each.tokens, score, whole, chances, each.finished)

        return [[anew(each) for each in own] for own in listed]


def convertible(translator: Translator) -> Convertible:
    source, target = translator.source, translator.target
    return Convertible(translator.model, source, target, target.eos, translator.about)


@torch.inference_mode()
def compare_translator(folder: Path, made: Convertible) -> tuple[Tensor, Tensor]:
    """The log-probabilities of two random targets, by the folder and by the model."""
    draw = torch.Generator().manual_seed(0)
    rows = random_rows(made.target.size, (8, 4), draw)
    sources = random_rows(made.source.size, (3, 7), draw)
    translator = Translator(made.model, made.source, made.target, TranslatorSpec.read(made.about))
    theirs = CTranslate2(folder, translator).log_probabilities(sources, rows)
    rows = [[made.target.bos, *row, made.target.eos] for row in rows]
    pairs = zip(sources, rows, strict=True)
    logits = [made.model(torch.tensor([own]), torch.tensor([row[:-1]])) for own, row in pairs]
    return torch.tensor([chance for row in theirs for chance in row]), row_log_probabilities(logits, rows)


def export_translator(run: Path, translator: Translator, out: Path, *, quantize: str | None = None) -> float:
    made = convertible(translator)
    return export_verified(run, made, compare_translator, out, use=lambda: use_of(translator), quantize=quantize)


def use_of(translator: Translator) -> str:
    """How the library alone is given a text, and what it is not told of the model then."""
    words, decoding = convertible(translator).words(), translator.decoding()
    search = {"beam_size": decoding.beam, "length_penalty": decoding.length_penalty}
    search |= {"no_repeat_ngram_size": decoding.no_repeat} if decoding.no_repeat else {}
    search |= {"min_decoding_length": decoding.shortest} if decoding.shortest else {}
    longest = "2 * len(tokens) + 12" if decoding.longest is None else str(decoding.longest)
    most = translator.positions
    before, after = ([words.source[index] for index in own] for own in translator.around)
    begin = [words.target[index] for index in translator.begin]
    space = " " if translator.source.ours else ""
    cut = translator.spec.longest_source
    return USE.format(
        names=[TOKENIZER] * 2 if translator.source is translator.target else [SOURCE, TARGET],
        not_spelled=not translator.source.special.spelled,
        space=space,
        blank=", and without the blank before its first word," if space else "",
        cut="" if cut is None else f"[:{cut}]",
        before=before,
        after=after,
        controls=[words.target[index] for index in translator.target.controls],
        prefix=f"target_prefix=[{begin}], " if begin else "",
        search=", ".join(f"{key}={value}" for key, value in search.items()),
        longest=longest if most is None else f"min({longest}, {most})",
        never=[[words.target[index]] for index in translator.forbidden],
        lost="".join(f"\n{line[0].upper()}{line[1:]}.\n" for line in lost(translator.spec)),
    )


def load_by_ctranslate2(run: Path) -> Translator:
    """A translator that searches by CTranslate2, of a folder that was exported for it or of a run.

    A run is exported into its own folder, RUN/ctranslate2, and again when its files change. Raises InputError,
    MissingError or StorageError.
    """
    ct2.library()
    if (run / OURS).is_file():
        return _open(run)
    folder = run / CACHE
    if not _is_of(folder, run):
        with one_after_another(run):
            if not _is_of(folder, run):
                translator = Translator.load(run)
                ct2.refuse(translator.model.config, where=str(run))
                files.remove_tree(folder)
                with filled_then_renamed(folder) as growing:
                    write(growing, convertible(translator), compare_translator, run)
    return _open(folder, run)


def _is_of(folder: Path, run: Path) -> bool:
    return (folder / OURS).is_file() and files.read_json(folder / OURS).get("made_of") == made_of(run)


def _open(folder: Path, run: Path | None = None) -> Translator:
    ours, tokenizers = files.read_json(folder / OURS), read_tokenizers(folder)
    spec = TranslatorSpec.read(files.read_json(folder / TASK)).with_calibration(run or folder)
    if tokenizers is None:
        raise MissingError("the model has no tokenizer", where=str(folder), fix="export it again")
    with torch.device("meta"):  # its configuration is asked for, and never its weights
        model = model_from(ours["model"])
    translator = Translator(model, *tokenizers, spec)
    return translator.changed(engine=CTranslate2(folder, translator, run))


def engine_laws(run: Path, translator: Translator, texts: Sequence[str]) -> Iterator[Law]:
    """That the translator says the same by CTranslate2, in a folder that was exported for this."""
    other = _open(run)
    sentences = a_few(translator.encode(list(texts))[0], translator.source.size)
    settings = translator.decoding(beam=1, longest=30)
    theirs, ours = ([best[0] for best in model.hypotheses(sentences, settings)] for model in (other, translator))
    unequal = sum(a.tokens != b.tokens for a, b in zip(ours, theirs, strict=True))
    yield Law(
        "CTranslate2: greedy (different tokens)",
        float(unequal),
        0.0,
        otherwise="the other engine would say something else",
    )
    worst = max(abs(a.score - b.score) for a, b in zip(ours, theirs, strict=True))
    yield Law(
        "CTranslate2: greedy (scores)",
        worst,
        SCORES,
        otherwise="the other engine would be surer, or less sure, than the model is",
    )


ENGINE = LibraryEngine(load=load_by_ctranslate2, export=export_translator, laws=engine_laws, kind="Translator")
