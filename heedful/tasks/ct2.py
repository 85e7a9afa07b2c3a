"""CTranslate2 (Klein et al. 2020): a run as a folder of that library's, and translators that search by it.

The folder has all that a translator needs: CTranslate2's files, the tokenizers and task.json, and in heedful.json our
configuration and what the folder was made of.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from heedful.core.config import unknown_key
from heedful.data.tokenizer import Tokenizer
from heedful.decode.search import Hypothesis, refuse_limits
from heedful.errors import InputError, MissingError, StorageError
from heedful.models import config_of, model_from
from heedful.store import ct2, files
from heedful.store.checkpoint import CONFIG, MODEL
from heedful.tasks.folder import NUMBERS, SPECIAL_TOKENS, read_tokenizers, to_be, tokenizer_files
from heedful.tasks.generate import LanguageModel
from heedful.tasks.translate import Decoding, Translator

CACHE = "ctranslate2"  # in a run's folder
OURS, TASK = "heedful.json", "task.json"
TOLERANCE = 1e-4  # of log-probabilities, relative to the largest

Ids = list[int]


class CTranslate2:
    """An engine for a `Translator`, on the CPU. Scores are ours: the model's own log-probabilities.

    The library shares out among the other tokens what its search forbids. So it searches without forbidding, and what
    then says a forbidden token, or too many, is searched again with it and scored anew; what has a forced prefix,
    `shortest` or `no_repeat` is so from the start. A beam may then find another hypothesis than ours, and where
    sentences come to their limit too: we prefer what has ended.
    """

    def __init__(self, folder: Path, translator: Translator) -> None:
        self._words = words(translator)
        self._ids = {word: index for index, word in enumerate(self._words.target)}
        self._eos, self._never = translator.target.eos, frozenset(translator.forbidden)
        self._most = [ct2.most_tokens(*side) for side in ct2.sides(translator.model.config)]
        self._model = _read(folder, "Translator")

    def search(
        self, sources: Sequence[Ids], *, limits: Sequence[int], decoding: Decoding, prefix: Sequence[Ids] | None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source, of at most so many tokens, the end token counted. Raises InputError for
        what cannot be met."""
        if decoding.samples:
            what = "CTranslate2 draws from one stream of numbers for a whole batch: a seed would not say what comes"
            raise InputError(what, where="samples", fix="leave out the engine")
        longest, most = max(map(len, sources)), self._most[0]
        if most is not None and longest > most:
            raise InputError(f"{longest} tokens, but the exported model has {most} places", fix="leave out the engine")
        limits = [min(limit, self._most[1] or limit) for limit in limits]
        refuse_limits(limits, prefix or [[] for _ in sources], self._eos)
        strict = prefix is not None or decoding.shortest > 0 or decoding.no_repeat > 0

        def run(rows: Sequence[int], limit: int, *, strict: bool) -> dict[int, list[Hypothesis]]:
            begin = None if prefix is None else [prefix[row] for row in rows]
            found = self._run([sources[row] for row in rows], begin, limit, decoding, strict=strict)
            return dict(zip(rows, found, strict=True))

        found = run(range(len(sources)), max(limits), strict=strict)
        again = [row for row, best in found.items() if any(self._refused(each, limits[row]) for each in best)]
        for limit in sorted({limits[row] for row in again}):
            found |= run([row for row in again if limits[row] == limit], limit, strict=True)
        return [found[row] for row in range(len(sources))]

    def log_probabilities(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Of each target's tokens and of the end token after them, in nats."""
        scored = self._model.score_batch(
            _named(sources, self._words.source), _named(targets, self._words.target), max_input_length=0
        )
        return [each.log_probs for each in scored]

    def _refused(self, hypothesis: Hypothesis, limit: int) -> bool:
        return len(hypothesis.tokens) + hypothesis.finished > limit or not self._never.isdisjoint(hypothesis.tokens)

    def _run(
        self, sources: Sequence[Ids], prefix: Sequence[Ids] | None, limit: int, decoding: Decoding, *, strict: bool
    ) -> list[list[Hypothesis]]:
        n_best = min(decoding.n_best, decoding.beam)
        found = self._model.translate_batch(
            _named(sources, self._words.source),
            None if prefix is None else _named(prefix, self._words.target),
            beam_size=decoding.beam,
            num_hypotheses=decoding.beam if strict else n_best,
            length_penalty=decoding.length_penalty,
            no_repeat_ngram_size=decoding.no_repeat,
            min_decoding_length=min(decoding.shortest, limit),
            max_decoding_length=limit,
            max_input_length=0,
            suppress_sequences=[[self._words.target[index]] for index in sorted(self._never)] if strict else None,
            return_scores=True,
            return_end_token=True,
        )
        listed = [
            [self._hypothesis(*each, decoding) for each in zip(one.hypotheses, one.scores, strict=True)]
            for one in found
        ]
        if strict:
            listed = self._scored(sources, listed, decoding)
        ranked = (sorted(own, key=lambda each: (not each.finished, -each.score)) for own in listed)
        return [own[:n_best] for own in ranked]

    def _hypothesis(self, said: list[str], score: float, decoding: Decoding) -> Hypothesis:
        """Their score is ours: the sum over all tokens and the end token / length ** length_penalty."""
        tokens = [self._ids[word] for word in said]
        finished = tokens[-1:] == [self._eos]
        whole = score * max(1, len(tokens)) ** decoding.length_penalty
        return Hypothesis(tuple(tokens[:-1] if finished else tokens), score, whole, (), finished)

    def _scored(
        self, sources: Sequence[Ids], listed: Sequence[Sequence[Hypothesis]], decoding: Decoding
    ) -> list[list[Hypothesis]]:
        """The same with the model's own probabilities."""
        pairs = [(source, each) for source, own in zip(sources, listed, strict=True) for each in own]
        scored = iter(self.log_probabilities([source for source, _ in pairs], [list(each.tokens) for _, each in pairs]))

        def anew(each: Hypothesis) -> Hypothesis:
            length = len(each.tokens) + each.finished
            chances = tuple(next(scored)[:length])
            whole = sum(chances)
            score = whole / max(1, length) ** decoding.length_penalty
            return Hypothesis(each.tokens, score, whole, chances, each.finished)

        return [[anew(each) for each in own] for own in listed]


def load(run: Path) -> Translator:
    """A translator that searches by CTranslate2, of a folder that was exported for it or of a run.

    A run is exported into its own folder, RUN/ctranslate2, and again when its files change. Raises InputError,
    MissingError or StorageError.
    """
    ct2.library()
    if (run / OURS).is_file():
        return _open(run)
    folder, made_of = run / CACHE, _made_of(run)
    if not (folder / OURS).is_file() or files.read_json(folder / OURS).get("made_of") != made_of:
        translator = Translator.load(run)
        refuse(translator, run)
        files.remove_tree(folder)
        with to_be(folder) as growing:
            write(growing, translator, run, made_of=made_of)
    return _open(folder)


def export(run: Path, served: Any, out: Path, *, quantize: str | None = None) -> float:
    """Makes the folder `out` of the run whose model is `served`; the largest difference of a log-probability, in
    nats."""
    ct2.library()
    if quantize not in (None, *ct2.QUANTIZATIONS):
        raise unknown_key(quantize, list(ct2.QUANTIZATIONS), where="--quantize")
    refuse(served, run)
    with to_be(out) as growing:
        return write(growing, served, run, made_of=_made_of(run), quantize=quantize)


def refuse(served: Any, run: Path) -> None:
    """Raises InputError for a run whose model cannot be exported, and names what it is or has."""
    if not isinstance(served, Translator | LanguageModel):
        what = f"CTranslate2 serves translators and language models, and this is a {type(served).__name__}"
        raise InputError(what, where=str(run), fix="use it here, without another engine")
    ct2.refuse(served.model.config, where=str(run))


def write(growing: Path, served: Any, run: Path, *, made_of: Mapping[str, str], quantize: str | None = None) -> float:
    """Fills a folder from a run, and compares what stands in it then: returns the largest difference of a
    log-probability, in nats. Raises StorageError where it is no rounding."""
    model: Any = served.model
    source, target = _tokenizers(served)
    ct2.save(growing, ct2.specification(model, words(served), quantize=quantize))
    ours = {"model": config_of(model), "made_of": made_of, "quantize": quantize}
    for name, value in {**tokenizer_files(source, target), TASK: served.about, OURS: ours}.items():
        data = value if isinstance(value, bytes) else files.json_bytes(value, where=growing / name)
        files.write_bytes(growing / name, data)
    difference, largest = compare(growing, served)
    if not difference < (torch.inf if quantize else TOLERANCE * max(1.0, largest)):
        what = f"log-probabilities that differ by {difference:.1e} from the run's"
        raise StorageError(what, where=f"what was made of {run}", fix="check the disk and run the same command again")
    return difference


@torch.inference_mode()
def compare(folder: Path, served: Any) -> tuple[float, float]:
    """Of the log-probabilities of two random texts: the largest difference between the folder's and the run's (NaN
    where one is), and the largest of the run's. In nats."""
    source, target = _tokenizers(served)
    draw, model = torch.Generator().manual_seed(0), served.model
    rows = [torch.randint(target.size, (n,), generator=draw).tolist() for n in (8, 4)]
    if isinstance(served, Translator):
        sources = [torch.randint(source.size, (n,), generator=draw).tolist() for n in (3, 7)]
        theirs = CTranslate2(folder, served).log_probabilities(sources, rows)
        rows = [[target.bos, *row, target.eos] for row in rows]
        logits = [model(torch.tensor([own]), torch.tensor([row[:-1]])) for own, row in zip(sources, rows, strict=True)]
    else:
        scored = _read(folder, "Generator").score_batch(_named(rows, words(served).target))
        theirs = [each.log_probs for each in scored]
        logits = [model(torch.tensor([row[:-1]])) for row in rows]
    both = zip(logits, rows, strict=True)
    ours = torch.cat([own[0].log_softmax(-1).gather(1, torch.tensor(row[1:])[:, None])[:, 0] for own, row in both])
    differences = ours - torch.tensor([chance for row in theirs for chance in row])
    return float(differences.abs().max()), float(ours.abs().max())


def greedy(folder: Path, model: LanguageModel, prompts: Sequence[Ids], *, tokens: int) -> list[list[int]]:
    """What the language model in a folder goes on with, at most so many tokens."""
    named = words(model).target
    found = _read(folder, "Generator").generate_batch(
        _named(prompts, named),
        max_length=tokens,
        include_prompt_in_result=False,
        suppress_sequences=[[named[index]] for index in model.forbidden] or None,
    )
    return [each.sequences_ids[0] for each in found]


def words(served: Any) -> ct2.Words:
    """The strings that stand for a model's tokens."""
    (source, target), sides = _tokenizers(served), ct2.sides(served.model.config)
    end = served.end if isinstance(served, LanguageModel) else target.eos
    named = [own.names(side[0].vocab_size) for own, side in zip((source, target), (sides[0], sides[-1]), strict=True)]
    unknown = "<unk>" if target.unk is None else named[1][target.unk]
    return ct2.Words(source=named[0], target=named[1], bos=named[1][target.bos], eos=named[1][end], unk=unknown)


def _tokenizers(served: Any) -> tuple[Tokenizer, Tokenizer]:
    if isinstance(served, LanguageModel):
        return served.tokenizer, served.tokenizer
    return served.source, served.target


def _open(folder: Path) -> Translator:
    ours, tokenizers, about = files.read_json(folder / OURS), read_tokenizers(folder), files.read_json(folder / TASK)
    if tokenizers is None:
        raise MissingError("the model has no tokenizer", where=str(folder), fix="export it again")
    with torch.device("meta"):  # its configuration is asked for, and never its weights
        model = model_from(ours["model"])
    translator = Translator(model, *tokenizers, about)
    translator.engine = CTranslate2(folder, translator)
    return translator


def _made_of(run: Path) -> dict[str, str]:
    """The sha256 of all files that an export is made of."""
    names = {CONFIG, MODEL, TASK, SPECIAL_TOKENS, NUMBERS}
    paths = (path for path in sorted(run.iterdir()) if path.name in names or path.name.startswith("tokenizer"))
    return {path.name: files.size_and_sha256(path)[1] for path in paths}


def _named(rows: Sequence[Ids], names: Sequence[str]) -> list[list[str]]:
    return [[names[index] for index in row] for row in rows]


def _read(folder: Path, kind: Literal["Translator", "Generator"]) -> Any:
    """The library's own model in a folder, with as many threads as torch has. Raises StorageError."""
    try:
        return getattr(ct2.library(), kind)(str(folder), inter_threads=1, intra_threads=torch.get_num_threads())
    except (RuntimeError, ValueError) as error:
        what = f"CTranslate2 cannot read it: {' '.join(str(error).split())}"
        raise StorageError(what, where=str(folder), fix="remove this folder, and make it again") from error
