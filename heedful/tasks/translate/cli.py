"""`heed translate` and `heed demo`."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError
from heedful.tasks.shared.cli import (
    Beam,
    Command,
    Device,
    Engine,
    Json,
    LayerOptions,
    LengthPenalty,
    Run,
    Seed,
    Settings,
    Temperature,
    TopK,
    TopP,
    on_one_line,
    printable,
    say,
)
from heedful.tasks.shared.line_by_line import GROUP, answer_groups, answer_lines, one_each

if TYPE_CHECKING:
    from heedful.tasks.translate.use import Translated
    from heedful.tasks.translate.weigh import ScoredPair


To = Annotated[str, typer.Option("--to", metavar="LANGUAGE", help="The language to translate to, of several.")]
FromLanguage = Annotated[str, typer.Option(metavar="LANGUAGE", help="The language of the texts, of several.")]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="RUN", help="Search with this run too, as one model; may be given again."),
]


@dataclass(frozen=True, kw_only=True)
class TranslationScoring:
    """What `heed eval` is told for a translator."""

    source: Annotated[
        str | None, typer.Option(help="A file, a sentence a line; with --data, a language or column.")
    ] = None
    target: Annotated[str | None, typer.Option(help="Its reference translations, line by line; likewise.")] = None
    data: Annotated[str | None, typer.Option(help="Data as for train: its test sets are scored.")] = None
    beam: Beam = None
    length_penalty: LengthPenalty = None
    together: With = None
    engine: Engine = None
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for 95 % intervals, such as 1000.")] = 0
    ter: Annotated[bool, typer.Option("--ter", help="Score by TER too, which takes its time.")] = False
    against: Annotated[
        str | None, typer.Option(metavar="RUN", help="Compare with this run: is the difference more than chance?")
    ] = None
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write the translations here, a line each.")] = None


@dataclass(frozen=True, kw_only=True)
class TranslationLook(LayerOptions):
    """What `heed look` is told for a translator."""

    target: Annotated[str | None, typer.Option(help="Watch this translation in place of the model's own.")] = None


def translate(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines of standard input.")] = None,
    beam: Beam = None,
    n_best: Annotated[int, typer.Option(min=1, help="How many translations of each.")] = 1,
    length_penalty: LengthPenalty = None,
    longest: Annotated[int | None, typer.Option(min=1, help="The most new tokens.")] = None,
    shortest: Annotated[int | None, typer.Option(min=0, help="The fewest new tokens.")] = None,
    no_repeat: Annotated[int | None, typer.Option(min=0, help="No n-gram of this size twice.")] = None,
    prefix: Annotated[str | None, typer.Option(help="How each translation must begin.")] = None,
    samples: Annotated[int, typer.Option(min=0, help="Draw this many at random in place of searching.")] = 0,
    temperature: Temperature = 1.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    seed: Seed = 0,
    to: To = "",
    from_language: FromLanguage = "",
    together: With = None,
    rerank: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Choose among the beam by this run too, of the same or the other direction."),
    ] = None,
    engine: Engine = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="That share a file, on a CPU, with one thread each; else one a core.")
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Translate sentences, or standard input line by line.

    Example: heed translate runs/demo "The small cat is sleeping."
    """
    import torch

    from heedful.decode.settings import DecodingOptions
    from heedful.run.device import chosen_device
    from heedful.tasks.translate.load import load_together, load_translator
    from heedful.tasks.translate.rerank import Judge, reranked
    from heedful.tasks.translate.use import TranslateOptions, translate_texts

    several = f"--processes {processes}" if (processes or 1) > 1 else ""
    device = chosen_device(device, cpu_only=f"--engine {engine}" if engine else several)
    translator = load_together([run, *map(Path, together or ())], device=device, engine=engine)
    translator = translator.directed(from_language, to)
    settings = DecodingOptions(
        n_best=n_best, samples=samples, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
    )
    if beam is not None:
        settings["beam"] = beam
    if length_penalty is not None:
        settings["length_penalty"] = length_penalty
    if longest is not None:
        settings["longest"] = longest
    if shortest is not None:
        settings["shortest"] = shortest
    if no_repeat is not None:
        settings["no_repeat"] = no_repeat
    judge = None
    if rerank is not None:
        judge = Judge(load_translator(rerank, device=device), translator)
        settings["n_best"] = max(n_best, settings.get("beam", translator.decoding().beam))
        if max(settings["n_best"], samples) < 2:
            raise InputError("one translation of each, and nothing to choose among", fix="give --beam 5, or more")
    options = TranslateOptions(decoding=settings, prefix=prefix)
    count = processes or (1 if texts or sys.stdin.isatty() else torch.get_num_threads())

    def answers(lines: list[str], first: int) -> Iterator[Sequence["Translated"]]:
        made = translate_texts(translator, lines, replace(options, first=first))
        return one_each(made if judge is None else reranked(made, judge, n_best=n_best))

    def show(found: "Translated") -> list[str]:
        each = [(one["score"], on_one_line(one["text"])) for one in found["hypotheses"]]
        return [f"{score:.3f}\t{text}" if len(each) > 1 else text for score, text in each]

    with translator.in_processes(count):
        answer_lines(texts, answers, show, as_json=as_json)


def score_pairs(
    run: Path,
    texts: Sequence[str] | None,
    *,
    source: str | None,
    target: str | None,
    data: str | None,
    device: str,
    as_json: bool,
) -> None:
    """`heed score` of a translator: lines of two columns, two files, or pairs as a training reads them."""
    from heedful.data.text.pairs import read_pairs, read_whole
    from heedful.run.device import chosen_device
    from heedful.tasks.translate.use import Translator
    from heedful.tasks.translate.weigh import PairOptions, weigh, weigh_texts

    if data is None and (source is None) != (target is None):
        raise InputError("one side of the pairs alone", fix="give --source FILE --target FILE")
    if texts and (data or source):
        raise InputError("texts beside a file of pairs", fix="give one of the two")
    translator = Translator.load(run, device=chosen_device(device))

    def show(found: "ScoredPair") -> str:
        figures = f"{found['per_token']:.3f}\t{found['logprob']:.3f}\t{found['tokens']}"
        return f"{figures}\t{printable(found['source'])}\t{printable(found['target'])}"

    if data is not None:
        about = translator.about
        read, _ = read_whole(data, source=source or about["source"], target=target or about["target"])
        pairs = read.train.apart()
    elif source is not None and target is not None:
        pairs = read_pairs(source, target)
    else:
        asked = PairOptions()
        answer_lines(texts, lambda lines, _: one_each(weigh_texts(translator, lines, asked)), show, as_json=as_json)
        return
    both = [*zip(pairs.source, pairs.target, strict=True)]
    groups = (both[i : i + GROUP] for i in range(0, len(both), GROUP))
    if pairs.dropped:
        say(f"{pairs.name}: {pairs.dropped:,} pairs left out, a side is empty")
    answer_groups(
        groups,
        lambda some, _: one_each(weigh(translator, some)),
        show,
        named=pairs.where,
        name=pairs.name,
        as_json=as_json,
    )


def demo(
    out: Annotated[Path, typer.Option(help="Where the run goes.")] = Path("runs/demo"),
    settings: Settings = [],  # noqa: B006  # typer copies it
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Train, measure, use and look inside a translator, on text made on the spot.

    Example: heed demo
    """
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.tasks.translate import demo as own

    shown = ProgressLine()
    shown.say("a phrasebook, English to French: 60,000 pairs to learn from, 1,000 unseen ones to be tested on")
    finished = shown.follow(own.train_demo(out, own.demo_recipe(settings), device))
    if finished is None:
        return
    test = finished.scores["test"]
    shown.say(
        f"\n{100 * test['exact']:.1f} % of {own.TESTED:,} unseen sentences exactly right, BLEU {test['bleu']:.1f}, "
        f"after {finished.minutes:.1f} minutes of training\n"
    )
    for source, text in own.examples(out):
        shown.say(f"  {source}\n    -> {text}")
    picture, page = own.pictures(out)
    shown.say(f"\nwho looked at whom: {picture} and, to explore in a browser, {page}")
    shown.say(f'\nnext:\n  ./heed translate {out} "My sister is reading a book."')
    shown.say(f'  ./heed look {out} "My sister is reading a book." --out look.html')
    shown.say(
        "  ./heed train translate --data PAIRS.tsv --out runs/mine     # your own: source TAB target, a pair a line"
    )
    shown.say(f"  ./heed serve {out} --open     # what was just trained, in a browser and for other programs")
    if as_json:
        scores = {key: test[key] for key in ("exact", "bleu", "chrf")}
        print(json.dumps(scores | {"minutes": finished.minutes}))


COMMANDS = (Command("demo", demo, group="Train"), Command("translate", translate))
