"""The forward pass of a run's model on one input, step by step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.look.passes import ModuleCall, watched
from heedful.run.folder import read_textless_run
from heedful.tasks.load import load_model, row_of_run
from heedful.verbs.use import Directed

SAID = 5  # answers that are shown


@dataclass(frozen=True)
class Trace:
    """The input, each step, and the likeliest answers with their probabilities. `parameters` counts all of the model,
    including parts that this input did not use."""

    model: str
    given: str
    tokens: Sequence[str]
    steps: Sequence[ModuleCall]
    says: Sequence[tuple[str, float]]
    parameters: int

    @property
    def operations(self) -> int:
        return sum(step.operations for step in self.steps)

    @property
    def unused(self) -> int:
        """The number of parameters that no step used."""
        return self.parameters - sum(step.parameters for step in self.steps)


def trace(
    run: Path, given: str, pair: str | None = None, *, to: str = "", from_language: str = "", tag: str = ""
) -> Trace:
    """Traces a text, or a picture's file, through the run's model on the CPU. `pair`: a second text, or the beginning
    of a translation; the other arguments are those of a translator of several languages, or kinds. Raises InputError or
    MissingError."""
    row = row_of_run(run)
    if row.inside.feed is None:
        raise InputError(f"a model for {row.name!r} has no forward pass to trace", where=str(run))
    served = load_model(run)
    if named := [name for name, value in (("--to", to), ("--from-language", from_language), ("--tag", tag)) if value]:
        if not isinstance(served, Directed):
            raise InputError(f"{named[0]} is not used by a model for {row.name!r}", where=str(run), fix="leave it out")
        served = served.directed(from_language, to, tag)
    model, _ = read_textless_run(run)
    # As it was trained: a model that is loaded for use has other linear maps.
    served = served.changed(model=model.eval())
    fed = row.inside.feed()(served, given, pair)
    with watched(model) as steps:
        logits = fed.run()
    says: list[tuple[str, float]] = []
    if logits is not None:
        likeliest = logits.detach().float().softmax(-1).topk(min(SAID, len(logits)))
        says = [
            (fed.name_of(index), chance)
            for index, chance in zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
        ]
    size = sum(parameter.numel() for parameter in model.parameters())
    return Trace(type(model).__name__, given, fed.tokens, tuple(steps), says, size)


def records(traced: Trace) -> Iterator[dict[str, Any]]:
    """A record for each step: the input tokens, each module's call, and the answers. Shares are of the whole model."""
    yield {"step": 0, "name": "input", "given": traced.given, "tokens": [*traced.tokens]}
    for number, step in enumerate(traced.steps, start=1):
        yield {
            "step": number,
            "name": step.name,
            "kind": step.kind,
            "reads": [[*shape] for shape in step.reads],
            "gives": [*step.gives],
            "numbers": [*step.numbers],
            "mean": step.mean,
            "deviation": step.deviation,
            "parameters": step.parameters,
            "parameter_share": step.parameters / max(1, traced.parameters),
            "operations": step.operations,
            "operation_share": step.operations / max(1, traced.operations),
        }
    yield {
        "step": len(traced.steps) + 1,
        "name": "output",
        "says": [[name, chance] for name, chance in traced.says],
        "parameters": traced.parameters,
        "unused_parameters": traced.unused,
        "operations": traced.operations,
    }
