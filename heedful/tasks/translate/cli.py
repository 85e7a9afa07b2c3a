"""`heed translate` and `heed demo`."""

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
    Weights,
    on_one_line,
    say,
)
from heedful.tasks.shared.line_by_line import answer_lines, one_each
from heedful.tasks.translate.pairs.cli import align
from heedful.tasks.translate.training.cli import COMMANDS as SYNTHETIC

if TYPE_CHECKING:
    from heedful.decode.settings import DecodingOptions
    from heedful.tasks.translate.records import Translated
    from heedful.tasks.translate.use import Translator
    from heedful.tasks.translate.wishes import Wishes

To = Annotated[str, typer.Option("--to", metavar="LANGUAGE", help="The language to translate to, of several.")]
FromLanguage = Annotated[str, typer.Option(metavar="LANGUAGE", help="The language of the texts, of several.")]
Tag = Annotated[str, typer.Option("--tag", metavar="NAME", help="The kind of translation, of those learnt: formal.")]
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
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Fit confidence on these pairs, or the data's validation part, and keep it."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class TranslationLook(LayerOptions):
    """What `heed look` is told for a translator."""

    target: Annotated[str | None, typer.Option(help="Watch this translation in place of the model's own.")] = None
    tag: Tag = ""


def translate(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines of standard input.")] = None,
    beam: Beam = None,
    n_best: Annotated[int, typer.Option(min=1, help="How many translations of each.")] = 1,
    groups: Annotated[
        int, typer.Option(min=1, help="Groups of the beam that say different things, for --n-best and --rerank.")
    ] = 1,
    diversity: Annotated[float, typer.Option(min=0, help="How different: nats for what another group says.")] = 0.5,
    length_penalty: LengthPenalty = None,
    longest: Annotated[int | None, typer.Option(min=1, help="The most new tokens.")] = None,
    shortest: Annotated[int | None, typer.Option(min=0, help="The fewest new tokens.")] = None,
    no_repeat: Annotated[int | None, typer.Option(min=0, help="No n-gram of this size twice.")] = None,
    prefix: Annotated[str | None, typer.Option(help="How each translation must begin.")] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD", help='What each must have in it, or one of several: "Hund|Hunde"; again for more.'
        ),
    ] = None,
    avoid: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="What none may have in it; both may be given again.")
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Terms and how they are translated: two columns, or TBX."),
    ] = None,
    flag: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="P", help="Tell what is less sure than this, to be read first: 0.4."),
    ] = None,
    aligned: Annotated[
        bool, typer.Option("--align", help="Tell which words belong together, as heed align does.")
    ] = False,
    samples: Annotated[int, typer.Option(min=0, help="Draw this many at random in place of searching.")] = 0,
    temperature: Temperature = 1.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    seed: Seed = 0,
    file: Annotated[
        list[Path] | None,
        typer.Option(metavar="IN", help="A document: its texts are translated, all else stays. May be given again."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Where the document goes, or the folder for several.")
    ] = None,
    to: To = "",
    from_language: FromLanguage = "",
    tag: Tag = "",
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
    weights: Weights = "float32",
    as_json: Json = False,
) -> None:
    """Translate sentences, standard input line by line, or documents.

    Documents are txt, md, html, docx, XLIFF, PO, srt and vtt.

    Example: heed translate runs/demo "The small cat is sleeping."
    """
    import torch

    from heedful.decode.settings import DecodingOptions, chosen
    from heedful.run.device import chosen_device
    from heedful.tasks.translate.load import load_together, load_translator
    from heedful.tasks.translate.pairs.pharaoh import pharaoh, with_alignments
    from heedful.tasks.translate.pairs.rerank import Judge, reranked
    from heedful.tasks.translate.records import TranslateOptions, flagged, translate_texts
    from heedful.tasks.translate.wishes import wishes_of

    if engine == "auto" and (together or require or avoid or glossary or samples or rerank or processes):
        engine = "own"  # what the library cannot do
    several = f"--processes {processes}" if (processes or 1) > 1 else ""
    few = "" if weights == "float32" else f"--weights {weights}"
    device = chosen_device(device, cpu_only="--engine ctranslate2" if engine == "ctranslate2" else few or several)
    runs = [run, *map(Path, together or ())]
    translator = load_together(runs, device=device, engine=engine, weights=weights)
    translator = translator.directed(from_language, to, tag)
    settings = chosen(beam=beam, length_penalty=length_penalty, longest=longest, shortest=shortest, no_repeat=no_repeat)
    settings |= DecodingOptions(
        n_best=n_best,
        groups=groups,
        diversity=diversity,
        samples=samples,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    wanted = wishes_of(require or (), avoid or (), glossary, translator.languages)
    if glossary is not None and wanted.glossary is not None:
        count = len(wanted.glossary.terms)
        say(f"{glossary}: {count:,} term{'' if count == 1 else 's'}")
    if flag is not None and translator.calibration is None:
        fix = f"heed eval {run} --data DATA --calibrate"
        say(f"warning: confidence is the model's own probability, which was never calibrated ({fix})")
    if file or out is not None:
        unused = {"texts": texts, "--prefix": prefix, "--rerank": rerank, "--n-best": n_best > 1}
        if require:
            what = "every sentence of the document would have to have the word"
            fix = "--glossary FILE: a word for each term, where the source has it"
            raise InputError(what, where="--require, --file", fix=fix)
        write_documents(
            translator, file, out, settings, wanted, unused, processes, flag=flag, align=aligned, as_json=as_json
        )
        return
    judge = None
    if rerank is not None:
        judge = Judge(load_translator(rerank, device=device), translator)
        settings["n_best"] = max(n_best, settings.get("beam", translator.decoding().beam))
        if max(settings["n_best"], samples) < 2:
            raise InputError("one translation of each, and nothing to choose among", fix="give --beam 5, or more")
    terms = () if wanted.glossary is None else tuple((own.source, "|".join(own.forms)) for own in wanted.glossary.terms)
    options = TranslateOptions(
        decoding=settings,
        prefix=prefix,
        require=wanted.require,
        avoid=wanted.avoid,
        glossary=terms,
        confidence=as_json or flag is not None,
    )
    count = processes or (1 if texts or sys.stdin.isatty() else torch.get_num_threads())

    def answers(lines: list[str], first: int) -> Iterator[Sequence["Translated"]]:
        made = translate_texts(translator, lines, replace(options, first=first))
        made = made if judge is None else reranked(made, judge, n_best=n_best)
        made = made if flag is None else (flagged(one, flag) for one in made)
        return one_each(with_alignments(translator, [*made]) if aligned else made)

    def show(found: "Translated") -> list[str]:
        each = [(one["score"], on_one_line(one["text"])) for one in found["hypotheses"]]
        told = [f"{score:.3f}\t{text}" if len(each) > 1 else text for score, text in each]
        return [f"{told[0]}\t{pharaoh(found['alignment'])}", *told[1:]] if "alignment" in found else told

    with translator.in_processes(count):
        answer_lines(texts, answers, show, as_json=as_json)


def write_documents(
    translator: "Translator",
    names: Sequence[Path] | None,
    out: Path | None,
    settings: "DecodingOptions",
    wishes: "Wishes",
    unused: Mapping[str, object],
    processes: int | None,
    *,
    flag: float | None,
    align: bool,
    as_json: bool,
) -> None:
    """`heed translate` of documents. Raises InputError for options that it has no use for."""
    import torch

    from heedful.tasks.translate.documents.files import translate_documents
    from heedful.tasks.translate.pairs.pharaoh import pharaoh

    if not names or out is None:
        fix = "--file a.html --out b.html, or a folder for several"
        raise InputError("a document and where it goes belong together", where="--file, --out", fix=fix)
    if given := [name for name, value in unused.items() if value]:
        raise InputError(f"not used for documents: {', '.join(given)}", where="--file", fix="leave it out")
    with translator.in_processes(processes or torch.get_num_threads()):
        for written in translate_documents(translator, names, out, settings, wishes, flag=flag, align=align):
            for line in written.warnings:
                say(f"warning: {line}")
            flagged = "" if written.flagged is None else f", {written.flagged:,} to be read first"
            say(f"{written.out}: {written.passages:,} passages translated{flagged}")
            if as_json:
                print(json.dumps(asdict(written), ensure_ascii=False), flush=True)
                continue
            for pair in written.alignments:
                texts = (on_one_line(pair[side]) for side in ("source", "target"))
                print(*texts, pharaoh(pair["alignment"]), sep="\t", flush=True)


def demo(
    out: Annotated[Path, typer.Option(help="Where the run goes.")] = Path("runs/demo"),
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="At most how long to train.", show_default="4")
    ] = None,
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
    budget = [] if minutes is None else [f"train.minutes={minutes}"]
    shown.say("a phrasebook, English to French: 60,000 pairs to learn from, 1,000 unseen ones to be tested on")
    finished = shown.follow(own.train_demo(out, own.demo_recipe([*budget, *settings]), device))
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
    heed, run = os.environ.get("HEED", "heed"), shlex.quote(str(out))
    shown.say(f'\nnext:\n  {heed} translate {run} "My sister is reading a book."')
    shown.say(f'  {heed} look {run} "My sister is reading a book." --out look.html')
    shown.say(f"  {heed} train translate --data PAIRS.tsv --out runs/mine    # yours: source TAB target, a pair a line")
    shown.say(f"  {heed} serve {run} --open    # what was just trained, in a browser and for other programs")
    if as_json:
        scores = {key: test[key] for key in ("exact", "bleu", "chrf")}
        print(json.dumps(scores | {"minutes": finished.minutes}))


COMMANDS = (
    Command("demo", demo, group="Train"),
    Command("translate", translate),
    Command("align", align),
    *SYNTHETIC,
)
