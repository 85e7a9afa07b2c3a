"""Tiny folders as on the Hub: large random weights, and tokenizers that are learnt from a few lines."""

import io
import json
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LongformerConfig,
    LongformerForMaskedLM,
    MarianConfig,
    MarianMTModel,
    ModernBertConfig,
    ModernBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
)

from heedful.data.spm import read_spm
from loud import make_loud

LINES = [
    "The small cat is sleeping near the window.",
    "My sister is reading a book, and he sings 123 songs!",
    "Déjà vu: a naïve café, 😀 and 二人.",
    "Der kleine Hund schläft; die Schwester liest ein Buch.",
]
CHAT: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,  # large weights multiply rounding errors: with three layers they approach 1e-5 in float32
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
TEXTS = [
    *LINES,
    "The small",
    " leading",
    "two  spaces \n\nand\tlines ",
    "é😀",
    "🙂 unseen ☃",
    "don't 'll x",
    "9",
    " ",
    "~",
]


Ours = TypeVar("Ours")


class Imported(NamedTuple, Generic[Ours]):
    """A model of theirs, its folder, and the run that was imported from it."""

    theirs: Any
    tokenizer: Any
    folder: Path
    run: Path
    ours: Ours


def gpt2_folder(folder: Path, *, kind: Any = GPT2LMHeadModel, **options: Any) -> Any:
    """The same token begins and ends a text, as in GPT-2, and none is put around a prompt."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    inner.train_from_iterator(LINES, trainer)
    inner.add_special_tokens(["<|endoftext|>"])
    end = inner.get_vocab_size() - 1
    ids = {"bos_token_id": end, "eos_token_id": end}
    config = GPT2Config(vocab_size=end + 1, n_positions=48, n_embd=16, n_layer=2, n_head=4, **ids, **options)
    names = {"tokenizer_class": "GPT2Tokenizer", "model_max_length": 48, "unk_token": "<|endoftext|>"}
    return _save(folder, kind(config), inner, names)


def llama_folder(folder: Path, **options: Any) -> LlamaForCausalLM:
    """Spaces are "▁", one is put before a text, and "<s>" before that; unknown characters are spelled in bytes. Folders
    have two variants of this: a model with grouped heads gets the newer one."""
    learned = tokenizers.Tokenizer(models.BPE())
    prepared = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    learned.normalizer = normalizers.Sequence(prepared)
    learned.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=90, show_progress=False))
    document = json.loads(learned.to_str())["model"]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *document["vocab"]]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    merges = [(first, second) for first, second in document["merges"]]
    inner = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if "num_key_value_heads" in options:
        inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        kind = "LlamaTokenizer"
    else:
        inner.normalizer = normalizers.Sequence(prepared)
        kind = "PreTrainedTokenizerFast"
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    inner.decoder = decoders.Sequence(steps)
    inner.add_special_tokens(["<unk>", "<s>", "</s>"])
    inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(pieces), max_position_embeddings=48, **sizes, **options)
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "tokenizer_class": kind}
    return _save(folder, LlamaForCausalLM(config), inner, names)


# How published byte-level vocabularies split texts before pieces are learnt.
CUT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TURNS = (
    "{% set role = {'user': 'user', 'assistant': 'model'} %}"
    "{{ bos_token }}{% for m in messages %}{{ '<start_of_turn>' + role[m.role] + '\n' + m.content | trim + "
    "'<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


def byte_chat_folder(folder: Path, config: Any, *, begun: bool, **options: Any) -> Any:
    """Byte-level pieces as in Qwen, or, with `begun`, as in Llama 3, where a token begins a text. After them come
    control tokens, one of which is not special; several of them end a text."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.normalizer = None if begun else normalizers.NFC()
    cut = pre_tokenizers.Split(tokenizers.Regex(CUT % ("{1,3}" if begun else "")), "isolated")
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator(
        LINES, trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, show_progress=False)
    )
    document = json.loads(inner.to_str())
    document["model"]["ignore_merges"] = begun
    inner = tokenizers.Tokenizer.from_str(json.dumps(document))
    inner.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    inner.add_tokens([tokenizers.AddedToken("<think>", special=False, normalized=False)])
    end, stop = (inner.token_to_id(f"<|{name}|>") for name in ("endoftext", "im_end"))
    bytes_alone = processors.ByteLevel(trim_offsets=False)
    frame = processors.TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", end)])
    inner.post_processor = processors.Sequence([bytes_alone, frame]) if begun else bytes_alone
    made = AutoModelForCausalLM.from_config(
        config(vocab_size=stop + 6, **CHAT | {"eos_token_id": [stop, end]} | options)
    )
    made.generation_config.update(eos_token_id=[stop, end], bos_token_id=end, pad_token_id=end)
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    names |= {"bos_token": "<|endoftext|>"} if begun else {"bos_token": None}
    (folder / "chat_template.jinja").parent.mkdir(parents=True, exist_ok=True)
    (folder / "chat_template.jinja").write_text(CHATML, encoding="utf-8")
    return _save(folder, made, inner, names)


def piece_chat_folder(folder: Path, config: Any, *, spaced: bool, **options: Any) -> Any:
    """Pieces of SentencePiece as in Gemma, or, with `spaced`, as in Mistral, with a space before a text; bytes for
    unknown characters."""
    learned = tokenizers.Tokenizer(models.BPE())
    learned.normalizer = normalizers.Replace(" ", "▁")
    learned.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=90, show_progress=False))
    document = json.loads(learned.to_str())["model"]
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    pieces = [*names, *(f"<0x{byte:02X}>" for byte in range(256)), *document["vocab"]]
    merges = [(first, second) for first, second in document["merges"]]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    inner = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if spaced:
        inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        inner.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)])
    else:
        inner.normalizer = normalizers.Replace(" ", "▁")
        inner.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        inner.decoder = decoders.Sequence(steps)
    inner.add_special_tokens(names)
    inner.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    ids = {"bos_token_id": 2, "eos_token_id": [1, 5], "pad_token_id": 0}
    made = AutoModelForCausalLM.from_config(config(vocab_size=len(pieces) + 2, **CHAT | ids | options))
    made.generation_config.update(**ids)
    (folder / "chat_template.jinja").parent.mkdir(parents=True, exist_ok=True)
    (folder / "chat_template.jinja").write_text(TURNS, encoding="utf-8")
    roles = {"bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>"}
    return _save(folder, made, inner, roles | {"tokenizer_class": "PreTrainedTokenizerFast"})


def spm(lines: list[str], size: int, **options: Any) -> bytes:
    """Trains a SentencePiece model."""
    import sentencepiece

    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=made,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return made.getvalue()


def marian_folder(folder: Path, **options: Any) -> MarianMTModel:
    """As in OPUS-MT: a SentencePiece model for each side, one list of ids for both; decoding begins with the padding
    token."""
    import sentencepiece

    sides = {"source.spm": spm(LINES[:2] * 9, 70), "target.spm": spm(LINES[2:] * 9, 80)}
    pieces = ["</s>", "<unk>", ">>de<<"]
    for data in sides.values():
        read = sentencepiece.SentencePieceProcessor(model_proto=data)
        pieces += [read.id_to_piece(i) for i in range(3, read.get_piece_size())]
    pieces.remove("▁a")  # a piece of the models that is not in the list of ids
    numbers = {piece: index for index, piece in enumerate(dict.fromkeys([*pieces, "<pad>"]))}
    pad = numbers["<pad>"]
    config = MarianConfig(
        vocab_size=len(numbers),
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=64,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=0,
        forced_eos_token_id=None,
        **options,
    )
    model = MarianMTModel(config).eval()
    make_loud(model, norm=1.0)
    nn.init.normal_(model.final_logits_bias, std=0.4)
    model.final_logits_bias[0, 0] += 1  # so that sentences end
    # Without the last, it would repeat one word again and again.
    model.generation_config.update(bad_words_ids=[[pad]], num_beams=2, max_length=64, no_repeat_ngram_size=2)
    model.save_pretrained(folder)
    for name, data in sides.items():
        (folder / name).write_bytes(data)
    (folder / "vocab.json").write_text(json.dumps(numbers))
    names = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return model


SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}


def bert_folder(folder: Path, kind: Any = BertForMaskedLM, *, bare: bool = False, **options: Any) -> Any:
    """WordPiece in lower case. `bare`: with a vocab.txt instead of a tokenizer.json."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    reads = normalizers.BertNormalizer(lowercase=True)
    splits = pre_tokenizers.BertPreTokenizer()
    words = {word for line in LINES for word, _ in splits.pre_tokenize_str(reads.normalize_str(line))}
    letters = {letter for word in words for letter in word}
    # Listed here, because their trainer does not learn the same pieces each time.
    pieces = [*names, *sorted(letters | words), *sorted(f"##{letter}" for letter in letters)]
    numbers = {piece: index for index, piece in enumerate(pieces)}
    inner = tokenizers.Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    inner.normalizer, inner.pre_tokenizer, inner.decoder = reads, splits, decoders.WordPiece()
    inner.add_special_tokens(names)
    frame = [("[CLS]", 2), ("[SEP]", 3)]
    single, pair = "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"
    inner.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=frame)
    size = inner.get_vocab_size()
    config = BertConfig(vocab_size=size, max_position_embeddings=40, **SMALL, **options)
    model = _save(folder, kind(config), inner, {"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    if bare:
        (folder / "tokenizer.json").unlink()
        pieces = "".join(f"{inner.id_to_token(index)}\n" for index in range(size))
        (folder / "vocab.txt").write_text(pieces, encoding="utf-8")
    return model


def distilbert_folder(folder: Path, kind: Any = DistilBertForMaskedLM, *, bare: bool = False, **options: Any) -> Any:
    """DistilBERT, with BERT's vocabulary."""
    size = bert_folder(folder, bare=bare).config.vocab_size
    sizes = {"dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 40}
    model = kind(DistilBertConfig(vocab_size=size, **sizes, **options))
    names = {"tokenizer_class": "DistilBertTokenizer", "model_input_names": ["input_ids", "attention_mask"]}
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True} | names))
    make_loud(model, norm=1.0)
    model.eval().save_pretrained(folder)
    return model


def roberta_folder(folder: Path, kind: Any = RobertaForMaskedLM, *, bare: bool = False, **options: Any) -> Any:
    """Byte-level BPE. `bare`: with a vocab.json and a merges.txt instead of a tokenizer.json."""
    inner = _byte_level()
    config = RobertaConfig(
        vocab_size=inner.get_vocab_size(), max_position_embeddings=42, type_vocab_size=1, **SMALL, **options
    )
    model = _save_bytes(folder, kind(config), inner, "RobertaTokenizer", bare=bare)
    model.base_model.embeddings.position_embeddings.weight.data[:2] = 0.0  # never looked up
    model.save_pretrained(folder)
    return model


def longformer_folder(folder: Path, kind: Any = LongformerForMaskedLM, **options: Any) -> Any:
    """RoBERTa's vocabulary, and windows of two sizes, which most texts are longer than."""
    inner = _byte_level()
    sizes = SMALL | {"vocab_size": inner.get_vocab_size(), "max_position_embeddings": 42, "type_vocab_size": 1}
    config = LongformerConfig(**sizes | {"attention_window": [4, 8]} | options)
    model = _save_bytes(folder, kind(config), inner, "RobertaTokenizer", bare=False)
    model.base_model.embeddings.position_embeddings.weight.data[:2] = 0.0  # never looked up
    model.save_pretrained(folder)
    return model


def modernbert_folder(folder: Path, kind: Any = ModernBertForMaskedLM, **options: Any) -> Any:
    """RoBERTa's vocabulary. Two layers: the first without a norm before its attention, the second with a window."""
    inner = _byte_level()
    ids = {"bos_token_id": 0, "cls_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}
    sizes = SMALL | {"vocab_size": inner.get_vocab_size(), "max_position_embeddings": 40, "local_attention": 6}
    config = ModernBertConfig(**sizes | ids | options)
    model = _save_bytes(folder, kind(config), inner, "PreTrainedTokenizerFast", bare=False)
    names = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | names | {"clean_up_tokenization_spaces": False}))
    return model


def bart_folder(folder: Path, *, bare: bool = False, **options: Any) -> BartForConditionalGeneration:
    """RoBERTa's vocabulary; decoding begins with the end token of a source, then its first token. `options` are those
    of the search."""
    inner = _byte_level()
    config = BartConfig(
        vocab_size=inner.get_vocab_size(),
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=80,
    )
    model = BartForConditionalGeneration(config)
    search = {"forced_bos_token_id": 0, "num_beams": 3, "no_repeat_ngram_size": 2, "early_stopping": True}
    model.generation_config.update(**search | {"forced_eos_token_id": None, "bad_words_ids": [[1]]} | options)
    _save_bytes(folder, model, inner, "BartTokenizer", bare=bare)
    nn.init.normal_(model.final_logits_bias, std=0.4)
    model.final_logits_bias[0, 2] += 1.5  # so that texts end
    for side in (model.model.encoder, model.model.decoder):
        side.embed_positions.weight.data[:2] = 0.0  # never looked up
    model.save_pretrained(folder)
    return model


def t5_folder(
    folder: Path, *, bare: bool = False, gated: bool = False, parted: bool = True, **options: Any
) -> T5ForConditionalGeneration:
    """Pieces of SentencePiece, and sentinels; decoding begins with the padding token. `bare`: with a spiece.model
    instead of a tokenizer.json; `gated`: version 1.1, and with `parted` False without an output matrix of its own, as
    their library makes new models. `options` are those of the search."""
    data = spm(LINES * 9, 120, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    read = read_spm(data)
    sentinels = [f"<extra_id_{n}>" for n in reversed(range(4))]
    theirs = T5Tokenizer(
        vocab=[*read.listed, *((name, 0.0) for name in sentinels)],
        _spm_precompiled_charsmap=read.charsmap,
        extra_ids=4,
        additional_special_tokens=sentinels,
    )
    config = T5Config(
        vocab_size=len(theirs),
        d_model=16,
        d_kv=4,
        d_ff=24,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu" if gated else "relu",
        tie_word_embeddings=not gated,
        decoder_start_token_id=0,
    )
    model = T5ForConditionalGeneration(config)
    if gated and parted:  # their class ties the output matrix, and unties it when a file has both
        model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    model.generation_config.update(bad_words_ids=[[0]], no_repeat_ngram_size=2, **options)
    make_loud(model, norm=1.0)
    model.eval().save_pretrained(folder)
    if bare:
        (folder / "spiece.model").write_bytes(data)
        names = {"tokenizer_class": "T5Tokenizer", "extra_ids": 4}
        (folder / "tokenizer_config.json").write_text(json.dumps(names))
    else:
        theirs.save_pretrained(folder)
    return model


def _byte_level() -> tokenizers.Tokenizer:
    """A tokenizer as RoBERTa's: the padding token is 1, and the mask is last."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    controls = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=310,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=controls,
        show_progress=False,
    )
    inner.train_from_iterator(LINES, trainer)
    mask = tokenizers.AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    inner.add_special_tokens([mask])
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return inner


def _save_bytes(folder: Path, model: Any, inner: tokenizers.Tokenizer, kind: str, *, bare: bool) -> Any:
    mask = {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False}
    _save(folder, model, inner, {"tokenizer_class": kind, "mask_token": mask | {"single_word": False}})
    if bare:
        (folder / "tokenizer.json").unlink()
        learned = json.loads(inner.to_str())["model"]
        numbers = learned["vocab"] | {"<mask>": inner.token_to_id("<mask>")}
        (folder / "vocab.json").write_text(json.dumps(numbers))
        merges = "".join(f"{' '.join(pair)}\n" for pair in learned["merges"])
        (folder / "merges.txt").write_text("#version: 0.2\n" + merges, encoding="utf-8")
    return model


def _save(folder: Path, model: Any, inner: tokenizers.Tokenizer, names: dict[str, Any]) -> Any:
    make_loud(model, norm=1.0)
    model.eval().save_pretrained(folder)
    inner.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return model
