"""Generates text with a language model, and scores texts by their likelihood."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, Unpack, runtime_checkable

import torch

from heedful.apply.inference import draft_model, for_inference
from heedful.core.arguments import checks_arguments
from heedful.core.seeds import counter_seed
from heedful.data.frame import Frame
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.decode.continuous import RowsModel
from heedful.decode.contract import ATTENDED, with_attention
from heedful.decode.rows import refuse_length_penalty
from heedful.decode.settings import Sampling, SamplingOptions
from heedful.errors import InputError, counted
from heedful.models.lm import LM
from heedful.run.device import Device, known_device
from heedful.run.folder import read_run
from heedful.tasks.generate.likelihood import Choice, ChoicePrompt, Likelihood, asked_of, nats_of, weighed
from heedful.tasks.generate.search import BeamPlan, likelihood_score, refuse_drawing, refuse_unused_penalty, searched
from heedful.tasks.generate.writer import TextPiece, Writer, window
from heedful.tasks.shared.one_or_many import listed, one_or_many
from heedful.tasks.shared.opened import OpenedChanges, changed
from heedful.tasks.shared.served import Reads, TextModel, refuse_run_of_another

DRAFTS = ("none", "int8", "int4")
LARGE = 50_000_000  # weights from which on "auto" uses a draft model


class Generated(NamedTuple):
    """A continuation of a prompt: `text` does not include the prompt. One log-probability (nats) per token; the last
    tokens may belong to a stop string, which is not in the text."""

    prompt: str
    text: str
    tokens: list[int]
    logprobs: list[float]


L = TypeVar("L", bound="LanguageModel")


@runtime_checkable
class TextEngine(Protocol):
    """Another library with the same model."""

    @property
    def name(self) -> str:
        """What it is called after `--engine`."""

    def reader(self, *, rows: int, size: int) -> RowsModel[Any]:
        """Continues so many texts at a time, each of at most `size` tokens."""


class LanguageModelChanges(OpenedChanges, total=False):
    """What another model may have in place of a language model's own."""

    engine: "TextEngine | None"


class LanguageModel(TextModel[LM]):
    """A trained language model and its tokenizer."""

    task: ClassVar = "generate"
    purpose: ClassVar = "generating text"

    def __init__(self, model: LM, tokenizer: Tokenizer, about: dict[str, Any], draft: LM | None = None) -> None:
        """`draft` is a draft model, which drafts tokens where a single text is generated
        (`heedful.decode.continuous`)."""
        super().__init__(model, tokenizer, about)
        self.draft = draft
        self.engine: TextEngine | None = None

    def by(self: L, engine: "TextEngine") -> L:
        """The same model, whose texts are written by another library."""
        return self.changed(engine=engine)

    def changed(self: L, **values: Unpack[LanguageModelChanges]) -> L:
        return changed(self, values)

    @classmethod
    @checks_arguments
    def load(
        cls, run: str | Path, *, device: Device = "cpu", weights: str = "float32", draft: str = "none"
    ) -> "LanguageModel":
        """Loads the model in a run's folder. `weights` may be int8 or int4, which generate faster on a CPU, with almost
        the same results (`heedful.apply.inference`). With float32 weights, a `draft` of int8 or int4 generates a single
        text faster, with the same result: a copy of the model in fewer bits drafts tokens. "auto" takes int8 for a
        large model on a CPU, where reading the weights takes most of the time. Raises MissingError, InputError or
        StorageError."""
        refuse_run_of_another(run, cls.task, cls.purpose)
        model, tokenizer, _, about = read_run(Path(run))
        model = model.to(known_device(device)).eval()
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
        """The tokens that are put before a prompt."""
        return self.about.get("before", [self.tokenizer.bos])

    @property
    def end(self) -> int:
        """The token that ends a text; in models that were trained here, the one that begins the next document."""
        return self.about.get("end", self.tokenizer.bos)

    @property
    def ends(self) -> tuple[int, ...]:
        """All tokens that end a text: `end`, and the further ones of a model that was trained elsewhere."""
        return (self.end, *(index for index in self.about.get("ends", ()) if index != self.end))

    @property
    def forbidden(self) -> tuple[int, ...]:
        """Tokens that are never generated."""
        own = self.tokenizer
        others = [token for token in (own.pad, own.eos, own.unk) if token not in (None, *self.ends)]
        return tuple(self.about.get("forbidden", others))

    @property
    def device(self) -> torch.device:
        return self.model.embed.tokens.weight.device

    @property
    def context(self) -> int:
        """The model's context length, in tokens."""
        return self.model.config.embed.context_length

    @one_or_many()
    def generate(
        self,
        prompts: Sequence[str],
        *,
        tokens: int = 100,
        stop: str | Sequence[str] = (),
        samples: int = 1,
        batch: int = 32,
        beam: int | None = None,
        best_of: int = 1,
        length_penalty: float = 1.0,
        **sampling: Unpack[SamplingOptions],
    ) -> list[list[Generated]]:
        """Continues each prompt `samples` times by at most `tokens` tokens, drawn as described in `Sampling`.

        At most `batch` texts are generated at a time; as one ends, the next enters. They do not influence each other. A
        text ends where the model ends its document, or before the first occurrence of a string in `stop`. Where prompt
        and text outgrow the model's context, it continues from their last half context, as if the text had begun there.

        With `best_of`, that many are drawn for each text, and the most likely is kept. With a `beam`, nothing is drawn:
        the results are the `samples` most likely texts that a beam search finds; they end where the context is full.
        Both compare the sum of the log-probabilities of all tokens and the end, divided by their number **
        `length_penalty`. Raises InputError for settings that cannot be combined.
        """
        if batch < 1:
            raise InputError(f"a batch of {batch} rows", fix="give 1 or more")
        if tokens < (0 if beam is None else 1) or samples < 1:
            raise InputError(f"{samples} texts of {tokens} tokens", fix="give 1 or more of each")
        if best_of < 1 or (beam is not None and best_of > 1):
            what = f"the best of {best_of}" + ("" if beam is None else f", and a beam of {beam}")
            raise InputError(what, fix="give 1 or more, and no beam beside them")
        refuse_unused_penalty(length_penalty, compares=beam is not None or best_of > 1)
        refuse_length_penalty(length_penalty, tokens)
        begun = self._begun(prompts)
        width, rows = beam or samples * best_of, max(batch, beam or 1)
        self._ask_leave(begun, tokens, width, rows)
        if beam is not None:
            refuse_drawing([*sampling], stop, width=beam, samples=samples)
            return self._search(
                prompts, begun, BeamPlan(tokens, beam, samples, length_penalty, batch), Sampling(**sampling)
            )
        how, drawn = Sampling(**sampling), samples * best_of
        seeded = [(ids, counter_seed(how.seed, i, j)) for i, ids in enumerate(begun) for j in range(drawn)]
        made = [Generated(prompt, "", [], []) for prompt in prompts for _ in range(drawn)]
        ends: list[list[float]] = [[] for _ in made]
        for piece in self._say(seeded, how, tokens, stop, batch):
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

    def _ask_leave(self, begun: Sequence[Ids], tokens: int, width: int, rows: int) -> None:
        """Asks the budget for `width` texts of each prompt, `rows` at a time. Raises TooMuchError."""
        read = [len(window(ids, self.context)) for ids in begun]
        longest = min(self.context, max(read, default=0) + tokens)
        said = width * len(begun) * (tokens + tokens * longest // ATTENDED)
        self.spend(sum(map(with_attention, read)) + said, min(rows, width * len(begun)) * longest)

    def _search(
        self, prompts: Sequence[str], begun: Sequence[Ids], plan: BeamPlan, how: Sampling
    ) -> list[list[Generated]]:
        found = searched(self.model, begun, plan, how, ends=self.ends, forbidden=self.forbidden, at_once=self.at_once)
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

    @checks_arguments
    def stream(
        self, prompt: str, *, tokens: int = 100, stop: str | Sequence[str] = (), **sampling: Unpack[SamplingOptions]
    ) -> Iterator[str]:
        """Yields the text that `generate` returns for this prompt alone, piece by piece as it is generated."""
        if tokens < 0:
            raise InputError(f"a text of {tokens} tokens", fix="give 1 or more")
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
        """The tokens of a prompt (a text or its tokens) as the model reads them: after `before`; `bos` where there is
        nothing."""
        ids = self._ids([prompt])[0] if isinstance(prompt, str) else prompt
        return [*self.before, *ids] or [self.tokenizer.bos]

    def writer(self, *, rows: int, size: int | None = None) -> Writer:
        """A writer, which generates at most `rows` texts at a time."""
        engine = self.engine
        return Writer(
            self.model if engine is None else engine.reader(rows=rows, size=min(self.context, size or self.context)),
            self.tokenizer,
            context=self.context,
            device=self.device,
            end=self.ends,
            forbidden=self.forbidden,
            draft=self.draft if engine is None else None,
            rows=rows,
            size=size,
        )

    def _say(
        self, begun: Sequence[tuple[Ids, int]], how: Sampling, tokens: int, stop: str | Sequence[str], batch: int
    ) -> Iterator[TextPiece]:
        """Continues texts, each with its seed, and yields the pieces as they are generated."""
        if not begun or tokens < 1:
            return
        longest = max(len(window(ids, self.context)) for ids, _ in begun)
        writer = self.writer(rows=min(batch, len(begun)), size=longest + tokens - 1)
        for ids, seed in begun:
            writer.add(ids, replace(how, seed=seed), tokens=tokens, stop=stop)
        while len(writer):
            yield from writer.step()

    @one_or_many()
    @torch.inference_mode()
    def likelihood(self, texts: Sequence[str], *, stride: int | None = None) -> list[Likelihood]:
        """The likelihood of each text by itself, begun with the tokenizer's `bos`.

        A text that is longer than the model's context is scored in windows that move by `stride` tokens (None: half of
        the context): each token is scored once, given all tokens before it in its window.
        """
        made, every = [], self._ids(texts)
        self.spend(sum(2 * len(ids) for ids in every), 0)  # windows overlap
        for text, ids in zip(texts, every, strict=True):
            nats = float(nats_of(self.model, [self.tokenizer.bos, *ids], stride).sum())
            made.append(Likelihood(nats, len(ids), len(text.encode()), len(text.split()) + text.count("\n")))
        return made

    @checks_arguments
    def measure(self, texts: str | Sequence[str], *, stride: int | None = None) -> Likelihood:
        """The likelihood of all texts together. Raises InputError where they have no token."""
        texts = listed(texts)
        each = self.likelihood(texts, stride=stride)
        found = Likelihood(*(sum(getattr(one, key) for one in each) for key in ("nats", "tokens", "bytes", "words")))
        if not found.tokens:
            raise InputError("no text to be scored", fix="give some text")
        return found

    @checks_arguments
    def choose(self, context: str, choices: str | Sequence[str]) -> list[Choice]:
        """The choices by their log-probability after the context, the most likely first.

        Context + choice is encoded as a whole and begun with `bos`; the tokens from the first that differs from the
        encoding of the context alone are scored. Where the choice changes the context's last tokens (the space of "a "
        may become part of " b"), the changed tokens count as the choice's. A text that is longer than the model's
        context loses its beginning, equally much for each choice. Raises InputError for a choice that adds no token, or
        that is itself longer than the model's context.
        """
        return sorted(self.weigh([context], [listed(choices)])[0], key=lambda one: -one.logprob)

    @checks_arguments
    def weigh(self, contexts: Sequence[str], choices: Sequence[Sequence[str]]) -> list[list[Choice]]:
        """`choose` for many contexts, each with its own choices, which keep their order.

        A context is read once for all its choices, in a batch with contexts of similar length. Raises InputError, also
        for a text instead of a list.
        """
        if len(contexts) != len(choices):
            what = f"weigh: {counted(len(contexts), 'context')} and {counted(len(choices), 'list')} of choices"
            raise InputError(what, fix="give a list of contexts, and for each its choices")
        asked = [self._asked(context, own) for context, own in zip(contexts, choices, strict=True)]
        self.spend(sum(one.tokens for one in asked), 0)
        found = weighed(self.model, asked)
        return [
            [Choice(*each) for each in zip(own, logprobs, one.counts, strict=True)]
            for own, logprobs, one in zip(choices, found, asked, strict=True)
        ]

    def _asked(self, context: str, choices: Sequence[str]) -> ChoicePrompt:
        """Raises InputError as described in `choose`."""
        alone, *whole = self._ids([context, *(context + choice for choice in choices)])
        return asked_of(choices, alone, whole, bos=self.tokenizer.bos, most=self.context)
