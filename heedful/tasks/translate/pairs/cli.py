"""`heed align`, and `heed score` of a translator: what is asked about pairs of a source and a translation."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heedful.errors import InputError, counted
from heedful.tasks.shared.line_by_line import GROUP, answer_groups, answer_lines, one_each
from heedful.tasks.shared.options import Device, FromLanguage, Json, Run, To
from heedful.tasks.shared.terminal import printable, say

if TYPE_CHECKING:
    from heedful.data.text.pairs import Pairs, Place
    from heedful.tasks.translate.use import Translator

    Asked = Callable[[Translator, Sequence[tuple[str, str]]], Iterable[Mapping[str, Any]]]


Row = tuple[str, str, str | None]  # a source, a target and their tag; None where a side is empty


class Given(NamedTuple):
    """Where pairs are: lines of two columns, two files, or data as a training reads it; without any, on standard
    input. `to` and `from_language` are languages of a model of several, where the data do not say them."""

    texts: Sequence[str] | None
    source: str | None
    target: str | None
    data: str | None
    to: str = ""
    from_language: str = ""


def align(
    run: Run,
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="A source, a TAB and its translation; without any, lines of standard input."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="A file, a sentence a line; with --data, a language.")] = None,
    target: Annotated[str | None, typer.Option(help="Its translations, line by line; likewise.")] = None,
    data: Annotated[str | None, typer.Option(help="Pairs, in any file that train reads.")] = None,
    to: To = "",
    from_language: FromLanguage = "",
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Tell which words of given translations belong to which of their sources.

    A line for each pair, as word aligners write it: 0-1 links the first word of the source to the second of the
    translation. Words are what blanks part.

    Example: heed align runs/demo --source test.en --target test.fr
    """
    from heedful.tasks.translate.pairs.pharaoh import align_pairs, pharaoh

    def show(found: Mapping[str, Any]) -> str:
        return pharaoh(found["alignment"])

    given = Given(texts, source, target, data, to, from_language)
    _answer_pairs(run, given, align_pairs, show, device=device, as_json=as_json)


def score_pairs(run: Path, given: Given, *, device: str, as_json: bool) -> None:
    """`heed score` of a translator."""
    from heedful.tasks.translate.pairs.weigh import weigh

    def show(found: Mapping[str, Any]) -> str:
        figures = f"{found['per_token']:.3f}\t{found['logprob']:.3f}\t{found['tokens']}"
        return f"{figures}\t{printable(found['source'])}\t{printable(found['target'])}"

    _answer_pairs(run, given, weigh, show, device=device, as_json=as_json)


def _answer_pairs(
    run: Path,
    given: Given,
    answers: "Asked",
    show: Callable[[Mapping[str, Any]], str],
    *,
    device: str,
    as_json: bool,
) -> None:
    from heedful.run.device import chosen_device
    from heedful.tasks.translate.pairs.directed import refuse_named
    from heedful.tasks.translate.pairs.tagged import each_as_tagged
    from heedful.tasks.translate.pairs.weigh import in_a_pair
    from heedful.tasks.translate.use import Translator

    texts, source, target, data, to, from_language = given
    if data is None and (source is None) != (target is None):
        raise InputError("one side of the pairs alone", fix="give --source FILE --target FILE")
    if texts and (data or source):
        raise InputError("texts beside a file of pairs", fix="give one of the two")
    if data is not None:
        refuse_named(data, to=to, from_language=from_language)
    translator = Translator.load(run, device=chosen_device(device)).changed(run=run)
    asked = translator.directed(from_language, to)
    if data is None and source is None:

        def answered(lines: list[str], first: int) -> Iterable[Sequence[Mapping[str, Any]]]:
            return one_each(answers(asked, [in_a_pair(line) for line in lines]))

        if asked.spec.languages is not None and all(asked.languages) and not (to and from_language):
            say(f"taken as {' to '.join(asked.languages)}; another direction is said by --to and --from-language")
        answer_lines(texts, answered, show, as_json=as_json)
        return
    pairs, directed = _read(translator, given)
    tags = pairs.tags or [""] * len(pairs)
    whole = enumerate(zip(pairs.source, pairs.target, tags, strict=True))
    both: list[tuple[Place, Row]] = [(pairs.place_of(i), row) for i, row in whole]
    both += [(place, (one, other, None)) for place, one, other in pairs.empty]
    both.sort(key=lambda row: row[0])

    def answered_rows(rows: list[Row], first: int) -> Iterable[Sequence[Mapping[str, Any]]]:
        whole = [(one, other, tag) for one, other, tag in rows if tag is not None]
        found = iter(each_as_tagged(directed, answers, whole))
        return one_each(
            {"source": one, "target": other, "error": "a side is empty"} if tag is None else next(found)
            for one, other, tag in rows
        )

    if pairs.empty:
        say(f"{pairs.name}: an empty line stands for {counted(len(pairs.empty), 'pair')}, of which a side is empty")
    answer_groups(
        ([row for _, row in both[i : i + GROUP]] for i in range(0, len(both), GROUP)),
        answered_rows,
        lambda found: "" if "error" in found else show(found),
        named=lambda number: pairs.line_of(both[number][0]),
        name=pairs.name,
        as_json=as_json,
    )


def _read(translator: "Translator", given: Given) -> "tuple[Pairs, Translator]":
    """The pairs of data, or of two files, and the translator in their direction. Raises InputError for data of several
    directions."""
    from heedful.data.text.pairs import read_pairs
    from heedful.data.text.reading import read_whole
    from heedful.tasks.translate.pairs.directed import directed_by_data, directed_by_files
    from heedful.tasks.translate.pairs.tagged import with_tags

    _, source, target, data, to, from_language = given
    if data is None:
        assert source is not None  # else there are lines to be read
        assert target is not None
        directed, unsaid = directed_by_files(translator, source, target, named=(from_language, to))
        for line in unsaid:
            say(line)
        return read_pairs(source, target), directed
    # Of several directions the data says which.
    known = (None, None) if translator.spec.languages is not None else translator.languages
    asked = partial(read_whole, data, source=source or known[0], target=target or known[1])
    read, told = with_tags(translator, lambda tag: asked(tag=tag))
    for line in told:
        say(line)
    if read.train.dropped:
        say(f"{data}: {counted(read.train.dropped, 'pair')} left out, a side is empty: no line stands for such a pair")
    if read.directions:
        raise InputError("data of several directions", where=data, fix="name one: --source en --target de")
    return read.train.apart(), directed_by_data(translator, read.taken.source, read.taken.target, data)
