"""A parser as a translator on the Hub: its words and its brackets become one vocabulary, because no pre-norm family
there has a vocabulary for each side. Words are never generated: their bias is minus infinity."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, decoders
from torch import Tensor

from heedful.data.tokenizer import BOS, EOS
from heedful.errors import InputError
from heedful.exchange.hf.rules import Recast
from heedful.exchange.hub import GENERATION, framed, generation_config, hub_tokenizer, space_before
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.run.task import Hub, HubFiles
from heedful.tasks.parse.use import Parser
from heedful.tasks.translate.exchange.hub import read_translator

CONTROLS = ("<no tree>", "<unknown bracket>", "<tree>", "</tree>")  # of the brackets' vocabulary, by id


def write_parser(run: Path, parser: Parser) -> HubFiles:
    """The files of the Hub. Raises InputError for a model whose output matrix is not tied to the brackets'
    embeddings."""
    config = parser.model.config
    if not isinstance(config, Seq2SeqConfig) or config.tied != "output":
        raise InputError("no family of the Hub has words and brackets with a matrix each", where=str(run))
    tokenizer, first = parser.tokenizer, config.source.vocab_size
    inner = framed(tokenizer, [], [tokenizer.eos])
    inner.normalizer = space_before(tokenizer)
    inner.decoder = decoders.Sequence([inner.decoder, decoders.Strip(" ", 1, 0)])
    names = [f" {name}" for name in (*CONTROLS, *parser.brackets.names[len(CONTROLS) :])]  # no piece contains a space
    inner.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    start, end, pad = first + BOS, first + EOS, tokenizer.pad
    longest = config.target.context_length
    made = hub_tokenizer(
        tokenizer, inner, {"bos": start, "eos": end, "pad": pad, "unk": tokenizer.unk}, longest=longest
    )
    search = {
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "pad_token_id": pad,
        "num_beams": parser.spec.beam,
        "length_penalty": parser.spec.length_penalty,
        "max_length": longest,
        "early_stopping": True,
    }
    ids, notes = {"start": start, "end": end, "pad": pad}, ["there a search may say what is no tree"]
    return HubFiles(made | {GENERATION: generation_config(search, [])}, ids, notes=notes)


def one_vocabulary(parser: Parser) -> Recast[Any]:
    """An equivalent model whose vocabulary has the brackets after the words."""
    config = parser.model.config
    if not isinstance(config, Seq2SeqConfig) or config.tied != "output":
        return Recast(config, dict)
    words, brackets = config.source.vocab_size, config.target.vocab_size

    def tensors(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found = dict(ours)
        said = found.pop("target.tokens.weight")
        found["source.tokens.weight"] = torch.cat([ours["source.tokens.weight"], said])
        bias = ours.get("head.bias", said.new_zeros(brackets))
        found["head.bias"] = torch.cat([bias.new_full((words,), -torch.inf), bias])
        return found

    sides = {side: replace(getattr(config, side), vocab_size=words + brackets) for side in ("source", "target")}
    return Recast(replace(config, tied="all", output_bias=True, **sides), tensors)


HUB = Hub(read_translator, write_parser, one_vocabulary)
