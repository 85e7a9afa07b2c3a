"""`heed generate` and `heed score`."""

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError
from heedful.tasks.shared.line_by_line import answer_lines, one_each
from heedful.tasks.shared.options import (
    Device,
    FromLanguage,
    Json,
    Run,
    Seed,
    Temperature,
    To,
    TopK,
    TopP,
    by_groups,
)
from heedful.tasks.shared.terminal import Command, printable, tell

if TYPE_CHECKING:
    from heedful.decode.settings import SamplingOptions
    from heedful.tasks.generate.records import ScoredText
    from heedful.tasks.generate.use import LanguageModel

QUANTISED = ("int8", "int4")
DRAWS = ("temperature", "top_k", "top_p", "min_p", "seed")  # not used by a beam search
LONG = 400  # tokens from which on "auto" uses a draft model: with 500 tokens it saved time, with 200 it did not


@dataclass(frozen=True, kw_only=True)
class TextSearch:
    """How `heed generate` draws a text, or searches for a likely one."""

    temperature: Temperature = 0.8
    top_k: TopK = 0
    top_p: TopP = 1.0
    min_p: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="Sample only tokens at least this share as probable as the most probable one."
        ),
    ] = 0.0
    repetition_penalty: Annotated[
        float, typer.Option(min=1.0, help="Penalty on tokens that already occurred, in the prompt too; 1 is off.")
    ] = 1.0
    presence_penalty: Annotated[
        float, typer.Option(min=-2.0, max=2.0, help="Subtracted from the logits of tokens that were generated already.")
    ] = 0.0
    frequency_penalty: Annotated[
        float,
        typer.Option(
            min=-2.0, max=2.0, help="Subtracted from the logit of a token for each time that it was generated."
        ),
    ] = 0.0
    seed: Seed = 0
    beam: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Search for the most likely text with so many beginnings; 1 is greedy."),
    ] = None
    best_of: Annotated[
        int, typer.Option(min=1, max=1024, help="Draw so many for each text, and keep the most likely.")
    ] = 1
    length_penalty: Annotated[
        float, typer.Option(help="Length penalty: 1 ranks by the mean log-probability of a token, 0 by the sum.")
    ] = 1.0

    @property
    def compares(self) -> bool:
        """Whether several texts are compared, so that none is known before all are made."""
        return self.beam is not None or self.best_of > 1

    @property
    def sampling(self) -> "SamplingOptions":
        """The sampling options. Raises InputError for an option that this search does not use."""
        from heedful.decode.settings import SamplingOptions

        if self.length_penalty != 1.0 and not self.compares:
            fix = "give --beam 4 or --best-of 8"
            raise InputError("--length-penalty compares texts, and one is drawn", fix=fix)
        penalties = SamplingOptions(
            repetition_penalty=self.repetition_penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
        )
        if self.beam is None:
            return SamplingOptions(
                **penalties,
                temperature=self.temperature,
                top_k=self.top_k,
                top_p=self.top_p,
                min_p=self.min_p,
                seed=self.seed,
            )
        usual = {each.name: each.default for each in fields(self)}
        if given := [name for name in DRAWS if getattr(self, name) != usual[name]]:
            raise InputError(f"--{given[0].replace('_', '-')} is not used by a beam search", fix="leave it out")
        return penalties


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The number of texts, their length, and how they are shown."""

    tokens: Annotated[int, typer.Option(min=1, help="The most new tokens.")] = 200
    samples: Annotated[int, typer.Option(min=1, help="How many texts for each prompt.")] = 1
    stop: Annotated[list[str] | None, typer.Option(help="End before this text; may be given again.")] = None
    batch: Annotated[int, typer.Option(min=1, help="How many texts are made at a time.")] = 32
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Show one text as it is made; at a terminal, by default."),
    ] = None
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class LanguageModelOptions:
    """The number of bits of the weights, speculative decoding, and the device."""

    weights: Annotated[str, typer.Option(help="float32, int8 or int4: fewer bits are faster.")] = "float32"
    draft: Annotated[
        str,
        typer.Option(
            help="int8, int4, none: speculative decoding by a draft model of so few bits, for the same text sooner; "
            "auto: int8 for one long text of a large model."
        ),
    ] = "auto"
    device: Device = "auto"

    def load(self, run: Path, *, drafts: bool) -> "LanguageModel":
        """Loads the model. `drafts`: whether "auto" may use a draft model."""
        from heedful.run.device import chosen_device
        from heedful.tasks.generate.use import LanguageModel

        few = f"--draft {self.draft}" if self.draft in QUANTISED else ""
        draft = self.draft if drafts or self.draft != "auto" else "none"
        device = chosen_device(self.device, weights=self.weights, cpu_only=few)
        return LanguageModel.load(run, device=device, weights=self.weights, draft=draft)


@by_groups
def generate(
    run: Run,
    prompts: Annotated[list[str] | None, typer.Argument(help="Texts to continue; without any, from nothing.")] = None,
    *,
    text: TextOptions,
    search: TextSearch,
    model: LanguageModelOptions,
) -> None:
    """Generate text: continue a prompt.

    Example: heed generate runs/text "Once upon a time" --tokens 100
    """
    from heedful.tasks.generate.records import GenerateOptions, continue_texts

    texts = prompts or [""]
    one = len(texts) == text.samples == 1
    alone = one and not text.as_json and not search.compares
    if text.stream and not alone:
        what = "several texts, JSON, or a text that is searched for, cannot be shown as they are made"
        raise InputError(what, fix="leave out --stream")
    sampling, stop = search.sampling, tuple(text.stop or ())
    writer = model.load(run, drafts=one and text.tokens >= LONG)
    if alone and (sys.stdout.isatty() if text.stream is None else text.stream):
        made = writer.stream(texts[0], tokens=text.tokens, stop=stop, **sampling)
        for piece in itertools.chain(texts, made, "\n"):
            print(piece, end="", flush=True)
        return
    options = GenerateOptions(
        tokens=text.tokens,
        samples=text.samples,
        batch=text.batch,
        stop=stop,
        beam=search.beam,
        best_of=search.best_of,
        length_penalty=search.length_penalty,
        sampling=sampling,
    )
    for each in continue_texts(writer, texts, options):
        tell(each, each["prompt"] + each["text"], as_json=text.as_json)


def score(
    run: Run,
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.", show_default=False)
    ] = None,
    choice: Annotated[list[str] | None, typer.Option(help="A text that may follow; give it twice or more.")] = None,
    source: Annotated[str | None, typer.Option(help="Of a translator: a file, a sentence a line.")] = None,
    target: Annotated[str | None, typer.Option(help="Its translations, line by line.")] = None,
    data: Annotated[str | None, typer.Option(help="Of a translator: pairs, in any file that train reads.")] = None,
    to: To = "",
    from_language: FromLanguage = "",
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Tell how likely texts are to a language model, or translations to a translator: log-probability (nats), tokens.

    With choices, tell how likely each of them is after the text, the likeliest first. To a translator, a text is a
    source, a TAB and its translation; of each it tells nats a token, nats, tokens, source and translation.

    Example: heed score runs/text "Once upon a time"
    """
    from heedful.data.lines import sanitise
    from heedful.run.device import chosen_device
    from heedful.run.folder import task_name
    from heedful.tasks.generate.records import ScoreOptions, weigh_texts
    from heedful.tasks.generate.use import LanguageModel
    from heedful.tasks.translate.pairs.cli import Given, score_pairs

    if (run / "task.json").is_file() and task_name(run)[0] == "translate":
        if choice:
            raise InputError("--choice is not used by a translator", where=str(run), fix="leave it out")
        score_pairs(run, Given(texts, source, target, data, to, from_language), device=device, as_json=as_json)
        return
    pairs = {"source": source, "target": target, "data": data, "to": to, "from-language": from_language}
    if given := [name for name, value in pairs.items() if value]:
        raise InputError(f"--{given[0]} is not used by a language model", where=str(run), fix="leave it out")
    model = LanguageModel.load(run, device=chosen_device(device))
    options = ScoreOptions(choices=tuple(map(sanitise, choice or ())))

    def answers(lines: list[str], first: int) -> Iterator[Sequence["ScoredText"]]:
        return one_each(weigh_texts(model, lines, options))

    def show(found: "ScoredText") -> Iterator[str]:
        each = [(one["logprob"], one["tokens"], one["choice"]) for one in found.get("choices", ())]
        rows = each or [(found["logprob"], found["tokens"], found["text"])]
        return (f"{logprob:.3f}\t{count}\t{printable(text)}" for logprob, count, text in rows)

    answer_lines(texts, answers, show, as_json=as_json)


COMMANDS = (Command("generate", generate), Command("score", score))
