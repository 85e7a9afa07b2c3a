"""`heed distil` and `heed back-translate`: a model translates one side of a corpus, and another learns from that."""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.errors import InputError
from heedful.tasks.shared.cli import Beam, Command, Device, Json, LengthPenalty, Run, Seed, Settings, tell

if TYPE_CHECKING:
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.tasks.translate.training.synthetic import Synthetic

EVERY = 15  # seconds between two lines that tell how far it is
OWN_DATA = ("tokenizer", "vocab_size", "joint")  # what a student takes of its teacher's recipe

Data = Annotated[
    list[str] | None,
    typer.Option(help="Pairs, as for heed train; may be given again.", show_default=False),
]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="RUN", help="Let this run teach too, as one model; may be given again."),
]


def distil(
    teacher: Run,
    data: Data = None,
    preset: Annotated[
        str, typer.Option(help="The size of the student; heed info lists them.")
    ] = "transformer-deep-shallow",
    out: Annotated[Path, typer.Option(help="Where the student goes.")] = Path("runs/student"),
    together: With = None,
    originals: Annotated[
        float,
        typer.Option(min=0.0, help="How often an epoch has each pair as it was, beside the teacher's; 0: not at all."),
    ] = 1.0,
    taught: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the teacher's translations are kept.", show_default="OUT.taught.tsv"),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Language, column or key to translate from.")] = None,
    target: Annotated[str | None, typer.Option(help="Language, column or key to translate to.")] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    minutes: Annotated[float | None, typer.Option(min=0.01, help="How long to train the student.")] = None,
    settings: Settings = [],  # noqa: B006  # typer copies it
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Train a smaller translator on the translations of a larger one, its teacher.

    The teacher translates the sources of the data first, which is kept in a file: the same command again continues what
    was interrupted, and another student may learn from it too.

    Example: heed distil runs/big --data pairs.tsv --preset transformer-tiny --out runs/small
    """
    import torch

    from heedful.data.text.corpus import read_parallel
    from heedful.decode.settings import chosen
    from heedful.run.device import chosen_device
    from heedful.run.folder import task_name
    from heedful.run.recipe import override, validated
    from heedful.run.train import train
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.tasks.translate import TRANSLATE
    from heedful.tasks.translate.languages import KEY
    from heedful.tasks.translate.recipe import TranslateRecipe
    from heedful.tasks.translate.training.synthetic import Synthetic, columns_called
    from heedful.tasks.translate.use import Translator

    if not data:
        raise InputError("no data was given", fix="--data PATH: the pairs whose sources the teacher translates")
    shown, where = ProgressLine(), chosen_device(device)
    taught = taught or out.with_name(f"{out.name}.taught.tsv")
    path = data[0] if len(data) == 1 else data
    about = task_name(teacher)[1]
    if about.get("task") != "translate" or "noise" in about:
        Translator.load(teacher)  # which tells what it is
    several = KEY in about
    if not several:
        source, target = source or about["source"], target or about["target"]
    given: dict[str, Any] = {"path": path, "source": source or "", "target": target or ""}
    given |= {"synthetic": [str(taught)], "originals": originals} | _vocabulary(teacher)
    plan = {} if minutes is None else {"minutes": minutes}
    recipe = validated(TranslateRecipe, {"preset": preset, "data": given, "train": plan}, where="heed distil")
    recipe = override(recipe, settings)
    corpus = read_parallel(path, source=source, target=target)
    if corpus.directions:
        raise InputError("data of several directions", where=corpus.name, fix="name one: --source en --target de")
    writing = Synthetic(
        texts=[*dict.fromkeys(corpus.train.source)],
        models=(teacher, *map(Path, together or ())),
        out=taught,
        writes="target",
        languages=columns_called(corpus.source, corpus.target),
        direction=(corpus.source, corpus.target) if several else ("", ""),
        settings=chosen(beam=beam, length_penalty=length_penalty),
    )
    _write(writing, where, shown)
    finished = shown.follow(train(TRANSLATE, recipe, out, device=torch.device(where)))
    if finished is None:
        return
    shown.told(finished, out)
    tell({"steps": finished.steps, "minutes": finished.minutes, "scores": finished.scores}, (), as_json=as_json)


def back_translate(
    run: Run,
    texts: Annotated[
        list[str], typer.Argument(help="Files of texts, one a line, in the language that RUN reads; or of pairs.")
    ],
    out: Annotated[Path, typer.Option(help="A .tsv file for the pairs: what RUN makes, and the text.")],
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw the translations in place of searching.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Make pairs to train on of texts that have no translation, by a model of the other direction.

    For a translator from English to German RUN translates German to English, and the texts are German.

    Example: heed back-translate runs/de-en german.txt --out back.tsv
    """
    from heedful.decode.settings import chosen
    from heedful.run.device import chosen_device
    from heedful.run.folder import task_name
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.tasks.translate.languages import languages_of
    from heedful.tasks.translate.training.synthetic import Synthetic, columns_called, texts_in

    read, made = languages_of(task_name(run)[1]) or ("", "")
    settings = chosen(beam=beam, length_penalty=length_penalty)
    if sample:
        settings["samples"], settings["seed"] = 1, seed
    writing = Synthetic(
        texts=texts_in(texts, read),
        models=(run,),
        out=out,
        writes="source",
        languages=columns_called(made, read),
        settings=settings,
    )
    shown = ProgressLine()
    _write(writing, chosen_device(device), shown)
    shown.say(f"heed train translate --data PAIRS --synthetic {out}    # trains on them beside your own pairs")
    tell({"out": str(out), "pairs": len(writing.texts)}, (), as_json=as_json)


def _write(writing: "Synthetic", device: str, shown: "ProgressLine") -> None:
    """Writes what is not yet written, and says how far it is."""
    import torch

    from heedful.tasks.translate.training.synthetic import fastest

    count = len(writing.texts)
    if writing.written() is None:
        shown.say(f"{writing.out}: {count:,} translations, which were written before")
        return
    translator, how = fastest(writing.models, device, draws=bool(writing.settings.get("samples")))
    translator = translator.directed(*writing.direction)
    runs = " and ".join(map(str, writing.models))
    shown.say(f"{count:,} texts are translated by {runs}, {how}")
    begin, last, doubted = perf_counter(), 0.0, 0
    with translator.in_processes(torch.get_num_threads()):
        for done, warnings in writing.write(translator):
            doubted += warnings
            seconds = perf_counter() - begin
            if done == count or seconds - last >= EVERY:
                last = seconds
                shown.say(f"{done:,} of {count:,} translated, in {seconds:,.0f} seconds")
    if doubted:
        shown.say(f"{doubted:,} texts are longer than all that was learnt from, or were not read as a whole")
    shown.say(f"{writing.out}: {count:,} pairs; {writing.out.with_suffix('.json')} says who wrote them")


def _vocabulary(teacher: Path) -> dict[str, Any]:
    """How the teacher was told to make its vocabulary, which is how the student makes its own; of a model without a
    recipe nothing."""
    from heedful.run.resume import plain_recipe

    data = plain_recipe(teacher).get("data", {})
    return {key: data[key] for key in OWN_DATA if key in data}


COMMANDS = (
    Command("distil", distil, group="Train"),
    Command("back-translate", back_translate, group="Train"),
)
