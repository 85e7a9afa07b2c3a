"""Models with a head, to folders of the Hub and from them: taggers, answerers, and classifiers on a language model.

Weights are loud (see `hub.py`); logits agree to 1e-5 of the largest, all else exactly.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers.pre_tokenizers import ByteLevel
from torch import Tensor
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    BertForQuestionAnswering,
    BertForTokenClassification,
    DistilBertForQuestionAnswering,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
    GPT2ForSequenceClassification,
    ModernBertForSequenceClassification,
    ModernBertForTokenClassification,
    Qwen2Config,
    RobertaForQuestionAnswering,
    RobertaForTokenClassification,
    XLMRobertaForQuestionAnswering,
    XLMRobertaForTokenClassification,
)

import heedful
from commands import heed
from heedful.data.frame import rectangle
from heedful.data.text.labelled import Example
from heedful.data.text.questions import Question
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.classifier import ClassifierConfig
from heedful.models.presets import ENCODERS, LANGUAGE_MODELS, encoder_config, lm_config
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.store.model import read_model
from heedful.verbs.exchange import export_model, import_model
from hub import (
    LINES,
    TEXTS,
    bert_folder,
    byte_chat_folder,
    distilbert_folder,
    gpt2_folder,
    modernbert_folder,
    roberta_folder,
)
from hub_languages import xlm_roberta_folder
from loud import make_loud
from saved import save_run

LABELS = ["B-a", "I-a", "O"]
PAIRS = [("The small cat", ""), ("My sister", "sings 123 songs"), (TEXTS[2], "a book.")]
ASKED = [("Who sings?", "My sister is reading a book, and he sings 123 songs!"), (" Wer", "der  Hund\nschläft")]


def agree(ours: list[Tensor], theirs: list[Tensor]) -> None:
    """The logits of one text after another."""
    largest = max(float(each.abs().max()) for each in theirs)
    assert largest > 1, "weights are loud"
    for own, right in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, right, rtol=0, atol=1e-5 * largest)


def own(folder: Path, config: Any, tokenizer: Tokenizer, about: dict[str, Any]) -> Any:
    model = make_model(config).eval()
    torch.manual_seed(4)
    make_loud(model, norm=1.0)
    return heedful.load(save_run(folder / "run", model, tokenizer, tokenizer, about))


def tokens_of(ours: Any, sequences: Any) -> tuple[Tensor, Tensor, Tensor]:
    return rectangle([one.framed if hasattr(one, "framed") else one for one in sequences])


def logits(theirs: Any, given: Any) -> Any:
    with torch.no_grad():
        return theirs(**given)


def same_tagger(ours: Any, theirs: Any, reads: Any) -> None:
    own, right = [], []
    for line in LINES:
        words = line.split()
        ((piece,),) = ours.layout.encode([words])
        given = reads(words, is_split_into_words=True, return_tensors="pt")
        assert given.input_ids[0].tolist() == piece.framed.tokens
        with torch.no_grad():
            own.append(ours.model(*tokens_of(ours, [piece])))
        right.append(logits(theirs, given).logits)
    agree(own, right)


def same_answerer(ours: Any, theirs: Any, reads: Any) -> None:
    own, right = [], []
    for question, context in ASKED:
        ((window,),) = ours.layout.encode([Question(question, context, (), "")])
        given = reads(question, context, return_tensors="pt")
        assert given.input_ids[0].tolist() == window.framed.tokens
        found = logits(theirs, given)
        right.append(torch.stack([found.start_logits, found.end_logits], -1))
        with torch.no_grad():
            own.append(ours.model(*tokens_of(ours, [window])))
    agree(own, right)


def same_classifier(ours: Any, theirs: Any, reads: Any) -> None:
    own, right = [], []
    for text, other in PAIRS:
        label = ours.spec.labels[0]
        ((one,),) = (each.sequences for each in ours.layout.encode([Example(text, pair=other, label=label)]))
        given = reads(text, other or None, return_tensors="pt")
        assert given.input_ids[0].tolist() == one.tokens
        tokens, segments, types = rectangle([one])
        with torch.no_grad():
            own.append(ours.model(tokens[None], segments[None], types[None]))
        right.append(logits(theirs, given).logits)
    agree(own, right)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_tagger_of_ours(tmp_path: Path, kind: Any) -> None:
    tokenizer = train_tokenizer(LINES * 3, kind=kind, size=400)
    row = replace(ENCODERS["encoder-tiny"], d_model=16, n_heads=2, n_layers=2)
    encoder = encoder_config(row, vocab_size=tokenizer.size, mlm_head=False)
    ours = own(
        tmp_path, TokenClassifierConfig(encoder=encoder, answers=3), tokenizer, {"task": "tag", "labels": LABELS}
    )
    made = export_model(tmp_path / "run", tmp_path / "hub")
    assert (made.family, made.loads.split(".")[1]) == ("BERT", "AutoModelForTokenClassification")
    theirs = AutoModelForTokenClassification.from_pretrained(tmp_path / "hub").eval()
    assert theirs.config.id2label == dict(enumerate(LABELS))
    reads = AutoTokenizer.from_pretrained(tmp_path / "hub")
    same_tagger(ours, theirs, reads)
    assert import_model(tmp_path / "hub", tmp_path / "again").task == "tag"
    back = heedful.load(tmp_path / "again")
    same_tagger(back, theirs, reads)
    assert [[word[:2] for word in words] for words in back.tag(LINES)] == [
        [word[:2] for word in words] for words in ours.tag(LINES)
    ]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_an_answerer_of_ours(tmp_path: Path, kind: Any) -> None:
    tokenizer = train_tokenizer(LINES * 3, kind=kind, size=400)
    row = replace(ENCODERS["encoder-small"], d_model=16, n_heads=2, n_layers=2)
    encoder = encoder_config(row, vocab_size=tokenizer.size, mlm_head=False)
    about = {"task": "answer", "longest": 7, "unanswerable": True}
    ours = own(tmp_path, TokenClassifierConfig(encoder=encoder, answers=2, dropout=0.0), tokenizer, about)
    made = export_model(tmp_path / "run", tmp_path / "hub")
    assert (made.family, made.loads.split(".")[1]) == ("BERT", "AutoModelForQuestionAnswering")
    theirs = AutoModelForQuestionAnswering.from_pretrained(tmp_path / "hub").eval()
    reads = AutoTokenizer.from_pretrained(tmp_path / "hub")
    same_answerer(ours, theirs, reads)
    assert import_model(tmp_path / "hub", tmp_path / "again").task == "answer"
    back = heedful.load(tmp_path / "again")
    assert back.spec == ours.spec
    same_answerer(back, theirs, reads)
    asked = [list(side) for side in zip(*ASKED, strict=True)]
    assert [best.text for (best,) in back.answer(*asked)] == [best.text for (best,) in ours.answer(*asked)]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_classifier_of_ours_on_a_language_model(tmp_path: Path, kind: Any) -> None:
    """Its bias, which GPT-2 has no place for, is in the last norm."""
    tokenizer = train_tokenizer(LINES * 3, kind=kind, size=400)
    row = replace(LANGUAGE_MODELS["gpt-mini"], d_model=16, n_heads=2, n_layers=2)
    lm = lm_config(row, vocab_size=tokenizer.size + 2)
    about = {"task": "classify", "answer": "label", "labels": LABELS}
    ours = own(tmp_path, ClassifierConfig(lm=lm, answers=3), tokenizer, about)
    made = export_model(tmp_path / "run", tmp_path / "hub")
    assert (made.family, made.loads.split(".")[1]) == ("GPT-2", "AutoModelForSequenceClassification")
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "hub").eval()
    assert theirs.config.id2label == dict(enumerate(LABELS))
    reads = AutoTokenizer.from_pretrained(tmp_path / "hub")
    same_classifier(ours, theirs, reads)
    padded = logits(theirs, reads([text for text, _ in PAIRS], padding=True, return_tensors="pt")).logits
    assert [LABELS[n] for n in padded.argmax(1)] == [best[0][0] for best in ours.classify([text for text, _ in PAIRS])]
    assert import_model(tmp_path / "hub", tmp_path / "again").task == "classify"
    same_classifier(heedful.load(tmp_path / "again"), theirs, reads)


def same_there_and_back(ours: Any, folder: Path) -> None:
    """The run in the folder as `transformers` load it, and as it comes back."""
    export_model(folder / "run", folder / "hub")
    theirs = AutoModelForSequenceClassification.from_pretrained(folder / "hub").eval()
    reads = AutoTokenizer.from_pretrained(folder / "hub")
    same_classifier(ours, theirs, reads)
    import_model(folder / "hub", folder / "again")
    same_classifier(heedful.load(folder / "again"), theirs, reads)


def test_a_classifier_of_pairs_on_an_imported_language_model(tmp_path: Path) -> None:
    """Texts are parted by one token, and end with another, of which its vocabulary has neither."""
    gpt2_folder(tmp_path / "gpt2")
    import_model(tmp_path / "gpt2", tmp_path / "lm")
    start = heedful.load(tmp_path / "lm")
    lm, tokenizer = start.model.config, start.tokenizer
    lm = replace(lm, embed=replace(lm.embed, vocab_size=tokenizer.size + 2))
    about = {"task": "classify", "answer": "label", "labels": LABELS}
    ours = own(tmp_path, ClassifierConfig(lm=lm, answers=3), tokenizer, about)
    same_there_and_back(ours, tmp_path)


def test_a_classifier_begins_with_a_model_of_more_rows_than_tokens(tmp_path: Path) -> None:
    """As Qwen has them, in whose table of vectors the last hundreds are no token's."""
    byte_chat_folder(tmp_path / "hub", Qwen2Config, begun=False)
    import_model(tmp_path / "hub", tmp_path / "lm")
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{line}\t{n % 2}\n" for n, line in enumerate(LINES * 8)), encoding="utf-8")
    words = ["classify", "--from", tmp_path / "lm", "--data", data, "--out", tmp_path / "run"]
    assert heed("train", *words, "--set", "train.steps=1") == 0
    rows = heedful.load(tmp_path / "lm").model.config.embed.vocab_size
    assert heedful.load(tmp_path / "run").model.config.embed.vocab_size == rows


def test_a_classifier_of_ours_on_an_encoder(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(LINES * 3, kind="bpe", size=400)
    row = replace(ENCODERS["encoder-tiny"], d_model=16, n_heads=2, n_layers=2)
    encoder = encoder_config(row, vocab_size=tokenizer.size, mlm_head=False, pooler=True)
    about = {"task": "classify", "answer": "label", "labels": LABELS}
    ours = own(tmp_path, ClassifierConfig(encoder=encoder, answers=3), tokenizer, about)
    same_there_and_back(ours, tmp_path)


def test_a_classifier_of_ours_on_an_encoder_without_types(tmp_path: Path) -> None:
    """As one is that begins with a DistilBERT: it becomes a BERT of one type, since no pooler there ends in a tanh."""
    tokenizer = train_tokenizer(LINES * 3, kind="bpe", size=400)
    row = replace(ENCODERS["encoder-tiny"], d_model=16, n_heads=2, n_layers=2)
    encoder = encoder_config(row, vocab_size=tokenizer.size, mlm_head=False, pooler=True)
    encoder = replace(encoder, embed=replace(encoder.embed, types=0))
    about = {"task": "classify", "answer": "label", "labels": LABELS}
    ours = own(tmp_path, ClassifierConfig(encoder=encoder, answers=3), tokenizer, about)
    assert export_model(tmp_path / "run", tmp_path / "hub").family == "BERT"
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "hub").eval()
    same_classifier(ours, theirs, AutoTokenizer.from_pretrained(tmp_path / "hub"))


def test_biases_that_gpt2_has_no_place_for_are_told(tmp_path: Path) -> None:
    """More answers than features, so that the weights of some follow from those of others."""
    tokenizer = train_tokenizer(LINES, kind="bytes", size=300)
    lm = lm_config(
        replace(LANGUAGE_MODELS["gpt-mini"], d_model=4, n_heads=1, n_layers=1), vocab_size=tokenizer.size + 2
    )
    about = {"task": "classify", "answer": "label", "labels": [f"{n}" for n in range(9)]}
    own(tmp_path, ClassifierConfig(lm=lm, answers=9), tokenizer, about)
    with pytest.raises(InputError, match="cannot hold the biases of so many answers"):
        export_model(tmp_path / "run", tmp_path / "never")
    assert not (tmp_path / "never").exists()


HEADS = [
    (bert_folder, BertForTokenClassification, same_tagger),
    (roberta_folder, RobertaForTokenClassification, same_tagger),
    (bert_folder, BertForQuestionAnswering, same_answerer),
    (roberta_folder, RobertaForQuestionAnswering, same_answerer),
    (xlm_roberta_folder, XLMRobertaForTokenClassification, same_tagger),
    (xlm_roberta_folder, XLMRobertaForQuestionAnswering, same_answerer),
    (gpt2_folder, GPT2ForSequenceClassification, same_classifier),
    (distilbert_folder, DistilBertForSequenceClassification, same_classifier),
    (distilbert_folder, DistilBertForTokenClassification, same_tagger),
    (distilbert_folder, DistilBertForQuestionAnswering, same_answerer),
]


def biased(pooling: str) -> Any:
    """With every bias that we have."""

    def make(folder: Path, kind: Any, **options: Any) -> Any:
        told = {"norm_bias": True, "classifier_bias": True, "classifier_pooling": pooling}
        return modernbert_folder(folder, kind, **told, **options)

    return make


HEADS += [
    (biased("cls"), ModernBertForSequenceClassification, same_classifier),
    (biased("mean"), ModernBertForSequenceClassification, same_classifier),
    (biased("cls"), ModernBertForTokenClassification, same_tagger),
]


@pytest.mark.parametrize("kind", [ModernBertForSequenceClassification, ModernBertForTokenClassification])
def test_a_modernbert_without_biases(tmp_path: Path, kind: Any) -> None:
    """As they are published; on the way back it has them, as zeros."""
    theirs = modernbert_folder(tmp_path / "theirs", kind, id2label=dict(enumerate(LABELS)), classifier_pooling="mean")
    same = same_tagger if kind is ModernBertForTokenClassification else same_classifier
    reads = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    if same is same_tagger:
        reads.backend_tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=True)
    import_model(tmp_path / "theirs", tmp_path / "run")
    same(heedful.load(tmp_path / "run"), theirs, reads)
    export_model(tmp_path / "run", tmp_path / "back")
    same(heedful.load(tmp_path / "run"), kind.from_pretrained(tmp_path / "back").eval(), reads)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classifier_pooling": "max"}, "classifier_pooling is 'max'"),
        ({"classifier_activation": "relu"}, "classifier_activation is 'relu', unlike the layers'"),
        ({"classifier_dropout": "0"}, "classifier_dropout is '0', which is no number"),
        ({"architectures": ["ModernBertForQuestionAnswering"]}, "is for something else"),
    ],
)
def test_a_modernbert_with_another_head(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    modernbert_folder(tmp_path / "theirs", ModernBertForSequenceClassification)
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        import_model(tmp_path / "theirs", tmp_path / "never")


@pytest.mark.parametrize(("make", "kind", "same"), HEADS, ids=[kind.__name__ for _, kind, _ in HEADS])
def test_there_and_back(tmp_path: Path, make: Any, kind: Any, same: Any) -> None:
    torch.manual_seed(5)
    options = {} if "Question" in kind.__name__ else {"id2label": dict(enumerate(LABELS))}
    if make is gpt2_folder:
        theirs = make(tmp_path / "theirs", kind=kind, **options)
    else:
        theirs = make(tmp_path / "theirs", kind, **options)
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours = heedful.load(tmp_path / "run")
    prefix = {"add_prefix_space": True} if make is roberta_folder and same is same_tagger else {}
    reads = AutoTokenizer.from_pretrained(tmp_path / "theirs", **prefix)
    if kind is ModernBertForTokenClassification:
        reads.backend_tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=True)  # which its class has no word for
    same(ours, theirs, reads)
    export_model(tmp_path / "run", tmp_path / "back")
    back = getattr(__import__("transformers"), kind.__name__).from_pretrained(tmp_path / "back")
    assert back.state_dict().keys() == theirs.state_dict().keys()
    assert all(torch.equal(value, theirs.state_dict()[name]) for name, value in back.state_dict().items())
    if options:
        assert back.config.id2label == theirs.config.id2label
    import_model(tmp_path / "back", tmp_path / "again")
    for name in ("task.json", "config.json"):
        assert json.loads((tmp_path / "again" / name).read_text()) == json.loads((tmp_path / "run" / name).read_text())
    first, second = read_model(tmp_path / "run")[1], read_model(tmp_path / "again")[1]
    assert all(torch.equal(value, second[name]) for name, value in first.items())
