"""What a training will take on given devices: memory, time, bytes between devices, and disk.

Arithmetic on what `heedful.run.passes` counts. Each device computes its rows of every batch, and holds what
`train.shard` says: the whole model, its optimizer and its average, with gradients that are summed in float32 after the
backward pass ("none"); some of the optimizer and the average ("optimizer"; Rajbhandari et al. 2020, ZeRO, stage 1); or
of the weights and gradients too ("model"; stage 3, FSDP), where sums and backward pass overlap.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from heedful.apply.checkpointed import checkpoint_blocks
from heedful.core.attention import Heads
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run.job import Job
from heedful.run.passes import BatchShape, MadeBatches, Pass, passed, weightless
from heedful.run.recipe import Recipe
from heedful.run.resume import flat, needed_space
from heedful.run.task import Task
from heedful.store.memory import memory_size
from heedful.training.loop import Budget, Step, TrainState, fit, row_count
from heedful.training.loss import CHUNK, FEWEST
from heedful.training.optim import Average, OptimConfig, Optimizer
from heedful.training.precision import DTYPES, Precision, choose_precision, gigaflops
from heedful.training.ranks import Ranks

Shard = Literal["none", "optimizer", "model"]
SHARDS: tuple[Shard, ...] = ("none", "optimizer", "model")
GIB = 2**30
MOST = 1024  # devices
TRIAL = 4  # steps that are timed
# A bound on bytes: of each parameter, of each output of a linear map, and of each score of attention for a token.
STATE, WIDTHS, SCORES = 28, 16, 256
SHARED = 16  # bytes of each parameter that ranks who sum gradients take besides
USUAL_SHARE = 0.4  # of a device's peak; published trainings reach 0.29 to 0.52
RUNTIME = {"cpu": 0.5e9, "cuda": 1.5e9}  # bytes of torch, its libraries and their work space


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A kind of device, and what connects several of them."""

    name: str
    memory: float  # bytes of a device
    speed: Mapping[Precision, float]  # operations a second of dense matrix products
    link: float = 1e9  # bytes a second that a sum over the devices of one machine reaches
    network: float = 1e9  # the same over several machines
    together: int = 8  # devices in a machine
    kind: Literal["cpu", "cuda"] = "cuda"


def _gpu(name: str, memory: float, bf16: float, fp32: float, link: float, network: float) -> Machine:
    speed: dict[Precision, float] = {"fp32": fp32 * 1e12}
    if bf16:
        speed["bf16"] = bf16 * 1e12
    return Machine(name=name, memory=memory * 2**30, speed=speed, link=link * 1e9, network=network * 1e9)


# From their data sheets: GiB; dense TFLOPS in bf16 (0: it has none) and fp32; and what sums reach, in GB/s, inside a
# machine and between machines, which have a network card for each GPU (older ones: four).
MACHINES: dict[str, Machine] = {
    machine.name.lower(): machine
    for machine in (
        _gpu("P100", 16.0, 0.0, 9.5, 60.0, 12.0),
        _gpu("V100", 32.0, 0.0, 15.7, 130.0, 45.0),
        _gpu("T4", 15.0, 0.0, 8.1, 10.0, 6.0),
        _gpu("L4", 23.0, 121.0, 30.3, 20.0, 12.0),
        _gpu("A10G", 23.0, 70.0, 35.0, 20.0, 12.0),
        _gpu("RTX3090", 24.0, 71.0, 35.6, 20.0, 12.0),
        _gpu("RTX4090", 24.0, 165.0, 82.6, 20.0, 12.0),
        _gpu("A100-40GB", 39.5, 312.0, 19.5, 230.0, 180.0),
        _gpu("A100", 79.0, 312.0, 19.5, 230.0, 180.0),
        _gpu("H100", 79.0, 989.0, 67.0, 370.0, 330.0),
        _gpu("H200", 139.0, 989.0, 67.0, 370.0, 330.0),
        _gpu("B200", 178.0, 2250.0, 80.0, 700.0, 330.0),
    )
}


def machines(text: str) -> tuple[int, Machine]:
    """The number and kind of the devices that "8xH100" or "H100" names. Raises InputError."""
    match = re.fullmatch(r"(?:([0-9]{1,6})x)?(\S+)", text.strip(), re.IGNORECASE)
    kind = MACHINES.get(match[2].lower()) if match else None
    if match is None or kind is None:
        names = ", ".join(machine.name for machine in MACHINES.values())
        raise InputError(f"no known devices: {text!r}", where="--on", fix=f"such as 8xH100; there are {names}, here")
    count = int(match[1] or 1)
    if not 1 <= count <= MOST:
        raise InputError(f"{count} devices", where="--on", fix=f"plan 1 to {MOST:,}")
    return count, kind


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How a training is put on devices. `batches` are those of a step, each of the shape of a pass."""

    devices: int = 1
    precision: Precision = "bf16"
    muon: bool = False
    batches: int = 1
    checkpointing: bool = False
    shard: Shard = "none"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a training takes. Bytes, operations and seconds; `memory` and `wire` are of one device."""

    machine: str
    setting: Setting
    parameters: int
    steps: int
    memory: dict[str, float]  # by part
    room: float  # memory that a device has
    operations: float  # of the whole training, without those that checkpointing repeats
    share: float  # of the device's peak that its products are taken to reach
    wire: float  # bytes that a device sends in a step
    step_seconds: float
    disk: float

    @property
    def needed(self) -> float:
        return sum(self.memory.values())

    @property
    def fits(self) -> bool:
        return self.needed <= self.room

    @property
    def hours(self) -> float:
        return self.steps * self.step_seconds / 3600

    @property
    def device_hours(self) -> float:
        return self.setting.devices * self.hours


def memory(taken: Pass, setting: Setting, kind: Literal["cpu", "cuda"]) -> dict[str, float]:
    """The bytes that a device holds at the most, by part."""
    count, devices, size = taken.parameters, setting.devices, 2 if setting.precision == "bf16" else 4
    masters = setting.precision == "bf16"  # float32 weights beside the model's; otherwise they are the same
    whole = devices if setting.shard == "model" else 1  # weights and gradients are in so many pieces
    pieces = devices if setting.shard != "none" else 1  # and what the optimizer holds
    gathered = 2 * size * taken.largest if setting.shard == "model" else 0  # a block that computes, and the next
    stepped = count / pieces  # parameters that this device steps
    if setting.shard == "optimizer":  # each of them whole
        stepped = max(stepped, taken.widest) if devices > 1 else stepped
    sides = 2 if kind == "cpu" and setting.shard != "model" else 1  # halves of a batch have a gradient each
    fixed = devices > 1 and (setting.shard == "optimizer" or (setting.shard == "none" and kind == "cpu"))
    backward = sides * size * count if masters or sides > 1 or fixed else 0
    sums = 1 + sides if fixed and kind == "cpu" else 1  # of shares, as `FixedShares` adds them
    moments = (8 * count - (4 * taken.matrices if setting.muon else 0)) / count
    rows = -(-taken.shape.rows // devices) / taken.shape.rows
    positions = taken.shape.length * taken.shape.rows * rows
    logits = min(positions * taken.vocabulary, max(CHUNK[kind], FEWEST * taken.vocabulary))
    parts = {
        "weights": size * count / whole + gathered,
        "float32 weights": 4 * stepped if masters else 0,
        "gradients": (backward + sums * 4 * count) / whole,
        "optimizer": moments * stepped,
        "average": 4 * stepped,
        "sum over devices": 4 * count if devices > 1 and setting.shard != "model" else 0,
        "activations": rows * (taken.kept_inputs if setting.checkpointing else taken.kept),
        "logits": (size + 8) * logits + taken.head,
        "runtime": RUNTIME[kind],
    }
    return {part: float(size) for part, size in parts.items()}


def plan(
    taken: Pass, machine: Machine, setting: Setting, *, steps: int, share: float = USUAL_SHARE, keep: int = 2
) -> Plan:
    """The plan of a training of so many steps, of which the last `keep` checkpoints are kept. Raises InputError for a
    precision that the device does not have."""
    speed = machine.speed.get(setting.precision)
    if speed is None:
        fix = f"--set train.precision={next(iter(machine.speed))}"
        raise InputError(f"{machine.name} has no {setting.precision}", where="train.precision", fix=fix)
    count, devices, size = taken.parameters, setting.devices, 2 if setting.precision == "bf16" else 4
    rows = -(-taken.shape.rows // devices) / taken.shape.rows  # of a device that has the most
    computed = taken.operations + (taken.repeated if setting.checkpointing else 0)
    seconds = setting.batches * computed * rows / (speed * share)
    around = (devices - 1) / devices
    match setting.shard:
        case "none":
            wire = 2 * around * 4 * count
        case "optimizer":  # gradients to their pieces, weights from them
            wire = around * (4 + size) * count
        case "model":  # weights for each forward and backward pass too
            wire = around * (4 + 2 * size * setting.batches) * count
    sent = wire / (machine.link if devices <= machine.together else machine.network)
    return Plan(
        machine=machine.name,
        setting=setting,
        parameters=count,
        steps=steps,
        memory=memory(taken, setting, machine.kind),
        room=machine.memory,
        operations=steps * setting.batches * taken.operations,
        share=share,
        wire=wire,
        step_seconds=max(seconds, sent) if setting.shard == "model" else seconds + sent,
        disk=float(needed_space(4 * count, 4 * count, keep)),
    )


def nearest(taken: Pass, machine: Machine, setting: Setting) -> tuple[Pass, Setting] | None:
    """The pass and the setting most like these that fit and make the same steps: smaller batches that are summed,
    blocks that are computed again, and only then pieces on the devices, as many or more. None where none does."""
    spread: list[tuple[int, Shard]] = [(setting.devices, setting.shard)]
    spread += [(setting.devices, shard) for shard in SHARDS[1:]]
    spread += [(2**i, "model") for i in range(MOST.bit_length()) if 2**i > setting.devices]
    for devices, shard in spread:
        for checkpointing in dict.fromkeys((setting.checkpointing, True)):
            other = replace(setting, devices=devices, shard=shard, checkpointing=checkpointing)
            if (fitting := _halved(taken, machine, other)) is not None:
                return fitting
    return None


def _halved(taken: Pass, machine: Machine, setting: Setting) -> tuple[Pass, Setting] | None:
    """With the fewest halvings of the batch, and as many more batches in a step, that fit; None where none do."""
    while sum(memory(taken, setting, machine.kind).values()) > machine.memory:
        if taken.shape.rows < 2 * setting.devices:
            return None
        taken, setting = taken.of_half(), replace(setting, batches=2 * setting.batches)
    return taken, setting


def this_machine(device: torch.device, precision: Precision) -> Machine:
    """The device that is here, with the speed at which it multiplies matrices."""
    speed = {precision: 1e9 * gigaflops(2048, precision, device)}
    return Machine(
        name=f"this {device.type.upper()}", memory=float(_memory_of(device)), speed=speed, kind=_kind(device)
    )


def _memory_of(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else memory_size()


def _kind(device: torch.device) -> Literal["cpu", "cuda"]:
    return "cuda" if device.type == "cuda" else "cpu"


def devices_of(recipe: Recipe, on: str | None, here: torch.device) -> tuple[Machine, int, Precision]:
    """The devices that `on` names, or the one that is `here`, and the precision of the recipe there."""
    asked = recipe.train.precision
    if on is None:
        precision: Precision = choose_precision(here).precision if asked == "auto" else asked
        return this_machine(here, precision), 1, precision
    count, machine = machines(on)
    best: Precision = "bf16" if "bf16" in machine.speed else "fp32"
    return machine, count, best if asked == "auto" else asked


def shape_of_data(shape: BatchShape, job: Job[Any, Any, Any]) -> tuple[BatchShape, float]:
    """The shape, as the data of a job have it, and how much there is of its unit."""
    batches = job.task(weightless(job.config)).batches(0, None)
    shape = shape._replace(rows=row_count(batches[0]))
    if isinstance(batches[0][0], Tensor):
        shape = shape._replace(length=batches[0][0].shape[1])
    whole = shape.rows * shape.length if shape.unit == "tokens" else len(job.corpus.train) / len(batches)
    return shape._replace(examples=float(whole)), float(whole * len(batches))


def setting_of(recipe: Recipe, precision: Precision, devices: int = 1, shard: Shard = "none") -> Setting:
    """How a recipe is put on so many devices."""
    plan, muon = recipe.train, recipe.train.optimizer == "muon"
    return Setting(
        devices=devices,
        precision=precision,
        muon=muon,
        batches=plan.accumulate,
        checkpointing=plan.checkpointing,
        shard=shard,
    )


def as_settings(recipe: Recipe, shape: BatchShape, before: Setting, after: Setting) -> list[str]:
    """What turns one setting of a recipe into another, as `heed train --set` takes it."""
    parts, keys = after.batches // before.batches, flat(recipe.model_dump(mode="json"))
    words = []
    if parts > 1:
        words += [f"{shape.key}={int(str(keys[shape.key])) // parts}", f"train.accumulate={after.batches}"]
    words += ["train.checkpointing=true"] if after.checkpointing > before.checkpointing else []
    return words + ([f"train.shard={after.shard}"] if after.shard != before.shard else [])


def measured_seconds(config: object, shape: BatchShape, setting: Setting, device: torch.device) -> float:
    """The quickest of a few real steps of one such batch on a device."""
    model = make_model(config).to(device, DTYPES[setting.precision])
    optimizer = Optimizer(model, OptimConfig(optimizer="muon" if setting.muon else "adam"))
    state = TrainState(model=model, optimizer=optimizer, average=Average(model, 0.0), seed=1)
    if setting.checkpointing:
        checkpoint_blocks(model)
    steps = fit(MadeBatches(model, shape, count=TRIAL), state, Budget(steps=TRIAL), halves=True)
    seconds = [0.0, *(step.seconds for step in steps if isinstance(step, Step))]
    return min(after - before for before, after in pairwise(seconds))


class Short(NamedTuple):
    """A training for which memory may be short."""

    taken: Pass
    setting: Setting
    machine: Machine

    def needed(self, shard: Shard) -> float:
        return sum(memory(self.taken, replace(self.setting, shard=shard), self.machine.kind).values())


def maybe_short(
    task: Task, job: Job[Any, Any, Any], precision: Precision, device: torch.device, ranks: Ranks
) -> Short | None:
    """None where a training surely fits the memory that is here, or where the task's row does not say the shape of its
    batches.

    The model is passed only where a rough bound says that there may be too little: in most trainings the answer takes
    hundredths of a second.
    """
    recipe, kind = job.recipe, _kind(device)
    room = _memory_of(device) / (ranks.together if kind == "cpu" else 1)
    if task.batch is None or job.lora is not None:
        return None
    shape, model = task.batch()(recipe, job.config), weightless(job.config)
    count = sum(parameter.numel() for parameter in model.parameters())
    widths = sum(module.out_features for module in model.modules() if isinstance(module, nn.Linear))
    scores = sum(SCORES * shape.length for module in model.modules() if isinstance(module, Heads))
    rows = -(-shape.rows // ranks.size)
    state = STATE + (SHARED if ranks.size > 1 else 0)
    if state * count + rows * shape.length * (WIDTHS * widths + scores) + RUNTIME[kind] < room:
        return None
    try:
        taken = passed(job.config, shape, precision, explicit=kind == "cpu")
    except InputError:  # a kind of model that no plan is made of
        return None
    machine = Machine(name="this device", memory=float(room), speed={precision: 1.0}, kind=kind)
    return Short(taken, setting_of(recipe, precision, devices=ranks.size), machine)


def too_large(short: Short | None, shard: Shard, recipe: Recipe) -> str:
    """A warning where a training does not fit the memory that is here; "" where it does."""
    if short is None or (needed := short.needed(shard)) <= short.machine.memory:
        return ""
    device_has = f"this {short.machine.kind.upper()} has {short.machine.memory / GIB:,.1f}"
    words = f"about {needed / GIB:,.1f} GiB of memory will be needed, and {device_has}"
    setting = replace(short.setting, shard=shard)
    other = nearest(short.taken, short.machine, setting)
    if other is None or other[1].shard != shard or other[1].devices != setting.devices:
        return f"{words}: take a smaller --preset"
    settings = as_settings(recipe, short.taken.shape, setting, other[1])
    return f"{words}: --set {' --set '.join(settings)} makes the same steps in less"
