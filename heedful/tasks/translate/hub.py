"""What stands beside the weights of a translator on the Hub: its tokenizers, and how it searches."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import decoders

from heedful.core.config import from_json
from heedful.data.spm import from_spm, read_spm
from heedful.data.tokenizer import Tokenizer
from heedful.decode.settings import Decoding
from heedful.errors import InputError
from heedful.exchange.hf.folder import CONFIG
from heedful.exchange.hub import (
    GENERATION,
    MERGES,
    SPM_LIMIT,
    TOKENIZER,
    TOKENIZER_CONFIG,
    Files,
    HubTokens,
    around,
    framed,
    generation_config,
    hub_tokenizer,
    read_tokenizer,
    space_before,
)
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heedful.run.folder import NUMBERS, read_piece_ids, tokenizer_files
from heedful.run.task import Hub, HubFiles
from heedful.store import files
from heedful.tasks.translate.use import Translator

SPM = ("source.spm", "target.spm")


def read_translator(folder: Path, said: Mapping[str, Any], config: Seq2SeqConfig) -> Files:
    """The tokenizer is a tokenizer.json for both sides; or a SentencePiece model a side, and their pieces' ids.

    `said`: their config.json, with the ids that it leaves out.
    """
    apart = (folder / NUMBERS).is_file() and not any((folder / name).is_file() for name in (TOKENIZER, MERGES))
    inner = None if apart else read_tokenizer(folder, framed=True)
    numbers = read_piece_ids(folder / NUMBERS) if inner is None else inner.get_vocab()
    tokens = HubTokens(folder, said, numbers, size=min(config.source.vocab_size, config.target.vocab_size))
    bos, eos = tokens.token("decoder_start"), tokens.token("eos")
    if bos is None or eos is None:
        raise InputError("decoder_start_token_id or eos_token_id is none of its tokens", where=str(folder / CONFIG))
    if tokens.names.get("separate_vocabs"):
        raise InputError("separate_vocabs cannot be read yet", where=str(folder))
    special = tokens.special(bos=bos, eos=eos)
    kept: Files = {}
    if inner is not None:
        (before, after), source = around(inner), Tokenizer(inner, special)
        target = source
    else:
        before, after = [], [eos]
        kept = {name: files.read_bytes(folder / name, limit=SPM_LIMIT) for name in SPM}
        controls = [name for name, index in numbers.items() if index in (bos, eos, special.pad, special.unk)]
        source, target = (
            Tokenizer(from_spm(read_spm(data, where=folder / name), numbers, controls), special, numbers)
            for name, data in kept.items()
        )
    decode = tokens.search(eos=eos, context_length=config.target.context_length)
    from_json(Decoding, decode, where=str(folder / GENERATION))  # which looks at the type of every value
    about = {
        "task": "translate",
        "source": str(tokens.names.get("source_lang") or "source"),
        "target": str(tokens.names.get("target_lang") or "target"),
        "before": before,
        "after": after,
        "begin": tokens.begin(),
        "forbidden": tokens.forbidden(),
        "decode": decode,
    }
    if "early_stopping" in tokens.searched:  # what is found is final when a beam is full: kept for the way back
        about["early_stopping"] = tokens.searched["early_stopping"]
    return kept | tokenizer_files(source, target) | {"task.json": about}


def write_translator(run: Path, translator: Translator) -> HubFiles:
    """Raises InputError for two tokenizers that did not come from SentencePiece."""
    source, target, about = translator.source, translator.target, translator.about
    eos, pad, decoding = target.eos, target.pad, translator.decoding()
    model = translator.model
    assert isinstance(model, Seq2Seq)  # no other family of the Hub translates
    longest = model.config.target.context_length
    if source.numbers is not None:
        made: Files = {name: files.read_bytes(run / name, limit=SPM_LIMIT) for name in (*SPM, NUMBERS)}
        made[TOKENIZER_CONFIG] = {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": about["source"],
            "target_lang": about["target"],
            "model_max_length": longest,
        }
        roles = {"eos": eos, "pad": pad, "unk": source.unk}
        made[TOKENIZER_CONFIG] |= {
            f"{role}_token": source.pieces([index])[0] for role, index in roles.items() if index is not None
        }
    elif source is target:
        before, after = translator.around
        inner = framed(source, before, after)
        if source.ours:
            inner.normalizer = space_before(source)
            inner.decoder = decoders.Sequence([inner.decoder, decoders.Strip(" ", 1, 0)])
        special = source.special
        roles = {"bos": [*before, special.bos][0], "eos": eos, "pad": special.pad, "unk": special.unk}
        made = hub_tokenizer(source, inner, roles | {"mask": special.mask}, longest=longest)
    else:
        raise InputError("its sides have a tokenizer each, for which the Hub has no words", where=str(run))
    search = {
        "decoder_start_token_id": target.bos,
        "forced_bos_token_id": next(iter(translator.begin), None),
        "eos_token_id": eos,
        "pad_token_id": pad,
        "num_beams": decoding.beam,
        "length_penalty": decoding.length_penalty,
        "no_repeat_ngram_size": decoding.no_repeat or None,
        "min_length": decoding.shortest + 1 if decoding.shortest else None,
        "max_length": longest if decoding.longest is None else decoding.longest + 1,
        "forced_eos_token_id": eos if decoding.forced_eos else None,
        "early_stopping": about.get("early_stopping", True if source.ours else None),
    }
    made[GENERATION] = generation_config(search, translator.forbidden)
    return HubFiles(made, {"start": target.bos, "end": eos, "pad": pad})


HUB = Hub(read_translator, write_translator)
