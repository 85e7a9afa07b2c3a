"""What a model is worth and what it is: `heed eval`, `score`, `info` and `check`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.common import Json, Run, app, input_lines, say, told, unescaped
from heedful.errors import InputError, MissingError


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
        between = {"delimiter": unescaped(delimiter), "separator": unescaped(separator)}
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
        say(
            f"{name}: BLEU {scores.bleu:.1f}{margins[0]}, chrF {scores.chrf:.1f}{margins[1]}, "
            f"{100 * scores.exact:.1f} % of {len(pairs):,} exactly right"
        )
        say(f"  {scores.signature}\n  {scores.chrf_signature}")
        if cut := sum(one.cut > 0 for one in made):
            say(f"  sources that were too long, their last tokens not read: {cut:,}")
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
        say("\n".join([*answers.notes, f"{data}: {answers}"]))
        if as_json:
            print(json.dumps(answers.facts()))
        return
    found = model.evaluate(read_text(data))
    scores = {key: getattr(found, key) for key in ("loss", "perplexity", "bits_per_byte", "word_perplexity")}
    say(f"{data}: " + ", ".join(told(name, value) for name, value in scores.items()))
    if as_json:
        print(json.dumps(scores | {"tokens": found.tokens}))


def _evaluate_denoiser(model: Any, data: str | None, *, as_json: bool) -> None:
    from heedful.data.documents import read_text
    from heedful.tasks.denoise import evaluate

    if data is None:
        raise InputError("nothing to score", fix="give --data FILE")
    found = evaluate(model, read_text(data))
    scores = {"loss": found.loss, "perplexity": found.perplexity}
    say(f"{data}: " + ", ".join(told(name, value) for name, value in scores.items()))
    if as_json:
        print(json.dumps(scores | {"tokens": found.tokens}))


def _evaluate_filler(model: Any, data: str | None, *, as_json: bool) -> None:
    from heedful.data.documents import read_text

    if data is None:
        raise InputError("nothing to score", fix="give --data FILE")
    found = model.evaluate(read_text(data))
    say(f"{data}: " + ", ".join(told(name, value) for name, value in found.scores().items()))
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
        say(f"{name}: " + ", ".join(told(key, value) for key, value in scores.items()))
    if as_json:
        print(json.dumps(next(iter(found.values())) | ({"tests": found} if len(found) > 1 else {})))


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
    for lines in [texts] if texts else input_lines():
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
