"""BERT and RoBERTa from and to folders of the Hub: what a run made of one says is what transformers says.

Weights are loud (see `hub.py`); logits agree to 1e-5 of the largest, all else exactly.
"""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import tokenizers
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    DistilBertForMaskedLM,
    LongformerForMaskedLM,
    ModernBertForMaskedLM,
    ModernBertModel,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    RobertaModel,
    XLMRobertaForMaskedLM,
    XLMRobertaForSequenceClassification,
)

import heedful
from heedful.data.text.documents import Documents
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.exchange.hf import longformer
from heedful.figures.stacks import Sizes, block
from heedful.models import make_model
from heedful.models.presets import ENCODERS, EncoderSize, encoder_config
from heedful.store.model import read_model
from heedful.tasks.fill.use import Filler
from heedful.tasks.recipes import build
from heedful.tasks.shared.look import draw_text, head_labels, look_within, looked_at
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from heedful.verbs.train import train
from hub import (
    LINES,
    TEXTS,
    Imported,
    bert_folder,
    distilbert_folder,
    longformer_folder,
    modernbert_folder,
    roberta_folder,
)
from hub_languages import xlm_roberta_folder
from loud import make_loud
from saved import save_run


def with_biases(folder: Path, kind: Any) -> Any:
    return modernbert_folder(folder, kind, norm_bias=True, classifier_bias=True)


MAKERS: dict[str, tuple[Any, Any]] = {
    "bert": (bert_folder, BertForMaskedLM),
    "bert, all heads": (bert_folder, BertForPreTraining),
    "roberta": (roberta_folder, RobertaForMaskedLM),
    "longformer": (longformer_folder, LongformerForMaskedLM),
    "xlm-r": (xlm_roberta_folder, XLMRobertaForMaskedLM),
    "modernbert": (with_biases, ModernBertForMaskedLM),
    "distilbert": (distilbert_folder, DistilBertForMaskedLM),
}
MASKED = ["The <mask> cat is sleeping.", "<mask>", "My sister<mask>is <mask> a book", "a <mask>, b"]
CONTROLS = ["[CLS] x [SEP] y", "a </s> b <s><pad>", "<unk> [UNK] [MASK]", "don't STOP, ok?"]


Pair = Imported[Filler]


@pytest.fixture(scope="module", params=sorted(MAKERS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    make, kind = MAKERS[request.param]
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("hub") / "theirs"
    theirs, run = make(folder, kind), folder.parent / "run"
    import_model(folder, run)
    return Pair(theirs, AutoTokenizer.from_pretrained(folder), folder, run, heedful.load(run))


def logits_of(theirs: Any, ids: list[int]) -> Any:
    with torch.no_grad():
        made = theirs(input_ids=torch.tensor([ids]))
    return (made.prediction_logits if "prediction_logits" in made else made.logits)[0]


def agree(ours: Filler, theirs: Any, tokenizer: Any, texts: list[str]) -> None:
    """The likeliest tokens at each mask, and their probabilities among all tokens."""
    for text, filled in zip(texts, ours.fill(texts, top=5), strict=True):
        ids = tokenizer(text.replace("<mask>", tokenizer.mask_token)).input_ids
        logits = logits_of(theirs, ids)
        own = ours.model(torch.tensor([ids]))[0]
        largest = float(logits.abs().max())
        assert largest > 1, "weights are loud"
        torch.testing.assert_close(own, logits, rtol=0, atol=1e-5 * largest)
        places = [place for place, index in enumerate(ids) if index == tokenizer.mask_token_id]
        assert len(filled) == len(places) > 0
        chances = logits.softmax(1)
        chances[:, [*tokenizer.all_special_ids]] = 0.0
        for place, each in zip(places, filled, strict=True):
            best = chances[place].topk(5)
            words = [tokenizer.decode([index]).removeprefix(ours.space) for index in best.indices.tolist()]
            assert [one.token for one in each.candidates] == words
            assert [one.score for one in each.candidates] == pytest.approx(best.values.tolist(), abs=1e-5)


def test_texts_have_their_ids(pair: Pair) -> None:
    own, texts = pair.ours.tokenizer, [*TEXTS, *CONTROLS, *MASKED]
    expected = pair.tokenizer(texts).input_ids
    assert [[own.bos, *ids, own.eos] for ids in own.encode_whole(texts)] == expected
    for ids in expected:
        assert own.decode_whole(ids) == pair.tokenizer.decode(ids, skip_special_tokens=True)
    assert (own.bos, own.eos) == (pair.tokenizer.cls_token_id, pair.tokenizer.sep_token_id)
    assert (own.pad, own.unk) == (pair.tokenizer.pad_token_id, pair.tokenizer.unk_token_id)
    assert own.mask == pair.tokenizer.mask_token_id


@pytest.mark.parametrize("make", [bert_folder, roberta_folder, xlm_roberta_folder])
def test_bare_lists_are_the_same_tokenizer(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "theirs", bare=True)
    import_model(tmp_path / "theirs", tmp_path / "run")
    tokenizer, own = AutoTokenizer.from_pretrained(tmp_path / "theirs"), heedful.load(tmp_path / "run").tokenizer
    texts = [*TEXTS, *CONTROLS, *MASKED]
    assert [[own.bos, *ids, own.eos] for ids in own.encode_whole(texts)] == tokenizer(texts).input_ids


def test_masks_are_filled_as_theirs(pair: Pair) -> None:
    agree(pair.ours, pair.theirs, pair.tokenizer, MASKED)
    name = pair.tokenizer.mask_token
    alike = pair.ours.fill([text.replace("<mask>", name) for text in MASKED])
    assert [[each.candidates for each in own] for own in alike] == [
        [each.candidates for each in own] for own in pair.ours.fill(MASKED)
    ]


def test_its_laws_hold(pair: Pair) -> None:
    assert [law.name for law in check(pair.run) if not law.holds] == []


def test_what_is_read_can_be_looked_at(pair: Pair) -> None:
    seen = look_within(pair.ours, MASKED[0])
    (ids,) = pair.tokenizer([MASKED[0].replace("<mask>", pair.tokenizer.mask_token)]).input_ids
    assert len(seen.read) == len(ids)
    assert [*seen.weights] == [f"stack.blocks.{i}.self_attention" for i in range(2)]
    assert all(len(labels) == 4 for labels in head_labels(seen).values())
    assert sum(share for _, share in looked_at(seen, 0)) == pytest.approx(1, abs=1e-5)
    assert len(draw_text(seen, "svg")) > 2000


def test_there_and_back_and_there(pair: Pair, tmp_path: Path) -> None:
    export_model(pair.run, tmp_path / "back")
    back = type(pair.theirs).from_pretrained(tmp_path / "back").eval()
    theirs = pair.theirs.state_dict()
    assert back.state_dict().keys() == theirs.keys()
    assert all(torch.equal(value, theirs[name]) for name, value in back.state_dict().items())
    again = AutoTokenizer.from_pretrained(tmp_path / "back")
    texts = [*TEXTS, *CONTROLS]
    for key in pair.tokenizer(texts):
        assert again(texts)[key] == pair.tokenizer(texts)[key]
    agree(pair.ours, back, again, MASKED)
    import_model(tmp_path / "back", tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in pair.run.iterdir()}
    for path in pair.run.iterdir():
        if path.name != "model.safetensors":
            assert (tmp_path / "run" / path.name).read_text() == path.read_text(), path.name
    ours, expected = read_model(tmp_path / "run")[1], read_model(pair.run)[1]
    assert all(torch.equal(ours[name], value) for name, value in expected.items())


def test_what_is_imported_can_be_learnt_from(pair: Pair, tmp_path: Path) -> None:
    """A text begins and ends as theirs does, and only its tokens are hidden and named."""
    corpus = Documents(LINES * 3, LINES[:2], {"test": LINES}, "made", (), ())
    pairs = {"pairs": "next"} if pair.ours.model.nsp_head is not None else {}
    plan = {
        "task": "fill",
        "start_from": str(pair.run),
        "data": pairs,
        "train": {"steps": 2, "lr": 1e-6, "muon_lr": 1e-6},
    }
    recipe = build(plan, where="test")
    for _ in train(recipe, tmp_path / "run", corpus=corpus):
        pass
    learnt = heedful.load(tmp_path / "run")
    assert learnt.tokenizer.encode_masked(MASKED) == pair.ours.tokenizer.encode_masked(MASKED)
    assert learnt.measure(LINES).loss == pytest.approx(pair.ours.measure(LINES).loss, rel=1e-2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda all_: all_ | {"bert.extra": torch.zeros(1)}, "no rule for their tensor 'bert.extra'"),
        (lambda all_: {k: v for k, v in all_.items() if "layer.1.output.dense.bias" not in k}, "nothing of theirs for"),
    ],
)
def test_what_is_not_accounted_for_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    bert_folder(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model.safetensors"
    safetensors.torch.save_file(change(safetensors.torch.load_file(path)), path)
    with pytest.raises(InputError, match=message):
        import_model(tmp_path / "theirs", tmp_path / "never")


# Without a head, and with one that classifies


@pytest.mark.parametrize(("make", "kind"), [(bert_folder, BertModel), (roberta_folder, RobertaModel)])
def test_an_encoder_without_a_head(tmp_path: Path, make: Any, kind: Any) -> None:
    theirs = make(tmp_path / "theirs", kind)
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours, tokenizer = heedful.load(tmp_path / "run"), AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for text in TEXTS[:5]:
        with torch.no_grad():
            hidden = theirs(input_ids=torch.tensor([tokenizer(text).input_ids])).last_hidden_state[0]
        torch.testing.assert_close(
            ours.embed([text], pool="first")[0], hidden[0], rtol=0, atol=1e-5 * float(hidden.abs().max())
        )
    assert export_model(tmp_path / "run", tmp_path / "back").loads.startswith("transformers.AutoModel.")
    back = AutoModel.from_pretrained(tmp_path / "back")
    assert type(back) is kind
    assert all(torch.equal(value, theirs.state_dict()[name]) for name, value in back.state_dict().items())


PAIRS = [("The small cat", ""), ("My sister", "sings 123 songs"), (TEXTS[2], "a book.")]
CLASSIFIERS = [
    (bert_folder, BertForSequenceClassification),
    (roberta_folder, RobertaForSequenceClassification),
    (xlm_roberta_folder, XLMRobertaForSequenceClassification),
]


@pytest.mark.parametrize(
    "problem", ["single_label_classification", "multi_label_classification", "regression"], ids=lambda name: name[:6]
)
@pytest.mark.parametrize(("make", "kind"), CLASSIFIERS)
def test_classifiers(tmp_path: Path, make: Any, kind: Any, problem: str) -> None:
    torch.manual_seed(2)
    names = ["score"] if problem == "regression" else ["bad", "so so", "good"]
    theirs = make(tmp_path / "theirs", kind, id2label=dict(enumerate(names)), problem_type=problem)
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours, tokenizer = heedful.load(tmp_path / "run"), AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for text, other in PAIRS:
        (found,) = ours.classify([text], pairs=[other])
        with torch.no_grad():
            logits = theirs(**tokenizer(text, other or None, return_tensors="pt")).logits[0]
        if problem == "regression":
            assert found[0][1] == pytest.approx(float(logits), rel=1e-5)
            continue
        scores = logits.softmax(0) if problem.startswith("single") else logits.sigmoid()
        assert dict(found) == pytest.approx(dict(zip(names, scores.tolist(), strict=True)), abs=1e-5)
    made = export_model(tmp_path / "run", tmp_path / "back")
    assert made.loads.startswith("transformers.AutoModelForSequenceClassification.")
    back = AutoModelForSequenceClassification.from_pretrained(tmp_path / "back")
    assert type(back) is kind
    assert back.state_dict().keys() == theirs.state_dict().keys()
    assert all(torch.equal(value, theirs.state_dict()[name]) for name, value in back.state_dict().items())
    if problem != "regression":
        assert back.config.id2label == theirs.config.id2label
    import_model(tmp_path / "back", tmp_path / "again")
    for path in (tmp_path / "run").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("name", ["bert", "roberta", "xlm-r"])
def test_an_output_matrix_of_its_own_keeps_its_bias(tmp_path: Path, name: str) -> None:
    """Which has two names, of which their code then reads the second."""
    make, kind = MAKERS[name]
    theirs = make(tmp_path / "theirs", kind, tie_word_embeddings=False)
    head = theirs.cls.predictions if name == "bert" else theirs.lm_head
    head.bias.data.copy_(head.decoder.bias)
    theirs.save_pretrained(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    export_model(tmp_path / "run", tmp_path / "back")
    back = kind.from_pretrained(tmp_path / "back").eval()
    ids = torch.randint(5, 50, (2, 9))
    with torch.no_grad():
        assert torch.equal(back(ids).logits, theirs(ids).logits)


def test_other_heads_are_refused(tmp_path: Path) -> None:
    bert_folder(tmp_path / "theirs", BertForMultipleChoice)
    with pytest.raises(InputError, match="'BertForMultipleChoice': its `classifier` is for something else"):
        import_model(tmp_path / "theirs", tmp_path / "never")


# ModernBERT, whose layers differ

FEW = {"num_hidden_layers": 3, "local_rope_theta": 100.0, "global_rope_theta": 1000.0}
SHAPES: list[dict[str, Any]] = [
    FEW | {"global_attn_every_n_layers": 3, "local_attention": 2},
    FEW | {"global_attn_every_n_layers": 2, "local_attention": 5, "attention_bias": True, "mlp_bias": True},
    FEW | {"global_attn_every_n_layers": 1, "norm_bias": True, "norm_eps": 1e-3, "tie_word_embeddings": False},
    FEW | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "local_attention": 4},
]


@pytest.mark.parametrize("old", [False, True], ids=["new keys", "old keys"])
@pytest.mark.parametrize("options", SHAPES, ids=range(len(SHAPES)))
@pytest.mark.parametrize("kind", [ModernBertForMaskedLM, ModernBertModel])
def test_modernbert(tmp_path: Path, kind: Any, options: dict[str, Any], old: bool) -> None:
    torch.manual_seed(4)
    theirs, path = modernbert_folder(tmp_path / "theirs", kind, **options), tmp_path / "theirs" / "config.json"
    if old and "layer_types" not in options:
        said = json.loads(path.read_text())
        del said["layer_types"], said["rope_parameters"]
        path.write_text(json.dumps(said | options | {"layer_norm_eps": 1e-5, "position_embedding_type": "absolute"}))
    import_model(tmp_path / "theirs", tmp_path / "run")
    made = export_model(tmp_path / "run", tmp_path / "back")
    assert made.family == "ModernBERT"
    back = kind.from_pretrained(tmp_path / "back").eval()
    ours = heedful.load(tmp_path / "run").model
    ids = torch.randint(5, 300, (2, 30))
    segments = (torch.arange(30) < torch.tensor([[30], [17]])).long()
    with torch.no_grad():
        expected, again = (net(ids, attention_mask=segments)[0][segments > 0] for net in (theirs, back))
        hidden = ours.hidden(ids, segments)[segments > 0]
        found = ours.predict_tokens(hidden) if kind is ModernBertForMaskedLM else hidden
    for other in (found, again):
        torch.testing.assert_close(other, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
    import_model(tmp_path / "back", tmp_path / "again")
    for each in (tmp_path / "run").iterdir():
        assert (tmp_path / "again" / each.name).read_bytes() == each.read_bytes(), each.name


def test_modernberts_first_layer_is_drawn_as_it_is(tmp_path: Path) -> None:
    modernbert_folder(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    net = heedful.load(tmp_path / "run").model
    first, second = (block(layer, 16, Sizes(net), "", causal=False) for layer in net.config.stack.layers)
    assert [[part.label for part in residual.branch] for residual in (*first, *second)] == [
        ["Multi-head attention"],
        ["LayerNorm", "Feed forward"],
        ["LayerNorm", "Multi-head attention"],
        ["LayerNorm", "Feed forward"],
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rope_parameters": {"rope_theta": 1.0}}, "rope_parameters is"),
        ({"layer_types": ["full_attention"]}, "layer_types is"),
        ({"layer_types": None, "global_attn_every_n_layers": 0}, "global_attn_every_n_layers 0"),
        ({"local_attention": None}, "local_attention is None"),
        ({"num_hidden_layers": "two"}, "num_hidden_layers 'two'"),
    ],
)
def test_a_modernbert_that_cannot_be_read(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    modernbert_folder(tmp_path / "theirs")
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        import_model(tmp_path / "theirs", tmp_path / "never")


# What was made here

ROW = EncoderSize(n_layers=2, d_model=16, n_heads=4, context_length=40)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "chars"])
def test_encoders_of_ours_load_there(tmp_path: Path, kind: Any) -> None:
    tokenizer = train_tokenizer([*LINES, "<s> </s>"] * 2, kind=kind, size=330, mask=True)
    net = make_model(encoder_config(ROW, vocab_size=tokenizer.size))
    torch.manual_seed(3)
    make_loud(net, norm=1.0)
    save_run(tmp_path / "run", net.eval(), tokenizer, tokenizer, {"task": "fill"})
    ours = heedful.load(tmp_path / "run")
    made = export_model(tmp_path / "run", tmp_path / "hub")
    assert made.family == "BERT"
    assert made.loads.startswith("transformers.AutoModelForMaskedLM.")
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "hub").eval()
    reader = AutoTokenizer.from_pretrained(tmp_path / "hub")
    texts = [*TEXTS, *MASKED]
    assert reader(texts).input_ids == [[2, *ids, 3] for ids in tokenizer.encode_masked(texts)]
    agree(ours, theirs, reader, MASKED)
    import_model(tmp_path / "hub", tmp_path / "again")
    again = heedful.load(tmp_path / "again")
    assert again.fill(MASKED) == ours.fill(MASKED)


def test_what_no_family_can_say_is_named(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(LINES, kind="bytes", size=300, mask=True)
    net = make_model(encoder_config(replace(ROW, order="sandwich"), vocab_size=tokenizer.size))
    save_run(tmp_path / "run", net, tokenizer, tokenizer, {"task": "fill"})
    with pytest.raises(InputError, match=r"BERT cannot hold model\.stack\.block\.order = 'sandwich'"):
        export_model(tmp_path / "run", tmp_path / "never")


@pytest.mark.parametrize("reader", [None, "class of its own", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("told", [{"do_lower_case": False}, {"strip_accents": False}, {"add_prefix_space": True}])
def test_what_tokenizer_config_says_of_case_and_spaces(
    tmp_path: Path, told: dict[str, bool], reader: str | None
) -> None:
    """It goes before what tokenizer.json says, unless it names the class that goes by that."""
    (roberta_folder if "add_prefix_space" in told else bert_folder)(tmp_path / "hub")
    path = tmp_path / "hub/tokenizer_config.json"
    names = json.loads(path.read_text()) | told
    names["tokenizer_class"] = names["tokenizer_class"] if reader == "class of its own" else reader
    path.write_text(json.dumps({key: value for key, value in names.items() if value is not None}))
    import_model(tmp_path / "hub", tmp_path / "run")
    ours, tokenizer = Filler.load(tmp_path / "run"), AutoTokenizer.from_pretrained(tmp_path / "hub")
    texts = [*TEXTS, "The Café Ünd the"]
    own = ours.tokenizer
    assert [[own.bos, *ids, own.eos] for ids in own.encode_whole(texts)] == tokenizer(texts).input_ids
    export_model(tmp_path / "run", tmp_path / "back")
    assert AutoTokenizer.from_pretrained(tmp_path / "back")(texts).input_ids == tokenizer(texts).input_ids


def test_a_vocabulary_without_the_letter_a(tmp_path: Path) -> None:
    """That of proteins: capitals, and no token for what it lacks."""
    roberta_folder(tmp_path / "hub")
    pieces = ["<s>", "<pad>", "</s>", "<mask>", *"ACDEFGHIKLMNPQRSTVWY"]
    inner = tokenizers.Tokenizer(tokenizers.models.BPE({piece: index for index, piece in enumerate(pieces)}, []))
    inner.add_special_tokens(pieces[:4])
    frame, pair = "<s> $A </s>", "<s> $A </s> </s> $B:1 </s>:1"
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single=frame, pair=pair, special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    (tmp_path / "hub/tokenizer.json").write_text(inner.to_str())
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "<mask>", "pad_token": "<pad>"}
    (tmp_path / "hub/tokenizer_config.json").write_text(json.dumps(names))
    import_model(tmp_path / "hub", tmp_path / "run")
    own = Filler.load(tmp_path / "run").tokenizer
    assert (own.bos, *own.encode_whole(["MKT"])[0], own.eos) == (0, 14, 12, 20, 2)
    assert own.special.separators == 2


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"do_lower_case": None, "tokenize_chinese_chars": None}, ""),
        ({"do_lower_case": "x"}, "do_lower_case is 'x', expected bool"),
        ({"strip_accents": 1}, "strip_accents is 1, expected bool"),
    ],
)
def test_what_tokenizer_config_may_say_of_bare_pieces(tmp_path: Path, told: dict[str, Any], message: str) -> None:
    bert_folder(tmp_path / "hub", bare=True)
    path = tmp_path / "hub/tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | told))
    with nullcontext() if not message else pytest.raises(InputError, match=message):
        import_model(tmp_path / "hub", tmp_path / "run")


def test_a_tokenizer_without_tokens_is_refused(tmp_path: Path) -> None:
    bert_folder(tmp_path / "hub")
    (tmp_path / "hub/tokenizer.json").write_text(tokenizers.Tokenizer(tokenizers.models.BPE({}, [])).to_str())
    with pytest.raises(InputError, match="no tokens"):
        import_model(tmp_path / "hub", tmp_path / "run")


@pytest.mark.parametrize("count", [1, 3])
def test_global_tokens_of_longformer_are_theirs(tmp_path: Path, count: int) -> None:
    """The first tokens of each text see all by maps of their own, and are seen by all; rows may be padded."""
    theirs = longformer_folder(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    plain = heedful.load(tmp_path / "run").model
    stack = plain.config.stack
    pattern = tuple(replace(layer, global_tokens=count) for layer in stack.layers)
    ours = make_model(replace(plain.config, stack=replace(stack, block=pattern[0], pattern=pattern))).eval()
    ours.load_state_dict(plain.state_dict())
    tokens = torch.randint(5, 30, (2, 16))
    real = (torch.arange(16) < torch.tensor([[16], [11]])).long()
    everywhere = (torch.arange(16) < count).long().expand(2, -1)
    with torch.no_grad():
        expected = theirs(tokens, attention_mask=real, global_attention_mask=everywhere).logits
        found, local = ours(tokens, real), plain(tokens, real)
    largest = float(expected.abs().max())
    assert largest > 1, "weights are loud"
    rows = real > 0
    torch.testing.assert_close(found[rows], expected[rows], rtol=0, atol=1e-5 * largest)
    assert float((local - found)[rows].abs().max()) > 0.01 * largest
    (alone,) = ours(tokens[1:, :11])
    torch.testing.assert_close(alone, found[1, :11], rtol=0, atol=1e-5 * largest)
    packed = torch.tensor([[1] * 11 + [2] * 16])
    both = ours(torch.cat([tokens[1:, :11], tokens[:1]], dim=1), packed)
    torch.testing.assert_close(both[0, :11], alone, rtol=0, atol=1e-5 * largest)
    torch.testing.assert_close(both[0, 11:], found[0], rtol=0, atol=1e-5 * largest)


@pytest.mark.parametrize("windows", [5, 0, [4], [4, 8, 8], [4, "8"], None])
def test_windows_that_cannot_be_are_named(windows: Any) -> None:
    theirs = {"model_type": "longformer", "attention_window": windows, "num_hidden_layers": 2}
    with pytest.raises(InputError, match=r"attention_window is .*: an even number of tokens for each of 2 layers"):
        longformer.config_from_hf(theirs)


def test_what_is_no_longformer_is_not_written_as_one() -> None:
    row = encoder_config(replace(ENCODERS["roberta-base"], n_layers=2))
    with pytest.raises(InputError, match=r"Longformer cannot hold .*window"):
        longformer.config_to_hf(row, pad=1, start=0, end=2)
    local = replace(row.stack.block, kind="longformer", window=9, global_tokens=1)
    with pytest.raises(InputError, match="Longformer cannot hold"):
        longformer.config_to_hf(replace(row, stack=replace(row.stack, block=local)), pad=1, start=0, end=2)
