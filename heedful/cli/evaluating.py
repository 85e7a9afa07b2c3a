"""What a model is worth on data: `heed eval`, one function a task."""

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from heedful.cli.common import Device, Engine, Json, Run, app, say, told, unescaped
from heedful.errors import InputError, MissingError

Options = Mapping[str, Any]
Found = dict[str, dict[str, Any]]  # the scores on each test set


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
    engine: Engine = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for 95 % intervals, such as 1000.")] = 0,
    shots: Annotated[int, typer.Option(min=0, help="Solved examples in each prompt.")] = 0,
    shots_from: Annotated[str | None, typer.Option(help="A .jsonl file that they are taken from.")] = None,
    delimiter: Annotated[str, typer.Option(help="Between an input and its answer.")] = " ",
    separator: Annotated[str, typer.Option(help="After each answer; \\n is the end of a line.")] = "\\n",
    by: Annotated[str, typer.Option(help="likelihood (of the choices), or match (what is generated).")] = "likelihood",
    seed: Annotated[int, typer.Option(min=0, help="Draws the solved examples.")] = 0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score translations by sacreBLEU's BLEU and chrF, summaries by ROUGE, a text or a painter's pictures by their
    likelihood, answers by accuracy, trees by EVALB's brackets, boxes by mAP, masks by mean IoU.

    A language model answers a .jsonl file whose first line has an "input": {"input": ..., "answer": ...}, perhaps
    with "choices": [...]. All other data is plain text to it.

    Example: heed eval runs/demo --source test.en --target test.fr --beam 5
    """
    options = dict(locals())
    from heedful.tasks.device import chosen_device
    from heedful.tasks.load import load_model, task_of

    device = chosen_device(device, cpu_only=f"--engine {engine}" if engine else "")
    task, model = task_of(run), load_model(run, device=device, engine=engine)
    evaluator = EVALUATORS["denoise" if task == "translate" and model.marked and source is None else task]
    for name, option in inspect.signature(evaluate).parameters.items():
        if name not in {"run", "data", "device", "as_json", *evaluator.options} and options[name] != option.default:
            what = f"--{name.replace('_', '-')} says nothing to a model of this kind ({task})"
            raise InputError(what, where=str(run), fix="leave it out")
    if data is None and "source" not in evaluator.options:
        raise InputError("nothing to score", fix="give --data PATH")
    found = evaluator.evaluate(model, options)
    if as_json:
        first = next(iter(found.values()))
        print(json.dumps(first | ({"tests": found} if len(found) > 1 else {})))


def _translations(translator: Any, options: Options) -> Found:
    from dataclasses import asdict

    import torch

    from heedful.data.text import read_pairs, read_parallel

    source, target, data, engine = (options[key] for key in ("source", "target", "data", "engine"))
    if data is not None:
        about = translator.about
        tests = read_parallel(data, source=source or about["source"], target=target or about["target"]).tests
    elif source is not None and target is not None:
        tests = {Path(source).name: read_pairs(source, target)}
    else:
        raise InputError("nothing to score", fix="give --source FILE --target FILE, or --data PATH")
    chosen = {key: options[key] for key in ("beam", "length_penalty") if options[key] is not None}
    found: Found = {}
    with translator.in_processes(torch.get_num_threads()):
        for name, pairs in tests.items():
            scores, made = translator.evaluate(pairs, bootstrap=options["bootstrap"], **chosen)
            found[name] = {"loss": translator.loss(pairs)} if translator.target.ours and engine is None else {}
            found[name] |= {key: value for key, value in asdict(scores).items() if value is not None}
            say(f"{name}: {len(pairs):,} pairs, {scores}")
            if cut := sum(one.cut > 0 for one in made):
                say(f"  sources that were too long, their last tokens not read: {cut:,}")
    return found


def _language_model(model: Any, options: Options) -> Found:
    from heedful.data.documents import read_text
    from heedful.data.solved import holds_solved, read_solved
    from heedful.tasks.in_context import Asking
    from heedful.tasks.in_context import evaluate as answer

    data, pool = options["data"], options["shots_from"]
    if options["shots"] or pool or holds_solved(data):
        between = {key: unescaped(options[key]) for key in ("delimiter", "separator")}
        asking = Asking(shots=options["shots"], by=options["by"], seed=options["seed"], **between)
        answers = answer(model, read_solved(data), asking, pool=None if pool is None else read_solved(pool))
        say("\n".join([*answers.notes, f"{data}: {answers}"]))
        return {data: answers.facts()}
    found = model.evaluate(read_text(data))
    names = ("loss", "perplexity", "bits_per_byte", "word_perplexity", "tokens")
    return _told({data: {name: getattr(found, name) for name in names}})


def _denoiser(model: Any, options: Options) -> Found:
    from heedful.data.documents import read_text
    from heedful.tasks.denoise import evaluate

    data = options["data"]
    found = evaluate(model, read_text(data))
    return _told({data: {"loss": found.loss, "perplexity": found.perplexity, "tokens": found.tokens}})


def _filler(model: Any, options: Options) -> Found:
    from heedful.data.documents import read_text

    data = options["data"]
    found = model.evaluate(read_text(data))
    return _told({data: {**found.scores(), "tokens": found.tokens}})


def _classifier(model: Any, options: Options) -> Found:
    from heedful.data.labelled import TABLES, read_examples
    from heedful.data.parts import read_tests

    tests = read_tests(options["data"], lambda path: read_examples(path)[1], kinds=TABLES)
    return _told({name: model.evaluate(examples) for name, examples in tests.items()})


def _parser(model: Any, options: Options) -> Found:
    from heedful.data.trees import read_treebank, read_trees

    data, beam = options["data"], options["beam"]
    tests = read_treebank(data).tests if Path(data).is_dir() else {Path(data).name: read_trees(data)}
    return _told({name: model.evaluate(trees, beam=beam)[0] for name, trees in _some(tests, data).items()})


def _some(tests: dict[str, Any], data: str) -> dict[str, Any]:
    if not tests:
        raise MissingError("no file named test*", where=data, fix="give a file")
    return tests


def _tagger(model: Any, options: Options) -> Found:
    from heedful.data.parts import read_tests
    from heedful.data.tagged import KINDS, read_sentences

    tests = read_tests(options["data"], read_sentences, kinds=KINDS)
    return _told({name: model.evaluate(sentences) for name, sentences in tests.items()})


def _answerer(model: Any, options: Options) -> Found:
    from heedful.data.parts import read_tests
    from heedful.data.questions import KINDS, read_answered

    tests = read_tests(options["data"], read_answered, kinds=KINDS)
    return _told({name: model.evaluate(questions) for name, questions in tests.items()})


def _encoder(model: Any, options: Options) -> Found:
    raise InputError("an encoder without a head says nothing that could be scored", fix="heed train classify --from it")


def _image_classifier(model: Any, options: Options) -> Found:
    from heedful.data.labelled_images import read_test_images

    tests = read_test_images(options["data"], channels=model.says.preparation.channels)
    return _told({name: model.evaluate(part) for name, part in tests.items()})


def _detector(model: Any, options: Options) -> Found:
    from heedful.data.boxes import read_test_boxes

    tests = read_test_boxes(options["data"], channels=model.says.preparation.channels)
    return _told({name: model.evaluate(part) for name, part in tests.items()})


def _matcher(model: Any, options: Options) -> Found:
    from heedful.data.captions import read_test_captions

    tests = read_test_captions(options["data"], channels=model.says.preparation.channels)
    return _told({name: model.evaluate(part) for name, part in tests.items()})


def _segmenter(model: Any, options: Options) -> Found:
    from heedful.data.masks import read_test_masks

    tests = read_test_masks(options["data"], model.says.classes, channels=model.says.preparation.channels)
    found = _told({name: model.evaluate(part) for name, part in tests.items()})
    labels = [f"iou {label}" for label in model.says.labels]
    for scores in found.values():
        scores["iou"] = {name.removeprefix("iou "): scores.pop(name) for name in labels if name in scores}
    return found


def _painter(model: Any, options: Options) -> Found:
    from heedful.data.labelled_images import read_test_images

    tests = read_test_images(options["data"], channels=model.says.preparation.channels, labelled=False)
    return _told({name: {**model.evaluate(part.images), "pictures": len(part)} for name, part in tests.items()})


def _told(found: Found) -> Found:
    for name, scores in found.items():
        say(f"{name}: " + ", ".join(told(key, value) for key, value in scores.items()))
    return found


class Evaluator(NamedTuple):
    """`options`: of the command, those that this task reads beside --data."""

    evaluate: Callable[[Any, Options], Found]
    options: frozenset[str] = frozenset()


EVALUATORS = {
    "translate": Evaluator(
        _translations, frozenset({"source", "target", "beam", "length_penalty", "engine", "bootstrap"})
    ),
    "generate": Evaluator(_language_model, frozenset({"shots", "shots_from", "delimiter", "separator", "by", "seed"})),
    "denoise": Evaluator(_denoiser),
    "fill": Evaluator(_filler),
    "classify": Evaluator(_classifier),
    "encode": Evaluator(_encoder),
    "parse": Evaluator(_parser, frozenset({"beam"})),
    "classify-images": Evaluator(_image_classifier),
    "detect": Evaluator(_detector),
    "match": Evaluator(_matcher),
    "tag": Evaluator(_tagger),
    "answer": Evaluator(_answerer),
    "segment": Evaluator(_segmenter),
    "paint": Evaluator(_painter),
}
