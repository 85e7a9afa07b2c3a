"""`heed plan`."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heedful.tasks import DEFAULT
from heedful.tasks.shared.options import Json, Settings

if TYPE_CHECKING:
    from heedful.verbs.plan import Planned

GIB = 2**30
HOST = 0.03  # seconds that a host needs to start the kernels of a step, about
AMOUNT = {"metavar": "AMOUNT", "show_default": False}


def plan(
    task: Annotated[str, typer.Argument(help="A task, or a recipe file (.py, .yaml).")] = DEFAULT,
    preset: Annotated[str | None, typer.Option(help="The size of the model; heed info lists them.")] = None,
    data: Annotated[str | None, typer.Option(help="Data as for heed train: they are read.", show_default=False)] = None,
    pairs: Annotated[str | None, typer.Option(help="How many pairs, such as 4.5M.", **AMOUNT)] = None,
    tokens: Annotated[str | None, typer.Option(help="How many tokens of text, such as 300B.", **AMOUNT)] = None,
    pictures: Annotated[str | None, typer.Option(help="How many pictures, such as 1.28M.", **AMOUNT)] = None,
    words: Annotated[
        float | None, typer.Option(min=1, help="With --pairs: mean tokens of a side.", show_default="28")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="Devices, such as 8xH100; this machine, measured.", show_default=False),
    ] = None,
    shard: Annotated[
        Literal["none", "optimizer", "model"],
        typer.Option(help="What devices hold in pieces. heed train itself shards nothing: the others are for engines."),
    ] = "none",
    share: Annotated[
        float | None,
        typer.Option(min=0.01, max=1.0, help="Of the peak that products reach.", show_default="0.4, or measured here"),
    ] = None,
    price: Annotated[float | None, typer.Option(min=0, help="Of a device for an hour.", show_default=False)] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Tell what a training will take before it begins: memory, time, disk, and cost.

    Example: heed plan translate --preset transformer-big --pairs 4.5M --on 8xH100
    """
    from heedful.verbs.plan import planned

    amounts = {"pairs": pairs, "tokens": tokens, "pictures": pictures}
    answer = planned(
        task,
        {"preset": preset, "data.path": data},
        amounts={unit: text for unit, text in amounts.items() if text is not None},
        words=words,
        on=on,
        shard=shard,
        share=share,
        settings=settings or (),
    )
    record = answer.record(price)
    print(json.dumps(record) if as_json else "\n".join(_lines(answer, record)))


def _lines(answer: "Planned", record: Mapping[str, Any]) -> Iterator[str]:
    """A plan for people."""
    chosen, unit = answer.plan, answer.shape.unit
    yield f"{record['preset']}, {chosen.parameters:,} parameters, {record['precision']}, on {record['on']}"
    step = f"{record['examples_a_step']:,.0f} {unit}"
    yield f"steps    {chosen.steps:,} of {step}: {answer.epochs:.3g} times {answer.amount:,.0f} {unit}"
    verdict = "fits" if chosen.fits else "DOES NOT FIT"
    yield f"memory   {_gib(chosen.needed)} of {_gib(chosen.room)} GiB a device: {verdict}"
    yield f"         {', '.join(f'{part} {_gib(size)}' for part, size in chosen.memory.items() if size)}"
    reached = "measured here" if answer.measured else "assumed"
    yield f"FLOPs    {chosen.operations:.3g}, at {100 * chosen.share:.0f} % of the peak ({reached})"
    whole = f"{_hours(chosen.hours)}, {chosen.device_hours:,.3g} device hours"
    yield f"time     {whole}, {chosen.step_seconds:.3g} s a step"
    if chosen.step_seconds < HOST:
        yield "         so short a step waits for its host: take larger batches, or --set train.compile=true"
    if chosen.wire:
        yield f"wire     {chosen.wire / 1e9:,.3g} GB a device and step"
    if "cost" in record:
        yield f"cost     {record['cost']:,.2f}"
    yield f"disk     {chosen.disk / 1e9:,.3g} GB, without the data"
    if not chosen.fits:
        yield from _instead(answer)
    if answer.others:
        yield "\ndevices  memory      fits  time"
        for other in answer.others:
            fits = "yes" if other.fits else "no"
            yield f"{other.setting.devices:>7,}  {_gib(other.needed):>6} GiB  {fits:4}  {_hours(other.hours)}"


def _instead(answer: "Planned") -> Iterator[str]:
    if answer.instead is None:
        yield "fits     on no number of these devices"
    else:
        other, chosen = answer.instead.setting, answer.plan.setting
        changes = [f"--set {setting}" for setting in answer.settings]
        changes += [f"--on {other.devices}x{answer.plan.machine}"] if other.devices != chosen.devices else []
        changes += [f"--shard {other.shard}, for which heed train has no engine"] if other.shard != chosen.shard else []
        yield f"fits     with {' '.join(changes)}: {_gib(answer.instead.needed)} GiB, {_hours(answer.instead.hours)}"
    if answer.largest:
        yield f"         or --preset {answer.largest}, the largest whose weights and optimizer fit"


def _gib(size: float) -> str:
    return f"{size / GIB:,.1f}"


def _hours(hours: float) -> str:
    return (
        f"{hours / 24:,.1f} days"
        if hours >= 48
        else f"{hours:.1f} hours"
        if hours >= 1
        else f"{60 * hours:.2g} minutes"
    )
