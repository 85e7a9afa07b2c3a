"""A language model that translates: its logits are those of the language model on source and target as one sequence,
whatever stands beside or between them, and what it learns from is both."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.config import from_json, to_json
from heedful.core.embed import EmbedConfig
from heedful.core.position import PositionConfig
from heedful.data.batches import bucket_rows, pack_rows
from heedful.errors import InputError
from heedful.models import config_of, make_model, model_from
from heedful.models.decoder_only import DecoderOnlyTranslator, DecoderOnlyTranslatorConfig
from heedful.models.lm import LM, LMConfig
from heedful.models.presets import TRANSLATORS, decoder_only_config
from heedful.tasks.translate.training.losses import cross_entropy, training_loss, whole_cross_entropy
from loud import make_loud
from nearly import close
from rows import V, packed, padded, sentences

B, S, T, C = 3, 6, 5, 16
PREFIX = {"input_loss": 0.0, "prefix": True}
STYLES = [("post", "sinusoidal", "none"), ("pre", "learned", "none"), ("sandwich", "none", "rotary")]


def config(
    order: str = "post", places: str = "sinusoidal", position: str = "none", **more: object
) -> DecoderOnlyTranslatorConfig:
    attention = AttentionConfig(n_heads=4, kv_heads=2, position=PositionConfig(kind=position, furthest=20))
    block = BlockConfig(attention=attention, d_ff=24, order=order)
    embed = EmbedConfig(vocab_size=V, position_embeddings=places, context_length=11)
    return DecoderOnlyTranslatorConfig(
        lm=LMConfig(d_model=C, embed=embed, stack=StackConfig(n_layers=2, block=block, final_norm=order != "post")),
        **more,
    )


def loud(
    order: str = "post", places: str = "sinusoidal", position: str = "none", **more: object
) -> DecoderOnlyTranslator:
    model = DecoderOnlyTranslator(config(order, places, position, **more)).eval()
    return make_loud(model)


@pytest.mark.parametrize("style", STYLES)
def test_it_is_the_language_model_on_both_as_one_sequence(style: tuple[str, str, str]) -> None:
    model, source, target = loud(*style), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    plain = LM(model.config.lm).eval()
    plain.load_state_dict(model.lm.state_dict())
    whole = plain(torch.cat([source, target], dim=1))
    assert torch.equal(model(source, target), whole[:, S:])
    assert torch.equal(model.head(model.whole(source, target)), whole)


@pytest.mark.parametrize("more", [{}, PREFIX])
@pytest.mark.parametrize("style", STYLES)
def test_a_batch_is_one_by_one(style: tuple[str, str, str], more: dict[str, object]) -> None:
    """Pairs padded into one batch, packed into one row, or alone: the same states of source and target."""
    model, lengths = loud(*style, **more), ([2, 6, 3], [3, 1, 4])
    sources, targets = sentences(*lengths[0]), sentences(*lengths[1])
    alone = [model.whole(x[None], y[None])[0] for x, y in zip(sources, targets, strict=True)]
    for wider in (0, 3):
        (source, x_segments), (target, y_segments) = padded(sources, 6 + wider), padded(targets, 4 + wider)
        batch = model.whole(source, target, x_segments, y_segments)
        for row, (states, n, m) in enumerate(zip(alone, *lengths, strict=True)):
            close(torch.cat([batch[row, :n], batch[row, 6 + wider :][:m]]), states)
        (source, x_segments), (target, y_segments) = packed(sources, 11 + wider), packed(targets, 8 + wider)
        row = model.whole(source, target, x_segments, y_segments)[0]
        close(row[:11], torch.cat([states[:n] for states, n in zip(alone, lengths[0], strict=True)]))
        close(row[11 + wider :][:8], torch.cat([states[n:] for states, n in zip(alone, lengths[0], strict=True)]))


@pytest.mark.parametrize("more", [{}, PREFIX])
@pytest.mark.parametrize("style", STYLES)
def test_step_by_step_is_all_at_once(style: tuple[str, str, str], more: dict[str, object]) -> None:
    model = loud(*style, **more)
    source, segments = padded(sentences(6, 4, 1), S)
    target = torch.randint(4, V, (B, T))
    with torch.no_grad():
        for given, ones in ((segments, torch.ones_like(target)), (None, None)):
            full = model(source, target, given, ones)
            for size in (None, S + T):
                state = model.start(source, given, size)
                for t in range(T):
                    logits, state = model.step(target[:, t], state)
                    close(logits, full[:, t])


@pytest.mark.parametrize("size", [None, S + T])
@pytest.mark.parametrize(
    ("lengths", "rows"), [((6, 4, 2), (2, 0, 0, 1)), ((6, 4, 2), (1,)), ((6,), (0, 0)), ((4,), (0,))]
)
def test_pick_commutes_with_step(size: int | None, lengths: tuple[int, ...], rows: tuple[int, ...]) -> None:
    model, chosen = loud(), torch.tensor(rows)
    source, segments = padded(sentences(*lengths), S)
    with torch.no_grad():
        for before in (0, 1):
            state = model.start(source, segments, size)
            for _ in range(before):
                _, state = model.step(torch.randint(4, V, (len(lengths),)), state)
            picked = state.pick(torch.tensor([*rows, *rows])).pick(torch.arange(len(rows)))
            for _ in range(3):
                tokens = torch.randint(4, V, (len(lengths),))
                logits, state = model.step(tokens, state)
                those, picked = model.step(tokens[chosen], picked)
                close(those, logits[chosen])


@pytest.mark.parametrize("more", [{}, PREFIX])
def test_nothing_comes_from_the_future(more: dict[str, object]) -> None:
    """A later token changes nothing before it, bit for bit; but a source that is a prefix sees all of itself."""
    model, source, target = loud(**more), torch.randint(4, V, (1, S)), torch.randint(4, V, (1, T))
    embedded = []
    model.lm.embed.register_forward_hook(lambda module, inputs, out: embedded.append(out))
    states = model.whole(source, target)
    for t in range(S + T):
        (gradient,) = torch.autograd.grad(states[0, t, 3], embedded, retain_graph=True)
        seen = max(t + 1, S) if more else t + 1
        assert (gradient[0, seen:] == 0).all()
        assert (gradient[0, :seen] != 0).any(-1).all()


def test_segments_come_for_both_sides() -> None:
    model, source, target = loud(), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    with pytest.raises(InputError, match="one side alone"):
        model(source, target, torch.ones_like(source))


def test_more_places_than_it_has() -> None:
    model = loud(places="learned")
    assert model(torch.full((1, 6), 5), torch.full((1, 5), 5)).shape == (1, 5, V)
    with pytest.raises(InputError, match="12 tokens, but the model has 11 positions"):
        model(torch.full((1, 6), 5), torch.full((1, 6), 5))


def by_hand(model: DecoderOnlyTranslator, pairs: list[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor]:
    """The summed cross-entropies of the sources and of the targets, a pair at a time, each a plain sequence."""
    of_source, of_target = torch.zeros(()), torch.zeros(())
    for source, target in pairs:
        tokens = torch.tensor([*source, 3, 2, *target, 3])  # the end is 3 and the begin 2
        logits = model.lm(tokens[None, :-1])[0]
        each = F.cross_entropy(logits, tokens[1:], reduction="none")
        of_source, of_target = of_source + each[: len(source)].sum(), of_target + each[len(source) + 1 :].sum()
    return of_source, of_target


@pytest.mark.parametrize("packs", [True, False])
def test_it_learns_from_the_source_and_counts_the_target(packs: bool) -> None:
    """The value is the target's loss; the gradient is that of the target and of so much of the source."""
    model = loud(input_loss=0.7)
    pairs = [(x.tolist(), y.tolist()) for x, y in zip(sentences(5, 2, 4), sentences(1, 6, 3), strict=True)]
    order = range(len(pairs))
    (batch,) = pack_rows(pairs, order, row=16, rows=2) if packs else bucket_rows(pairs, order, tokens=64)
    of_source, of_target = by_hand(model, pairs)
    weights = list(model.parameters())
    loss = whole_cross_entropy(model, batch)
    plain = cross_entropy(model, batch)
    assert loss.count == plain.count == 13
    close(loss.total, of_target)
    assert torch.equal(loss.total, plain.total)
    for total, expected in ((loss.total, of_target + 0.7 * of_source), (plain.total, of_target)):
        for ours, theirs in zip(
            torch.autograd.grad(total, weights),
            torch.autograd.grad(expected, weights, retain_graph=True),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * max(1.0, float(theirs.abs().max())))


def test_weights_begin_as_the_transformers() -> None:
    """A tied matrix begins as an embedding, a map as Glorot's."""
    small = config()
    model = DecoderOnlyTranslator(
        dataclasses.replace(
            small, lm=dataclasses.replace(small.lm, d_model=64, embed=EmbedConfig(vocab_size=600), tied=True)
        )
    )
    assert model.head.weight is model.lm.embed.tokens.weight
    assert float(model.head.weight.detach().std()) == pytest.approx(64**-0.5, rel=0.05)
    up = model.lm.stack.blocks[0].mlp.up.weight.detach()
    assert float(up.abs().max()) == pytest.approx((6 / (64 + 24)) ** 0.5, rel=0.05)


def test_its_configuration_there_and_back() -> None:
    model = make_model(config(**PREFIX))
    assert config_of(model)["kind"] == "decoder_only_translator"
    assert model_from(config_of(model)).config == model.config
    assert from_json(DecoderOnlyTranslatorConfig, to_json(model.config)) == model.config


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"prefix": True}, "prefix: a source that sees all of itself has nothing left to predict"),
        ({"input_loss": -1.0}, "input_loss is -1.0"),
        ({"input_loss": float("nan")}, "input_loss is nan"),
        ({"input_loss": float("inf")}, "input_loss is inf"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        config(**more)


def near() -> DecoderOnlyTranslator:
    """Of local layers and compressed ones."""
    row = dataclasses.replace(
        TRANSLATORS["t-dmca-tiny"], d_model=C, n_heads=4, d_ff=24, block=4, experts=3, dropout=0.0
    )
    return make_loud(DecoderOnlyTranslator(decoder_only_config(row, vocab_size=V)))


def test_what_is_near_in_a_text_may_be_far_in_a_row() -> None:
    """Sources and targets of several pairs in a row, with padding between: each pair as if it were alone."""
    model, sources, targets = near().eval(), sentences(6, 4, 9), sentences(3, 8, 5)
    (source, x_segments), (target, y_segments) = packed(sources, 22), packed(targets, 18)
    found = model(source, target, x_segments, y_segments)
    for number, (x, y) in enumerate(zip(sources, targets, strict=True), 1):
        close(found[:, y_segments[0] == number], model(x[None], y[None]))


def test_the_balance_of_experts_is_learnt_and_not_reported() -> None:
    pairs = [(x.tolist(), y.tolist()) for x, y in zip(sentences(5, 2, 4), sentences(1, 6, 3), strict=True)]
    model, (rows,) = near().train(), pack_rows(pairs, range(3), row=16, rows=2)
    loss = training_loss(model, rows, smoothing=0.0)
    assert float(loss.extra) > 0
    torch.testing.assert_close(loss.total - loss.extra, training_loss(model.eval(), rows, smoothing=0.0).total)


def test_a_prefix_of_compressed_keys_is_refused() -> None:
    row = dataclasses.replace(TRANSLATORS["t-dmca-tiny"], input_loss=0.0, prefix=True)
    with pytest.raises(InputError, match="a source that sees all of itself, through compressed keys"):
        decoder_only_config(row, vocab_size=V)
