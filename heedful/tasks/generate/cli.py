"""`heed generate` and `heed score`."""

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError
from heedful.tasks.shared.cli import (
    Command,
    DataOptions,
    Device,
    Json,
    Run,
    Seed,
    Temperature,
    TopK,
    TopP,
    printable,
    tell,
)
from heedful.tasks.shared.line_by_line import answer_lines, one_each

if TYPE_CHECKING:
    from heedful.tasks.generate.use import ScoredText

QUANTISED = ("int8", "int4")
LONG = 400  # tokens from which on a draft is made unasked: of 500 it saved time, of 200 none


@dataclass(frozen=True, kw_only=True)
class TextScoring(DataOptions):
    """What `heed eval` is told for a language model."""

    shots: Annotated[int, typer.Option(min=0, help="Solved examples in each prompt.")] = 0
    shots_from: Annotated[str | None, typer.Option(help="A .jsonl file that they are taken from.")] = None
    delimiter: Annotated[str, typer.Option(help="Between an input and its answer.")] = " "
    separator: Annotated[str, typer.Option(help="After each answer; \\n is the end of a line.")] = "\\n"
    by: Annotated[str, typer.Option(help="likelihood (of the choices), or match (what is generated).")] = "likelihood"
    seed: Annotated[int, typer.Option(min=0, help="Draws the solved examples.")] = 0


def generate(
    run: Run,
    prompts: Annotated[list[str] | None, typer.Argument(help="Texts to continue; without any, from nothing.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="The most new tokens.")] = 200,
    samples: Annotated[int, typer.Option(min=1, help="How many texts for each prompt.")] = 1,
    temperature: Temperature = 0.8,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    min_p: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Only those at least this share as probable as the best.")
    ] = 0.0,
    repetition_penalty: Annotated[float, typer.Option(min=1.0, help="Of tokens that were said before; 1: none.")] = 1.0,
    stop: Annotated[list[str] | None, typer.Option(help="End before this text; may be given again.")] = None,
    seed: Seed = 0,
    beam: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Search for the most likely text with so many beginnings; 1 is greedy."),
    ] = None,
    best_of: Annotated[
        int, typer.Option(min=1, max=1024, help="Draw so many for each text, and keep the most likely.")
    ] = 1,
    length_penalty: Annotated[
        float, typer.Option(help="What is likely, of a beam or the best of several: 1 by the token, 0 in all.")
    ] = 1.0,
    batch: Annotated[int, typer.Option(min=1, help="How many texts are made at a time.")] = 32,
    weights: Annotated[str, typer.Option(help="float32, int8 or int4: fewer bits are faster.")] = "float32",
    draft: Annotated[
        str,
        typer.Option(
            help="int8, int4, none: speculative decoding by a draft model of so few bits, for the same text sooner; "
            "auto: int8 for one long text of a large model."
        ),
    ] = "auto",
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Show one text as it is made; at a terminal, by default."),
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Generate text: continue a prompt.

    Example: heed generate runs/text "Once upon a time" --tokens 100
    """
    from heedful.decode.settings import SamplingOptions
    from heedful.run.device import chosen_device
    from heedful.tasks.generate.use import GenerateOptions, LanguageModel, continue_texts

    texts = prompts or [""]
    one = len(texts) == samples == 1
    alone = one and not as_json and beam is None and best_of == 1
    if stream and not alone:
        what = "several texts, JSON, or a text that is searched for, cannot be shown as they are made"
        raise InputError(what, fix="leave out --stream")
    if length_penalty != 1.0 and beam is None and best_of == 1:
        raise InputError("--length-penalty compares texts, and one is drawn", fix="give --beam 4 or --best-of 8")
    worth = one and tokens >= LONG
    few = f"--weights {weights}" if weights in QUANTISED else f"--draft {draft}" if draft in QUANTISED else ""
    device = chosen_device(device, cpu_only=few)
    draft = draft if worth or draft != "auto" else "none"
    model = LanguageModel.load(run, device=device, weights=weights, draft=draft)
    sampling = SamplingOptions(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        seed=seed,
    )
    if beam is not None:  # which draws nothing
        chosen = SamplingOptions(repetition_penalty=repetition_penalty)
        usual = {"temperature": 0.8, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 0}
        given = [name for name, value in usual.items() if sampling[name] != value]  # type: ignore[literal-required]
        if given:
            raise InputError(f"--{given[0].replace('_', '-')} is not used by a beam search", fix="leave it out")
        sampling = chosen
    if alone and (sys.stdout.isatty() if stream is None else stream):
        made = model.stream(texts[0], tokens=tokens, stop=stop or (), **sampling)
        for piece in itertools.chain(texts, made, "\n"):
            print(piece, end="", flush=True)
        return
    options = GenerateOptions(
        tokens=tokens,
        samples=samples,
        batch=batch,
        stop=tuple(stop or ()),
        beam=beam,
        best_of=best_of,
        length_penalty=length_penalty,
        sampling=sampling,
    )
    for each in continue_texts(model, texts, options):
        tell(each, each["prompt"] + each["text"], as_json=as_json)


def score(
    run: Run,
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.", show_default=False)
    ] = None,
    choice: Annotated[list[str] | None, typer.Option(help="A text that may follow; give it twice or more.")] = None,
    source: Annotated[str | None, typer.Option(help="Of a translator: a file, a sentence a line.")] = None,
    target: Annotated[str | None, typer.Option(help="Its translations, line by line.")] = None,
    data: Annotated[str | None, typer.Option(help="Of a translator: pairs, in any file that train reads.")] = None,
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
    from heedful.tasks.generate.use import LanguageModel, ScoreOptions, weigh_texts
    from heedful.tasks.translate.pairs.cli import Given, score_pairs

    if (run / "task.json").is_file() and task_name(run)[0] == "translate":
        if choice:
            raise InputError("--choice is not used by a translator", where=str(run), fix="leave it out")
        score_pairs(run, Given(texts, source, target, data), device=device, as_json=as_json)
        return
    if given := [name for name, value in (("source", source), ("target", target), ("data", data)) if value]:
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
