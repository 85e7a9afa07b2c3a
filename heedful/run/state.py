"""The state at the beginning of a training: the model, prepared as the recipe says, its optimizer and its average."""

from typing import Any

import torch

from heedful.apply.checkpointed import checkpoint_blocks
from heedful.apply.compiled import compile_blocks
from heedful.apply.inference import for_inference
from heedful.apply.lora import adapt
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run.division import Division
from heedful.run.folder import parameters, read_masks
from heedful.run.job import Job
from heedful.run.recipe import Recipe
from heedful.store.checkpoint import Checkpoint
from heedful.training.loop import ALONE, TrainState
from heedful.training.optim import Average, OptimConfig, Optimizer
from heedful.training.precision import DTYPES, Precision, choose_precision
from heedful.training.ranks import Ranks

WHOLE = Division()  # each rank holds everything


def precision_of(recipe: Recipe, newest: Checkpoint | None, device: torch.device) -> tuple[Precision, str]:
    """The precision of a training, and why."""
    if newest is not None:
        return newest.json("state.json")["precision"], "as this run was begun"
    if recipe.train.precision != "auto":
        return recipe.train.precision, "as the recipe says"
    return choose_precision(device)


def new_state(
    recipe: Recipe,
    job: Job[Any, Any, Any],
    device: torch.device,
    precision: Precision,
    division: Division = WHOLE,
    ranks: Ranks = ALONE,
    *,
    begins: bool,
) -> TrainState:
    """The model, its optimizer and its average, as the recipe says, or this rank's pieces of them. If the training
    `begins`, the model gets the weights that it starts from; otherwise those of a checkpoint are loaded later."""
    plan = recipe.train
    torch.manual_seed(plan.seed)
    model = make_model(job.config)
    if begins:
        job.begin(model)
    if job.lora is not None:
        adapt(model, job.lora, new=job.new_heads())
    model = model.to(device)
    average = Average(model, plan.average)
    for_inference(average.model, fixed=False)  # it is measured, and changes
    optim = OptimConfig(
        optimizer=plan.optimizer,
        lr=plan.lr,
        betas=(plan.beta1, plan.beta2),
        eps=plan.epsilon,
        muon_lr=plan.muon_lr,
        weight_decay=plan.weight_decay,
        clip=plan.clip,
        schedule=plan.schedule,
        warmup=plan.warmup,
    )
    if plan.compile and plan.checkpointing:
        raise InputError("train.compile and train.checkpointing", where="recipe", fix="choose one of them")
    if plan.checkpointing:
        checkpoint_blocks(model)
    strategy = division.strategy(model, ranks, DTYPES[precision])
    optimizer = Optimizer(model, optim, None if strategy is None else strategy.pieces())
    weights = parameters(average.model)  # with what bf16 rounds away
    if strategy is not None and strategy.placement is not None:
        weights = {name: rows.of(weights[name]).clone() for name, rows in strategy.placement.here.items()}
        average.divide({name: weights[name] for name in optimizer.names})
    optimizer.load_masters(weights)
    masks = {} if job.begun is None else read_masks(job.begun, job.saved)
    if strategy is not None and strategy.placement is not None:
        masks = {name: rows.of(masks[name]) for name, rows in strategy.placement.here.items() if name in masks}
    optimizer.keep_zeros(masks)
    if plan.compile:
        compile_blocks(model, recorded=plan.accumulate == 1 or DTYPES[precision] != torch.float32)
    companions = {name: companion.to(device, DTYPES[precision]) for name, companion in job.companions.items()}
    return TrainState(
        model=model, optimizer=optimizer, average=average, seed=plan.seed, companions=companions, strategy=strategy
    )
