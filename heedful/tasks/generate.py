"""Going on with a text: `LanguageTask` is what the training loop needs, `LanguageModel` what a person uses."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heedful.data.batches import by_length, shuffled
from heedful.data.reader import Reader
from heedful.data.tokenizer import BOS, Tokenizer
from heedful.decode.continuous import Batch
from heedful.decode.forced import log_probabilities
from heedful.decode.rules import NEVER, RepetitionPenalty
from heedful.errors import InputError
from heedful.models.inference import for_inference, quick_copy
from heedful.models.lm import LM
from heedful.tasks.folder import read_run
from heedful.tasks.recipe import TrainRecipe
from heedful.train.loop import counter_seed
from heedful.train.loss import Loss, linear_cross_entropy

Ids = list[int]
SCORED = 16384  # tokens that are scored at a time
DRAFTS = ("none", "int8", "int4")
LARGE = 50_000_000  # weights from which on an "auto" draft is made


class Block(NamedTuple):
    """Rows of running text: place i of `tokens` predicts place i of `following`. Segment 0 is padding."""

    tokens: Int[Tensor, "B T"]
    following: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]

    @property
    def rows(self) -> int:
        return len(self.tokens)

    def part(self, rank: int, ranks: int) -> "Block":
        """The rows that are `rank`'s of `ranks` that share this batch."""
        return Block(*(tensor[rank::ranks] for tensor in self))


class LanguageTask:
    """Batches cut from one stream, in which each document begins with `bos`, and the cross-entropy of what follows.

    In every epoch the stream is cut at other places, and its pieces come in another order. `across`: a token may look
    at the documents before its own; else segments keep them apart.
    """

    def __init__(
        self, documents: Sequence[Ids], recipe: TrainRecipe, *, context: int, across: bool, bos: int = BOS
    ) -> None:
        self.recipe, self.context, self.across, self.bos = recipe, context, across, bos
        self.stream = torch.tensor([token for ids in documents for token in (bos, *ids)] + [bos])
        if len(self.stream) < context + 2:
            what = f"{len(self.stream) - 2:,} tokens do not fill one row of {context}"
            raise InputError(what, fix="give more text, or --set model.context=32")
        self._kept: tuple[int, list[Block]] | None = None

    def batches(self, epoch: int) -> list[Block]:
        if self._kept is None or self._kept[0] != epoch:
            room = (len(self.stream) - 1) % self.context
            offset = counter_seed(self.recipe.seed, "offset", epoch) % (room + 1)
            count = (len(self.stream) - 1 - offset) // self.context
            starts = [offset + self.context * i for i in shuffled(count, self.recipe.seed, epoch)]
            rows = max(1, self.recipe.tokens // self.context)
            self._kept = epoch, [self._block(starts[i : i + rows]) for i in range(0, count, rows)]
        return self._kept[1]

    def _block(self, starts: list[int]) -> Block:
        places = torch.tensor(starts)[:, None] + torch.arange(self.context + 1)
        taken = self.stream[places]
        tokens = taken[:, :-1]
        segments = torch.ones_like(tokens) if self.across else (tokens == self.bos).cumsum(1) + 1
        return Block(tokens, taken[:, 1:], segments)

    def loss(self, model: LM, batch: Block) -> Loss:
        return cross_entropy(model, batch, across=self.across, smoothing=self.recipe.smoothing or 0.0)


def cross_entropy(model: LM, batch: Block, *, across: bool, smoothing: float = 0.0) -> Loss:
    """Summed over the tokens, in nats."""
    device, head = model.head.weight.device, model.head
    tokens, following, segments = (part.to(device) for part in batch)
    hidden = model.hidden(tokens, None if across else segments)
    words = following.flatten()
    total = linear_cross_entropy(hidden.flatten(0, 1), head.weight, head.bias, words, smoothing=smoothing)
    return Loss(total, len(words))


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
    """A way to go on with a context: the log-probability (nats) of its tokens, and how many they are."""

    choice: str
    logprob: float
    tokens: int


class Added(NamedTuple):
    """What was added to the text of this number: `piece` (maybe nothing yet), by `token` (None: the text is over)."""

    text: int
    piece: str
    token: int | None
    logprob: float


@dataclass(frozen=True)
class Sampling:
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float


class LanguageModel:
    """A trained language model and its tokenizer."""

    def __init__(self, model: LM, tokenizer: Tokenizer, about: dict[str, Any], draft: LM | None = None) -> None:
        """`draft` guesses what the model will say of one text alone (`heedful.decode.continuous`)."""
        self.model, self.draft = model.eval(), draft
        self.tokenizer, self.about = tokenizer, about

    @classmethod
    def load(
        cls, run: str | Path, *, device: str = "cpu", weights: str = "float32", draft: str = "none"
    ) -> "LanguageModel":
        """Reads a run's folder; `weights` may be int8 or int4, which generate faster on a CPU and say almost
        the same (`heedful.models.inference`). With float32 weights, a `draft` of int8 or int4 is faster too and says
        the same: a copy in so few bits guesses ahead, where there is one text alone; "auto" takes int8 where reading
        the weights is most of the time. Raises MissingError, InputError or StorageError."""
        model, tokenizer, _, about = read_run(Path(run))
        if about.get("task") != "generate":
            raise InputError(f"a model for {about.get('task')!r}, not for going on with a text", where=str(run))
        model = model.to(device).eval()
        if draft == "auto":
            large = sum(parameter.numel() for parameter in model.parameters()) >= LARGE
            on_cpu = model.embed.tokens.weight.device.type == "cpu"
            draft = "int8" if large and on_cpu and weights == "float32" else "none"
        if draft not in DRAFTS or (draft != "none" and weights != "float32"):
            raise InputError(f"no draft {draft!r} for {weights} weights", fix=f"choose {', '.join(DRAFTS)}")
        guesser = quick_copy(model, draft) if draft != "none" else None
        return cls(for_inference(model, weights), tokenizer, about, guesser)

    @property
    def before(self) -> Ids:
        """What a prompt begins with."""
        return self.about.get("before", [self.tokenizer.bos])

    @property
    def end(self) -> int:
        """What ends a text: with models that were trained here, where the next document would begin."""
        return self.about.get("end", self.tokenizer.bos)

    @property
    def forbidden(self) -> tuple[int, ...]:
        """What is never said."""
        own = self.tokenizer
        others = [token for token in (own.pad, own.eos, own.unk) if token not in (None, self.end)]
        return tuple(self.about.get("forbidden", others))

    @property
    def device(self) -> torch.device:
        return self.model.embed.tokens.weight.device

    @property
    def context(self) -> int:
        """How many tokens the model was made to look back at."""
        return self.model.config.embed.places.size

    def generate(
        self,
        prompts: Sequence[str],
        *,
        tokens: int = 100,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
        samples: int = 1,
        batch: int = 32,
    ) -> list[list[Generated]]:
        """Goes on with each prompt for at most so many tokens, `samples` times; temperature 0 is greedy.

        At most `batch` texts are made at a time: as one ends, the next enters. They change nothing about each other.
        A text ends where the model ends its document, or before the first of the strings in `stop` that it comes to.
        Where prompt and text outgrow the model's context, it goes on from their last half context, as if the text had
        begun there.
        """
        settings = Sampling(temperature, top_k, top_p, min_p, repetition_penalty)
        begun = [(ids, counter_seed(seed, i, j)) for i, ids in enumerate(self._begun(prompts)) for j in range(samples)]
        made = [Generated(prompt, "", [], []) for prompt in prompts for _ in range(samples)]
        for number, piece, token, logprob in self._say(begun, settings, tokens, stop, batch):
            if token is not None:
                made[number].tokens.append(token)
                made[number].logprobs.append(logprob)
            made[number] = made[number]._replace(text=made[number].text + piece)
        return [made[i : i + samples] for i in range(0, len(made), samples)]

    def stream(
        self,
        prompt: str,
        *,
        tokens: int = 100,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
    ) -> Iterator[str]:
        """The text that `generate` gives for this prompt alone, piece by piece as it is made."""
        settings = Sampling(temperature, top_k, top_p, min_p, repetition_penalty)
        begun = [(ids, counter_seed(seed, 0, 0)) for ids in self._begun([prompt])]
        for said in self._say(begun, settings, tokens, stop, 1):
            if said.piece:
                yield said.piece

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        return self.tokenizer.encode_whole(texts)

    def _begun(self, prompts: Sequence[str]) -> list[Ids]:
        """As the model is to read them; nothing is begun with what begins all."""
        return [[*self.before, *ids] or [self.tokenizer.bos] for ids in self._ids(prompts)]

    def _say(
        self, begun: Sequence[tuple[Ids, int]], settings: "Sampling", tokens: int, stop: Sequence[str], batch: int
    ) -> Iterator["Added"]:
        """Goes on with texts, each with its seed, and tells what is added to which, as it is made."""
        if not begun or tokens < 1:
            return
        past, made = [self._window(ids) for ids, _ in begun], [Ids() for _ in begun]
        readers, full = [Reader(self.tokenizer, stop, ids) for ids, _ in begun], [0] * len(begun)
        running = Batch(
            self.model,
            rows=batch,
            size=min(self.context, max(map(len, past)) + tokens - 1),
            device=self.device,
            temperature=settings.temperature,
            top_k=settings.top_k or None,
            top_p=settings.top_p,
            min_p=settings.min_p,
            forbidden=self.forbidden,
            rules=[RepetitionPenalty(settings.repetition_penalty)] if settings.repetition_penalty != 1 else [],
            draft=self.draft,
        )

        def enter(number: int) -> None:
            ids, seed = begun[number]
            window = self._window([*ids, *made[number]])
            full[number] = len(made[number]) + self.context + 1 - len(window)
            running.add(number, window, counter_seed(seed, len(made[number])))

        for number in range(len(begun)):
            enter(number)
        while len(running):
            for number, token, logprob in running.step():
                ended = token == self.end or logprob == NEVER
                if not ended:
                    made[number].append(token)
                    yield Added(number, readers[number].read(token), token, logprob)
                if ended or readers[number].over or len(made[number]) == tokens:
                    running.drop(number)
                    yield Added(number, readers[number].rest(), None, 0.0)
                elif len(made[number]) == full[number]:
                    running.drop(number)
                    enter(number)

    def _window(self, ids: Ids) -> Ids:
        """What the model is to look back at: all, or the last half of its context."""
        return ids if len(ids) + 1 < self.context else ids[-max(1, self.context // 2) :]

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
        return sorted(self.weigh([context], [choices])[0], key=lambda one: -one.logprob)

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
        """What is read once, how each choice goes on from there, and how many tokens at its end are the choice's."""
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
