"""`heed translate` and `heed demo`."""

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.data.lines import quoted
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError, counted
from heedful.store import files
from heedful.tasks.shared.line_by_line import answer_lines, one_each
from heedful.tasks.shared.options import (
    Device,
    Engine,
    FromLanguage,
    Json,
    Offered,
    Run,
    Settings,
    To,
    Weights,
    by_groups,
    option_of,
)
from heedful.tasks.shared.terminal import Command, on_one_line, say
from heedful.tasks.translate.options import Rerank, Tag, TranslateOptions, With
from heedful.tasks.translate.pairs.cli import align
from heedful.tasks.translate.training.cli import COMMANDS as SYNTHETIC

if TYPE_CHECKING:
    from heedful.tasks.translate.records import Translated
    from heedful.tasks.translate.use import Translator
    from heedful.tasks.translate.wishes import Wishes


Search = Annotated[
    DecodingOptions,
    Offered(
        *("beam", "n_best", "groups", "diversity", "length_penalty", "longest", "shortest", "no_repeat", "samples"),
        *("temperature", "top_k", "top_p", "seed"),
        **dict.fromkeys(("beam", "length_penalty", "longest", "shortest", "no_repeat")),  # as the run has them
    ),
]


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """Words that the translations must have, or must not have."""

    prefix: Annotated[str | None, option_of("prefix", TranslateOptions)] = None
    require: Annotated[list[str] | None, option_of("require", TranslateOptions, metavar="WORD")] = None
    avoid: Annotated[list[str] | None, option_of("avoid", TranslateOptions, metavar="WORD")] = None
    glossary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Terms and how they are translated: two columns, or TBX."),
    ] = None

    def wishes(self, languages: tuple[str, str]) -> "Wishes":
        """The wishes; prints the number of terms."""
        from heedful.tasks.translate.wishes import wishes_of

        found = wishes_of(self.require or (), self.avoid or (), self.glossary, languages)
        if found.glossary is not None:
            first = found.glossary.terms[0]
            shown = f"{quoted(first.source)}: {' or '.join(map(quoted, first.forms))}"
            left_out = found.glossary.left_out
            shown += (
                f" ({counted(left_out, 'row')} left out: no term or translation, or not to be used)" if left_out else ""
            )
            say(f"{self.glossary}: {counted(len(found.glossary.terms), 'term')}, the first {shown}")
        return found


@dataclass(frozen=True, kw_only=True)
class TranslationOutputOptions:
    """What is printed for each translation."""

    # What is no probability, NaN too, is refused below, in a line that says what to give.
    flag: Annotated[float | None, option_of("flag", TranslateOptions, metavar="P", min=None, max=None)] = None
    aligned: Annotated[bool, typer.Option("--align", help="Tell which words belong together, as heed align does.")] = (
        False
    )
    as_json: Json = False

    def __post_init__(self) -> None:
        """Raises InputError."""
        if self.flag is not None:
            from heedful.tasks.translate.confidence import refuse_no_probability

            refuse_no_probability(self.flag)


@dataclass(frozen=True, kw_only=True)
class DocumentOptions:
    """The documents to translate."""

    file: Annotated[
        list[Path] | None,
        typer.Option(metavar="IN", help="A document: its texts are translated, all else stays. May be given again."),
    ] = None
    out: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Where the document goes, or the folder for several.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions:
    """The model, its languages, and the device."""

    to: To = ""
    from_language: FromLanguage = ""
    tag: Tag = ""
    together: With = None
    rerank: Rerank = None
    engine: Engine = None
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes that share a file, on a CPU (by default one per core).")
    ] = None
    device: Device = "auto"
    weights: Weights = "float32"

    def load(self, run: Path, *, own: bool) -> "Translator":
        """`own`: another library cannot do what is asked for."""
        from heedful.run.device import chosen_device
        from heedful.tasks.translate.use import load_together

        engine = (
            "own" if self.engine == "auto" and (own or self.together or self.rerank or self.processes) else self.engine
        )
        several = f"--processes {self.processes}" if (self.processes or 1) > 1 else ""
        device = chosen_device(self.device, weights=self.weights, engine=engine, cpu_only=several)
        runs = [run, *map(Path, self.together or ())]
        translator = load_together(runs, device=device, engine=engine, weights=self.weights)
        return translator.directed(self.from_language, self.to, self.tag)


@by_groups
def translate(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines of standard input.")] = None,
    *,
    search: Search,
    words: WordOptions,
    answer: TranslationOutputOptions,
    documents: DocumentOptions,
    model: TranslatorOptions,
) -> None:
    """Translate sentences, standard input line by line, or documents.

    Documents are txt, md, html, docx, pptx, xlsx, odt, ods, odp, XLIFF, PO, srt and vtt.

    Example: heed translate runs/demo "My sister buys three apples."
    """
    translator = model.load(run, own=bool(words.require or words.avoid or words.glossary or search["samples"]))
    wishes = words.wishes(translator.languages)
    if answer.flag is not None and translator.calibration is None:
        fix = f"heed eval {run} --data DATA --calibrate"
        say(f"warning: confidence is the model's own probability, which was never calibrated ({fix})")
    if documents.out is not None and not documents.file:
        fix = "--file DOCUMENT; what becomes of texts is printed: heed translate RUN TEXT > FILE"
        raise InputError("where a document goes, and none is given", where="--out", fix=fix)
    if documents.file:
        unused = {"texts": texts, "--prefix": words.prefix, "--rerank": model.rerank, "--n-best": search["n_best"] > 1}
        if given := [name for name, value in unused.items() if value]:
            raise InputError(f"not used for documents: {', '.join(given)}", where="--file", fix="leave it out")
        write_documents(translator, documents, search, wishes, answer, model.processes)
    else:
        write_texts(translator, texts, search, words.prefix, wishes, answer, model)


def write_texts(
    translator: "Translator",
    texts: Sequence[str] | None,
    settings: DecodingOptions,
    prefix: str | None,
    wishes: "Wishes",
    answer: TranslationOutputOptions,
    model: TranslatorOptions,
) -> None:
    """`heed translate` for sentences, or for standard input line by line."""
    import torch

    from heedful.tasks.translate.pairs.pharaoh import pharaoh
    from heedful.tasks.translate.pairs.rerank import Judge, chosen_by
    from heedful.tasks.translate.records import translate_texts
    from heedful.tasks.translate.use import load_translator

    judges, n_best = [], settings["n_best"]
    several = n_best if model.rerank else max(n_best, settings["samples"])
    if model.rerank:
        decoding, device = translator.decoding(**settings), str(next(translator.model.parameters()).device)
        others = [load_translator(Path(run), device=device) for run in model.rerank]
        judges = [Judge(other, translator, length_penalty=decoding.length_penalty) for other in others]
        settings["n_best"] = 1 if settings["samples"] else n_best
        if max(n_best, decoding.beam, settings["samples"]) < 2:
            raise InputError("one translation of each, and nothing to choose among", fix="give --beam 5, or more")
    terms = () if wishes.glossary is None else tuple((own.source, "|".join(own.forms)) for own in wishes.glossary.terms)
    options = TranslateOptions(
        decoding=settings,
        prefix=prefix,
        require=wishes.require,
        avoid=wishes.avoid,
        glossary=terms,
        confidence=answer.as_json,
        flag=answer.flag,
        align=answer.aligned,
    )

    choose = partial(chosen_by, judges, most=n_best if settings["samples"] else None) if judges else None

    unlike = 0

    def answers(lines: list[str], first: int) -> Iterator[Sequence["Translated"]]:
        nonlocal unlike
        made = [*translate_texts(translator, lines, replace(options, first=first), choose)]
        unlike += sum(record.get("unlike", False) and "warning" not in record for record in made)
        return one_each(made)

    def show(found: "Translated") -> list[str]:
        each = [(one["score"], on_one_line(one["text"])) for one in found["hypotheses"]]
        told = [f"{score:.3f}\t{text}" if several > 1 else text for score, text in each]
        told += [""] * (several - len(told))
        return [f"{told[0]}\t{pharaoh(found['alignment'])}", *told[1:]] if "alignment" in found else told

    few = bool(texts) or sys.stdin.isatty()
    with translator.in_processes(model.processes or (1 if few else torch.get_num_threads())) as translator:
        answer_lines(texts, answers, show, as_json=answer.as_json, each=several)
    if unlike and answer.flag is None:
        say(f"warning: unlike all that the model was trained on: {counted(unlike, 'text')} (--flag 0.4 names them)")


def write_documents(
    translator: "Translator",
    documents: DocumentOptions,
    settings: DecodingOptions,
    wishes: "Wishes",
    answer: TranslationOutputOptions,
    processes: int | None,
) -> None:
    """`heed translate` for documents. Raises InputError for required words: every sentence would have to have them."""
    import torch

    from heedful.tasks.translate.documents.files import translate_documents
    from heedful.tasks.translate.pairs.pharaoh import pharaoh

    names, out = documents.file or [], documents.out
    if wishes.require:
        what = "every sentence of the document would have to have the word"
        fix = "--glossary FILE: a word for each term, where the source has it"
        raise InputError(what, where="--require, --file", fix=fix)
    if out is None:
        fix = "--file a.html --out b.html, or a folder for several"
        raise InputError("a document, and not where its translation goes", where="--file", fix=fix)
    with translator.in_processes(processes or torch.get_num_threads()) as translator:
        every = translate_documents(translator, names, out, settings, wishes, flag=answer.flag, align=answer.aligned)
        for written in every:
            for line in written.warnings:
                say(f"warning: {line}")
            flagged = "" if written.flagged is None else f", {written.flagged:,} to be read first"
            say(f"{written.out}: {counted(written.passages, 'passage')} translated{flagged}")
            if answer.as_json:
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
    settings: Settings = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Train, measure, use and look inside a translator, on text made on the spot.

    Example: heed demo
    """
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.tasks.translate import demo as own

    shown, out = ProgressLine(), files.with_proper_name(out)
    files.need_access(out)
    budget = [] if minutes is None else [f"train.minutes={minutes}"]
    shown.say("a phrasebook, English to French: 60,000 pairs to learn from, 1,000 unseen ones to be tested on")
    finished = shown.follow(own.train_demo(out, own.demo_recipe([*budget, *(settings or ())]), device))
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
    shown.say(f'\nnext:\n  {heed} translate {run} "{own.SHOWN}"')
    shown.say(f'  {heed} look {run} "{own.SHOWN}" --out look.html')
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
