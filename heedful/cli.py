"""The command line: it parses words, calls functions and draws what they yield. torch is imported by the verb."""

import contextlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from heedful.errors import HeedError, InputError, Interrupted, MissingError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="One attention core, and every transformer family on it: train, measure, use and look inside.",
)

Run = Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="End with one line of JSON.")]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe, such as train.lr=3e-4.")
]


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the run goes.")] = Path("runs/demo"),
    settings: Settings = [],  # noqa: B006  # typer copies it
    as_json: Json = False,
) -> None:
    """Train, measure, use and look inside a translator, on text made on the spot.

    Example: heed demo
    """
    from heedful.tasks import demo as task
    from heedful.tasks.recipe import override

    shown = _Progress()
    shown.say("a phrasebook, English to French: 60,000 pairs to learn from, 1,000 unseen ones to be tested on")
    finished = shown.follow(task.train_demo(out, override(task.recipe(), settings)))
    if finished is None:
        return
    test = finished.scores["test"]
    shown.say(
        f"\n{100 * test['exact']:.1f} % of {task.TESTED:,} unseen sentences exactly right, BLEU {test['bleu']:.1f}, "
        f"after {finished.minutes:.1f} minutes of training\n"
    )
    for source, text in task.examples(out):
        shown.say(f"  {source}\n    -> {text}")
    picture, page = task.pictures(out)
    shown.say(f"\nwho looked at whom: {picture} and, to explore in a browser, {page}")
    shown.say(f'\nnext:\n  ./heed translate {out} "My sister is reading a book."')
    shown.say(f'  ./heed look {out} "My sister is reading a book." --out look.html')
    shown.say(
        "  ./heed train translate --data PAIRS.tsv --out runs/mine     # your own: source TAB target, a pair a line"
    )
    if as_json:
        scores = {key: test[key] for key in ("exact", "bleu", "chrf")}
        print(json.dumps(scores | {"minutes": finished.minutes}))


@app.command()
def train(
    task: Annotated[
        str, typer.Argument(help="translate, generate, classify, fill, denoise, or a recipe file (.py, .yaml).")
    ] = "translate",
    out: Annotated[Path | None, typer.Option(help="Where the run goes.", show_default="runs/TASK")] = None,
    data: Annotated[str | None, typer.Option(help="A folder, a .tsv, .csv or .jsonl file, or hf:NAME.")] = None,
    source: Annotated[str | None, typer.Option(help="Language, column or key to translate from.")] = None,
    target: Annotated[str | None, typer.Option(help="Language, column or key to translate to.")] = None,
    preset: Annotated[str | None, typer.Option(help="The size of the model; heed info lists them.")] = None,
    start_from: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Begin with the model of this run.", show_default=False)
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="How long to train; sizes a language model for it where none is chosen."),
    ] = None,
    settings: Settings = [],  # noqa: B006
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that is in --out.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model on your own data. The same command again goes on with what was interrupted.

    Example: heed train translate --data pairs.tsv --out runs/mine --set train.minutes=10
    """
    from heedful.tasks.recipe import override, read_recipe
    from heedful.tasks.resume import saved_recipe
    from heedful.tasks.run import train as run_training

    recipe = read_recipe(task)
    out = out or Path("runs") / Path(task).stem
    given: dict[str, Any] = {
        "data.path": data,
        "data.source": source,
        "data.target": target,
        "preset": preset,
        "start_from": start_from,
    }
    if resume and data is None and (out / "recipe.yaml").is_file():
        recipe = saved_recipe(out)
    given = {key: value for key, value in given.items() if value is not None}
    if minutes is not None:
        given["train.minutes"] = minutes
    recipe = override(recipe, [f"{key}={json.dumps(value)}" for key, value in given.items()])
    shown = _Progress()
    chosen = (preset, start_from, *(setting for setting in settings if setting.startswith("model.")))
    if minutes is not None and task == "generate" and not any(chosen):
        from heedful.tasks.sizing import sized

        recipe, why = sized(recipe, out)
        shown.say(why)
    recipe = override(recipe, settings)
    finished = shown.follow(run_training(recipe, out, resume=resume))
    if finished is None:  # one of several ranks, of which the first tells how it went
        return
    for name, each in finished.scores.items():
        numbers = [_shown(key, value) for key, value in each.items() if not isinstance(value, str)]
        shown.say(f"{name}: {', '.join(numbers)}")
    shown.say(f"{out}: after {finished.minutes:.1f} minutes of training; {out}/README.md tells the rest")
    if as_json:
        print(json.dumps({"steps": finished.steps, "minutes": finished.minutes, "scores": finished.scores}))


@app.command("eval")
def evaluate(
    run: Run,
    source: Annotated[
        str | None, typer.Option(help="A file, a sentence a line; with --data, a language or column.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Its reference translations, line by line; likewise.")] = None,
    data: Annotated[str | None, typer.Option(help="Data as for train: its test sets are scored.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, max=64, help="1 is greedy.")] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="Exponent of the length that scores are divided by.")
    ] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for 95 % intervals, such as 1000.")] = 0,
    shots: Annotated[int, typer.Option(min=0, help="Solved examples in each prompt.")] = 0,
    shots_from: Annotated[str | None, typer.Option(help="A .jsonl file that they are taken from.")] = None,
    delimiter: Annotated[str, typer.Option(help="Between an input and its answer.")] = " ",
    separator: Annotated[str, typer.Option(help="After each answer; \\n is the end of a line.")] = "\\n",
    by: Annotated[str, typer.Option(help="likelihood (of the choices), or match (what is generated).")] = "likelihood",
    seed: Annotated[int, typer.Option(min=0, help="Draws the solved examples.")] = 0,
    as_json: Json = False,
) -> None:
    """Score translations by sacreBLEU's BLEU and chrF, a text by its likelihood, or answers by accuracy and the like.

    A language model answers a .jsonl file whose first line has an "input": {"input": ..., "answer": ...}, perhaps
    with "choices": [...]. All other data is plain text to it.

    Example: heed eval runs/demo --source test.en --target test.fr --beam 5
    """
    from heedful.tasks.classify import TextClassifier
    from heedful.tasks.fill import Filler
    from heedful.tasks.generate import LanguageModel
    from heedful.tasks.in_context import Asking
    from heedful.tasks.load import load_model

    model = load_model(run)
    if isinstance(model, LanguageModel):
        between = {"delimiter": _unescaped(delimiter), "separator": _unescaped(separator)}
        _evaluate_text(model, data, Asking(shots=shots, by=by, seed=seed, **between), shots_from, as_json=as_json)
        return
    if isinstance(model, Filler):
        _evaluate_filler(model, data, as_json=as_json)
        return
    if isinstance(model, TextClassifier):
        _evaluate_classifier(model, data, as_json=as_json)
        return
    if model.marked and source is None:
        _evaluate_denoiser(model, data, as_json=as_json)
        return
    found = _evaluate_translations(
        model, source, target, data, beam=beam, length_penalty=length_penalty, bootstrap=bootstrap
    )
    if as_json:
        first = next(iter(found.values()))
        print(json.dumps(first | ({"tests": found} if len(found) > 1 else {})))


def _evaluate_translations(
    translator: Any,
    source: str | None,
    target: str | None,
    data: str | None,
    *,
    bootstrap: int,
    **settings: int | float | None,
) -> dict[str, dict[str, Any]]:
    from dataclasses import asdict

    from heedful.data.text import read_pairs, read_parallel

    if data is not None:
        about = translator.about
        corpus = read_parallel(data, source=source or about["source"], target=target or about["target"])
        tests = corpus.tests
    elif source is not None and target is not None:
        tests = {Path(source).name: read_pairs(source, target)}
    else:
        raise InputError("nothing to score", fix="give --source FILE --target FILE, or --data PATH")
    chosen = {key: value for key, value in settings.items() if value is not None}
    found = {}
    for name, pairs in tests.items():
        scores, made = translator.evaluate(pairs, bootstrap=bootstrap, **chosen)
        found[name] = {key: value for key, value in asdict(scores).items() if value is not None}
        margins = ["" if m is None else f" ± {m:.1f}" for m in (scores.bleu_margin, scores.chrf_margin)]
        _say(
            f"{name}: BLEU {scores.bleu:.1f}{margins[0]}, chrF {scores.chrf:.1f}{margins[1]}, "
            f"{100 * scores.exact:.1f} % of {len(pairs):,} exactly right"
        )
        _say(f"  {scores.signature}\n  {scores.chrf_signature}")
        if cut := sum(one.cut > 0 for one in made):
            _say(f"  sources that were too long, their last tokens not read: {cut:,}")
    return found


def _evaluate_text(model: Any, data: str | None, asking: Any, shots_from: str | None, *, as_json: bool) -> None:
    from heedful.data.documents import read_text
    from heedful.data.solved import holds_solved, read_solved
    from heedful.tasks.in_context import evaluate as answer

    if data is None:
        raise InputError("nothing to score", fix="give --data FILE")
    if asking.shots or shots_from or holds_solved(data):
        pool = None if shots_from is None else read_solved(shots_from)
        answers = answer(model, read_solved(data), asking, pool=pool)
        _say("\n".join([*answers.notes, f"{data}: {answers}"]))
        if as_json:
            print(json.dumps(answers.facts()))
        return
    found = model.evaluate(read_text(data))
    scores = {key: getattr(found, key) for key in ("loss", "perplexity", "bits_per_byte", "word_perplexity")}
    _say(f"{data}: " + ", ".join(_shown(name, value) for name, value in scores.items()))
    if as_json:
        print(json.dumps(scores | {"tokens": found.tokens}))


def _evaluate_denoiser(model: Any, data: str | None, *, as_json: bool) -> None:
    from heedful.data.documents import read_text
    from heedful.tasks.denoise import evaluate

    if data is None:
        raise InputError("nothing to score", fix="give --data FILE")
    found = evaluate(model, read_text(data))
    scores = {"loss": found.loss, "perplexity": found.perplexity}
    _say(f"{data}: " + ", ".join(_shown(name, value) for name, value in scores.items()))
    if as_json:
        print(json.dumps(scores | {"tokens": found.tokens}))


def _evaluate_filler(model: Any, data: str | None, *, as_json: bool) -> None:
    from heedful.data.documents import read_text

    if data is None:
        raise InputError("nothing to score", fix="give --data FILE")
    found = model.evaluate(read_text(data))
    _say(f"{data}: " + ", ".join(_shown(name, value) for name, value in found.scores().items()))
    if as_json:
        print(json.dumps(found.scores() | {"tokens": found.tokens}))


def _evaluate_classifier(model: Any, data: str | None, *, as_json: bool) -> None:
    from heedful.data.labelled import read_examples, read_labelled

    if data is None:
        raise InputError("nothing to score", fix="give --data PATH")
    tests = read_labelled(data).tests if Path(data).is_dir() else {Path(data).name: read_examples(data)[1]}
    if not tests:
        raise MissingError("no file named test*", where=data, fix="give a file")
    found = {name: model.evaluate(examples) for name, examples in tests.items()}
    for name, scores in found.items():
        _say(f"{name}: " + ", ".join(_shown(key, value) for key, value in scores.items()))
    if as_json:
        print(json.dumps(next(iter(found.values())) | ({"tests": found} if len(found) > 1 else {})))


@app.command()
def classify(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")] = None,
    pair: Annotated[str | None, typer.Option(help="A second text, or a question, for each.")] = None,
    choice: Annotated[list[str] | None, typer.Option(help="An answer to choose; give it twice or more.")] = None,
    as_json: Json = False,
) -> None:
    """Say of texts what they are: the labels that the model has learnt, with their probabilities.

    On standard input a second text follows a TAB.

    Example: heed classify runs/classify "A fine film." --json
    """
    from heedful.data.text import sanitise
    from heedful.tasks.classify import TextClassifier

    model = TextClassifier.load(run)
    for lines in [texts] if texts else _lines():
        rows = [sanitise(line) for line in lines]
        split = [row.partition("\t") if texts is None else (row, "", "") for row in rows]
        own, pairs = [text for text, _, _ in split], [second or pair or "" for _, _, second in split]
        choices = [choice] * len(rows) if choice else ()
        for text, second, found in zip(own, pairs, model.classify(own, pairs=pairs, choices=choices), strict=True):
            if as_json:
                record: dict[str, Any] = {"input": text, **({"pair": second} if second else {})}
                record["labels"] = [{"label": label, "score": score} for label, score in found]
                print(json.dumps(record, ensure_ascii=False), flush=True)
            else:
                label, score = found[0]
                print(f"{label}\t{score:.3f}\t{text}", flush=True)


@app.command()
def generate(
    run: Run,
    prompts: Annotated[list[str] | None, typer.Argument(help="Texts to go on with; without any, from nothing.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="The most new tokens.")] = 200,
    samples: Annotated[int, typer.Option(min=1, help="How many texts for each prompt.")] = 1,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy.")] = 0.8,
    top_k: Annotated[int, typer.Option(min=0)] = 0,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 1.0,
    min_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 0.0,
    repetition_penalty: Annotated[float, typer.Option(min=1.0)] = 1.0,
    stop: Annotated[list[str] | None, typer.Option(help="End before this text; may be given again.")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    batch: Annotated[int, typer.Option(min=1, help="How many texts are made at a time.")] = 32,
    weights: Annotated[str, typer.Option(help="float32, int8 or int4: fewer bits are faster.")] = "float32",
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Show one text as it is made; at a terminal, by default."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Go on with a text.

    Example: heed generate runs/text "Once upon a time" --tokens 100
    """
    from heedful.tasks.generate import LanguageModel

    chosen: dict[str, Any] = {"tokens": tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    chosen |= {"min_p": min_p, "repetition_penalty": repetition_penalty, "stop": stop or [], "seed": seed}
    texts = prompts or [""]
    alone = len(texts) == samples == 1 and not as_json
    if stream and not alone:
        raise InputError("several texts, or JSON, cannot be shown as they are made", fix="leave out --stream")
    model = LanguageModel.load(run, weights=weights)
    if alone and (sys.stdout.isatty() if stream is None else stream):
        for piece in itertools.chain(texts, model.stream(texts[0], **chosen), "\n"):
            print(piece, end="", flush=True)
        return
    for each in (each for own in model.generate(texts, samples=samples, batch=batch, **chosen) for each in own):
        if as_json:
            print(json.dumps(each._asdict(), ensure_ascii=False), flush=True)
        else:
            print(each.prompt + each.text, flush=True)


@app.command()
def fill(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many candidates for each mask.")] = 5,
    as_json: Json = False,
) -> None:
    """Name what may stand in place of each "<mask>" in a text, a line for each, with probabilities.

    Example: heed fill runs/fill "The cat sat on the <mask>." --top 3
    """
    from heedful.data.text import sanitise
    from heedful.tasks.fill import Filler

    filler = Filler.load(run)
    for lines in [texts] if texts else _lines():
        for each in (each for own in filler.fill([*map(sanitise, lines)], top=top) for each in own):
            if as_json:
                candidates = [one._asdict() for one in each.candidates]
                row = {"text": each.text, "mask": each.mask, "candidates": candidates}
                print(json.dumps(row, ensure_ascii=False), flush=True)
            else:
                listed = "  ".join(f"{one.token} {one.score:.3f}" for one in each.candidates)
                print(f"{each.text}\t{listed}", flush=True)


@app.command()
def score(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")] = None,
    choice: Annotated[list[str] | None, typer.Option(help="A text that may follow; give it twice or more.")] = None,
    as_json: Json = False,
) -> None:
    """Tell how likely texts are to a language model: log-probability (nats) and tokens of each.

    With choices, tell how likely each of them is after the text, the likeliest first.

    Example: heed score runs/text "Once upon a time"
    """
    from heedful.data.text import sanitise
    from heedful.tasks.generate import LanguageModel

    model = LanguageModel.load(run)
    for lines in [texts] if texts else _lines():
        lines = [sanitise(line) for line in lines]
        if choice:
            _choose(model, lines, [sanitise(each) for each in choice], as_json=as_json)
            continue
        for text, found in zip(lines, model.likelihood(lines), strict=True):
            if as_json:
                row = {"text": text, "logprob": -found.nats, "tokens": found.tokens}
                print(json.dumps(row, ensure_ascii=False), flush=True)
            else:
                print(f"{-found.nats:.3f}\t{found.tokens}\t{text}", flush=True)


def _choose(model: Any, contexts: list[str], choices: list[str], *, as_json: bool) -> None:
    for context in contexts:
        found = model.choose(context, choices)
        if as_json:
            row = {"text": context, "choices": [each._asdict() for each in found]}
            print(json.dumps(row, ensure_ascii=False), flush=True)
        else:
            for each in found:
                print(f"{each.logprob:.3f}\t{each.tokens}\t{each.choice}", flush=True)


@app.command()
def translate(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines of standard input.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, max=64, help="1 is greedy.")] = None,
    n_best: Annotated[int, typer.Option(min=1, help="How many translations of each.")] = 1,
    length_penalty: Annotated[
        float | None, typer.Option(help="Exponent of the length that scores are divided by.")
    ] = None,
    longest: Annotated[int | None, typer.Option(min=1, help="The most new tokens.")] = None,
    shortest: Annotated[int, typer.Option(min=0, help="The fewest new tokens.")] = 0,
    no_repeat: Annotated[int, typer.Option(min=0, help="No n-gram of this size twice.")] = 0,
    prefix: Annotated[str | None, typer.Option(help="How each translation must begin.")] = None,
    samples: Annotated[int, typer.Option(min=0, help="Draw this many at random in place of searching.")] = 0,
    temperature: Annotated[float, typer.Option(min=0.0)] = 1.0,
    top_k: Annotated[int, typer.Option(min=0)] = 0,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 1.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Translate sentences, or standard input line by line.

    Example: heed translate runs/demo "The small cat is sleeping."
    """
    from heedful.data.text import sanitise
    from heedful.tasks.translate import Translator

    translator = Translator.load(run)
    chosen: dict[str, Any] = {
        "n_best": n_best,
        "shortest": shortest,
        "no_repeat": no_repeat,
        "samples": samples,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    if beam is not None or n_best > 1:
        chosen["beam"] = max(beam or translator.decoding().beam, n_best)
    if length_penalty is not None:
        chosen["length_penalty"] = length_penalty
    if longest is not None:
        chosen["longest"] = longest
    for lines in [texts] if texts else _lines():
        lines = [sanitise(line) for line in lines]
        forced = None if prefix is None else [prefix] * len(lines)
        for one in translator.search(lines, prefix=forced, **chosen):
            if one.cut:
                _say(f"too long: the last {one.cut:,} tokens of this source were not read")
            if as_json:
                listed = [{"text": text, "score": score} for text, score in one.hypotheses]
                record = {"source": one.source, "text": one.text, "score": one.score, "hypotheses": listed}
                print(json.dumps(record, ensure_ascii=False), flush=True)
            else:
                for text, score in one.hypotheses:
                    print(text if len(one.hypotheses) == 1 else f"{score:.3f}\t{text}", flush=True)


@app.command()
def look(
    run: Run,
    text: Annotated[str, typer.Argument(help="The sentence to translate and watch.")],
    out: Annotated[Path, typer.Option(help="A .png, .svg or .html file.")] = Path("look.html"),
    target: Annotated[str | None, typer.Option(help="Watch this translation in place of the model's own.")] = None,
    layer: Annotated[str | None, typer.Option(help='Names, such as "decoder.*.cross_attention".')] = None,
    head: Annotated[int | None, typer.Option(min=0, help="One head, large (png and svg), from 0.")] = None,
    as_json: Json = False,
) -> None:
    """Draw who looked at whom while a sentence was translated.

    Example: heed look runs/demo "The small cat is sleeping." --out look.html
    """
    from heedful.store import files
    from heedful.tasks.look import draw, look
    from heedful.tasks.translate import Translator

    kind = out.suffix.removeprefix(".")
    if kind not in ("png", "svg", "html"):
        raise InputError(
            f"{out.suffix or 'no suffix'} is not a picture", where=str(out), fix="--out x.png, x.svg or x.html"
        )
    if not out.parent.is_dir():
        raise MissingError("no such folder", where=str(out.parent), fix="make it first, or change --out")
    looked = look(Translator.load(run), text, target=target, layers=layer or "*")
    files.write_bytes(out, draw(looked, kind, head=head, chosen=layer is not None))
    _say(f"{text}\n  -> {looked.text}\n{out}")
    if as_json:
        print(json.dumps({"source": text, "text": looked.text, "out": str(out), "layers": list(looked.weights)}))


@app.command()
def info(
    name: Annotated[str | None, typer.Argument(help="A run's folder or a preset; without any, the presets.")] = None,
    as_json: Json = False,
) -> None:
    """Tell what a run or a preset is.

    Example: heed info transformer-base
    """
    from heedful.tasks.info import describe

    facts = describe(name)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for key, value in facts.items():
        print(f"{key:{width}}  {value if not isinstance(value, float) else round(value, 3)}")


@app.command()
def check(run: Run, as_json: Json = False) -> None:
    """Check the laws that a model must keep on your own model, and the files of its folder.

    Example: heed check runs/demo
    """
    from dataclasses import asdict

    from heedful.tasks.check import check as check_run

    laws = []
    for law in check_run(run):
        laws.append(law)
        print(f"{'ok' if law.holds else 'BROKEN':6}  {law.name:40}  {law.figure:.1e}  (at most {law.limit:.0e})")
        for note in law.notes:
            print(f"        {note}")
    broken = [law.name for law in laws if not law.holds]
    if as_json:
        print(json.dumps({"laws": [asdict(law) | {"holds": law.holds} for law in laws], "broken": len(broken)}))
    if broken:
        raise typer.Exit(1)


@app.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A model's folder, as the Hugging Face Hub has it.")],
    out: Annotated[Path | None, typer.Option(help="Where the run goes.", show_default="runs/NAME")] = None,
    as_json: Json = False,
) -> None:
    """Make a run of a model of the Hugging Face Hub: GPT-2, LLaMA or Marian, from safetensors.

    Example: heed import gpt2 --out runs/gpt2
    """
    from dataclasses import asdict

    from heedful.tasks.exchange import import_model

    made = import_model(folder, out or Path("runs") / folder.absolute().name)
    tokens = "" if made.vocab_size is None else f", {made.vocab_size:,} tokens in the vocabulary"
    _say(f"{made.family}: {made.parameters:,} parameters{tokens}\n{made.out}: heed {made.task} {made.out} ...")
    if as_json:
        print(json.dumps(asdict(made)))


@app.command()
def export(
    run: Run,
    out: Annotated[Path, typer.Option(help="The folder to make.", show_default=False)],
    to: Annotated[str, typer.Option(help="hf: a folder as the Hugging Face Hub has them.")] = "hf",
    as_json: Json = False,
) -> None:
    """Make a folder of a run that other libraries load.

    Example: heed export runs/text --to hf --out hub/text
    """
    from dataclasses import asdict

    from heedful.tasks.exchange import export_model

    made = export_model(run, out, to=to)
    _say(f"{made.family}: transformers.{made.loads}.from_pretrained({made.out!r}), and AutoTokenizer likewise")
    if as_json:
        print(json.dumps({key: value for key, value in asdict(made).items() if key != "loads"}))


LABELS = {"bleu": "BLEU", "chrf": "chrF"}


def main() -> None:
    """Runs a command; what is wrong with the input is one line and an exit code, never a traceback."""
    debug = "--debug" in sys.argv
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    try:
        app(args=arguments, prog_name="heed", standalone_mode=True)
    except Interrupted as error:
        _leave(str(error), error.exit_code)
    except HeedError as error:
        if debug:
            raise
        _fail(error)
    except KeyboardInterrupt:
        again = "; the same command goes on from the last checkpoint" if arguments[:1] in (["train"], ["demo"]) else ""
        _leave(f"interrupted{again}", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


def _fail(error: HeedError) -> NoReturn:
    print(f"error: {error}", file=sys.stderr)
    if error.fix:
        print(f"fix: {error.fix}", file=sys.stderr)
    sys.exit(error.exit_code)


def _leave(words: str, code: int) -> NoReturn:
    print(words, file=sys.stderr)
    sys.exit(code)


def _say(text: str) -> None:
    """What a person reads goes to standard error, so that standard output is the result alone."""
    print(text, file=sys.stderr, flush=True)


def _unescaped(text: str) -> str:
    r"""A shell hands \n and \t on as two characters each."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _lines() -> Iterator[list[str]]:
    """Standard input in groups of lines: one at a time at a terminal, many where they come from a file."""
    size = 1 if sys.stdin.isatty() else 512
    group: list[str] = []
    reader = open(0, encoding="utf-8", errors="surrogateescape", newline="\n", closefd=False)  # noqa: SIM115
    for line in reader:
        group.append(line.rstrip("\r\n"))
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _shown(name: str, value: float) -> str:
    if name == "exact":
        return f"{100 * value:.1f} % exactly right"
    return f"{LABELS[name]} {value:.1f}" if name in LABELS else f"{name.replace('_', ' ')} {value:.3f}"


class _Progress:
    """One line that changes in place at a terminal; a plain line now and then elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.score = ""

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def follow(self, events: Iterator[Any]) -> Any:
        """Draws the events of a training up to the last, which is handed back."""
        from heedful.tasks.run import Finished, Measured, Note, Trained

        status = self.console.status("") if self.console.is_terminal else None
        with status or contextlib.nullcontext():
            last = 0.0
            for event in events:
                match event:
                    case Note(text):
                        self.say(text)
                    case Trained() as now:
                        if status is not None:
                            status.update(self._line(now))
                        elif now.step.seconds - last >= 15 or now.step.step == 1:
                            last = now.step.seconds
                            self.say(self._line(now))
                    case Measured() as now:
                        self.score = "  ".join(_shown(name, value) for name, value in now.scores.items())
                        mark = "  best" if now.best else ""
                        self.say(f"step {now.step:,}  valid loss {now.valid_loss:.3f}  {self.score}{mark}")
                    case Finished() as now:
                        return now
        return None

    def _line(self, now: Any) -> str:
        left = int(now.seconds_left)
        return (
            f"step {now.step.step:,}  loss {now.step.loss:.3f}  lr {now.lr:.1e}  "
            f"{now.tokens_per_second:,.0f} tokens/s  {left // 60}:{left % 60:02} left  {self.score}"
        )


if __name__ == "__main__":
    main()
