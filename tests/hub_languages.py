"""Tiny folders of multilingual models as on the Hub: large random weights, and a vocabulary that is learnt from a few
lines, with the names of languages where they are translators."""

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import models, pre_tokenizers, trainers
from torch import nn
from transformers import (
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MBart50Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    MT5Config,
    MT5ForConditionalGeneration,
    NllbTokenizer,
    T5Tokenizer,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaTokenizer,
)
from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES

from heedful.data.spm import read_spm
from hub import LINES, spm
from loud import make_loud

SMALL = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 80,
}
CONTROLS = ["<s>", "<pad>", "</s>", "<unk>"]
FLORES = ["eng_Latn", "deu_Latn", "fra_Latn", "zho_Hans", "zho_Hant"]
Made = tuple[Any, Any]  # their model, and its tokenizer


def mbart_folder(folder: Path, *, fifty: bool = True, bare: bool = False, **options: Any) -> Made:
    """In mBART-50 the language comes before a text; in the first mBART after its end, and the target's begins decoding.
    `bare`: with a sentencepiece.bpe.model instead of a tokenizer.json."""
    data = spm(LINES * 9, 120)
    read = read_spm(data)
    direction = {"src_lang": "en_XX", "tgt_lang": "de_DE"}
    if fifty:
        theirs = MBart50Tokenizer(vocab=list(read.listed), _spm_precompiled_charsmap=read.charsmap, **direction)
        start = {"decoder_start_token_id": 2, "forced_bos_token_id": theirs.convert_tokens_to_ids("de_DE")}
    else:
        whole = [*((name, 0.0) for name in CONTROLS), *read.listed[3:]]
        names = (*FAIRSEQ_LANGUAGE_CODES, "<mask>")
        theirs = MBartTokenizer(vocab=[*whole, *((name, 0.0) for name in names)], **direction)
        start = {"decoder_start_token_id": theirs.convert_tokens_to_ids("de_DE"), "forced_bos_token_id": None}
    config = MBartConfig(vocab_size=len(theirs), scale_embedding=True, **SMALL)
    model = MBartForConditionalGeneration(config)
    _loud(model)
    for side in (model.model.encoder, model.model.decoder):
        side.embed_positions.weight.data[:2] = 0.0  # never looked up
    nn.init.normal_(model.final_logits_bias, std=0.4)
    model.final_logits_bias[0, 2] += 0.5  # so that texts end
    _saved(folder, model, theirs, start | options)
    if bare:
        (folder / "tokenizer.json").unlink()
        (folder / "sentencepiece.bpe.model").write_bytes(data)
    return model, theirs


def nllb_folder(folder: Path, *, legacy: bool = False, **options: Any) -> Made:
    """BPE; the source's language comes before a text (`legacy`: after its end); the target's is generated first."""
    learnt = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    learnt.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    learnt.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=110, special_tokens=CONTROLS, show_progress=False))
    document = json.loads(learnt.to_str())["model"]
    names = [*sorted(document["vocab"], key=document["vocab"].__getitem__), *FLORES, "<mask>"]
    theirs = NllbTokenizer(
        vocab={name: index for index, name in enumerate(names)},
        merges=[(one, other) for one, other in document["merges"]],
        extra_special_tokens=FLORES,
        src_lang="eng_Latn",
        tgt_lang="deu_Latn",
        legacy_behaviour=legacy,
    )
    model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=len(names), **SMALL))
    _loud(model)
    _saved(folder, model, theirs, {"forced_bos_token_id": names.index("deu_Latn")} | options)
    return model, theirs


def m2m100_folder(folder: Path, **options: Any) -> Made:
    """A SentencePiece model of BPE, a list of ids without languages, and the languages after them."""
    data = spm(LINES * 9, 120, model_type="bpe")
    pieces = [piece for piece, _ in read_spm(data).listed[3:] if piece != "▁b"]  # a piece outside the list of ids
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate([*CONTROLS, *pieces])}))
    (folder / "sentencepiece.bpe.model").write_bytes(data)
    theirs = M2M100Tokenizer(
        str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"), src_lang="en", tgt_lang="de"
    )
    size = len(pieces) + 4 + len(theirs.lang_code_to_id) + 8
    model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=size, **SMALL))
    _loud(model)
    _saved(folder, model, theirs, {"forced_bos_token_id": theirs.get_lang_id("de")} | options)
    return model, theirs


def xlm_roberta_folder(folder: Path, kind: Any = XLMRobertaForMaskedLM, *, bare: bool = False, **options: Any) -> Any:
    """The first mBART's vocabulary without its languages. `bare`: with a sentencepiece.bpe.model only."""
    data = spm(LINES * 9, 120)
    read = read_spm(data)
    pieces = [*((name, 0.0) for name in CONTROLS), *read.listed[3:], ("<mask>", 0.0)]
    theirs = XLMRobertaTokenizer(vocab=pieces, _spm_precompiled_charsmap=read.charsmap)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"max_position_embeddings": 122, "type_vocab_size": 1}
    config = XLMRobertaConfig(vocab_size=len(pieces), **sizes, **options)
    model = kind(config)
    _loud(model)
    model.base_model.embeddings.position_embeddings.weight.data[:2] = 0.0  # never looked up
    model.save_pretrained(folder)
    theirs.save_pretrained(folder)
    if bare:
        (folder / "tokenizer.json").unlink()
        (folder / "sentencepiece.bpe.model").write_bytes(data)
    return model


def mt5_folder(folder: Path, **options: Any) -> Made:
    """An output matrix of its own, and a prefix per direction."""
    data = spm(LINES * 9, 120, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    read = read_spm(data)
    theirs = T5Tokenizer(vocab=list(read.listed), _spm_precompiled_charsmap=read.charsmap, extra_ids=0)
    config = MT5Config(vocab_size=len(theirs), d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4)
    names = {"en_to_de": "English to German", "en_to_fr": "English to French"}
    config.task_specific_params = {f"translation_{key}": {"prefix": f"translate {own}: "} for key, own in names.items()}
    model = MT5ForConditionalGeneration(config)
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    _loud(model)
    _saved(folder, model, theirs, options)
    return model, theirs


def _loud(model: Any) -> None:
    make_loud(model, norm=1.0)
    model.eval()


def _saved(folder: Path, model: Any, theirs: Any, search: dict[str, Any]) -> None:
    pad = model.config.pad_token_id
    model.generation_config.update(no_repeat_ngram_size=2, forced_eos_token_id=None, bad_words_ids=[[pad]], **search)
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id
    model.save_pretrained(folder)
    theirs.save_pretrained(folder)
