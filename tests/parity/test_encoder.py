"""The encoder against Hugging Face's BERT and RoBERTa, with loud weights: N(0, 0.4) in every matrix and bias, N(1, 0.4)
in every norm.

"Close" means: no element differs by more than 1e-5 of the tensor's largest in single precision, and 1e-9 in double,
in which gradients are compared.
"""

from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    RobertaModel,
)

from heedful.core.init import uninitialised
from heedful.errors import InputError
from heedful.exchange.hf import bert, roberta
from heedful.exchange.hf.rules import Rule, to_ours, to_theirs
from heedful.models.encoder import Encoder
from heedful.models.presets import ENCODERS, encoder_config
from loud import make_loud
from nearly import close, close_gradients, copy_weights

V, PAD = 41, 1
SMALL = {
    "vocab_size": V,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "pad_token_id": PAD,
}
BERT = BertConfig(**SMALL, max_position_embeddings=20)
OTHER = BertConfig(
    **SMALL,
    max_position_embeddings=20,
    hidden_act="gelu_new",
    layer_norm_eps=1e-3,
    type_vocab_size=3,
    tie_word_embeddings=False,
)
ROBERTA = RobertaConfig(**SMALL, max_position_embeddings=22, bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5)
VARIANTS: dict[str, tuple[ModuleType, Any, Any]] = {
    "bert": (bert, BertForMaskedLM, BERT),
    "bert, untied": (bert, BertForMaskedLM, OTHER),
    "bert, all heads": (bert, BertForPreTraining, BERT),
    "bert, pairs": (bert, BertForNextSentencePrediction, BERT),
    "bert, pooled": (bert, BertModel, BERT),
    "roberta": (roberta, RobertaForMaskedLM, ROBERTA),
    "roberta, pooled": (roberta, RobertaModel, ROBERTA),
}


class Pair(NamedTuple):
    theirs: Any
    ours: Encoder
    rules: tuple[Rule, ...]
    family: ModuleType


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    family, kind, config = VARIANTS[request.param]
    theirs = kind(config).eval()
    make_loud(theirs, norm=1.0)
    if not config.tie_word_embeddings:  # two names of one bias, of which their code reads the second
        theirs.cls.predictions.bias.data.copy_(theirs.cls.predictions.decoder.bias)
    weights = theirs.state_dict()
    ours = Encoder(family.config_from_hf(theirs.config.to_dict(), weights)).eval()
    rules = family.rules(ours.config)
    copy_weights(ours, rules, weights)
    return Pair(theirs, ours, rules, family)


def ragged(*lengths: int, left: bool = False) -> tuple[Tensor, Tensor]:
    """Tokens padded at one end, and which are real."""
    valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    valid = valid.flip(1) if left else valid
    return torch.randint(3, V, valid.shape).masked_fill(~valid, PAD), valid


def arguments(pair: Pair, tokens: Tensor, valid: Tensor, types: Tensor | None) -> dict[str, Tensor | None]:
    """Theirs. BERT counts positions from the row's begin unless it is told; RoBERTa leaves padding out itself."""
    given = {"input_ids": tokens, "attention_mask": valid.long(), "token_type_ids": types}
    if pair.family is bert:
        given["position_ids"] = (valid.cumsum(1) - 1).clamp(min=0)
    return given


def theirs_of(pair: Pair, **given: Any) -> dict[str, Tensor]:
    """The last hidden state, and the output of every head that there is."""
    found = pair.theirs(**given, output_hidden_states=True)
    outputs = {"hidden": found.hidden_states[-1]}
    if pair.ours.config.mlm_head:
        outputs["words"] = found["prediction_logits" if pair.ours.config.nsp_head else "logits"]
    if pair.ours.config.nsp_head:
        outputs["pairs"] = found["seq_relationship_logits" if pair.ours.config.mlm_head else "logits"]
    elif pair.ours.config.pooler:
        outputs["pooled"] = found.pooler_output
    return outputs


def ours_of(pair: Pair, tokens: Tensor, segments: Tensor | None, types: Tensor | None) -> dict[str, Tensor]:
    model = pair.ours
    hidden = model.hidden(tokens, segments, types)
    first = hidden[:, 0] if segments is None else hidden[torch.arange(len(tokens)), segments.argmax(1)]
    outputs = {"hidden": hidden}
    if model.config.mlm_head:
        outputs["words"] = model(tokens, segments, types)
    if model.config.nsp_head:
        outputs["pairs"] = model.next_sentence(first)
    elif model.config.pooler:
        outputs["pooled"] = model.pool(first)
    return outputs


def types_for(pair: Pair, tokens: Tensor) -> Tensor:
    return torch.randint(pair.ours.config.embed.types, tokens.shape)


def test_every_output(pair: Pair) -> None:
    tokens, valid = ragged(11, 4, 7)
    for types in (None, types_for(pair, tokens)):
        theirs = theirs_of(pair, **arguments(pair, tokens, valid, types))
        ours = ours_of(pair, tokens, valid.long(), types)
        assert ours.keys() == theirs.keys()
        for name, output in theirs.items():
            real = valid if output.shape[:2] == valid.shape else slice(None)
            close(ours[name][real], output[real], name)
    theirs = theirs_of(pair, input_ids=tokens[:1])
    for name, output in ours_of(pair, tokens[:1], None, None).items():
        close(output, theirs[name], name)


def test_types_are_heard(pair: Pair) -> None:
    tokens, valid = ragged(9)
    ones, hidden = torch.ones_like(tokens), pair.ours.hidden
    assert (hidden(tokens, valid.long(), ones) - hidden(tokens)).abs().max() > 0.1


def test_padding_may_stand_before(pair: Pair) -> None:
    tokens, valid = ragged(11, 4, 7, left=True)
    theirs = theirs_of(pair, **arguments(pair, tokens, valid, None))["hidden"]
    close(pair.ours.hidden(tokens, valid.long())[valid], theirs[valid])


def test_a_batch_and_a_packed_row_are_one_by_one(pair: Pair) -> None:
    tokens, valid = ragged(11, 4, 7)
    types = types_for(pair, tokens)
    together = pair.ours.hidden(tokens, valid.long(), types)
    segments = torch.arange(1, 4)[:, None].expand_as(tokens)[valid][None]
    packed = pair.ours.hidden(tokens[valid][None], segments, types[valid][None])
    close(packed[0], together[valid])
    for row in range(3):
        real = valid[row]
        alone = theirs_of(pair, input_ids=tokens[row, real][None], token_type_ids=types[row, real][None])["hidden"]
        close(together[row, real], alone[0], f"row {row}")


def test_gradients_of_every_parameter(pair: Pair) -> None:
    tokens, valid = ragged(11, 4, 7)
    types = types_for(pair, tokens)
    for model in pair[:2]:
        model.double()
    words = torch.randint(3, V, (int(valid.sum()),))
    theirs = theirs_of(pair, **arguments(pair, tokens, valid, types))
    for outputs in (theirs, ours_of(pair, tokens, valid.long(), types)):
        loss = outputs["hidden"][valid].square().sum() / 50
        if "words" in outputs:
            loss = loss + F.cross_entropy(outputs["words"][valid], words, reduction="sum")
        for name in outputs.keys() & {"pairs", "pooled"}:
            loss = loss + F.cross_entropy(outputs[name], torch.tensor([1, 0, 1]), reduction="sum")
        loss.backward()
    own = dict(pair.ours.named_parameters())
    gradients = {name: weight.grad for name, weight in pair.theirs.named_parameters() if weight.grad is not None}
    expected = to_ours(pair.rules, gradients, own)
    close_gradients({name: own[name] for name in expected}, expected)


def test_there_and_back(pair: Pair) -> None:
    numbers = {"pad": PAD} | ({} if pair.family is bert else {"start": 0, "end": 2})
    weights = {name: parameter.detach() for name, parameter in pair.ours.named_parameters()}
    theirs, back = pair.family.config_to_hf(pair.ours.config, **numbers), to_theirs(pair.rules, weights)
    assert pair.family.config_from_hf(theirs, back) == pair.ours.config
    again = to_ours(pair.rules, back, weights)
    assert again.keys() == weights.keys()
    assert all(torch.equal(again[name], weight) for name, weight in weights.items())
    expected = pair.theirs.state_dict()
    assert back.keys() == expected.keys()
    for name, value in expected.items():
        if pair.family is roberta and "position_embeddings" in name:
            assert not back[name][:2].any()
            assert torch.equal(back[name][2:], value[2:])
        else:
            assert torch.equal(back[name], value), name
    kind = type(pair.theirs)
    assert theirs["architectures"] == [kind.__name__]
    loaded = kind(kind.config_class.from_dict(theirs)).eval()
    loaded.load_state_dict(back)
    tokens, valid = ragged(11, 4, 7)
    for name, output in theirs_of(pair, **arguments(pair, tokens, valid, None)).items():
        same = theirs_of(pair._replace(theirs=loaded), **arguments(pair, tokens, valid, None))[name]
        real = valid if output.shape[:2] == valid.shape else slice(None)
        close(same[real], output[real], name)


def test_old_names_are_read(pair: Pair) -> None:
    """Of norms; of a model in a file of its bare trunk; of buffers; of files without the second name of a bias."""
    weights = pair.theirs.state_dict()
    own = dict(pair.ours.named_parameters())
    expected = to_ours(pair.rules, weights, own)
    old = {}
    for name, value in weights.items():
        if name.endswith("LayerNorm.weight"):
            name = name.replace("weight", "gamma")
        elif name.endswith("LayerNorm.bias"):
            name = name.replace("bias", "beta")
        if not name.endswith("decoder.bias"):
            old[name.removeprefix("bert.").removeprefix("roberta.")] = value
    old["embeddings.position_ids"] = torch.arange(20)[None]
    assert old.keys() & weights.keys() != weights.keys()
    found = to_ours(pair.rules, old, own)
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_what_is_not_accounted_for_is_refused(pair: Pair) -> None:
    config, weights = pair.theirs.config.to_dict(), pair.theirs.state_dict()
    with pytest.raises(InputError, match="unknown key 'n_experts'"):
        pair.family.config_from_hf(config | {"n_experts": 8}, weights)
    for key, value in (("position_embedding_type", "relative_key"), ("is_decoder", True), ("model_type", "bart")):
        with pytest.raises(InputError, match=f"{key} is {value!r}"):
            pair.family.config_from_hf(config | {key: value}, weights)
    own = dict(pair.ours.named_parameters())
    with pytest.raises(InputError, match=r"no rule for their tensor 'classifier\.weight'"):
        to_ours(pair.rules, weights | {"classifier.weight": torch.zeros(1)}, own)
    name = next(name for name in weights if "layer.1.attention.self.query.weight" in name)
    with pytest.raises(InputError, match="nothing of theirs for our tensor"):
        to_ours(pair.rules, {key: value for key, value in weights.items() if key != name}, own)
    if pair.ours.config.mlm_head:
        theirs = "cls.predictions.bias" if pair.family is bert else "lm_head.bias"
        with pytest.raises(InputError, match=r"differs from another that is our 'head\.bias'"):
            to_ours(pair.rules, weights | {theirs: weights[theirs] + 1}, own)


@pytest.mark.parametrize(
    ("family", "theirs"),
    [(bert, BertForSequenceClassification(BERT)), (roberta, RobertaForSequenceClassification(ROBERTA))],
)
def test_a_classifier_is_refused_by_its_name(family: ModuleType, theirs: nn.Module) -> None:
    weights = theirs.state_dict()
    config = family.config_from_hf(theirs.config.to_dict(), weights)
    assert config.pooler == (family is bert)
    with pytest.raises(InputError, match=r"no rule for their tensor 'classifier\."):
        to_ours(family.rules(config), weights, dict(Encoder(config).named_parameters()))


def test_the_published_file_has_more_than_it_says() -> None:
    """RoBERTa's holds a pooler beside what its "RobertaForMaskedLM" has, and BERT's another head too."""
    weights = RobertaForMaskedLM(ROBERTA).state_dict()
    pooler = {f"roberta.{name}": value for name, value in RobertaModel(ROBERTA).state_dict().items() if "pool" in name}
    config = roberta.config_from_hf(ROBERTA.to_dict(), weights | pooler)
    assert (config.mlm_head, config.pooler, config.nsp_head) == (True, True, False)
    to_ours(roberta.rules(config), weights | pooler, dict(Encoder(config).named_parameters()))


def test_what_cannot_be_built_or_said_is_refused() -> None:
    with pytest.raises(InputError, match="pad_token_id is 0"):
        roberta.config_from_hf(ROBERTA.to_dict() | {"pad_token_id": 0}, ())
    with pytest.raises(InputError, match="max_position_embeddings is 2"):
        roberta.config_from_hf(ROBERTA.to_dict() | {"max_position_embeddings": 2}, ())
    with pytest.raises(InputError, match="hidden_act is 'relu'"):
        roberta.config_from_hf(ROBERTA.to_dict() | {"hidden_act": "relu"}, ())
    with pytest.raises(InputError, match="type_vocab_size is 0"):
        bert.config_from_hf(BERT.to_dict() | {"type_vocab_size": 0}, ())
    with pytest.raises(InputError, match=r"RoBERTa cannot hold model\.nsp_head = True"):
        roberta.config_to_hf(
            encoder_config(ENCODERS["roberta-base"], pooler=True, nsp_head=True), pad=1, start=0, end=2
        )


@pytest.mark.parametrize("name", [name for name, row in sorted(ENCODERS.items()) if row.style != "modern"])
def test_presets_have_as_many_numbers_there(name: str) -> None:
    """With the head for tokens, with all heads, and with the pooler alone."""
    row = ENCODERS[name]
    family = roberta if row.style == "roberta" else bert
    numbers = {"pad": 1, "start": 0, "end": 2} if family is roberta else {"pad": 0}
    wordy, pooled = (RobertaForMaskedLM, RobertaModel) if family is roberta else (BertForMaskedLM, BertModel)
    kinds = {wordy: {}, pooled: {"mlm_head": False, "pooler": True}}
    if family is bert:
        kinds[BertForPreTraining] = {"pooler": True, "nsp_head": True}
    for kind, heads in kinds.items():
        config = encoder_config(row, **heads)
        with torch.device("meta"), uninitialised():
            ours, theirs = Encoder(config), kind(kind.config_class.from_dict(family.config_to_hf(config, **numbers)))
        unused = 2 * config.d_model if family is roberta else 0
        assert count(ours) + unused == count(theirs)


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
