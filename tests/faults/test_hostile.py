"""Model folders made to do harm: nothing in them runs, nothing outside is read, little memory is taken (R12)."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heedful.errors import StorageError
from heedful.verbs.train import train
from hostile import CONFIGS, TENSOR_FILES
from made import made_corpus, made_recipe

Tally = Callable[[str, int], None]
OPENER = """
import json, os, resource, sys, time
import heedful
from heedful.errors import HeedError
from heedful.tasks.translate.use import Translator
root = sys.argv[1]
Translator.load(os.path.join(root, "good")).translate(["ba de"])
inside = ""
library = (os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix), "<frozen", "/proc/", "/sys/")
def watch(event, arguments):
    if not inside:
        return
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "pickle.find_class",
                 "socket.connect", "socket.getaddrinfo"):
        broken.append(f"{event} {arguments!r}"[:200])
    if event == "exec" and not arguments[0].co_filename.startswith(library):
        broken.append(f"exec {arguments[0]}")
    if event == "open" and isinstance(arguments[0], str):
        path = os.path.realpath(arguments[0])
        if not path.startswith((os.path.realpath(inside), *library)):
            broken.append(f"open {path}")
broken = []
sys.addaudithook(watch)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name in sorted(os.listdir(os.path.join(root, "bad"))):
    folder = os.path.join(root, "bad", name)
    begun, inside = time.process_time(), folder
    try:
        Translator.load(folder)
        said = None
    except HeedError as error:
        said = str(error)
    except BaseException as error:
        said = f"\\n{type(error).__name__}: {error}"
    inside = ""
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([name, said, broken, grown // 1024, time.process_time() - begun]), flush=True)
    broken = []
"""


def spoilt(good: Path, bad: Path) -> Iterator[str]:
    """Copies of a good folder, each with one thing in it that an attacker put there; yields their names."""

    def copy(name: str) -> Path:
        folder = bad / name
        shutil.copytree(good, folder, ignore=shutil.ignore_patterns("checkpoints", "samples", "plots"))
        return folder

    for number, data in enumerate(TENSOR_FILES.values()):
        (copy(f"tensors-{number}") / "model.safetensors").write_bytes(data)
        yield f"tensors-{number}"
    for number, (text, _) in enumerate(CONFIGS):
        (copy(f"config-{number}") / "config.json").write_text(text)
        yield f"config-{number}"
    config = json.loads((good / "config.json").read_text())
    for number, (key, value) in enumerate(large_values(config)):
        folder = copy(f"large-{number}")
        (folder / "config.json").write_text(json.dumps(replaced(config, key, value)))
        yield f"large-{number}"
    for number, name in enumerate(("pytorch_model.bin", "model.pt", "weights.pkl", "last.ckpt", "a.npy")):
        folder = copy(f"pickle-{number}")
        (folder / name).write_bytes(b"cos\nsystem\n(S'touch harm'\ntR.")
        (folder / "model.safetensors").unlink()
        yield f"pickle-{number}"
    for file in ("config.json", "model.safetensors", "tokenizer.json", "task.json"):
        for number, target in enumerate(("/etc/passwd", "../../secret", "/dev/zero", file)):
            folder = copy(f"link-{file}-{number}")
            (folder / file).unlink()
            (folder / file).symlink_to(target)
            yield f"link-{file}-{number}"
        if file != "model.safetensors":
            for number, data in enumerate((b"", b"\xff\xfe", b"[" * 9999, b'{"model": {"type": "BPE"}}', b"null")):
                (copy(f"bytes-{file}-{number}") / file).write_bytes(data)
                yield f"bytes-{file}-{number}"


def large_values(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from large_values(inner, (*path, key))
    elif type(value) is int:
        yield path, 10**9
        yield path, 1 << 24  # the most that a configuration may say
        yield path, 0


def replaced(value: object, path: tuple[str, ...], new: object) -> object:
    if not path:
        return new
    assert isinstance(value, dict)
    return {key: replaced(inner, path[1:], new) if key == path[0] else inner for key, inner in value.items()}


def test_folders_made_to_do_harm(tmp_path: Path, tally: Tally) -> None:
    (tmp_path / "secret").write_text("{}")
    for _ in train(made_recipe(steps=1), tmp_path / "good", corpus=made_corpus(150)):
        pass
    (tmp_path / "bad").mkdir()
    names = sorted(spoilt(tmp_path / "good", tmp_path / "bad"))
    done = subprocess.run([sys.executable, "-c", OPENER, str(tmp_path)], capture_output=True, text=True, check=False)
    found = {name: rest for name, *rest in map(json.loads, done.stdout.splitlines())}
    assert sorted(found) == names, done.stderr
    for name, (said, broken, megabytes, seconds) in found.items():
        assert broken == [], name
        assert said is not None, f"{name} was taken for a model"
        assert len(said.splitlines()) == 1, f"{name}: {said}"
        assert megabytes < 1000, name
        assert seconds < 5, name
    assert not list(tmp_path.rglob("harm"))
    tally("R12 model folders made to do harm", len(names))


@pytest.mark.parametrize("name", ["checkpoints/step-1/weights.safetensors", "checkpoints/step-1/state.json"])
def test_a_checkpoint_is_no_way_in_either(name: str, tmp_path: Path) -> None:
    for _ in train(made_recipe(steps=1), tmp_path / "good", corpus=made_corpus(150)):
        pass
    (tmp_path / "good" / name).write_bytes(b"cos\nsystem\n(S'touch harm'\ntR.")
    with pytest.raises(StorageError, match="none of the 1 checkpoints can be used"):
        list(train(made_recipe(steps=2), tmp_path / "good", corpus=made_corpus(150)))
