"""What published folders of the Hub say beside what makes the model: it changes nothing, or is refused by its name."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import (
    AutoTokenizer,
    BertForSequenceClassification,
    BertForTokenClassification,
    PegasusConfig,
    PegasusForConditionalGeneration,
    RobertaForQuestionAnswering,
    SegformerConfig,
    SwinConfig,
    ViTConfig,
    ViTModel,
)

import heedful
from heedful.errors import InputError, StorageError
from heedful.exchange.families import FAMILIES
from heedful.verbs.exchange import import_model
from hub import (
    LINES,
    TEXTS,
    bart_folder,
    bert_folder,
    distilbert_folder,
    gpt2_folder,
    llama_folder,
    marian_folder,
    roberta_folder,
    spm,
    t5_folder,
)
from loud import make_loud

# What files of the library's second major version write of any model, and those of its fourth of one inside another.
SECOND = {
    "finetuning_task": None,
    "output_past": True,
    "pruned_heads": {},
    "torchscript": False,
    "use_bfloat16": False,
    "is_decoder": False,
}
FOURTH: dict[str, Any] = {
    "add_cross_attention": False,
    "bad_words_ids": None,
    "begin_suppress_tokens": None,
    "cross_attention_hidden_size": None,
    "diversity_penalty": 0.0,
    "do_sample": False,
    "early_stopping": False,
    "encoder_no_repeat_ngram_size": 0,
    "exponential_decay_length_penalty": None,
    "forced_bos_token_id": None,
    "length_penalty": 1.0,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "num_beam_groups": 1,
    "num_return_sequences": 1,
    "output_scores": False,
    "prefix": None,
    "problem_type": None,
    "pruned_heads": {},
    "remove_invalid_values": False,
    "repetition_penalty": 1.0,
    "return_dict_in_generate": False,
    "sep_token_id": None,
    "suppress_tokens": None,
    "task_specific_params": None,
    "temperature": 1.0,
    "tf_legacy_loss": False,
    "tie_encoder_decoder": False,
    "tokenizer_class": None,
    "top_k": 50,
    "top_p": 1.0,
    "torchscript": False,
    "typical_p": 1.0,
    "use_bfloat16": False,
}
MAKERS = {
    "bart": bart_folder,
    "bert": bert_folder,
    "distilbert": distilbert_folder,
    "gpt2": gpt2_folder,
    "llama": llama_folder,
    "marian": marian_folder,
    "roberta": roberta_folder,
    "t5": t5_folder,
}
# Of models that are often asked for.
SAID: dict[str, tuple[Any, dict[str, Any]]] = {
    "stars": (
        lambda folder: bert_folder(folder, BertForSequenceClassification, num_labels=5),
        {"_num_labels": 5, "directionality": "bidi", "finetuning_task": "sentiment-analysis", "output_past": True},
    ),
    "names of persons": (
        lambda folder: bert_folder(folder, BertForTokenClassification, num_labels=9),
        {"_num_labels": 9, "output_past": True},
    ),
    "answers": (
        lambda folder: roberta_folder(folder, RobertaForQuestionAnswering),
        {"language": "english", "name": "Roberta"},
    ),
    "rankings": (
        lambda folder: bert_folder(folder, BertForSequenceClassification, num_labels=1),
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.1.0"}},
    ),
    "a larger GPT-2": (gpt2_folder, {"n_ctx": 48, "n_special": 0, "predict_special_tokens": True, "output_past": True}),
    "made smaller by others": (llama_folder, {"unsloth_fixed": True, "unsloth_version": "2024.9"}),
}


def runs_of(folder: Path, more: dict[str, Any], tmp_path: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files of two runs: of the folder as it is, and where its config.json says more."""
    import_model(folder, tmp_path / "plain")
    path = folder / "config.json"
    path.write_text(json.dumps(more | json.loads(path.read_text())))
    import_model(folder, tmp_path / "told")
    plain, told = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("plain", "told"))
    return plain, told


@pytest.mark.parametrize("more", [SECOND, FOURTH], ids=["second", "fourth"])
@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_what_old_files_say_of_every_model_changes_nothing(kind: str, more: dict[str, Any], tmp_path: Path) -> None:
    MAKERS[kind](tmp_path / "theirs")
    plain, told = runs_of(tmp_path / "theirs", more, tmp_path)
    assert told == plain


@pytest.mark.parametrize("theirs", [ViTConfig(), SegformerConfig(), SwinConfig()], ids=["vit", "segformer", "swin"])
@pytest.mark.parametrize("more", [SECOND, FOURTH | {"tie_word_embeddings": True}], ids=["second", "fourth"])
def test_and_nothing_of_models_of_pictures(theirs: Any, more: dict[str, Any]) -> None:
    plain = theirs.to_dict()
    read = FAMILIES[theirs.model_type].config_from_hf
    assert read(more | plain) == read(plain)


def test_a_vision_transformer_without_classes_is_told_so(tmp_path: Path) -> None:
    """As those that others are to be tuned from: their names lack what begins those of a classifier."""
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    ViTModel(ViTConfig(image_size=8, patch_size=4, **sizes)).save_pretrained(tmp_path / "theirs")
    with pytest.raises(InputError, match="without a head that tells classes"):
        import_model(tmp_path / "theirs", tmp_path / "run")


@pytest.mark.parametrize("kind", sorted(SAID))
def test_what_a_publisher_says_changes_nothing(kind: str, tmp_path: Path) -> None:
    make, more = SAID[kind]
    make(tmp_path / "theirs")
    plain, told = runs_of(tmp_path / "theirs", more, tmp_path)
    assert told == plain


@pytest.mark.parametrize(
    "said", [{"pruned_heads": {"0": [1]}}, {"add_cross_attention": True}, {"tie_encoder_decoder": True}]
)
def test_what_would_make_another_model_is_refused(said: dict[str, Any], tmp_path: Path) -> None:
    roberta_folder(tmp_path / "theirs")
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | said))
    with pytest.raises(InputError, match=f"{next(iter(said))} is .*: only"):
        import_model(tmp_path / "theirs", tmp_path / "run")


def test_an_import_tells_how_an_old_file_draws(tmp_path: Path) -> None:
    """Of a search their library looks into config.json, where there is no generation_config.json."""
    gpt2_folder(tmp_path / "theirs")
    (tmp_path / "theirs" / "generation_config.json").unlink()
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(FOURTH | json.loads(path.read_text()) | {"do_sample": True, "top_p": 0.9}))
    told = import_model(tmp_path / "theirs", tmp_path / "run").notes
    assert told == ("config.json says top_k=50 top_p=0.9: a run does not keep that, say it when you ask",)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_a_tokenizer_that_does_more_than_its_list_is_refused(file: str, tmp_path: Path) -> None:
    """A Japanese BERT cuts a text into words by a library before it looks up pieces."""
    bert_folder(tmp_path / "theirs", bare=True)
    for name in ("config.json", "tokenizer_config.json"):
        path = tmp_path / "theirs" / name
        own = {key: value for key, value in json.loads(path.read_text()).items() if key != "tokenizer_class"}
        own |= {"tokenizer_class": "BertJapaneseTokenizer"} if name == file else {}
        path.write_text(json.dumps(own))
    with pytest.raises(InputError, match="tokenizer_class is 'BertJapaneseTokenizer'"):
        import_model(tmp_path / "theirs", tmp_path / "run")


def with_added(folder: Path, model: Any, how: str, first: int) -> None:
    """Two tokens from this id on, of which the first is special, as folders of two ages tell of them."""
    model.resize_token_embeddings(max(model.config.vocab_size, first + 2), mean_resizing=False)
    model.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    names = json.loads(path.read_text()) | {"additional_special_tokens": ["<speaker>"]}
    if how == "added_tokens.json":
        (folder / how).write_text(json.dumps({"newword": first + 1, "<speaker>": first}))
    else:
        sides = {"lstrip": False, "rstrip": False, "single_word": False}
        one = {"content": "<speaker>", "normalized": False, "special": True} | sides
        other = {"content": "newword", "normalized": True, "special": False} | sides
        names["added_tokens_decoder"] = {str(first): one, str(first + 1): other}
    path.write_text(json.dumps(names))


@pytest.mark.parametrize("how", ["added_tokens.json", "added_tokens_decoder"])
@pytest.mark.parametrize("make", [bert_folder, roberta_folder, bart_folder, t5_folder], ids=lambda make: make.__name__)
def test_tokens_that_were_added_to_bare_lists(make: Any, how: str, tmp_path: Path) -> None:
    model = make(tmp_path / "theirs", bare=True)
    with_added(tmp_path / "theirs", model, how, len(AutoTokenizer.from_pretrained(tmp_path / "theirs")))
    theirs = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours = heedful.load(tmp_path / "run")
    texts = ["The <speaker> small newword cat", "newword", "<speaker>a newwordnewword", *TEXTS]
    own = ours.source if make in (bart_folder, t5_folder) else ours.tokenizer
    found = theirs(texts, add_special_tokens=False).input_ids
    assert own.encode_whole(texts) == found
    assert [own.decode_whole(ids) for ids in found] == theirs.batch_decode(found, skip_special_tokens=True)


@pytest.mark.parametrize("how", ["added_tokens.json", "added_tokens_decoder"])
def test_added_tokens_that_have_no_place_are_refused(how: str, tmp_path: Path) -> None:
    model = bert_folder(tmp_path / "behind", bare=True)
    with_added(tmp_path / "behind", model, how, model.config.vocab_size + 2)
    with pytest.raises(InputError, match=r"'<speaker>' has the id \d+, and by the lists it would be \d+"):
        import_model(tmp_path / "behind", tmp_path / "run")
    model = marian_folder(tmp_path / "apart")
    with_added(tmp_path / "apart", model, how, model.config.vocab_size)
    with pytest.raises(InputError, match=r"the added token '\S+' is not in vocab\.json"):
        import_model(tmp_path / "apart", tmp_path / "run")


@pytest.mark.parametrize("said", [{"a": {}}, {"7": "b"}, {"7": {"lstrip": False}}, ["a"]])
def test_added_tokens_that_are_none(said: Any, tmp_path: Path) -> None:
    bert_folder(tmp_path / "theirs", bare=True)
    path = tmp_path / "theirs" / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"added_tokens_decoder": said}))
    with pytest.raises(StorageError, match="lists added tokens, which are none"):
        import_model(tmp_path / "theirs", tmp_path / "run")


def test_pieces_of_pegasus_have_its_ids(tmp_path: Path) -> None:
    """They come behind the masks and reserved tokens of its training, which the list of pieces has not."""
    pieces = spm(LINES * 9, 90, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = PegasusConfig(vocab_size=190, d_model=16, max_position_embeddings=64, **sizes, **heads)
    model = PegasusForConditionalGeneration(config).eval()
    make_loud(model, norm=1.0)
    model.save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "spiece.model").write_bytes(pieces)
    theirs = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours = heedful.load(tmp_path / "run")
    texts = [text for text in [*TEXTS, "a<mask_1>b", "<unk_2>"] if text == text.rstrip()]
    before, after = ours.around
    found = [[*before, *ids, *after] for ids in ours.source.encode_whole(texts)]
    assert found == theirs(texts).input_ids
    assert (ours.source.pad, ours.source.eos, ours.source.unk) == (0, 1, theirs.unk_token_id)
    assert [ours.target.decode_whole(ids) for ids in found] == theirs.batch_decode(found, skip_special_tokens=True)
