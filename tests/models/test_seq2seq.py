"""The Transformer as a whole: step by step is all at once, and neither padding, nor company in the batch or in the
row, changes what a sentence gives."""

import dataclasses

import pytest
import torch

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import EmbedConfig
from heedful.core.mask import Mask
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from loud import make_loud
from nearly import close
from rows import V, packed, padded, sentences

B, S, T, C = 3, 6, 5, 16
BOS = 2


def config(order: str = "post", places: str = "sinusoidal", **more: object) -> Seq2SeqConfig:
    attention = AttentionConfig(n_heads=4, kv_heads=2)
    block = BlockConfig(attention=attention, d_ff=24, order=order)
    embed = EmbedConfig(vocab_size=V, position_embeddings=places, context_length=12)
    return Seq2SeqConfig(
        d_model=C,
        source=embed,
        target=embed,
        encoder=StackConfig(n_layers=2, block=block, final_norm=order != "post"),
        decoder=StackConfig(n_layers=2, block=dataclasses.replace(block, cross=attention), final_norm=order != "post"),
        **more,
    )


def loud(order: str = "post", places: str = "sinusoidal", **more: object) -> Seq2Seq:
    model = Seq2Seq(config(order, places, **more)).eval()
    return make_loud(model)


STYLES = [("post", "sinusoidal"), ("pre", "learned"), ("sandwich", "binary")]


@pytest.mark.parametrize(("order", "places"), STYLES)
def test_step_by_step_is_all_at_once(order: str, places: str) -> None:
    model = loud(order, places, output_bias=True)
    source, source_segments = padded(sentences(6, 4, 1), S)
    target = torch.randint(4, V, (B, T))
    ones = torch.ones_like(target)
    with torch.no_grad():
        full = model(source, target, source_segments, ones)
        for size in (None, T):
            state = model.start(source, source_segments, size)
            for t in range(T):
                logits, state = model.step(target[:, t], state)
                close(logits, full[:, t])
        state = model.start(source)
        for t in range(T):
            logits, state = model.step(target[:, t], state)
        close(logits, model(source, target)[:, -1])


@pytest.mark.parametrize(("order", "places"), STYLES)
def test_a_batch_is_one_by_one(order: str, places: str) -> None:
    """Sentences padded into one batch, packed into one row, or alone: the same logits."""
    model = loud(order, places)
    sources, targets = sentences(2, 6, 3), sentences(3, 1, 4)
    alone = [model(x[None], y[None])[0] for x, y in zip(sources, targets, strict=True)]
    for places_more in (0, 3):
        (source, x_segments), (target, y_segments) = padded(sources, 6 + places_more), padded(targets, 4 + places_more)
        batch = model(source, target, x_segments, y_segments)
        for row, logits in enumerate(alone):
            close(batch[row, : len(logits)], logits)
        (source, x_segments), (target, y_segments) = packed(sources, 11 + places_more), packed(targets, 8 + places_more)
        row = model(source, target, x_segments, y_segments)[0]
        close(row[:8], torch.cat(alone))


def test_padding_may_be_longer_than_there_are_places() -> None:
    model, source, target = loud("pre", "learned"), sentences(12), sentences(12)
    (x, x_segments), (y, y_segments) = packed(source, 30), packed(target, 40)
    close(model(x, y, x_segments, y_segments)[0, :12], model(source[0][None], target[0][None])[0])
    with pytest.raises(InputError, match="13 tokens, but the model has 12 positions"):
        model.encode(sentences(13)[0][None])


def test_segments_of_whole_rows_are_no_segments() -> None:
    model, source, target = loud(), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    close(model(source, target, torch.ones_like(source), torch.ones_like(target)), model(source, target))
    close(model.encode(source, torch.ones_like(source)), model.encode(source))


def test_segments_come_for_both_sides() -> None:
    model, source, target = loud(), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    with pytest.raises(InputError, match="one side alone"):
        model(source, target, torch.ones_like(source))


def test_gradients_of_a_packed_row_are_those_of_its_sentences() -> None:
    model, sources, targets = loud(), sentences(2, 4), sentences(3, 2)
    pull = torch.randn(5, V)
    alone = torch.cat([model(x[None], y[None])[0] for x, y in zip(sources, targets, strict=True)])
    (source, x_segments), (target, y_segments) = packed(sources, 8), packed(targets, 7)
    row = model(source, target, x_segments, y_segments)[0, :5]
    expected = torch.autograd.grad((alone * pull).sum(), list(model.parameters()))
    found = torch.autograd.grad((row * pull).sum(), list(model.parameters()))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * max(1.0, float(theirs.abs().max())))


def test_nothing_comes_from_the_future() -> None:
    """A later target token changes nothing before it, bit for bit; the token itself and every source token do."""
    model, source, target = loud(), torch.randint(4, V, (1, S)), torch.randint(4, V, (1, T))
    embedded = []
    model.target.tokens.register_forward_hook(lambda module, inputs, out: embedded.append(out))
    logits = model(source, target)
    of_source, of_target = embedded  # one matrix for both
    for t in range(T):
        by_source, by_target = torch.autograd.grad(logits[0, t, 5], (of_source, of_target), retain_graph=True)
        assert (by_target[0, t + 1 :] == 0).all()
        assert (by_target[0, : t + 1] != 0).any(-1).all()
        assert (by_source[0] != 0).any(-1).all()


@pytest.mark.parametrize("size", [None, 9])
def test_pick_commutes_with_step(size: int | None) -> None:
    model = loud()
    source, segments = padded(sentences(6, 4, 2), S)
    for given in (segments, None):
        with torch.no_grad():
            for chosen in ([2, 0, 0, 1], [1], [0, 1, 2]):
                rows = torch.tensor(chosen)
                state = model.start(source, given, size)
                _, state = model.step(torch.full((B,), BOS), state)
                picked = state.pick(rows)
                for _ in range(3):
                    tokens = torch.randint(4, V, (B,))
                    logits, state = model.step(tokens, state)
                    those, picked = model.step(tokens[rows], picked)
                    close(those, logits[rows])


@pytest.mark.parametrize("places", ["sinusoidal", "learned"])
def test_the_rows_of_a_beam_share_a_memory(places: str) -> None:
    """They say what they say each with a memory of its own, and it is copied for none of them."""
    torch.manual_seed(0)
    model = loud(places=places).requires_grad_(False)
    source, segments = torch.randint(3, V, (B, S)), torch.tensor([[1] * S, [1] * 4 + [0] * 2, [1] * 2 + [0] * 4])
    state = model.start(source, segments)
    alone, rows = state, torch.arange(B)  # of `source`
    picks = [[0, 0, 1, 1, 2, 2], [1, 0, 3, 3, 4, 5], [0, 1, 4, 5], [1, 1, 1, 2, 2, 3], [5, 0, 3]]
    sizes = [(2, 3), (2, 3), (2, 2), (3, 2), (1, 3)]
    for pick, (shared, memories) in zip(picks, sizes, strict=True):
        tokens = torch.randint(3, V, (len(rows),))
        logits, state = model.step(tokens, state)
        expected, alone = model.step(tokens, alone)
        close(logits, expected)
        before, picked = state.caches[0].memory.key, torch.tensor(pick)
        rows, state = rows[picked], state.pick(picked)
        assert (state.shared, len(state.caches[0].memory.key)) == (shared, memories)
        assert (state.caches[0].memory.key is before) == (len(before) == memories)
        alone = dataclasses.replace(
            alone,
            caches=tuple(
                dataclasses.replace(cache, past=cache.past.pick(picked), memory=own.memory.pick(rows))
                for cache, own in zip(alone.caches, model.start(source, segments).caches, strict=True)
            ),
            memory_mask=Mask(valid=segments[rows] > 0),
        )


def test_the_memory_is_encoded_once() -> None:
    model, calls = loud(), []
    model.encoder.register_forward_hook(lambda module, inputs, out: calls.append(1))
    for block in model.decoder.blocks:
        block.cross_attention.key.register_forward_hook(lambda module, inputs, out: calls.append(2))
    state = model.start(torch.randint(4, V, (B, S)))
    for _ in range(3):
        _, state = model.step(torch.full((B,), BOS), state)
    assert calls == [1, 2, 2]


def test_logits_are_the_head_of_the_hidden_states() -> None:
    model, source, target = loud(output_bias=True), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    assert torch.equal(model(source, target), model.head(model.hidden(source, target)))
    assert model.head.bias is not None


def test_it_is_made_of_its_parts() -> None:
    """The names and the order of figure 1."""
    model, source, target = loud("pre"), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    names = dict(model.named_modules())
    for name in ("encoder.blocks.0.self_attention.heads", "decoder.blocks.1.cross_attention.heads", "decoder.norm"):
        assert name in names
    assert "encoder.blocks.0.cross_attention.heads" not in names
    ran: list[str] = []
    for name in ("source", "encoder", "target", "decoder", "head"):
        names[name].register_forward_hook(lambda module, inputs, out, name=name: ran.append(name))
    model(source, target)
    assert ran == ["source", "encoder", "target", "decoder", "head"]


def test_what_goes_into_the_head_can_be_scaled() -> None:
    """In training and in decoding alike."""
    model, source, target = loud(scaled_output=True), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    plain = Seq2Seq(config()).eval()
    plain.load_state_dict(model.state_dict())
    close(model.hidden(source, target), plain.hidden(source, target) / C**0.5)
    logits, _ = model.step(target[:, 0], model.start(source))
    close(logits, plain.step(target[:, 0], plain.start(source))[0] / C**0.5)


@pytest.mark.parametrize(
    ("init", "map_", "table"), [("xavier", 2 / 32, 1 / 16), ("normal", 4e-4, 4e-4), ("t5", 1 / 16, 1)]
)
def test_how_weights_begin(init: str, map_: float, table: float) -> None:
    """The variances of a square map and of the embeddings."""
    wide = dataclasses.replace(
        config(init=init), source=EmbedConfig(vocab_size=900), target=EmbedConfig(vocab_size=900)
    )
    model = Seq2Seq(wide)
    assert float(model.source.tokens.weight.detach().var()) == pytest.approx(table, rel=0.1)
    maps = torch.cat(
        [block.self_attention.out.weight.detach() for block in (*model.encoder.blocks, *model.decoder.blocks)]
    )
    assert float(maps.var()) == pytest.approx(map_, rel=0.2)


@pytest.mark.parametrize(("tied", "matrices"), [("all", 1), ("output", 2), ("inputs", 2), ("none", 3)])
def test_which_matrices_are_one(tied: str, matrices: int) -> None:
    """And a matrix that is tied begins as an embedding, not as a linear map."""
    words = 600
    embed = EmbedConfig(vocab_size=words)
    model = Seq2Seq(dataclasses.replace(config(tied=tied), source=embed, target=embed))
    weights = [model.source.tokens.weight, model.target.tokens.weight, model.head.weight]
    assert len({id(weight) for weight in weights}) == matrices
    assert (model.head.weight is model.target.tokens.weight) == (tied in ("all", "output"))
    assert (model.source.tokens.weight is model.target.tokens.weight) == (tied in ("all", "inputs"))
    embedded, mapped = C**-0.5, (2 / (C + words)) ** 0.5
    own_head = tied in ("inputs", "none")
    for weight, std in zip(weights, (embedded, embedded, mapped if own_head else embedded), strict=True):
        assert float(weight.detach().std()) == pytest.approx(std, rel=0.05)


def test_vocabularies_of_two_sizes() -> None:
    other = dataclasses.replace(config(), target=EmbedConfig(vocab_size=V + 1), tied="output")
    logits = Seq2Seq(other)(torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T)))
    assert logits.shape == (B, T, V + 1)
    for tied in ("all", "inputs"):
        with pytest.raises(InputError, match="23 and 24 tokens cannot share a matrix"):
            Seq2Seq(dataclasses.replace(other, tied=tied))


@pytest.mark.parametrize(
    ("kind", "shared"),
    [("rotary", False), ("alibi", False), ("alibi", True), ("buckets", False), ("buckets", True), ("shaw", False)],
)
def test_relative_positions_go_step_by_step_and_row_by_row(kind: str, shared: bool) -> None:
    """Whether each attention has its own, or all blocks share one."""
    position, none = PositionConfig(kind=kind, furthest=20), PositionConfig()
    attention = AttentionConfig(n_heads=4, position=none if shared else position)
    block = BlockConfig(attention=attention, d_ff=24)
    cross = dataclasses.replace(block, cross=AttentionConfig(n_heads=4))
    model = Seq2Seq(
        dataclasses.replace(
            config(places="none"),
            encoder=StackConfig(n_layers=2, block=block, shared_position=position if shared else none),
            decoder=StackConfig(n_layers=2, block=cross, shared_position=position if shared else none),
        )
    ).eval()
    make_loud(model)
    sources, targets = sentences(4, 3), sentences(5, 2)
    (source, source_segments), (target, target_segments) = packed(sources, 9), packed(targets, 8)
    together = model(source, target, source_segments, target_segments)[0]
    start = 0
    for one, other in zip(sources, targets, strict=True):
        alone = model(one[None], other[None])[0]
        torch.testing.assert_close(together[start : start + len(other)], alone, rtol=1e-4, atol=1e-4)
        state, steps = model.start(one[None]), []
        for token in other:
            logits, state = model.step(token[None], state)
            steps.append(logits[0])
        torch.testing.assert_close(torch.stack(steps), alone, rtol=1e-4, atol=1e-4)
        start += len(other)
