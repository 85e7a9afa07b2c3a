"""Texts as they are made: the same as when they are handed over whole, many at a time as one by one, and in fewer
bits nearly so."""

import random
from unittest.mock import Mock

import pytest
import torch

from heedful.apply.inference import draft_model
from heedful.core.seeds import counter_seed
from heedful.data.text.documents import Documents
from heedful.data.tokenizer import BOS, EOS, PAD, UNK, train_tokenizer
from heedful.decode.rules import RepetitionPenalty
from heedful.decode.search import sample
from heedful.decode.settings import Sampling
from heedful.errors import InputError
from heedful.models.lm import LM
from heedful.models.presets import LMSize, lm_config
from heedful.tasks.generate import use as generate
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from loud import make_loud
from made import made_corpus

PAIRS = made_corpus(400).train
TEXTS = [f"{source} > {target} é😀\n" for source, target in zip(PAIRS.source, PAIRS.target, strict=True)]
PROMPTS = ["", "ba", "ba de gi > ", "ko", "lu ma ne pi ro su ba de gi > ", "é😀"] * 3
SAMPLED = {"temperature": 0.9, "top_k": 20, "top_p": 0.95, "min_p": 0.001, "repetition_penalty": 1.1, "seed": 3}
SETTINGS = {"greedy": {"temperature": 0.0, "repetition_penalty": 1.5}, "sampled": SAMPLED}
EACH = pytest.mark.parametrize("how", sorted(SETTINGS))


def loud(kind: str, *, context: int = 24, style: str = "gpt2", draft: str = "none") -> LanguageModel:
    """A model that says anything, in tokens of this kind."""
    torch.manual_seed(4)
    tokenizer = train_tokenizer(TEXTS, kind=kind, size=330)
    row = LMSize(style=style, n_layers=1, d_model=16, n_heads=2, vocab_size=tokenizer.size, context_length=context)
    model = LM(lm_config(row))
    make_loud(model)
    return LanguageModel(model, tokenizer, {"task": "generate"}, None if draft == "none" else draft_model(model, draft))


@EACH
@pytest.mark.parametrize("kind", ["bpe", "unigram", "chars", "bytes"])
def test_a_stream_is_what_generate_gives(kind: str, how: str) -> None:
    """Also past the context, and up to a stop string."""
    model = loud(kind)
    for prompt in PROMPTS[1:3]:
        ((made,),) = model.generate([prompt], tokens=30, **SETTINGS[how])
        pieces = list(model.stream(prompt, tokens=30, **SETTINGS[how]))
        assert "".join(pieces) == made.text
        assert all(pieces)
        assert len(pieces) > 1
        assert made.text == model.tokenizer.decode_whole(made.tokens)
        stop = [made.text[9:11], "nowhere"]
        ((stopped,),) = model.generate([prompt], tokens=30, stop=stop, **SETTINGS[how])
        assert "".join(model.stream(prompt, tokens=30, stop=stop, **SETTINGS[how])) == stopped.text
        assert stopped.text == made.text[: made.text.index(stop[0])]
        assert stopped.tokens == made.tokens[: len(stopped.tokens)]


@EACH
@pytest.mark.parametrize("style", ["gpt2", "llama"])
def test_a_draft_changes_nothing(how: str, style: str, monkeypatch) -> None:
    """Past the context too, and where several texts take turns."""
    plain, guessed = loud("bpe", style=style), loud("bpe", style=style, draft="int8")
    seen = Mock(wraps=guessed.model.steps)
    monkeypatch.setattr(guessed.model, "steps", seen)
    ((made,),) = plain.generate(PROMPTS[2:3], tokens=60, **SETTINGS[how])
    ((same,),) = guessed.generate(PROMPTS[2:3], tokens=60, **SETTINGS[how])
    assert same.text == made.text
    assert same.tokens == made.tokens
    assert same.logprobs == pytest.approx(made.logprobs, abs=1e-4)
    assert len(made.tokens) > 12
    assert 1 < seen.call_count < 0.7 * len(made.tokens)
    assert "".join(guessed.stream(PROMPTS[2], tokens=60, **SETTINGS[how])) == made.text
    for batch in (1, 2):
        both = (model.generate(PROMPTS[:6], tokens=25, batch=batch, **SETTINGS[how]) for model in (plain, guessed))
        assert len({tuple(tuple(text.tokens) for (text,) in each) for each in both}) == 1


@EACH
def test_past_the_context_a_search_begins_anew(how: str) -> None:
    """A text is what the searches make of its prompt, and then of the last half of the context, again and again."""
    model, tokens = loud("bpe"), 60
    ids, chosen = [BOS, *model.tokenizer.encode_whole(["ba de"])[0]], dict(SETTINGS[how])
    begun, seed = len(ids), counter_seed(chosen.pop("seed", 0), 0, 0)
    penalty = chosen.pop("repetition_penalty")
    while len(ids) < begun + tokens:
        window = ids if len(ids) + 1 < 24 else ids[-12:]
        longest = min(begun + tokens - len(ids), 24 + 1 - len(window))
        source, stay = torch.tensor([window[:-1]]), counter_seed(seed, len(ids) - begun)
        options = {"bos": window[-1], "eos": BOS, "longest": longest, "forbidden": (PAD, EOS, UNK)}
        options["rules"] = [RepetitionPenalty(penalty, tuple(window))]
        ((found,),) = sample(model.model, source, seeds=[stay], sampling=Sampling(**chosen), **options)
        ids += found.tokens
        if found.finished:
            break
    ((made,),) = model.generate(["ba de"], tokens=tokens, **SETTINGS[how])
    assert made.tokens == ids[begun:]
    assert len(made.tokens) > 30


def test_a_stream_comes_token_by_token() -> None:
    """The first piece is there before the second token is made, and nothing is made that nobody asks for."""
    model, steps = loud("chars"), []
    handle = model.model.head.register_forward_hook(lambda *_: steps.append(1))
    pieces = model.stream("ba", tokens=1000, temperature=0.0)
    assert next(pieces)
    assert len(steps) == 1
    next(pieces)
    assert len(steps) == 2
    handle.remove()


@EACH
@pytest.mark.parametrize("style", ["gpt2", "llama"])
def test_many_prompts_are_what_each_is_alone(style: str, how: str) -> None:
    """Ids and texts, for batches that prompts enter and leave, past the context too; every prompt has its own seed."""
    model, seen = loud("bpe", style=style), []
    many, settings = PROMPTS, {"tokens": 26, "stop": list("aeioudg"), **SETTINGS[how]}
    together = model.generate(many, batch=len(many), **settings)
    assert len({len(made.tokens) for (made,) in together}) > 2, "texts end at different steps"
    handle = model.model.head.register_forward_hook(lambda module, inputs, out: seen.append(len(out)))
    for batch in (1, 5):
        for (one,), (other,) in zip(together, model.generate(many, batch=batch, **settings), strict=True):
            assert (one.prompt, one.text, one.tokens) == (other.prompt, other.text, other.tokens)
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert max(seen) == batch
        seen.clear()
    handle.remove()
    ((alone,),) = model.generate(many[:1], **settings)
    assert alone.tokens == together[0][0].tokens
    assert "".join(model.stream(many[0], **settings)) == together[0][0].text


def test_a_row_is_free_as_soon_as_its_text_is_over() -> None:
    model, seen = loud("chars"), []
    model.model.head.register_forward_hook(lambda module, inputs, out: seen.append(len(out)))
    made = model.generate(PROMPTS * 2, tokens=30, batch=4, stop=list("aeioudg"), **SAMPLED)
    tokens = sum(len(one.tokens) for (one,) in made)
    assert sum(seen) - tokens <= len(made), "a row a token, and one for each end"
    assert seen == sorted(seen, reverse=True)


def test_nothing_asked_for() -> None:
    model = loud("chars")
    assert model.generate([]) == []
    (((one,),),) = (model.generate(["ba"], tokens=0),)
    assert (one.prompt, one.text, one.tokens) == ("ba", "", [])
    assert list(model.stream("ba", tokens=0)) == []
    with pytest.raises(InputError, match="a batch of 0 rows"):
        model.generate(["ba"], batch=0)


@pytest.mark.full
def test_two_thousand_tokens_of_a_context_of_2048() -> None:
    """The caches are made once, and no token is read twice."""
    model = loud("chars", context=2048)
    model.model.embed.tokens.weight.data[2] = 0  # the end, whose logit is then 0: never the greatest
    read: list[int] = []
    model.model.embed.register_forward_hook(lambda module, inputs, out: read.append(out.shape[1]))
    pieces = list(model.stream("ba", tokens=2000, temperature=0.0))
    assert len("".join(pieces)) > 1000
    assert sum(read) == 2000 + len("ba")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small model that has learnt something."""
    out = tmp_path_factory.mktemp("text") / "run"
    corpus = Documents(TEXTS[:380], TEXTS[380:], {}, "made", (), ())
    recipe = build(
        {
            "task": "generate",
            "preset": "gpt-nano",
            "model": {"d_model": 64, "n_heads": 4, "n_layers": 2, "context_length": 48},
            "data": {"tokenizer": "chars", "across": False},
            "train": {
                "steps": 150,
                "eval_every": 150,
                "tokens": 480,
                "lr": 4e-3,
                "warmup": 20,
                "average": 0.95,
                "precision": "fp32",
            },
        },
        where="test",
    )
    for _ in train(recipe, out, corpus=corpus):
        pass
    return out


@pytest.mark.parametrize(("weights", "more"), [("int8", 0.01), ("int4", 0.06)])
def test_fewer_bits_cost_little(run, weights: str, more: float) -> None:
    """Nats a token on texts that it has not seen; it generates, and says the same alone as in a batch."""
    full, small = LanguageModel.load(run), LanguageModel.load(run, weights=weights)
    before, after = (model.measure(TEXTS[380:]).loss for model in (full, small))
    assert before < 1.7, "it has learnt: all characters alike are log(38) = 3.6"
    assert 0 < abs(after - before) < more
    together = small.generate(PROMPTS[:6], tokens=20, temperature=0.0, batch=3)
    for prompt, (made,) in zip(PROMPTS, together, strict=False):
        assert made.tokens
        assert "".join(small.stream(prompt, tokens=20, temperature=0.0)) == made.text


def test_other_weights_are_refused(run) -> None:
    with pytest.raises(InputError, match="no weights 'int3'"):
        LanguageModel.load(run, weights="int3")
    with pytest.raises(InputError, match="no draft 'int2' for float32 weights"):
        LanguageModel.load(run, draft="int2")
    with pytest.raises(InputError, match="no draft 'int4' for int8 weights"):
        LanguageModel.load(run, weights="int8", draft="int4")


def test_a_small_model_needs_no_draft(run, monkeypatch) -> None:
    assert LanguageModel.load(run, draft="auto").draft is None
    monkeypatch.setattr(generate, "LARGE", 1000)
    assert LanguageModel.load(run, draft="auto", weights="int4").draft is None
    model = LanguageModel.load(run, draft="auto")
    assert model.draft.embed is not model.model.embed
    assert model.draft.embed.tokens.weight is model.model.embed.tokens.weight
    ((made,),) = model.generate(["ba"], tokens=20, temperature=0.0)
    assert LanguageModel.load(run).generate(["ba"], tokens=20, temperature=0.0)[0][0].tokens == made.tokens


@EACH
@pytest.mark.parametrize("draft", ["none", "int8"])
def test_texts_that_join_and_leave_are_what_each_is_alone(how: str, draft: str) -> None:
    """Each with a seed, a limit and a stop string of its own, past the context too; some are cancelled on the way."""
    model, dice = loud("bpe", draft=draft), random.Random(5)
    writer = model.writer(rows=3)
    asked = [(dice.choice(PROMPTS), dice.randrange(1, 40), dice.choice([(), ("a",), ("de", "!")])) for _ in range(30)]
    numbers: dict[int, int] = {}
    made: dict[int, str] = {}
    tokens: dict[int, list[int]] = {}
    ends: dict[int, str | None] = {}
    cancelled = set()
    while len(numbers) < len(asked) or len(writer):
        if len(numbers) < len(asked) and (not len(writer) or dice.random() < 0.4):
            prompt, limit, stop = asked[(i := len(numbers))]
            settings = Sampling(**{**SETTINGS[how], "seed": counter_seed(i, 0, 0)})
            numbers[writer.add(model.begun(prompt), settings, tokens=limit, stop=stop)] = i
        if len(writer) and dice.random() < 0.02:
            gone = dice.choice([number for number in numbers if numbers[number] not in ends.keys() | cancelled])
            writer.cancel(gone)
            cancelled.add(numbers[gone])
        for number, piece, token, _, finish, *_ in writer.step():
            i = numbers[number]
            assert i not in cancelled
            made[i] = made.get(i, "") + piece
            tokens.setdefault(i, []).extend([] if token is None else [token])
            if token is None:
                ends[i] = finish
    assert 1 <= len(cancelled) < 10
    assert {*ends.values()} == {"stop", "length"}
    for i, (prompt, limit, stop) in enumerate(asked):
        if i not in cancelled:
            ((alone,),) = model.generate([prompt], tokens=limit, stop=stop, **{**SETTINGS[how], "seed": i})
            assert (made[i], tokens[i]) == (alone.text, alone.tokens)


def test_what_a_writer_cannot_continue() -> None:
    writer = loud("chars").writer(rows=2)
    for ids, tokens in (([], 3), ([-1], 3), ([10**6], 3), ([1], 0)):
        with pytest.raises(InputError):
            writer.add(ids, Sampling(), tokens=tokens)
    assert len(writer) == 0
    assert writer.step() == []
    writer.cancel(7)
