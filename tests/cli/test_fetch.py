"""Models of the Hub by their names: what is fetched, from where, and what is said where it cannot be."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import huggingface_hub
import pytest
from huggingface_hub import errors
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import GPT2Config, GPT2LMHeadModel

from commands import heed
from heedful.errors import MissingError
from heedful.exchange.fetch import UNWANTED, WANTED, fetched, is_name
from heedful.verbs.exchange import import_model


def test_which_words_are_names() -> None:
    assert all(map(is_name, ["openai-community/gpt2", "a/b", "Helsinki-NLP/opus-mt-en-de", "org/name.v1_2"]))
    assert not any(map(is_name, ["gpt2", "a/b/c", "./a/b", "../a", "a/..", "/a/b", "~/a", "a b/c", "", "a/"]))


def test_it_is_fetched_and_becomes_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "cache"
    config = GPT2Config(
        n_embd=16, n_head=2, n_layer=1, vocab_size=300, n_positions=16, bos_token_id=256, eos_token_id=256
    )
    GPT2LMHeadModel(config).save_pretrained(kept)
    letters = {letter: number for number, letter in enumerate(sorted(ByteLevel.alphabet()))}
    made = Tokenizer(BPE({**letters, "<|endoftext|>": 256}, []))
    made.pre_tokenizer = ByteLevel(add_prefix_space=False)
    made.add_special_tokens(["<|endoftext|>"])
    made.save(str(kept / "tokenizer.json"))
    asked: list[Any] = []

    def download(name: str, **how: Any) -> str:
        asked.append((name, how))
        return str(kept)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.chdir(tmp_path)
    found = import_model("org/small", tmp_path / "run")
    assert found.family == "GPT-2"
    assert asked == [("org/small", {"allow_patterns": [*WANTED], "ignore_patterns": [*UNWANTED]})]
    shutil.copytree(kept, tmp_path / "org" / "small")  # a folder of that name comes first
    import_model("org/small", tmp_path / "again")
    assert len(asked) == 1


def test_a_model_that_has_pickles_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not fetched."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "config.json").write_text('{"model_type": "pegasus"}')
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **how: str(tmp_path / "cache"))
    with pytest.raises(MissingError, match="it has no weights as safetensors") as caught:
        import_model("org/old", tmp_path / "run")
    assert "hf download org/old --local-dir DIR, and heed import DIR" in caught.value.fix


def test_weights_are_fetched_once() -> None:
    """Mistral's folders hold theirs a second time, in a form of its own."""
    names = ["config.json", "model.safetensors", "consolidated.safetensors", "onnx/model.json", "source.spm"]
    kept = huggingface_hub.utils.filter_repo_objects(names, allow_patterns=[*WANTED], ignore_patterns=[*UNWANTED])
    assert [*kept] == ["config.json", "model.safetensors", "source.spm"]


def _refusal(kind: type[Exception]) -> Exception:
    if issubclass(kind, errors.HfHubHTTPError):
        return kind("no", response=httpx.Response(404, request=httpx.Request("GET", "https://localhost")))
    return kind("no")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (errors.GatedRepoError, "HF_TOKEN"),
        (errors.RepositoryNotFoundError, "no such model on the Hub"),
        (errors.HFValidationError, "no such model on the Hub"),
        (errors.LocalEntryNotFoundError, "HF_HUB_OFFLINE"),
        (ConnectionError, "could not be fetched"),
    ],
)
def test_what_goes_wrong_is_one_line(
    kind: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    def download(name: str, **how: Any) -> str:
        raise _refusal(kind)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.chdir(tmp_path)
    assert heed("import", "org/name") == (2 if kind is errors.GatedRepoError else 3)
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert "org/name" in told
    assert said in told
    assert len(told.splitlines()) == 2
    assert [*tmp_path.iterdir()] == []


def test_nothing_is_fetched_for_a_place_that_is_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    asked = list[str]()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", asked.append)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "name").mkdir(parents=True)
    (tmp_path / "runs" / "name" / "kept.txt").touch()
    assert heed("import", "org/name") == 2
    assert capsys.readouterr().err.startswith("error: runs/name: is not empty")
    assert asked == []


def test_offline_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tests are offline, and reach no network: this is the library itself."""
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(MissingError, match="the Hub cannot be asked"):
        fetched("nobody-at-all/nothing-at-all")


def test_without_the_package_the_command_for_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace())
    with pytest.raises(MissingError) as told:
        fetched("org/name")
    assert "pip install huggingface_hub" in told.value.fix
