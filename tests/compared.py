"""An encoder-decoder of ours and the equivalent one of Hugging Face's, with large random weights, and their
comparisons."""

import json
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor
from transformers import LogitsProcessorList

from heedful.core import attention, dropout
from heedful.decode.rules import NoRepeat
from heedful.decode.search import beam, greedy
from heedful.exchange.hf.rules import Rule, to_ours, to_theirs
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from nearly import close, close_gradients, copy_weights

SOURCE_LENGTHS, TARGET_LENGTHS = (7, 4, 1), (3, 6, 5)
LONGEST = 12  # the most generated tokens


class Special(NamedTuple):
    pad: int
    start: int
    end: int


class Pair(NamedTuple):
    theirs: Any
    ours: Seq2Seq
    rules: tuple[Rule, ...]
    special: Special

    def weights(self) -> dict[str, Tensor]:
        return {name: weight.detach() for name, weight in self.ours.named_parameters()}

    def learnt(self) -> dict[str, Tensor]:
        """Their tensors, except for tables of sines."""
        fixed = {name for name, weight in self.theirs.named_parameters() if not weight.requires_grad}
        return {name: value for name, value in self.theirs.state_dict().items() if name not in fixed}


class Batch(NamedTuple):
    source: Tensor
    target: Tensor
    source_valid: Tensor
    target_valid: Tensor


def pair_of(theirs: Any, config: Seq2SeqConfig, rules: tuple[Rule, ...], special: Special) -> Pair:
    ours = Seq2Seq(config).eval()
    copy_weights(ours, rules, theirs.state_dict())
    return Pair(theirs.eval(), ours, rules, special)


def padded(lengths: tuple[int, ...], vocab: int, pad: int) -> tuple[Tensor, Tensor]:
    valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randint(4, vocab, valid.shape).masked_fill(~valid, pad), valid


def batch(pair: Pair) -> Batch:
    config, pad = pair.ours.config, pair.special.pad
    source, source_valid = padded(SOURCE_LENGTHS, config.source.vocab_size, pad)
    target, target_valid = padded(TARGET_LENGTHS, config.target.vocab_size, pad)
    target[:, 0] = pair.special.start
    return Batch(source, target, source_valid, target_valid)


def both_logits(pair: Pair, given: Batch) -> tuple[Tensor, Tensor]:
    """The logits of the target tokens that are not padding."""
    theirs = pair.theirs(
        input_ids=given.source,
        attention_mask=given.source_valid.long(),
        decoder_input_ids=given.target,
        decoder_attention_mask=given.target_valid.long(),
        use_cache=False,
    ).logits
    ours = pair.ours(given.source, given.target, given.source_valid.long(), given.target_valid.long())
    return ours[given.target_valid], theirs[given.target_valid]


def check_logits(pair: Pair) -> None:
    given = batch(pair)
    ours, theirs = both_logits(pair, given)
    assert float(theirs.detach().abs().max()) > 3, "weights are loud"
    close(ours, theirs)
    theirs = pair.theirs(input_ids=given.source[:1], decoder_input_ids=given.target[1:2], use_cache=False).logits
    close(pair.ours(given.source[:1], given.target[1:2]), theirs, "without padding")


def check_gradients(pair: Pair) -> None:
    """The gradients of the summed cross-entropy; theirs, converted by the rules, are equal to ours."""
    given = batch(pair)
    for model in pair[:2]:
        model.double()
    buffers = [(name, part.requires_grad_()) for name, part in pair.theirs.named_buffers() if "logits_bias" in name]
    ours, theirs = both_logits(pair, given)
    words = torch.randint(4, ours.shape[1], (len(ours),))
    F.cross_entropy(ours, words, reduction="sum").backward()
    F.cross_entropy(theirs, words, reduction="sum").backward()
    own = dict(pair.ours.named_parameters())
    gradients = {
        name: weight.grad for name, weight in [*pair.theirs.named_parameters(), *buffers] if weight.requires_grad
    }
    expected = to_ours(pair.rules, gradients, own)
    close_gradients(own, expected)


def check_cached_steps(pair: Pair) -> None:
    """One token at a time: theirs with and without their cache, ours with both kinds of cache."""
    given = batch(pair)
    source, valid = given.source, given.source_valid.long()
    tokens = torch.randint(4, pair.ours.config.target.vocab_size, (3, 9))
    takes = signature(type(pair.theirs).forward).parameters
    cache = "cache" if "cache" in takes else "past_key_values"  # its name before transformers 5.24
    with torch.no_grad():
        whole = pair.theirs(input_ids=source, attention_mask=valid, decoder_input_ids=tokens, use_cache=False).logits
        states, past = [pair.ours.start(source, valid, size) for size in (None, 9)], None
        for t in range(9):
            theirs = pair.theirs(
                input_ids=source,
                attention_mask=valid,
                decoder_input_ids=tokens[:, t : t + 1],
                use_cache=True,
                **{cache: past},
            )
            past = theirs[cache]
            for i, state in enumerate(states):
                logits, states[i] = pair.ours.step(tokens[:, t], state)
                close(logits, theirs.logits[:, 0], f"step {t}")
                close(logits, whole[:, t], f"step {t} of the whole")


def check_generated(pair: Pair, *, width: int, first: int | None = None) -> None:
    """Their greedy (`width` 1) or beam search and ours give the same tokens, with increasing probability of the end on
    both sides. A forced `first` token has no cost in theirs but its probability in ours, which a mean over lengths
    would show."""
    given, special = batch(pair), pair.special
    source, valid = given.source, given.source_valid.long()
    length_penalty = 1.0 if first is None else 0.0
    all_found = []
    for push in (0.0, 4.0, 6.0):
        more = torch.zeros(pair.ours.config.target.vocab_size)
        more[special.pad], more[special.end] = -1e4, push
        with torch.no_grad():
            found = pair.theirs.generate(
                source,
                attention_mask=valid,
                max_new_tokens=LONGEST,
                num_beams=width,
                do_sample=False,
                no_repeat_ngram_size=2,  # random weights would repeat one token forever
                forced_bos_token_id=first,
                logits_processor=LogitsProcessorList([lambda tokens, scores, more=more: scores + more]),
                **({"early_stopping": True, "length_penalty": length_penalty} if width > 1 else {}),
            )
        how: dict[str, Any] = {
            "bos": special.start,
            "eos": special.end,
            "longest": LONGEST,
            "prefix": None if first is None else [[first]] * len(source),
            "rules": [NoRepeat(2), lambda history, scores, more=more: scores + more],
        }
        if width == 1:
            ours = greedy(pair.ours, source, valid, **how)
        else:
            as_there: dict[str, Any] = {"length_penalty": length_penalty, "finished_first": False}
            best = beam(pair.ours, source, valid, beam=width, **as_there, **how)
            ours = [own[0] for own in best]
        for row, hypothesis in zip(found[:, 1:].tolist(), ours, strict=True):
            end = row.index(special.end) if special.end in row else LONGEST
            assert list(hypothesis.tokens) == row[:end]
            assert hypothesis.finished == (special.end in row)
        all_found += ours
    assert {hypothesis.finished for hypothesis in all_found} == {False, True}


def check_dropout(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout is applied at the same points: with dropout that multiplies by 1 - p instead of sampling, training gives
    the same logits, which differ from those in use. Their attention must be the explicit implementation."""

    def shrink(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        return x * (1 - p) if training else x

    monkeypatch.setattr(F, "dropout", shrink)
    monkeypatch.setattr(dropout, "dropout", shrink)
    monkeypatch.setattr(attention, "drop", shrink)
    given = batch(pair)
    in_use = both_logits(pair, given)[0]
    for model in pair[:2]:
        model.train()
    ours, theirs = both_logits(pair, given)
    close(ours, theirs)
    assert float((ours - in_use).detach().abs().max()) > 0.1


def check_there_and_back(pair: Pair) -> None:
    """Exported and imported again, the weights are the same, bit for bit, and the exported names are theirs."""
    own = pair.weights()
    exported, state = to_theirs(pair.rules, own), pair.learnt()
    assert exported.keys() == state.keys()
    assert all(torch.equal(value, state[name]) for name, value in exported.items())
    again = to_ours(pair.rules, exported, own)
    assert again.keys() == own.keys()
    assert all(torch.equal(value, own[name]) for name, value in again.items())


def check_tied_once(pair: Pair) -> None:
    """Their file may hold tied matrices once, as safetensors does: under any of their names."""
    own, state = pair.weights(), pair.learnt()
    for names in (list(state), list(reversed(state))):
        once: dict[int, str] = {}
        for name in names:
            once.setdefault(state[name].data_ptr(), name)
        found = to_ours(pair.rules, {name: state[name] for name in once.values()}, own)
        assert all(torch.equal(value, own[name]) for name, value in found.items())


def export(folder: Path, model: Seq2Seq, rules: tuple[Rule, ...], config: dict[str, Any]) -> Path:
    """Writes a folder that their library reads."""
    own = {name: weight.detach() for name, weight in model.named_parameters()}
    tensors = {name: tensor.clone() for name, tensor in to_theirs(rules, own).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    return folder
