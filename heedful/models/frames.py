"""Frames of residues: where each stands and how it is turned (Jumper et al. 2021, supplement, section 1.8.1).

*B any leading axes, such as the residues of a chain; F frames; P points. Lengths are in angstroms.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

SMALLEST = 1e-8  # squared length of an axis
# Bond lengths and the angle between them (Engh and Huber 1991).
N_CA, CA_C, ANGLE = 1.458, 1.525, math.radians(111.0)
# N, CA and C of any residue in its own frame.
BACKBONE = ((N_CA * math.cos(ANGLE), N_CA * math.sin(ANGLE), 0.0), (0.0, 0.0, 0.0), (CA_C, 0.0, 0.0))


class Frames(NamedTuple):
    rotation: Float[Tensor, "*B 3 3"]
    origin: Float[Tensor, "*B 3"]

    @classmethod
    def identity(cls, like: Float[Tensor, "*B C"]) -> "Frames":
        """One at the origin for each row of features."""
        rotation = torch.eye(3, dtype=like.dtype, device=like.device).expand(*like.shape[:-1], 3, 3)
        return cls(rotation, like.new_zeros(*like.shape[:-1], 3))

    @classmethod
    def of_backbone(cls, atoms: Float[Tensor, "*B 3 3"]) -> "Frames":
        """From the positions of N, CA and C: CA is the origin, C on the first axis, N in the plane of the first two
        (algorithm 21)."""
        n, ca, c = atoms.unbind(-2)
        first = _unit(c - ca)
        towards = n - ca
        second = _unit(towards - first * (first * towards).sum(-1, keepdim=True))
        return cls(torch.stack([first, second, torch.linalg.cross(first, second)], dim=-1), ca)

    def apply(self, points: Float[Tensor, "*B P 3"]) -> Float[Tensor, "*B P 3"]:
        """Points given in each frame, in the space around."""
        return torch.einsum("...xy,...py->...px", self.rotation, points) + self.origin[..., None, :]

    def inverse(self, points: Float[Tensor, "*B P 3"]) -> Float[Tensor, "*B P 3"]:
        """Points of the space around, as each frame sees them."""
        return torch.einsum("...yx,...py->...px", self.rotation, points - self.origin[..., None, :])

    def updated(self, update: Float[Tensor, "*B 6"]) -> "Frames":
        """Turned by the quaternion (1, b, c, d), normalised, and moved, both as the frame itself sees it (algorithm
        23)."""
        turn, step = update.split(3, dim=-1)
        rotation = self.rotation @ _rotation(torch.cat([torch.ones_like(turn[..., :1]), turn], dim=-1))
        return Frames(rotation, self.apply(step[..., None, :])[..., 0, :])

    def scaled(self, factor: float) -> "Frames":
        return Frames(self.rotation, self.origin * factor)

    def without_turning_gradient(self) -> "Frames":
        """For the next layer: no gradient passes a chain of rotations (algorithm 20, line 20)."""
        return Frames(self.rotation.detach(), self.origin)

    def backbone(self) -> Float[Tensor, "*B 3 3"]:
        """The positions of N, CA and C."""
        atoms = torch.tensor(BACKBONE, dtype=self.origin.dtype, device=self.origin.device)
        return self.apply(atoms.expand(*self.origin.shape[:-1], 3, 3))


def fape(
    frames: Frames,
    points: Float[Tensor, "B P 3"],
    true_frames: Frames,
    true_points: Float[Tensor, "B P 3"],
    valid_frames: Bool[Tensor, "B F"],
    valid_points: Bool[Tensor, "B P"],
    *,
    clamp: float | None = 10.0,
    unit: float = 10.0,
) -> Float[Tensor, "B"]:
    """The frame-aligned point error: how far each point is from where it should be, as each frame sees it, at most
    `clamp` (None: any), in units of `unit` angstroms (algorithm 28). The mean over all frames and points of a chain; 0
    for a chain without any."""
    B, F = valid_frames.shape
    seen = frames.inverse(points[:, None].expand(B, F, *points.shape[1:]))
    true = true_frames.inverse(true_points[:, None].expand(B, F, *points.shape[1:]))
    error = ((seen - true).square().sum(-1) + 1e-4).sqrt()  # (B, F, P)
    error = error if clamp is None else error.clamp(max=clamp)
    both = valid_frames[:, :, None] & valid_points[:, None]
    return error.masked_fill(~both, 0.0).sum((1, 2)) / both.sum((1, 2)).clamp(min=1) / unit


def torsion(atoms: Float[Tensor, "*B 4 3"]) -> Float[Tensor, "*B 2"]:
    """The sine and cosine of the angle by which the bond from the third of four atoms to the last is turned against
    that from the second to the first, around the bond between."""
    first, axis, last = atoms.diff(dim=-2).unbind(-2)
    before_axis, after_axis = torch.linalg.cross(first, axis), torch.linalg.cross(axis, last)
    cosine = (before_axis * after_axis).sum(-1)
    sine = (torch.linalg.cross(before_axis, after_axis) * _unit(axis)).sum(-1)
    return _unit(torch.stack([sine, cosine], dim=-1))


def backbone_torsions(atoms: Float[Tensor, "B R 3 3"]) -> Float[Tensor, "B R 3 2"]:
    """Sines and cosines of omega, phi and psi of each residue, from its N, CA and C and its neighbours'. Omega and phi
    of the first residue and psi of the last are no angles, and (0, 1)."""
    n, ca, c = atoms.unbind(2)
    before = (
        torch.stack([ca[:, :-1], c[:, :-1], n[:, 1:], ca[:, 1:]], dim=2),
        torch.stack([c[:, :-1], n[:, 1:], ca[:, 1:], c[:, 1:]], dim=2),
    )
    after = torch.stack([n[:, :-1], ca[:, :-1], c[:, :-1], n[:, 1:]], dim=2)
    none = atoms.new_tensor([0.0, 1.0]).expand(len(atoms), 1, 2)
    omega, phi = (torch.cat([none, torsion(four)], dim=1) for four in before)
    return torch.stack([omega, phi, torch.cat([torsion(after), none], dim=1)], dim=2)


def torsion_loss(
    predicted: Float[Tensor, "*B 2"], true: Float[Tensor, "*B 2"], valid: Bool[Tensor, "*B"]
) -> Float[Tensor, ""]:
    """The sum over the valid angles of the squared distance of the normalised vectors, and 0.02 times how far the
    predicted ones are from the length 1 (algorithm 27)."""
    length = (predicted.square().sum(-1) + SMALLEST).sqrt()
    error = (predicted / length[..., None] - true).square().sum(-1) + 0.02 * (length - 1).abs()
    return error.masked_fill(~valid, 0.0).sum()


def _unit(vector: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
    return vector / (vector.square().sum(-1, keepdim=True) + SMALLEST).sqrt()


def _rotation(quaternion: Float[Tensor, "*B 4"]) -> Float[Tensor, "*B 3 3"]:
    a, b, c, d = (quaternion / quaternion.norm(dim=-1, keepdim=True)).unbind(-1)
    rows = [
        (a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)),
        (2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)),
        (2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d),
    ]
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
