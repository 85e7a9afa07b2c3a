"""From symbols to vectors: the published numbers of the positions, and the sum that enters a model."""

import math

import pytest
import torch
from torch import nn

from heedful.core.config import from_json, to_json
from heedful.core.embed import (
    Embed,
    EmbedConfig,
    PositionEmbeddings,
    Table,
    binary,
    positions_in_segments,
    sinusoidal,
    sinusoidal_2d,
)
from heedful.errors import InputError
from heedful.models.patches import GridPositionEmbeddings, Patches, PatchesConfig

B, T, C, V = 2, 5, 8, 11


def test_sinusoidal_value_by_value() -> None:
    """The picture of 50 places and 128 features that is often printed."""
    table = sinusoidal(torch.arange(50), 128)
    assert table.dtype == torch.float32
    for t in range(50):
        for i in range(64):
            angle = t / 10_000 ** (2 * i / 128)
            assert float(table[t, 2 * i]) == pytest.approx(math.sin(angle), abs=1e-6)
            assert float(table[t, 2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-6)


def test_sinusoidal_far_out_is_still_exact() -> None:
    """In single precision the angle of place 100,000 would be off by 0.004."""
    table = sinusoidal(torch.tensor([100_000]), 4)
    expected = [math.sin(1e5), math.cos(1e5), math.sin(1e3), math.cos(1e3)]
    assert table[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_sinusoidal_products_depend_on_distance_alone() -> None:
    table = sinusoidal(torch.arange(50), 128)
    products = table @ table.T
    for distance in range(50):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(products.diagonal(), torch.full((50,), 64.0))
    assert products[0, 1] < 64
    assert products[0, 25] < products[0, 5] < products[0, 1]


def test_sines_first_are_the_same_numbers_in_another_order() -> None:
    at = torch.randint(0, 99, (B, T))
    turns, first = sinusoidal(at, C), sinusoidal(at, C, sines_first=True)
    assert torch.equal(first, torch.cat([turns[..., 0::2], turns[..., 1::2]], -1))


@pytest.mark.parametrize("sines_first", [False, True])
def test_sinusoidal_of_odd_width(sines_first: bool) -> None:
    table = sinusoidal(torch.arange(3), 5, sines_first=sines_first)
    order = [0, 2, 4, 1, 3] if sines_first else range(5)
    waves = [math.sin if i % 2 == 0 else math.cos for i in range(5)]
    expected = [[waves[i](t / 10_000 ** (i // 2 * 2 / 5)) for i in order] for t in range(3)]
    torch.testing.assert_close(table, torch.tensor(expected))


def test_binary_places_are_their_bits() -> None:
    assert binary(torch.tensor([0, 1, 6, 13]), 5).tolist() == [
        [0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0],
        [1, 0, 1, 1, 0],
    ]
    wide = binary(torch.arange(9)[None], 128)
    assert wide.shape == (1, 9, 128)
    assert [int(sum(2**i * float(bit) for i, bit in enumerate(row[:8]))) for row in wide[0]] == list(range(9))
    assert (wide[..., 62:] == 0).all()


@pytest.mark.parametrize("kind", ["none", "sinusoidal", "learned", "binary"])
def test_places_are_looked_up_wherever_they_stand(kind: str) -> None:
    """Rows of any order: the vector depends on the place alone, not on its neighbours."""
    places = PositionEmbeddings(C, EmbedConfig(vocab_size=V, position_embeddings=kind, context_length=20))
    table = places(torch.arange(20)[None])[0]
    at = torch.tensor([[3, 0, 19, 3, 7], [0, 1, 0, 1, 2]])
    assert torch.equal(places(at), table[at])
    rows = {tuple(row.tolist()) for row in table}
    assert len(rows) == (1 if kind == "none" else 20)
    assert (kind == "none") == bool((table == 0).all())


def test_sines_first_reach_the_embeddings() -> None:
    at = torch.arange(T)[None]
    embeddings = PositionEmbeddings(C, EmbedConfig(vocab_size=V, sines_first=True))
    assert torch.equal(embeddings(at), sinusoidal(at, C, sines_first=True))


def test_a_learned_table_ends() -> None:
    places = PositionEmbeddings(C, EmbedConfig(vocab_size=V, position_embeddings="learned", context_length=4))
    assert places(torch.tensor([[3]])).shape == (1, 1, C)
    with pytest.raises(InputError, match="5 tokens, but the model has 4 positions"):
        places(torch.tensor([[0, 4]]))


@pytest.mark.parametrize("scaled", [True, False])
def test_an_embedding_is_token_times_root_d_plus_place(scaled: bool) -> None:
    embed = Embed(C, EmbedConfig(vocab_size=V, scaled=scaled))
    tokens, at = torch.randint(0, V, (B, T)), torch.randint(0, 30, (B, T))
    expected = embed.tokens.weight[tokens] * (math.sqrt(8) if scaled else 1) + sinusoidal(at, C)
    torch.testing.assert_close(embed(tokens, at), expected)


def test_rows_may_share_their_places() -> None:
    embed, tokens = Embed(C, EmbedConfig(vocab_size=V)), torch.randint(0, V, (B, T))
    assert torch.equal(embed(tokens, torch.arange(T)[None]), embed(tokens, torch.arange(T).expand(B, T)))


def test_a_matrix_can_be_given() -> None:
    tokens = nn.Embedding(V, C)
    assert Embed(C, EmbedConfig(vocab_size=V), tokens).tokens is tokens


def test_the_sum_is_dropped_in_training_only() -> None:
    embed = Embed(C, EmbedConfig(vocab_size=V, dropout=0.5))
    tokens, at = torch.randint(0, V, (B, T)), torch.arange(T)[None]
    whole = embed.eval()(tokens, at)
    dropped = embed.train()(tokens, at)
    zero = dropped == 0
    assert 0.2 < zero.float().mean() < 0.8
    torch.testing.assert_close(dropped[~zero], 2 * whole[~zero])


def test_types_join_the_sum_and_a_norm_stands_over_it() -> None:
    tokens, at, types = torch.randint(0, V, (B, T)), torch.arange(T)[None], torch.randint(0, 3, (B, T))
    embed = Embed(C, EmbedConfig(vocab_size=V, types=3, norm_eps=1e-3, dropout=0.5)).eval()
    plain = Embed(C, EmbedConfig(vocab_size=V), embed.tokens)
    nn.init.normal_(embed.norm.weight)
    whole = plain(tokens, at) + embed.types.weight[types]
    torch.testing.assert_close(
        embed(tokens, at, types), nn.functional.layer_norm(whole, (C,), embed.norm.weight, eps=1e-3)
    )
    assert torch.equal(embed(tokens, at), embed(tokens, at, torch.zeros_like(types)))
    dropped = embed.train()(tokens, at, types)
    assert 0.2 < (dropped == 0).float().mean() < 0.8, "dropout comes last"
    with pytest.raises(InputError, match="without any"):
        plain(tokens, at, types)


def test_places_in_a_row_of_several_sentences() -> None:
    segments = torch.tensor([[1, 1, 1, 2, 2, 3, 0, 0], [1, 2, 2, 2, 2, 2, 3, 3]])
    assert positions_in_segments(segments).tolist() == [[0, 1, 2, 0, 1, 0, 0, 0], [0, 0, 1, 2, 3, 4, 0, 1]]
    assert positions_in_segments(torch.ones(1, 4, dtype=torch.long)).tolist() == [[0, 1, 2, 3]]


def test_places_in_a_sentence_of_several_pieces() -> None:
    segments = torch.tensor([[1, 1, 2, 0, 0, 1, 2, 2, 1, 0], [2, 1, 2, 1, 2, 1, 0, 3, 0, 3]])
    assert positions_in_segments(segments).tolist() == [[0, 1, 0, 0, 0, 2, 1, 2, 3, 0], [0, 0, 1, 1, 2, 2, 0, 0, 0, 1]]


def test_a_bf16_table_sums_its_gradient_in_float32() -> None:
    numbers, grad = torch.randint(0, 3, (40, 100)), torch.randn(40, 100, 8) + 0.5
    tables = [Table(5, 8), Table(5, 8).bfloat16()]
    for table in tables:
        (table(numbers) * grad).sum().backward()
    exact, rounded = (table.weight.grad.float() for table in tables)
    torch.testing.assert_close(rounded, exact, rtol=2**-7, atol=2**-7 * float(exact.abs().max()))
    assert not exact[3:].any()
    assert not rounded[3:].any()


def test_a_patch_is_a_linear_map_of_its_pixels() -> None:
    patches = Patches(C, PatchesConfig(size=(6, 9), patch=3, channels=2))
    pixels = torch.randn(B, 2, 7, 11)  # a row and two columns are over
    x, grid = patches(pixels)
    assert grid == (2, 3)
    weight = patches.map.weight.flatten(1)  # (C, 2 * 3 * 3)
    for i in range(2):
        for j in range(3):
            square = pixels[:, :, 3 * i : 3 * i + 3, 3 * j : 3 * j + 3].flatten(1)
            torch.testing.assert_close(x[:, 3 * i + j], square @ weight.T + patches.map.bias)


@pytest.mark.parametrize(("patch", "stem"), [(4, (6,)), (4, (4, 6)), (4, (4, 6, 8)), (3, (5,)), (6, (4, 6))])
def test_convolutions_before_patches_keep_the_grid(patch: int, stem: tuple[int, ...]) -> None:
    patches = Patches(C, PatchesConfig(size=(12, 24), patch=patch, channels=2, stem=stem))
    x, grid = patches(torch.randn(B, 2, 13, 25))
    assert grid == (12 // patch, 24 // patch)
    assert x.shape == (B, grid[0] * grid[1], C)
    pixels = torch.randn(1, 2, 12, 24, requires_grad=True)
    patches(pixels)[0].square().sum().backward()
    assert pixels.grad is not None
    assert (pixels.grad.abs().sum((0, 1)) > 0).float().mean() > 0.9


def test_a_picture_without_a_patch_is_refused() -> None:
    patches = Patches(C, PatchesConfig(size=(8, 8), patch=4))
    with pytest.raises(InputError, match="a picture of 9 x 3 pixels has no patch of 4"):
        patches(torch.zeros(1, 3, 9, 3))
    for size in ((8, 3), (0, 8), (8,)):
        with pytest.raises(InputError, match="in patches of 4"):
            PatchesConfig(size=size, patch=4)


def test_patches_as_json() -> None:
    config = PatchesConfig(size=(8, 12), patch=4)
    assert from_json(PatchesConfig, {"size": [8, 12], "patch": 4}) == config
    assert from_json(PatchesConfig, to_json(config)) == config


def test_rows_and_columns_each_have_half_of_the_features() -> None:
    rows, columns = torch.meshgrid(torch.arange(3.0), torch.arange(5.0), indexing="ij")
    both = sinusoidal_2d(rows, columns, C)
    for i in range(3):
        for j in range(5):
            expected = torch.cat([sinusoidal(torch.tensor([i]), C // 2)[0], sinusoidal(torch.tensor([j]), C // 2)[0]])
            torch.testing.assert_close(both[i, j], expected)
    with pytest.raises(InputError, match="d_model 7 cannot be halved"):
        sinusoidal_2d(rows, columns, 7)


@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
@pytest.mark.parametrize("first", [0, 2])
def test_places_of_a_grid(kind: str, first: int) -> None:
    """The grid that they were made for has them as they are, another those between; what stands before has its own."""
    places = GridPositionEmbeddings(C, PatchesConfig(size=(8, 12), patch=4, position_embeddings=kind), first=first)
    own = places(torch.zeros(B, first + 6, C), (2, 3))
    assert torch.equal(own[0], own[1])
    if kind == "learned":
        assert torch.equal(own[0], places.table.weight)
    else:
        rows, columns = torch.meshgrid(torch.arange(2.0), torch.arange(3.0), indexing="ij")
        torch.testing.assert_close(own[0, first:], sinusoidal_2d(rows.flatten(), columns.flatten(), C))
        assert (own[:, :first] == 0).all()
    larger = places(torch.zeros(B, first + 15, C), (3, 5))
    assert torch.equal(larger[:, :first], own[:, :first])
    # The middle patch of three rows lies between the two, and the middle column of five is that of three.
    middle, between = larger[0, first + 7], (own[0, first + 1] + own[0, first + 4]) / 2
    if kind == "learned":
        torch.testing.assert_close(middle, between)
    else:
        torch.testing.assert_close(middle, sinusoidal_2d(torch.tensor([0.5]), torch.tensor([1.0]), C)[0])


def test_places_in_double_precision_stay_there() -> None:
    assert sinusoidal(torch.tensor([0.3], dtype=torch.float64), C).dtype == torch.float64
    assert sinusoidal(torch.tensor([0.3]), C).dtype == torch.float32
