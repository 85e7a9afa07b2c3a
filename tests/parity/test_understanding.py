"""Classifiers on encoders, of texts and of tokens, against Hugging Face's heads on BERT and RoBERTa,
with loud weights: N(0, 0.4), and N(1, 0.4) in norms. A RoBERTa's `dense` is our pooler, its `out_proj` our `out`."""

import pytest
import torch
from transformers import (
    BertConfig,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    RobertaConfig,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
)

from heedful.exchange.hf import bert, roberta
from heedful.models.classifier import Classifier, ClassifierConfig
from heedful.models.token_classifier import TokenClassifier, TokenClassifierConfig
from loud import make_loud
from nearly import close, copy_weights

V, PAD, L = 41, 1, 3
SMALL = {"vocab_size": V, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3}
SMALL |= {"num_attention_heads": 4, "pad_token_id": PAD, "num_labels": L}
BERT = BertConfig(**SMALL, max_position_embeddings=20)
ROBERTA = RobertaConfig(**SMALL, max_position_embeddings=22, bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5)
THEIR_HEADS = {
    "classifier.weight": "out.weight",
    "classifier.bias": "out.bias",
    "qa_outputs.weight": "out.weight",
    "qa_outputs.bias": "out.bias",
    "classifier.out_proj.weight": "out.weight",
    "classifier.out_proj.bias": "out.bias",
}


def loud(model):
    return make_loud(model, norm=1.0).eval()


def copied(ours, family, theirs):
    """Our model with their weights: those of its encoder by the family's rules."""
    weights = {name.replace("classifier.dense", "pooler.dense"): value for name, value in theirs.state_dict().items()}
    heads = {THEIR_HEADS[name]: weights.pop(name) for name in [*weights] if name in THEIR_HEADS}
    copy_weights(ours.encoder, family.rules(ours.encoder.config), weights)
    ours.load_state_dict(heads, strict=False)
    return ours.eval()


def rows(*lengths):
    """Tokens padded at their end, which are real, and types."""
    valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    tokens = torch.randint(3, V, valid.shape).masked_fill(~valid, PAD)
    return tokens, valid.long(), (torch.arange(max(lengths)) > 3).long() * valid


@pytest.mark.parametrize(
    ("family", "kind", "config"),
    [(bert, BertForSequenceClassification, BERT), (roberta, RobertaForSequenceClassification, ROBERTA)],
)
@torch.no_grad()
def test_classifiers(family, kind, config):
    torch.manual_seed(0)
    theirs = loud(kind(config))
    body = family.config_from_hf(config.to_dict(), ["pooler.dense.weight"])
    ours = copied(Classifier(ClassifierConfig(encoder=body, answers=L)), family, theirs)
    tokens, valid, types = rows(7, 4, 9, 1)
    types = types if family is bert else torch.zeros_like(types)
    logits = ours(tokens[:, None], valid[:, None], types[:, None])
    close(logits, theirs(input_ids=tokens, attention_mask=valid, token_type_ids=types).logits)


@pytest.mark.parametrize(
    ("family", "kind", "config"),
    [
        (bert, BertForTokenClassification, BERT),
        (bert, BertForQuestionAnswering, BERT),
        (roberta, RobertaForTokenClassification, ROBERTA),
        (roberta, RobertaForQuestionAnswering, ROBERTA),
    ],
)
@torch.no_grad()
def test_token_classifiers(family, kind, config):
    torch.manual_seed(0)
    spans = "Question" in kind.__name__
    answers = 2 if spans else L
    theirs = loud(kind(type(config)(**config.to_diff_dict() | {"num_labels": answers})))
    body = family.config_from_hf(config.to_dict(), [])
    ours = copied(TokenClassifier(TokenClassifierConfig(encoder=body, answers=answers)), family, theirs)
    tokens, valid, types = rows(7, 4, 9, 1)
    types = types if family is bert else torch.zeros_like(types)
    found = theirs(input_ids=tokens, attention_mask=valid, token_type_ids=types)
    logits = torch.stack([found.start_logits, found.end_logits], -1) if spans else found.logits
    close(ours(tokens, valid, types)[valid > 0], logits[valid > 0])
