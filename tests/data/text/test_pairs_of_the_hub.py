"""Pairs of Hugging Face's datasets, in place of which a module is put that holds two rows."""

import sys
from types import ModuleType

import pytest

from heedful.data.text.corpus import read_parallel
from heedful.data.text.reading import read_whole
from heedful.errors import HeedError, InputError, MissingError


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    calls: list[tuple[str, str | None]] = []
    row: dict[str, object] = {"translation": {"en": "Go. \ud83d\ude00", "de": "Los!"}}

    def load_dataset(name: str, config: str | None) -> dict[str, list[dict[str, object]]]:
        calls.append((name, config))
        if name == "nobody/nothing":
            raise FileNotFoundError("Dataset 'nobody/nothing' doesn't exist\non the Hub")
        if name == "no/train":
            return {"test": [row]}
        if name == "both/ways":
            told = [("en", "de", "Go.", "Los!"), ("de", "en", "Halt!", "Stop!")]
            names = "source_lang", "target_lang", "source", "target"
            return {"train": [dict(zip(names, one, strict=True)) for one in told]}
        broken: dict[str, object] = {"translation": {"en": "Go.", "de": None}}
        train = [row, broken] if name == "bro/ken" else [row, row]
        return {"train": [*train], "validation": [row], "test": [row], "other": [row]}

    module = ModuleType("datasets")
    module.__dict__["load_dataset"] = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    return calls


def test_a_data_set_of_the_hub_is_read(hub: list[tuple[str, str | None]]) -> None:
    corpus = read_parallel("hf:wmt/wmt14:de-en", source="de", target="en")
    assert hub == [("wmt/wmt14", "de-en")]
    assert (corpus.train.source, corpus.train.target) == (["Los!"] * 2, ["Go. 😀"] * 2)
    assert (len(corpus.valid), list(corpus.tests), corpus.files) == (1, ["test"], ())
    read_parallel("hf:wmt/wmt14", source="de", target="en")
    assert hub[1] == ("wmt/wmt14", None)


@pytest.mark.usefixtures("hub")
def test_of_rows_of_the_hub_that_say_their_languages_one_direction_is_read() -> None:
    read = read_whole("hf:both/ways", source="de", target="en")
    assert (read.train.source, read.train.target) == (["Halt!"], ["Stop!"])
    with pytest.raises(InputError, match=r"(?m)^hf:both/ways:train:2: from de to en, and other rows .* en to de$"):
        read_whole("hf:both/ways")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nobody/nothing", "could not be loaded: Dataset 'nobody/nothing' doesn't exist on the Hub"),
        ("no/train", "no split 'train'; there are 'test'"),
        ("bro/ken", "'de' is null, expected text"),
    ],
)
@pytest.mark.usefixtures("hub")
def test_faults_of_the_hub_are_one_line(name: str, says: str) -> None:
    where = f"hf:{name}:train:2" if name == "bro/ken" else f"hf:{name}"
    with pytest.raises(HeedError) as caught:
        read_parallel(f"hf:{name}", source="de", target="en")
    assert str(caught.value) == f"{where}: {says}"
    assert caught.value.fix


def test_without_datasets_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingError, match=r"(?m)^hf:wmt/wmt14: reading this needs the package datasets$") as caught:
        read_parallel("hf:wmt/wmt14", source="de", target="en")
    assert caught.value.fix == f"{sys.executable} -m pip install datasets"
