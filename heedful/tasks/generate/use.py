"""Generating text, with a language model, and telling how likely texts are to it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heedful.apply.inference import draft_model, for_inference
from heedful.core.seeds import counter_seed
from heedful.data.batches import by_length
from heedful.data.frame import Frame
from heedful.data.text.documents import read_text
from heedful.data.text.solved import holds_solved, read_solved
from heedful.data.tokenizer import Tokenizer
from heedful.decode.draws import penalties
from heedful.decode.forced import log_probabilities
from heedful.decode.settings import Sampling, SamplingOptions
from heedful.errors import InputError
from heedful.models.lm import LM
from heedful.run.folder import read_run
from heedful.run.task import Ask, Saved, Scored
from heedful.tasks.generate.cli import TextScoring
from heedful.tasks.generate.search import likelihood_score, refuse_drawing, searched
from heedful.tasks.generate.writer import TextPiece, Writer, window
from heedful.tasks.shared.cli import expand_escapes
from heedful.tasks.shared.one_or_many import listed, one_or_many
from heedful.tasks.shared.served import Reads, TextModel, refuse_run_of_another, text_facts

Ids = list[int]
SCORED = 16384  # tokens that are scored at a time
DRAFTS = ("none", "int8", "int4")
LARGE = 50_000_000  # weights from which on an "auto" draft is made


@dataclass(frozen=True)
class Likelihood:
    """Of texts under a model: nats, summed over all tokens, and what they are divided by."""

    nats: float
    tokens: int
    bytes: int
    words: int

    @property
    def loss(self) -> float:
        """Nats a token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 700.0))

    @property
    def bits_per_byte(self) -> float:
        return self.nats / math.log(2) / self.bytes

    @property
    def word_perplexity(self) -> float:
        """Of words that spaces divide, the ends of lines counted (as WikiText is scored)."""
        return math.exp(min(self.nats / self.words, 700.0))


class Generated(NamedTuple):
    """What a model makes of a prompt: `text` is without it. One log-probability (nats) a token, of which the last may
    be those of a stop string, which is not in the text."""

    prompt: str
    text: str
    tokens: list[int]
    logprobs: list[float]


class Choice(NamedTuple):
    """A continuation of a context: the log-probability (nats) of its tokens, and how many they are."""

    choice: str
    logprob: float
    tokens: int


class LanguageModel(TextModel[LM]):
    """A trained language model and its tokenizer."""

    task: ClassVar = "generate"
    purpose: ClassVar = "generating text"

    def __init__(self, model: LM, tokenizer: Tokenizer, about: dict[str, Any], draft: LM | None = None) -> None:
        """`draft` drafts tokens where there is one text alone (`heedful.decode.continuous`)."""
        super().__init__(model, tokenizer, about)
        self.draft = draft

    @classmethod
    def load(
        cls, run: str | Path, *, device: str = "cpu", weights: str = "float32", draft: str = "none"
    ) -> "LanguageModel":
        """Reads a run's folder; `weights` may be int8 or int4, which generate faster on a CPU and say almost
        the same (`heedful.apply.inference`). With float32 weights, a `draft` of int8 or int4 is faster too and says
        the same: a copy in so few bits drafts tokens, where there is one text alone; "auto" takes int8 where reading
        the weights is most of the time. Raises MissingError, InputError or StorageError."""
        refuse_run_of_another(run, cls.task, cls.purpose)
        model, tokenizer, _, about = read_run(Path(run))
        model = model.to(device).eval()
        if draft == "auto":
            large = sum(parameter.numel() for parameter in model.parameters()) >= LARGE
            on_cpu = model.embed.tokens.weight.device.type == "cpu"
            draft = "int8" if large and on_cpu and weights == "float32" else "none"
        if draft not in DRAFTS or (draft != "none" and weights != "float32"):
            raise InputError(f"no draft {draft!r} for {weights} weights", fix=f"choose {', '.join(DRAFTS)}")
        drafting = draft_model(model, draft) if draft != "none" else None
        return cls(for_inference(model, weights), tokenizer, about, drafting)

    @property
    def reads(self) -> Reads:
        frame = Frame(self.before, [], [])
        return Reads(self.model, frame, self.tokenizer.encode_whole, sums_up="last", says=True)

    @property
    def before(self) -> Ids:
        """What a prompt begins with."""
        return self.about.get("before", [self.tokenizer.bos])

    @property
    def end(self) -> int:
        """What ends a text: with models that were trained here, where the next document would begin."""
        return self.about.get("end", self.tokenizer.bos)

    @property
    def ends(self) -> tuple[int, ...]:
        """All that ends one: `end`, and what else a model that was trained elsewhere ends by."""
        return (self.end, *(index for index in self.about.get("ends", ()) if index != self.end))

    @property
    def forbidden(self) -> tuple[int, ...]:
        """What is never said."""
        own = self.tokenizer
        others = [token for token in (own.pad, own.eos, own.unk) if token not in (None, *self.ends)]
        return tuple(self.about.get("forbidden", others))

    @property
    def device(self) -> torch.device:
        return self.model.embed.tokens.weight.device

    @property
    def context(self) -> int:
        """How many tokens the model was made to look back at."""
        return self.model.config.embed.context_length

    @one_or_many()
    def generate(
        self,
        prompts: Sequence[str],
        *,
        tokens: int = 100,
        stop: Sequence[str] = (),
        samples: int = 1,
        batch: int = 32,
        beam: int | None = None,
        best_of: int = 1,
        length_penalty: float = 1.0,
        **sampling: Unpack[SamplingOptions],
    ) -> list[list[Generated]]:
        """Continues each prompt for at most so many tokens, `samples` times, drawn as `Sampling` says.

        At most `batch` texts are made at a time: as one ends, the next enters. They change nothing about each other.
        A text ends where the model ends its document, or before the first of the strings in `stop` that it comes to.
        Where prompt and text outgrow the model's context, it continues from their last half context, as if the text had
        begun there.

        With `best_of`, so many are drawn for each text, and the most likely is kept. With a `beam`, nothing is drawn:
        the `samples` most likely texts that a beam search finds, which end at the latest where the context is full.
        Either compares the log-probabilities of all tokens and the end, divided by their number ** `length_penalty`.
        Raises InputError for settings that do not go together.
        """
        if best_of < 1 or (beam is not None and best_of > 1):
            what = f"the best of {best_of}" + ("" if beam is None else f", and a beam of {beam}")
            raise InputError(what, fix="give 1 or more, and no beam beside them")
        if beam is not None:
            refuse_drawing([*sampling], stop, width=beam, samples=samples)
            return self._search(prompts, Sampling(**sampling), tokens, beam, samples, length_penalty, batch)
        how, drawn = Sampling(**sampling), samples * best_of
        begun = [
            (ids, counter_seed(how.seed, i, j)) for i, ids in enumerate(self._begun(prompts)) for j in range(drawn)
        ]
        made = [Generated(prompt, "", [], []) for prompt in prompts for _ in range(drawn)]
        ends: list[list[float]] = [[] for _ in made]
        for piece in self._say(begun, how, tokens, stop, batch):
            own = made[piece.text]
            if piece.token is not None:
                own.tokens.append(piece.token)
                own.logprobs.append(piece.logprob)
            ends[piece.text] += [] if piece.end is None else [piece.end_logprob]
            made[piece.text] = own._replace(text=own.text + piece.piece)
        scores = [likelihood_score(own.logprobs + end, length_penalty) for own, end in zip(made, ends, strict=True)]
        groups = (range(i, i + best_of) for i in range(0, len(made), best_of))
        best = [made[max(group, key=scores.__getitem__)] for group in groups]
        return [best[i : i + samples] for i in range(0, len(best), samples)]

    def _search(
        self,
        prompts: Sequence[str],
        how: Sampling,
        tokens: int,
        beam: int,
        samples: int,
        length_penalty: float,
        batch: int,
    ) -> list[list[Generated]]:
        begun = self._begun(prompts)
        found = searched(
            self.model,
            begun,
            ends=self.ends,
            forbidden=self.forbidden,
            rules=penalties(how),
            tokens=tokens,
            width=beam,
            n_best=samples,
            length_penalty=length_penalty,
            batch=batch,
        )
        made: list[list[Generated]] = []
        for prompt, ids, best in zip(prompts, begun, found, strict=True):
            texts = [self.tokenizer.decode_after(ids, each.tokens) for each in best]
            pairs = zip(texts, best, strict=True)
            made.append(
                [
                    Generated(prompt, text, [*own.tokens], [*own.token_log_probabilities[: len(own.tokens)]])
                    for text, own in pairs
                ]
            )
        return made

    def stream(
        self, prompt: str, *, tokens: int = 100, stop: Sequence[str] = (), **sampling: Unpack[SamplingOptions]
    ) -> Iterator[str]:
        """The text that `generate` gives for this prompt alone, piece by piece as it is made."""
        how = Sampling(**sampling)
        begun = [(ids, counter_seed(how.seed, 0, 0)) for ids in self._begun([prompt])]
        for said in self._say(begun, how, tokens, stop, 1):
            if said.piece:
                yield said.piece

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        return self.tokenizer.encode_whole(texts)

    def _begun(self, prompts: Sequence[str]) -> list[Ids]:
        return [self.begun(ids) for ids in self._ids(prompts)]

    def begun(self, prompt: str | Sequence[int]) -> Ids:
        """A prompt, or its tokens, as the model is to read it; nothing is begun with what begins all."""
        ids = self._ids([prompt])[0] if isinstance(prompt, str) else prompt
        return [*self.before, *ids] or [self.tokenizer.bos]

    def writer(self, *, rows: int, size: int | None = None) -> Writer:
        """What continues texts that come and go, at most `rows` at a time."""
        return Writer(
            self.model,
            self.tokenizer,
            end=self.ends,
            forbidden=self.forbidden,
            draft=self.draft,
            rows=rows,
            size=size,
        )

    def _say(
        self, begun: Sequence[tuple[Ids, int]], how: Sampling, tokens: int, stop: Sequence[str], batch: int
    ) -> Iterator[TextPiece]:
        """Continues texts, each with its seed, and tells what is added to which, as it is made."""
        if not begun or tokens < 1:
            return
        longest = max(len(window(ids, self.context)) for ids, _ in begun)
        writer = self.writer(rows=batch, size=longest + tokens - 1)
        for ids, seed in begun:
            writer.add(ids, replace(how, seed=seed), tokens=tokens, stop=stop)
        while len(writer):
            yield from writer.step()

    @one_or_many()
    @torch.inference_mode()
    def likelihood(self, texts: Sequence[str], *, stride: int | None = None) -> list[Likelihood]:
        """Of each text by itself, begun with the tokenizer's `bos`.

        What is longer than the model's context goes through a window that moves by `stride` tokens (None: half of
        it): each token is scored once, given all before it that the window holds.
        """
        made = []
        for text, ids in zip(texts, self._ids(texts), strict=True):
            nats = float(self._nats(ids, stride).sum())
            made.append(Likelihood(nats, len(ids), len(text.encode()), len(text.split()) + text.count("\n")))
        return made

    def evaluate(self, texts: Sequence[str], *, stride: int | None = None) -> Likelihood:
        """Of all texts together."""
        each = self.likelihood(texts, stride=stride)
        return Likelihood(*(sum(getattr(one, key) for one in each) for key in ("nats", "tokens", "bytes", "words")))

    def choose(self, context: str, choices: Sequence[str]) -> list[Choice]:
        """The choices by their log-probability as what follows the context, the likeliest first.

        What is scored are the tokens of context + choice, encoded as a whole and begun with `bos`, from the first that
        differs from the encoding of the context alone: where the choice changes the context's last tokens (the space
        of "a " may become part of " b"), what they have become is the choice's. A text that outgrows the model's
        context loses its beginning, as much for each choice. Raises InputError for a choice that adds no token, or
        that is itself longer than the model's context.
        """
        return sorted(self.weigh([context], [listed(choices)])[0], key=lambda one: -one.logprob)

    def weigh(self, contexts: Sequence[str], choices: Sequence[Sequence[str]]) -> list[list[Choice]]:
        """`choose` for many contexts, each with its own choices, which stay in the order given.

        A context is read once for all its choices, in a batch with contexts of like length.
        """
        asked = [self._asked(context, own) for context, own in zip(contexts, choices, strict=True)]
        width = max(map(len, choices), default=1)
        out: list[list[Choice]] = [[] for _ in asked]
        for group in by_length([past for past, _, _ in asked], SCORED // max(1, width)):
            past = [torch.tensor(asked[i][0], device=self.device) for i in group]
            found = log_probabilities(
                self.model,
                pad_sequence([ids[:-1] for ids in past], batch_first=True),
                pad_sequence([torch.ones_like(ids[:-1]) for ids in past], batch_first=True),
                bos=torch.stack([ids[-1] for ids in past]),
                continuations=[asked[i][1] for i in group],
            )
            for i, each in zip(group, found, strict=True):
                for choice, logprobs, own in zip(choices[i], each, asked[i][2], strict=True):
                    out[i].append(Choice(choice, sum(logprobs[-own:]), own))
        return out

    def _asked(self, context: str, choices: Sequence[str]) -> tuple[Ids, list[Ids], list[int]]:
        """What is read once, how each choice continues, and how many tokens at its end are the choice's."""
        alone, *whole = self._ids([context, *(context + choice for choice in choices)])
        alike = [_alike(alone, ids) for ids in whole]
        for choice, ids, shared in zip(choices, whole, alike, strict=True):
            if shared == len(ids):
                raise InputError(f"the choice {choice!r} adds no token to its context", fix="give text to choose")
        border = min(alike, default=len(alone))
        rest = [ids[border:] for ids in whole]
        longest = max(map(len, rest), default=0)
        if longest > self.context:
            what = f"a choice of {longest} tokens does not fit the model's context of {self.context}"
            raise InputError(what, fix="give shorter choices")
        past = [self.tokenizer.bos, *alone[:border]][
            longest - self.context - 1 :
        ]  # the last token is scored, and never read
        return past, rest, [len(ids) - shared for ids, shared in zip(whole, alike, strict=True)]

    def _nats(self, ids: Ids, stride: int | None = None) -> Float[Tensor, "T"]:
        """The negative log-probability of each token."""
        context, device = self.context, self.device
        step = stride or max(1, context // 2)
        if not 1 <= step <= context:
            raise InputError(f"a stride of {step} is not between 1 and the context, {context}")
        whole = torch.tensor([self.tokenizer.bos, *ids], device=device)
        found = torch.empty(len(ids), device=device)
        ends = [min(context, len(ids))] if ids else []
        while ends and ends[-1] < len(ids):
            ends.append(min(ends[-1] + step, len(ids)))
        spans = [(max(0, end - context), 0 if i == 0 else ends[i - 1], end) for i, end in enumerate(ends)]
        like = max(1, SCORED // context)
        for group in (spans[i : i + like] for i in range(0, len(spans), like)):  # all windows are equally long
            rows = torch.stack([whole[begin : end + 1] for begin, _, end in group])
            logits = self.model(rows[:, :-1]).float()
            nats = torch.nn.functional.cross_entropy(logits.transpose(1, 2), rows[:, 1:], reduction="none")
            for (begin, fresh, end), row in zip(group, nats, strict=True):
                found[fresh:end] = row[fresh - begin :]
        return found


def _alike(one: Ids, other: Ids) -> int:
    """How many tokens the two begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    tokens: int = 200
    samples: int = 1
    batch: int = 32
    stop: tuple[str, ...] = ()
    beam: int | None = None
    best_of: int = 1
    length_penalty: float = 1.0
    sampling: SamplingOptions = field(default_factory=SamplingOptions)


def continue_texts(model: LanguageModel, prompts: Sequence[str], options: GenerateOptions) -> Iterator[dict[str, Any]]:
    """The fields of `Generated`, for each sample of each prompt."""
    for own in continue_each(model, prompts, options):
        yield from own


def continue_each(
    model: LanguageModel, prompts: Sequence[str], options: GenerateOptions
) -> Iterator[list[dict[str, Any]]]:
    """The same, a list for each prompt."""
    made = model.generate(
        prompts,
        tokens=options.tokens,
        stop=options.stop,
        samples=options.samples,
        batch=options.batch,
        beam=options.beam,
        best_of=options.best_of,
        length_penalty=options.length_penalty,
        **options.sampling,
    )
    yield from ([each._asdict() for each in own] for own in made)


class ScoredText(TypedDict, total=False):
    """An answer as a record: how likely a text is, or each of the choices that may follow it."""

    text: str
    logprob: float
    tokens: int
    choices: list[dict[str, Any]]  # of `Choice`


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    choices: tuple[str, ...] = ()


def weigh_texts(model: LanguageModel, texts: Sequence[str], options: ScoreOptions) -> Iterator[ScoredText]:
    if options.choices:
        for text in texts:
            yield {"text": text, "choices": [each._asdict() for each in model.choose(text, options.choices)]}
        return
    for text, found in zip(texts, model.likelihood(texts), strict=True):
        yield {"text": text, "logprob": -found.nats, "tokens": found.tokens}


ASK_GENERATE = Ask(continue_texts, GenerateOptions, each=continue_each, gathers=lambda options: False)
ASK_SCORE = Ask(weigh_texts, ScoreOptions)


def score_language_model(model: LanguageModel, options: TextScoring) -> Iterator[Scored]:
    """The likelihood of a text, or, of a file of inputs with answers, how many are right."""
    from heedful.tasks.generate.in_context import Asking, evaluate_in_context

    data, pool = options.path, options.shots_from
    if options.shots or pool or holds_solved(data):
        asking = Asking(
            shots=options.shots,
            by=options.by,
            seed=options.seed,
            delimiter=expand_escapes(options.delimiter),
            separator=expand_escapes(options.separator),
        )
        shown = None if pool is None else read_solved(pool)
        answers = evaluate_in_context(model, read_solved(data), asking, pool=shown)
        yield Scored(data, answers.facts(), str(answers), tuple(answers.notes))
        return
    found = model.evaluate(read_text(data))
    names = ("loss", "perplexity", "bits_per_byte", "word_perplexity", "tokens")
    yield Scored(data, {name: getattr(found, name) for name in names})


def language_model_facts(saved: Saved) -> dict[str, Any]:
    return text_facts(saved, saved.config.embed.context_length)
