"""`heed generate` and `heed score`."""

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from heedful.decode.settings import DecodingOptions, SamplingOptions
from heedful.errors import InputError
from heedful.tasks.generate.options import GenerateOptions
from heedful.tasks.shared.line_by_line import answer_lines, one_each
from heedful.tasks.shared.options import (
    Device,
    FromLanguage,
    Json,
    Offered,
    Run,
    TextEngine,
    To,
    by_groups,
    option_of,
)
from heedful.tasks.shared.terminal import Command, printable, tell

if TYPE_CHECKING:
    from heedful.tasks.generate.records import ScoredText
    from heedful.tasks.generate.use import LanguageModel

QUANTISED = ("int8", "int4")
LONG = 400  # tokens from which on "auto" uses a draft model: with 500 tokens it saved time, with 200 it did not


PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")
USUAL = {"temperature": 0.8, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 0}  # of what a beam search does not use
Search = Annotated[DecodingOptions, Offered(*USUAL, *PENALTIES, "beam", "length_penalty", **USUAL, beam=None)]


def sampling_of(search: DecodingOptions, *, compares: bool) -> SamplingOptions:
    """What tokens are drawn by, or the penalties of a beam search. `compares`: whether several texts are made, of which
    one is kept. Raises InputError for an option that this search does not use."""
    if search["length_penalty"] != 1.0 and not compares:
        raise InputError("--length-penalty compares texts, and one is drawn", fix="give --beam 4 or --best-of 8")
    names = PENALTIES if "beam" in search else (*USUAL, *PENALTIES)
    if unused := [name for name, value in USUAL.items() if name not in names and search.get(name) != value]:
        raise InputError(f"--{unused[0].replace('_', '-')} is not used by a beam search", fix="leave it out")
    return cast("SamplingOptions", {name: value for name, value in search.items() if name in names})


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The number of texts, their length, and how they are shown."""

    tokens: Annotated[int, option_of("tokens", GenerateOptions)] = 200
    samples: Annotated[int, option_of("samples", GenerateOptions)] = 1
    best_of: Annotated[int, option_of("best_of", GenerateOptions)] = 1
    stop: Annotated[list[str] | None, option_of("stop", GenerateOptions)] = None
    batch: Annotated[int, option_of("batch", GenerateOptions)] = 32
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
    engine: TextEngine = "own"
    device: Device = "auto"

    def load(self, run: Path, *, drafts: bool) -> "LanguageModel":
        """Loads the model. `drafts`: whether "auto" may use a draft model."""
        from heedful.run.device import chosen_device
        from heedful.tasks.generate.llama import with_engine
        from heedful.tasks.generate.use import LanguageModel

        few = f"--draft {self.draft}" if self.draft in QUANTISED else ""
        draft = self.draft if drafts or self.draft != "auto" else "none"
        device = chosen_device(self.device, weights=self.weights, engine=self.engine, cpu_only=few)
        model = LanguageModel.load(run, device=device, weights=self.weights, draft=draft)
        return with_engine(model, run, engine=self.engine, weights=self.weights)


@by_groups
def generate(
    run: Run,
    prompts: Annotated[list[str] | None, typer.Argument(help="Texts to continue; without any, from nothing.")] = None,
    *,
    text: TextOptions,
    search: Search,
    model: LanguageModelOptions,
) -> None:
    """Generate text: continue a prompt.

    Example: heed generate runs/text "Once upon a time" --tokens 100
    """
    from heedful.tasks.generate.records import continue_texts

    texts = prompts or [""]
    one = len(texts) == text.samples == 1
    compares = "beam" in search or text.best_of > 1
    alone = one and not text.as_json and not compares
    if text.stream and not alone:
        what = "several texts, JSON, or a text that is searched for, cannot be shown as they are made"
        raise InputError(what, fix="leave out --stream")
    sampling, stop = sampling_of(search, compares=compares), tuple(text.stop or ())
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
        beam=search.get("beam"),
        best_of=text.best_of,
        length_penalty=search["length_penalty"],
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
