"""Model folders under failing disks, power cuts, damage and malice.

Each sweep takes its volume as a parameter and prints `faults=N survived=N`.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from disks import Faulty, damages, faulted, power_cuts, same
from heedful.errors import HeedError, InputError, MissingError, StorageError
from heedful.store import files, migrations
from heedful.store.model import read_config, read_model, replace_small, save_model
from hostile import CONFIGS, TENSOR_FILES

Tally = Callable[[str, int], None]
CONFIG = {"kind": "seq2seq", "config": {"d_model": 8}}
SMALL = {"tokenizer.json": {"vocab": {"a": 1}}, "notes.txt": b"kept as it is"}


def weights(seed: int) -> dict[str, Tensor]:
    table = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
    return {"embed.weight": table, "head.weight": table, "scale": torch.tensor([float(seed)])}


def test_a_model_folder_comes_back_whole(tmp_path: Path) -> None:
    folder = tmp_path / "runs/first"
    save_model(folder, CONFIG, weights(1), SMALL)
    assert sorted(os.listdir(folder)) == ["config.json", "model.safetensors", "notes.txt", "tokenizer.json"]
    assert json.loads((folder / "config.json").read_text()) == CONFIG | {"format": migrations.FORMAT}
    assert (folder / "notes.txt").read_bytes() == b"kept as it is"
    config, tensors = read_model(folder)
    assert config == CONFIG
    assert same(tensors, weights(1))
    save_model(folder, CONFIG, weights(2), SMALL)
    assert same(read_model(folder)[1], weights(2))
    assert same(
        safetensors.torch.load_file(folder / "model.safetensors"),
        {name: tensor for name, tensor in weights(2).items() if name != "head.weight"},
    )  # other programs read it too


def test_another_model_is_not_written_over(tmp_path: Path) -> None:
    save_model(tmp_path, CONFIG, weights(1), SMALL)
    for config, extra in ((CONFIG | {"kind": "lm"}, SMALL), (CONFIG, SMALL | {"notes.txt": b"others"})):
        with pytest.raises(InputError, match="belongs to another model"):
            save_model(tmp_path, config, weights(2), extra)
    assert same(read_model(tmp_path)[1], weights(1))
    with pytest.raises(ValueError, match="kind"):
        save_model(tmp_path, {}, {}, {})
    with pytest.raises(StorageError, match="is not a name"):
        save_model(tmp_path, CONFIG, {}, {"../a": b""})


def saved_again(folder: Path) -> None:
    save_model(folder, CONFIG, weights(2), SMALL)


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("first", [False, True])
def test_whichever_operation_fails_the_old_or_the_new_model_is_read(
    first: bool, every: int, tmp_path: Path, disk: Callable[[files.Disk], None], tally: Tally
) -> None:
    disk(Faulty())
    if first:  # what an earlier try left, of another model
        (tmp_path / "template").mkdir()
        (tmp_path / "template/config.json").write_text("{}")
    else:
        save_model(tmp_path / "template", CONFIG, weights(1), SMALL)
    faults = 0
    for folder, done in faulted(saved_again, tmp_path / "template", disk, every=every):
        try:
            seed = read_model(folder)[1]["scale"].item()
            assert same(read_model(folder)[1], weights(int(seed)))
            assert seed == 2 or not (done or first)
        except HeedError:
            assert first
            assert not done
            assert not (folder / "model.safetensors").exists()
        save_model(folder, CONFIG, weights(3), SMALL)
        assert same(read_model(folder)[1], weights(3))
        faults += 1
    tally("R2 the N-th file operation fails, model folders", faults)


@pytest.mark.parametrize("names_survive", [False, True])
def test_whenever_the_power_goes_the_old_or_the_new_model_is_read(
    names_survive: bool, tmp_path: Path, disk: Callable[[files.Disk], None]
) -> None:
    disk(Faulty())
    save_model(tmp_path / "template", CONFIG, weights(1), SMALL)
    for operation, left, done in power_cuts(saved_again, tmp_path / "template", disk, names_survive=names_survive):
        assert operation < 500
        seed = int(read_model(left)[1]["scale"].item())
        assert same(read_model(left)[1], weights(seed))
        assert seed == 2 or not done
    assert operation > 5


NEW = b"another text"


def replaced(folder: Path) -> None:
    replace_small(folder, "notes.txt", NEW)


def test_a_small_file_is_replaced(tmp_path: Path) -> None:
    save_model(tmp_path, CONFIG, weights(1), SMALL)
    replace_small(tmp_path, "notes.txt", NEW)
    assert (tmp_path / "notes.txt").read_bytes() == NEW
    assert same(read_model(tmp_path)[1], weights(1))
    whole = (tmp_path / "model.safetensors").read_bytes()
    replace_small(tmp_path, "notes.txt", NEW)
    assert (tmp_path / "model.safetensors").read_bytes() == whole
    save_model(tmp_path, CONFIG, weights(2), SMALL | {"notes.txt": NEW})
    assert same(read_model(tmp_path)[1], weights(2))
    (tmp_path / "notes.txt").write_bytes(b"somebody's")
    with pytest.raises(StorageError, match=r"notes\.txt: not the file that was saved"):
        replace_small(tmp_path, "notes.txt", NEW)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.full)])
def test_whichever_operation_fails_the_old_or_the_new_small_file_is_read(
    every: int, tmp_path: Path, disk: Callable[[files.Disk], None], tally: Tally
) -> None:
    disk(Faulty())
    save_model(tmp_path / "template", CONFIG, weights(1), SMALL)
    faults = 0
    for folder, done in faulted(replaced, tmp_path / "template", disk, every=every):
        assert same(read_model(folder)[1], weights(1))
        assert (folder / "notes.txt").read_bytes() in ([NEW] if done else [NEW, SMALL["notes.txt"]])
        replaced(folder)
        assert (folder / "notes.txt").read_bytes() == NEW
        (folder / "notes.txt").write_bytes(SMALL["notes.txt"])
        with pytest.raises(StorageError, match="not the file that was saved"):
            read_model(folder)
        faults += 1
    tally("R2 the N-th file operation fails, model folders", faults)


@pytest.mark.parametrize("names_survive", [False, True])
def test_whenever_the_power_goes_the_old_or_the_new_small_file_is_read(
    names_survive: bool, tmp_path: Path, disk: Callable[[files.Disk], None]
) -> None:
    disk(Faulty())
    save_model(tmp_path / "template", CONFIG, weights(1), SMALL)
    for operation, left, done in power_cuts(replaced, tmp_path / "template", disk, names_survive=names_survive):
        assert operation < 500
        assert same(read_model(left)[1], weights(1))
        assert (left / "notes.txt").read_bytes() in ([NEW] if done else [NEW, SMALL["notes.txt"]])
    assert operation > 5


@pytest.mark.parametrize("flips", [30, pytest.param(2000, marks=pytest.mark.full)])
def test_every_damage_to_a_model_folder_is_seen(
    flips: int, tmp_path: Path, disk: Callable[[files.Disk], None], tally: Tally
) -> None:
    disk(Faulty())
    folder, older, whole = tmp_path / "model", tmp_path / "older", tmp_path / "whole"
    save_model(folder, CONFIG, weights(1), SMALL)
    save_model(older, CONFIG | {"kind": "lm"}, weights(2), {"tokenizer.json": {}, "notes.txt": b""})
    shutil.copytree(folder, whole)
    faults = 0
    for what, do in list(damages(folder, older, flips)):
        do()
        with pytest.raises(HeedError) as caught:
            read_model(folder)
        assert "\n" not in str(caught.value), what
        assert str(caught.value).startswith(str(folder / what.split()[0])) or "not the file that" in str(caught.value)
        faults += 1
        shutil.rmtree(folder)
        shutil.copytree(whole, folder)
    assert same(read_model(folder)[1], weights(1))
    tally("R4 damaged model folders", faults)


def test_an_older_format_is_brought_up_and_a_newer_one_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path, CONFIG | {"format": 5}, weights(1), SMALL)
    with pytest.raises(
        InputError, match=f"written in format 5, this heedful reads up to {migrations.FORMAT}"
    ) as caught:
        read_model(tmp_path)
    assert caught.value.fix == "pip install -U heedful"
    renames = migrations.Migration(lambda config: config, {"embed": "table"})
    widens = migrations.Migration(lambda config: config | {"tied": True}, {"table": "tables"})
    monkeypatch.setattr(migrations, "FORMAT", 7)
    monkeypatch.setattr(migrations, "MIGRATIONS", {5: renames, 6: widens})
    config, tensors = read_model(tmp_path)
    assert config == CONFIG | {"tied": True}
    assert set(tensors) == {"tables.weight", "head.weight", "scale"}
    assert same(migrations.named_before(tensors, 5), weights(1))
    monkeypatch.setattr(migrations, "MIGRATIONS", {6: widens})
    with pytest.raises(StorageError, match="format 5 is not known"):
        read_model(tmp_path)


# --- folders made to do harm ---


def test_missing_parts_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such folder"):
        read_model(tmp_path / "none")
    with pytest.raises(MissingError, match=r"config\.json: no such file"):
        read_model(tmp_path)
    (tmp_path / "config.json").write_bytes(files.json_bytes(CONFIG | {"format": 1}, where=""))
    with pytest.raises(MissingError, match=r"model\.safetensors: no model has been saved here yet"):
        read_model(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pkl", "last.ckpt", "a.pth", "a.npy"])
def test_pickled_weights_are_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(files.json_bytes(CONFIG | {"format": 1}, where=""))
    (tmp_path / name).write_bytes(b"cos\nsystem\n(S'touch harm'\ntR.")
    with pytest.raises(InputError, match="a pickle, which can run code") as caught:
        read_model(tmp_path)
    assert caught.value.where == str(tmp_path / name)


@pytest.mark.parametrize(("text", "what"), CONFIGS)
def test_hostile_configs_are_refused(text: str, what: str, tmp_path: Path) -> None:
    save_model(tmp_path, CONFIG, weights(1), {})
    (tmp_path / "config.json").write_text(text)
    for read in (read_config, read_model):
        with pytest.raises(HeedError) as caught:
            read(tmp_path)
        assert what in str(caught.value) + caught.value.fix
        assert len(str(caught.value).splitlines()) == 1


def test_the_word_auto_map_in_a_text_does_no_harm(tmp_path: Path) -> None:
    config = CONFIG | {"labels": ['"auto_map": ', "auto_map"]}
    save_model(tmp_path, config, weights(1), {})
    assert read_model(tmp_path)[0] == config


def test_links_out_of_the_folder_are_refused_and_links_within_it_followed(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    save_model(folder, CONFIG, weights(1), SMALL)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).rename(tmp_path / name)
        for target in (tmp_path / name, Path("..") / name, Path("/dev/zero"), tmp_path / "gone"):
            (folder / name).symlink_to(target)
            with pytest.raises(StorageError, match=f"{name}: a link out of its folder"):
                read_model(folder)
            (folder / name).unlink()
        (folder / name).symlink_to(name)
        with pytest.raises(StorageError):
            read_model(folder)
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(StorageError, match="not a plain file"):
            read_model(folder)
        (folder / name).unlink()
        (folder / name).mkdir()
        with pytest.raises(StorageError, match="not a plain file"):
            read_model(folder)
        (folder / name).rmdir()
        shutil.move(tmp_path / name, folder / f"real-{name}")
        (folder / name).symlink_to(f"real-{name}")
        assert same(read_model(folder)[1], weights(1))
    (tmp_path / "by another name").symlink_to(folder)
    assert same(read_model(tmp_path / "by another name")[1], weights(1))


@pytest.mark.parametrize("name", TENSOR_FILES)
def test_hostile_tensor_files_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "model"
    save_model(folder, CONFIG, weights(1), {})
    (folder / "model.safetensors").write_bytes(TENSOR_FILES[name])
    with pytest.raises(StorageError) as caught:
        read_model(folder)
    assert str(caught.value).isprintable()
    assert len(caught.value.what) < 300
    assert caught.value.where.startswith(str(folder)) or "is not a name for a file" in caught.value.what
    assert caught.value.fix


def test_a_tensor_file_larger_than_the_memory_is_refused_unread(tmp_path: Path) -> None:
    save_model(tmp_path, CONFIG, weights(1), {})
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(StorageError, match="more than the"):
        read_model(tmp_path)
