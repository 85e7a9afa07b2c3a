"""The Transformer against Hugging Face's Marian, with loud weights: N(0, 0.4) in every matrix and bias, N(1, 0.4) in
every norm. At the usual small weights a wrong mask or a wrong scale changes too little to be seen. See
`compared` for what is asked."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from compared import (
    Pair,
    Special,
    batch,
    both_logits,
    check_cached_steps,
    check_gradients,
    check_logits,
    check_there_and_back,
    check_tied_once,
    pair_of,
)
from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import EmbedConfig
from heedful.core.init import uninitialised
from heedful.errors import InputError
from heedful.exchange.hf.marian import FAMILY, RULES, TABLE, config_from_hf, rules
from heedful.exchange.hf.rules import Rule, to_ours, to_theirs
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from loud import make_loud
from nearly import close

PAD, BOS, EOS, V = 0, 2, 3, 37
TINY: dict[str, Any] = {
    "vocab_size": V,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 32,
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "decoder_start_token_id": BOS,
    "eos_token_id": EOS,
    "forced_eos_token_id": None,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "opus": {"activation_function": "swish", "scale_embedding": True},
    "plain": {"activation_function": "relu"},
    "output": {"activation_function": "gelu", "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 29},
    "untied": {
        "activation_function": "gelu_new",
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "scale_embedding": True,
    },
}
SPECIAL = Special(pad=PAD, start=BOS, end=EOS)


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    theirs = MarianMTModel(MarianConfig(**TINY | VARIANTS[request.param]))
    make_loud(theirs, norm=1.0)
    nn.init.normal_(theirs.final_logits_bias, std=0.4)
    config = config_from_hf(theirs.config.to_dict())
    return pair_of(theirs, config, rules(config), SPECIAL)


def test_encoder(pair: Pair) -> None:
    given = batch(pair)
    theirs = pair.theirs.model.encoder(given.source, attention_mask=given.source_valid.long()).last_hidden_state
    ours = pair.ours.encode(given.source, given.source_valid.long())
    close(ours[given.source_valid], theirs[given.source_valid])


def test_logits(pair: Pair) -> None:
    check_logits(pair)


def test_gradients_of_every_parameter(pair: Pair) -> None:
    check_gradients(pair)


def test_cached_steps(pair: Pair) -> None:
    check_cached_steps(pair)


def greedy(model: Seq2Seq, source: Tensor, segments: Tensor, most: int) -> list[list[int]]:
    tokens, state = torch.full((len(source),), BOS), model.start(source, segments)
    done, out = torch.zeros(len(source), dtype=torch.bool), [tokens]
    while len(out) < most and not done.all():
        logits, state = model.step(tokens, state)
        tokens = logits.argmax(-1).masked_fill(done, PAD)
        done = done | (tokens == EOS)
        out.append(tokens)
    return torch.stack(out, 1).tolist()


def test_greedy_decoding(pair: Pair) -> None:
    given = batch(pair)
    if pair.ours.head.bias is not None:  # so that some sentences end before others
        with torch.no_grad():
            pair.ours.head.bias[EOS] += 2
            pair.theirs.final_logits_bias[0, EOS] += 2
    with torch.no_grad():
        theirs = pair.theirs.generate(
            given.source, attention_mask=given.source_valid.long(), max_length=20, num_beams=1, do_sample=False
        )
        assert greedy(pair.ours, given.source, given.source_valid.long(), 20) == theirs.tolist()


def test_there_and_back_is_identity(pair: Pair) -> None:
    check_there_and_back(pair)


def test_what_we_export_runs_there() -> None:
    config = config_from_hf({"model_type": "marian"} | TINY | {"scale_embedding": True})
    ours = Seq2Seq(config).eval()
    make_loud(ours, norm=1.0)
    theirs = MarianMTModel(MarianConfig.from_dict(FAMILY.config_to_hf(config, pad=PAD, start=BOS, end=EOS))).eval()
    pair = Pair(theirs, ours, rules(config), SPECIAL)
    lacking = theirs.load_state_dict(to_theirs(pair.rules, pair.weights()), strict=False)
    assert not lacking.unexpected_keys
    assert all("embed_positions" in name for name in lacking.missing_keys)
    close(*both_logits(pair, batch(pair)))


def test_their_file_may_hold_tied_matrices_once(pair: Pair) -> None:
    check_tied_once(pair)


OPUS = {  # what the Hub's OPUS-MT models say
    "_name_or_path": "x",
    "_num_labels": 3,
    "activation_dropout": 0.0,
    "activation_function": "swish",
    "add_bias_logits": False,
    "add_final_layer_norm": False,
    "architectures": ["MarianMTModel"],
    "attention_dropout": 0.0,
    "bad_words_ids": [[58100]],
    "bos_token_id": 0,
    "classif_dropout": 0.0,
    "classifier_dropout": 0.0,
    "d_model": 512,
    "decoder_attention_heads": 8,
    "decoder_ffn_dim": 2048,
    "decoder_layerdrop": 0.0,
    "decoder_layers": 6,
    "decoder_start_token_id": 58100,
    "decoder_vocab_size": 58101,
    "dropout": 0.1,
    "encoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "encoder_layerdrop": 0.0,
    "encoder_layers": 6,
    "eos_token_id": 0,
    "extra_pos_embeddings": 58101,
    "force_bos_token_to_be_generated": False,
    "forced_eos_token_id": 0,
    "gradient_checkpointing": False,
    "id2label": {"0": "LABEL_0"},
    "init_std": 0.02,
    "is_encoder_decoder": True,
    "label2id": {"LABEL_0": 0},
    "max_length": 512,
    "max_position_embeddings": 512,
    "model_type": "marian",
    "normalize_before": False,
    "normalize_embedding": False,
    "num_beams": 4,
    "num_hidden_layers": 6,
    "pad_token_id": 58100,
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": True,
    "static_position_embeddings": True,
    "torch_dtype": "float16",
    "transformers_version": "4.22.0.dev0",
    "use_cache": True,
    "vocab_size": 58101,
}


def test_the_configuration_of_a_published_model() -> None:
    attention = AttentionConfig(n_heads=8)
    encoder = BlockConfig(attention=attention, d_ff=2048, activation="silu", dropout=0.1)
    decoder = BlockConfig(attention=attention, cross=attention, d_ff=2048, activation="silu", dropout=0.1)
    embed = EmbedConfig(vocab_size=58101, scaled=True, sines_first=True, dropout=0.1)
    config = Seq2SeqConfig(
        d_model=512,
        source=embed,
        target=embed,
        encoder=StackConfig(n_layers=6, block=encoder),
        decoder=StackConfig(n_layers=6, block=decoder),
        tied="all",
        output_bias=True,
    )
    assert config_from_hf(OPUS) == config
    with torch.device("meta"), uninitialised():
        model = Seq2Seq(config)
    attention, mlp, norm = 4 * (512 * 512 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    layers = 6 * (attention + mlp + 2 * norm) + 6 * (2 * attention + mlp + 3 * norm)
    assert sum(weight.numel() for weight in model.parameters()) == 58101 * 512 + layers + 58101


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_configurations_there_and_back(name: str) -> None:
    theirs = MarianConfig(**TINY | VARIANTS[name] | {"attention_dropout": 0.2, "dropout": 0.3})
    for saved in (theirs.to_dict(), theirs.to_diff_dict()):
        config = config_from_hf(saved)
        back = FAMILY.config_to_hf(config, pad=PAD, start=BOS, end=EOS)
        assert config_from_hf(back) == config
        assert {key: value for key, value in back.items() if key in TABLE.keys} | {"activation_function": ""} == {
            key: value for key, value in theirs.to_dict().items() if key in TABLE.keys
        } | {"activation_function": ""}


def test_what_they_leave_out_is_their_default() -> None:
    """Nothing that we read has another default there."""
    assert config_from_hf({"model_type": "marian"}) == config_from_hf(MarianConfig().to_dict())


@pytest.mark.parametrize("key", sorted(TABLE.keys))
def test_every_key_that_is_read_makes_a_difference(key: str) -> None:
    base = {"model_type": "marian"} | TINY | {"share_encoder_decoder_embeddings": False}
    other = {
        "activation_function": "relu",
        "attention_dropout": 0.5,
        "dropout": 0.5,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": False,
    }.get(key, 8)
    assert config_from_hf(base | {key: other}) != config_from_hf(base)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder_layer": 6}, "config.json: unknown key 'encoder_layer'"),
        ({"rope_theta": 1e4}, "config.json: unknown key 'rope_theta'"),
        ({"normalize_before": True}, "config.json: normalize_before is True: only False can be read"),
        ({"model_type": "bart"}, "config.json: model_type is 'bart': only 'marian' can be read"),
        ({"encoder_layerdrop": 0.1}, "config.json: encoder_layerdrop is 0.1: only 0.0 can be read"),
        ({"activation_function": "tanh"}, "config.json: activation_function 'tanh' is not one of relu, gelu"),
        ({"tie_word_embeddings": False}, "config.json: tie_word_embeddings is False where the sides share"),
        ({"decoder_vocab_size": 9}, "config.json: vocabularies of 58101 and 9 share one matrix"),
        ({"d_model": "512"}, "config.json.d_model: expected int, found '512'"),
    ],
)
def test_what_we_cannot_build_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        config_from_hf(OPUS | change)
    assert str(caught.value).startswith(message)


def test_a_file_of_no_kind_is_refused() -> None:
    with pytest.raises(InputError, match="missing model_type"):
        config_from_hf({"d_model": 512})


def test_what_marian_has_no_words_for_is_refused() -> None:
    config = translator_config(TRANSLATORS["transformer-base-pre"], source_vocab=9, target_vocab=9, joint=True)
    with pytest.raises(InputError) as caught:
        FAMILY.config_to_hf(config, pad=PAD, start=BOS, end=EOS)
    for words in (
        "model.encoder.block.order = 'pre'",
        "model.source.sines_first = False",
        "model.output_bias = False",
    ):
        assert words in str(caught.value)


THEIRS = {"a.0.w": torch.randn(2, 3), "a.1.w": torch.randn(2, 3), "b": torch.randn(1, 4), "made": torch.randn(2)}
OURS = {"x.0": torch.zeros(3, 2), "x.1": torch.zeros(3, 2), "y": torch.zeros(4)}
NAMES = (Rule("a.{i}.w", "x.{i}", "transpose"), Rule("b", "y", "row"), Rule("made", None))


def test_rules_turn_both_ways() -> None:
    ours = to_ours(NAMES, THEIRS, OURS)
    assert {name: value.shape for name, value in ours.items()} == {name: value.shape for name, value in OURS.items()}
    assert torch.equal(ours["x.1"], THEIRS["a.1.w"].T)
    assert torch.equal(ours["y"], THEIRS["b"][0])
    theirs = to_theirs(NAMES, ours)
    assert theirs.keys() == THEIRS.keys() - {"made"}
    assert all(torch.equal(value, THEIRS[name]) for name, value in theirs.items())


def test_a_dot_is_a_dot_and_a_layer_is_a_number() -> None:
    for name in ("aX0.w", "a.x.w", "a.0.w.more", "a..w"):
        with pytest.raises(InputError, match=f"f: no rule for their tensor '{name}'"):
            to_ours(NAMES, THEIRS | {name: torch.zeros(1)}, OURS, where="f")


@pytest.mark.parametrize(
    ("theirs", "ours", "message"),
    [
        (THEIRS | {"c": torch.zeros(1)}, OURS, "no rule for their tensor 'c', which is of a part that is not read"),
        ({name: THEIRS[name] for name in ("a.0.w", "b")}, OURS, "nothing of theirs for our tensor 'x.1' (1 in all)"),
        (
            THEIRS,
            {"x.0": OURS["x.0"], "y": OURS["y"]},
            "their tensor 'a.1.w' would be our 'x.1', which the model has not",
        ),
        (THEIRS | {"a.0.w": torch.zeros(2, 4)}, OURS, "their tensor 'a.0.w' has shape (2, 4), our 'x.0' (3, 2)"),
        (THEIRS | {"b": torch.zeros(2, 4)}, OURS, "their tensor 'b' has shape (2, 4), our 'y' (4,)"),
    ],
)
def test_what_is_not_accounted_for_is_named(theirs: dict, ours: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        to_ours(NAMES, theirs, ours)
    assert str(caught.value) == message


def test_tied_matrices_must_agree() -> None:
    table = (Rule("a", "x"), Rule("b", "x"))
    one = torch.randn(3)
    assert torch.equal(to_ours(table, {"a": one, "b": one.clone()}, {"x": one})["x"], one)
    assert to_theirs(table, {"x": one}).keys() == {"a", "b"}
    with pytest.raises(InputError, match="'b' differs from another that is our 'x' too"):
        to_ours(table, {"a": one, "b": one + 1}, {"x": one})


def test_what_is_not_exported_is_named() -> None:
    ours = to_ours(NAMES, THEIRS, OURS)
    with pytest.raises(InputError, match="no rule for our tensor 'z'"):
        to_theirs(NAMES, ours | {"z": torch.zeros(1)})
    with pytest.raises(InputError, match="nothing of ours for their tensor 'b'"):
        to_theirs(NAMES, {name: ours[name] for name in ("x.0", "x.1")})


def test_no_name_has_two_rules() -> None:
    for side in ("theirs", "ours"):
        names = [getattr(rule, side) for rule in RULES if getattr(rule, side)]
        assert len(names) == len(set(names))
