"""The most likely text: by beam search, the best of several that were drawn, and where several tokens end a text."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from commands import heed
from heedful.data.tokenizer import train_tokenizer
from heedful.decode.search import beam
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.tasks.generate.search import likelihood_score
from heedful.tasks.generate.use import LanguageModel
from loud import make_loud
from saved import save_run

TOKENIZER = train_tokenizer(["abcdefgh ijkl"] * 3, kind="chars", size=300)
PROMPTS = ["", "a", "bad cab", "h", "face of"]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    torch.manual_seed(3)
    row = replace(LANGUAGE_MODELS["llama-nano"], n_layers=2, d_model=16, n_heads=2, kv_heads=1, d_ff=24)
    made = make_model(lm_config(row, vocab_size=TOKENIZER.size, context_length=24)).eval()
    make_loud(made)
    letters = [ids[0] for ids in TOKENIZER.encode_whole([*"abcdefgh"])]
    never = [index for index in range(TOKENIZER.size) if index not in letters and index != TOKENIZER.bos]
    return LanguageModel(made, TOKENIZER, {"task": "generate", "forbidden": never})


def with_ends(model: LanguageModel, *ends: int) -> LanguageModel:
    return LanguageModel(model.model, model.tokenizer, model.about | {"end": ends[0], "ends": [*ends]})


def test_a_beam_of_one_is_greedy(model: LanguageModel) -> None:
    greedy = model.generate(PROMPTS, tokens=9, temperature=0.0)
    for batch in (1, 32):
        for (found,), (expected,) in zip(model.generate(PROMPTS, tokens=9, beam=1, batch=batch), greedy, strict=True):
            assert found[:3] == expected[:3]
            assert found.logprobs == pytest.approx(expected.logprobs, abs=1e-5)
    penalised = {"repetition_penalty": 1.7, "presence_penalty": 0.5}
    found = model.generate(PROMPTS, tokens=9, beam=1, **penalised)
    expected = model.generate(PROMPTS, tokens=9, temperature=0.0, **penalised)
    assert [one.tokens for (one,) in found] == [one.tokens for (one,) in expected] != [one.tokens for (one,) in greedy]
    how: dict[str, Any] = {"tokens": 9, "beam": 3, "repetition_penalty": 1.7}
    assert model.generate(PROMPTS, **how) == [model.generate([prompt], **how)[0] for prompt in PROMPTS]


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_in_a_batch_is_that_of_each_prompt_alone(model: LanguageModel, length_penalty: float) -> None:
    found = model.generate(PROMPTS, tokens=7, beam=4, samples=3, length_penalty=length_penalty)
    likelier = 0
    for prompt, own in zip(PROMPTS, found, strict=True):
        ids = torch.tensor([model.begun(prompt)])
        how = {"eos": model.end, "longest": 7, "forbidden": model.forbidden, "length_penalty": length_penalty}
        (alone,) = beam(model.model, ids[:, :-1], bos=ids[:, -1], beam=4, n_best=3, **how)
        assert [tuple(one.tokens) for one in own] == [each.tokens for each in alone]
        assert own[0].prompt == prompt
        ((first,),) = model.generate([prompt], tokens=7, beam=1, length_penalty=length_penalty)
        likelier += first.tokens != own[0].tokens
    assert likelier, "a wider beam finds other texts"


def test_a_beam_ends_where_the_context_is_full(model: LanguageModel) -> None:
    (long,), (short,) = model.generate(["abcdefgh" * 5, "abcdefgh" * 2], tokens=90, beam=2)
    assert len(long.tokens) <= model.context - model.context // 2 + 1
    assert len(short.tokens) <= model.context + 1 - len(model.begun("abcdefgh" * 2))


def test_the_best_of_one_is_a_plain_draw(model: LanguageModel) -> None:
    plain = model.generate(PROMPTS, tokens=8, samples=2, seed=5)
    assert model.generate(PROMPTS, tokens=8, samples=2, seed=5, best_of=1) == plain


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_the_best_of_several_is_the_most_likely_of_them(model: LanguageModel, length_penalty: float) -> None:
    drawn = model.generate(PROMPTS, tokens=8, samples=6, seed=2)
    best = model.generate(PROMPTS, tokens=8, samples=2, best_of=3, seed=2, length_penalty=length_penalty)
    for own, candidates in zip(best, drawn, strict=True):
        for one, three in zip(own, (candidates[:3], candidates[3:]), strict=True):
            scores = []
            for each in three:
                ids = [*model.begun(each.prompt), *each.tokens]
                whole = ids if len(each.tokens) == 8 else [*ids, model.end]
                logits = model.model(torch.tensor([whole[:-1]])).detach().log_softmax(-1)[0]
                said = range(len(whole) - len(each.tokens) - (len(each.tokens) < 8), len(whole))
                scores.append(likelihood_score([float(logits[i - 1, whole[i]]) for i in said], length_penalty))
            assert one == three[scores.index(max(scores))]


def test_any_of_several_tokens_ends_a_text(model: LanguageModel) -> None:
    first, second = (ids[0] for ids in TOKENIZER.encode_whole(["b", "c"]))
    ended = with_ends(model, first, second)
    assert ended.ends == (first, second)
    whole = with_ends(model, TOKENIZER.eos).generate(PROMPTS, tokens=12, temperature=0.0)
    by_greedy = ended.generate(PROMPTS, tokens=12, temperature=0.0)
    by_beam = ended.generate(PROMPTS, tokens=12, beam=1)
    cut = 0
    for (all_of_it,), (one,), (other,) in zip(whole, by_greedy, by_beam, strict=True):
        tokens = all_of_it.tokens
        stop = next((i for i, token in enumerate(tokens) if token in (first, second)), len(tokens))
        assert one.tokens == other.tokens == tokens[:stop]
        cut += stop < len(tokens)
    assert cut > 1
    for own in ended.generate(PROMPTS, tokens=12, beam=3, samples=3):
        assert not {first, second} & {token for one in own for token in one.tokens}
        assert len({one.text for one in own}) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 2, "samples": 3}, "3 texts of a beam of 2"),
        ({"beam": 2, "temperature": 0.5}, "temperature is not used by a beam search"),
        ({"beam": 2, "seed": 1}, "seed is not used"),
        ({"beam": 2, "stop": ["a"]}, "stop is not used"),
        ({"beam": 2, "best_of": 2}, "the best of 2, and a beam of 2"),
        ({"best_of": 0}, "the best of 0"),
        ({"length_penalty": 0.0}, "a length penalty compares texts"),
        ({"samples": 0}, "0 texts of 2 tokens"),
        ({"tokens": -1}, "1 texts of -1 tokens"),
        ({"tokens": 0, "beam": 2}, "1 texts of 0 tokens"),
        ({"batch": 0, "beam": 2}, "a batch of 0 rows"),
    ],
)
def test_what_does_not_go_together_is_refused(model: LanguageModel, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.generate(["a"], **{"tokens": 2} | options)


def test_on_the_command_line(model: LanguageModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_run(tmp_path / "run", model.model, TOKENIZER, TOKENIZER, model.about)
    assert heed("generate", tmp_path / "run", "a", "bad", "--tokens", 5, "--beam", 3, "--samples", 2, "--json") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = [one for own in model.generate(["a", "bad"], tokens=5, beam=3, samples=2) for one in own]
    assert [record["text"] for record in records] == [one.text for one in expected]
    assert heed("generate", tmp_path / "run", "a", "--tokens", 5, "--best-of", 4, "--seed", 3) == 0
    ((best,),) = model.generate(["a"], tokens=5, best_of=4, seed=3, temperature=0.8)
    assert capsys.readouterr().out == f"a{best.text}\n"
    for words, message in (
        (["--beam", 2, "--top-k", 4], "--top-k is not used by a beam search"),
        (["--best-of", 2, "--stream"], "a text that is searched for"),
        (["--length-penalty", 0], "--length-penalty compares texts"),
    ):
        assert heed("generate", tmp_path / "run", "a", *words) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("length_penalty", [-1000.0, 100.0, math.nan, math.inf])
@pytest.mark.parametrize("how", [{"beam": 3}, {"best_of": 3}])
def test_a_length_penalty_that_is_no_number_for_a_score(
    model: LanguageModel, how: dict[str, Any], length_penalty: float
) -> None:
    with pytest.raises(InputError, match=r"a length penalty of .* for 7 tokens"):
        model.generate(PROMPTS, tokens=7, length_penalty=length_penalty, **how)
