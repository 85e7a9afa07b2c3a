"""Our models in CTranslate2, with loud weights: N(0, 0.4) in every matrix and bias, N(1, 0.4) in every norm.

What that library is given has to give the same log-probabilities, and its searches what ours find, to 1e-4 nats.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import nn

import heedful
from commands import heed
from heedful.core.attention import AttentionConfig
from heedful.core.block import StackConfig
from heedful.core.experts import ExpertsConfig
from heedful.core.position import PositionConfig
from heedful.data.tokenizer import Ids, Tokenizer, train_tokenizer
from heedful.errors import InputError, MissingError, StorageError
from heedful.exchange import ct2
from heedful.models import make_model
from heedful.models.presets import LANGUAGE_MODELS, TRANSLATORS, lm_config, translator_config
from heedful.tasks.generate.ctranslate2 import convertible_lm
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.translate.exchange.ctranslate2 import CTranslate2, compare_translator, convertible
from heedful.tasks.translate.use import Translator, load_translator
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from hub import LINES, marian_folder
from hub import TEXTS as HUB_TEXTS
from loud import make_loud
from made import SYLLABLES, made_corpus, with_about
from saved import save_run

pytest.importorskip("ctranslate2", reason="CTranslate2 has no wheel for this machine")

CLOSE = 1e-4  # nats
TEXTS = ["ba de gi", "ko", "", "lu ma ne pi ro su ba", "de de de"]
SIZE: dict[str, Any] = {"d_model": 16, "n_heads": 4, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 3}
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "post-norm": ("transformer-base", {}),
    "pre-norm": ("transformer-base-pre", {}),
    "RMS, gated": ("transformer-base-pre", {"norm": "rms", "gated": True, "activation": "silu"}),
    "GELU": ("transformer-base", {"activation": "gelu"}),
    "tanh GELU": ("transformer-base", {"activation": "gelu_tanh"}),
    "Marian": ("marian", {}),
    "BART": ("bart-base", {"context_length": 60}),
    "T5": ("t5-small", {"head_dim": 6}),
    "T5 1.1": ("t5-v1.1-small", {"head_dim": 6}),
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    corpus = made_corpus(100)
    return train_tokenizer([*corpus.train.source, *corpus.train.target], kind="bpe", size=300)


def preset(name: str, vocab: int, **changes: Any) -> Any:
    row: Any = replace(TRANSLATORS[name], **SIZE | changes)
    return translator_config(row, source_vocab=vocab, target_vocab=vocab, joint=True)


def attending(config: Any, **changes: Any) -> Any:
    """The configuration with keys of all its attention changed; that across has no position scheme."""

    def changed(stack: StackConfig) -> StackConfig:
        cross = stack.block.cross
        across = None if cross is None else replace(cross, **{k: v for k, v in changes.items() if k != "position"})
        attention = replace(stack.block.attention, **changes)
        return replace(stack, block=replace(stack.block, attention=attention, cross=across))

    return replace(config, encoder=changed(config.encoder), decoder=changed(config.decoder))


def without_positions(config: Any) -> Any:
    sides = {side: replace(getattr(config, side), position_embeddings="none") for side in ("source", "target")}
    return replace(config, **sides)


def variant(name: str, vocab: int) -> Any:
    pre = preset("transformer-base-pre", vocab)
    match name:
        case "grouped heads, biases":
            return attending(pre, kv_heads=2, bias=True)
        case "one key head, scale":
            return attending(pre, kv_heads=1, head_dim=6, scale=0.3)
        case "rotary":
            return attending(without_positions(pre), position=PositionConfig(kind="rotary", theta=100.0))
        case "no positions":
            return without_positions(pre)
        case "untied, epsilon, unscaled":
            wide = [
                replace(stack, block=replace(stack.block, norm_eps=0.3, activation="quick_gelu"))
                for stack in (pre.encoder, pre.decoder)
            ]
            source = replace(pre.source, scaled=False)
            return replace(pre, source=source, encoder=wide[0], decoder=wide[1], tied="none", output_bias=True)
        case _:
            key, changes = PRESETS[name]
            return preset(key, vocab, **changes)


VARIANTS = [
    *PRESETS,
    "grouped heads, biases",
    "one key head, scale",
    "rotary",
    "no positions",
    "untied, epsilon, unscaled",
]


def made_run(folder: Path, config: Any, tokenizer: Tokenizer, **about: Any) -> Path:
    model = make_model(config)
    make_loud(model, norm=1.0)
    save_run(folder, model, tokenizer, tokenizer, {"task": "translate", **about})
    return folder


def said(model: Translator, **settings: Any) -> list[list[tuple[str, float]]]:
    return [one.hypotheses for one in model.search(TEXTS, **settings)]


def assert_alike(ours: list[list[tuple[str, float]]], theirs: list[list[tuple[str, float]]]) -> None:
    assert [[text for text, _ in own] for own in theirs] == [[text for text, _ in own] for own in ours]
    flat = [[score for own in each for _, score in own] for each in (ours, theirs)]
    assert flat[1] == pytest.approx(flat[0], abs=CLOSE)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_kind_says_the_same(name: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", variant(name, tokenizer.size), tokenizer, forbidden=[])
    ours, theirs = heedful.load(run), heedful.load(run, engine="ctranslate2")
    assert isinstance(ours, Translator)
    found, own = compare_translator(run / "ctranslate2", convertible(ours))
    torch.testing.assert_close(found, own, atol=CLOSE, rtol=0)
    assert own.abs().max() > 3  # nats: the weights are loud
    for settings in ({"beam": 1}, {"beam": 4, "n_best": 3}):
        assert_alike(said(ours, longest=12, **settings), said(theirs, longest=12, **settings))


def ending(config: Any, *, bias: float = 3.0) -> nn.Module:
    """A model whose sentences end by themselves, after some tokens."""
    model = make_model(replace(config, output_bias=True))
    make_loud(model, norm=1.0)
    with torch.no_grad():
        model.head.bias[3] += bias
    return model


@pytest.fixture(scope="module")
def run(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    model = ending(preset("transformer-base-pre", tokenizer.size))
    folder = tmp_path_factory.mktemp("ended") / "run"
    save_run(folder, model, tokenizer, tokenizer, {"task": "translate", "forbidden": []})
    return folder


@pytest.mark.parametrize(
    "settings",
    [
        {"beam": 1},
        {"beam": 4, "length_penalty": 0.0, "n_best": 2},
        {"beam": 4, "length_penalty": 0.6},
        {"beam": 1, "no_repeat": 2},
        {"beam": 1, "shortest": 9, "longest": 14},
        {"beam": 1, "prefix": ["KO LU"] * len(TEXTS)},
    ],
)
def test_settings_mean_what_they_mean_here(run: Path, settings: dict[str, Any]) -> None:
    ours, theirs = heedful.load(run), heedful.load(run, engine="ctranslate2")
    assert_alike(said(ours, **settings), said(theirs, **settings))


def test_each_source_has_its_own_limit(run: Path) -> None:
    """The short ones of a batch may have fewer tokens than the long one, and here none ends before."""
    found = []
    for name in (None, "ctranslate2"):
        model = heedful.load(run, engine=name)
        assert isinstance(model, Translator)
        ids, _ = model.encode(TEXTS)
        found.append([best[0].tokens for best in model.hypotheses(ids, model.decoding(beam=1, shortest=100))])
    assert [len(tokens) for tokens in found[1]] == [2 * len(own) + 12 if own else 0 for own in ids]
    assert found[1] == found[0]


@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 4}, {"beam": 4, "n_best": 3}, {"beam": 3, "no_repeat": 2}])
def test_what_is_said_of_a_text_does_not_depend_on_its_neighbours(
    tokenizer: Tokenizer, tmp_path: Path, settings: dict[str, Any]
) -> None:
    """Nor where some of its hypotheses come to its limit, and others have ended before."""
    model = ending(preset("transformer-base-pre", tokenizer.size), bias=1.0)
    save_run(tmp_path / "run", model, tokenizer, tokenizer, {"task": "translate", "forbidden": []})
    theirs = heedful.load(tmp_path / "run", engine="ctranslate2")
    assert isinstance(theirs, Translator)
    ids, _ = theirs.encode([f"{one} {other}" for one in SYLLABLES[:12] for other in SYLLABLES[:4]])
    decoding = theirs.decoding(**settings)

    def of(rows: Sequence[Ids]) -> list[list[tuple[int, ...]]]:
        return [[each.tokens for each in best] for best in theirs.hypotheses(rows, decoding)]

    alone, (long, *_) = [of([own])[0] for own in ids], theirs.encode([" ".join(SYLLABLES)])[0]
    ended = {len(tokens) < 2 * len(own) + 12 for own, best in zip(ids, alone, strict=True) for tokens in best}
    assert ended == {True, False}
    assert of([long, *ids])[1:] == alone


def test_a_translation_of_all_positions_is_scored(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """With an end token behind it, for which one is left."""
    run = made_run(tmp_path / "run", variant("BART", tokenizer.size), tokenizer, forbidden=[])
    ours, theirs = heedful.load(run), heedful.load(run, engine="ctranslate2")
    assert isinstance(ours, Translator)
    assert isinstance(theirs, Translator)
    ids, _ = theirs.encode(["ba de gi"])
    settings: dict[str, Any] = {"beam": 1, "shortest": 60}
    ((found,),) = theirs.hypotheses(ids, theirs.decoding(**settings, longest=60))
    ((own,),) = ours.hypotheses(ids, ours.decoding(**settings, longest=59))
    assert (len(found.tokens), found.tokens) == (59, own.tokens)
    assert found.log_probability == pytest.approx(own.log_probability, abs=60 * CLOSE)


def test_what_is_forbidden_is_never_said_and_not_shared_out(run: Path) -> None:
    ours, theirs = heedful.load(run), heedful.load(run, engine="ctranslate2")
    assert isinstance(ours, Translator)
    assert isinstance(theirs, Translator)
    ids, _ = ours.encode(TEXTS)
    often = ours.hypotheses(ids, ours.decoding(beam=1))[0][0].tokens[0]
    ours, theirs = (with_about(model, forbidden=[often]) for model in (ours, theirs))
    theirs = theirs.changed(engine=CTranslate2(run / "ctranslate2", theirs))
    assert_alike(said(ours, beam=1), said(theirs, beam=1))
    for best in theirs.hypotheses(ids, theirs.decoding(beam=4, n_best=4)):
        assert all(often not in each.tokens for each in best)


def test_it_is_as_sure_as_the_run(run: Path) -> None:
    """Its search tells the score of the whole alone: the words are scored by a pass with the tokens given."""
    settings: dict[str, Any] = {"beam": 1, "longest": 12}
    ours, theirs = (
        [one.said for one in heedful.load(run, engine=name).search(TEXTS, confidence=True, **settings)]
        for name in (None, "ctranslate2")
    )
    for own, other in zip(
        (one for each in ours for one in each), (one for each in theirs for one in each), strict=True
    ):
        assert (own.tokens, [text for text, _ in own.words]) == (other.tokens, [text for text, _ in other.words])
        assert [x for _, x in other.words] == pytest.approx([x for _, x in own.words], abs=CLOSE)


def test_an_imported_marian(tmp_path: Path) -> None:
    """Two SentencePiece models and one list of ids; what begins a sentence is the padding, which is forbidden."""
    marian_folder(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "run")
    models = [heedful.load(tmp_path / "run", engine=name) for name in (None, "ctranslate2")]
    ours, theirs = ([one.hypotheses for one in model.search(LINES, beam=1)] for model in models)
    assert_alike(ours, theirs)


@pytest.fixture(scope="module")
def renormalised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As OPUS-MT is published now: padding is forbidden, and probabilities are renormalised over the allowed tokens."""
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("renormalised")
    marian_folder(folder / "hub")
    path = folder / "hub/generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"renormalize_logits": True}))
    import_model(folder / "hub", folder / "run")
    return folder / "run"


@pytest.mark.parametrize(
    "settings",
    [
        {"beam": 1},
        {"beam": 1, "longest": 3},
        {"beam": 1, "no_repeat": 0},
        {"beam": 3, "n_best": 3},
        {"beam": 3, "no_repeat": 0, "length_penalty": 0.6},
        {"beam": 3, "shortest": 6, "longest": 30},
    ],
)
def test_shares_of_what_may_come_are_its_own_scores(renormalised: Path, settings: dict[str, Any]) -> None:
    ours, theirs = heedful.load(renormalised), heedful.load(renormalised, engine="ctranslate2")
    texts = [text for text in HUB_TEXTS if text.strip()]
    settings = settings | {"early_stopping": True}
    found, other = ([one.hypotheses for one in model.search(texts, **settings)] for model in (ours, theirs))
    assert_alike(found, other)
    assert len({tuple(best) for best in found}) > 5
    plain = [one.score for one in ours.search(texts, **settings, renormalise=False)]
    assert [own[0][1] for own in found] != pytest.approx(plain, abs=CLOSE)


def test_of_such_shares_it_tells_no_words(renormalised: Path, capsys) -> None:
    """Nor translations whose beginning is given. By "auto" heedful itself searches then."""
    theirs = heedful.load(renormalised, engine="ctranslate2")
    for more, named in ({"confidence": True}, "each word"), ({"prefix": ["Der"]}, "a prefix"):
        with pytest.raises(InputError, match=f"CTranslate2 gives no such probabilities for {named}"):
            theirs.search(LINES[:1], **more)
        assert len(theirs.search(LINES[:1], **more, renormalise=False)) == 1
    text = ("translate", renormalised, LINES[0], "--engine")
    assert heed(*text, "ctranslate2") == 0
    assert heed(*text, "ctranslate2", "--json") == 2
    assert "leave out the engine" in capsys.readouterr().err
    assert heed(*text, "auto", "--json") == 0
    assert [law.name for law in check(renormalised, LINES) if not law.holds or law.figure is None] == []


LANGUAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "GPT-1": ("gpt-1", {}),
    "GPT-2": ("gpt2", {}),
    "LLaMA": ("tinyllama-1.1b", {"kv_heads": 2, "d_ff": 24}),
    "LLaMA, all heads": ("tinyllama-1.1b", {"kv_heads": None, "d_ff": 24, "tied": True}),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_language_models(name: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    import ctranslate2

    key, changes = LANGUAGES[name]
    row = replace(LANGUAGE_MODELS[key], n_layers=2, d_model=16, n_heads=4, context_length=40, vocab_size=tokenizer.size)
    run = made_run(tmp_path / "run", lm_config(replace(row, **changes)), tokenizer, task="generate")
    made = export_model(run, tmp_path / "out", to="ctranslate2")
    assert made.loads.startswith("ctranslate2.Generator(")
    model = heedful.load(run)
    assert isinstance(model, LanguageModel)
    rows = [[2, 7, 30, 41, 9, 9, 100], [2, 5]]
    given = ctranslate2.Generator(made.out, compute_type="float32").forward_batch(rows)
    theirs = torch.from_numpy(numpy.array(given))
    for row, logits in zip(rows, theirs, strict=True):
        with torch.no_grad():
            assert torch.allclose(logits[: len(row)], model.model(torch.tensor([row]))[0], atol=CLOSE)
    assert [law.name for law in check(run) if not law.holds] == []


@pytest.mark.parametrize("name", ["ended", "marian", "gpt"])
def test_its_card_says_how_the_library_alone_is_given_a_text(
    name: str, run: Path, run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    if name == "marian":
        marian_folder(tmp_path / "hub")
        import_model(tmp_path / "hub", tmp_path / "run")
    run = {"ended": run, "marian": tmp_path / "run"}.get(name) or run_of(name)
    made = export_model(run, tmp_path / "out", to="ctranslate2")
    assert made.loads.endswith("README.md says")
    card = (tmp_path / "out/README.md").read_text("utf-8")
    code = card.partition("## By CTranslate2")[2].partition("```python\n")[2].partition("```")[0]
    given = re.sub(r'text = ".*"', 'text = "ba de"', code) + "print(tokens)"
    told = subprocess.run([sys.executable, "-c", given], cwd=tmp_path / "out", capture_output=True, check=True)
    said, tokens = told.stdout.decode().removesuffix("\n").rsplit("\n", 1)
    model = heedful.load(run)
    if isinstance(model, LanguageModel):
        read = [*model.before, *model.tokenizer.encode_whole(["ba de"])[0]]
        assert tokens == str([convertible_lm(model).words().target[index] for index in read])
        assert said == "ba de" + model.generate("ba de", temperature=0.0, tokens=10)[0].text
    else:
        read = model.framed(model.source.encode(["ba de"])[0])
        assert tokens == str([convertible(model).words().source[index] for index in read])
        if name == "ended":
            assert said == load_translator(run, engine="ctranslate2").translate("ba de")


def sandwich(config: Any) -> Any:
    return replace(config, encoder=replace(config.encoder, block=replace(config.encoder.block, order="sandwich")))


def with_experts(config: Any) -> Any:
    block = replace(config.decoder.block, experts=ExpertsConfig(number=4))
    return replace(config, decoder=replace(config.decoder, block=block))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (sandwich, "sandwich norms"),
        (with_experts, "experts"),
        (lambda config: attending(config, gate=True), "gated attention"),
        (lambda config: attending(config, position=PositionConfig(kind="rotary")), "several position schemes at once"),
        (
            lambda config: attending(without_positions(config), position=PositionConfig(kind="shaw")),
            "the position scheme 'shaw'",
        ),
        (lambda config: replace(config, source=replace(config.source, types=2)), "types of tokens"),
        (lambda config: replace(config, source=replace(config.source, norm_eps=0.5)), "different epsilons"),
        (
            lambda config: replace(
                config,
                decoder=replace(config.decoder, block=replace(config.decoder.block, cross=AttentionConfig(n_heads=2))),
            ),
            "heads across that differ",
        ),
    ],
)
def test_what_cannot_be_told_is_refused_by_name(change: Any, named: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = change(preset("transformer-base-pre", tokenizer.size))
    run = made_run(tmp_path / "run", config, tokenizer)
    with pytest.raises(InputError, match=named):
        export_model(run, tmp_path / "out", to="ctranslate2")
    with pytest.raises(InputError, match=named):
        heedful.load(run, engine="ctranslate2")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert not (run / "ctranslate2").exists()


def test_a_recurrent_translator_is_refused_and_check_says_so(tokenizer: Tokenizer, tmp_path: Path) -> None:
    row: Any = replace(TRANSLATORS["rnn-small"], d_embed=8, d_hidden=8, d_align=8, d_readout=8)
    size = tokenizer.size
    config = translator_config(row, source_vocab=size, target_vocab=size, joint=True)
    run = made_run(tmp_path / "run", config, tokenizer)
    with pytest.raises(InputError, match="a model of the kind RNN"):
        export_model(run, tmp_path / "out", to="ctranslate2")
    last = list(check(run))[-1]
    assert (last.figure, last.holds) == (None, True)
    assert last.notes == ("not compared: CTranslate2 cannot be told of a model of the kind RNN",)


def test_without_the_library_one_line_says_how_to_get_it(run: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    for ask in (
        lambda: export_model(run, tmp_path / "out", to="ctranslate2"),
        lambda: heedful.load(run, engine="ctranslate2"),
    ):
        with pytest.raises(MissingError) as missing:
            ask()
        assert missing.value.fix == f"{sys.executable} -m pip install ctranslate2"
    assert list(check(run))[-1].notes == ("not compared: CTranslate2 is not installed",)


def test_check_compares(run: Path) -> None:
    laws = {law.name: law for law in check(run, TEXTS)}
    for name in ("log-probabilities", "greedy (different tokens)", "greedy (scores)"):
        law = laws[f"CTranslate2: {name}"]
        assert law.figure is not None
        assert law.holds


def test_the_cache_follows_the_run(tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = preset("transformer-base", tokenizer.size)
    run = made_run(tmp_path / "run", config, tokenizer)
    first = said(heedful.load(run, engine="ctranslate2"), beam=1)
    made = (run / "ctranslate2" / "model.bin").stat().st_mtime_ns
    assert said(heedful.load(run, engine="ctranslate2"), beam=1) == first
    assert (run / "ctranslate2" / "model.bin").stat().st_mtime_ns == made
    (run / "model.safetensors").unlink()
    made_run(run, config, tokenizer)
    second = said(heedful.load(run, engine="ctranslate2"), beam=1)
    assert second != first
    assert_alike(said(heedful.load(run), beam=1), second)


def test_a_folder_that_says_something_else_is_never_there(run: Path, tmp_path: Path, monkeypatch) -> None:
    real = ct2.specification

    def broken(model: Any, words: Any, *, quantize: str | None = None) -> Any:
        with torch.no_grad():
            model.head.weight[5] += 1
        made = real(model, words, quantize=quantize)
        with torch.no_grad():
            model.head.weight[5] -= 1
        return made

    monkeypatch.setattr(ct2, "specification", broken)
    with pytest.raises(StorageError, match="log-probabilities that differ"):
        export_model(run, tmp_path / "out", to="ctranslate2")
    assert not list(tmp_path.iterdir())


def test_from_the_command_line(run: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    assert heed("export", run, "--to", "ctranslate2", "--quantize", "int8", "--out", out, "--json") == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found.keys() == {"family", "to", "out", "files", "difference"}
    assert 0 < found["difference"] < 1
    assert "ctranslate2.Translator(" in told.err
    assert heed("translate", out, "ba de gi", "--engine", "ctranslate2", "--n-best", 2, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["hypotheses"]) == 2
    for name, lines in (("a", "ba de\nko\n"), ("b", "DE BA\nKO\n")):
        (tmp_path / name).write_text(lines)
    files = ("--source", tmp_path / "a", "--target", tmp_path / "b", "--json")
    scores = []
    for choice in ((), ("--engine", "ctranslate2"), ("--engine", "auto")):
        assert heed("eval", run, *files, *choice) == 0
        scores.append(json.loads(capsys.readouterr().out))
    assert scores[0].pop("loss") > 0  # which takes weights of ours
    assert scores[0] == scores[1] == scores[2]


def test_auto_is_the_library_where_it_can_be(run: Path, capsys) -> None:
    fast = load_translator(run, engine="auto")
    assert fast.engine is not None
    for choice in ({"engine": "own"}, {"engine": "auto", "weights": "int8"}):
        assert load_translator(run, **choice).engine is None
    assert heedful.load(run, engine="auto").engine is not None
    for words in ((), ("--require", "DE"), ("--samples", 2)):  # what the library cannot do, is done
        assert heed("translate", run, "ba de gi", "--engine", "auto", "--json", *words) == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["export", "{run}", "--quantize", "int8", "--out", "x"], "--weights: no int8 weights on the Hub"),
        (["export", "{run}", "--to", "ctranslate2", "--quantize", "int9", "--out", "x"], "unknown key 'int9'"),
        (["translate", "{run}", "ba", "--engine", "ctranslate2", "--samples", "2"], "one stream of numbers"),
        (["translate", "{run}", "ba", "--engine", "onnx"], "engine: unknown key 'onnx'"),
        (["translate", "{run}/ctranslate2", "ba"], "a model of CTranslate2"),
    ],
)
def test_bad_input_is_one_line(run: Path, tmp_path: Path, monkeypatch, capsys, words, error) -> None:
    heedful.load(run, engine="ctranslate2")
    monkeypatch.chdir(tmp_path)
    assert heed(*(word.format(run=run) for word in words)) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert error in lines[0]
    assert not list(tmp_path.iterdir())
