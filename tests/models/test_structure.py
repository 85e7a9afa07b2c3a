"""The structure module and its frames: their laws, and against Hugging Face's of ESMFold."""

import math

import pytest
import torch
from torch import Tensor, nn
from transformers.models.esm.configuration_esm import StructureModuleConfig
from transformers.models.esm.modeling_esmfold import (
    EsmFoldAngleResnet,
    EsmFoldInvariantPointAttention,
    EsmFoldStructureModule,
)
from transformers.models.esm.openfold_utils import Rigid, Rotation

from heedful.models.frames import BACKBONE, Frames, backbone_torsions, fape, torsion, torsion_loss
from heedful.models.structure import InvariantPointAttention, StructureConfig, StructureModule
from loud import make_loud

B, R, M, C = 2, 7, 12, 8
CONFIG = StructureConfig(
    d_single=M, n_heads=3, head_dim=4, query_points=2, value_points=5, n_layers=2, d_angles=6, n_angles=7
)
THEIRS = StructureModuleConfig(
    sequence_dim=M, pairwise_dim=C, ipa_dim=4, resnet_dim=6, num_heads_ipa=3, num_qk_points=2, num_v_points=5,
    num_blocks=2, num_angles=7,
)  # fmt: skip


def close(one: Tensor, other: Tensor) -> None:
    largest = float(other.detach().abs().max().clamp(min=1))
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5 * largest)


def random_frames(*shape: int) -> Frames:
    return Frames.of_backbone(4 * torch.randn(*shape, 3, 3))


def moved(frames: Frames, by: Frames) -> Frames:
    """All frames turned and moved alike."""
    return Frames(by.rotation @ frames.rotation, frames.origin @ by.rotation.mT + by.origin)


@pytest.fixture
def inputs() -> tuple[Tensor, Tensor]:
    return torch.randn(B, R, M), torch.randn(B, R, R, C)


# Frames


def test_a_frame_is_a_rotation_and_gives_its_backbone_back() -> None:
    frames = random_frames(B, R)
    close(frames.rotation @ frames.rotation.mT, torch.eye(3).expand(B, R, 3, 3))
    close(torch.linalg.det(frames.rotation), torch.ones(B, R))
    again = Frames.of_backbone(frames.backbone())
    close(again.rotation, frames.rotation)
    close(again.origin, frames.origin)
    points = torch.randn(B, R, 5, 3)
    close(frames.inverse(frames.apply(points)), points)
    close(frames.backbone(), frames.apply(torch.tensor(BACKBONE).expand(B, R, 3, 3)))


def test_frames_and_updates_are_those_of_openfold() -> None:
    atoms, update = torch.randn(B, R, 3, 3), torch.randn(B, R, 6)
    n, ca, c = atoms.unbind(2)
    own, theirs = Frames.of_backbone(atoms), Rigid.from_3_points(2 * ca - c, ca, n)
    close(own.rotation, theirs.get_rots().get_rot_mats())
    theirs = Rigid(Rotation(quats=theirs.get_rots().get_quats()), ca).compose_q_update_vec(update)
    close(own.updated(update).rotation, theirs.get_rots().get_rot_mats())
    close(own.updated(update).origin, theirs.get_trans())


def test_error_of_frames_by_loops_and_under_motion() -> None:
    """Algorithm 28. Whoever moves or turns a whole prediction changes nothing; a mirror image is another one."""
    frames, true = random_frames(B, R), random_frames(B, R)
    points, true_points = frames.backbone().flatten(1, 2), true.backbone().flatten(1, 2)
    valid = torch.arange(R) < torch.tensor([[R - 2], [R]])
    seen = valid.repeat_interleave(3, dim=1)
    found = fape(frames, points, true, true_points, valid, seen)
    for b in range(B):
        errors = []
        for f in range(int(valid[b].sum())):
            for p in range(int(seen[b].sum())):
                one = frames.rotation[b, f].T @ (points[b, p] - frames.origin[b, f])
                other = true.rotation[b, f].T @ (true_points[b, p] - true.origin[b, f])
                errors.append(min(10.0, math.sqrt(float((one - other).square().sum()) + 1e-4)))
        assert float(found[b]) == pytest.approx(sum(errors) / len(errors) / 10, rel=1e-5)
    by = random_frames()
    again = moved(frames, by)
    close(fape(again, again.backbone().flatten(1, 2), true, true_points, valid, seen), found)
    mirror = points * torch.tensor([1.0, 1.0, -1.0])
    inside = Frames.of_backbone(mirror.unflatten(1, (R, 3)))
    assert (fape(inside, mirror, frames, points, valid, seen) > 0.05).all()
    assert (fape(frames, points, frames, points, valid, seen) < 2e-3).all()
    none = torch.zeros_like(valid)
    assert fape(frames, points, true, true_points, none, seen).tolist() == [0.0, 0.0]


def test_torsions() -> None:
    """Of atoms that are turned by a known angle, whichever way the whole is turned."""
    for degrees in (-170.0, -60.0, 0.0, 30.0, 120.0):
        angle = math.radians(degrees)
        atoms = torch.tensor(
            [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0], [math.cos(angle) * 3, math.sin(angle) * 3, 1.0]]
        )
        atoms[0] = torch.tensor([2.0, 0.0, -1.0])
        expected = torch.tensor([math.sin(angle), math.cos(angle)])
        close(torsion(atoms), expected)
        close(torsion(random_frames(1).apply(atoms[None])[0]), expected)
    found = backbone_torsions(torch.randn(B, R, 3, 3))
    close(found.norm(dim=-1), torch.ones(B, R, 3))
    assert found[:, 0, :2].tolist() == [[[0.0, 1.0]] * 2] * B
    assert found[:, -1, 2].tolist() == [[0.0, 1.0]] * B
    true, valid = found, torch.ones(B, R, 3, dtype=torch.bool)
    assert float(torsion_loss(true, true, valid)) == pytest.approx(0, abs=1e-4)
    assert float(torsion_loss(3 * true, true, valid)) == pytest.approx(0.04 * valid.numel(), rel=1e-4)
    assert float(torsion_loss(-true, true, valid)) == pytest.approx(4 * valid.numel(), rel=1e-4)


# Attention among points


def test_moving_all_frames_changes_nothing(inputs: tuple[Tensor, Tensor]) -> None:
    layer, frames = make_loud(InvariantPointAttention(CONFIG, C)).eval(), random_frames(B, R)
    plain = layer(*inputs, frames)
    close(layer(*inputs, moved(frames, random_frames())), plain)
    assert not torch.allclose(layer(*inputs, random_frames(B, R)), plain, atol=1e-2)


def test_a_structure_turns_with_the_frames_that_it_begins_with(inputs: tuple[Tensor, Tensor]) -> None:
    model, frames, by = make_loud(StructureModule(CONFIG, C), norm=1.0).eval(), random_frames(B, R), random_frames()
    plain, turned = model(*inputs, frames=frames), model(*inputs, frames=moved(frames, by))
    for one, other in zip(plain.frames, turned.frames, strict=True):
        close(other.origin, moved(one, by).origin)
        close(other.rotation, moved(one, by).rotation)
    close(turned.angles, plain.angles)


def test_padding_and_order(inputs: tuple[Tensor, Tensor]) -> None:
    model = make_loud(StructureModule(CONFIG, C), norm=1.0).eval()
    single, pair = inputs
    valid = torch.arange(R) < torch.tensor([[R - 2], [R]])
    rows = model(single, pair, valid).frames[-1].origin
    close(rows[:1, : R - 2], model(single[:1, : R - 2], pair[:1, : R - 2, : R - 2]).frames[-1].origin)
    plain, order = model(single, pair), torch.randperm(R)
    close(rows[1:], plain.frames[-1].origin[1:])
    close(model(single[:, order], pair[:, order][:, :, order]).frames[-1].origin, plain.frames[-1].origin[:, order])


def copied(own: InvariantPointAttention, theirs: EsmFoldInvariantPointAttention) -> None:
    """Their weights in ours: they keep keys and values, and their points, in one map each."""
    P, V, H = CONFIG.query_points, CONFIG.value_points, CONFIG.n_heads
    with torch.no_grad():
        for part, their in ((own.query, theirs.linear_q), (own.query_points, theirs.linear_q_points)):
            part.load_state_dict(their.state_dict())
        own.pair_bias.load_state_dict(theirs.linear_b.state_dict())
        own.out.load_state_dict(theirs.linear_out.state_dict())
        own.head_weights.copy_(theirs.head_weights)
        for name in ("weight", "bias"):
            both = getattr(theirs.linear_kv, name).unflatten(0, (H, 2, -1))
            points = getattr(theirs.linear_kv_points, name).unflatten(0, (3, H, P + V))
            getattr(own.key, name).copy_(both[:, 0].flatten(0, 1))
            getattr(own.value, name).copy_(both[:, 1].flatten(0, 1))
            getattr(own.key_points, name).copy_(points[:, :, :P].flatten(0, 2))
            getattr(own.value_points, name).copy_(points[:, :, P:].flatten(0, 2))


def as_theirs(frames: Frames) -> Rigid:
    return Rigid(Rotation(rot_mats=frames.rotation), frames.origin)


def test_attention_is_theirs(inputs: tuple[Tensor, Tensor]) -> None:
    theirs = make_loud(EsmFoldInvariantPointAttention(THEIRS)).eval()
    own = InvariantPointAttention(CONFIG, C)
    copied(own, theirs)
    frames, valid = random_frames(B, R), torch.arange(R) < torch.tensor([[R - 2], [R]])
    expected = theirs(*inputs, as_theirs(frames), valid.float())
    close(own(*inputs, frames, valid)[valid], expected[valid])


def test_angles_are_theirs(inputs: tuple[Tensor, Tensor]) -> None:
    theirs, own = make_loud(EsmFoldAngleResnet(THEIRS)).eval(), StructureModule(CONFIG, C).angles
    named = {"linear_in": own.now, "linear_initial": own.first, "linear_out": own.out}
    for name, part in named.items():
        part.load_state_dict(getattr(theirs, name).state_dict())
    for block, their in zip(own.blocks, theirs.layers, strict=True):
        block[1].load_state_dict(their.linear_1.state_dict())
        block[3].load_state_dict(their.linear_2.state_dict())
    first = torch.randn(B, R, M)
    unnormalised, _ = theirs(inputs[0], first)
    close(own(inputs[0], first), unnormalised)


def test_the_whole_is_theirs(inputs: tuple[Tensor, Tensor]) -> None:
    """All layers' frames."""
    theirs = make_loud(EsmFoldStructureModule(THEIRS), norm=1.0).eval()
    own = StructureModule(CONFIG, C).eval()
    copied(own.attention, theirs.ipa)
    (layer,) = theirs.transition.layers
    pairs: list[tuple[nn.Module, nn.Module]] = [
        (own.single_norm, theirs.layer_norm_s),
        (own.pair_norm, theirs.layer_norm_z),
        (own.first, theirs.linear_in),
        (own.attention_norm, theirs.layer_norm_ipa),
        (own.transition_norm, theirs.transition.layer_norm),
        (own.update, theirs.bb_update.linear),
        *((own.transition[2 * i], getattr(layer, f"linear_{i + 1}")) for i in range(3)),
    ]
    for part, their in pairs:
        part.load_state_dict(their.state_dict())
    made = theirs({"single": inputs[0], "pair": inputs[1]}, torch.zeros(B, R, dtype=torch.long))["frames"]
    for frames, expected in zip(own(*inputs).frames, made, strict=True):
        rigid = Rigid.from_tensor_7(expected)
        close(frames.origin, rigid.get_trans())
        close(frames.rotation, rigid.get_rots().get_rot_mats())
