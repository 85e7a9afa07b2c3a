"""One trainer to a run folder: a lock that the kernel releases when its owner dies."""

import fcntl
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from heedful.errors import InputError
from heedful.store import files

NAME = ".lock"


@contextmanager
def run_lock(run: Path) -> Iterator[None]:
    """Hold the run folder for this process. Raises InputError when another process holds it.

    `flock` on RUN/.lock, in which the owner writes its pid, host and start for others to read. The file stays
    when the owner goes: the lock is the kernel's hold on the file, so that there is no stale one to mend. For a
    local disk; a network file system may not carry the lock to other hosts.
    """
    path = run / NAME
    with files.storage_errors(path):
        descriptor = files.disk.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    held = [descriptor]
    try:
        with files.storage_errors(path):
            os.set_inheritable(descriptor, False)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise _refusal(run, os.pread(descriptor, 200, 0)) from error
            # A forked data worker would keep the lock of a killed trainer alive until it ends itself.
            os.register_at_fork(after_in_child=lambda: os.close(held.pop()) if held else None)
            started = time.strftime("%Y-%m-%d %H:%M:%S")
            files.disk.truncate(descriptor, 0)
            files.disk.write(descriptor, f"pid {os.getpid()} on {socket.gethostname()} since {started}\n".encode())
        try:
            yield
        finally:
            if held:  # not so in a forked child that leaves the block
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # a program just being started may share the hold
    finally:
        if held:
            with suppress(OSError):  # it holds a note for readers, no data: nothing can be lost in it any more
                files.disk.close(held.pop())


@contextmanager
def one_after_another(path: Path) -> Iterator[None]:
    """Waits until no other process or thread is in such a block for this folder or file. A folder is locked as it is. A
    file is made, empty, where there is none; inside of the block it may be replaced or removed."""
    lock = _locked(path, wait=True)
    assert lock is not None
    with lock:
        yield


@contextmanager
def with_others(path: Path) -> Iterator[None]:
    """Waits until no other is in a block of `one_after_another` or `held_alone`, which then wait for this one, or are
    refused; any number of others are in such a block as this one."""
    lock = _locked(path, wait=True, shared=True)
    assert lock is not None
    with lock:
        yield


@contextmanager
def held_alone(path: Path) -> Iterator[None]:
    """As `one_after_another`, but raises InputError where another process or thread is in such a block."""
    lock = _locked(path, wait=False)
    if lock is None:
        fix = "wait for it, or choose another --out"
        named = path.parent if path.name.startswith(files.TEMPORARY) else path
        raise InputError("another command is writing here", where=str(named), fix=fix)
    with lock:
        yield


def _locked(path: Path, *, wait: bool, shared: bool = False) -> ExitStack | None:
    """Holds a lock until it is closed. None where another process or thread has it, unless it waits."""
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    with files.storage_errors(path):
        while True:
            with ExitStack() as opened:
                if path.is_dir():
                    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                else:
                    descriptor = files.disk.open(path, os.O_RDWR | os.O_CREAT)
                opened.callback(os.close, descriptor)
                try:
                    fcntl.flock(descriptor, how)
                except BlockingIOError:
                    return None
                with suppress(FileNotFoundError):  # whoever had it may have replaced or removed the file
                    if os.path.samestat(os.fstat(descriptor), path.stat()):
                        return opened.pop_all()


def is_held(run: Path) -> bool:
    """Whether a process holds the folder, according to Linux (/proc/locks). It takes no lock, so it never keeps a
    training out."""
    try:
        inode = (run / NAME).stat().st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    held = (line.split() for line in lines)
    return any(words[1] == "FLOCK" and words[-3].endswith(f":{inode}") for words in held)


def _refusal(run: Path, note: bytes) -> InputError:
    owner = re.match(rb"pid (\d+) on [\w.-]+ since [\d :-]+", note)
    who = owner[0].decode().strip() if owner else "its name not yet written"
    stop = f"`kill {owner[1].decode()}`" if owner else "stop it"
    return InputError(
        f"another trainer ({who}) is writing here",
        where=str(run),
        fix=f"wait for it, end it ({stop}), or choose another run folder",
    )
