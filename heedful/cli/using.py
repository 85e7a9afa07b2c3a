"""Models of text at work: `heed translate`, `summarise`, `generate`, `fill`, `classify`, `tag`, `answer`, `embed` and
`parse`."""

import itertools
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.common import Device, Engine, Json, Run, app, input_lines, say
from heedful.errors import InputError

SUMMARISE = """Summarise texts, or standard input line by line.

Example: heed summarise runs/summarise "A long text." --beam 5
"""


QUANTISED = ("int8", "int4")
LONG = 400  # tokens from which on a draft is made unasked: of 500 it saved time, of 200 none


@app.command()
def classify(
    run: Run,
    inputs: Annotated[
        list[str] | None, typer.Argument(help="Texts, or files of pictures; without any, lines of standard input.")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="A second text, or a question, for each.")] = None,
    choice: Annotated[list[str] | None, typer.Option(help="An answer to choose; give it twice or more.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Say of texts, or pictures, what they are: the labels that the model has learnt, with their probabilities.

    On standard input a second text follows a TAB.

    Example: heed classify runs/classify "A fine film." --json
    """
    from heedful.data.text import sanitise
    from heedful.tasks.classify import TextClassifier
    from heedful.tasks.classify_images import ImageClassifier
    from heedful.tasks.device import chosen_device
    from heedful.tasks.load import load_model, task_of

    if task_of(run) == "classify-images":
        if pair or choice:
            option = "--pair" if pair else "--choice"
            raise InputError(f"{option} says nothing to a model of pictures", where=str(run), fix="leave it out")
        pictures: ImageClassifier = load_model(run, device=chosen_device(device))
        for files in [inputs] if inputs else input_lines():
            for file, found in zip(files, pictures.classify(files), strict=True):
                _tell_labels({"input": file}, found, as_json=as_json)
        return
    model = TextClassifier.load(run, device=chosen_device(device))
    for lines in [inputs] if inputs else input_lines():
        rows = [sanitise(line) for line in lines]
        split = [row.partition("\t") if inputs is None else (row, "", "") for row in rows]
        own, pairs = [text for text, _, _ in split], [second or pair or "" for _, _, second in split]
        choices = [choice] * len(rows) if choice else ()
        for text, second, found in zip(own, pairs, model.classify(own, pairs=pairs, choices=choices), strict=True):
            _tell_labels({"input": text, **({"pair": second} if second else {})}, found, as_json=as_json)


def _tell_labels(about: dict[str, Any], found: list[tuple[str, float]], *, as_json: bool) -> None:
    if as_json:
        labels = [{"label": label, "score": score} for label, score in found]
        print(json.dumps(about | {"labels": labels}, ensure_ascii=False), flush=True)
    else:
        label, score = found[0]
        print(f"{label}\t{score:.3f}\t{about['input']}", flush=True)


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
    draft: Annotated[
        str,
        typer.Option(
            help="int8, int4, none: guess ahead with weights of so few bits, for the same text sooner; "
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
    """Go on with a text.

    Example: heed generate runs/text "Once upon a time" --tokens 100
    """
    from heedful.tasks.device import chosen_device
    from heedful.tasks.generate import LanguageModel

    chosen: dict[str, Any] = {"tokens": tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    chosen |= {"min_p": min_p, "repetition_penalty": repetition_penalty, "stop": stop or [], "seed": seed}
    texts = prompts or [""]
    one = len(texts) == samples == 1
    alone = one and not as_json
    if stream and not alone:
        raise InputError("several texts, or JSON, cannot be shown as they are made", fix="leave out --stream")
    worth = one and tokens >= LONG
    few = f"--weights {weights}" if weights in QUANTISED else f"--draft {draft}" if draft in QUANTISED else ""
    device = chosen_device(device, cpu_only=few)
    draft = draft if worth or draft != "auto" else "none"
    model = LanguageModel.load(run, device=device, weights=weights, draft=draft)
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
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Name what may stand in place of each "<mask>" in a text, a line for each, with probabilities.

    Example: heed fill runs/fill "The cat sat on the <mask>." --top 3
    """
    from heedful.data.text import sanitise
    from heedful.tasks.device import chosen_device
    from heedful.tasks.fill import Filler

    filler = Filler.load(run, device=chosen_device(device))
    for lines in [texts] if texts else input_lines():
        for each in (each for own in filler.fill([*map(sanitise, lines)], top=top) for each in own):
            if as_json:
                candidates = [one._asdict() for one in each.candidates]
                row = {"text": each.text, "mask": each.mask, "candidates": candidates}
                print(json.dumps(row, ensure_ascii=False), flush=True)
            else:
                listed = "  ".join(f"{one.token} {one.score:.3f}" for one in each.candidates)
                print(f"{each.text}\t{listed}", flush=True)


@app.command()
def parse(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines of standard input.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, max=64, help="1 is greedy.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Parse sentences into constituents, each a line of brackets. Words and punctuation stand apart.

    Example: heed parse runs/parse "The cat sleeps on the mat ."
    """
    from heedful.data.text import sanitise
    from heedful.tasks.device import chosen_device
    from heedful.tasks.parse import Parser

    parser = Parser.load(run, device=chosen_device(device))
    for lines in [texts] if texts else input_lines():
        lines = [sanitise(line) for line in lines]
        for text, found in zip(lines, parser.parse(lines, beam=beam), strict=True):
            tree = str(found or "")
            print(json.dumps({"text": text, "tree": tree}, ensure_ascii=False) if as_json else tree, flush=True)


@app.command()
def tag(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines of standard input.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Label the words of sentences: WORD TAB LABEL, a line each, and a blank line after a sentence.

    Words are what stands between blanks, so part them as in the data that the model learnt from.

    Example: heed tag runs/tag "i want a flight to boston"
    """
    from heedful.data.text import sanitise
    from heedful.tasks.device import chosen_device
    from heedful.tasks.tag import Tagger

    tagger = Tagger.load(run, device=chosen_device(device))
    for lines in [texts] if texts else input_lines():
        lines = [sanitise(line) for line in lines]
        for text, words in zip(lines, tagger.tag(lines), strict=True):
            if as_json:
                record = {"text": text, "words": [word._asdict() for word in words]}
                print(json.dumps(record, ensure_ascii=False), flush=True)
            else:
                print("".join(f"{word.word}\t{word.label}\n" for word in words), flush=True)


@app.command()
def answer(
    run: Run,
    questions: Annotated[
        list[str] | None, typer.Argument(help="Questions; without any, lines of standard input.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(help="The text that tells the answer, or a file that holds it.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many answers to each.")] = 1,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Answer questions by a stretch of a text: SCORE TAB ANSWER, an empty one where the text does not tell.

    On standard input a context of its own may follow a question, after a TAB.

    Example: heed answer runs/answer "Who led the team in sacks?" --context article.txt
    """
    import os

    from heedful.data.text import read_lines, sanitise
    from heedful.tasks.answer import Answerer
    from heedful.tasks.device import chosen_device

    model = Answerer.load(run, device=chosen_device(device))
    if context is not None and os.path.isfile(context):
        context = "\n".join(read_lines(context))
    for lines in [questions] if questions else input_lines():
        split = [sanitise(line).partition("\t") if questions is None else (sanitise(line), "", "") for line in lines]
        asked, texts = [question for question, _, _ in split], [own or context or "" for _, _, own in split]
        if not all(texts):
            raise InputError("a question without a text to answer it from", fix="give --context FILE")
        for question, found in zip(asked, model.answer(asked, texts, top=top), strict=True):
            if as_json:
                record = {"question": question, "answers": [one._asdict() for one in found]}
                print(json.dumps(record, ensure_ascii=False), flush=True)
            else:
                print("\n".join(f"{one.score:.3f}\t{one.text}" for one in found), flush=True)


@app.command()
def embed(
    run: Run,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Texts, or files of pictures for a model of both; without any, lines of standard input."),
    ] = None,
    pool: Annotated[
        str | None, typer.Option(help="mean (of a text's hidden states), or first of them.", show_default="mean")
    ] = None,
    near: Annotated[Path | None, typer.Option(help="A file, of which the nearest lines are shown.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many of them.")] = 5,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Turn texts into vectors, or find the lines of a file that are nearest: COSINE TAB LINE, the nearest first.

    Example: heed embed runs/fill "A fine film." --near reviews.txt --top 3
    """
    from heedful.data.text import read_lines, sanitise
    from heedful.tasks.device import chosen_device
    from heedful.tasks.embed import nearest

    vectors = _embedding(run, pool, chosen_device(device))
    others = [] if near is None else list(dict.fromkeys(line for line in read_lines(near) if line.strip()))
    theirs = vectors(others) if others else None
    for lines in [inputs] if inputs else input_lines():
        lines = [sanitise(line) for line in lines]
        for given, vector in zip(lines, vectors(lines), strict=True):
            record: dict[str, Any] = {"text": given}
            if theirs is None:
                record["vector"] = vector.tolist()
            else:
                record["near"] = [{"text": others[i], "score": score} for i, score in nearest(vector, theirs, top=top)]
            if as_json:
                print(json.dumps(record, ensure_ascii=False), flush=True)
            elif theirs is None:
                print(" ".join(f"{value:.6g}" for value in record["vector"]), flush=True)
            else:
                print("\n".join(f"{each['score']:.3f}\t{each['text']}" for each in record["near"]), flush=True)


def _embedding(run: Path, pool: str | None, device: str) -> Callable[[Sequence[str]], Any]:
    """From texts to vectors, and a line about each that is too long to be read as a whole."""
    from heedful.tasks.embed import TextEncoder
    from heedful.tasks.load import task_of
    from heedful.tasks.match import Matcher

    if task_of(run) == "match":
        if pool is not None:
            raise InputError("this model has one vector of a text or a picture", where=str(run), fix="leave out --pool")
        matcher = Matcher.load(run, device=device)
        return matcher.embed
    encoder = TextEncoder.load(run, device=device)

    def vectors(texts: Sequence[str]) -> Any:
        for text, beyond in zip(texts, encoder.encode(texts)[1], strict=True):
            if beyond:
                say(f"too long: the last {beyond:,} tokens of {text[:20]!r}... were not read")
        return encoder.embed(texts, pool=pool or "mean")

    return vectors


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
    shortest: Annotated[int | None, typer.Option(min=0, help="The fewest new tokens.")] = None,
    no_repeat: Annotated[int | None, typer.Option(min=0, help="No n-gram of this size twice.")] = None,
    prefix: Annotated[str | None, typer.Option(help="How each translation must begin.")] = None,
    samples: Annotated[int, typer.Option(min=0, help="Draw this many at random in place of searching.")] = 0,
    temperature: Annotated[float, typer.Option(min=0.0)] = 1.0,
    top_k: Annotated[int, typer.Option(min=0)] = 0,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 1.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
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

    from heedful.data.text import sanitise
    from heedful.tasks.device import chosen_device
    from heedful.tasks.load import load_model
    from heedful.tasks.translate import Translator

    several = f"--processes {processes}" if (processes or 1) > 1 else ""
    device = chosen_device(device, cpu_only=f"--engine {engine}" if engine else several)
    translator = Translator.load(run, device=device) if engine is None else load_model(run, engine=engine)
    chosen: dict[str, Any] = {
        "n_best": n_best,
        "samples": samples,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    if beam is not None or n_best > 1:
        chosen["beam"] = max(beam or translator.decoding().beam, n_best)
    given = {"length_penalty": length_penalty, "longest": longest, "shortest": shortest, "no_repeat": no_repeat}
    chosen |= {key: value for key, value in given.items() if value is not None}
    count = processes or (1 if texts or sys.stdin.isatty() else torch.get_num_threads())
    with translator.in_processes(count):
        for lines in [texts] if texts else input_lines():
            lines = [sanitise(line) for line in lines]
            forced = None if prefix is None else [prefix] * len(lines)
            for one in translator.search(lines, prefix=forced, **chosen):
                _tell_translation(one, as_json=as_json)


def _tell_translation(one: Any, *, as_json: bool) -> None:
    if one.cut:
        say(f"too long: the last {one.cut:,} tokens of this source were not read")
    if as_json:
        listed = [{"text": text, "score": score} for text, score in one.hypotheses]
        record = {"source": one.source, "text": one.text, "score": one.score, "hypotheses": listed}
        print(json.dumps(record, ensure_ascii=False), flush=True)
    else:
        for text, score in one.hypotheses:
            print(text if len(one.hypotheses) == 1 else f"{score:.3f}\t{text}", flush=True)


app.command("summarise", help=SUMMARISE)(translate)
