"""Training beside other programs that use the same cores: tokens a second, with so many processes busy.

    python -m benchmarks.beside --data PATH/TO/data [--only translate] [--busy 0 1 2 4]

Threads that share a product of matrices wait for each other, and how they wait is libgomp's: by default they try
again and again for milliseconds, in time that the one they wait for would need. Here are our training
(`heedful.run.threads`), the same with libgomp's defaults and with one thread, and each peer of `benchmarks.train`
with libgomp's defaults, as it comes. The fair share of n threads beside m busy processes on c cores is what n of n + m
runnable threads get of them: min(n, c n / (n + m)) cores. Rates are given as parts of that share of a quiet machine's.
"""

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from benchmarks.train import SETTINGS, ours, theirs
from benchmarks.turns import Contestant, machine

BUSY = "while True: pass"
DEFAULT = {"GOMP_SPINCOUNT": "300000"}
STEPS = {
    "translate": 12,
    "a": 60,
    "b": 8,
    "b-dropout": 8,
}  # of some seconds, of which finding the others takes a fraction
KNOWN = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


def share(threads: int, busy: int, cores: int) -> float:
    """Cores that a scheduler which treats all alike would give."""
    return min(threads, cores * threads / (threads + busy))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--only", action="append", choices=SETTINGS)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, help=f"a round; if not {STEPS}")
    parser.add_argument("--set", action="append", default=[], help="more ways: words such as GOMP_SPINCOUNT=1000")
    chosen = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(machine(cores))
    for name in chosen.only or ("translate", "a"):
        how = "float32"
        ways: list[tuple[str, dict[str, str], int]] = [
            ("heedful", {}, cores),
            ("heedful, libgomp's defaults", DEFAULT, cores),
            ("heedful, one thread", {}, 1),
        ]
        ways += [(f"heedful, {word}", dict([word.split("=")]), cores) for word in chosen.set]
        with ExitStack() as stack:
            contestants = []
            for label, environment, threads in ways:
                contestant = Contestant(label, ours, (name, chosen.data, how))
                _start(contestant, environment, threads)
                stack.callback(contestant.stop)
                contestants.append((contestant, threads))
            for peer in SETTINGS[name].peers if not chosen.set else ():
                contestant = Contestant(peer, theirs, (name, chosen.data, peer, how), keeps=False)
                _start(contestant, {}, cores)
                stack.callback(contestant.stop)
                contestants.append((contestant, cores))
            alone: dict[str, float] = {}
            for busy in chosen.busy:
                others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(busy)]
                try:
                    for each, _ in contestants:
                        each.rates = []
                    for i in range(chosen.rounds + 1):
                        for each, _ in contestants:
                            tokens, seconds = each.turn(chosen.steps or STEPS[name])
                            each.rates += [tokens / seconds] if i else []
                finally:
                    for other in others:
                        other.kill()
                        other.wait()
                print(f"\n{name}, beside {busy} busy processes", flush=True)
                for each, threads in contestants:
                    alone.setdefault(each.name, each.rate)
                    part = each.rate / alone[each.name] / (share(threads, busy, cores) / threads)
                    low, high = min(each.rates), max(each.rates)
                    spread = f"({low:,.0f} to {high:,.0f})"
                    print(f"{each.name:36} {each.rate:9,.0f} tokens/s {spread}; {part:.2f} of its share")


def _start(contestant: Contestant, environment: dict[str, str], threads: int) -> None:
    """libgomp reads the environment when a process loads it."""
    kept = {name: os.environ.pop(name) for name in KNOWN if name in os.environ}
    os.environ.update(environment)
    contestant.start(threads)
    for name in environment:
        del os.environ[name]
    os.environ.update(kept)


if __name__ == "__main__":
    main()
