"""A training that takes no time: it fits a line to batches of numbers, through dropout."""

from typing import NamedTuple

import torch
from torch import nn

from heedful.core.dropout import Dropout
from heedful.training.loop import TrainState
from heedful.training.loss import Loss
from heedful.training.optim import Average, OptimConfig, Optimizer


class Rows(NamedTuple):
    """A batch of numbers, a row per sample."""

    x: torch.Tensor


class Line:
    """The task: a line, batches of unequal size, and dropout."""

    def __init__(self, sizes=(3, 5, 2, 6)):
        draw = torch.Generator().manual_seed(0)
        self.data = [torch.randn(size, 4, generator=draw) for size in sizes]

    def batches(self, epoch, model):
        return [Rows(each) for each in self.data]

    def loss(self, model, batch):
        error = model(batch.x.to(next(model.parameters()).dtype)).float() - batch.x.sum(1, keepdim=True)
        return Loss(error.square().sum(), len(batch.x))


def state(seed=7, dtype=torch.float32, dropout=0.2, decay=0.9):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), Dropout(dropout), nn.Linear(8, 1))
    average = Average(net, decay)
    net = net.to(dtype)
    made = Optimizer(net, OptimConfig(lr=0.01, warmup=3, clip=0.5))
    made.load_masters(dict(average.model.named_parameters()))
    return TrainState(model=net, optimizer=made, average=average, seed=seed)


def weights(of):
    return torch.cat([master.flatten() for master in of.optimizer.masters]).clone()
