"""Tiny folders as the Hub has them: loud random weights, and tokenizers learnt from a few lines."""

import io
import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MarianConfig, MarianMTModel

LINES = [
    "The small cat is sleeping near the window.",
    "My sister is reading a book, and he sings 123 songs!",
    "Déjà vu: a naïve café, 😀 and 二人.",
    "Der kleine Hund schläft; die Schwester liest ein Buch.",
]
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


def loud(model: nn.Module) -> None:
    """N(0, 0.4) in every matrix and bias, N(1, 0.4) in every norm."""
    for name, weight in model.named_parameters():
        if weight.requires_grad:  # all but sines
            norm = ("norm" in name or "ln_" in name) and "weight" in name
            nn.init.normal_(weight, mean=1.0 if norm else 0.0, std=0.4)


def gpt2_folder(folder: Path, **options: Any) -> GPT2LMHeadModel:
    """One token begins and ends a text, as in GPT-2, and none is put around a prompt."""
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
    return _save(folder, GPT2LMHeadModel(config), inner, names)


def llama_folder(folder: Path, **options: Any) -> LlamaForCausalLM:
    """Spaces are "▁", one is put before a text, and "<s>" before that; what is not known is spelled in bytes. In one
    of the two ways that folders have: a model with grouped heads has the newer."""
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


def spm(lines: list[str], size: int, **options: Any) -> bytes:
    """A SentencePiece model."""
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
    """As OPUS-MT: a SentencePiece model a side, one list of ids for both, decoding begins with the padding."""
    import sentencepiece

    sides = {"source.spm": spm(LINES[:2] * 9, 70), "target.spm": spm(LINES[2:] * 9, 80)}
    pieces = ["</s>", "<unk>", ">>de<<"]
    for data in sides.values():
        read = sentencepiece.SentencePieceProcessor(model_proto=data)
        pieces += [read.id_to_piece(i) for i in range(3, read.get_piece_size())]
    pieces.remove("▁a")  # a piece of the models that the list of ids lacks
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
    loud(model)
    nn.init.normal_(model.final_logits_bias, std=0.4)
    model.final_logits_bias[0, 0] += 1  # so that sentences end
    # Without the last, it would say one word again and again.
    model.generation_config.update(bad_words_ids=[[pad]], num_beams=2, max_length=64, no_repeat_ngram_size=2)
    model.save_pretrained(folder)
    for name, data in sides.items():
        (folder / name).write_bytes(data)
    (folder / "vocab.json").write_text(json.dumps(numbers))
    names = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return model


def _save(folder: Path, model: Any, inner: tokenizers.Tokenizer, names: dict[str, Any]) -> Any:
    loud(model)
    model.eval().save_pretrained(folder)
    inner.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return model
